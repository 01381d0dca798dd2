//! Orders of synchronisation in which not even atomic reads come after their writers ([`crate::optimistic`]).

use super::{Decision, Question, Stage, optimistic};
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "despite-atomics"
    }

    fn stage(&self) -> Stage {
        Stage::DespiteAtomics
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        optimistic::decide(question, goals, &question.index.instances)
    }
}
