//! The three passes that a stored execution deserves (`docs/theory-correlated.md`).

use crate::feed::feed;
use crate::table::Tables;
use crate::walk::Walked;
use rashomon_event::Deadline;
use rashomon_trace::LoadedTrace;
use rashomon_units::{Analysis, Bytes, Event, ExtendedRace, Options, Sharing};

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
    feed(loaded, &mut tables, deadline, &mut |thread, line, step| sharing.event(&Event { thread, line, step }))?;
    let shared = sharing.shared();
    let new = |sets: &[Vec<Bytes>]| {
        let mut analysis = Analysis::new(options.clone());
        shared.iter().for_each(|range| analysis.share(*range));
        sets.iter().for_each(|set| analysis.declare(set));
        analysis
    };
    let mut inferred = new(&[]);
    feed(loaded, &mut tables, deadline, &mut |thread, line, step| inferred.event(&Event { thread, line, step }))?;
    let sets = inferred.correlated_sets();
    let mut judging = new(&sets);
    let walked = feed(loaded, &mut tables, deadline, &mut |thread, line, step| judging.event(&Event { thread, line, step }))?;
    Some(Judged { races: judging.races(), sets, walked })
}
