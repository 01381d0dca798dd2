//! Where processor time goes: samples of a server under load, by what the sampled function is for.
//!
//! Limits. What the compiler has put into its caller counts as the caller's. Sampling takes time itself, so nothing that was
//! sampled is compared with anything that was not.

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const SAMPLES_A_SECOND: &str = "997";

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Program,
    Libraries,
    Kernel,
    /// Entries of the runtime that the compiler's calls come to: accesses, and functions that begin and end.
    Hooks,
    /// Plain accesses of a word or less, checked.
    Words,
    /// Longer ones, and what libc does on the program's behalf.
    Ranges,
    /// Call stacks, and the references that stand for accesses.
    Places,
    /// Clocks, locks, lock sets, objects, atomics.
    Synchronisation,
    /// What the recorder writes.
    Recording,
    /// All else of the runtime.
    Runtime,
}

impl Purpose {
    pub const ALL: [Self; 10] = [
        Self::Program,
        Self::Libraries,
        Self::Kernel,
        Self::Hooks,
        Self::Words,
        Self::Ranges,
        Self::Places,
        Self::Synchronisation,
        Self::Recording,
        Self::Runtime,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Libraries => "libraries",
            Self::Kernel => "kernel",
            Self::Hooks => "hooks",
            Self::Words => "words",
            Self::Ranges => "ranges",
            Self::Places => "places",
            Self::Synchronisation => "sync",
            Self::Recording => "recording",
            Self::Runtime => "runtime",
        }
    }

    /// `module`: the file that the function is in, of which the program's is `executable`.
    fn of(module: &str, function: &str, executable: &str) -> Self {
        const INSIDE: &str = "rashomon_runtime::";
        let Some(path) = function.find(INSIDE).map(|at| &function[at + INSIDE.len()..]) else {
            return match module {
                _ if function.starts_with("__tsan_") => Self::Hooks,
                module if module == executable => Self::Program,
                "[kernel.kallsyms]" | "[unknown]" | "[vdso]" => Self::Kernel,
                _ => Self::Libraries,
            };
        };
        let is_any = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        match path {
            _ if is_any(&["detect::read", "detect::write", "detect::func", "intercept::hooks"]) => Self::Hooks,
            _ if is_any(&["detect::ranges", "detect::walked", "intercept::ranges"]) => Self::Ranges,
            _ if is_any(&["detect::fast", "detect::access", "detect::shadow", "detect::tree"]) => Self::Words,
            _ if is_any(&["detect::places", "detect::stacks", "detect::spans", "detect::local"]) => Self::Places,
            _ if path.starts_with("record::") => Self::Recording,
            _ if is_any(&["lock", "clock", "objects", "atomic", "mutex", "cond", "descriptors", "closings"]) => {
                Self::Synchronisation
            }
            _ => Self::Runtime,
        }
    }
}

/// The part of the samples that each purpose has, of 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Profile(Vec<(Purpose, f64)>);

impl Profile {
    pub fn share(&self, purpose: Purpose) -> f64 {
        self.0.iter().filter(|(of, _)| *of == purpose).fold(0.0, |sum, (_, share)| sum + share)
    }

    /// What a sampled execution left in a file.
    pub fn read(data: &Path, executable: &Path) -> Result<Self> {
        let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A server is all threads of its process, whatever these call themselves; the tool beside it waits.
        let output = Command::new("perf")
            .args(["report", "--stdio", "--no-children", "--show-total-period", "--sort", "dso,sym", "--field-separator", "\t"])
            .arg("--input")
            .arg(data)
            .output()
            .context("perf")?;
        ensure!(output.status.success(), "perf report: {}", String::from_utf8_lossy(&output.stderr));
        Self::of_report(&String::from_utf8_lossy(&output.stdout), &name)
    }

    fn of_report(report: &str, executable: &str) -> Result<Self> {
        let mut periods: Vec<(Purpose, f64)> = Vec::new();
        for line in report.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t').map(str::trim);
            let (Some(_), Some(period), Some(module), Some(function)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let period: f64 = period.parse().with_context(|| format!("perf reports {line:?}"))?;
            // `[.] name` and `[k] name`.
            let function = function.split_once("] ").map_or(function, |(_, name)| name);
            if module != "rashomon" {
                periods.push((Purpose::of(module, function, executable), period));
            }
        }
        let all: f64 = periods.iter().map(|(_, period)| period).sum();
        ensure!(all > 0.0, "perf took no sample");
        Ok(Self(periods.into_iter().map(|(purpose, period)| (purpose, period / all)).collect()))
    }
}

/// What stands before a command that is to be sampled into a file.
pub fn sampling(data: &Path) -> Vec<OsString> {
    let words = ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", SAMPLES_A_SECOND, "--output"];
    words.into_iter().map(OsString::from).chain([data.into(), "--".into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_apart_by_what_they_are_for() {
        let report = "# Overhead\n\
            40.00%\t400\tserved\t[.] rashomon_runtime::detect::fast::word\n\
            20.00%\t200\tserved\t[.] <rashomon_runtime::detect::locks::Held as Clone>::clone\n\
            10.00%\t100\tserved\t[.] answer\n\
            10.00%\t100\tserved\t[.] __tsan_read8\n\
            10.00%\t100\t[kernel.kallsyms]\t[k] do_syscall_64\n\
            10.00%\t100\tlibc.so.6\t[.] malloc\n\
            50.00%\t500\trashomon\t[.] main\n\n";
        let profile = Profile::of_report(report, "served").unwrap();
        let share = |purpose: Purpose| (profile.share(purpose) * 100.0).round();
        assert_eq!(Purpose::ALL.map(share), [10.0, 10.0, 10.0, 10.0, 40.0, 0.0, 0.0, 20.0, 0.0, 0.0]);
        assert!(Profile::of_report("# nothing", "served").is_err());
    }
}
