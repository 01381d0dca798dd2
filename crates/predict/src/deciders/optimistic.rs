//! Orders of synchronisation in which atomic reads come after their writers, and plain ones need not ([`crate::optimistic`]).

use super::{Decision, Question, Stage};
use crate::dependences::Dependences;
use crate::optimistic::{NotFound, Optimistic};
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "optimistic"
    }

    fn stage(&self) -> Stage {
        Stage::Synchronisation
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        decide(question, goals, &question.index.atomic)
    }
}

/// `needs`: what has to come before what, beside program order.
pub(super) fn decide(question: &Question<'_, '_>, goals: &[EventIndex], needs: &Dependences) -> Decision {
    let &Question { index, memory, options, .. } = question;
    let (budget, regroup_limit) = (options.search_budget, options.regroup_limit);
    match (Optimistic { index, memory, needs, goals, budget, regroup_limit }).find() {
        Ok(order) => Decision::Witness(order),
        Err(NotFound::Ordered) => Decision::Ordered,
        Err(NotFound::Excluded) => Decision::Undecided,
    }
}
