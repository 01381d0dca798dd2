//! Several variables: what one thread treats together, another one treats in two critical sections.
//!
//! A *view* is the set of variables that a thread touches in one section of a lock (Artho, Havelund, Biere, "High-Level Data
//! Races", STVR 2003). Two sections of another thread, one after the other, each touch a part of it that the other does not. A
//! section with that view between them conflicts with the first on one variable and with the second on another one: no serial
//! order of the three, with the two as one unit, has the same conflicts in the same order.

use super::units::{Guard, Unit, Units};
use super::{Pattern, Suspect, Violation, are_near};
use rashomon_event::{Address, Deadline, EventIndex, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Views of one lock, variables of one view.
const MOST_VIEWS: usize = 64;
const MOST_VARIABLES: usize = 16;

/// A critical section, by what it does with each variable.
struct Section<'u> {
    thread: ThreadId,
    after_wait: bool,
    uses: BTreeMap<Address, &'u Unit>,
}

/// The sections of each lock, in the order of their beginnings.
fn sections(units: &Units) -> Vec<Vec<Section<'_>>> {
    let mut by_lock: BTreeMap<Address, BTreeMap<EventIndex, Section<'_>>> = BTreeMap::new();
    for variable in units.by_variable.iter().filter(|variable| variable.has_several_threads()) {
        let Guard::Lock(lock) = variable.guard else { continue };
        let sections = by_lock.entry(lock).or_default();
        for unit in &variable.units {
            let new = || Section { thread: unit.thread, after_wait: unit.after_wait, uses: BTreeMap::new() };
            sections.entry(unit.begin).or_insert_with(new).uses.insert(variable.address, unit);
        }
    }
    by_lock.into_values().map(|sections| sections.into_values().collect()).collect()
}

/// Those that happened in the trace are given to `seen`, the others to `hidden`.
pub(super) fn suspects<'u>(
    trace: &Trace,
    units: &'u Units,
    deadline: Deadline,
    mut seen: impl FnMut(Suspect<'u>),
    mut hidden: Option<impl FnMut(Suspect<'u>)>,
) {
    for sections in deadline.bound(sections(units)) {
        let mut views: BTreeMap<Vec<Address>, Vec<&Section<'_>>> = BTreeMap::new();
        for section in sections.iter().filter(|section| (2..=MOST_VARIABLES).contains(&section.uses.len())) {
            views.entry(section.uses.keys().copied().collect()).or_default().push(section);
        }
        for (view, whole) in deadline.bound(views.iter().take(MOST_VIEWS)) {
            for (one, other) in pairs(&sections, view) {
                let others = whole.iter().filter(|section| section.thread != one.thread);
                for section in others {
                    let Some(suspect) = suspect(view, one, other, section) else { continue };
                    let Violation { check, between, act, .. } = suspect.violation;
                    if !are_near(trace, check, act) {
                        continue;
                    }
                    if check < between[0] && between[1] < act {
                        seen(suspect);
                    } else if let Some(hidden) = &mut hidden {
                        hidden(suspect);
                    }
                }
            }
        }
    }
}

/// Two sections of a thread, one after the other, that both touch the view.
fn pairs<'s, 'u>(sections: &'s [Section<'u>], view: &[Address]) -> Vec<(&'s Section<'u>, &'s Section<'u>)> {
    let mut last: FxHashMap<ThreadId, &Section<'_>> = FxHashMap::default();
    let mut pairs = Vec::new();
    for section in sections.iter().filter(|section| view.iter().any(|address| section.uses.contains_key(address))) {
        if let Some(before) = last.insert(section.thread, section)
            && !section.after_wait
        {
            pairs.push((before, section));
        }
    }
    pairs
}

/// Of the variables that only one of the two sections touches, the first ones that conflict.
fn suspect<'u>(view: &[Address], one: &Section<'u>, other: &Section<'u>, whole: &Section<'u>) -> Option<Suspect<'u>> {
    let conflict = |mine: &Section<'u>, not: &Section<'u>| {
        view.iter().filter(|address| !not.uses.contains_key(*address)).find_map(|address| {
            let (mine, theirs) = (*mine.uses.get(address)?, *whole.uses.get(address)?);
            conflicting(mine, theirs).map(|(local, remote)| (mine, local, remote, theirs))
        })
    };
    let (before, check, first, remote) = conflict(one, other)?;
    let (unit, act, second, _) = conflict(other, one)?;
    let violation = Violation { check, between: [first, second], act, pattern: Pattern::Views };
    Some(Suspect { violation, before, unit, other: remote })
}

/// An access of each, one of which writes.
fn conflicting(mine: &Unit, theirs: &Unit) -> Option<(EventIndex, EventIndex)> {
    match (mine.write, theirs.write) {
        (Some(write), _) => theirs.read.or(theirs.write).map(|remote| (write, remote)),
        (None, Some(remote)) => mine.read.map(|read| (read, remote)),
        (None, None) => None,
    }
}
