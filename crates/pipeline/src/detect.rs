//! Online detection: the detectors run in the program's own process, and flags in its environment say how.
//!
//! Alone, the program takes the caller's place: its process id, its exit code and what signals do to it are what whoever called
//! sees, so all there is to prepare is a command. Beside a client the caller stays.

use crate::error::PipelineError;
use rashomon_abi::{DETECT_VARIABLE, REPORTER_VARIABLE, SESSION_VARIABLE};
use rashomon_confirm::{Client, Ending, Input, Output, Program, Served, Time, execute, no_session};
use rashomon_report::ProgramExit;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, and what its detectors are told.
pub struct Detection {
    pub executable: PathBuf,
    pub arguments: Vec<OsString>,
    /// Folder of the runtime, for a program that it is not linked into.
    pub runtime: Option<PathBuf>,
    pub flags: Flags,
    /// Who tells reports: the tool itself, with the argument that asks for it.
    pub reporter: OsString,
    /// What it has to find in its environment besides.
    pub environment: Vec<(OsString, OsString)>,
}

impl Detection {
    /// The command that is to take the caller's place.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .args(&self.arguments)
            .env_remove(SESSION_VARIABLE)
            .env(DETECT_VARIABLE, &self.flags.0)
            .env(REPORTER_VARIABLE, &self.reporter)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.runtime {
            command.env("LD_LIBRARY_PATH", before_all_others(folder));
        }
        command
    }

    /// Runs the program and its client, in this folder. Second: what is to be said of how it was served.
    pub fn beside(mut self, client: Client, directory: PathBuf) -> Result<(ProgramExit, Vec<String>), PipelineError> {
        self.flags.push("end_on_sigterm", "1").expect("no quote in it");
        let own = [(DETECT_VARIABLE.into(), self.flags.0), (REPORTER_VARIABLE.into(), self.reporter)];
        self.environment.extend(own);
        let program = Program {
            executable: self.executable,
            arguments: self.arguments,
            directory,
            library_path: self.runtime,
            randomise_addresses: true,
            environment: self.environment,
            before_each: None,
            before_each_limit: None,
            client: Some(client),
        };
        let execution = execute(&program, no_session(), &Input::Inherit, Output::Inherit, Time::UNLIMITED)?;
        let exit = match execution.ending {
            Ending::Code(code) => ProgramExit::Code { code },
            Ending::Signal(signal) => ProgramExit::Signal { signal },
            Ending::TimedOut => ProgramExit::TimedOut,
        };
        Ok((exit, execution.served.map(Served::phrases).unwrap_or_default()))
    }
}

fn before_all_others(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

/// `name=value` and `:` in between, as ThreadSanitizer's options are written.
#[derive(Clone, Debug, Default)]
pub struct Flags(OsString);

/// A value with both kinds of quotes, which no quotes hold together.
#[derive(Debug, thiserror::Error)]
#[error("{name}: a value with both kinds of quotes cannot be passed on: {value}")]
pub struct Unquotable {
    name: String,
    value: String,
}

impl Flags {
    /// Those that the environment has. What is pushed behind them holds.
    pub fn of_environment() -> Self {
        Self(std::env::var_os(DETECT_VARIABLE).unwrap_or_default())
    }

    /// As the environment has them.
    pub fn into_text(self) -> OsString {
        self.0
    }

    /// A value that could be taken apart stands in quotes.
    pub fn push(&mut self, name: &str, value: impl AsRef<OsStr>) -> Result<(), Unquotable> {
        let value = value.as_ref();
        let bytes = value.as_bytes();
        let quote = match (bytes.contains(&b'\''), bytes.contains(&b'"')) {
            (true, true) => return Err(Unquotable { name: name.into(), value: value.to_string_lossy().into() }),
            (true, false) => "\"",
            (false, _) => "'",
        };
        if !self.0.is_empty() {
            self.0.push(":");
        }
        for part in [OsStr::new(name), OsStr::new("="), OsStr::new(quote), value, OsStr::new(quote)] {
            self.0.push(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_so_that_they_stay_whole() {
        let mut flags = Flags::default();
        flags.push("a", "x:y z").unwrap();
        flags.push("b", "it's").unwrap();
        assert_eq!(flags.0, OsStr::new("a='x:y z':b=\"it's\""));
        let parsed: Vec<_> = rashomon_abi::flags::Flags::new(flags.0.as_bytes()).map(|flag| flag.unwrap()).collect();
        assert_eq!(parsed, [(&b"a"[..], &b"x:y z"[..]), (b"b", b"it's")]);
        assert!(flags.push("c", "'\"").is_err());
    }
}
