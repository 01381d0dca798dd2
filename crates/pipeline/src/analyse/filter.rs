//! Redundant accesses, left out before a linear analysis.
//!
//! Guarantee: what [`Filter::keeps`] says, for the analyses that [`Filter::serves`] names. For no other one: `shb` wants each
//! read's own write, Eraser's states (`lockset`) a variable's first thread, the rest every conflict.

use crate::analyse::linear::Kind;
use rashomon_engine::redundancy::Redundancy;
use rashomon_event::Trace;
use rashomon_filter::{Guarantee, Options, Relation, Statistics, Tree, without};
use rashomon_packed::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// TREE (Rajagopalan 2016, ch. 3): what a detector of races need not see to find every pair of code locations.
    Tree,
    /// The same, and accesses to the same bytes at another code location (its §3.6).
    Span,
    /// What only repeats one of its thread's segment (Carril and Tichy 2015, §3).
    Segment,
}

impl Filter {
    /// Whether the analysis finds the same with and without the filter.
    pub const fn serves(self, kind: Kind) -> bool {
        matches!(kind, Kind::Hb | Kind::Hybrid)
    }

    /// What stays as it would be without the filter.
    pub const fn keeps(self) -> &'static str {
        match self {
            Self::Tree => "every racing pair of code locations stays",
            Self::Span | Self::Segment => "every racing variable stays, not every pair of code locations",
        }
    }

    /// The trace without its redundant accesses, whose indices stay free; `None` if the filter works on a stream
    /// ([`Filter::stream`]).
    pub fn trace(self, trace: &Trace) -> Option<(Trace, Statistics)> {
        let guarantee = match self {
            Self::Tree => Guarantee::SitePairs,
            Self::Span => Guarantee::Addresses,
            Self::Segment => return None,
        };
        let (kept, statistics) = Tree::kept(trace, Options { guarantee, ..Options::new(Relation::RECORDER) });
        Some((without(trace, &kept), statistics))
    }

    /// The events without the redundant ones, if the filter works on a stream; all of them otherwise.
    pub fn stream<'t>(self, source: Box<dyn Source + Send + 't>) -> Box<dyn Source + Send + 't> {
        match self {
            Self::Segment => Box::new(Redundancy::new(source)),
            Self::Tree | Self::Span => source,
        }
    }

    /// What was left out, and what that leaves true.
    pub fn words(self, statistics: Option<&Statistics>) -> String {
        let left_out = statistics.map_or_else(
            || "accesses that repeat one of their thread's segment were left out".to_owned(),
            |counted| format!("{} of {} accesses were left out as redundant", counted.skipped(), counted.accesses),
        );
        format!("{left_out}: {}", self.keeps())
    }
}
