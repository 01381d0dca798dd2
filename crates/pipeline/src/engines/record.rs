//! Recordings, in the order of a plan, behind those that are there already; unless nothing is to be analysed, each is looked at
//! before the next one is made.
//!
//! A program that does not end within its share of the budget, and one whose recording is large, would leave no time to look at
//! further schedules, or even at this one. Then further recordings are excerpts: the program's beginning, for a moment and with
//! few accesses, cut off without anybody's asking. A large first recording waits ([`Case::first_waits`]): what these show is
//! quickly predicted and forced.

use crate::check::plan::{History, Next, Plan};
use crate::engines::Asked;
use crate::engines::case::{Case, Manner, Within};
use crate::engines::engine::{Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_event::Deadline;
use rashomon_report::ProgramExit;
use rashomon_trace::{ProcessFolder, Recording, Stream, processes};
use std::path::Path;
use std::time::{Duration, Instant};

pub const NAME: &str = "record";

/// Records until the plan has enough. What is left of the budget is shared out when the first recording has ended.
pub struct Record<'p> {
    plan: &'p mut dyn Plan,
    /// Whether recordings are analysed.
    analyses: bool,
    history: History,
    upcoming: Option<Next>,
    /// So many recordings were there before, and are the first ones. `None`: not known yet.
    given: Option<u32>,
    is_over: bool,
    /// Further recordings are excerpts.
    excerpts: bool,
    expectation: Expectation,
}

/// Bytes of a first recording that waits: some seconds' analysis.
const LARGE: u64 = 1 << 25;

impl<'p> Record<'p> {
    /// Records and analyses.
    pub fn analysing(plan: &'p mut dyn Plan) -> Self {
        // A recording proves nothing by itself, unless it ends blocked; what is predicted from it may be.
        let expectation = Expectation::new(1.0, Duration::ZERO);
        Self {
            plan,
            analyses: true,
            history: History::default(),
            upcoming: None,
            given: None,
            is_over: false,
            excerpts: false,
            expectation,
        }
    }

    /// Records without looking at anything.
    pub fn only(plan: &'p mut dyn Plan) -> Self {
        Self { analyses: false, ..Self::analysing(plan) }
    }

    /// Whether the recording showed anything that none before it had.
    fn analyse<S: Symbols + ?Sized>(
        &mut self,
        case: &mut Case<'_, '_, S>,
        number: u32,
        is_first: bool,
    ) -> Result<bool, PipelineError> {
        match case.analyse(number) {
            Ok(analysed) => Ok(analysed.shown.is_some_and(|shown| case.novelty.learn(shown).is_any())),
            Err(error) if is_first => Err(error),
            // The others are worth what they are.
            Err(error) => {
                case.tell(format!("recording {} is of no use: {error}", number + 1));
                Ok(false)
            }
        }
    }

    /// Looks at a recording that was just made, or given, now or later. Whether it showed anything new.
    fn take<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, number: u32) -> Result<bool, PipelineError> {
        let is_first = number == 0;
        let bytes = size_of(&case.job.store.recording(number));
        self.history.bytes += bytes;
        if !is_first || self.plan.total().is_some() {
            self.history.largest = self.history.largest.max(bytes);
            return self.analyse(case, number, is_first);
        }
        let was_cut = case.run.recordings.first().is_some_and(|first| first.exit == ProgramExit::TimedOut);
        if !was_cut && is_of_one_thread(&case.job.store.recording(number)) {
            // There is no other schedule, and nothing in it that another thread could do.
            case.alone = true;
            self.is_over = true;
        }
        self.excerpts = was_cut || bytes > LARGE;
        let has_failed = case.run.recordings.first().is_some_and(|first| matches!(first.exit, ProgramExit::Signal { .. }));
        // A failure does not wait: it is told at once.
        if bytes > LARGE && !has_failed {
            case.first_waits = true;
            return Ok(true);
        }
        if !was_cut {
            self.history.largest = bytes;
        }
        self.analyse(case, number, is_first)
    }

    /// The next of the recordings that the case began with, as if it had just been made. The budget is for what follows.
    fn take_given<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>) -> Result<Yield, PipelineError> {
        let number = self.history.recordings;
        let before = case.gathered.leads.len();
        let begin = Instant::now();
        if number == 0 {
            case.begin_budget();
        }
        case.take_given(number)?;
        let of_use = self.take(case, number)?;
        self.history.recordings += 1;
        self.history.fruitless = if of_use { 0 } else { self.history.fruitless + 1 };
        // Another one would have to be made.
        let recorded = case.run.recordings.get(number as usize).map_or(0, |recorded| recorded.milliseconds);
        if !(number == 0 && self.excerpts) {
            self.history.longest = self.history.longest.max(begin.elapsed() + Duration::from_millis(recorded));
        }
        self.history.left = case.deadlines.recording.left();
        let made = Yield { leads: case.gathered.leads.len() - before, ..Yield::default() };
        self.expectation.learn(made, begin.elapsed() + Duration::from_millis(recorded));
        Ok(made)
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Record<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        if self.history.recordings < *self.given.get_or_insert(case.run.recordings.len() as u32) {
            return Some(self.expectation.offer());
        }
        if self.upcoming.is_none() && !self.is_over {
            self.upcoming = self.plan.next(&self.history);
            self.is_over = self.upcoming.is_none();
        }
        self.upcoming.is_some().then(|| self.expectation.offer())
    }

    /// One recording. It ends when its own time is up, or that of recordings.
    fn step(&mut self, case: &mut Case<'_, '_, S>, _: Deadline) -> Result<Yield, PipelineError> {
        if self.given.is_some_and(|given| self.history.recordings < given) {
            return self.take_given(case);
        }
        let is_first = self.history.recordings == 0;
        let Some(next) = self.upcoming.take() else { return Ok(Yield::default()) };
        if is_first {
            case.job.store.write_run(case.run)?;
        } else if case.deadlines.total.is_over() {
            let of = self.plan.total().map(|total| format!(" of {total}")).unwrap_or_default();
            case.tell(format!("the budget was spent after {}{of} recordings", case.run.recordings.len()));
            self.is_over = true;
            return Ok(Yield::default());
        }
        let before = case.gathered.leads.len();
        case.observer.progress(Progress::Recording { number: self.history.recordings, of: self.plan.total() });
        let begin = Instant::now();
        let manner = match is_first {
            true => Manner::First,
            false if self.excerpts => Manner::Excerpt,
            // Whoever asks for a number of recordings gives them the whole budget.
            false => Manner::Further { within: if self.plan.total().is_none() { Within::Share } else { Within::Budget } },
        };
        let recorded = case.record_next(next, manner)?;
        if is_first && self.analyses {
            case.begin_budget();
            case.tell_if_long();
        }
        let of_use = recorded && self.analyses && self.take(case, case.run.recordings.len() as u32 - 1)?;
        self.history.recordings += 1;
        self.history.fruitless = if of_use { 0 } else { self.history.fruitless + 1 };
        if !(is_first && self.excerpts) {
            self.history.longest = self.history.longest.max(begin.elapsed());
        }
        self.history.left = case.deadlines.recording.left();
        let leads = case.gathered.leads.len() - before;
        let made = Yield { recordings: u32::from(recorded), leads, proven: 0 };
        self.expectation.learn(made, begin.elapsed());
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        if self.analyses { case.settle() } else { Ok(()) }
    }
}

/// Whatever is checked is recorded first.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    let plan = asked.plan.take()?;
    Some(Registered { engine: Box::new(Record::analysing(plan)), share: Share::Whole, turn: Turn::First })
}

fn is_of_one_thread(folder: &Path) -> bool {
    let threads = |process: ProcessFolder| Recording::open(&process.folder).map_or(2, |recording| recording.streams.len());
    processes(folder).is_ok_and(|found| found.into_iter().map(threads).sum::<usize>() == 1)
}

/// Bytes of records that a recording holds, before they are compressed: what its analysis has to go through. What cannot be read
/// counts nothing.
fn size_of(folder: &Path) -> u64 {
    let bytes = |process: ProcessFolder| {
        let recording = Recording::open(&process.folder).ok()?;
        Some(recording.streams.iter().map(Stream::record_bytes).sum::<u64>())
    };
    processes(folder).map_or(0, |found| found.into_iter().filter_map(bytes).sum())
}
