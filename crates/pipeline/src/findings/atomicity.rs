//! Atomicity violations that an execution shows.

use crate::findings::compose::{Composer, common_bytes, shown};
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_event::{Deadline, EventIndex, Evidence, Finding, FindingId, FindingKind, Grade};
use rashomon_predict::atomicity::{Pattern, Violation, observed};

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// Those that happened in this execution, as if their outcome were known to be wrong: that is for whoever compares outcomes.
    pub(crate) fn of_violations(&self, deadline: Deadline) -> impl Iterator<Item = Finding> {
        observed(&self.loaded.trace, deadline).into_iter().filter_map(|violation| {
            let finding = self.of_violation(&violation)?;
            Some(Finding { verdict: shown(Grade::Violated), ..finding })
        })
    }

    /// Whether this execution shows the violation with that id.
    pub(crate) fn shows_violation(&self, id: &FindingId, deadline: Deadline) -> bool {
        observed(&self.loaded.trace, deadline).iter().any(|violation| self.id_of_violation(violation).as_ref() == Some(id))
    }

    /// The accesses of both threads in their order, as a suspicion.
    pub(crate) fn of_violation(&self, violation: &Violation) -> Option<Finding> {
        let trace = &self.loaded.trace;
        let touched = |mine: EventIndex, theirs: EventIndex| {
            let (mine, theirs) = (trace.event(mine).access()?, trace.event(theirs).access()?);
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
            places.extend(self.describer.name_of_data(trace.event(event).access()?.address));
        }
        places.dedup();
        Some(finding_id(FindingKind::AtomicityViolation, places))
    }
}
