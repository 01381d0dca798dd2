//! One variable: read, remote write, local write.

use super::units::{Unit, Units, Variable};
use super::{Pattern, Suspect, Violation, are_near};
use rashomon_event::{Deadline, ThreadId, Trace};
use rustc_hash::FxHashMap;

/// Those that happened in the trace are given to `seen`, the others to `hidden`.
pub(super) fn suspects<'u>(
    trace: &Trace,
    units: &'u Units,
    deadline: Deadline,
    mut seen: impl FnMut(Suspect<'u>),
    mut hidden: Option<impl FnMut(Suspect<'u>)>,
) {
    for (before, unit, variable) in deadline.bound(pairs(units)) {
        let (Some(check), Some(act)) = (before.read, unit.write) else { continue };
        let suspect = |other| violation(trace, before, unit, other).map(|violation| Suspect { violation, before, unit, other });
        variable.between(check, act, unit.thread).filter_map(suspect).for_each(&mut seen);
        if let Some(hidden) = &mut hidden {
            let is_elsewhere = |other: &&Unit| other.write.is_some_and(|write| write < check || act < write);
            variable.remote(unit.thread).filter(is_elsewhere).filter_map(suspect).for_each(hidden);
        }
    }
}

/// Pairs of units of one thread, one after the other, that are meant to be one, with their variable.
fn pairs(units: &Units) -> impl Iterator<Item = (&Unit, &Unit, &Variable)> {
    units.by_variable.iter().flat_map(|variable| {
        let mut last: FxHashMap<ThreadId, &Unit> = FxHashMap::default();
        let units = if variable.has_several_threads() { variable.units.as_slice() } else { &[] };
        units.iter().filter_map(move |unit| {
            let before = last.insert(unit.thread, unit)?;
            is_suspect(before, unit).then_some((before, unit, variable))
        })
    })
}

/// The first only reads, the second writes.
fn is_suspect(before: &Unit, unit: &Unit) -> bool {
    before.read.is_some() && before.write.is_none() && unit.write.is_some() && !unit.after_wait && !unit.modifies
}

/// The two units and the one between, as a violation; `None`: the second begins anew.
fn violation(trace: &Trace, before: &Unit, unit: &Unit, between: &Unit) -> Option<Violation> {
    let (check, act, between) = (before.read?, unit.write?, between.write?);
    let site = |index| trace.event(index).site;
    let begins_anew = unit.rereads && unit.read.is_some_and(|read| site(read) == site(check));
    if begins_anew || !are_near(trace, check, act) {
        return None;
    }
    let pattern = if unit.rereads { Pattern::LooksAgain } else { Pattern::Stale };
    Some(Violation { check, between: [between; 2], act, pattern })
}
