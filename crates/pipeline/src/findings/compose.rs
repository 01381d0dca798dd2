//! Findings, composed from a candidate, its witness and a trace.

use crate::analyse::Analysed;
use crate::analyse::gaps::libraries;
use crate::analyse::modules::Unseen;
use crate::analyse::word_locks::is_cycle;
use crate::findings::describe::{Describer, access_class};
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_abi::record::Op;
use rashomon_confirm::{Plan, schedule::Planner};
use rashomon_event::finding::Step;
use rashomon_event::{
    Access, AccessClass, Address, Candidate, CandidateKind, ContextId, EventIndex, EventKind, Evidence, Finding, FindingId,
    FindingKind, Grade, Mode, Replays, Schedule, Side, SiteId, Trace, Trial, Verdict, Witness, WitnessLevel,
};
use rashomon_trace::{BlockedRecord, GoalRecord, LoadedTrace, RunOutcome};

/// Longest schedule that is told step by step.
pub(crate) const MAX_STEPS: usize = 200;

/// What is known of one recording while findings are made of it.
pub struct Composer<'a, S: ?Sized> {
    pub loaded: &'a LoadedTrace,
    pub symbols: &'a S,
    pub describer: Describer<'a, S>,
    planner: Planner<'a>,
    /// What may have ordered events without being seen: no prediction is sound then.
    unseen: Unseen,
    /// Libraries whose calls were recorded, and may have ordered events.
    called: Vec<String>,
    /// Accesses were left out: who wrote what a read saw is not certain.
    thinned: bool,
}

impl<'a, S: Symbols + ?Sized> Composer<'a, S> {
    /// `quantum`: as in the recording's control.
    pub fn new(loaded: &'a LoadedTrace, symbols: &'a S, quantum: u64) -> Self {
        Self {
            loaded,
            symbols,
            describer: Describer::new(&loaded.trace, &loaded.sync_objects, symbols).with_frames(&loaded.frames).with_ends(loaded),
            planner: Planner::new(&loaded.trace, quantum),
            unseen: Unseen::of(loaded, symbols.trusted()),
            called: if loaded.trace.kept.is_empty() { Vec::new() } else { libraries(&loaded.trace, symbols.trusted()) },
            thinned: {
                let notes = loaded.header.notes;
                notes.thinned() || notes.truncated() || notes.filtered() || notes.places()
            },
        }
    }

    pub(crate) fn trace(&self) -> &'a Trace {
        &self.loaded.trace
    }

    /// The finding before anything is forced, and (in a note) why it cannot be.
    pub fn of_candidate(&self, candidate: &Candidate, witness: Option<&Witness>) -> Finding {
        self.with_witness(self.described(candidate), witness)
    }

    /// The finding as the trace has it, with no schedule yet.
    pub(crate) fn described(&self, candidate: &Candidate) -> Finding {
        let trace = self.trace();
        let kind = match candidate.kind {
            CandidateKind::Race { .. } => FindingKind::DataRace,
            CandidateKind::Deadlock { .. } => FindingKind::Deadlock,
        };
        let goals = candidate.kind.goals();
        let mut places: Vec<String> = goals
            .iter()
            .map(|goal| {
                let event = trace.event(*goal);
                let waits_for = match (kind, event.kind) {
                    (FindingKind::Deadlock, EventKind::Acquire { lock, .. } | EventKind::Request { lock, .. }) => Some(lock),
                    (FindingKind::Deadlock, EventKind::WaitEnd { mutex, .. }) => Some(mutex),
                    (FindingKind::Deadlock, EventKind::BarrierExit { barrier, .. }) => Some(barrier),
                    _ => None,
                };
                self.place_of_wait((event.site, event.context), waits_for)
            })
            .collect();
        let subject = match &candidate.kind {
            CandidateKind::Race { first, second } => {
                let (a, b) = (trace.access(*first), trace.access(*second));
                let touched = a.zip(b).map(|(a, b)| common_bytes(&a, &b));
                places.extend(touched.and_then(|(at, _)| self.describer.name_of_data(at)));
                touched.map_or_else(|| "unknown bytes".to_owned(), |(at, size)| self.describer.data(at, size))
            }
            CandidateKind::Deadlock { locks, .. } => self.lock_list(&locks.iter().flatten().copied().collect::<Vec<_>>()),
        };
        Finding {
            subject,
            sides: goals.iter().map(|goal| self.side_of_goal(candidate, *goal)).collect(),
            occurrences: candidate.occurrences,
            ..Finding::suspected(kind, candidate.evidence, finding_id(kind, places))
        }
    }

    /// What a witness adds: the schedule, and what it is worth.
    pub(crate) fn with_witness(&self, finding: Finding, witness: Option<&Witness>) -> Finding {
        let mut notes = Vec::new();
        let plan = witness.and_then(|witness| match self.planner.plan(witness) {
            Ok(plan) => Some(plan),
            Err(error) => {
                notes.push(format!("no schedule: {error}"));
                None
            }
        });
        // Without values nothing is known about what other schedules would read.
        let causal = self.trace().mode == Mode::Serial
            && !self.thinned
            && witness.is_some_and(|witness| witness.level == WitnessLevel::Causal);
        let sound = causal && self.unseen.is_empty();
        let (steps, earlier_steps) = plan.as_ref().map_or_else(Default::default, |plan| self.steps(plan));
        Finding {
            verdict: if sound { Verdict::Predicted } else { Verdict::Suspected },
            witness_level: witness.map(|witness| witness.level),
            steps,
            earlier_steps,
            schedule: plan.map(|plan| plan.schedule),
            unseen: if causal { self.unseen.libraries.clone() } else { Vec::new() },
            notes,
            ..finding
        }
    }

    /// What an order adds behind which the finding has come about: a schedule without a goal.
    pub(crate) fn with_order(&self, finding: Finding, order: &[EventIndex]) -> Finding {
        let is_whole = !self.thinned && self.unseen.is_empty();
        let (plan, mut notes) = (self.planner.of_order(order), finding.notes.clone());
        notes.extend(plan.as_ref().err().map(|error| format!("no schedule: {error}")));
        let (steps, earlier_steps) = plan.as_ref().map_or_else(|_| Default::default(), |plan| self.steps(plan));
        Finding {
            verdict: if is_whole { Verdict::Predicted } else { Verdict::Suspected },
            witness_level: Some(WitnessLevel::Causal),
            steps,
            earlier_steps,
            schedule: plan.ok().map(|plan| plan.schedule),
            unseen: if self.thinned { Vec::new() } else { self.unseen.libraries.clone() },
            notes,
            ..finding
        }
    }

    /// Whether the recording speaks against it: a pair of accesses that it orders, of which no correct reordering has been
    /// overlooked, and none shows it. What another schedule reads there is not known; it may show it.
    pub(crate) fn refutes(&self, analysed: &Analysed) -> bool {
        let is_whole = self.trace().mode == Mode::Serial && !self.thinned && self.unseen.is_empty();
        let is_race = matches!(analysed.candidate.kind, CandidateKind::Race { .. });
        let is_causal = analysed.witness.as_ref().is_some_and(|witness| witness.level == WitnessLevel::Causal);
        analysed.refuted && is_whole && is_race && !is_causal && analysed.candidate.evidence == Evidence::Hybrid
    }

    /// Calls into unseen code may have ordered what the finding is about.
    pub(crate) fn doubt(&self, finding: &mut Finding) {
        if finding.verdict == Verdict::Predicted {
            finding.verdict = Verdict::Suspected;
        }
        finding.unseen.clone_from(&self.called);
    }

    fn side_of_goal(&self, candidate: &Candidate, goal: EventIndex) -> Side {
        let side = self.describer.side_before(goal);
        match candidate.kind {
            CandidateKind::Race { .. } => side,
            CandidateKind::Deadlock { .. } => {
                let action = match self.trace().kind(goal) {
                    EventKind::Join { child, .. } => {
                        format!("waits for {} to end", self.trace().thread(child).path.words())
                    }
                    EventKind::WaitEnd { mutex, .. } => format!("waits for {} again", self.describer.lock(mutex)),
                    EventKind::BarrierExit { barrier, .. } => format!("waits at {}", self.describer.lock(barrier)),
                    _ => side.action.replacen("acquires", "waits for", 1),
                };
                Side { action, ..side }
            }
        }
    }

    fn lock_list(&self, locks: &[Address]) -> String {
        let mut names: Vec<String> = locks.iter().map(|lock| self.describer.lock(*lock)).collect();
        names.sort();
        names.dedup();
        names.join(", ")
    }

    /// The last steps, and how many come before.
    fn steps(&self, plan: &Plan) -> (Vec<Step>, usize) {
        let trace = self.trace();
        let turns = &plan.schedule.turns;
        let skipped = turns.len().saturating_sub(MAX_STEPS);
        let told = turns.iter().zip(&plan.stops).skip(skipped);
        let told = told.map(|(turn, stop)| {
            let thread = plan.schedule.threads.get(turn.thread as usize).map(ToString::to_string).unwrap_or_default();
            let Some(event) = stop.map(|stop| trace.event(stop)) else {
                return Step { thread, until: "runs to its end".into(), place: None };
            };
            let until = match event.access() {
                Some(access) => {
                    let touched = self.describer.data(access.address, u64::from(access.size));
                    match access.class {
                        AccessClass::End => {
                            let end = self.describer.access(&access);
                            let (verb, _) = end.split_once(" of ").unwrap_or((&end, ""));
                            format!("runs up to its {verb} of {}", block_of(&touched))
                        }
                        _ => format!("runs up to its {} of {touched}", access_class(&access)),
                    }
                }
                None => format!("runs up to where it {}", self.describer.action(&event)),
            };
            Step { thread, until, place: stop.and_then(|stop| self.describer.place_of(stop)) }
        });
        (told.collect(), skipped)
    }

    /// What a recording shows that itself ended blocked; `None` if it did not.
    pub fn of_blocked(&self) -> Option<Finding> {
        let (kind, grade) = match self.loaded.header.outcome {
            RunOutcome::Deadlock => (FindingKind::Deadlock, Grade::Deadlocked),
            RunOutcome::Stuck if is_cycle(self.loaded) => (FindingKind::Deadlock, Grade::Stuck),
            RunOutcome::Stuck => (FindingKind::Stuck, Grade::Stuck),
            RunOutcome::Endless => (FindingKind::Endless, Grade::Endless),
            _ => return None,
        };
        let blocked = &self.loaded.blocked;
        // Of threads that wait and no cycle explains, what they wait for adds nothing to where they do.
        let waits_for = |record: &BlockedRecord| (kind == FindingKind::Deadlock && !is_join(record)).then_some(record.object);
        let places = blocked.iter().map(|record| self.place_of_wait((record.site, record.context), waits_for(record))).collect();
        let subject = match kind {
            FindingKind::Deadlock => {
                let locks: Vec<_> = blocked.iter().filter(|record| !is_join(record)).map(|record| record.object).collect();
                if locks.is_empty() { "threads that join each other".to_owned() } else { self.lock_list(&locks) }
            }
            FindingKind::Endless => self.endless_words(),
            _ if blocked.len() == 1 => "1 thread waits and nobody is left to wake it".to_owned(),
            _ => format!("{} threads wait and nobody is left to wake them", blocked.len()),
        };
        Some(Finding {
            verdict: shown(grade),
            subject,
            sides: self.blocked_sides(),
            notes: self.double_lock(),
            ..Finding::suspected(kind, Evidence::Observed, finding_id(kind, places))
        })
    }

    /// Where a thread waits, and for which lock: others that are taken by the same code are another finding. Which thread another
    /// one joins is said by the cycle.
    fn place_of_wait(&self, (site, context): (SiteId, ContextId), lock: Option<Address>) -> String {
        let place = place_key(self.trace(), self.symbols, site, context);
        match lock.and_then(|lock| self.describer.name_of_lock(lock)) {
            Some(lock) => format!("{place} for {lock}"),
            None => place,
        }
    }

    /// Of a thread that waits for itself.
    fn double_lock(&self) -> Vec<String> {
        let own = |record: &BlockedRecord| record.holder == Some(record.thread) && !is_join(record);
        let doubles = self.loaded.blocked.iter().any(own);
        if doubles { vec!["a double lock: the thread holds it already, and it is not recursive".into()] } else { Vec::new() }
    }

    /// Of an execution that repeats itself: who repeats what, and who is blocked.
    fn endless_words(&self) -> String {
        let words = |repeats: bool| {
            let records = self.loaded.blocked.iter().filter(|record| record.repeats == repeats);
            let words = records.map(|record| {
                let side = self.describer.side(record.thread, String::new(), record.site, record.context, None);
                let place =
                    side.stack.first().map_or_else(|| "an unknown place".to_owned(), crate::findings::describe::place_words);
                (self.thread_words(record.thread), place)
            });
            words.collect::<Vec<_>>()
        };
        let repeating = words(true).into_iter().map(|(thread, place)| format!("{thread} repeats {place} for ever"));
        let blocked: Vec<_> = words(false).into_iter().map(|(thread, place)| format!("{thread} at {place}")).collect();
        let mut all: Vec<_> = repeating.collect();
        if !blocked.is_empty() {
            all.push(format!("blocked: {}", blocked.join(", ")));
        }
        all.join("; ")
    }

    fn thread_words(&self, thread: rashomon_event::ThreadId) -> String {
        match self.trace().threads.get(thread.index()) {
            Some(info) => info.path.words(),
            None => thread.to_string(),
        }
    }

    /// The threads that stand blocked at the end of this execution.
    pub fn blocked_sides(&self) -> Vec<Side> {
        let sides = self.loaded.blocked.iter().map(|record| {
            let action = self.wait_words(record);
            self.describer.side(record.thread, action, record.site, record.context, None)
        });
        sides.collect()
    }

    pub(crate) fn wait_words(&self, record: &BlockedRecord) -> String {
        let path = |thread| self.thread_words(thread);
        if record.repeats {
            let what = match record.op {
                None => format!("reads {}", self.describer.data(record.object, 1)),
                Some(Op::AtomicLoad | Op::AtomicRmw | Op::AtomicStore) => {
                    format!("looks at {}", self.describer.data(record.object, 1))
                }
                Some(Op::Lock | Op::LockShared) => format!("tries {}", self.describer.lock(record.object)),
                Some(Op::Yield) => "gives its turn up".into(),
                Some(Op::Sleep) => "sleeps".into(),
                Some(op) => op.name().to_owned(),
            };
            return format!("repeats itself for ever: {what}");
        }
        if is_join(record) {
            let thread = u32::try_from(record.object.0).map(rashomon_event::ThreadId);
            return format!("waits for {} to end", thread.map_or_else(|_| "a thread".to_owned(), path));
        }
        let holder = record.holder.map(|holder| format!(", held by {}", path(holder))).unwrap_or_default();
        format!("waits for {}{holder}", self.describer.lock(record.object))
    }

    /// The two threads that stand at their accesses at the end of this (forced) execution.
    pub fn goal_sides(&self) -> Option<Vec<Side>> {
        let goals = &self.loaded.goals;
        if goals.len() != 2 {
            return None;
        }
        let sides = goals.iter().map(|goal| {
            self.describer.side(goal.thread, self.describer.access(&goal_access(goal)), goal.site, goal.context, None)
        });
        Some(sides.collect())
    }

    /// The id of the race of two accesses of this execution.
    pub(crate) fn id_of_pair(&self, first: EventIndex, second: EventIndex) -> Option<FindingId> {
        let events = [first, second].map(|index| self.trace().event(index));
        let (at, _) = common_bytes(&events[0].access()?, &events[1].access()?);
        let mut places: Vec<String> =
            events.iter().map(|event| place_key(self.trace(), self.symbols, event.site, event.context)).collect();
        places.extend(self.describer.name_of_data(at));
        Some(finding_id(FindingKind::DataRace, places))
    }

    /// What two accesses of this execution both touch.
    pub(crate) fn subject_of_pair(&self, first: EventIndex, second: EventIndex) -> Option<String> {
        let [first, second] = [first, second].map(|index| self.trace().access(index));
        let (at, size) = common_bytes(&first?, &second?);
        Some(self.describer.data(at, size))
    }

    /// The race of an execution that ended with two threads at their accesses; `None` if it did not.
    pub fn of_goals(&self) -> Option<Finding> {
        let [first, second] = self.loaded.goals.as_slice() else { return None };
        let accesses = [first, second].map(goal_access);
        let touched = common_bytes(&accesses[0], &accesses[1]);
        let mut places: Vec<String> =
            [first, second].iter().map(|goal| place_key(self.trace(), self.symbols, goal.site, goal.context)).collect();
        places.extend(self.describer.name_of_data(touched.0));
        Some(Finding {
            verdict: shown(Grade::CoEnabled),
            subject: self.describer.data(touched.0, touched.1),
            sides: self.goal_sides()?,
            ..Finding::suspected(FindingKind::DataRace, Evidence::Observed, finding_id(FindingKind::DataRace, places))
        })
    }

    /// The recorded execution as a schedule.
    pub fn replay_schedule(&self, quantum: u64) -> Schedule {
        self.loaded.replay_schedule(quantum)
    }
}

/// The verdict of what an execution shows that was not repeated yet.
pub(crate) fn shown(grade: Grade) -> Verdict {
    Verdict::Suspected.advance(Trial::Shown { grade, replays: Replays::default() })
}

fn goal_access(goal: &GoalRecord) -> Access {
    let size = u32::try_from(goal.size).unwrap_or(u32::MAX);
    Access { address: goal.address, size, class: goal.class, atomic: goal.atomic }
}

fn is_join(record: &BlockedRecord) -> bool {
    record.op == Some(Op::ThreadJoin)
}

/// First byte and number of bytes that both accesses touch.
pub(crate) fn common_bytes(a: &Access, b: &Access) -> (Address, u64) {
    let start = a.address.0.max(b.address.0);
    let end = (a.address.0 + u64::from(a.size)).min(b.address.0 + u64::from(b.size));
    (Address(start), end.saturating_sub(start))
}

/// The block alone, of words about bytes in it.
fn block_of(touched: &str) -> &str {
    let begin = ["heap block of ", "mapping of "].iter().find_map(|block| touched.find(block));
    begin.map_or(touched, |begin| &touched[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_bytes_of_overlapping_accesses() {
        let access = |address, size| Access { address: Address(address), size, class: AccessClass::Read, atomic: false };
        assert_eq!(common_bytes(&access(8, 8), &access(12, 8)), (Address(12), 4));
        assert_eq!(common_bytes(&access(8, 8), &access(9, 1)), (Address(9), 1));
    }
}
