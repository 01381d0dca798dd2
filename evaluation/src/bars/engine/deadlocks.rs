//! How long it takes to predict the deadlocks of a long trace: from events in memory to a sync-preserving deadlock, or none, for
//! each abstract pattern.

use super::{Row, generator, processor_seconds, row};
use anyhow::Result;
use rashomon_order::{LockGraph, SharedMemory};
use rashomon_packed::{Preset, Shape, to_trace};
use rashomon_predict::closure::Closures;
use rashomon_predict::deadlocks;
use rashomon_predict::index::Index;

/// As the predictor's own.
const THREADS: usize = 5;
const PATTERNS: usize = 10_000;

/// Nested sections of locks that all threads take in one order, so that there is no pattern; and in any order, where nearly
/// everything is one.
pub fn shapes(events: u64) -> [(&'static str, Shape); 2] {
    let nested = Preset::Nest.shape(events, 1);
    [("nested", nested.clone()), ("nested, any order", Shape { ordered: false, ..nested })]
}

pub fn measure(trace: &str, shape: &Shape) -> Result<Row> {
    super::peak_megabytes()?;
    let imported = to_trace(&mut generator(shape)?)?;
    let events = &imported.trace;
    let before = processor_seconds()?;
    let graph = LockGraph::new(events);
    let patterns = graph.patterns(THREADS, PATTERNS);
    let found = if patterns.is_empty() {
        0
    } else {
        let memory = SharedMemory::new(events);
        let index = Index::new(events, &memory);
        let closures = Closures::new(&index);
        patterns.iter().filter(|pattern| deadlocks::sync_preserving(&closures, &graph, pattern).is_some()).count()
    };
    let seconds = processor_seconds()? - before;
    let name = if patterns.is_empty() { "deadlocks, no pattern" } else { "deadlocks" };
    row(trace, name, events.events.len() as u64, seconds, 0, found as u64)
}
