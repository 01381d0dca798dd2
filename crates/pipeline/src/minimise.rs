//! Shortening the schedule of a stored finding, whatever found it, and naming the order that it needs.
//!
//! N. Jalbert, K. Sen, "A Trace Simplification Technique for Effective Debugging of Concurrent Programs", FSE 2010, §4: turns
//! are taken out, which makes their thread do their part in its next turn, or are moved forward to the thread's turn before;
//! whatever shows the finding with fewer turns is gone on from. Stretches of turns are tried before single ones (A. Zeller, R.
//! Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002, §3: ddmin).
//!
//! The critical order is the first pair of dependent operations that the failing execution, and one that lacks a turn (or all
//! from it on) and does not fail, make in different orders; or, where the failing execution ended too early for that, an
//! operation that it made and a dependent one that the other makes before it.
//!
//! Guarantee: every schedule gone on from has shown the finding in an execution and is stored at once; at the end no single turn
//! can be taken out or moved forward, unless the budget ran out. Limit: the end is a local one: `explore` looks for the fewest
//! preemptions there are. Where the executions part in operations that are not recorded no order is named.

mod order;

use crate::check::Job;
use crate::check::prove::{Prover, load_until, same_again};
use crate::error::PipelineError;
use crate::findings::compose::{Composer, MAX_STEPS};
use crate::findings::critical::{self, Operation, action};
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::replay::schedule_of;
use crate::store::run::RunRecord;
use crate::timeline::Drawing;
use rashomon_confirm::force::folder_of;
use rashomon_confirm::{Attempt, Ending, Forcing, Outcome, Program, force};
use rashomon_event::finding::Step;
use rashomon_event::{Deadline, EventKind, Finding, FindingId, Goal, Place, Position, Schedule, Turn};
use rashomon_trace::{LoadedTrace, TraceError};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SHORTENED: &str = "shortened: ";

/// What came of it.
#[derive(Clone, Debug)]
pub struct Shortened {
    pub finding: Finding,
    pub before: usize,
    pub executions: u64,
    /// The finding came about at first, and at the end.
    pub shown: bool,
}

/// What became of a finding's schedule.
struct Tried {
    /// With a shorter schedule, and whether it was shown at first and at the end.
    outcome: Result<(Finding, bool), PipelineError>,
    executions: u64,
}

struct Shortener<'a, S: ?Sized> {
    program: &'a Program,
    symbols: &'a S,
    forcing: Forcing,
    session: PathBuf,
    finding: Finding,
    ending: Ending,
    /// The finding that an execution of a schedule has come to, by its places.
    shown: &'a dyn Fn(&Schedule, &Outcome, &Path) -> Option<FindingId>,
    /// That of the stored schedule.
    original: Option<FindingId>,
    executions: u64,
    budget: u64,
    /// Nothing more is tried.
    until: Deadline,
    /// What is shorter is stored at once.
    stores: bool,
    /// Executions and time up to the end of which the critical order is looked for, where they are others than those of
    /// shortening.
    critical: Option<(u64, Deadline)>,
}

impl<S: Symbols + ?Sized> Shortener<'_, S> {
    fn run(&mut self, schedule: &Schedule) -> Result<(Attempt, bool), PipelineError> {
        let attempt = force(self.program, schedule, &self.session, &self.forcing)?;
        self.executions += 1;
        let mut finding = self.finding.clone();
        finding.schedule = Some(schedule.clone());
        // One failure for another, such as a crash for a failed assertion, is none.
        let same = attempt.execution.ending == self.ending && same_again(&finding, &attempt, &self.session, self.symbols)?
            // One pair of accesses for another is none either.
            && (self.shown)(schedule, &attempt.outcome, &self.session) == self.original;
        Ok((attempt, same))
    }

    fn has_time(&self) -> bool {
        self.executions < self.budget && !self.until.is_over()
    }

    fn shows(&mut self, schedule: &Schedule) -> Result<bool, PipelineError> {
        Ok(self.has_time() && self.run(schedule)?.1)
    }
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Shortens a stored finding's schedule within so many executions and that time; what is reached is in the store, whenever
    /// this ends.
    pub fn minimise(
        &self,
        run: &RunRecord,
        finding: &Finding,
        (budget, within): (u64, Duration),
        observer: &mut dyn Observer,
    ) -> Result<Shortened, PipelineError> {
        let until = Deadline::within(within);
        let Tried { outcome, executions } = self.shortened(run, finding, (budget, until), None, observer)?;
        let (mut best, shown) = outcome?;
        let before = schedule_of(finding)?.turns.len();
        if !shown {
            best = finding.clone();
        }
        self.complete(&mut best);
        self.store.write_finding(&best)?;
        observer.progress(Progress::Decided(&best));
        Ok(Shortened { finding: best, before, executions, shown })
    }

    /// Tells a stored finding of the order that it needs, if there is one to be found within so many executions and that time;
    /// whether there is, and how many executions there were. Half of both go into shortening the schedule, as long ones have too
    /// many turns to look at; the finding's own stays as it is.
    pub(crate) fn critical_order(
        &self,
        run: &RunRecord,
        finding: &mut Finding,
        (executions, until): (u64, Deadline),
        observer: &mut dyn Observer,
    ) -> Result<(bool, u64), PipelineError> {
        let half = until.less(until.limit(Duration::MAX) / 2);
        let with = Some((executions, until));
        let Tried { outcome, executions } = self.shortened(run, finding, (executions / 2, half), with, observer)?;
        let told = match outcome {
            Ok((best, true)) => critical::take_over(finding, best),
            Ok(_) | Err(PipelineError::OutOfTime { .. }) => false,
            Err(error) => return Err(error),
        };
        Ok((told, executions))
    }

    /// `critical`: as in [`Shortener`]; with it nothing is stored.
    fn shortened(
        &self,
        run: &RunRecord,
        finding: &Finding,
        (budget, until): (u64, Deadline),
        critical: Option<(u64, Deadline)>,
        observer: &mut dyn Observer,
    ) -> Result<Tried, PipelineError> {
        let original = schedule_of(finding)?.clone();
        let scratch = self.store.temporary("minimise")?;
        let program = Program { randomise_addresses: false, ..self.program.clone() };
        let deadline = critical.map_or(until, |(_, until)| until);
        let forcing = Forcing { times: 1, deadline, ..self.forcing(run) };
        let prover =
            Prover { program: &program, forcing: forcing.clone(), symbols: self.symbols, scratch: scratch.path(), executions: 0 };
        let shown = |schedule: &Schedule, outcome: &Outcome, session: &Path| {
            prover.shown(schedule, outcome, session).map(|(shown, _)| shown.id)
        };
        let mut shortener = Shortener {
            program: &program,
            symbols: self.symbols,
            forcing,
            session: scratch.path().join("tried"),
            finding: finding.clone(),
            ending: Ending::TimedOut,
            shown: &shown,
            original: None,
            executions: 0,
            budget,
            until,
            stores: critical.is_none(),
            critical,
        };
        let outcome = self.shorten(&mut shortener, &original, observer);
        let executions = shortener.executions;
        scratch.close().map_err(PipelineError::io("remove the folder of", self.store.path()))?;
        Ok(Tried { outcome, executions })
    }

    fn shorten(
        &self,
        shortener: &mut Shortener<'_, S>,
        original: &Schedule,
        observer: &mut dyn Observer,
    ) -> Result<(Finding, bool), PipelineError> {
        let mut best = shortener.finding.clone();
        let first = force(shortener.program, original, &shortener.session, &shortener.forcing)?;
        shortener.executions += 1;
        shortener.ending = first.execution.ending;
        if !same_again(&best, &first, &shortener.session, self.symbols)? {
            if shortener.forcing.deadline.is_over() {
                return Err(PipelineError::OutOfTime { what: "execute the schedule once" });
            }
            return Ok((best, false));
        }
        shortener.original = (shortener.shown)(original, &first.outcome, &shortener.session);
        // The shortened schedule is executed once more at the end.
        shortener.until = shortener.until.less(first.execution.duration * 2);
        let mut schedule = original.clone();
        let mut width = schedule.turns.len() / 2;
        loop {
            let turns = schedule.turns.len();
            for variant in [without as fn(&Schedule, usize, usize) -> Option<Schedule>, forward] {
                let mut at = schedule.turns.len();
                while at > 0 {
                    at = at.saturating_sub(width.max(1));
                    if let Some(tried) = variant(&schedule, at, width.max(1))
                        && shortener.shows(&tried)?
                    {
                        observer.progress(Progress::Forcing { id: &best.id, number: tried.turns.len(), of: turns });
                        schedule = tried;
                        best.schedule = Some(schedule.clone());
                        best.forget_steps();
                        if shortener.stores {
                            self.store.write_finding(&best)?;
                        }
                        at = at.min(schedule.turns.len());
                    }
                }
            }
            if width <= 1 && schedule.turns.len() == turns || !shortener.has_time() {
                break;
            }
            width /= 2;
        }
        if let Some((budget, until)) = shortener.critical {
            (shortener.budget, shortener.until) = (budget, until.less(first.execution.duration));
        }
        let failing = shortener.session.with_file_name("failing");
        let tried = std::mem::replace(&mut shortener.session, failing.clone());
        let (_, shown) = shortener.run(&schedule)?;
        shortener.session = tried;
        if !shown {
            if shortener.forcing.deadline.is_over() {
                // It was shown when it was found.
                return Ok((best, true));
            }
            return Ok((best, false));
        }
        critical::forget(&mut best);
        best.notes.retain(|note| !note.starts_with(SHORTENED));
        best.notes.push(format!(
            "{SHORTENED}{} where there were {}",
            rashomon_event::counted(schedule.turns.len() as u64, "turn"),
            original.turns.len()
        ));
        self.tell(&mut best, shortener, &schedule, &failing)?;
        best.schedule = Some(schedule);
        Ok((best, true))
    }

    /// Names the critical order. Nothing is said where none is found.
    fn tell(
        &self,
        finding: &mut Finding,
        shortener: &mut Shortener<'_, S>,
        schedule: &Schedule,
        failing: &Path,
    ) -> Result<(), PipelineError> {
        let deadline = shortener.forcing.deadline;
        let Some(loaded) = in_time(load_until(&folder_of(schedule, failing), deadline))? else { return Ok(()) };
        let composer = Composer::new(&loaded, self.symbols, schedule.quantum);
        if schedule.turns.len() <= MAX_STEPS {
            finding.earlier_steps = 0;
            finding.steps = steps(&composer, schedule);
        }
        if shortener.stores {
            finding.forced = Some(Box::new(Drawing::of(&composer).to_its_end(finding)));
        }
        for at in (0..schedule.turns.len()).rev() {
            for variant in [without(schedule, at, 1), Some(up_to(schedule, at))].into_iter().flatten() {
                if !shortener.has_time() {
                    return Ok(());
                }
                let (attempt, same) = shortener.run(&variant)?;
                if same || !passes(&attempt) {
                    continue;
                }
                let other = load_until(&folder_of(&variant, &shortener.session), deadline);
                let Some(other) = in_time(other)? else { return Ok(()) };
                let pair = order::critical(&loaded.trace, &other.trace).map(|(first, second)| (first, &loaded, second));
                let pair =
                    pair.or_else(|| order::prevented(&loaded.trace, &other.trace).map(|(first, second)| (first, &other, second)));
                if let Some((first, seen_in, second)) = pair {
                    let operation =
                        |loaded, index| Operation::of_event(&Composer::new(loaded, self.symbols, schedule.quantum), index);
                    critical::tell(finding, operation(&loaded, first), operation(seen_in, second));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// `None`: there was no time to read it.
fn in_time(loaded: Result<LoadedTrace, PipelineError>) -> Result<Option<LoadedTrace>, PipelineError> {
    match loaded {
        Err(PipelineError::Trace(TraceError::OutOfTime { .. })) => Ok(None),
        loaded => loaded.map(Some),
    }
}

/// Whether an execution went on to an end of its own.
fn passes(attempt: &Attempt) -> bool {
    match attempt.outcome {
        Outcome::ProgramEnded(ending) => matches!(ending, Ending::Code(_)),
        Outcome::ScheduleDone => matches!(attempt.execution.ending, Ending::Code(_)),
        _ => false,
    }
}

/// Indices of turns that the goal speaks of, and the last turn: these stay.
fn fixed(schedule: &Schedule) -> Vec<usize> {
    let goal: Vec<u32> = match &schedule.goal {
        Goal::None => Vec::new(),
        Goal::Race { turns } => turns.to_vec(),
        Goal::Deadlock { turns } => turns.clone(),
    };
    let last = schedule.turns.len().checked_sub(1);
    goal.into_iter().map(|turn| turn as usize).chain(last).collect()
}

/// The schedule with only some of its turns, turns of one thread in a row made one; the goal's are among them.
fn keeping(schedule: &Schedule, turns: Vec<(usize, Turn)>) -> Option<Schedule> {
    let goal = fixed(&Schedule { turns: Vec::new(), ..schedule.clone() });
    let mut kept: Vec<(usize, Turn)> = Vec::with_capacity(turns.len());
    for (index, turn) in turns {
        match kept.last() {
            Some((last, before)) if before.thread == turn.thread && !goal.contains(last) => {
                kept.pop();
                kept.push((index, turn));
            }
            _ => kept.push((index, turn)),
        }
    }
    let place = |turn: &u32| kept.iter().position(|(index, _)| *index == *turn as usize).map(|at| at as u32);
    let goal = match &schedule.goal {
        Goal::None => Goal::None,
        Goal::Race { turns: [one, other] } => Goal::Race { turns: [place(one)?, place(other)?] },
        Goal::Deadlock { turns } => Goal::Deadlock { turns: turns.iter().map(place).collect::<Option<_>>()? },
    };
    let turns: Vec<Turn> = kept.into_iter().map(|(_, turn)| turn).collect();
    (turns.len() < schedule.turns.len()).then(|| Schedule { turns, goal, ..schedule.clone() })
}

fn without(schedule: &Schedule, at: usize, width: usize) -> Option<Schedule> {
    let fixed = fixed(schedule);
    let stays = |index: &usize| !(at..at + width).contains(index) || fixed.contains(index);
    keeping(schedule, schedule.turns.iter().copied().enumerate().filter(|(index, _)| stays(index)).collect())
}

/// The turns' parts are done in the turns that their threads have before.
fn forward(schedule: &Schedule, at: usize, width: usize) -> Option<Schedule> {
    let fixed = fixed(schedule);
    let mut turns: Vec<(usize, Turn)> = schedule.turns.iter().copied().enumerate().collect();
    for index in at..(at + width).min(turns.len()) {
        let turn = schedule.turns[index];
        let before = turns.iter().rposition(|(other, known)| *other < index && known.thread == turn.thread);
        if let Some(before) = before.filter(|&before| !fixed.contains(&index) && !fixed.contains(&turns[before].0)) {
            turns[before].1.until = turn.until;
            turns.retain(|(other, _)| *other != index);
        }
    }
    keeping(schedule, turns)
}

fn up_to(schedule: &Schedule, at: usize) -> Schedule {
    Schedule { turns: schedule.turns[..at].to_vec(), goal: Goal::None, ..schedule.clone() }
}

/// The turns in words, as the failing execution shows them.
fn steps<S: Symbols + ?Sized>(composer: &Composer<'_, S>, schedule: &Schedule) -> Vec<Step> {
    let trace = &composer.loaded.trace;
    let step = |turn: &Turn| {
        let path = schedule.threads.get(turn.thread as usize).cloned().unwrap_or_default();
        let thread = path.to_string();
        let Position { ordinal, place } = turn.until;
        // The offset of an access's code; `None`: a synchronisation event.
        let at = |access: Option<u64>| {
            trace.indices().find(|&index| {
                let event = trace.event(index);
                let offset = matches!(event.kind, EventKind::Access(_)).then(|| trace.site(event.site).offset);
                event.ordinal == ordinal && offset == access && trace.thread(event.thread).path == path
            })
        };
        let (event, otherwise) = match place {
            Place::End => (None, "runs to its end".to_owned()),
            Place::Synchronisation { .. } => (at(None), format!("runs up to its synchronisation event {}", ordinal + 1)),
            Place::Access { site, .. } => (at(Some(site.offset)), "runs up to its access".to_owned()),
            Place::Count { accesses } => (None, format!("makes {accesses} accesses behind its synchronisation event {ordinal}")),
            Place::Waiting { .. } => (None, format!("waits in its synchronisation event {}", ordinal + 1)),
        };
        let until = event.map_or(otherwise, |index| {
            let event = trace.event(index);
            let up_to = if event.access().is_some() { "runs up to its" } else { "runs up to where it" };
            format!("{up_to} {}", action(composer, &event))
        });
        Step { thread, until, place: event.and_then(|index| composer.describer.place_of(index)) }
    };
    schedule.turns.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(turns: &[(u32, u32)], goal: Goal) -> Schedule {
        let turn = |&(thread, ordinal): &(u32, u32)| Turn {
            landmark: None,
            thread,
            until: Position { ordinal, place: Place::Synchronisation { op: 0 } },
        };
        Schedule {
            version: rashomon_event::schedule::SCHEDULE_VERSION,
            modules: Vec::new(),
            threads: Vec::new(),
            turns: turns.iter().map(turn).collect(),
            goal,
            quantum: 0,
            unseen_calls: false,
            surroundings: None,
            kept: Vec::new(),
        }
    }

    fn shown(schedule: Option<Schedule>) -> Option<Vec<(u32, u32)>> {
        Some(schedule?.turns.iter().map(|turn| (turn.thread, turn.until.ordinal)).collect())
    }

    #[test]
    fn a_turn_that_is_taken_out_is_done_later() {
        let all = schedule(&[(0, 1), (1, 1), (0, 2), (1, 2)], Goal::None);
        assert_eq!(shown(without(&all, 1, 1)), Some(vec![(0, 2), (1, 2)]));
        assert_eq!(shown(without(&all, 0, 1)), Some(vec![(1, 1), (0, 2), (1, 2)]));
        assert_eq!(shown(without(&all, 3, 1)), None, "the last one stays");
    }

    #[test]
    fn a_turn_that_is_moved_forward_joins_the_one_before() {
        let all = schedule(&[(0, 1), (1, 1), (0, 2), (1, 2)], Goal::None);
        assert_eq!(shown(forward(&all, 2, 1)), Some(vec![(0, 2), (1, 2)]));
        assert_eq!(shown(forward(&all, 1, 1)), None, "there is none before");
    }

    #[test]
    fn goals_follow_their_turns() {
        let all = schedule(&[(0, 1), (1, 1), (0, 2), (1, 2)], Goal::Race { turns: [2, 3] });
        let tried = without(&all, 0, 2).unwrap();
        assert_eq!((shown(Some(tried.clone())), tried.goal), (Some(vec![(0, 2), (1, 2)]), Goal::Race { turns: [0, 1] }));
        assert_eq!(shown(without(&all, 2, 2)), None);
    }
}
