//! Atomicity violations that an execution shows.

use crate::findings::compose::{Composer, common_bytes, shown};
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_event::{Deadline, EventIndex, Evidence, Finding, FindingId, FindingKind, Grade};
use rashomon_predict::atomicity::{Violation, observed};

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

    /// The read, the write of the other thread and the write behind it, as a suspicion.
    pub(crate) fn of_violation(&self, violation: &Violation) -> Option<Finding> {
        let trace = &self.loaded.trace;
        let (check, act) = (trace.event(violation.check).access()?, trace.event(violation.act).access()?);
        let (at, size) = common_bytes(&check, &act);
        let events = [violation.check, violation.between, violation.act];
        Some(Finding {
            subject: self.describer.data(at, size),
            sides: events.map(|event| self.describer.side_before(event)).to_vec(),
            ..Finding::suspected(FindingKind::AtomicityViolation, Evidence::StaleValue, self.id_of_violation(violation)?)
        })
    }

    /// Which of the places is which matters: the same code may stand on each side.
    fn id_of_violation(&self, violation: &Violation) -> Option<FindingId> {
        let trace = &self.loaded.trace;
        let place = |(role, event): (&str, EventIndex)| {
            let event = trace.event(event);
            format!("{role} {}", place_key(trace, self.symbols, event.site, event.context))
        };
        let roles = [("reads", violation.check), ("between", violation.between), ("writes", violation.act)];
        let mut places = roles.map(place).to_vec();
        places.extend(self.describer.name_of_data(trace.event(violation.act).access()?.address));
        Some(finding_id(FindingKind::AtomicityViolation, places))
    }
}
