//! Atomicity violations that an execution shows.

use crate::findings::compose::{Composer, common_bytes, shown};
use crate::findings::identity::{finding_id, is_system, place_key, source_place};
use crate::findings::symbols::Symbols;
use rashomon_event::{ContextId, Deadline, EventIndex, Evidence, Finding, FindingId, FindingKind, Grade, Side, SiteId, Trace};
use rashomon_predict::atomicity::{Pattern, Violation, observed};
use std::collections::HashMap;

/// Where in the sources a violation's accesses stand. Ids are coarser, as they outlive a change of other code.
pub(crate) type Sources = [String; 4];

/// Accesses of other threads between two of one that are remembered.
const MOST_BETWEEN: usize = 64;

/// Whether two accesses touch the same bytes.
fn overlap(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
    let (Some(one), Some(other)) = (trace.access(one), trace.access(other)) else { return false };
    one.overlaps(&other)
}

/// Those of a stored violation. `None`: of some access none is known.
pub(crate) fn sources_of(finding: &Finding) -> Option<Sources> {
    let source = |side: &Side| {
        side.stack.iter().find_map(|frame| {
            let file = frame.file.as_deref().filter(|file| !is_system(file))?;
            Some(format!("{file}:{}:{}", frame.line?, frame.column.unwrap_or_default()))
        })
    };
    let sources: Option<Vec<String>> = finding.sides.iter().map(source).collect();
    match sources?.as_slice() {
        [check, between, act] => Some([check, between, between, act].map(String::clone)),
        [check, first, second, act] => Some([check, first, second, act].map(String::clone)),
        _ => None,
    }
}

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// Those that happened in this execution, as if their outcome were known to be wrong: that is for whoever compares outcomes.
    pub(crate) fn of_violations(&self, deadline: Deadline) -> impl Iterator<Item = Finding> {
        observed(&self.loaded.trace, deadline).into_iter().filter_map(|violation| self.of_shown(&violation))
    }

    /// A violation that happened in this execution.
    pub(crate) fn of_shown(&self, violation: &Violation) -> Option<Finding> {
        Some(Finding { verdict: shown(Grade::Violated), ..self.of_violation(violation)? })
    }

    /// The violation of this execution, if there is one, whose accesses stand there.
    pub(crate) fn violation_at(&self, sources: &Sources, deadline: Deadline) -> Option<Violation> {
        observed(&self.loaded.trace, deadline).into_iter().find(|violation| self.sources_of_violation(violation) == *sources)
    }

    /// The accesses of both threads in their order, as a suspicion.
    pub(crate) fn of_violation(&self, violation: &Violation) -> Option<Finding> {
        let trace = &self.loaded.trace;
        let touched = |mine: EventIndex, theirs: EventIndex| {
            let (mine, theirs) = (trace.access(mine)?, trace.access(theirs)?);
            let (at, size) = common_bytes(&mine, &theirs);
            Some(self.describer.data(at, size))
        };
        let [first, second] = violation.between;
        let mut subjects = vec![touched(violation.check, first)?, touched(second, violation.act)?];
        subjects.dedup();
        Some(Finding {
            subject: subjects.join(" and "),
            sides: violation.accesses().into_iter().map(|event| self.describer.side_before(event)).collect(),
            ..Finding::suspected(
                FindingKind::AtomicityViolation,
                match violation.pattern {
                    Pattern::Views => Evidence::View,
                    Pattern::Stale | Pattern::LooksAgain => Evidence::StaleValue,
                    Pattern::Interposed => Evidence::Interposed,
                    Pattern::Apart => Evidence::Apart,
                    Pattern::Correlated => Evidence::Dependences,
                },
                self.id_of_violation(violation)?,
            )
        })
    }

    /// Which of the places is which matters: the same code may stand on each side.
    fn id_of_violation(&self, violation: &Violation) -> Option<FindingId> {
        let trace = &self.loaded.trace;
        let place = |(role, event): (&str, EventIndex)| {
            let event = trace.event(event);
            format!("{role} {}", place_key(trace, self.symbols, event.site, event.context))
        };
        let [first, second] = violation.between;
        let roles = [("before", violation.check), ("between", first), ("between", second), ("behind", violation.act)];
        let mut places: Vec<String> = roles.into_iter().map(place).collect();
        for event in [violation.check, violation.act] {
            places.extend(self.describer.name_of_data(trace.access(event)?.address));
        }
        places.dedup();
        Some(finding_id(FindingKind::AtomicityViolation, places))
    }

    pub(crate) fn sources_of_violation(&self, violation: &Violation) -> Sources {
        let [first, second] = violation.between;
        [violation.check, first, second, violation.act].map(|event| self.source(event))
    }

    /// Whether the execution ended between the two sections: a thread made the first access and not the last one, and another
    /// thread made its own behind the first.
    pub(crate) fn shows_beginning(&self, sources: &Sources, deadline: Deadline) -> bool {
        let trace = &self.loaded.trace;
        let mut known: HashMap<(SiteId, ContextId), [bool; 4]> = HashMap::new();
        // By thread that made the first access: which of those between each other thread has made since.
        let mut open: Vec<Option<Vec<[bool; 2]>>> = vec![None; trace.threads.len()];
        for index in deadline.bound(trace.indices()) {
            let event = trace.event(index);
            if event.access().is_none() {
                continue;
            }
            let is = *known.entry((event.site, event.context)).or_insert_with(|| {
                let here = self.source(index);
                [0, 1, 2, 3].map(|number| sources[number] == here)
            });
            let thread = event.thread.index();
            if is[1] || is[2] {
                let others = open.iter_mut().enumerate().filter(|(other, _)| *other != thread);
                for between in others.filter_map(|(_, between)| between.as_mut()) {
                    between[thread] = [between[thread][0] || is[1], between[thread][1] || is[2]];
                }
            }
            if is[3] {
                open[thread] = None;
            }
            if is[0] {
                open[thread] = Some(vec![[false; 2]; trace.threads.len()]);
            }
        }
        open.iter().flatten().any(|between| between.contains(&[true; 2]))
    }

    /// Of accesses at these places: the first that is followed by another thread's, which conflict with it and with the last one,
    /// and then by that. Where the first comes again, the operation has begun anew.
    pub(crate) fn extended_at(&self, sources: &Sources, deadline: Deadline) -> Option<Violation> {
        let trace = &self.loaded.trace;
        let mut known: HashMap<(SiteId, ContextId), [bool; 3]> = HashMap::new();
        // By thread that made the first access: which of the others' came since.
        let mut open: Vec<Option<(EventIndex, Vec<EventIndex>)>> = vec![None; trace.threads.len()];
        for index in deadline.bound(trace.indices()) {
            let event = trace.event(index);
            if event.access().is_none() {
                continue;
            }
            let [first, between, last] = *known.entry((event.site, event.context)).or_insert_with(|| {
                let here = self.source(index);
                [sources[0] == here, sources[1] == here || sources[2] == here, sources[3] == here]
            });
            let thread = event.thread.index();
            if between {
                let others = open.iter_mut().enumerate().filter(|(other, _)| *other != thread);
                for (_, others) in others.filter_map(|(_, one)| one.as_mut()).filter(|(_, others)| others.len() < MOST_BETWEEN) {
                    others.push(index);
                }
            }
            if last && let Some((check, others)) = &open[thread] {
                let meets = |mine: EventIndex| others.iter().copied().find(|other| overlap(trace, mine, *other));
                if let (Some(one), Some(other)) = (meets(*check), meets(index))
                    && trace.event(one).thread == trace.event(other).thread
                {
                    let pattern = Pattern::Correlated;
                    return Some(Violation { check: *check, between: [one, other], act: index, pattern });
                }
                open[thread] = None;
            }
            if first {
                open[thread] = Some((index, Vec::new()));
            }
        }
        None
    }

    fn source(&self, event: EventIndex) -> String {
        let event = self.loaded.trace.event(event);
        source_place(&self.loaded.trace, self.symbols, event.site, event.context)
    }
}
