//! What is predicted, and what was counted on the way.

use rashomon_event::{Candidate, SiteId, Witness};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub candidate: Candidate,
    pub witness: Option<Witness>,
    /// No correct reordering of the trace shows any of the event pairs looked at: at most [`rashomon_order::OTHERS`] and the
    /// representatives, spread over the trace.
    pub refuted: bool,
    /// In the witness some read sees another write than it saw: of the same value, or nothing in it depends on the read.
    pub by_value: bool,
}

/// What values of plain accesses could show that the trace does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Where the bytes are read and written that candidates depend on.
    pub sites: BTreeSet<SiteId>,
    /// Candidates that are refuted unless values show them.
    pub candidates: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub events: usize,
    pub shared_granules: usize,
    /// Site pairs.
    pub happens_before_pairs: usize,
    pub hybrid_pairs: usize,
    pub lock_dependencies: usize,
    pub deadlock_patterns: usize,
    /// Predictions, by witness.
    pub causal: usize,
    /// Of the causal ones, by the least class of reorderings that has them.
    pub sync_preserving: usize,
    pub sync_reversal: usize,
    pub reordered: usize,
    pub synchronisation: usize,
    pub without_witness: usize,
    /// And those that rest on values.
    pub by_value: usize,
    /// Predictions of which no causal witness can exist, whatever else they have.
    pub refuted: usize,
    /// Refuted candidates that values could show which the trace does not tell.
    pub values_may_tell: usize,
    /// Site pairs or patterns beyond the limits of [`Options`].
    pub not_looked_at: usize,
    /// Of those, what there was no time for.
    pub out_of_time: usize,
    /// There was no time for all of the trace, so that not even the suspicions are all known.
    pub cut_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predictions {
    pub findings: Vec<Prediction>,
    pub statistics: Statistics,
}
