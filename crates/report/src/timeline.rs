//! Timelines of recordings, for formats that draw them. Formats read no recordings: who writes a report does, if the format shows
//! timelines. That of the execution which proved a finding comes with the finding.

use rashomon_event::FindingId;
pub use rashomon_event::timeline::{Moment, Timeline};
use std::collections::BTreeMap;

/// Findings whose executions are drawn: the first of a report. Of those behind, the schedule is told.
pub const DRAWN: usize = 20;

/// The timelines of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timelines {
    /// Of a recording, around each finding's accesses.
    pub recorded: BTreeMap<FindingId, Timeline>,
    /// All of the first recording, or its last part.
    pub whole: Option<Timeline>,
}
