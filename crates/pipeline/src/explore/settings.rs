//! What an exploration is asked for.

use crate::shard::Shard;
use rashomon_explore::beside::Beside;
use rashomon_explore::dpor::Dpor;
use rashomon_explore::orders::Orders;
use rashomon_explore::preemptions::PreemptionBounding;
use rashomon_explore::reads_from::ReadsFrom;
use rashomon_explore::sampling::Samples;
use rashomon_explore::{Expected, Log, Sampling, Search};
use std::fmt;
use std::str::FromStr;

/// How schedules are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Random,
    Pct,
    Pos,
    /// Those in which reads see what they have not seen yet.
    ReadsFrom,
    /// Those in which objects are touched in orders that they have not had.
    Orders,
    /// All, up to the order of independent steps.
    Dpor,
    /// All with few preemptions.
    Preemptions,
}

impl Strategy {
    pub const ALL: [Self; 7] = [Self::Random, Self::Pct, Self::Pos, Self::ReadsFrom, Self::Orders, Self::Dpor, Self::Preemptions];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Pct => "pct",
            Self::Pos => "pos",
            Self::ReadsFrom => "reads-from",
            Self::Orders => "orders",
            Self::Dpor => "dpor",
            Self::Preemptions => "preemptions",
        }
    }
}

impl Strategy {
    /// How it chooses schedules, for who does not know its name.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Random => "random choices",
            Self::Pct => "random priorities",
            Self::Pos => "random priorities of operations",
            Self::ReadsFrom => "new inputs of reads",
            Self::Orders => "new orders of an object's accesses",
            Self::Dpor => "partial-order reduction",
            Self::Preemptions => "few preemptions",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| format!("not one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// At which plain accesses threads stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    Racing,
    None,
    All,
}

#[derive(Clone, Copy, Debug)]
pub struct ExploreSettings {
    pub strategy: Strategy,
    pub schedules: u64,
    /// Of [`Strategy::Preemptions`]; also PCT's change points.
    pub preemptions: usize,
    pub seed: u64,
    /// Steps of one execution; `None`: many times those of the recorded one.
    pub steps: Option<u64>,
    pub stops: Stops,
    pub expected: Expected,
    /// Executions that the minimiser may make; 0: no minimising.
    pub minimise: u64,
    /// Go on after a failure, and store one of each kind.
    pub all: bool,
    pub jobs: usize,
    /// Of a search by few preemptions; what is drawn has its own seed.
    pub shard: Shard,
    /// As a part of a check: it stores proofs alone, and only of what has none; it ends when it is dry.
    pub check: bool,
}

/// Steps after which an execution counts as endless, where the recorded one has so many events. Other schedules of a program that
/// ends make more rounds of its loops that wait, retry or poll, and do other work than this one; but hardly a hundred times as
/// much. Loops that only wait are told apart before, by fairness.
pub(super) fn steps_of(events: usize) -> u64 {
    const FACTOR: u64 = 100;
    const FEWEST: u64 = 200_000;
    const MOST: u64 = 4_000_000;
    (events as u64).saturating_mul(FACTOR).clamp(FEWEST, MOST)
}

fn search_of(settings: &ExploreSettings) -> Box<dyn Search> {
    let samples = |sampling| Box::new(Samples::new(sampling, settings.seed));
    match settings.strategy {
        Strategy::Random => samples(Sampling::Random),
        Strategy::Pct => samples(Sampling::Pct { changes: settings.preemptions as u64, length: 1 }),
        Strategy::Pos => samples(Sampling::Pos),
        Strategy::ReadsFrom => Box::new(ReadsFrom::new(settings.seed)),
        Strategy::Orders => Box::new(Orders::new(settings.seed)),
        Strategy::Dpor => Box::new(Dpor::new()),
        Strategy::Preemptions if settings.check => Box::new(Beside::new(settings.preemptions, settings.seed)),
        Strategy::Preemptions => Box::new(PreemptionBounding::remembering(settings.preemptions).part(settings.shard.of())),
    }
}

/// The search, told of the recording and whether that failed.
pub(super) fn search_from(settings: &ExploreSettings, recorded: Option<&(Log, bool)>) -> Box<dyn Search> {
    let mut search = search_of(settings);
    if let Some((log, failed)) = recorded {
        search.recorded(log, *failed);
    }
    search
}
