//! `rashomon explore`, `rashomon witness` and `rashomon provoke`: what executes the program again and again.

use super::{Switch, seconds};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rashomon_pipeline::Strategy;
use rashomon_pipeline::shard::Shard;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct ExploreOptions {
    /// How schedules are chosen. Sampled: random, pct (random thread priorities), pos (random priorities of operations),
    /// reads-from (reads are steered to inputs that they have not had), orders (the accesses of each rarely touched object come
    /// in an order that they have not had). Exhaustive: dpor (partial-order reduction), preemptions (few preemptions first).
    #[arg(long, value_name = "STRATEGY", default_value = "orders")]
    pub strategy: Strategy,
    /// The most schedules to try; with --shard, in each part.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub schedules: u64,
    /// The most preemptions of a schedule (--strategy preemptions), or priority changes (pct); 0 to 32.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = RangedU64ValueParser::<usize>::new().range(0..=32))]
    pub preemptions: usize,
    /// Scheduling steps after which an execution counts as a livelock. Default: 100 times the events of the first recording, at
    /// least 200 000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4_000_000))]
    pub steps: Option<u64>,
    /// Plain accesses at which threads may be switched: those that race in a first recording, none, or all.
    #[arg(long, value_enum, default_value_t = Accesses::Racing)]
    pub accesses: Accesses,
    /// The correct exit code. Any other is a failure.
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub exit_code: i32,
    /// No exit code is a failure.
    #[arg(long)]
    pub any_exit: bool,
    /// Seconds for everything: recording (at most half of them), search, shortening, replays. Default: the recording as long as
    /// it takes, and 300 seconds more.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<Duration>,
    /// Seconds after which one execution is ended. Default: 10 times the recorded execution, plus 5.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout_of_one: Option<Duration>,
    /// Do not shorten the failing schedule.
    #[arg(long)]
    pub no_minimise: bool,
    /// The most executions to shorten one schedule.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub minimise_schedules: u64,
    /// Continue after a failure, and store one of each kind.
    #[arg(long)]
    pub all: bool,
    /// Do a part of the work, such as 2/5, the second of five: what is sampled is sampled otherwise in each part, and
    /// `preemptions` tries every fifth change of the first schedule, and what follows from it. Not with `dpor`. `rashomon merge`
    /// makes one report of all parts. Default: everything.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<Shard>,
    /// Executions in parallel. Default: the number of processors.
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
    /// Use Eraser's state machine in the lockset analysis: fewer warnings, but it misses races.
    #[arg(long)]
    pub eraser: bool,
    /// Do not exclude the first access's thread from the search; without this it stays stopped there.
    #[arg(long)]
    pub no_exclusion: bool,
    /// Do not schedule the second access's thread first.
    #[arg(long)]
    pub no_hint: bool,
    /// Execute the program from its beginning for each schedule, instead of forking from a process snapshot after the prefix.
    #[arg(long)]
    pub no_snapshots: bool,
    /// Replay up to right before the first access, and search from there.
    #[arg(long)]
    pub short_prefix: bool,
    /// How schedules after the prefix are searched: preemptions (few preemptions first), dpor (all, up to the order of
    /// independent steps).
    #[arg(long, value_name = "STRATEGY", default_value = "preemptions")]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["preemptions", "dpor"]))]
    pub strategy: String,
    /// Try schedules that lead through states from which everything was tried, too (--strategy preemptions).
    #[arg(long)]
    pub no_reduction: bool,
    /// The most preemptions of a schedule after the prefix; 0 to 32.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = RangedU64ValueParser::<usize>::new().range(0..=32))]
    pub preemptions: usize,
    /// The most schedules to try for a pair of accesses.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub schedules: u64,
    /// Do a part of the work, such as 2/5: a fifth of the pairs of places that lockset warnings lead to. `rashomon merge` makes
    /// one report of all parts. Default: everything.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<Shard>,
    /// Scheduling steps after the prefix at which an execution is ended.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=4_000_000))]
    pub steps: u64,
    /// Seconds for everything, of which the recording gets at most half. Default: the recording as long as it takes, and 600
    /// seconds more.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<Duration>,
    /// Seconds after which one execution is ended. Default: 10 times the recorded execution, plus 5.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout_of_one: Option<Duration>,
    /// Executions in parallel. Default: the number of processors.
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct ProvokeOptions {
    /// Seconds for everything, of which a recording that is made first gets at most half. Default: the recording as long as it
    /// takes, and 60 seconds more.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<Duration>,
    /// The most executions; 0: no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub runs: u64,
    /// The most seconds that a thread is held. Default: 1.5 times the recorded execution.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub hold: Option<Duration>,
    /// Executions in parallel (1 to 256). Default: the number of processors.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Execute each proven pair in both orders, and compare exit codes and outputs.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub orders: Switch,
    /// Let each execution run to its end, even when nothing is left to try in it.
    #[arg(long)]
    pub to_end: bool,
    /// Where threads are held: at conflicting accesses (targets); or, to compare with other work, at one pair of suspected
    /// statements per execution (statements) or at random statements (random), both until the budget is spent.
    #[arg(long, value_enum, default_value_t = Holding::Targets)]
    pub strategy: Holding,
    /// Do a part of the work, such as 2/5: a fifth of the conflicting pairs; what is drawn is drawn otherwise in each part.
    /// `rashomon merge` makes one report of all parts. Default: everything.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<Shard>,
    /// Also try pairs that are ordered by thread creation and join. Measures what leaving them out saves and loses.
    #[arg(long)]
    pub with_ordered: bool,
    /// When every pair is decided, continue until the budget is spent: record again under other schedules, and vary where threads
    /// are held.
    #[arg(long)]
    pub whole_budget: bool,
    /// When every pair is decided, continue so for as many seconds, if an execution takes less; 0: end.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, conflicts_with = "whole_budget")]
    pub second_look: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Holding {
    Targets,
    Statements,
    Random,
}
