//! Optimistic sync-reversal: sections that stay open come last of their lock ([`crate::reversal`]).

use super::{Decision, Question, Stage};
use crate::reversal::sync_reversal;
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "sync-reversal"
    }

    fn stage(&self) -> Stage {
        Stage::Causal
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        sync_reversal(&question.closures, question.memory, goals).map_or(Decision::Undecided, Decision::Witness)
    }
}
