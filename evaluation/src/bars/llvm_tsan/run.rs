//! Running one test with one runtime: its commands, with the driver's substitutions, as one shell script in a folder of its own.

use super::case::Case;
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Compilers that build with one runtime.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub c: String,
    pub cxx: String,
    pub environment: Vec<(&'static str, PathBuf)>,
}

/// How often a test that fails to fail is tried again (the test suite's own default).
const DEFLAKE_RUNS: u32 = 10;
/// Reports begin with this.
const REPORT: &[u8] = b"WARNING: ThreadSanitizer:";
/// Everything that the programs under test printed.
const OUTPUT: &str = "output";
/// What the commands printed: complaints of compilers and checks.
const LOG: &str = "log";
const SCRIPT: &str = "run.sh";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    /// As the test says of itself.
    FailedAsExpected,
    Failed,
    TimedOut,
    NotApplicable,
}

impl Outcome {
    pub fn good(self) -> bool {
        matches!(self, Self::Passed | Self::FailedAsExpected)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::FailedAsExpected => "failed as expected",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::NotApplicable => "not applicable",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub outcome: Outcome,
    /// Whether a program of the test printed a report.
    pub reported: bool,
    pub seconds: f64,
    /// The first complaint.
    pub complaint: Option<String>,
}

pub fn run(case: &Case, tests: &Path, toolchain: &Toolchain, folder: &Path, limit: Duration) -> Result<Run> {
    if case.unsupported.is_some() {
        let complaint = case.unsupported.clone();
        return Ok(Run { outcome: Outcome::NotApplicable, reported: false, seconds: 0.0, complaint });
    }
    let folder = &folder.join(case.name.replace('/', "_"));
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(folder.join(SCRIPT), script(case, tests, toolchain, folder))?;
    fs::write(folder.join(OUTPUT), "")?;
    let log = fs::File::create(folder.join(LOG))?;

    let begin = Instant::now();
    let mut shell = Command::new("bash");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("RASHOMON_") || text.starts_with("TSAN_") {
            shell.env_remove(&name);
        }
    }
    shell
        .arg(SCRIPT)
        .envs(toolchain.environment.iter().map(|(name, value)| (name, value)))
        .env("TSAN_OPTIONS", DEFAULT_OPTIONS)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    let mut shell = shell.spawn().context("cannot start bash")?;
    let status = loop {
        if let Some(status) = shell.try_wait()? {
            break Some(status);
        }
        if begin.elapsed() > limit {
            // Not waited for yet, so the number still names this group.
            if let Some(group) = i32::try_from(shell.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            shell.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let log = fs::read(folder.join(LOG))?;
    let output = fs::read(folder.join(OUTPUT))?;
    let contains = |bytes: &[u8]| bytes.windows(REPORT.len()).any(|window| window == REPORT);
    let outcome = match status {
        None => Outcome::TimedOut,
        Some(status) if status.success() => Outcome::Passed,
        Some(_) if case.expected_to_fail => Outcome::FailedAsExpected,
        Some(_) => Outcome::Failed,
    };
    // Output that goes through no check is in the log; a failing check quotes there what it read, reports or not.
    let reported = contains(&output) || outcome == Outcome::Passed && contains(&log);
    let complaint = if outcome.good() { None } else { complaint(&String::from_utf8_lossy(&log)) };
    Ok(Run { outcome, reported, seconds: begin.elapsed().as_secs_f64(), complaint })
}

fn complaint(log: &str) -> Option<String> {
    let telling =
        |line: &&str| ["error:", "FATAL", "undefined", "not found", "internal error"].iter().any(|word| line.contains(word));
    log.lines().find(telling).or(log.lines().next()).map(str::to_owned)
}

const DEFAULT_OPTIONS: &str = "atexit_sleep_ms=0";

fn script(case: &Case, tests: &Path, toolchain: &Toolchain, folder: &Path) -> String {
    // `FileCheck` here: the checker, behind something that keeps what it reads.
    let mut text = format!(
        "set -e -o pipefail\nexport PATH={LLVM_TOOLS}:\"$PATH\"\nFileCheck() {{ tee -a '{}' | command FileCheck \"$@\"; }}\n",
        folder.join(OUTPUT).display()
    );
    let substitutions = substitutions(case, tests, toolchain, folder);
    for command in &case.commands {
        let _ = writeln!(text, "{}", substitute(command, &substitutions));
    }
    text
}

/// Where Debian keeps LLVM's tools under their own names.
pub const LLVM_TOOLS: &str = "/usr/lib/llvm-19/bin";

/// (name, value), longer names first.
fn substitutions(case: &Case, tests: &Path, toolchain: &Toolchain, folder: &Path) -> Vec<(&'static str, String)> {
    let parent = case.path.parent().unwrap_or(tests).display();
    let stem = case.path.file_name().unwrap_or_default().to_string_lossy();
    let (here, include) = (folder.display(), tests.parent().unwrap_or(tests).display());
    let flags = format!("-fsanitize=thread -Wall -m64 -g -I{include}");
    let mut list = vec![
        ("%clang_tsan ", format!("{} {flags} ", toolchain.c)),
        ("%clangxx_tsan ", format!("{} {flags} -std=c++11 ", toolchain.cxx)),
        ("%env_tsan_opts=", format!("env TSAN_OPTIONS={DEFAULT_OPTIONS}:")),
        ("%deflake ", format!("bash {}/deflake.bash {DEFLAKE_RUNS} ", tests.display())),
        ("%dynamiclib", format!("{here}/libt.dynamic.so")),
        ("%ld_flags_rpath_exe", format!("-Wl,-z,origin -Wl,-rpath,\\$ORIGIN -L{here} -lt.dynamic")),
        ("%ld_flags_rpath_so", String::new()),
        ("%link_libcxx_tsan", String::new()),
        ("%darwin_min_target_with_tls_support", String::new()),
        ("%run", String::new()),
        ("%env ", "env ".to_owned()),
        ("%arch", "x86_64".to_owned()),
        ("%os", "Linux".to_owned()),
        ("%s", case.path.display().to_string()),
        ("%t", format!("{here}/{stem}.tmp")),
        ("%T", here.to_string()),
        ("%p", parent.to_string()),
        ("%%", "%".to_owned()),
    ];
    list.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    list
}

/// One pass from left to right: what was put in is not looked at again.
fn substitute(command: &str, substitutions: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match substitutions.iter().find_map(|(name, value)| Some((value, rest.strip_prefix(name)?))) {
            Some((value, behind)) => {
                text.push_str(value);
                rest = behind;
            }
            None => {
                text.push('%');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_names_win_and_values_stay_as_they_are() {
        let list = [("%run", String::new()), ("%t", "/x/%s.tmp".to_owned()), ("%s", "/a.c".to_owned())];
        assert_eq!(substitute("%run %t-so %s %zu", &list), " /x/%s.tmp-so /a.c %zu");
    }
}
