//! What of the file holds for a command line, put into it.

use super::file::{Entry, Scope, Settings, Value, holds_for, is_for, said, words};
use super::{ADDING, Fault, option};
use anyhow::Result;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    CommandLine,
    /// The variable of this name.
    Environment(String),
    /// The line of the file.
    File(usize),
    Default,
}

/// A key of the file that holds, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub key: String,
    pub value: Value,
    pub line: usize,
}

/// A command line with the file's options.
#[derive(Clone, Debug)]
pub struct Applied {
    pub line: Vec<OsString>,
    pub chosen: Vec<Chosen>,
}

/// Whether an option adds to what the file says.
pub fn told_twice(key: &str) -> bool {
    ADDING.contains(&key)
}

/// `line` is a command line that `command` parses, and `at` the place in it where options may be put; `definition` defines the
/// options of the command called `name`.
pub fn apply(
    settings: &Settings,
    (command, definition, name): (&Command, &Command, &str),
    (line, at, given): (&[OsString], usize, &ArgMatches),
    program: Option<&Path>,
) -> Result<Applied> {
    let mut applied = Applied { line: line.to_vec(), chosen: Vec::new() };
    let mut inserted = Vec::new();
    for chosen in choose(settings, name, program) {
        let Some(argument) = option(definition, &chosen.key) else { continue };
        let source = given.value_source(argument.get_id().as_str());
        let is_given = matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        if is_given && !told_twice(&chosen.key) {
            continue;
        }
        let put = words(&chosen.key, &chosen.value);
        let with = |words: &[OsString]| {
            let mut line = line.to_vec();
            line.splice(at..at, words.iter().cloned());
            line
        };
        match command.clone().try_get_matches_from(with(&put)) {
            Ok(_) => {}
            // What was typed wins also over what it excludes.
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => continue,
            Err(error) => return Err(fault(settings, chosen.line, &error)),
        }
        inserted.extend(put);
        if let Err(error) = command.clone().try_get_matches_from(with(&inserted)) {
            return Err(fault(settings, chosen.line, &error));
        }
        applied.chosen.push(chosen);
    }
    applied.line.splice(at..at, inserted);
    Ok(applied)
}

fn fault(settings: &Settings, line: usize, error: &clap::Error) -> anyhow::Error {
    Fault(format!("{}:{line}: {}", settings.path.display(), said(error))).into()
}

/// What holds, by key: the nearest scope wins, in it the last section; lists of what is known add up.
fn choose(settings: &Settings, command: &str, program: Option<&Path>) -> Vec<Chosen> {
    let holds = |entry: &&Entry| {
        let is_for_program = match &entry.scope {
            Scope::Program(pattern) => is_for(pattern, &settings.path, program),
            Scope::Every | Scope::Command(_) => true,
        };
        is_for_program && holds_for(&entry.scope, &entry.key, command)
    };
    let rank = |entry: &&Entry| match entry.scope {
        Scope::Every => 0,
        Scope::Command(_) => 1,
        Scope::Program(_) => 2,
    };
    let mut entries: Vec<&Entry> = settings.entries.iter().filter(holds).collect();
    entries.sort_by_key(rank);
    let mut by_key: BTreeMap<&str, Vec<Chosen>> = BTreeMap::new();
    for entry in entries {
        let all = by_key.entry(&entry.key).or_default();
        if !told_twice(&entry.key) {
            all.clear();
        }
        all.push(Chosen { key: entry.key.clone(), value: entry.value.clone(), line: entry.line });
    }
    by_key.into_values().flatten().collect()
}

/// A value as the file has it, one text for each.
pub fn values(value: &Value) -> Vec<String> {
    match value {
        Value::Switch(on) => vec![on.to_string()],
        Value::Texts(texts) => texts.iter().map(|text| literal(&text.to_string_lossy())).collect(),
    }
}

/// Numbers and truth values stand as they are, all else in quotes.
pub fn literal(text: &str) -> String {
    let is_bare = ["true", "false"].contains(&text) || text.parse::<u64>().is_ok();
    if is_bare { text.to_owned() } else { format!("{text:?}") }
}
