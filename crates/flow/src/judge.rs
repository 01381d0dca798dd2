//! The three passes that a stored execution deserves (`docs/theory-correlated.md`).

use crate::feed::feed;
use crate::table::Tables;
use crate::walk::Walked;
use rashomon_event::Deadline;
use rashomon_trace::LoadedTrace;
use rashomon_units::{Analysis, Bytes, Event, ExtendedRace, Options, Sharing, Step};
use std::collections::BTreeSet;

/// Words that several threads may share, which are looked for.
const MOST_WORDS: usize = 1 << 22;

#[derive(Clone, Debug)]
pub struct Judged {
    pub races: Vec<ExtendedRace>,
    /// Of several locations, at least two of them shared.
    pub sets: Vec<Vec<Bytes>>,
    pub walked: Walked,
}

/// Races on correlated variables of one recording; `None`: there was no time.
pub fn judge(loaded: &LoadedTrace, options: &Options, deadline: Deadline) -> Option<Judged> {
    let mut tables = Tables::default();
    let mut sharing = Sharing::new(MOST_WORDS, options.limits.range);
    let mut starts = BTreeSet::new();
    feed(loaded, &mut tables, deadline, &mut |thread, line, step| {
        if let Step::Load { bytes, .. } | Step::Store { bytes, .. } = step
            && starts.len() < MOST_WORDS
        {
            starts.insert(bytes.start);
        }
        sharing.event(&Event { thread, line, step });
    })?;
    let shared = sharing.shared();
    let new = |sets: &[Vec<Bytes>]| {
        let mut analysis = Analysis::new(options.clone());
        shared.iter().for_each(|range| analysis.share(*range));
        sets.iter().for_each(|set| analysis.declare(set));
        analysis
    };
    let mut inferred = new(&[]);
    feed(loaded, &mut tables, deadline, &mut |thread, line, step| inferred.event(&Event { thread, line, step }))?;
    // Neighbours are one range: locations are told apart by where accesses begin.
    let is_shared = |start: u64| {
        let behind = shared.partition_point(|range| range.start <= start);
        behind > 0 && start < shared[behind - 1].end()
    };
    let locations = |one: &Bytes| starts.range(one.start..one.end()).filter(|start| is_shared(**start)).count();
    let mut sets = inferred.correlated_sets();
    sets.retain(|set| set.iter().map(locations).sum::<usize>() > 1);
    let mut judging = new(&sets);
    let walked = feed(loaded, &mut tables, deadline, &mut |thread, line, step| judging.event(&Event { thread, line, step }))?;
    Some(Judged { races: judging.races(), sets, walked })
}
