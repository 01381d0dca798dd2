//! Any reordering, with semaphores exactly, where the exact decision gives up ([`crate::maximal`]).

use super::{Decision, Question, Stage};
use crate::maximal;
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "maximal"
    }

    fn stage(&self) -> Stage {
        Stage::Causal
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        let options = question.options;
        // Without a slice there is nothing to ask again with values.
        let valued = if options.maximal.window.is_some() { question.valued_facts() } else { None };
        let Some(facts) = valued.or_else(|| question.facts()) else { return Decision::Undecided };
        match maximal::decide(facts, goals, &options.maximal, options.deadline).0 {
            maximal::Decision::Witness(order) => Decision::Witness(order),
            maximal::Decision::Refuted => Decision::Refuted,
            maximal::Decision::Undecided => Decision::Undecided,
        }
    }

    fn knows_waits(&self) -> bool {
        true
    }
}
