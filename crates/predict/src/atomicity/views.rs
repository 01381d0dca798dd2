//! Several variables: what one thread treats together, another one treats in two critical sections; or both do.
//!
//! A *view* is the set of variables that a thread touches in one section of a lock (Artho, Havelund, Biere, "High-Level Data
//! Races", STVR 2003). Two sections of another thread, one after the other, each touch a part of it that the other does not. A
//! section with that view between them conflicts with the first on one variable and with the second on another one: no serial
//! order of the three, with the two as one unit, has the same conflicts in the same order. If no section has both variables, two
//! sections that one function makes count as one in both threads.

use super::units::{Guard, Unit, Units};
use super::{Pattern, Suspect, Violation};
use rashomon_event::{Address, Deadline, EventIndex, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Views of one lock, variables of one view.
const MOST_VIEWS: usize = 64;
const MOST_VARIABLES: usize = 16;
/// Pairs of sections that treat the same two variables.
const MOST_PAIRS: usize = 16;

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
    units: &'u Units,
    deadline: Deadline,
    mut seen: impl FnMut(Suspect<'u>),
    mut hidden: Option<impl FnMut(Suspect<'u>)>,
) {
    let mut give = |suspect: Suspect<'u>| {
        let Violation { check, between: [first, second], act, .. } = suspect.violation;
        if check < first && second < act {
            seen(suspect);
        } else if let Some(hidden) = &mut hidden {
            hidden(suspect);
        }
    };
    for sections in deadline.bound(sections(units)) {
        in_one_section(units, &sections, deadline, &mut give);
        in_two_sections(units, &sections, deadline, &mut give);
    }
}

fn in_one_section<'u>(units: &Units, sections: &[Section<'u>], deadline: Deadline, give: &mut impl FnMut(Suspect<'u>)) {
    let mut views: BTreeMap<Vec<Address>, Vec<&Section<'_>>> = BTreeMap::new();
    for section in sections.iter().filter(|section| (2..=MOST_VARIABLES).contains(&section.uses.len())) {
        views.entry(section.uses.keys().copied().collect()).or_default().push(section);
    }
    let mut watch = deadline.watch();
    for (view, whole) in views.iter().take(MOST_VIEWS) {
        for (one, other) in pairs(sections, view) {
            // Each of the sections with each pair: the loop that takes long.
            let in_time = whole.iter().take_while(|_| !watch.is_over());
            let others = in_time.filter(|section| section.thread != one.thread);
            let suspects = others.filter_map(|section| suspect(view, one, other, section));
            suspects.filter(|Suspect { violation: it, .. }| units.are_near(it.check, it.act)).for_each(&mut *give);
            if watch.is_over() {
                return;
            }
        }
    }
}

/// Two uses by one thread, one after the other, of two variables.
type Uses<'u> = [(Address, &'u Unit); 2];

/// Both threads treat the two variables in two sections each.
fn in_two_sections<'u>(units: &Units, sections: &[Section<'u>], deadline: Deadline, give: &mut impl FnMut(Suspect<'u>)) {
    let mut by_variables: BTreeMap<[Address; 2], Vec<Uses<'u>>> = BTreeMap::new();
    let mut last: FxHashMap<ThreadId, &Section<'u>> = FxHashMap::default();
    for section in deadline.bound(sections) {
        let before = last.insert(section.thread, section);
        let Some(before) = before.filter(|before| !section.after_wait && before.uses.len() <= MOST_VARIABLES) else { continue };
        let only = |mine: &Section<'u>, not: &Section<'u>| -> Vec<(Address, &'u Unit)> {
            let uses = mine.uses.iter().filter(|(address, _)| !not.uses.contains_key(*address));
            uses.map(|(address, unit)| (*address, *unit)).take(MOST_VARIABLES).collect()
        };
        for one in only(before, section) {
            for other in only(section, before) {
                let (mut key, near) = ([one.0, other.0], [one.1, other.1].map(|unit| unit.read.or(unit.write)));
                key.sort_unstable();
                let [Some(first), Some(second)] = near else { continue };
                let all = by_variables.entry(key).or_default();
                if all.len() < MOST_PAIRS && units.are_near(first, second) {
                    all.push([one, other]);
                }
            }
        }
    }
    for all in deadline.bound(by_variables.values()) {
        for mine in all {
            let others = all.iter().filter(|other| other[0].1.thread != mine[0].1.thread);
            others.filter_map(|theirs| nested(mine, theirs)).for_each(&mut *give);
        }
    }
}

/// The other thread's sections between two of this one.
fn nested<'u>(mine: &Uses<'u>, theirs: &Uses<'u>) -> Option<Suspect<'u>> {
    let [(first, before), (second, unit)] = *mine;
    let remote = |address: Address| theirs.iter().find(|(other, _)| *other == address).map(|(_, unit)| *unit);
    let (check, one) = conflicting(before, remote(first)?)?;
    let (act, other) = conflicting(unit, remote(second)?)?;
    let violation = Violation { check, between: [one, other], act, pattern: Pattern::Apart };
    Some(Suspect { violation, before, unit, other: theirs[0].1 })
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
