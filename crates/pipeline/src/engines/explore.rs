//! Exploration ([`crate::explore`]): schedules of the program, a batch at a time.
//!
//! In a check all schedules with few preemptions are tried, fewest first, whether one fails or not: most bugs of small programs
//! need no more. It ends when none is left, or when executions have shown nothing new for long (see [`crate::explore::DRY`]).
//! Once its share of the budget is spent it only goes on when nobody else has anything to do, and leaves a tenth to those who
//! compare what was found. An execution that shows an order of operations that none before it did is replayed under the recorder,
//! and becomes a recording if it shows what no recording has: so code is analysed, too, that runs in some schedules only.

use crate::check::Job;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::error::PipelineError;
pub use crate::explore::NAME;
use crate::explore::{ExpectedExit, ExploreSettings, Explored, Exploring};
use crate::findings::failure::Norm;
use crate::findings::symbols::Symbols;
use crate::store::run::RecordedRun;
use rashomon_confirm::{Ending, Outcome};
use rashomon_event::Deadline;
use rashomon_report::ProgramExit;
use rashomon_trace::processes;
use std::time::{Duration, Instant};

/// Of what is left behind the first recording, exploration may take one part in so many.
const PART: u32 = 6;
/// When it has more, because nobody else has anything to do, one part in so many stays for those who come last.
const KEPT: u32 = 10;
/// A program is explored in a check if so many executions fit into half of the budget: what others leave is exploration's.
const LEAST_EXECUTIONS: u32 = 20;
/// Executions that may become recordings, and how many of them in a row may show nothing new.
const MOST_FED_BACK: u32 = 12;
const MOST_IN_VAIN: u32 = 4;

/// Explores the program, whose first recording is in the store, and stores what fails.
pub struct Explore {
    settings: ExploreSettings,
    exploring: Option<Exploring>,
    is_over: bool,
    /// What came of it.
    pub explored: Explored,
    expectation: Expectation,
    /// `None`: a command of its own.
    check: Option<OfCheck>,
}

/// What a check wants besides.
struct OfCheck {
    share: Duration,
    /// What it has had of its share.
    had: Duration,
    /// What is left to those behind it.
    kept: Duration,
    /// Why there is nothing to explore, once the first recording says so.
    refused: Option<&'static str>,
    feeds_back: bool,
    fed_back: u32,
    /// Fed back in a row that showed nothing new.
    in_vain: u32,
}

impl OfCheck {
    fn is_spent(&self) -> bool {
        self.had >= self.share
    }

    /// When the next turn has to be over.
    fn until(&self, total: Deadline) -> Deadline {
        if self.is_spent() { total.less(self.kept) } else { total.or(Deadline::within(self.share - self.had)) }
    }
}

impl Explore {
    pub fn new(settings: ExploreSettings) -> Self {
        let explored = Explored { covered: "nothing".into(), ..Explored::default() };
        let expectation = Expectation::new(0.05, Duration::from_millis(100));
        Self { settings, exploring: None, is_over: false, explored, expectation, check: None }
    }

    /// Why the program is not explored in a check.
    fn refused<S: Symbols + ?Sized>(
        case: &Case<'_, '_, S>,
        (share, jobs): (Duration, usize),
    ) -> Result<Option<&'static str>, PipelineError> {
        let Some(first) = case.run.recordings.first() else { return Ok(Some("nothing is recorded")) };
        let once = Duration::from_millis(first.milliseconds);
        Ok(if case.job.program.client.is_some() {
            Some("a program that serves a client is not explored")
        } else if first.exit == ProgramExit::TimedOut {
            Some("a program that was ended is not explored")
        } else if once * LEAST_EXECUTIONS > share * (PART / 2) * u32::try_from(jobs).unwrap_or(1) {
            Some("schedules are not explored: one takes too long")
        } else if processes(&case.job.store.recording(0))?.len() > 1 {
            Some("a program of several processes is not explored")
        } else {
            None
        })
    }

    /// What the recordings say about the exit.
    fn expected<S: Symbols + ?Sized>(case: &Case<'_, '_, S>) -> ExpectedExit {
        let norm = Norm::of(case.job.settings.expected_exit, case.run.recordings.iter().map(|recording| recording.exit));
        norm.code().map_or(ExpectedExit::AnyCode, ExpectedExit::Code)
    }

    /// Replays what showed something new, as long as that is of use. Says how many became recordings.
    fn feed_back<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<u32, PipelineError> {
        let (Some(exploring), Some(check)) = (&mut self.exploring, &mut self.check) else { return Ok(0) };
        let mut taken = 0;
        for schedule in exploring.take_new() {
            if !check.feeds_back || check.fed_back == MOST_FED_BACK || check.in_vain == MOST_IN_VAIN || until.is_over() {
                break;
            }
            let job: &Job<'_, S> = case.job;
            let session = job.store.scratch(NAME).join("recording");
            let begin = Instant::now();
            let attempt = exploring.replay(&schedule, &session, until)?;
            let exit = match (&attempt.outcome, attempt.execution.ending) {
                (Outcome::ScheduleDone | Outcome::ProgramEnded(_), Ending::Code(code)) => ProgramExit::Code { code },
                // What fails is a finding already.
                _ => {
                    case.tally.executions += 1;
                    continue;
                }
            };
            check.fed_back += 1;
            let recorded = RecordedRun {
                folder: String::new(),
                policy: NAME.into(),
                seed: job.settings.record.seed,
                exit,
                milliseconds: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
                notes: Vec::new(),
                kept: Vec::new(),
            };
            if case.hand_back(&session, recorded)? {
                taken += 1;
                check.in_vain = 0;
            } else {
                // Recordings are counted as such.
                case.tally.executions += 1;
                check.in_vain += 1;
            }
        }
        Ok(taken)
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Explore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        if let Some(check) = &mut self.check
            && self.exploring.is_none()
            && !self.is_over
        {
            // What cannot be looked at says so when the others look at it.
            let refused = Self::refused(case, (check.share, self.settings.jobs));
            check.refused = refused.unwrap_or(Some("the recording cannot be read"));
            self.is_over = check.refused.is_some();
            let at_once = self.settings.jobs as u64;
            self.expectation = Expectation::new(WORTH, case.takes(at_once)).weighing(WEIGHT);
            self.settings.expected = Self::expected(case);
            // What is drawn beside is drawn otherwise in each part.
            self.settings.seed = case.job.settings.shard.seeds();
        }
        let offer = self.expectation.offer();
        let offer = match &self.check {
            Some(check) if check.is_spent() && case.deadlines.total.less(check.kept).is_over() => None,
            Some(check) if check.is_spent() => Some(Offer { gives: 0.0, ..offer }),
            _ => Some(offer),
        };
        offer.filter(|_| !self.is_over)
    }

    /// Schedules that are executed at the same time, with the replay of what fails; at the end, its minimising.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let begin = Instant::now();
        let until = self.check.as_ref().map_or(until, |check| check.until(until));
        let exploring = match &mut self.exploring {
            Some(exploring) => exploring,
            None => match case.job.begin_exploring(case.run, &self.settings, until, case.observer)? {
                Some(exploring) => self.exploring.insert(exploring),
                None => {
                    self.is_over = true;
                    return Ok(Yield::default());
                }
            },
        };
        let (before, tried) = (exploring.found(), exploring.executions());
        let is_left = case.job.explore_batch(exploring, until, case.observer)?;
        let proven = exploring.found() - before;
        let mut executions = exploring.executions() - tried;
        if let Some(check) = self.check.as_mut().filter(|check| !is_left && !check.is_spent() && exploring.is_late(until)) {
            check.had = check.share;
        } else if !is_left || exploring.is_dry() {
            self.is_over = true;
            self.explored = case.job.end_exploring(exploring, until, case.observer)?;
            executions = self.explored.executions - tried;
        }
        case.tally.executions += executions;
        let recordings = self.feed_back(case, until)?;
        if let Some(check) = &mut self.check {
            check.had += begin.elapsed();
        }
        // A recording is worth what may be found in it.
        let made = Yield { proven, recordings, leads: recordings as usize };
        self.expectation.learn(made, case.takes(executions));
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let Some(check) = &self.check else { return Account::default() };
        if let Some(refused) = check.refused {
            return Account { tried: None, left: Some(refused.into()), ..Account::default() };
        }
        let Some(exploring) = &self.exploring else {
            return Account { tried: None, left: Some("exploring schedules: no time was left".into()), ..Account::default() };
        };
        let account = exploring.account();
        let fed = (check.fed_back > 0).then(|| {
            format!(
                ", {} of which showed something new and {} recorded",
                check.fed_back,
                if check.fed_back == 1 { "was" } else { "were" }
            )
        });
        Account { tried: account.tried.map(|tried| tried + &fed.unwrap_or_default()), ..account }
    }
}

/// Bugs that are expected of the first schedules: about one in thirty of the test programs' is shown by each.
const WORTH: f64 = 0.03;
/// Batches that this guess weighs as much as: one is a schedule or two, and the first ones differ least from what is recorded.
const WEIGHT: u32 = 16;

/// Where threads ran one after the other, and there is a program to execute.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = asked.budget / PART;
    let (had, kept) = (Duration::ZERO, asked.budget / KEPT);
    let check = OfCheck { share, had, kept, refused: None, feeds_back: asked.feeds_back, fed_back: 0, in_vain: 0 };
    let engine = Explore { check: Some(check), ..Explore::new(ExploreSettings::of_check(asked.jobs)) };
    Some(Registered { engine: Box::new(engine), share: Share::Whole, turn: Turn::ByOffer })
}
