//! How executions are recorded.

use super::{ClientOptions, Filter, Switch, seconds};
use clap::{Args, ValueEnum};
use rashomon_pipeline::analyse::calls;
use rashomon_pipeline::{Scheduling, UnseenCalls};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct RunOptions {
    /// How threads are scheduled while recording. Serial: random, round-robin, run-to-block (a thread runs until it blocks; busy
    /// waiting never ends), pct (random priorities). Parallel: free, from which nothing is predicted. Default: random; `check`
    /// records several schedules, the first random, the others mixed.
    #[arg(long, value_name = "POLICY", help_heading = "Recording")]
    pub policy: Option<Scheduling>,
    /// Seed of the random choices of the scheduling policy. The same seed gives the same schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Recording")]
    pub seed: u64,
    /// Memory accesses after which a serial scheduler may switch threads; 0: never.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, help_heading = "Recording")]
    pub quantum: u64,
    /// Record N executions, each under another schedule, and merge their findings (1 to 1000). Default: `check` records until new
    /// schedules show nothing new, within a third of its budget; the other commands record one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub recordings: Option<u32>,
    /// Address space layout randomisation of the program.
    #[arg(long, value_enum, default_value_t = Switch::On, help_heading = "Recording")]
    pub aslr: Switch,
    /// Shell command that restores files and other state before every execution, such as 'rm -f out.bz2'.
    #[arg(long, value_name = "CMD")]
    pub before_each: Option<OsString>,
    #[command(flatten)]
    pub client: ClientOptions,
    /// Load the runtime before the program begins: for libraries with instrumentation in a program that has none, such as Python
    /// with an extension module.
    #[arg(long, help_heading = "Recording")]
    pub preload: bool,
    /// Standard input of every execution. Default: this command's if that is a file, from its beginning; else the first execution
    /// has it, and all others have none.
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Seconds after which a recorded execution is ended; 0: never.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds, help_heading = "Recording")]
    pub timeout: Duration,
    /// Megabytes of records, before they are compressed, after which a recording keeps no more plain accesses, only
    /// synchronisation; 0: no limit.
    #[arg(long, value_name = "MB", default_value_t = 256, help_heading = "Recording")]
    pub trace_limit: u64,
    /// How many processes of the program are recorded, each on its own; later ones run unobserved. 0: all.
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Recording")]
    pub processes: u64,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// The folder of the new store. Default: .rashomon/N-PROG.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl RunOptions {
    /// The file that is every execution's standard input.
    pub fn input(&self) -> std::io::Result<Option<PathBuf>> {
        match &self.stdin {
            Some(path) => std::path::absolute(path).map(Some),
            None => Ok(rashomon_files::own_input()),
        }
    }
}

#[derive(Debug, Args)]
pub struct TrustOptions {
    /// Trust an uninstrumented library (`libfoo`, `libfoo.so.1`): its calls neither order threads nor pass data between them, so
    /// that it prevents no prediction. Of an instrumented program or library: its inline assembly does not. May be repeated; the
    /// store remembers it.
    #[arg(long = "trust-library", value_name = "NAME", help_heading = "Recording")]
    pub libraries: Vec<String>,
    /// Which recorded calls into uninstrumented libraries order nothing: those of a function (`foo_get`, `foo_*`), into or out of
    /// a shared object (`libfoo.so.1`), or made in a source file or folder (anything with a `/`). May be repeated; the store
    /// remembers it.
    #[arg(long, value_name = "WHAT", help_heading = "Recording")]
    pub exclude_calls: Vec<String>,
    /// Which calls count though --exclude-calls names them; alone, which calls count at all. Named as there.
    #[arg(long, value_name = "WHAT", help_heading = "Recording")]
    pub include_calls: Vec<String>,
}

impl TrustOptions {
    /// What a store remembers.
    pub fn remembered(&self) -> Vec<String> {
        let excluded = self.exclude_calls.iter().map(|what| calls::excluded(what));
        let included = self.include_calls.iter().map(|what| calls::included(what));
        self.libraries.iter().cloned().chain(excluded).chain(included).collect()
    }
}

/// Only where the detectors of races are all that looks at a recording: `check` and `record`.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// Which accesses are left out of the recording: repetitions only (none), or all that are redundant for race detection
    /// (tree). From a filtered recording nothing is predicted, only suspected and proven.
    #[arg(long, value_enum, default_value_t = Filter::None, env = "RASHOMON_FILTER", hide_env_values = true)]
    #[arg(help_heading = "Recording")]
    pub filter: Filter,
    /// Locations of each thread that the tree filter remembers; 0: the runtime decides, and pauses the filter where it removes
    /// little.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        env = "RASHOMON_FILTER_LOCATIONS",
        hide_env_values = true,
        help_heading = "Recording"
    )]
    pub filter_locations: u64,
    /// Record every access, repetitions too.
    #[arg(long, conflicts_with = "filter", help_heading = "Recording")]
    pub every_access: bool,
    /// Which calls of instrumented code into linked libraries without instrumentation `check` and `record` keep, with the memory
    /// that their arguments lead to, so that predictions go on in spite of such libraries and heed what their calls may have
    /// ordered: those that are not known to order nothing (needed), or none (off; nothing is predicted then where such a library
    /// is called). Under a serial policy only. For comparison, of `record` alone: all calls (every), each with the whole of what
    /// it reaches (naive). Default: needed.
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "needed",
        help_heading = "Recording"
    )]
    pub unseen_calls: Option<CallsName>,
    /// A variable that calls of an uninstrumented library use, in place of all its static data: LIBRARY:NAME,
    /// LIBRARY:0xOFFSET+BYTES from where it is loaded, or LIBRARY: where none matters. May be repeated.
    #[arg(long = "library-global", value_name = "LIBRARY:VARIABLE", value_parser = library_global, help_heading = "Recording")]
    pub library_globals: Vec<String>,
    /// Record which way control goes in functions that `rashomon cc --deep` has compiled, and every access. `check` makes such
    /// recordings by itself.
    #[arg(long, conflicts_with = "filter", help_heading = "Recording")]
    pub dependences: bool,
    /// Record what plain accesses of up to 8 bytes read and write, and every access: predictions then know when two writes are of
    /// the same value. Under a serial policy only. Else `check` executes the program once more where a race or a deadlock may
    /// rest on values, and records those it needs.
    #[arg(long, conflicts_with = "filter", help_heading = "Recording")]
    pub values: bool,
}

/// The runtime separates several by commas.
fn library_global(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((library, _)) if !library.is_empty() && !text.contains(',') => Ok(text.to_owned()),
        _ => Err("not LIBRARY:NAME, LIBRARY:0xOFFSET+BYTES or LIBRARY:".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallsName {
    Off,
    Needed,
    Every,
    Naive,
}

impl From<CallsName> for UnseenCalls {
    fn from(name: CallsName) -> Self {
        match name {
            CallsName::Off => Self::Unrecorded,
            CallsName::Needed => Self::Needed,
            CallsName::Every => Self::Every,
            CallsName::Naive => Self::Naive,
        }
    }
}
