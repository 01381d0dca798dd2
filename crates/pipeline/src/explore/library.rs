//! Threads in which no code of the program runs, such as that of the harness of Rust's tests: it creates the thread of the
//! test, waits for the result and prints it. In a check they go on when no other thread can, so that schedules are those of the
//! program.

use crate::findings::describe::Describer;
use crate::findings::symbols::Symbols;
use rashomon_abi::exploration::SET_THREADS;
use rashomon_event::finding::Origin;
use rashomon_event::library::is_library;
use rashomon_event::{ContextId, Frame, SiteId};
use rashomon_trace::LoadedTrace;
use std::collections::{BTreeMap, BTreeSet};

/// By number. None: all are such threads, or the recording does not say where its calls come from.
pub(super) fn of_library<S: Symbols + ?Sized>(loaded: &LoadedTrace, symbols: &S) -> u64 {
    let trace = &loaded.trace;
    let mut places: Vec<(BTreeSet<SiteId>, BTreeSet<ContextId>)> = vec![Default::default(); trace.threads.len().min(SET_THREADS)];
    for event in &trace.events {
        if let Some((sites, contexts)) = places.get_mut(event.thread.index()) {
            sites.insert(event.site);
            contexts.insert(event.context);
        }
    }
    let describer = Describer::new(trace, &loaded.sync_objects, symbols);
    let mut known = BTreeMap::new();
    let mut whose = |site: SiteId| *known.entry(site).or_insert_with(|| Whose::of(&describer.site(site)));
    let mut last = 0;
    for (number, (sites, contexts)) in places.iter().enumerate() {
        let mut all = sites.iter().copied().chain(contexts.iter().flat_map(|context| trace.callers(*context)));
        let mut is_of_library = false;
        let is_of_program = all.any(|site| {
            let whose = whose(site);
            is_of_library |= whose == Whose::Library;
            whose == Whose::Program
        });
        last |= u64::from(is_of_library && !is_of_program) << number;
    }
    if last.count_ones() as usize == trace.threads.len() { 0 } else { last }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Program,
    Library,
    Nobody,
}

impl Whose {
    /// Of a site, with what is inlined there.
    fn of(frames: &[Frame]) -> Self {
        if frames.iter().any(|frame| frame.origin() != Origin::Library) {
            Self::Program
        } else if frames.iter().any(is_library) {
            Self::Library
        } else {
            Self::Nobody
        }
    }
}
