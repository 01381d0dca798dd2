//! Findings that the recorded execution itself shows: wrong uses of locks, threads and memory.

use crate::analyse::foreseen::Foreseen;
use crate::analyse::lives::lifetime_races;
use crate::analyse::modules::Unseen;
use crate::findings::compose::{Composer, shown};
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_event::{AccessClass, Deadline, EventIndex, Evidence, Finding, FindingKind, Grade, Side, ThreadId, Verdict};
use rashomon_trace::{LoadedTrace, Misuse, MisuseRecord, Moment};

pub const fn misuse_kind(misuse: Misuse) -> FindingKind {
    match misuse {
        Misuse::UnlockNotHeld => FindingKind::UnlockNotHeld,
        Misuse::DestroyLocked => FindingKind::DestroyLocked,
        Misuse::DestroyAwaited => FindingKind::DestroyAwaited,
        Misuse::DoubleLock => FindingKind::DoubleLock,
        Misuse::UseOfDestroyed => FindingKind::UseOfDestroyed,
        Misuse::ThreadLeak => FindingKind::ThreadLeak,
        Misuse::UseAfterFree => FindingKind::UseAfterFree,
        Misuse::RacesWithInit | Misuse::RacesWithDestroy | Misuse::RacesWithFree | Misuse::RacesWithAllocation => {
            FindingKind::LifetimeRace
        }
    }
}

/// The same wrong thing, at the same place, in an execution.
pub(crate) fn misuse_like(loaded: &LoadedTrace, finding: &Finding) -> Option<MisuseRecord> {
    let place = finding.sides.first().and_then(|side| side.stack.first())?;
    let of_order = match finding.kind {
        FindingKind::LifetimeRace => lifetime_races(loaded, Deadline::NEVER),
        _ => Vec::new(),
    };
    loaded.misuses.iter().chain(&of_order).copied().find(|record| {
        let site = loaded.trace.site(record.at.site);
        let module = site.module.and_then(|module| loaded.trace.modules.get(module as usize));
        misuse_kind(record.misuse) == finding.kind
            && Some(site.offset) == place.offset.checked_add(1)
            && module.is_some_and(|module| module.path == place.module)
    })
}

/// What is to be said of what was seen while the process was about to end.
fn late_words(record: &MisuseRecord) -> Option<&'static str> {
    match misuse_kind(record.misuse) {
        FindingKind::ThreadLeak if record.late => {
            Some("the thread ended because the end of the process was delayed for its sake; it may as well never have ended")
        }
        FindingKind::LifetimeRace if record.late => {
            Some("one of the two was seen because the end of the process was delayed; it may as well never have happened")
        }
        _ => None,
    }
}

impl<S: Symbols + ?Sized> Composer<'_, S> {
    pub fn of_misuse(&self, record: &MisuseRecord) -> Finding {
        let trace = &self.loaded.trace;
        let lock = || self.describer.lock(record.object);
        let used = || trace.events.get(record.at.before.index()).and_then(|event| event.access());
        let block = || used().map_or_else(|| "memory".to_owned(), |used| self.describer.data(used.address, u64::from(used.size)));
        let frees = used().is_some_and(|used| used.class == AccessClass::End);
        let kind = misuse_kind(record.misuse);
        let (subject, action, earlier) = match record.misuse {
            Misuse::UnlockNotHeld => (lock(), format!("releases {}", lock()), "took it"),
            Misuse::DestroyLocked => (lock(), format!("destroys {}", lock()), "took it"),
            Misuse::DestroyAwaited => (lock(), format!("destroys {}", lock()), "waits for it"),
            Misuse::DoubleLock => (lock(), format!("takes {}", lock()), "took it"),
            Misuse::UseOfDestroyed => (lock(), format!("uses {}", lock()), "destroyed it"),
            Misuse::UseAfterFree if frees => (block(), format!("frees {} once more", block()), "freed it"),
            Misuse::UseAfterFree => (block(), format!("uses {}", block()), "freed it"),
            Misuse::RacesWithInit => (lock(), self.use_of(record.at.before), "initialises it"),
            Misuse::RacesWithDestroy => (lock(), self.use_of(record.at.before), "destroys it"),
            Misuse::RacesWithFree => (lock(), self.use_of(record.at.before), "frees it"),
            Misuse::RacesWithAllocation => (block(), self.use_of(record.at.before), "allocates it"),
            Misuse::ThreadLeak => {
                let child = u32::try_from(record.object.0).ok().and_then(|number| trace.threads.get(ThreadId(number).index()));
                let name = child.map_or_else(|| "a thread".to_owned(), |child| format!("thread {}", child.path));
                let action = format!("creates {name}, which ended and was neither joined nor detached");
                ("threads created here".to_owned(), action, "")
            }
        };
        let moments = std::iter::once((record.at, action)).chain(record.earlier.map(|at| (at, earlier.to_owned())));
        let sides: Vec<Side> = moments.map(|(at, action)| self.side_at(at, action)).collect();
        let grade = match kind {
            FindingKind::UseAfterFree => Grade::Freed,
            FindingKind::LifetimeRace => Grade::Unordered,
            _ => Grade::Observed,
        };
        let (evidence, unseen) = match kind {
            FindingKind::LifetimeRace => (Evidence::HappensBefore, Unseen::strict(self.loaded, self.symbols.trusted())),
            _ => (Evidence::Observed, Unseen::default()),
        };
        let place = |at: Moment| place_key(trace, self.symbols, at.site, at.context);
        let mut finding = Finding {
            verdict: if record.refused || record.late || !unseen.is_empty() { Verdict::Suspected } else { shown(grade) },
            subject,
            sides,
            notes: late_words(record).map(str::to_owned).into_iter().collect(),
            ..Finding::suspected(
                kind,
                evidence,
                finding_id(kind, std::iter::once(record.at).chain(record.earlier).map(place).collect()),
            )
        };
        unseen.doubts(&mut finding);
        finding
    }

    /// What another order would show, with the schedule that is to show it.
    pub(crate) fn of_foreseen(&self, foreseen: &Foreseen) -> Finding {
        let finding = Finding { evidence: Evidence::Conflict, ..self.of_misuse(&foreseen.record) };
        let finding = self.with_order(finding, &foreseen.order);
        Finding { verdict: if foreseen.record.late { Verdict::Suspected } else { finding.verdict }, ..finding }
    }

    fn use_of(&self, event: EventIndex) -> String {
        self.loaded.trace.events.get(event.index()).map_or_else(|| "uses it".to_owned(), |event| self.describer.action(&event))
    }

    fn side_at(&self, at: Moment, action: String) -> Side {
        self.describer.side(at.thread, action, at.site, at.context, Some(at.before))
    }
}
