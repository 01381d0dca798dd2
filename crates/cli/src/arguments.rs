//! The command line.

mod analyse;
mod client;
mod trace;

pub use analyse::{AnalyseOptions, FailOnFound};
pub use client::ClientOptions;
pub use trace::{FileFormat, Reading, ShapeOptions, TraceCommand};

use clap::{Args, Parser, Subcommand, ValueEnum};
use rashomon_pipeline::{Scheduling, Strategy};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(name = "rashomon", version, about, after_help = crate::exit::HELP, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Colours in reports.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    pub color: Colour,
    /// No progress on standard error.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record, predict, prove, report.
    ///
    /// `rashomon check FILE.c [-- ARGS…]` compiles the file first; `rashomon check [OPTIONS] -- PROG ARGS…` takes a program built with
    /// `rashomon cc`, `rashomon c++` or gcc's -fsanitize=thread. The report goes to standard error, after the program's own output.
    Check {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        confirm: ConfirmOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// A C or C++ file to compile, or a program.
        #[arg(required_unless_present = "command")]
        file: Option<PathBuf>,
        /// The program and its arguments; behind FILE its arguments only.
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Record executions into a new store.
    Record {
        #[command(flatten)]
        run: RunOptions,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Prove races by provocation: run the program again and again, holding a thread at one of two conflicting accesses until another arrives.
    ///
    /// No synchronisation is looked at, so it does not matter what the program synchronises with. `rashomon provoke -- PROG ARGS…` records first (with the
    /// threads in parallel unless --policy says otherwise); `rashomon provoke [STORE]` takes what is recorded.
    #[command(mut_arg("policy", |policy| policy.default_value("free")))]
    Provoke {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        provoke: ProvokeOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// A store whose first recording is taken. Without it and without a command the latest.
        #[arg(conflicts_with = "command")]
        store: Option<PathBuf>,
        /// Run what the store says, although it was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Run a program and report races while it runs, as ThreadSanitizer does: exit code 66 if there were any.
    ///
    /// Nothing is recorded and nothing proven; the program runs in parallel. TSAN_OPTIONS are heeded; what is said here wins.
    Detect {
        #[command(flatten)]
        detect: DetectOptions,
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Try schedules until the program fails: deadlock, lost wake-up, failed assertion, crash, wrong exit code.
    ///
    /// What fails is shortened, replayed and stored, so that `rashomon replay` makes it happen again. Exit code 66 if something failed, else 0.
    Explore {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        explore: ExploreOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// A C or C++ file to compile, or a program.
        #[arg(required_unless_present = "command")]
        file: Option<PathBuf>,
        /// The program and its arguments; behind FILE its arguments only.
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Turn lockset warnings of a recording into executions in which both accesses stand side by side (model checking from a prefix of the recording).
    ///
    /// Says for each pair of source lines whether a witness was found, or that none exists within the bounds. Exit code 66 if one was proven.
    Witness {
        #[command(flatten)]
        run: RunOptions,
        #[command(flatten)]
        witness: WitnessOptions,
        #[command(flatten)]
        report: ReportOptions,
        /// A C or C++ file to compile, or a program.
        #[arg(required_unless_present = "command")]
        file: Option<PathBuf>,
        /// The program and its arguments; behind FILE its arguments only.
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Predict from what was recorded; force nothing.
    Predict {
        /// A store, a single recording, or a trace that others recorded (our packed format, RAPID's STD, SpeedyGo's CSV; `-` is standard
        /// input), from which nothing can be forced. The latest store if not given.
        trace: Option<PathBuf>,
        /// Seconds in which other schedules are looked for; 0: until all suspicions are decided.
        #[arg(long, value_name = "SECONDS", default_value = PREDICT_WITHIN, value_parser = seconds)]
        predict_within: Duration,
        #[command(flatten)]
        trust: TrustOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Look for races and violations of atomicity in a trace from anywhere, in one pass; force nothing.
    Analyse {
        #[command(flatten)]
        analyse: AnalyseOptions,
    },
    /// Force what was predicted.
    Confirm {
        /// The latest store if not given.
        trace: Option<PathBuf>,
        /// Run what the store says, although it was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        #[command(flatten)]
        libraries: TrustOptions,
        #[command(flatten)]
        confirm: ConfirmOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Make a finding happen again: exit code 0 if the same came about, 1 if not.
    Replay {
        /// Its id, or the beginning of it.
        #[arg(required_unless_present = "recording")]
        finding: Option<String>,
        /// Replay the first recording of this store (of the latest, if none is named) instead of a finding.
        #[arg(long, value_name = "STORE", num_args = 0..=1, conflicts_with_all = ["finding", "store", "gdb", "times"])]
        recording: Option<Option<PathBuf>>,
        /// With --recording: store what the replay does in this folder.
        #[arg(long, short, value_name = "DIR", requires = "recording")]
        output: Option<PathBuf>,
        #[arg(long, value_name = "DIR")]
        store: Option<PathBuf>,
        /// Run under gdb and stop where the finding has come about.
        #[arg(long)]
        gdb: bool,
        #[arg(long, default_value_t = 1, conflicts_with = "gdb", value_parser = clap::value_parser!(u32).range(1..))]
        times: u32,
        /// Seconds of one execution.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        /// Run what the store says, although it was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        /// Further arguments for gdb, such as `-batch -ex 'thread apply all bt'`.
        #[arg(last = true, value_name = "GDB ARGUMENTS", requires = "gdb", allow_hyphen_values = true)]
        gdb_arguments: Vec<OsString>,
    },
    /// Shorten the schedule of a finding, and name the order of operations that it needs.
    ///
    /// For whatever has a schedule: what `check`, `confirm`, `witness` or `explore` proved. What is reached is stored at once. Exit code 0; 1 if the schedule does not show the
    /// finding.
    Minimise {
        /// Its id, or the beginning of it.
        finding: String,
        #[arg(long, value_name = "DIR")]
        store: Option<PathBuf>,
        /// Executions after which nothing more is tried.
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
        executions: u64,
        /// Seconds of everything; what is reached then stays.
        #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
        budget: Duration,
        /// Seconds of one execution.
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        /// Run what the store says, although it was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
    },
    /// Print the findings of a store.
    Report {
        #[arg(long, value_name = "DIR")]
        store: Option<PathBuf>,
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        #[arg(long, value_enum, default_value_t = Show::Claims)]
        show: Show,
    },
    /// Look into a recording.
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// The C compiler, making programs that can be recorded. Also as the name `rashomon-cc`.
    #[command(disable_help_flag = true)]
    Cc {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// The C++ compiler, making programs that can be recorded. Also as the name `rashomon-c++`.
    #[command(name = "c++", alias = "cxx", disable_help_flag = true)]
    Cxx {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build with cargo and check what it runs: `cargo rashomon test`. Also as the name `cargo-rashomon`.
    #[command(disable_help_flag = true)]
    Cargo {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CARGO COMMAND")]
        arguments: Vec<String>,
    },
    /// Say what works on this machine, and whether a program can be recorded.
    Doctor { program: Option<PathBuf> },
    /// Print the folder of the runtime.
    RuntimePath,
    /// Print shell commands that make `make`, `cmake` and `configure` use the compiler wrappers.
    Env,
    /// Names addresses for the runtime of a program under `detect`, which starts this.
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
                | Self::Replay { .. }
                | Self::Minimise { .. }
        )
    }
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// How the threads of recorded executions take turns: random, round-robin, run-to-block, pct; or free (in parallel). run-to-block never ends a loop that waits for another thread
    /// without blocking. Without it `check` mixes them, and the first is random.
    #[arg(long)]
    pub policy: Option<Scheduling>,
    /// Of the policies that draw.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Accesses after which a thread offers its turn; 0: never.
    #[arg(long, default_value_t = 1_000_000)]
    pub quantum: u64,
    /// Record that many executions (the further ones switching at random) and merge what they show. Without it `check` records until new schedules show nothing new, within a third of
    /// its budget; the other commands record one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub recordings: Option<u32>,
    /// Randomise the program's addresses.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub aslr: Switch,
    /// Shell command that restores the program's world before every execution.
    #[arg(long, value_name = "CMD")]
    pub before_each: Option<OsString>,
    #[command(flatten)]
    pub client: ClientOptions,
    /// Standard input of every execution. Without it the recorded one has ours, and forced ones have none.
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Seconds after which the recorded execution is ended; 0: never.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub timeout: Duration,
    /// Megabytes of trace after which plain accesses are no longer kept; 0: no limit.
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub trace_limit: u64,
    /// Processes of the program that are recorded, each on its own; further ones run unobserved. 0: all.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub processes: u64,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// Store everything in this folder instead of .rashomon/N-PROG.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TrustOptions {
    /// A library without instrumentation whose calls neither order threads nor carry anything between them (`libfoo`, `libfoo.so.1`): it keeps nothing from being predicted.
    /// May be repeated; the store remembers it.
    #[arg(long = "trust-library", value_name = "NAME")]
    pub libraries: Vec<String>,
}

/// Only where the detectors of races are all that looks at a recording: `check` and `record`.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// Accesses that are not recorded: none but mere repetitions, or all that TREE finds redundant for detectors of races. From a filtered recording nothing is predicted, only
    /// suspected and proven.
    #[arg(long, value_enum, default_value_t = Filter::None, env = "RASHOMON_FILTER", hide_env_values = true)]
    pub filter: Filter,
    /// Locations that the filter remembers of each thread, always looking; 0: as many as the runtime thinks right, and threads of which little is redundant stop asking for a while.
    #[arg(long, value_name = "N", default_value_t = 0, env = "RASHOMON_FILTER_LOCATIONS", hide_env_values = true)]
    pub filter_locations: u64,
    /// Record every access, mere repetitions too.
    #[arg(long, conflicts_with = "filter")]
    pub every_access: bool,
}

#[derive(Debug, Args)]
pub struct ExploreOptions {
    /// Who makes the next step: any thread (random), by priorities that change at random (pct), by priorities of operations (pos); or all schedules, up to the order of
    /// independent steps (dpor) or with few preemptions first (preemptions).
    #[arg(long, default_value = "pos")]
    pub strategy: Strategy,
    /// The most schedules that are tried.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub schedules: u64,
    /// Most preemptions of --strategy preemptions; priority changes of pct.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=32))]
    pub preemptions: usize,
    /// Steps after which an execution counts as endless (default: a hundred times the events of the first recording, at least 200 000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4_000_000))]
    pub steps: Option<u64>,
    /// Plain accesses at which threads stop: those that may race by a first recording, none, or all.
    #[arg(long, value_enum, default_value_t = Accesses::Racing)]
    pub accesses: Accesses,
    /// The exit code that is right.
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub exit_code: i32,
    /// Every exit code is right.
    #[arg(long)]
    pub any_exit: bool,
    /// Seconds of everything behind the first recording: search, shortening, replays.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub budget: Duration,
    /// Seconds of one execution.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout_of_one: Option<Duration>,
    /// Leave the failing schedule as it was found.
    #[arg(long)]
    pub no_minimise: bool,
    /// The most schedules that are tried to shorten one.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub minimise_schedules: u64,
    /// Go on after a failure, and store one of each kind.
    #[arg(long)]
    pub all: bool,
    /// Executions at the same time; without it as many as there are processors.
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accesses {
    Racing,
    None,
    All,
}

#[derive(Debug, Args)]
pub struct WitnessOptions {
    /// Eraser's states in the lockset: fewer warnings, and fewer races.
    #[arg(long)]
    pub eraser: bool,
    /// Let the thread that stands at the first access go on.
    #[arg(long)]
    pub no_exclusion: bool,
    /// Do not prefer the thread of the second access.
    #[arg(long)]
    pub no_hint: bool,
    /// Execute the program from its beginning for each schedule, also where one process could stand behind the prefix and be continued many times.
    #[arg(long)]
    pub no_snapshots: bool,
    /// Begin the search right before the first access.
    #[arg(long)]
    pub short_prefix: bool,
    /// The most preemptions of a schedule behind the prefix.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=32))]
    pub preemptions: usize,
    /// The most schedules that are tried for a pair of accesses.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub schedules: u64,
    /// Steps behind the prefix after which an execution is ended.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=4_000_000))]
    pub steps: u64,
    /// Seconds of everything behind the recording.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub budget: Duration,
    /// Seconds of one execution.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout_of_one: Option<Duration>,
    /// Executions at the same time.
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
}

/// Where recordings are long, deciding thousands of suspicions takes longer than forcing what comes of the first.
pub const PREDICT_WITHIN: &str = "60";

#[derive(Debug, Args)]
pub struct ConfirmOptions {
    /// Seconds of everything behind the first recording: further recordings, their analysis, forced executions. 0: nothing is forced.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub budget: Duration,
    /// The exit code that is right. Without it no code is wrong, unless another schedule ends with 0.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(i32).range(0..=255))]
    pub expect_exit: Option<i32>,
    /// Seconds of one forced execution. Without it ten times as long as the recorded one, and five more.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub forced_timeout: Option<Duration>,
    /// How often a finding has to come about to be proven.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub proofs: u32,
    /// Keep the traces of the proofs.
    #[arg(long)]
    pub keep: bool,
    /// Of the budget, seconds in which other schedules are looked for in what was recorded; 0: until all suspicions are decided. Without it a half.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub predict_within: Option<Duration>,
    /// `check`: of the budget, seconds in which races that are still undecided are searched for by exploring the program from a prefix of the recording, as `witness` does.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub search: Duration,
}

#[derive(Debug, Args)]
pub struct ProvokeOptions {
    /// Seconds of everything behind the recording.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub budget: Duration,
    /// The most provoking executions; 0: no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub runs: u64,
    /// Longest time, in seconds, that a thread is held. Without it one and a half times what the recorded execution took.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub hold: Option<Duration>,
    /// Executions at the same time. Without it the number of processors: while a thread is held, few others run.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Execute both orders of each proven pair, and compare how the program ends and what it writes.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub orders: Switch,
    /// Let executions run to their end even when nothing is left to be tried in them.
    #[arg(long)]
    pub to_end: bool,
    /// Where threads are held: at conflicting accesses (targets); or, for comparison with what others do, at one pair of suspected statements an execution (statements), or
    /// at statements drawn at random (random): these go on until the budget is spent.
    #[arg(long, value_enum, default_value_t = Holding::Targets)]
    pub strategy: Holding,
    /// Also try pairs that the creation and joining of threads orders: what leaving them out saves and loses.
    #[arg(long)]
    pub with_ordered: bool,
    /// When everything is decided, go on until the budget is spent: record again under other schedules, which may have other accesses, and vary where threads are held.
    #[arg(long)]
    pub whole_budget: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Holding {
    Targets,
    Statements,
    Random,
}

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// What makes the exit code 66.
    #[arg(long, value_enum, default_value_t = FailOn::Proven)]
    pub fail_on: FailOn,
    #[arg(long, value_enum, default_value_t = Show::Claims)]
    pub show: Show,
    /// Also write the report as JSON; `-`: to standard output (the program's own then goes to standard error).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DetectOptions {
    #[command(flatten)]
    pub client: ClientOptions,
    /// What makes two accesses a race: no order between them (hb), no common lock (lockset), or neither, where lock hand-overs order nothing (hybrid).
    #[arg(long, value_enum, default_value_t = Detector::Hb)]
    pub detector: Detector,
    /// What is left out before detection: nothing, or what TREE finds redundant.
    #[arg(long, value_enum, default_value_t = Filter::None)]
    pub filter: Filter,
    /// How reports look.
    #[arg(long, value_enum, default_value_t = DetectFormat::Text)]
    pub format: DetectFormat,
    /// A file of suppressions, as for ThreadSanitizer.
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// Say at the end which suppressions matched.
    #[arg(long)]
    pub print_suppressions: bool,
    /// The exit code when something was reported.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u8))]
    pub exitcode: Option<u8>,
    /// End the program at the first report.
    #[arg(long)]
    pub halt_on_error: bool,
    /// Reports go to FILE.PID, for each process its own.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Also say where the first mutex of each pair of a deadlock was locked.
    #[arg(long)]
    pub second_deadlock_stack: bool,
    /// Any other option of ThreadSanitizer.
    #[arg(long = "option", short = 'O', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// For scripts written for ThreadSanitizer: histories need no size here.
    #[arg(long, hide = true, value_name = "N")]
    pub history_size: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detector {
    Hb,
    Lockset,
    Hybrid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    None,
    Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectFormat {
    /// For people.
    Text,
    /// As ThreadSanitizer prints them, for scripts, CTest and CodeChecker.
    Tsan,
    /// One object a line.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Proven,
    Predicted,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// Proven and predicted.
    Claims,
    /// Also suspected and diverged.
    Suspicions,
    /// Also refuted.
    Everything,
}

/// Longest time that can be asked for: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.strip_suffix('s').unwrap_or(text).parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=MAX_SECONDS).contains(&number) {
        return Err(format!("not between 0 and {MAX_SECONDS} seconds"));
    }
    Ok(Duration::from_secs_f64(number))
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
            Command::Check { file, command, .. } => (file, command),
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
    fn gdb_arguments_are_passed_on() {
        let line = ["rashomon", "replay", "race-1", "--gdb", "--", "-batch", "-ex", "bt"];
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Replay { gdb: true, gdb_arguments, .. } => assert_eq!(gdb_arguments, ["-batch", "-ex", "bt"]),
            other => panic!("{other:?}"),
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

    #[test]
    fn times_that_make_no_sense_are_refused() {
        for bad in ["-1", "nan", "inf", "1e300", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
    }
}
