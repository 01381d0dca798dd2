//! Sync-preserving reorderings: sections of a lock keep their order ([`crate::closure`]).

use super::{Decision, Question, Stage};
use rashomon_event::EventIndex;

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "sync-preserving"
    }

    fn stage(&self) -> Stage {
        Stage::Walked
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        let cut = question.closures.sync_preserving(goals).ok();
        cut.and_then(|cut| question.regroup(&cut)).map_or(Decision::Undecided, Decision::Witness)
    }

    fn knows_waits(&self) -> bool {
        true
    }
}
