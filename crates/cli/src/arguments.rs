//! The command line.

mod accept;
mod analyse;
mod client;
mod confirm;
mod csp;
mod detect;
mod examples;
mod from;
mod merge;
mod queue;
mod replay;
mod report;
mod run;
mod search;
mod seconds;
mod separator;
mod trace;

pub use accept::AcceptOptions;
pub use analyse::{AnalyseOptions, FailOnFound};
pub use client::ClientOptions;
pub use confirm::ConfirmOptions;
pub use csp::{CspCommand, PredictEngine, SelectionOptions};
pub use detect::{DetectOptions, Detector};
pub use from::FromOptions;
pub use merge::MergeOptions;
pub use queue::{QueueOptions, WorkerOptions};
pub use replay::ReplayOptions;
use report::formats;
pub use report::{FailOn, LookOptions, ReportFile, ReportOptions, Show, report_file};
pub use run::{CallsName, FilterOptions, RunOptions, TrustOptions};
pub use search::{Accesses, ExploreOptions, Holding, ProvokeOptions, WitnessOptions};
use seconds::seconds;
pub use separator::separated;
pub use trace::{Exporter, FileFormat, Reading, ShapeOptions, TraceCommand};

use crate::suites::Framework;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rashomon_pipeline::shard::Shard;
use rashomon_report::Format;
use rashomon_report::json::schema::DESCRIBED;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// Examples, and the exit codes of all commands.
static TOP_HELP: LazyLock<String> = LazyLock::new(|| format!("{}\n\n{}", examples::TOP, crate::exit::HELP));

#[derive(Debug, Parser)]
#[command(name = "rashomon", version, about, after_help = TOP_HELP.as_str(), disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// When reports are coloured; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    pub color: Colour,
    /// Print no progress to standard error.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Read options from this file. Default: the rashomon.toml at or above the program's folder, else the working directory.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,
    /// Read no rashomon.toml.
    #[arg(long, global = true)]
    pub no_config: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// A program with its arguments, or a file that is compiled first.
#[derive(Debug, Args)]
pub struct Target {
    /// A C or C++ file to compile, or a program.
    #[arg(required_unless_present = "command")]
    pub file: Option<PathBuf>,
    /// The program and its arguments. After FILE: its arguments only, and `--` may be left out if the first is no option.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl From<Vec<OsString>> for Target {
    fn from(command: Vec<OsString>) -> Self {
        Self { file: None, command }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find data races and deadlocks, and prove each one by making it happen: record, predict, confirm and report in one.
    ///
    /// `rashomon check FILE.c [-- ARGS…]` compiles the file first; `rashomon check [OPTIONS] -- PROG ARGS…` takes a program
    /// built with `rashomon cc`, `rashomon c++` or gcc's -fsanitize=thread. The program is executed several times. The report
    /// goes to standard error, after the program's own output.
    #[command(after_help = examples::CHECK)]
    // What is changed comes last, and positional arguments are to stay in their order.
    #[command(mut_arg("file", |file| file.required_unless_present("from")), mut_arg("command", |command| command))]
    Check {
        #[command(flatten)]
        run: Box<RunOptions>,
        #[command(flatten)]
        from: Box<FromOptions>,
        #[command(flatten)]
        confirm: ConfirmOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// Check each test case of the program by itself, and report of all: of GoogleTest (gtest), Catch2, doctest or pytest.
        /// The program's own arguments may select some. --budget is for each. Default framework: the one that the program holds,
        /// or that Python is asked for.
        #[arg(long, value_name = "FRAMEWORK", num_args = 0..=1, require_equals = true, value_enum, help_heading = "Test suites")]
        per_test_case: Option<Option<Framework>>,
        #[command(flatten)]
        queue: Box<QueueOptions>,
        #[command(flatten)]
        target: Target,
    },
    /// Record one or more executions into a new store, for `predict` and `confirm`.
    ///
    /// A store is a folder: recordings, findings, and the schedules that prove them. The exit code is the program's own.
    #[command(after_help = examples::RECORD)]
    Record {
        #[command(flatten)]
        run: RunOptions,
        /// Make a part of the recordings that --recordings asks for, such as 2/5: the second, the seventh, etc. Default: all
        /// of them.
        #[arg(long, value_name = "NUMBER/OF")]
        shard: Option<Shard>,
        /// The program and its arguments; `--` may be left out.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Prove races by provocation: run the program repeatedly, holding a thread at one of two conflicting accesses until another
    /// thread arrives at the other.
    ///
    /// Synchronisation is not looked at, so it does not matter what the program synchronises with.
    /// `rashomon provoke -- PROG ARGS…` records first, with the threads in parallel unless --policy says otherwise;
    /// `rashomon provoke [STORE]` takes what is recorded.
    #[command(after_help = examples::PROVOKE, mut_arg("policy", |policy| policy.default_value("free")))]
    Provoke {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        provoke: ProvokeOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// The store whose first recording is used. Default, without a COMMAND: the latest.
        #[arg(conflicts_with = "command")]
        store: Option<PathBuf>,
        /// Run the store's program although the store was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        /// The program and its arguments; `--` may be left out.
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Report races while the program runs, as ThreadSanitizer does. Exit code 66 if there were any.
    ///
    /// Nothing is recorded and nothing is proven. Threads run in parallel. TSAN_OPTIONS apply; options given here win.
    #[command(after_help = examples::DETECT)]
    Detect {
        #[command(flatten)]
        detect: DetectOptions,
        /// The program and its arguments; `--` may be left out.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Try schedules until the program fails: deadlock, lost wake-up, failed assertion, crash, wrong exit code.
    ///
    /// A failing schedule is shortened, replayed and stored, so that `rashomon replay` makes it happen again. Exit code 66 if
    /// something failed, else 0.
    #[command(after_help = examples::EXPLORE)]
    Explore {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        explore: ExploreOptions,
        #[command(flatten)]
        report: ReportOptions,
        #[command(flatten)]
        target: Target,
    },
    /// Turn lockset warnings into executions that stop both threads at their accesses, by model checking after a recorded prefix.
    ///
    /// Says for each pair of source lines whether a witness was found, or that none exists within the bounds. Exit code 66 if a
    /// race was proven.
    #[command(after_help = examples::WITNESS)]
    Witness {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        witness: WitnessOptions,
        #[command(flatten)]
        report: ReportOptions,
        #[command(flatten)]
        target: Target,
    },
    /// Predict races and deadlocks of other schedules from a recording. Executes nothing.
    #[command(after_help = examples::PREDICT)]
    Predict {
        /// A store, a single recording, or a trace of another tool (packed, RAPID's STD, SpeedyGo's CSV; `-`: standard input),
        /// from which nothing can be proven. Default: the latest store.
        trace: Option<PathBuf>,
        /// Seconds to search for other schedules; 0: until every candidate is decided.
        #[arg(long, value_name = "SECONDS", default_value = PREDICT_WITHIN, value_parser = seconds)]
        predict_within: Duration,
        /// Who decides: sync (locks taken in the recorded order, or nearly), exact (every correct reordering), causality (the
        /// same, by a solver of constraints; replays a recording of your own for values that it lacks), optimistic (orders of
        /// synchronisation, found greedily), csp (orders of synchronisation, found by searching the CSP model). all: as without
        /// this option, and then each alone on the same candidates; how far they agree goes to standard error.
        #[arg(long, value_name = "ENGINE")]
        engine: Option<PredictEngine>,
        /// With --engine causality: decide in windows of N events around each candidate instead of all that it depends on, for
        /// candidates that depend on more than the solver takes. Default of N: 10000.
        #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = WINDOW, require_equals = true,
            value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
        window: Option<u32>,
        /// Look at a part of the store's recordings, such as 2/5: the second, the seventh, and so on. Default: at all of them.
        #[arg(long, value_name = "NUMBER/OF")]
        shard: Option<Shard>,
        /// A file of variables that belong together, as for `check`: of recordings that `record --dependences` made of programs
        /// built with `rashomon cc --deep`.
        #[arg(long, value_name = "FILE")]
        correlated: Option<PathBuf>,
        #[command(flatten, next_help_heading = "Traces of other tools")]
        reading: Reading,
        #[command(flatten)]
        trust: TrustOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Find races and atomicity violations in a trace of any origin, in one pass. Executes nothing.
    #[command(after_help = examples::ANALYSE)]
    Analyse {
        #[command(flatten)]
        analyse: AnalyseOptions,
    },
    /// Prove what was predicted: re-execute the program under schedules that make each candidate happen.
    #[command(after_help = examples::CONFIRM)]
    Confirm {
        /// The store. Default: the latest.
        trace: Option<PathBuf>,
        /// Run the store's program although the store was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        /// Who decides what is forced: one of the engines of `predict`. all: as without this option.
        #[arg(long, value_name = "ENGINE")]
        engine: Option<PredictEngine>,
        /// As for `predict`.
        #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = WINDOW, require_equals = true,
            value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
        window: Option<u32>,
        #[command(flatten)]
        libraries: TrustOptions,
        #[command(flatten)]
        confirm: ConfirmOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Make a finding happen again. Exit code 0 if the same happened, 1 if not.
    #[command(after_help = examples::REPLAY)]
    Replay(ReplayOptions),
    /// Shorten the schedule of a finding, and name the order of operations that it depends on.
    ///
    /// For every finding that has a schedule: those that `check`, `confirm`, `witness` or `explore` proved. Each shorter schedule
    /// is stored as soon as it is found. Exit code 0; 1 if the schedule does not show the finding.
    #[command(after_help = examples::MINIMISE)]
    Minimise {
        /// The finding's id, or the beginning of it.
        finding: String,
        /// The store with the finding. Default: the latest.
        #[arg(long, value_name = "DIR")]
        store: Option<PathBuf>,
        /// The most executions.
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
        executions: u64,
        /// Seconds for everything. The shortest schedule found by then is kept.
        #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
        budget: Duration,
        /// Seconds after which one execution is ended. Default: 10 times the recorded execution, plus 5.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        /// Run the store's program although the store was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
    },
    /// Print the findings of a store again.
    #[command(after_help = examples::REPORT)]
    Report {
        /// The store. Default: the latest.
        #[arg(value_name = "STORE", conflicts_with = "named")]
        store: Option<PathBuf>,
        /// The same, as an option.
        #[arg(long = "store", value_name = "DIR")]
        named: Option<PathBuf>,
        /// How the report is written, to standard output.
        #[arg(long, value_parser = formats(), default_value = "text")]
        format: &'static dyn Format,
        /// Which findings are shown.
        #[arg(long, value_enum, default_value_t = Show::Claims)]
        show: Show,
        #[command(flatten)]
        look: LookOptions,
    },
    /// Put findings of a store into a baseline, so that `check --baseline` tells only of new ones.
    #[command(after_help = examples::ACCEPT)]
    Accept(AcceptOptions),
    /// Make one report, with one exit code, of several checks: of parts that --shard made, or of several programs.
    ///
    /// Each finding is told once, from the check that is surest of it; its reproduce command names that store. The exit code is
    /// 66 as --fail-on says, else that of the first program that ended with another one than 0. Nothing is executed.
    #[command(after_help = examples::MERGE)]
    Merge(MergeOptions),
    /// Execute parts of checks that `check --queue` hands out, on this machine.
    ///
    /// Takes units from a NATS server with JetStream, executes `rashomon check` for each, and sends back the store. Whoever may
    /// write to the queue executes what they like here, as you: --trust says that this may be. Ends with --once alone.
    #[command(after_help = examples::WORKER)]
    Worker(WorkerOptions),
    /// Inspect, check, convert and generate traces.
    #[command(after_help = examples::TRACE)]
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Refinement of processes of CSP.
    #[command(after_help = examples::CSP)]
    Csp {
        #[command(subcommand)]
        command: CspCommand,
    },
    /// Compile and link C so that the program can be recorded. Takes the options of the C compiler. Also `rashomon-cc`.
    /// `--deep` takes clang 19 and a plugin that tells of wait loops and of dependences, `--deep=loops` of wait loops alone.
    #[command(disable_help_flag = true)]
    Cc {
        /// Options and files for the compiler.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Compile and link C++ so that the program can be recorded. Takes the options of the C++ compiler. Also `rashomon-cxx`.
    #[command(name = "c++", alias = "cxx", disable_help_flag = true)]
    Cxx {
        /// Options and files for the compiler.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build a Rust package with cargo and check what cargo runs: `cargo rashomon test`. Also installed as `cargo-rashomon`.
    #[command(disable_help_flag = true)]
    Cargo {
        /// A command of cargo (`test`, `run`, `bench`) with its options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CARGO COMMAND")]
        arguments: Vec<String>,
    },
    /// Say what works on this machine, and whether a program can be recorded.
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// Also judge this program: whether it is instrumented, and which of its libraries are not.
        program: Option<PathBuf>,
    },
    /// Print the folder of the runtime library, for build systems that link it themselves.
    #[command(after_help = examples::RUNTIME_PATH)]
    RuntimePath,
    /// Print shell commands that make `make`, `cmake` and `configure` use the compiler wrappers.
    #[command(after_help = examples::ENV)]
    Env,
    /// Print a completion script for a shell.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell that the script is for.
        shell: Shell,
    },
    /// Print the manual page of a command, or write all pages into a folder.
    #[command(after_help = examples::MAN)]
    Man {
        /// The command, such as `check` or `trace import`. Without it: the page of `rashomon` itself.
        #[arg(value_name = "COMMAND", conflicts_with = "output")]
        command: Vec<String>,
        /// Write every page into this folder (`rashomon.1`, `rashomon-check.1`, …).
        #[arg(long, short, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Print the options that hold for a command, and why: the command line, the environment, a line of rashomon.toml.
    #[command(after_help = examples::CONFIG)]
    Config {
        /// The command line that is asked about, such as `check -- ./program`. Default: `check`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        line: Vec<OsString>,
    },
    /// Print the JSON schema of what `--json` and `--format json` write (JSON Schema, draft 2020-12).
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// Which document: a report; a warning, of `detect`; an analysis, of `analyse`.
        #[arg(value_parser = PossibleValuesParser::new(DESCRIBED.map(|described| described.name)), default_value = "report")]
        document: String,
    },
    /// The help texts of all commands as Markdown, for the book.
    #[command(hide = true)]
    Reference,
    /// Symbolises addresses for the runtime of a program under `detect`, which starts this.
    #[command(hide = true)]
    Reporter,
}

impl Command {
    /// Whether it executes a program that is looked at, and is there until that has ended.
    pub const fn executes(&self) -> bool {
        matches!(
            self,
            Self::Check { .. }
                | Self::Record { .. }
                | Self::Provoke { .. }
                | Self::Explore { .. }
                | Self::Witness { .. }
                | Self::Confirm { .. }
                | Self::Replay(_)
                | Self::Minimise { .. }
                | Self::Worker(_)
                | Self::Csp { command: CspCommand::Enforce { .. } }
        )
    }
}

/// Where recordings are long, deciding thousands of suspicions takes longer than forcing what comes of the first.
pub const PREDICT_WITHIN: &str = "60";

/// Events of a window, as published evaluations have them.
const WINDOW: &str = "10000";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    None,
    Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn check(line: &[&str]) -> (Option<PathBuf>, Vec<OsString>) {
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Check { target, .. } => (target.file, target.command),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_forms_of_check() {
        assert_eq!(check(&["rashomon", "check", "a.c"]), (Some("a.c".into()), vec![]));
        assert_eq!(check(&["rashomon", "check", "a.c", "--", "-x", "1"]), (Some("a.c".into()), vec!["-x".into(), "1".into()]));
        assert_eq!(
            check(&["rashomon", "check", "--seed", "3", "--", "./p", "--", "y"]),
            (None, vec!["./p".into(), "--".into(), "y".into()])
        );
    }

    #[test]
    fn a_debuggers_arguments_are_passed_on() {
        for debugger in ["--gdb", "--lldb"] {
            let line = ["rashomon", "replay", "race-1", debugger, "--", "-batch", "-o", "bt"];
            match Arguments::try_parse_from(line).unwrap().command {
                Command::Replay(options) => assert_eq!(options.debugger_arguments, ["-batch", "-o", "bt"]),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let parses = |line: &str| Arguments::try_parse_from(line.split(' ')).is_ok();
        for (good, bad) in [
            ("rashomon replay race --times 1", "rashomon replay race --times 0"),
            ("rashomon check --expect-exit 255 -- ./prog", "rashomon check --expect-exit 256 -- ./prog"),
        ] {
            assert!(parses(good), "{good}");
            assert!(!parses(bad), "{bad}");
        }
    }
}
