//! What a race does to the program: both orders of the two accesses are executed, and compared.
//!
//! A proof of a race ends where both threads stand at their accesses. From there one access is made and then the other, and the
//! other way round. Behind that one of the threads goes on as far as it gets, in one execution of each order the one and in
//! another the other: who is the next to run is no matter of the race. If no execution of the one order ends as one of the other
//! does, the order decides, and [`Harm`] says how bad that is. Output counts only if the same execution prints the same again.
//!
//! Limits. What a program neither prints nor ends with is not compared. That no difference is seen says nothing about other
//! orders of what comes later. Races that have no schedule which brings both threads to their accesses are not compared.

use crate::check::leads::is_proven;
use crate::check::prove::load_until;
use crate::ended::Ended;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Offer, Registered, Share, Turn, Yield};
use crate::engines::left::Left;
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::failure::is_own;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_confirm::{Attempt, Ending, Forcing, Outcome, Output, force};
use rashomon_event::{Deadline, Finding, FindingKind, Goal, Grade, Harm, Place, Position, Schedule, ThreadPath, Turn as Step};
use rashomon_trace::GoalRecord;
use std::path::PathBuf;
use std::time::Duration;

pub const NAME: &str = "harm";

/// Of what is left behind the first recording, this engine may take one part in so many.
const PART: u32 = 10;
/// Executions of a race: of its proof, of each order with each thread that goes on, and of one of these once more.
const EXECUTIONS: u64 = 6;
/// First which of the two makes its access, and which goes on behind both.
const WAYS: [(usize, usize); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];
/// The end of a thread, or as far as it gets.
const END: Position = Position { ordinal: u32::MAX, place: Place::End };
/// Races that are compared.
const MOST: usize = 16;

/// Executes both orders of each race that is proven.
#[derive(Default)]
pub struct Compare {
    open: Left,
    compared: u64,
    executions: u64,
}

/// What came of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Crashed(i32),
    Hung,
    /// With the lines that it printed.
    Ended(i32, Vec<String>),
}

impl Seen {
    /// `None`: it left its schedule, or its time was over; that decides nothing.
    fn of(attempt: &Attempt, session: &std::path::Path) -> Result<Option<Self>, PipelineError> {
        if matches!(attempt.outcome, Outcome::Deadlocked | Outcome::Stuck | Outcome::Endless) {
            return Ok(Some(Self::Hung));
        }
        if !attempt.outcome.is_orderly() {
            return Ok(None);
        }
        Ok(match attempt.execution.ending {
            Ending::Signal(signal) if is_own(signal) => Some(Self::Crashed(signal)),
            Ending::Code(code) => Some(Self::Ended(code, Ended::of(Ending::Code(code), session)?.sorted_lines())),
            _ => None,
        })
    }

    /// Without what was printed.
    const fn end(&self) -> (Harm, i32) {
        match self {
            Self::Crashed(signal) => (Harm::Crash, *signal),
            Self::Hung => (Harm::Hang, 0),
            Self::Ended(code, _) => (Harm::Result, *code),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Crashed(signal) => format!("the program is ended by signal {signal}"),
            Self::Hung => "the program never ends".to_owned(),
            Self::Ended(code, _) => format!("the program ends with exit code {code}"),
        }
    }
}

/// What the executions of either order say together.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    ByEnd(Harm),
    /// If the same execution prints the same again.
    ByOutput,
    Alike,
}

fn judge([one, other]: &[Vec<Seen>; 2]) -> Judged {
    let (ends, others) = (one.iter().map(Seen::end), || other.iter().map(Seen::end));
    if !ends.clone().any(|end| others().any(|same| same == end)) {
        return ends.chain(others()).map(|(harm, _)| harm).min().map_or(Judged::Alike, Judged::ByEnd);
    }
    if one.iter().any(|seen| other.contains(seen)) { Judged::Alike } else { Judged::ByOutput }
}

/// What came of either order, in words. `firsts`: whose access is the first.
fn words(judged: &Judged, [one, other]: &[Vec<Seen>; 2], firsts: &[String; 2]) -> Option<String> {
    let (a, b) = (one.iter().min_by_key(|seen| seen.end())?, other.iter().min_by_key(|seen| seen.end())?);
    Some(match judged {
        Judged::ByEnd(_) => format!("{} first, {}; {} first, {}", firsts[0], a.words(), firsts[1], b.words()),
        Judged::ByOutput => {
            let (mine, theirs) = (printed(a, b), printed(b, a));
            format!("{} first, the program {mine}; {} first, it {theirs}", firsts[0], firsts[1])
        }
        Judged::Alike => format!("either access first, in {}: {}", count(EXECUTIONS - 2, "execution"), a.words()),
    })
}

/// The first line that only one of them prints.
fn printed(mine: &Seen, others: &Seen) -> String {
    let (Seen::Ended(_, mine), Seen::Ended(_, others)) = (mine, others) else { return mine.words() };
    match mine.iter().find(|line| !others.contains(line)) {
        Some(line) => format!("prints `{line}`"),
        None => "does not print that".to_owned(),
    }
}

/// Where a thread stands when it has made the access that it stood before.
fn behind(goal: &GoalRecord) -> Option<Position> {
    Some(if goal.atomic {
        Position { ordinal: goal.ordinal + 1, place: Place::Count { accesses: 0 } }
    } else {
        Position { ordinal: goal.ordinal, place: Place::Count { accesses: goal.executed? + 1 } }
    })
}

/// Executions for one race.
struct Executions<'e, 'c, 'j, S: ?Sized> {
    case: &'e mut Case<'c, 'j, S>,
    session: PathBuf,
    forcing: Forcing,
    made: u64,
}

impl<S: Symbols + ?Sized> Executions<'_, '_, '_, S> {
    fn compare(&mut self, finding: &Finding) -> Result<Option<(Harm, String)>, PipelineError> {
        let Some(schedule) = &finding.schedule else { return Ok(None) };
        self.case.observer.progress(Progress::Working(&format!("executing both orders of {}", finding.id)));
        let Some(last) = self.last_steps(schedule)? else { return Ok(None) };
        let mut orders = [Vec::new(), Vec::new()];
        for way in WAYS {
            let Some(seen) = self.execute(schedule, &last, way)? else { return Ok(None) };
            orders[way.0].push(seen);
        }
        let mut judged = judge(&orders);
        if judged == Judged::ByOutput && self.execute(schedule, &last, WAYS[0])?.as_ref() != orders[0].first() {
            judged = Judged::Alike;
        }
        if self.forcing.deadline.is_over() {
            return Ok(None);
        }
        let words = words(&judged, &orders, &last.map(|(_, path)| format!("with the access of {}", path.words())));
        let harm = match judged {
            Judged::ByEnd(harm) => harm,
            Judged::ByOutput => Harm::Result,
            Judged::Alike => Harm::NoneSeen,
        };
        Ok(words.map(|words| (harm, words)))
    }

    /// The accesses in one order, and who goes on; `None`: it left its schedule, or there was no time.
    fn execute(
        &mut self,
        schedule: &Schedule,
        last: &[(Step, ThreadPath); 2],
        (first, goes_on): (usize, usize),
    ) -> Result<Option<Seen>, PipelineError> {
        let mut order = Schedule { goal: Goal::None, ..schedule.clone() };
        order.turns.extend([last[first].0, last[1 - first].0, Step { until: END, ..last[goes_on].0 }]);
        let attempt = force(self.case.job.program, &order, &self.session, &self.forcing)?;
        self.made += 1;
        if self.forcing.deadline.is_over() { Ok(None) } else { Seen::of(&attempt, &self.session) }
    }

    /// The step of each thread past its access, and which thread it is.
    fn last_steps(&mut self, schedule: &Schedule) -> Result<Option<[(Step, ThreadPath); 2]>, PipelineError> {
        let Goal::Race { turns } = &schedule.goal else { return Ok(None) };
        let attempt = force(self.case.job.program, schedule, &self.session, &self.forcing)?;
        self.made += 1;
        if attempt.outcome != Outcome::CoEnabled {
            return Ok(None);
        }
        let Ok(loaded) = load_until(&self.session, self.forcing.deadline) else { return Ok(None) };
        let step = |turn: u32| {
            let thread = schedule.turns.get(turn as usize)?.thread;
            let path = schedule.threads.get(thread as usize)?;
            let goal = loaded.goals.iter().find(|goal| loaded.trace.thread(goal.thread).path == *path)?;
            Some((Step { thread, until: behind(goal)?, landmark: None }, path.clone()))
        };
        Ok(step(turns[0]).zip(step(turns[1])).map(|(one, other)| [one, other]))
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Compare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        self.open.offer(case, EXECUTIONS)
    }

    /// One race.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let job = case.job;
        let Some(mut finding) = self.open.next(case, is_comparable, MOST)? else { return Ok(Yield::default()) };
        let forcing = Forcing { deadline: until, output: Output::Keep, ..job.forcing(case.run) };
        let mut executions = Executions { session: job.store.scratch(NAME).join("session"), forcing, case, made: 0 };
        let judged = executions.compare(&finding);
        let made = executions.made;
        self.executions += made;
        case.tally.executions += made;
        if let Some((harm, words)) = judged? {
            self.compared += 1;
            finding.harm = Some(harm);
            finding.notes.push(words);
            job.store.write_finding(&finding)?;
        }
        Ok(Yield::default())
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.compared > 0).then(|| {
            format!("both orders of {} compared in {}", count(self.compared, "race"), count(self.executions, "execution"))
        });
        Account { tried, ..Account::default() }
    }
}

/// A race that a schedule brings about, and that nobody has compared yet.
fn is_comparable(finding: &Finding) -> bool {
    finding.kind == FindingKind::DataRace
        && is_proven(finding)
        && finding.verdict.grade() == Some(Grade::CoEnabled)
        && finding.harm.is_none()
        && finding.schedule.as_ref().is_some_and(|schedule| schedule.surroundings.is_none())
}

/// Behind all others, if there is a program to execute that serves nobody.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost((asked.budget / PART).max(Duration::from_millis(1)));
    Some(Registered { engine: Box::new(Compare::default()), share, turn: Turn::Last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, line: &str) -> Seen {
        Seen::Ended(code, vec![line.to_owned()])
    }

    fn judged(one: &[Seen], other: &[Seen]) -> Judged {
        judge(&[one.to_vec(), other.to_vec()])
    }

    #[test]
    fn the_worst_end_of_either_order_is_told() {
        assert_eq!(judged(&[ended(0, "a")], &[Seen::Hung, Seen::Crashed(11)]), Judged::ByEnd(Harm::Crash));
        assert_eq!(judged(&[Seen::Hung], &[ended(0, "a")]), Judged::ByEnd(Harm::Hang));
        assert_eq!(judged(&[ended(0, "a")], &[ended(1, "a")]), Judged::ByEnd(Harm::Result));
        let orders = [vec![ended(0, "a")], vec![ended(0, "a"), Seen::Crashed(6)]];
        let said = words(&Judged::ByEnd(Harm::Crash), &orders, &["this".into(), "that".into()]);
        assert_eq!(said.unwrap(), "this first, the program ends with exit code 0; that first, the program is ended by signal 6");
    }

    #[test]
    fn an_end_that_both_orders_have_is_not_decided_by_the_order() {
        let (fine, crash) = (ended(0, "a"), Seen::Crashed(11));
        assert_eq!(judged(&[fine.clone(), crash.clone()], &[crash.clone(), fine]), Judged::Alike);
        assert_eq!(judged(&[Seen::Crashed(11)], &[crash]), Judged::Alike);
    }

    #[test]
    fn output_counts_where_ends_are_alike() {
        assert_eq!(judged(&[ended(0, "a")], &[ended(0, "b"), ended(0, "c")]), Judged::ByOutput);
        assert_eq!(judged(&[ended(0, "a"), ended(0, "c")], &[ended(0, "b"), ended(0, "c")]), Judged::Alike);
        let said = words(&Judged::ByOutput, &[vec![ended(0, "a")], vec![ended(0, "b")]], &["this".into(), "that".into()]);
        assert_eq!(said.unwrap(), "this first, the program prints `a`; that first, it prints `b`");
    }
}
