//! Any correct reordering ([`crate::exact`]).

use super::{Decision, Question, Stage};
use crate::exact;
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn stage(&self) -> Stage {
        Stage::Causal
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        let options = question.options;
        exact::decide_until(&question.closures, question.memory, goals, &options.exact, options.deadline)
    }
}
