//! The three passes that a stored execution deserves (`docs/theory-correlated.md`).

use crate::feed::feed;
use crate::table::{Lost, Tables};
use crate::walked::Walked;
use rashomon_event::{Deadline, EventIndex};
use rashomon_trace::LoadedTrace;
use rashomon_units::{Analysis, Bytes, Event, ExtendedRace, Options, Sharing};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Words that several threads may share, which are looked for.
const MOST_WORDS: usize = 1 << 22;

#[derive(Clone, Debug)]
pub struct Judged {
    /// Positions in them are events of the recording.
    pub races: Vec<ExtendedRace>,
    /// Of several locations, at least two of them shared.
    pub sets: Vec<Vec<Bytes>>,
    pub walked: Walked,
    /// Modules whose tables are not known: what is done in them is judged as that of code without tables.
    pub lost: BTreeMap<String, Lost>,
}

/// Races on correlated variables of one recording, of sets that are declared and of those that are inferred; `None`: there was
/// no time.
pub fn judge(loaded: &LoadedTrace, options: &Options, declared: &[Vec<Bytes>], deadline: Deadline) -> Option<Judged> {
    let mut tables = Tables::default();
    let at = Cell::new(EventIndex(0));
    let mut sharing = Sharing::new(MOST_WORDS, options.limits.range);
    feed(loaded, &mut tables, deadline, &at, &mut |thread, line, step| sharing.event(&Event { thread, line, step }))?;
    let shared = sharing.shared();
    let new = |sets: &[Vec<Bytes>]| {
        let mut analysis = Analysis::new(options.clone());
        shared.iter().for_each(|range| analysis.share(*range));
        declared.iter().chain(sets).for_each(|set| analysis.declare(set));
        analysis
    };
    let mut inferred = new(&[]);
    feed(loaded, &mut tables, deadline, &at, &mut |thread, line, step| inferred.event(&Event { thread, line, step }))?;
    let sets = inferred.correlated_sets();
    let mut judging = new(&sets);
    let walked = feed(loaded, &mut tables, deadline, &at, &mut |thread, line, step| {
        judging.stand_at(at.get().index() as u64);
        judging.event(&Event { thread, line, step });
    })?;
    // Sets were declared to the last pass: why they are sets is known to the one before.
    let links = |race: &ExtendedRace| race.members.first().map(|member| inferred.links(member.start)).unwrap_or_default();
    let mut races = judging.races();
    races.iter_mut().filter(|race| race.links.is_empty()).for_each(|race| race.links = links(race));
    Some(Judged { races, sets, walked, lost: tables.lost().clone() })
}
