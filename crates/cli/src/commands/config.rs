//! `rashomon config`: which options hold for a command line, and why.

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::settings::{
    Applied, Chosen, NAME, Origin, SHARING, Settings, WITH_SECTION, complete, literal, may_hold, reads, told_twice, values,
};
use crate::terminal::print;
use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory as _};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// A value that holds.
struct Held {
    key: String,
    value: String,
    origin: Origin,
}

pub fn config(words: &[OsString]) -> Result<Exit> {
    let (line, matches) = match parse(words) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    };
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| reads(name)) else {
        bail!("{NAME} is for {}", SHARING.iter().chain(&WITH_SECTION).copied().collect::<Vec<_>>().join(", "));
    };
    let completed = complete(&line, &matches)?;
    let mut whole = Arguments::command();
    whole.build();
    let definition = whole.get_subcommands().find(|command| command.get_name() == name);
    let arguments = definition.into_iter().flat_map(clap::Command::get_arguments);
    let chosen = completed.as_ref().map_or(&[][..], |(_, applied): &(Settings, Applied)| &applied.chosen);
    let held: Vec<Held> = arguments.flat_map(|argument| held(argument, given, chosen)).collect();
    let file = completed.as_ref().map(|(settings, _)| settings.path.as_path());
    print(&table(name, file, &held))?;
    Ok(Exit::Success)
}

/// The command line that is asked about; without words it is `check`, and of a program that is not named nothing is known.
fn parse(words: &[OsString]) -> Result<(Vec<OsString>, ArgMatches), clap::Error> {
    let mut line: Vec<OsString> = vec!["rashomon".into()];
    line.extend(words.iter().cloned());
    if words.is_empty() {
        line.push("check".into());
    }
    match Arguments::command().try_get_matches_from(&line) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let mut whole = line.clone();
            whole.extend(["--".into(), "PROGRAM".into()]);
            Arguments::command().try_get_matches_from(&whole).map(|matches| (whole, matches))
        }
        other => other.map(|matches| (line, matches)),
    }
}

/// What an option has, each value with its origin.
fn held(argument: &Arg, given: &ArgMatches, chosen: &[Chosen]) -> Vec<Held> {
    let Some(key) = argument.get_long().filter(|key| may_hold(key) && !argument.is_hide_set()) else { return vec![] };
    let id = argument.get_id().as_str();
    let of_file = chosen.iter().filter(|chosen| chosen.key == key);
    let mut all: Vec<Held> = of_file
        .flat_map(|chosen| {
            let origin = Origin::File(chosen.line);
            values(&chosen.value).into_iter().map(move |value| Held { key: key.to_owned(), value, origin: origin.clone() })
        })
        .collect();
    if !all.is_empty() && !told_twice(key) {
        return all;
    }
    let origin = match given.value_source(id) {
        Some(ValueSource::CommandLine) => Origin::CommandLine,
        Some(ValueSource::EnvVariable) => {
            Origin::Environment(argument.get_env().unwrap_or_default().to_string_lossy().into_owned())
        }
        Some(ValueSource::DefaultValue) if all.is_empty() => Origin::Default,
        _ => return all,
    };
    let raw = given.get_raw(id).into_iter().flatten();
    all.extend(raw.map(|value| Held { key: key.to_owned(), value: literal(&value.to_string_lossy()), origin: origin.clone() }));
    all
}

fn table(command: &str, file: Option<&Path>, held: &[Held]) -> String {
    let left = |one: &Held| format!("{} = {}", one.key, one.value);
    let width = held.iter().map(|one| left(one).chars().count()).max().unwrap_or(0);
    let mut text = match file {
        Some(file) => format!("# rashomon {command}, with {}\n", file.display()),
        None => format!("# rashomon {command}, without a {NAME}\n"),
    };
    let short = file.and_then(Path::file_name).unwrap_or_default();
    for one in held {
        let why = match &one.origin {
            Origin::CommandLine => "command line".to_owned(),
            Origin::Environment(name) => format!("environment: {name}"),
            Origin::File(line) => format!("{}:{line}", short.to_string_lossy()),
            Origin::Default => "default".to_owned(),
        };
        let _ = writeln!(text, "{:width$}  # {why}", left(one));
    }
    text
}
