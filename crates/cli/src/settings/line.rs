//! The command line, completed from the file.

use super::{Applied, NAME, Settings, apply, reads};
use crate::arguments::Arguments;
use crate::program;
use crate::terminal::say;
use anyhow::Result;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use rashomon_pipeline::Store;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Why there is nothing to do.
#[derive(Debug)]
pub enum Refused {
    Misunderstood(clap::Error),
    Failed(anyhow::Error),
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::Misunderstood(error)
    }
}

impl From<anyhow::Error> for Refused {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reads a command line. What it leaves open, the project's file may say.
pub fn parse(line: &[OsString]) -> Result<Arguments, Refused> {
    Ok(Arguments::from_arg_matches(&matches_of(line)?)?)
}

/// The same, before it is given types.
pub fn matches_of(line: &[OsString]) -> Result<ArgMatches, Refused> {
    let mut command = Arguments::command();
    let mut matches = command.try_get_matches_from_mut(line)?;
    if let Some((_, applied)) = complete(line, &matches)?
        && !applied.chosen.is_empty()
    {
        matches = command.try_get_matches_from_mut(&applied.line)?;
    }
    Ok(matches)
}

/// The file that holds for a command line, and what it puts into it.
pub fn complete(line: &[OsString], matches: &ArgMatches) -> Result<Option<(Settings, Applied)>> {
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| reads(name)) else { return Ok(None) };
    if given.get_flag("no_config") {
        return Ok(None);
    }
    let program = program_of(given);
    let Some(path) = file_of(given, program.as_deref()) else { return Ok(None) };
    let mut whole = Arguments::command();
    whole.build();
    let settings = Settings::read(&path, &whole)?;
    let Some(definition) = whole.get_subcommands().find(|command| command.get_name() == name) else { return Ok(None) };
    let at = place(line, name);
    let applied = apply(&settings, (&Arguments::command(), definition, name), (line, at, given), program.as_deref())?;
    Ok(Some((settings, applied)))
}

fn file_of(given: &ArgMatches, program: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = given.get_one::<PathBuf>("config") {
        return Some(path.clone());
    }
    let path = Settings::find(program)?;
    if let Some(why) = Settings::distrusted(&path) {
        say!("{} is not read: {why}; --config {NAME} would read it, --no-config says nothing of it", path.display());
        return None;
    }
    Some(path)
}

/// The program that a command line is about: named there, or recorded in the store that is.
fn program_of(given: &ArgMatches) -> Option<PathBuf> {
    let file = given.try_get_one::<PathBuf>("file").ok().flatten();
    let named = given.try_get_many::<OsString>("command").ok().flatten().and_then(|mut words| words.next());
    if let Some(word) = file.map(|file| file.as_os_str()).or(named.map(OsString::as_os_str)) {
        return program::find(word).ok().or_else(|| source(word));
    }
    let store = ["trace", "store", "from"].into_iter().find_map(|id| given.try_get_one::<PathBuf>(id).ok().flatten());
    let store = Store::open(store.map_or(Path::new("."), PathBuf::as_path)).ok()?;
    Some(store.run().ok()?.executable.to_path())
}

/// A source file stands for its program.
fn source(word: &OsStr) -> Option<PathBuf> {
    std::path::absolute(word).ok().filter(|path| path.is_file())
}

/// Behind the command's name.
fn place(line: &[OsString], name: &str) -> usize {
    let mut words = line.iter().enumerate().skip(1);
    while let Some((at, word)) = words.next() {
        if word == "--color" || word == "--config" {
            words.next();
        } else if word == name {
            return at + 1;
        }
    }
    line.len()
}

/// Options that hold for a program which something else than our command line names: `command` is their definition.
pub fn complete_options(command: &Command, line: &[OsString], program: &Path) -> Result<Vec<OsString>> {
    let mut whole = Arguments::command();
    whole.build();
    let matches = command.clone().try_get_matches_from(line)?;
    match Settings::find(Some(program)).filter(|path| Settings::distrusted(path).is_none()) {
        Some(path) => {
            let settings = Settings::read(&path, &whole)?;
            Ok(apply(&settings, (command, command, "check"), (line, 1, &matches), Some(program))?.line)
        }
        None => Ok(line.to_vec()),
    }
}
