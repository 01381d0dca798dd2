//! `rashomon csp`, and the engines of `rashomon predict`.

use super::{examples, seconds};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum CspCommand {
    /// Write the CSP model of a recording as a script that `csp check`, or another checker of refinement, decides.
    ///
    /// One model for each object in memory that several threads share and that neither a lock nor the order of synchronisation
    /// protects, and one for deadlocks. Of a store: the first recording.
    #[command(after_help = examples::CSP_EXPORT)]
    Export {
        /// A store, a single recording, or a trace of another tool. Default: the latest store.
        trace: Option<PathBuf>,
        /// The script; without it: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Shared objects that get a model, at most.
        #[arg(long, value_name = "N", default_value_t = 16)]
        objects: usize,
        #[command(flatten)]
        selection: SelectionOptions,
    },
    /// Look for orders of synchronisation that lead to a race or a deadlock, and let the program run under each: in parallel,
    /// and with the online detector beside it.
    ///
    /// Only synchronisation is held until its turn. A race that the detector reports confirms the order, and so does a deadlock
    /// of the program; an order that the program leaves is infeasible. Exit code 66: one is confirmed. 125: none is, and
    /// something is undecided, as a limit or the time ended it.
    #[command(after_help = examples::CSP_ENFORCE)]
    Enforce {
        /// The store with the recordings. Default: the latest.
        store: Option<PathBuf>,
        /// Run the store's program although the store was not recorded by you on this machine.
        #[arg(long)]
        trust: bool,
        /// Orders that are enforced for one shared object of a recording, and for its deadlocks, at most.
        #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
        counterexamples: u16,
        /// Events that are ordered anew where a model of the whole recording is too much; those before them come as recorded.
        #[arg(long, value_name = "EVENTS", default_value = "10000")]
        window: usize,
        /// Seconds for everything.
        #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
        budget: Duration,
        /// Seconds that the thread whose turn it is may take to come; after them the order is infeasible.
        #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
        step_timeout: Duration,
        /// Write what came of each order to this file, as JSON; `-`: to standard output.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        #[command(flatten)]
        selection: SelectionOptions,
    },
    /// Decide the assertions of a script in a subset of CSP_M, with shortest counterexamples.
    ///
    /// Channels with data, parametrised processes, functions, sets and sequences; `assert` with `[T=`, `[F=`, `[FD=`,
    /// `:[deadlock free]`, `:[divergence free]`, `:[deterministic]`, and `not` before each. `docs/reference/csp.md` has the whole
    /// subset. Exit code 0: all hold. 1: one fails. 125: one is undecided, and none fails.
    #[command(after_help = examples::CSP_CHECK)]
    Check {
        /// The script.
        file: PathBuf,
        /// States of an assertion that are looked at; with more it is undecided.
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        states: usize,
        /// Seconds for each assertion; after them it is undecided.
        #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
        within: Duration,
        /// Counterexamples of an assertion, at most.
        #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
        counterexamples: u16,
    },
}

/// Whose accesses a model has. Synchronisation is whole in each.
#[derive(Debug, Args)]
pub struct SelectionOptions {
    /// Look only at accesses of functions and files whose names a pattern matches: a part of the name, with `*`, `^` and `$` as
    /// in suppressions. May be repeated.
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub include: Vec<String>,
    /// Do not look at accesses of functions and files whose names a pattern matches. May be repeated.
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub exclude: Vec<String>,
    /// Look only at accesses in places that this file lists, such as those of a static analysis: `FILE:LINE`, `fun:PATTERN` or
    /// `src:PATTERN`, one on a line.
    #[arg(long, value_name = "FILE", help_heading = "Selection")]
    pub static_list: Option<PathBuf>,
}

/// Which deciders `predict` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PredictEngine {
    Sync,
    Exact,
    Causality,
    Optimistic,
    Csp,
    All,
}
