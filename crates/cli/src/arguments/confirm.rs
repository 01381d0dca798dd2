//! How predictions are proven.

use super::seconds;
use clap::Args;
use clap::builder::PossibleValuesParser;
use rashomon_pipeline::engines::OPTIONAL;
use rashomon_pipeline::shard::Shard;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct ConfirmOptions {
    /// Seconds for everything: recordings, analysis, forced executions. The first recording gets at most half of them, and is
    /// ended then. 0: no bound, and nothing is forced. Default: the first recording as long as it takes, and 60 seconds more.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<Duration>,
    /// The correct exit code (0 to 255); any other is a finding. Default: a code other than 0 is a finding if some schedule ends
    /// with 0.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(i32).range(0..=255), help_heading = "Proving")]
    pub expect_exit: Option<i32>,
    /// Seconds after which one forced execution is ended. Default: 10 times the recorded execution, plus 5.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Proving")]
    pub forced_timeout: Option<Duration>,
    /// How many times a finding must happen to count as proven (1 to 100).
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(help_heading = "Proving")]
    pub proofs: u32,
    /// Keep the recordings of forced executions in the store.
    #[arg(long, help_heading = "Proving")]
    pub keep: bool,
    /// Seconds of the budget to search the recordings for other schedules; 0: until every candidate is decided. Default: half the
    /// budget.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Proving")]
    pub predict_within: Option<Duration>,
    /// Seconds of the budget to search for races that are still undecided by model checking, as `witness` does (`check` only).
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds, help_heading = "Proving")]
    pub search: Duration,
    /// A file of variables that belong together, for programs built with `rashomon cc --deep`: a line for each set, its name, a
    /// colon, and names of variables with static storage, separated by commas. `#` begins a comment. `check` only.
    #[arg(long, value_name = "FILE", help_heading = "Proving")]
    pub correlated: Option<PathBuf>,
    /// Do a part of the work, such as 2/5, the second of five: further recordings and searches are others in each part, and each
    /// begins with other suspicions. With --per-test-case: every fifth test case. `rashomon merge` makes one report of all parts.
    /// Default: everything.
    #[arg(long, value_name = "NUMBER/OF", help_heading = "Proving")]
    pub shard: Option<Shard>,
    /// Which engines may execute the program besides recording it, separated by commas: force (what was predicted), detect (what
    /// recordings had no room for), explore (all schedules with few preemptions), provoke (races that forcing left open),
    /// witness (with --search), harm (both orders of proven races), critical (the order that a failure needs), adhoc (races
    /// that order others). `check` only.
    /// Default: all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(OPTIONAL))]
    #[arg(help_heading = "Proving")]
    pub engines: Vec<String>,
}
