//! Which words of a `cargo rashomon` command line are ours and which are cargo's.
//!
//! Ours may stand anywhere in front of `--`, as cargo's own options may; none of them is an option of cargo. What is not ours is
//! cargo's, in the order in which it was given.

use super::toolchain::StandardChoice;
use crate::arguments::{ConfirmOptions, ReportFile, ReportOptions, RunOptions, report_file};
use anyhow::{Result, bail};
use clap::{Args, CommandFactory as _, Parser};
use std::collections::BTreeMap;

/// Ours, as the runner needs them.
#[derive(Debug, Parser)]
#[command(name = "cargo rashomon", disable_help_flag = true)]
pub struct RunnerOptions {
    #[command(flatten)]
    pub cargo: CargoOptions,
    /// Detect races online, in one undisturbed execution of each program, instead of recording, predicting and proving.
    #[arg(long)]
    pub detect: bool,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub confirm: ConfirmOptions,
    #[command(flatten)]
    pub report: ReportOptions,
}

#[derive(Debug, Args)]
pub struct CargoOptions {
    /// Which standard library instrumented programs get.
    #[arg(long = "std", value_enum, value_name = "WHICH", default_value_t = StandardChoice::Auto)]
    pub standard: StandardChoice,
    /// At the end, write one report of all programs, or tests under nextest, in a format, such as `junit=races.xml`; `-` as the
    /// file: to standard output. May be given several times.
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report_file)]
    pub merged: Vec<ReportFile>,
}

/// The words of a command line, told apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    pub ours: Vec<String>,
    /// Behind the subcommand; what stands behind `--` included.
    pub cargo: Vec<String>,
    pub subcommand: String,
}

/// Options that make no sense for several programs, or that cargo has under the same name.
const LEFT_TO_CARGO: [&str; 3] = ["output", "json", "report"];
/// Options that name files. Tests run in the folders of their packages, and the files lie where the user is.
const FILES: [&str; 2] = ["baseline", "suppressions"];

pub fn split(words: &[String]) -> Result<Split> {
    let command = RunnerOptions::command();
    let own: BTreeMap<String, bool> = command
        .get_arguments()
        .filter_map(|argument| Some((argument.get_long()?.to_owned(), argument.get_action().takes_values())))
        .filter(|(name, _)| !LEFT_TO_CARGO.contains(&name.as_str()))
        .collect();
    let (mut ours, mut cargo) = (Vec::new(), Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            cargo.push(word.clone());
            cargo.extend(rest.cloned());
            break;
        }
        let (name, given) = match word.strip_prefix("--").map(|name| (name, name.split_once('='))) {
            Some((_, Some((name, value)))) => (Some(name), Some(value)),
            Some((name, None)) => (Some(name), None),
            None => (None, None),
        };
        match name.and_then(|name| Some((name, *own.get(name)?))) {
            Some((name, true)) => {
                let Some(value) = given.or_else(|| rest.next().map(String::as_str)) else { bail!("{word} needs a value") };
                let value = if FILES.contains(&name) { from_here(value) } else { value.to_owned() };
                match given {
                    Some(_) => ours.push(format!("--{name}={value}")),
                    None => ours.extend([word.clone(), value]),
                }
            }
            Some((_, false)) => ours.push(word.clone()),
            None => cargo.push(word.clone()),
        }
    }
    let at = cargo.iter().position(|word| !word.starts_with('-') && !word.starts_with('+'));
    let Some(at) = at.filter(|at| !cargo[..*at].iter().any(|word| word == "--")) else {
        bail!("which cargo command? For example `cargo rashomon test`");
    };
    let subcommand = cargo.remove(at);
    Ok(Split { ours, cargo, subcommand })
}

/// The same file, whatever the working directory is.
fn from_here(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Split {
        split(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn words_go_where_they_belong() {
        for (line, ours, subcommand, cargo) in [
            ("test", "", "test", ""),
            ("--budget 5 test -p a --release", "--budget 5", "test", "-p a --release"),
            ("test --budget=5 -p a --detect name -- --budget 7", "--budget=5 --detect", "test", "-p a name -- --budget 7"),
            ("run --bin a --seed 3 -- --seed 4", "--seed 3", "run", "--bin a -- --seed 4"),
            ("test --std plain --json 3", "--std plain", "test", "--json 3"),
        ] {
            let split = of(line);
            assert_eq!(
                (split.ours.join(" ").as_str(), split.subcommand.as_str(), split.cargo.join(" ").as_str()),
                (ours, subcommand, cargo),
                "{line}"
            );
        }
    }

    #[test]
    fn files_are_those_of_the_user() {
        let here = std::env::current_dir().unwrap();
        for line in ["test --baseline known.txt -p a", "test --baseline=known.txt -p a"] {
            let split = of(line);
            assert!(split.ours.join("=").ends_with(&format!("--baseline={}/known.txt", here.display())), "{split:?}");
            assert_eq!(split.cargo, ["-p", "a"]);
        }
    }

    #[test]
    fn a_command_is_needed() {
        for line in ["", "--budget 5", "-- test"] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert!(split(&words).is_err(), "{line}");
        }
    }

    #[test]
    fn our_options_are_none_of_cargos() {
        const OF_CARGO: [&str; 24] = [
            "package",
            "workspace",
            "exclude",
            "lib",
            "bin",
            "bins",
            "example",
            "test",
            "tests",
            "bench",
            "features",
            "release",
            "profile",
            "jobs",
            "target",
            "target-dir",
            "manifest-path",
            "verbose",
            "quiet",
            "color",
            "locked",
            "offline",
            "config",
            "no-run",
        ];
        let command = RunnerOptions::command();
        let own: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
        assert!(OF_CARGO.iter().all(|name| !own.contains(name)), "{own:?}");
    }
}
