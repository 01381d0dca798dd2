//! `cargo xtask ci`: every check there is, one after the other; a failure does not keep the later ones from running.

use crate::{assertions, plugin};
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use xtask::packages;
use xtask::workspace::{INCREMENTAL, cargo, root, target};

#[derive(Debug, Args)]
pub struct Options {
    /// Only these checks. May be given several times.
    #[arg(long, value_enum)]
    only: Vec<Check>,
    /// Install nothing.
    #[arg(long)]
    no_install: bool,
    /// Tests that cannot run here are skipped. Without this they fail once every package that they need is installed.
    #[arg(long)]
    may_skip: bool,
}

/// What tells tests that a skipped test is a failed one.
const MUST_NOT_SKIP: &str = "RASHOMON_TESTS_MUST_NOT_SKIP";

/// A lack that the notice tells of is an excuse; nothing else is.
const fn must_not_skip(may_skip: bool, notice: Option<&String>) -> bool {
    !may_skip && notice.is_none()
}

/// Tests whose cases share the programs that they compile, as long as one process runs them: nextest would start one for each.
/// What `assertions` does with every program, recording and replaying it, is left to that.
const SHARING: [&str; 2] = ["--test programs -- --skip free:: --skip replay::", "--test recorded_filter --"];
/// All others; `tidy` is a check of its own.
const OTHERS: &str = "not(binary(programs)|binary(recorded_filter)|binary(tidy))";

/// Records and replays every program of the suite under three policies, and lets each run in parallel.
const WITH_ASSERTIONS: &str = "--test programs -- --skip check:: --skip same:: --skip loaded::";
/// Detection, with its filter and without.
const DETECTING_WITH_ASSERTIONS: &str = "--test suite -- filter:: detect_bugs:: --skip record_filter::";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Check {
    /// Formatting.
    Fmt,
    /// Lints, warnings being errors.
    Clippy,
    /// The laws of the architecture: what may depend on what, where `unsafe` may be, which symbols the runtime has.
    Tidy,
    /// The book as HTML, and its links. (Those of all documents are checked by `tidy`, the generated chapters by `test`.)
    Book,
    /// The runtime and the tool, optimised.
    Build,
    /// All tests, documentation tests included.
    Test,
    /// Test programs, executed with the assertions of the runtime on.
    Assertions,
}

impl Check {
    /// Cheapest first.
    const ALL: [Self; 7] = [Self::Fmt, Self::Clippy, Self::Tidy, Self::Book, Self::Build, Self::Test, Self::Assertions];

    const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Book => "book",
            Self::Build => "build",
            Self::Test => "test",
            Self::Assertions => "assertions",
        }
    }

    /// Whether programs in other languages are compiled or run.
    const fn needs_packages(self) -> bool {
        matches!(self, Self::Test | Self::Assertions)
    }

    fn commands(self) -> Result<Vec<Command>> {
        Ok(match self {
            Self::Fmt => {
                let mut all = of(cargo(), "fmt --all --check --");
                all.args(declared_by_macros()?);
                vec![all, of(runtime(), "fmt --check")]
            }
            Self::Clippy => {
                let mut inside = of(runtime(), "clippy --release --target-dir");
                inside.arg(target()?.join("runtime")).args(["--", "--deny", "warnings"]);
                vec![of(cargo(), "clippy --workspace --all-targets -- --deny warnings"), inside]
            }
            // Of the whole workspace, as everything that is not optimised: features of dependencies follow from what is chosen,
            // and with others they would be compiled again.
            Self::Tidy => vec![of(cargo(), "test --workspace --test tidy")],
            Self::Book => vec![of(cargo(), "xtask book --html")],
            // The tool's build script builds the runtime.
            Self::Build => vec![of(cargo(), "build --release --package rashomon-cli")],
            Self::Test => {
                let mut commands = if has_nextest() {
                    // Three more than there are processors: some wait, for deadlines and for programs that hang.
                    let threads = available_parallelism().map_or(2, NonZeroUsize::get) + 3;
                    let others = format!("nextest run --workspace --no-fail-fast --test-threads {threads} --filterset {OTHERS}");
                    let sharing = |tests| format!("test --workspace --no-fail-fast {tests} --test-threads {threads}");
                    let sharing = SHARING.map(|tests| of(cargo(), &sharing(tests)));
                    std::iter::once(of(cargo(), &others)).chain(sharing).chain([of(cargo(), "test --workspace --doc")]).collect()
                } else {
                    vec![of(cargo(), "test --workspace --no-fail-fast")]
                };
                // Programs that it instruments are compiled and checked by tests of the tool.
                match plugin::build()? {
                    Some(path) => commands.iter_mut().for_each(|command| {
                        command.env(plugin::VARIABLE, &path);
                    }),
                    None => eprintln!("notice: the plugin for clang 19 does not build: the tests that need it are skipped"),
                }
                if has("miri --version") {
                    commands.push(of(cargo(), "miri test --package rashomon-logic"));
                } else {
                    eprintln!("notice: cargo miri is not installed: the runtime's logic is tested without it");
                }
                commands
            }
            Self::Assertions => {
                let runtime = assertions::runtime()?;
                let test = |tests| {
                    let mut command = of(cargo(), &format!("test --workspace {tests}"));
                    command.env(assertions::VARIABLE, &runtime);
                    command
                };
                [WITH_ASSERTIONS, DETECTING_WITH_ASSERTIONS].map(test).into()
            }
        })
    }
}

/// Files that rustfmt does not find by itself: a list of one line each declares their modules.
fn declared_by_macros() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["crates/pipeline/src/engines", "crates/predict/src/deciders", "crates/report/src"] {
        for entry in root().join(folder).read_dir().with_context(|| format!("cannot list {folder}"))? {
            files.push(entry?.path());
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    Ok(files)
}

fn of(mut command: Command, arguments: &str) -> Command {
    command.args(arguments.split(' '));
    command
}

/// Cargo in the runtime's workspace.
fn runtime() -> Command {
    let mut command = cargo();
    command.current_dir(root().join("runtime"));
    command
}

fn has_nextest() -> bool {
    has("nextest --version")
}

/// Whether cargo knows the command.
fn has(command: &str) -> bool {
    let quiet = of(cargo(), command).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// A machine may have gdb and forbid it to trace: then what needs it is skipped, and this says so.
fn no_tracing() -> Option<String> {
    let said = Command::new("gdb").args(["--batch", "--nx", "-ex", "run", "--args", "/bin/true"]).stdin(Stdio::null()).output();
    let traces = said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("exited normally"));
    (!traces).then(|| "gdb may not trace programs here: the tests that need it are skipped".into())
}

struct Outcome {
    check: Check,
    passed: bool,
    duration: Duration,
}

pub fn run(options: &Options) -> Result<bool> {
    let chosen: Vec<Check> =
        Check::ALL.into_iter().filter(|check| options.only.is_empty() || options.only.contains(check)).collect();
    let needs_packages = chosen.iter().any(|check| check.needs_packages());
    let notice = if needs_packages { packages::provide(!options.no_install).or_else(no_tracing) } else { None };
    let must_not_skip = must_not_skip(options.may_skip, notice.as_ref());
    if let Some(text) = &notice {
        eprintln!("notice: {text}");
    }
    let mut results = Vec::new();
    for check in chosen {
        let begin = Instant::now();
        let mut passed = true;
        // What cannot be prepared has failed; the later ones run all the same.
        let commands = check.commands().unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            passed = false;
            Vec::new()
        });
        for mut command in commands {
            let line: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
            command.env(INCREMENTAL.0, INCREMENTAL.1);
            if must_not_skip {
                command.env(MUST_NOT_SKIP, "1");
            }
            let folder = if command.get_current_dir() == Some(root()) { "" } else { " (runtime)" };
            eprintln!("\n== {}: cargo {}{folder}", check.name(), line.join(" "));
            passed &= command.status().context("cannot start cargo")?.success();
        }
        results.push(Outcome { check, passed, duration: begin.elapsed() });
    }
    println!("\nsummary");
    if let Some(text) = &notice {
        println!("  notice: {text}");
    }
    for result in &results {
        let verdict = if result.passed { "passed" } else { "FAILED" };
        println!("  {:<10} {verdict}  {:>5.0} s", result.check.name(), result.duration.as_secs_f64());
    }
    let failed: Vec<&str> = results.iter().filter(|result| !result.passed).map(|result| result.check.name()).collect();
    if failed.is_empty() {
        println!("all passed");
    } else {
        println!("failed: {}", failed.join(", "));
        for name in &failed {
            println!("  again: cargo xtask ci --only {name}");
        }
    }
    Ok(failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::must_not_skip;

    #[test]
    fn tests_may_skip_only_where_something_is_missing_or_it_is_allowed() {
        let notice = "not installed: gdb".to_owned();
        assert!(must_not_skip(false, None));
        assert!(!must_not_skip(true, None) && !must_not_skip(false, Some(&notice)));
    }
}
