//! `rashomon.toml`: options that hold for a project, so that nobody has to type them.
//!
//! Keys are the long options of the commands that read the file, and values are read as on the command line: nothing has to be
//! kept in step. The command line wins, then the environment, then the file: there, a section of the program over one of the
//! command over what stands outside of sections.

mod apply;
mod file;
mod line;

pub use apply::{Applied, Chosen, Origin, apply, literal, told_twice, values};
pub use file::{NAME, Settings};
pub use line::{Refused, complete, complete_options, matches_of, parse};

/// Commands that share options of the same meaning: keys outside of sections are for them.
pub const SHARING: [&str; 7] = ["check", "record", "provoke", "explore", "witness", "predict", "confirm"];
/// These too have a section of their own.
pub const WITH_SECTION: [&str; 2] = ["detect", "accept"];
/// Of `accept`, as it is of the others.
const SHARED_WITH_ACCEPT: &str = "baseline";
/// Not for files: who else's store is executed is decided each time, and the others steer the reading of the file.
const EXCLUDED: [&str; 5] = ["trust", "config", "no-config", "help", "version"];
/// Each command means something else by them: they stand in its section.
const OF_SECTIONS: [&str; 2] = ["all", "strategy"];
/// Given several times, these add up; all others are replaced.
const ADDING: [&str; 3] = ["trust-library", "suppressions", "suppress"];
/// Values are paths, seen from the folder of the file.
const PATHS: [&str; 11] =
    ["baseline", "suppressions", "stdin", "output", "from", "json", "log", "correlated", "queue-credentials", "queue-ca", "ship"];
/// Files that are read once a command needs them.
const READ_WHEN_NEEDED: [&str; 2] = ["baseline", "suppressions"];

/// The file, or a value in it, is wrong: the user's business, as a wrong command line is.
#[derive(Debug)]
pub struct Fault(pub String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Whether a command reads the file.
pub fn reads(command: &str) -> bool {
    SHARING.contains(&command) || WITH_SECTION.contains(&command)
}

/// Whether a file may have this key.
pub fn may_hold(key: &str) -> bool {
    !EXCLUDED.contains(&key)
}

/// The option of a command that a key stands for.
fn option<'a>(command: &'a clap::Command, key: &str) -> Option<&'a clap::Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(key) && may_hold(key))
}
