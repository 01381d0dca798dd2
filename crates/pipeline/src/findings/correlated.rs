//! Races on correlated variables, as findings: suspicions.

use crate::findings::compose::Composer;
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_event::{Address, ContextId, EventIndex, Evidence, Finding, FindingKind, Side, SiteId, ThreadId};
use rashomon_flow::{Judged, Lost};
use rashomon_units::{Bytes, Dependence, ExtendedRace, Line, Link, Reason, Side as Unit};
use std::collections::BTreeMap;

/// Members and dependences that are told.
const MOST: usize = 6;
/// Ranges of a set that are looked at for names, and bytes of each.
const MOST_RANGES: usize = 16;
const MOST_BYTES: usize = 1024;
/// Places in the code that are looked at for files without tables.
const MOST_PLACES: usize = 4096;

/// What of a program cannot be judged: modules whose tables are not known, and source files that were compiled without the
/// plugin, if others were compiled with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unjudged {
    lost: BTreeMap<String, Lost>,
    /// Of source files, whether tables have accesses in them.
    files: BTreeMap<String, bool>,
}

impl Unjudged {
    pub fn notes(&self) -> Vec<String> {
        let lost = self.lost.iter().map(|(path, why)| format!("correlated variables in {path} are not judged: {why}"));
        let without: Vec<&str> = self.files.iter().filter(|(_, placed)| !**placed).map(|(file, _)| file.as_str()).collect();
        let is_half_built = self.files.values().any(|placed| *placed) && !without.is_empty() && self.lost.is_empty();
        let half = is_half_built.then(|| {
            let (named, more) = (without[..without.len().min(MOST)].join(", "), without.len().saturating_sub(MOST));
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("built without --deep, so that correlated variables are not judged there: {named}{more}")
        });
        lost.chain(half).collect()
    }
}

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// Adds what an execution shows of it.
    pub(crate) fn unjudged(&self, judged: &Judged, all: &mut Unjudged) {
        all.lost.extend(judged.lost.iter().map(|(path, why)| (path.clone(), *why)));
        for (line, is_outside) in judged.walked.places().take(MOST_PLACES) {
            // The function that the code is of, not what was inlined into it.
            let Some(file) = self.describer.site(SiteId(line.0)).pop().and_then(|frame| frame.file) else { continue };
            *all.files.entry(file).or_default() |= !is_outside;
        }
    }

    pub(crate) fn of_extended_race(&self, race: &ExtendedRace) -> Finding {
        let named = |one: &Bytes| self.describer.data(Address(one.start), u64::from(one.len));
        let pieces: Vec<Bytes> = race.members.iter().take(MOST_RANGES).flat_map(|range| self.variables(range)).collect();
        let mut members: Vec<String> = pieces.iter().take(MOST).map(named).collect();
        members.dedup();
        if pieces.len() > MOST {
            members.push(format!("{} more", pieces.len() - MOST));
        }
        let places = race.sides.iter().map(|side| self.place_at(side.line)).collect();
        let mut notes = vec![self.reason(&race.reason)];
        // What leads from member to member, or to what it comes from.
        let is_member = |at: &u64| race.members.iter().any(|range| (range.start..range.end()).contains(at));
        let tells = |link: &&Link| link.from.iter().chain(&link.to).any(is_member);
        notes.extend(race.links.iter().filter(tells).take(MOST).map(|link| self.link(link)));
        notes.extend(self.critical_section(race));
        Finding {
            subject: members.join(" and "),
            sides: race.sides.iter().map(|side| self.side_of_unit(side)).collect(),
            notes,
            ..Finding::suspected(
                FindingKind::AtomicityViolation,
                Evidence::Dependences,
                finding_id(FindingKind::AtomicityViolation, places),
            )
        }
    }

    /// What would make the unit one operation that is not, from its first access to the set to its last.
    fn critical_section(&self, race: &ExtendedRace) -> Option<String> {
        let is_open = |side: &&Unit| side.locks.is_empty();
        let side = race.sides.iter().find(is_open).unwrap_or(&race.sides[0]);
        let (first, last) = side.extent?;
        let place = |position: u64| {
            let index = u32::try_from(position).ok().map(EventIndex)?;
            let site = self.trace().events.get(index.index())?.site;
            let frame = self.describer.site(site).into_iter().next()?;
            Some(format!("{} {}:{}", frame.function?, frame.file?, frame.line?))
        };
        let (from, to) = (place(first)?, place(last)?);
        let lock = match race.reason {
            Reason::Interrupted(lock) => self.describer.lock(Address(lock.0 & !(1 << 63))),
            Reason::Unprotected => "one lock".to_owned(),
            Reason::DifferentLocks => "a lock that all who use them hold".to_owned(),
        };
        Some(format!("holding {lock} from {from} to {to} would make it one operation"))
    }

    /// A range by the variables that it lies in: neighbours are one range.
    fn variables(&self, range: &Bytes) -> Vec<Bytes> {
        let mut pieces: Vec<(Bytes, Option<String>)> = Vec::new();
        for start in (range.start..range.end()).take(MOST_BYTES) {
            let name = self.describer.name_of_data(Address(start));
            match pieces.last_mut() {
                Some((piece, last)) if *last == name => piece.len += 1,
                _ => pieces.push((Bytes::new(start, 1), name)),
            }
        }
        pieces.into_iter().map(|(piece, _)| piece).collect()
    }

    fn place_at(&self, line: Line) -> String {
        format!("unit {}", place_key(self.trace(), self.symbols, SiteId(line.0), ContextId::ROOT))
    }

    fn side_of_unit(&self, unit: &Unit) -> Side {
        let action = if unit.wrote { "works on them, and writes here" } else { "works on them, and reads here" };
        let site = SiteId(unit.line.0);
        self.describer.side(ThreadId(unit.thread.0), action.to_owned(), site, ContextId::ROOT, None)
    }

    fn reason(&self, reason: &Reason) -> String {
        match reason {
            Reason::Unprotected => "one of the two operations holds no lock throughout".to_owned(),
            Reason::Interrupted(lock) => {
                format!("one of the two gives {} back and takes it again", self.describer.lock(Address(lock.0 & !(1 << 63))))
            }
            Reason::DifferentLocks => "each holds a lock throughout, but not the same one".to_owned(),
        }
    }

    fn link(&self, link: &Link) -> String {
        let name = |address: Option<u64>| address.map_or_else(|| "a value".to_owned(), |at| self.describer.data(Address(at), 1));
        let place = self.describer.site(SiteId(link.line.0)).into_iter().next();
        let at = place.and_then(|frame| Some(format!("{}:{}", frame.file?, frame.line?)));
        let at = at.map_or_else(String::new, |at| format!(" at {at}"));
        let (from, to) = (name(link.from), name(link.to));
        match link.dependence {
            Dependence::Data => format!("{from} and {to} are used together{at}"),
            Dependence::Control => format!("{from} decides whether {to} is used{at}"),
            Dependence::Assignment => format!("{to} is computed from {from}{at}"),
        }
    }
}
