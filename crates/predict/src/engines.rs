//! Deciders by what they are made of, to be asked alone and compared.

use crate::candidates::Candidates;
use crate::deadlocks;
use crate::deciders::{Decision, Question, begins_waits, can_decide, named};
use crate::index::Index;
use crate::maximal;
use crate::options::Options;
use rashomon_event::{CandidateKind, EventIndex, Mode, Trace, WitnessLevel};
use std::time::{Duration, Instant};

/// Which deciders answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// All, cheapest first.
    #[default]
    Cascade,
    /// Locks are taken in the order of the trace, or in one that few sections change.
    Sync,
    /// All correct reorderings, by exploring ideals.
    Exact,
    /// All correct reorderings, by the maximal causal model: clauses for a solver.
    Causality,
    /// The same model, in windows of so many events: what comes before one is as it was, and what comes behind does not come.
    Windows(u32),
    /// Orders of synchronisation, found greedily.
    Optimistic,
    /// Orders of synchronisation, found by searching the CSP model.
    Csp,
}

impl Engine {
    /// Those that are compared.
    pub const ALONE: [Self; 5] = [Self::Sync, Self::Exact, Self::Causality, Self::Optimistic, Self::Csp];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Cascade => "all deciders",
            Self::Sync => "sync",
            Self::Exact => "exact",
            Self::Causality => "causality",
            Self::Windows(_) => "causality in windows",
            Self::Optimistic => "optimistic",
            Self::Csp => "csp",
        }
    }

    /// Empty: all.
    pub const fn deciders(self) -> &'static [&'static str] {
        match self {
            Self::Cascade => &[],
            Self::Sync => &["sync-preserving", "sync-reversal"],
            Self::Exact => &["exact"],
            Self::Causality | Self::Windows(_) => &["maximal"],
            Self::Optimistic => &["optimistic", "despite-atomics"],
            Self::Csp => &["csp", "csp-despite-atomics"],
        }
    }

    /// That the witnesses of its deciders claim.
    const fn level(self) -> WitnessLevel {
        match self {
            Self::Cascade | Self::Optimistic | Self::Csp => WitnessLevel::Synchronisation,
            Self::Sync | Self::Exact | Self::Causality | Self::Windows(_) => WitnessLevel::Causal,
        }
    }

    /// Whether a decider of that name answers.
    pub fn asks(self, decider: &str) -> bool {
        self.deciders().is_empty() || self.deciders().contains(&decider)
    }

    /// What a decision of the maximal causal model may cost.
    pub fn limits(self) -> maximal::Limits {
        let limits = maximal::Limits::default();
        match self {
            Self::Windows(events) => {
                let events = events as usize;
                maximal::Limits { events: limits.events.max(events), window: Some(events), ..limits }
            }
            _ => limits,
        }
    }
}

/// What one engine says of one pair or tuple of events.
#[derive(Clone, Debug)]
pub struct Opinion {
    pub engine: Engine,
    pub decision: Decision,
    /// That a witness claims.
    pub level: WitnessLevel,
    pub took: Duration,
    /// States of the CSP model that were seen.
    pub states: usize,
}

/// Asks each engine alone about each representative pair of accesses and each tuple of waits, until the deadline of the options;
/// true if there was time for all. A trace of threads that ran in parallel gives no opinions.
pub fn opinions(trace: &Trace, options: &Options, mut told: impl FnMut(&CandidateKind, &[Opinion])) -> bool {
    each_candidate(trace, options, |question, kind| {
        let goals = kind.goals();
        told(kind, &Engine::ALONE.map(|engine| opinion(engine, question, &goals)));
    })
}

/// Asks one engine about the same candidates.
pub fn opinions_of(engine: Engine, trace: &Trace, options: &Options, mut told: impl FnMut(&CandidateKind, &Opinion)) -> bool {
    each_candidate(trace, options, |question, kind| told(kind, &opinion(engine, question, &kind.goals())))
}

fn each_candidate(trace: &Trace, options: &Options, mut with: impl FnMut(&Question<'_, '_>, &CandidateKind)) -> bool {
    let candidates = Candidates::new(trace, options);
    if candidates.is_empty() || trace.mode != Mode::Serial {
        return !candidates.statistics.cut_short;
    }
    let index = Index::until(trace, &candidates.memory, options.deadline);
    if !index.complete {
        return false;
    }
    let question = Question::new(&index, &candidates.memory, options);
    let pairs = candidates.unordered.iter().chain(&candidates.suspects).flat_map(|pair| &pair.pairs);
    let mut kinds: Vec<CandidateKind> =
        pairs.map(|&(first, second)| CandidateKind::Race { first, second }).take(options.site_pairs).collect();
    for pattern in candidates.patterns.iter().take(options.patterns) {
        let tuples = deadlocks::concurrent(&candidates.graph, pattern, options.representatives);
        kinds.extend(tuples.iter().map(|tuple| deadlocks::candidate(&candidates.graph, pattern, tuple)));
    }
    for kind in kinds {
        if options.deadline.is_over() {
            return false;
        }
        with(&question, &kind);
    }
    true
}

fn opinion(engine: Engine, question: &Question<'_, '_>, goals: &[EventIndex]) -> Opinion {
    let (begin, seen) = (Instant::now(), question.states());
    let mut last = Decision::Undecided;
    let deciders = engine.deciders().iter().filter_map(|name| named(name));
    for decider in deciders.filter(|&decider| can_decide(decider, question, goals)) {
        last = match decider.decide(question, goals) {
            Decision::Witness(order) if !begins_waits(question, goals, &order) => Decision::Undecided,
            decision => decision,
        };
        if matches!(last, Decision::Witness(_) | Decision::Refuted) {
            break;
        }
    }
    Opinion { engine, decision: last, level: engine.level(), took: begin.elapsed(), states: question.states() - seen }
}
