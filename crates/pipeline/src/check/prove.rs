//! Forcing one finding: `co-enabled` or `deadlocked` by its schedule, else `unordered` by the recorded one.

use crate::analyse::modules::Unseen;
use crate::analyse::recognise;
use crate::check::known::{Known, Replayed};
use crate::error::PipelineError;
use crate::findings::atomicity::sources_of;
use crate::findings::compose::Composer;
use crate::findings::misuse::misuse_like;
use crate::findings::symbols::Symbols;
use crate::timeline::Drawing;
use rashomon_abi::record::Op;
use rashomon_confirm::force::{folder_of, grade_of};
use rashomon_confirm::{Attempt, Confirmation, Ending, Forcing, Outcome, Program, confirm, force, unordered_pair};
use rashomon_event::{
    Deadline, EventIndex, Evidence, Finding, FindingKind, Frame, Goal, Grade, Place, Replays, Schedule, Side, Trial, Verdict,
};
use rashomon_explore::Failure;
use rashomon_report::order::{FORCED_IN_VAIN, NOT_REPLAYED};
use rashomon_trace::{BlockedRecord, LoadedTrace, Recording};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What forcing needs, for all findings of one program.
pub struct Prover<'a, S: ?Sized> {
    pub program: &'a Program,
    pub forcing: Forcing,
    pub symbols: &'a S,
    /// Session of executions whose traces are not kept.
    pub scratch: &'a Path,
    /// Forced executions so far.
    pub executions: u64,
}

pub(crate) fn load_until(session: &Path, deadline: Deadline) -> Result<LoadedTrace, PipelineError> {
    let mut loaded = Recording::open(session)?.load_until(deadline)?;
    recognise(&mut loaded);
    Ok(loaded)
}

/// With what the program uses as locks as such.
pub fn load(session: &Path) -> Result<LoadedTrace, PipelineError> {
    let mut loaded = Recording::open(session)?.load()?;
    recognise(&mut loaded);
    Ok(loaded)
}

impl<S: Symbols + ?Sized> Prover<'_, S> {
    /// Forces the finding's schedule; changes its verdict, and its sides to those of the proof. `true`: proven.
    pub fn force_schedule(&mut self, finding: &mut Finding, schedule: &Schedule, session: &Path) -> Result<bool, PipelineError> {
        // Other threads that wait for each other, or for other locks, and accesses to something else are no proof of this
        // finding; `pursue` makes them one of their own.
        let shows = |outcome: &Outcome, session: &Path| {
            self.shown(schedule, outcome, session).is_some_and(|(shown, _)| shown.id == finding.id)
                || self.is_stuck_there(finding, schedule, outcome, session)
        };
        let (decision, executions) = confirm(self.program, schedule, session, self.scratch, &self.forcing, &shows)?;
        self.executions += u64::from(executions);
        match decision {
            Confirmation::Proven(grade) => {
                finding.advance(Trial::Shown { grade, replays: Replays::all(executions.saturating_sub(1)) });
                finding.schedule = Some(schedule.clone());
                self.take_sides_of_proof(finding, schedule, session);
                Ok(true)
            }
            Confirmation::Not(outcome) => {
                not_proven(finding, &outcome);
                Ok(false)
            }
            Confirmation::Another(outcome) => {
                finding.advance(Trial::NotShown);
                finding.notes.push(format!("{FORCED_IN_VAIN}showed another finding: {outcome}"));
                Ok(false)
            }
            Confirmation::Unstable { then } => {
                finding.notes.push(format!("it came about once when forced, and then not: {then}"));
                let expected = "what its schedule showed once, when it was forced again".into();
                finding.advance(Trial::ShownOnce { expected, actual: then.to_string(), of: executions.saturating_sub(1) });
                Ok(false)
            }
        }
    }

    /// The proof's trace knows the stacks of the very execution that shows the finding. If it cannot be read the prediction's
    /// stay.
    pub(crate) fn take_sides_of_proof(&self, finding: &mut Finding, schedule: &Schedule, session: &Path) {
        let Ok(loaded) = self.load_of_proof(schedule, session) else {
            finding.notes.push("the stacks are those of the recorded execution: the proof's trace cannot be read".into());
            return;
        };
        let composer = Composer::new(&loaded, self.symbols, schedule.quantum);
        match finding.kind {
            FindingKind::DataRace => {
                if let Some(shown) = composer.of_goals() {
                    take_words(finding, shown);
                }
            }
            FindingKind::Deadlock | FindingKind::Stuck | FindingKind::Endless => match composer.of_blocked() {
                Some(shown) if shown.kind == finding.kind => take_words(finding, shown),
                // A cycle that is not one of locks alone: its waits are among those of all threads.
                Some(shown) if !shown.sides.is_empty() => finding.sides = shown.sides,
                _ => {}
            },
            FindingKind::Failure
            | FindingKind::UnlockNotHeld
            | FindingKind::DestroyLocked
            | FindingKind::DestroyAwaited
            | FindingKind::DoubleLock
            | FindingKind::UseOfDestroyed
            | FindingKind::ThreadLeak
            | FindingKind::UseAfterFree
            | FindingKind::LifetimeRace
            | FindingKind::UnsafeInSignal
            | FindingKind::WrongContext
            | FindingKind::NotSerialisable
            | FindingKind::AtomicityViolation => {}
        }
        finding.forced = Some(Box::new(Drawing::of(&composer).to_its_end(finding)));
    }

    /// Draws the execution that shows the finding.
    pub(crate) fn draw(&self, finding: &mut Finding, loaded: &LoadedTrace, quantum: u64) {
        let composer = Composer::new(loaded, self.symbols, quantum);
        finding.forced = Some(Box::new(Drawing::of(&composer).to_its_end(finding)));
    }

    /// What is proven is told whatever the time; a moment longer for its trace.
    pub(crate) fn load_of_proof(&self, schedule: &Schedule, session: &Path) -> Result<LoadedTrace, PipelineError> {
        load_until(&folder_of(schedule, session), self.forcing.deadline.and(Duration::from_millis(200)))
    }

    /// Replays the recorded execution and looks for the pair in it, unordered by every rule. `true`: proven.
    /// `known`: earlier replays of the same recording.
    pub fn prove_unordered(
        &mut self,
        finding: &mut Finding,
        recorded: &Schedule,
        known: &mut Known,
        session: &Path,
    ) -> Result<bool, PipelineError> {
        let Some(places) = places_of(finding) else { return Ok(false) };
        known.note(finding);
        known.widen();
        // The schedule that keeps few places, where it showed the pair; and whether it once did not.
        let (mut shown_by_few, mut needs_all) = (None, false);
        for number in 0..self.forcing.times.max(1) {
            let session = if number == 0 { session } else { self.scratch };
            let narrow = known.narrowed(recorded);
            let schedule = narrow.as_ref().unwrap_or(recorded);
            let Some(loaded) = self.replayed(schedule, known, number as usize, session)? else {
                known.unseen.doubts(finding);
                return Ok(false);
            };
            if self.shows_unordered(finding, loaded.get(known), (recorded, &places), number == 0) {
                shown_by_few = narrow.or(shown_by_few);
                continue;
            }
            // Of few places too little may be kept to tell: then of all.
            if narrow.is_none() || self.forcing.deadline.is_over() {
                return Ok(false);
            }
            let Some(whole) = self.replay(recorded, known, session)? else {
                known.unseen.doubts(finding);
                return Ok(false);
            };
            if !self.shows_unordered(finding, &whole, (recorded, &places), number == 0) {
                return Ok(false);
            }
            needs_all = true;
        }
        let by_few = shown_by_few.filter(|_| !needs_all);
        // The recording was the first execution of that schedule, and showed it, too.
        finding.advance(Trial::Shown { grade: Grade::Unordered, replays: Replays::all(self.forcing.times.max(1)) });
        finding.schedule = Some(by_few.unwrap_or_else(|| recorded.clone()));
        Ok(true)
    }

    /// A replay of the recording, the one with this number if it is known. `None`: there is none, or what was not seen may have
    /// ordered threads in it.
    fn replayed(
        &mut self,
        schedule: &Schedule,
        known: &mut Known,
        number: usize,
        session: &Path,
    ) -> Result<Option<Replayed>, PipelineError> {
        if number < known.replays.len() {
            return Ok(Some(Replayed::Known(number)));
        }
        if !known.unseen.is_empty() {
            return Ok(None);
        }
        Ok(self.replay(schedule, known, session)?.map(|loaded| known.take(loaded)))
    }

    /// One more replay; `None` as above.
    fn replay(&mut self, schedule: &Schedule, known: &mut Known, session: &Path) -> Result<Option<LoadedTrace>, PipelineError> {
        force(self.program, schedule, session, &self.forcing)?;
        self.executions += 1;
        let Ok(loaded) = load_until(&folder_of(schedule, session), self.forcing.deadline) else { return Ok(None) };
        known.unseen = Unseen::strict(&loaded, self.symbols.trusted());
        Ok(known.unseen.is_empty().then_some(loaded))
    }

    /// Whether the pair is in this replay, unordered. `tells`: then the finding is told as it is there.
    fn shows_unordered(
        &self,
        finding: &mut Finding,
        loaded: &LoadedTrace,
        (recorded, places): (&Schedule, &[(String, u64); 2]),
        tells: bool,
    ) -> bool {
        let composer = Composer::new(loaded, self.symbols, recorded.quantum);
        let Some((first, second)) = unordered_again(&composer, finding, places, self.forcing.deadline) else { return false };
        if tells {
            finding.sides = [first, second].map(|event| composer.describer.side_before(event)).to_vec();
            finding.subject = composer.subject_of_pair(first, second).unwrap_or_else(|| finding.subject.clone());
            finding.forget_steps();
            finding.forced = Some(Box::new(Drawing::of(&composer).to_pair([first, second])));
        }
        true
    }

    /// What the recorded execution itself did, again: its schedule is replayed until it shows that, [`REPLAYS`] times at most.
    /// Without time for any replay it is told as what it is: seen once, and not replayed.
    pub fn replay_observed(&mut self, finding: &mut Finding, recorded: &Schedule, session: &Path) -> Result<(), PipelineError> {
        finding.schedule = Some(recorded.clone());
        let mut replays = Replays::default();
        let mut actual = String::new();
        while replays.shown == 0 && replays.of < REPLAYS && !self.forcing.deadline.is_over() {
            let attempt = force(self.program, recorded, session, &self.forcing)?;
            self.executions += 1;
            let again = same_again(finding, &attempt, session, self.symbols)? && self.shows_same(finding, &attempt, session);
            if !again && self.forcing.deadline.is_over() {
                // The end of the budget may have ended it, which says nothing about what was recorded.
                break;
            }
            replays.of += 1;
            replays.shown += u32::from(again);
            actual = attempt.outcome.to_string();
        }
        if replays.shown == 0 && replays.of < REPLAYS {
            // Its schedule can be replayed later.
            let tried = if replays.of == 0 { String::new() } else { format!(" more than {} times", replays.of) };
            finding.notes.push(format!("{NOT_REPLAYED}{tried}"));
            if replays.of == 0 {
                return Ok(());
            }
        }
        if replays.shown > 0
            && let Ok(loaded) = self.load_of_proof(recorded, session)
        {
            self.draw(finding, &loaded, recorded.quantum);
        }
        let expected = "what the recorded execution did, when its schedule was replayed".into();
        finding.advance(Trial::Replayed { replays, expected, actual });
        Ok(())
    }

    /// Whether every thread waits, those of a cycle through a barrier at their calls in it and for the same objects: nobody says
    /// then which of the waits make up the cycle. One of locks and joins alone is told by the runtime where it comes about:
    /// threads that wait for its locks without it wait for something else.
    fn is_stuck_there(&self, finding: &Finding, schedule: &Schedule, outcome: &Outcome, session: &Path) -> bool {
        finding.kind == FindingKind::Deadlock
            && *outcome == Outcome::Stuck
            && ends_at_a_barrier(schedule)
            && load_until(&folder_of(schedule, session), self.forcing.deadline)
                .is_ok_and(|loaded| others_than(finding, &Composer::new(&loaded, self.symbols, 0)).is_some())
    }

    /// Of an execution that ended blocked: whether it is blocked at the places of the finding.
    fn shows_same(&self, finding: &Finding, attempt: &Attempt, session: &Path) -> bool {
        let Some(schedule) = finding.schedule.as_ref().filter(|_| !finding.kind.is_misuse()) else { return true };
        self.shown(schedule, &attempt.outcome, session).is_some_and(|(shown, _)| shown.id == finding.id)
    }
}

/// How often a proof may be replayed until it comes about again.
pub(crate) const REPLAYS: u32 = 3;

/// Whether an outcome of replaying a stored finding is the one it was proven by: at the same places, of the same objects.
/// `session` holds the replayed execution.
pub fn same_again<S: Symbols + ?Sized>(
    finding: &Finding,
    attempt: &Attempt,
    session: &Path,
    symbols: &S,
) -> Result<bool, PipelineError> {
    // An execution that was ended before it wrote its trace shows nothing.
    let loaded = || load(&folder_in(finding, session)).ok();
    let shows =
        |test: &dyn Fn(&Composer<'_, S>) -> bool| loaded().is_some_and(|loaded| test(&Composer::new(&loaded, symbols, 0)));
    // One failure for another is none, nor is the same elsewhere.
    let fails = |failure: Failure| {
        finding.subject == failure.to_string() && shows(&|composer| composer.of_failure(failure).id == finding.id)
    };
    let meets = |composer: &Composer<'_, S>| {
        finding.kind != FindingKind::DataRace || composer.of_goals().is_some_and(|shown| shown.id == finding.id)
    };
    Ok(match finding.verdict.grade() {
        Some(Grade::CoEnabled) => attempt.outcome == Outcome::CoEnabled && shows(&meets),
        Some(Grade::Deadlocked) => attempt.outcome == Outcome::Deadlocked && shows(&|composer| stands_there(finding, composer)),
        Some(Grade::Stuck) => attempt.outcome == Outcome::Stuck && shows(&|composer| stands_there(finding, composer)),
        Some(Grade::Endless) => {
            attempt.outcome == Outcome::Endless
                && shows(&|composer| composer.of_blocked().is_some_and(|shown| shown.id == finding.id))
        }
        Some(Grade::Violated) => shows(&|composer| {
            composer.of_violations(Deadline::NEVER).any(|shown| shown.id == finding.id)
                || sources_of(finding).is_some_and(|sources| {
                    finding.evidence == Evidence::Dependences && composer.extended_at(&sources, Deadline::NEVER).is_some()
                        || composer.shows_beginning(&sources, Deadline::NEVER)
                })
        }),
        Some(Grade::Crashed) => match attempt.execution.ending {
            Ending::Signal(signal) => fails(Failure::Signal(signal)),
            _ => false,
        },
        Some(Grade::WrongExit) => match attempt.execution.ending {
            Ending::Code(code) => attempt.outcome.is_orderly() && fails(Failure::Code(code)),
            _ => false,
        },
        Some(Grade::Unordered) if finding.kind.is_misuse() => {
            loaded().is_some_and(|loaded| misuse_like(&loaded, finding).is_some())
        }
        Some(Grade::Unordered) => {
            let Some(places) = places_of(finding) else { return Ok(false) };
            shows(&|composer| unordered_again(composer, finding, &places, Deadline::NEVER).is_some())
        }
        Some(Grade::Observed | Grade::Freed) => loaded().is_some_and(|loaded| misuse_like(&loaded, finding).is_some()),
        None if finding.kind.is_misuse() => loaded().is_some_and(|loaded| misuse_like(&loaded, finding).is_some()),
        // That it did not come about before is nothing to come about again.
        None => {
            let Some(schedule) = &finding.schedule else { return Ok(false) };
            grade_of(&schedule.goal, &attempt.outcome).is_some()
                && shows(&|composer| match attempt.outcome {
                    Outcome::CoEnabled => meets(composer),
                    _ => {
                        composer.of_blocked().is_some_and(|shown| shown.id == finding.id)
                            || ends_at_a_barrier(schedule) && others_than(finding, composer).is_some()
                    }
                })
        }
    })
}

/// Where an execution of the finding's schedule left its trace.
fn folder_in(finding: &Finding, session: &Path) -> PathBuf {
    finding.schedule.as_ref().map_or_else(|| session.to_path_buf(), |schedule| folder_of(schedule, session))
}

/// What is said of an execution that shows the finding is all said of that one.
fn take_words(finding: &mut Finding, shown: Finding) {
    if finding.subject != shown.subject {
        // They speak of the objects that were predicted.
        finding.forget_steps();
    }
    (finding.subject, finding.sides) = (shown.subject, shown.sides);
}

/// A pair of accesses at the places of the finding, to what it speaks of, that nothing orders.
fn unordered_again<S: Symbols + ?Sized>(
    composer: &Composer<'_, S>,
    finding: &Finding,
    places: &[(String, u64); 2],
    deadline: Deadline,
) -> Option<(EventIndex, EventIndex)> {
    let places = places.each_ref().map(|(path, offset)| (path.as_str(), *offset));
    let is_wanted = |one, other| composer.id_of_pair(one, other).as_ref() == Some(&finding.id);
    unordered_pair(&composer.loaded.trace, places, deadline, is_wanted)
}

/// Whether a thread of the cycle that the schedule is for waits at a barrier.
fn ends_at_a_barrier(schedule: &Schedule) -> bool {
    let Goal::Deadlock { turns } = &schedule.goal else { return false };
    turns.iter().filter_map(|turn| schedule.turns.get(*turn as usize)).any(
        |turn| matches!(turn.until.place, Place::Synchronisation { op } if Op::from_code(u64::from(op)) == Some(Op::BarrierExit)),
    )
}

/// Whether the blocked threads stand where those of the finding stood: others that wait for each other are another finding.
fn stands_there<S: Symbols + ?Sized>(finding: &Finding, composer: &Composer<'_, S>) -> bool {
    others_than(finding, composer) == Some(0)
}

/// Whether an execution that ended blocked shows the finding, whatever it may be called: its threads stand there.
pub(crate) fn is_blocked_as<S: Symbols + ?Sized>(finding: &Finding, composer: &Composer<'_, S>) -> bool {
    matches!(finding.kind, FindingKind::Deadlock | FindingKind::Stuck) && others_than(finding, composer).is_some()
}

/// How many threads are blocked beside those of the finding, which are so at their calls and for the same objects; `None`: not
/// all of them are.
fn others_than<S: Symbols + ?Sized>(finding: &Finding, composer: &Composer<'_, S>) -> Option<usize> {
    let trace = &composer.loaded.trace;
    let calls = |record: &BlockedRecord| -> Vec<(&str, u64)> {
        let sites = std::iter::once(record.site).chain(trace.callers(record.context)).map(|site| trace.site(site));
        let module = |module: u32| trace.modules.get(module as usize).map_or("", |module| module.path.as_str());
        sites.map(|site| (site.module.map_or("", module), site.offset)).collect()
    };
    let mut left: Vec<_> = composer.loaded.blocked.iter().map(|record| (calls(record), composer.wait_words(record))).collect();
    // A stack leaves out calls of the runtime, and of what starts a thread.
    let same = |side: &Side, calls: &[(&str, u64)]| {
        !side.stack.is_empty()
            && side
                .stack
                .iter()
                .all(|frame| frame.offset.checked_add(1).is_some_and(|offset| calls.contains(&(frame.module.as_str(), offset))))
    };
    let all = finding.sides.iter().all(|side| {
        let here = |(calls, action): &(Vec<(&str, u64)>, String)| same(side, calls) && awaited(action) == awaited(&side.action);
        match left.iter().position(here) {
            Some(at) => {
                left.swap_remove(at);
                true
            }
            None => false,
        }
    });
    all.then_some(left.len())
}

/// What a thread waits for, of the words that say so, whoever says them and whoever holds it; without the machine address of what
/// has no name, and without the name of a member of a block.
fn awaited(action: &str) -> &str {
    let what = action.strip_prefix("waits for ").or_else(|| action.strip_prefix("waits at ")).unwrap_or(action);
    let what = what.split_once(", held by ").map_or(what, |(what, _)| what);
    let what = [" again", " (shared)"].iter().fold(what, |what, end| what.strip_suffix(end).unwrap_or(what));
    let what = match what.rsplit_once(' ') {
        Some((kind, address)) if address.starts_with("0x") && !kind.ends_with(" at") => kind,
        _ => what,
    };
    // A member has a name where the code that uses it tells it, which an execution may not come to.
    what.find("heap block of ").map_or(what, |at| &what[at..])
}

/// Module and return address of both accesses.
fn places_of(finding: &Finding) -> Option<[(String, u64); 2]> {
    if finding.kind != FindingKind::DataRace {
        return None;
    }
    let place = |frame: &Frame| Some((frame.module.clone(), frame.offset.checked_add(1)?));
    match finding.sides.as_slice() {
        [first, second] => Some([place(first.stack.first()?)?, place(second.stack.first()?)?]),
        _ => None,
    }
}

/// Whether it makes sense to look for the pair in the recorded execution.
pub fn may_be_unordered(finding: &Finding) -> bool {
    finding.kind == FindingKind::DataRace && finding.evidence == Evidence::HappensBefore
}

pub(crate) fn not_proven(finding: &mut Finding, outcome: &Outcome) {
    match outcome {
        Outcome::Diverged(divergence) => {
            let expected = format!("{} (turn {})", divergence.expected, divergence.turn + 1);
            finding.advance(Trial::Left { expected, actual: divergence.actual.clone() });
            if finding.verdict == Verdict::Predicted {
                finding.notes.push(format!("{FORCED_IN_VAIN}left the schedule {divergence}"));
            }
        }
        other => {
            finding.advance(Trial::NotShown);
            finding.notes.push(format!("{FORCED_IN_VAIN}did not show it: {other}"));
        }
    }
}
