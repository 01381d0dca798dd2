//! One variable: two accesses, and between them one of another thread that fits no serial order.

use super::units::{Kind, Unit, Units, Variable};
use super::{Pattern, Suspect, Violation};
use rashomon_event::{Deadline, EventIndex, ThreadId, Trace};
use rustc_hash::FxHashMap;

/// Two units of one thread, one after the other.
struct Pair<'u> {
    before: &'u Unit,
    unit: &'u Unit,
    check: EventIndex,
    act: EventIndex,
    /// What another thread does between them.
    between: Kind,
    pattern: Pattern,
}

/// Those that happened in the trace are given to `seen`, the others to `hidden`.
pub(super) fn suspects<'u>(
    trace: &Trace,
    units: &'u Units,
    deadline: Deadline,
    mut seen: impl FnMut(Suspect<'u>),
    mut hidden: Option<impl FnMut(Suspect<'u>)>,
) {
    let mut watch = deadline.watch();
    for (pair, variable) in pairs(trace, units) {
        let Pair { before, unit, check, act, between, pattern } = pair;
        let suspect = |(other, remote): (&'u Unit, EventIndex)| {
            let violation = Violation { check, between: [remote; 2], act, pattern };
            Suspect { violation, before, unit, other }
        };
        variable.between([check, act], unit.thread, between).map(suspect).for_each(&mut seen);
        if let Some(hidden) = &mut hidden {
            let is_elsewhere =
                |(other, remote): &(&Unit, EventIndex)| other.thread != unit.thread && (*remote < check || act < *remote);
            let in_time = variable.with(between).take_while(|_| !watch.is_over());
            in_time.filter(is_elsewhere).map(suspect).for_each(hidden);
        }
        if watch.is_over() {
            break;
        }
    }
}

/// Pairs that may be meant to be one unit, with their variable.
fn pairs<'u, 't>(trace: &'t Trace, units: &'u Units) -> impl Iterator<Item = (Pair<'u>, &'u Variable)> + use<'u, 't> {
    let of = units;
    units.by_variable.iter().flat_map(move |variable| {
        let mut last: FxHashMap<ThreadId, &Unit> = FxHashMap::default();
        let units = if variable.has_several_threads() { variable.units.as_slice() } else { &[] };
        units.iter().filter_map(move |unit| {
            let before = last.insert(unit.thread, unit)?;
            Some((pair(trace, of, before, unit)?, variable))
        })
    })
}

/// The likeliest of the cases that has no serial order.
fn pair<'u>(trace: &Trace, units: &Units, before: &'u Unit, unit: &'u Unit) -> Option<Pair<'u>> {
    if unit.after_wait {
        return None;
    }
    let looks = unit.read.filter(|_| unit.rereads);
    let (check, act, between, pattern) = match (before.read, before.write, unit.write, looks) {
        (Some(check), None, Some(act), None) if !unit.modifies => (check, act, Kind::Write, Pattern::Stale),
        (Some(check), None, Some(act), Some(_)) if !unit.modifies => (check, act, Kind::Write, Pattern::LooksAgain),
        (Some(check), None, _, Some(act)) | (_, Some(check), _, Some(act)) => (check, act, Kind::Write, Pattern::Interposed),
        (_, Some(check), Some(act), None) => (check, act, Kind::Read, Pattern::Interposed),
        _ => return None,
    };
    // Called from the same places: in one container's member two sections of a function meet, too.
    let place = |index| (trace.event(index).site, trace.event(index).context);
    // At the same place it begins anew.
    let begins_anew = place(check) == place(act) || looks.is_some_and(|read| Some(place(read)) == before.read.map(place));
    (!begins_anew && units.are_near(check, act)).then_some(Pair { before, unit, check, act, between, pattern })
}
