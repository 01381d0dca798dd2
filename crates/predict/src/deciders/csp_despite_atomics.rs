//! Any order of the CSP model, values ignored.

use super::{Decision, Question, Stage, csp};
use rashomon_event::EventIndex;
use rashomon_refinement::facts::Atomics;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "csp-despite-atomics"
    }

    fn stage(&self) -> Stage {
        Stage::DespiteAtomics
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        csp::decide(question, goals, Atomics::Free, &question.index.instances)
    }

    fn knows_waits(&self) -> bool {
        true
    }
}
