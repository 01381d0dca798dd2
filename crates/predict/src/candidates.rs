//! What the linear passes over a trace find: pairs of accesses and lock-order patterns that are worth a decision.

use crate::options::Options;
use crate::prediction::{Prediction, Statistics};
use rashomon_event::{Candidate, CandidateKind, Evidence, SiteId, Trace};
use rashomon_order::{LockGraph, Model, Pattern, SharedMemory, SitePair, hybrid_until, races_until};
use std::collections::BTreeSet;

/// What the linear passes find, before anything is decided.
pub struct Candidates {
    pub memory: SharedMemory,
    pub unordered: Vec<SitePair>,
    /// Hybrid pairs of other sites.
    pub suspects: Vec<SitePair>,
    pub graph: LockGraph,
    pub patterns: Vec<Pattern>,
    pub statistics: Statistics,
}

impl Candidates {
    pub fn new(trace: &Trace, options: &Options) -> Self {
        let side_by_side = trace.events.len() > SIDE_BY_SIDE;
        let deadline = options.deadline;
        let (memory, (graph, patterns)) = both(
            side_by_side,
            || SharedMemory::until(trace, deadline),
            || {
                let graph = LockGraph::until(trace, deadline);
                let patterns = graph.patterns(options.deadlock_threads, options.patterns);
                (graph, patterns)
            },
        );
        // Which bytes matter is not known then.
        let memory_is_known = memory.is_complete();
        let (unordered, mut suspects) = both(
            side_by_side && memory.contested() > 0,
            || {
                if memory_is_known {
                    races_until(trace, &memory, Model::CPP20, options.representatives, deadline)
                } else {
                    Vec::new()
                }
            },
            || if memory_is_known { hybrid_until(trace, &memory, options.representatives, deadline) } else { Vec::new() },
        );
        let statistics = Statistics {
            events: trace.events.len(),
            shared_granules: memory.len(),
            happens_before_pairs: unordered.len(),
            hybrid_pairs: suspects.len(),
            lock_dependencies: graph.dependencies.len(),
            deadlock_patterns: patterns.len(),
            cut_short: deadline.is_over(),
            ..Statistics::default()
        };
        let known: BTreeSet<(SiteId, SiteId)> = unordered.iter().map(|pair| pair.sites).collect();
        suspects.retain(|pair| !known.contains(&pair.sites));
        Self { memory, unordered, suspects, graph, patterns, statistics }
    }

    /// What is told where there is no time to decide anything.
    pub fn without_witnesses(self, found: &mut impl FnMut(Prediction)) -> Statistics {
        let mut statistics = self.statistics;
        let out_of_time = self.unordered.len() + self.suspects.len() + self.patterns.len();
        statistics.out_of_time += out_of_time;
        statistics.not_looked_at += out_of_time;
        statistics.without_witness += self.unordered.len();
        for SitePair { pairs, occurrences, .. } in self.unordered {
            let (first, second) = pairs[0];
            let candidate =
                Candidate { kind: CandidateKind::Race { first, second }, evidence: Evidence::HappensBefore, occurrences };
            found(Prediction { candidate, witness: None, refuted: false, by_value: false });
        }
        statistics
    }

    pub fn is_empty(&self) -> bool {
        self.unordered.is_empty() && self.suspects.is_empty() && self.patterns.is_empty()
    }
}

/// Events from which on a second thread is worth its start.
const SIDE_BY_SIDE: usize = 1 << 16;

/// Runs two passes, side by side if told so.
fn both<A, B: Send>(side_by_side: bool, one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    if !side_by_side {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
