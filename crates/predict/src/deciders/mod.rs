//! Who decides whether another order of the recorded events shows a candidate: one file each, registered in one list.
//!
//! The cascade of [`crate::predict`] asks them stage by stage, within a stage in the order of the list. No decider is trusted:
//! each witness goes to the checker of `rashomon-witness`.

use crate::closure::{Closures, Cut};
use crate::index::Index;
use crate::maximal::Facts;
use crate::options::Options;
use crate::regroup::{Order, regroup};
use rashomon_event::{EventIndex, EventKind, EventSet, WitnessLevel};
use rashomon_order::SharedMemory;
use std::cell::OnceCell;

/// What a decider is asked about, and what it may use.
pub struct Question<'a, 't> {
    pub index: &'a Index<'t>,
    pub closures: Closures<'a, 't>,
    pub memory: &'a SharedMemory,
    pub options: &'a Options,
    /// Constraints of the recorded order, once a causal witness needs them.
    trace_order: OnceCell<crate::dependences::Dependences>,
    /// What the maximal causal model needs of the trace, once it is asked.
    facts: OnceCell<Option<Facts<'a, 't>>>,
    /// The same with the values that the trace tells, and with those that it does not tell.
    valued_facts: OnceCell<Option<Facts<'a, 't>>>,
    open_facts: OnceCell<Option<Facts<'a, 't>>>,
    /// The CSP model of the trace, once it is searched.
    refinement: csp::Search<'t>,
}

impl<'a, 't> Question<'a, 't> {
    pub fn new(index: &'a Index<'t>, memory: &'a SharedMemory, options: &'a Options) -> Self {
        Self {
            index,
            closures: Closures::new(index),
            memory,
            options,
            trace_order: OnceCell::new(),
            facts: OnceCell::new(),
            valued_facts: OnceCell::new(),
            open_facts: OnceCell::new(),
            refinement: csp::Search::default(),
        }
    }

    /// What the maximal causal model needs of the trace, without values. `None`: there was no time to collect it.
    pub fn facts(&self) -> Option<&Facts<'a, 't>> {
        let collect = || Facts::until(self.index, self.memory, None, self.options.deadline);
        self.facts.get_or_init(collect).as_ref()
    }

    /// The same, with the values that the trace tells. `None`, too, where it tells none.
    pub fn valued_facts(&self) -> Option<&Facts<'a, 't>> {
        let collect = || Facts::with_values(self.index, self.memory, self.options.deadline);
        self.valued_facts
            .get_or_init(|| if self.index.trace.has_values() || !self.index.trace.uses.is_empty() { collect() } else { None })
            .as_ref()
    }

    /// The same, where values that the trace does not tell may be any.
    pub fn open_facts(&self) -> Option<&Facts<'a, 't>> {
        let collect = || Facts::with_any_values(self.index, self.memory, self.options.deadline);
        self.open_facts.get_or_init(collect).as_ref()
    }

    /// States of the CSP model that were seen so far.
    pub const fn states(&self) -> usize {
        self.refinement.states()
    }

    /// The recorded order of what is below the cut, with fewer context switches.
    pub fn regroup(&self, cut: &Cut) -> Option<Vec<EventIndex>> {
        let trace_order = self.trace_order.get_or_init(|| {
            let whole = self.index.counts();
            let trace = self.index.trace;
            let (others, kept) = (trace.events.besides_accesses(), trace.kept_events());
            // What else there is constrains nothing.
            Order::of(self.index, self.memory, &whole, EventSet::union([others, &kept, self.memory.sharing()]))
        });
        regroup(self.index, cut, &[&self.index.instances, trace_order])
    }
}

/// A class of reorderings, and how one of it is found.
pub trait Decider: Sync {
    /// How options and reports call it.
    fn name(&self) -> &'static str;
    fn stage(&self) -> Stage;
    /// Whether an order of its class runs every thread up to its goal, so that all goals are next. Within the limits and the
    /// deadline of the question's options.
    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision;
    /// Whether it asks of a goal that is the end of a condition wait that the wait begins before the signal that ends it.
    fn knows_waits(&self) -> bool {
        false
    }
}

/// Whether a decider can be asked about these goals.
pub fn can_decide(decider: &dyn Decider, question: &Question<'_, '_>, goals: &[EventIndex]) -> bool {
    let is_wait = |&goal: &EventIndex| matches!(question.index.trace.kind(goal), EventKind::WaitEnd { .. });
    decider.knows_waits() || !goals.iter().any(is_wait)
}

/// Whether each goal that is the end of a condition wait can come next behind this order: its wait begins before the signal that
/// ends it. Whoever knows of waits sees to that in most orders, but not in those that it finds by changing others.
pub fn begins_waits(question: &Question<'_, '_>, goals: &[EventIndex], order: &[EventIndex]) -> bool {
    let index = question.index;
    let place = |event: EventIndex| order.iter().position(|&one| one == event);
    goals.iter().all(|&goal| {
        let EventKind::WaitEnd { woken_by: Some(signal), .. } = index.trace.kind(goal) else { return true };
        let (thread, at) = index.place(goal);
        let mut before = index.threads.range(thread as usize, 0..at).rev();
        let begins = |event: &EventIndex| matches!(index.trace.kind(*event), EventKind::WaitBegin { .. });
        let begin = before.find(begins).and_then(place);
        begin.zip(place(signal)).is_some_and(|(begin, signal)| begin < signal)
    })
}

/// When a decider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// First, and only for events that the walk over all sync-preserving ideals has found.
    Walked,
    /// Correct reorderings: every read sees the write that it saw.
    Causal,
    /// Orders of synchronisation in which plain reads may see other writes.
    Synchronisation,
    /// Last, those in which atomic reads may, too.
    DespiteAtomics,
}

impl Stage {
    /// That its witnesses claim.
    pub const fn level(self) -> WitnessLevel {
        match self {
            Self::Walked | Self::Causal => WitnessLevel::Causal,
            Self::Synchronisation | Self::DespiteAtomics => WitnessLevel::Synchronisation,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The order, goals excluded.
    Witness(Vec<EventIndex>),
    /// No correct reordering of the trace does, of whichever class.
    Refuted,
    /// None of its class does, as a goal has to run before another one.
    Ordered,
    /// It found none.
    Undecided,
}

/// Declares the module of each decider, and lists them.
macro_rules! deciders {
    ($($decider:ident,)*) => {
        $(mod $decider;)*

        /// All, in the order in which those of a stage are asked.
        pub const ALL: &[&dyn Decider] = &[$(&$decider::Decider),*];
    };
}

// One line each.
deciders! {
    sync_preserving,
    sync_reversal,
    exact,
    maximal,
    optimistic,
    csp,
    despite_atomics,
    csp_despite_atomics,
}

/// Those to be asked at a stage, in their order.
pub fn asked(options: &Options, stage: Stage) -> impl Iterator<Item = &'static dyn Decider> {
    let allowed = match stage {
        Stage::Walked | Stage::Causal => true,
        Stage::Synchronisation | Stage::DespiteAtomics => options.optimistic,
    };
    let wanted = move |decider: &&dyn Decider| {
        allowed && decider.stage() == stage && (options.deciders.is_empty() || options.deciders.contains(&decider.name()))
    };
    ALL.iter().copied().filter(wanted)
}

/// The decider of that name.
pub fn named(name: &str) -> Option<&'static dyn Decider> {
    ALL.iter().copied().find(|decider| decider.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (number, decider) in ALL.iter().enumerate() {
            assert!(ALL[..number].iter().all(|other| other.name() != decider.name()), "{} twice", decider.name());
            assert_eq!(named(decider.name()).map(Decider::stage), Some(decider.stage()));
        }
        assert!(named("").is_none());
    }

    #[test]
    fn each_stage_has_a_decider() {
        for stage in [Stage::Walked, Stage::Causal, Stage::Synchronisation, Stage::DespiteAtomics] {
            assert!(ALL.iter().any(|decider| decider.stage() == stage), "{stage:?}");
        }
    }
}
