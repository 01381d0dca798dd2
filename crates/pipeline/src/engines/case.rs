//! What is known of one program while engines work on it: its recordings, what they showed, and the leads that came of them.
//!
//! Whatever an engine executes may become a recording: it is looked at at once, and what is found is in the store before anything
//! else starts.
//!
//! The first recording is the program as the user runs it: its output is shown, its end is ours. Further ones discard their
//! output, read no input of ours and are bounded by what the first one took; one that does not end in that time is of no use and
//! is thrown away, unless an excerpt was wanted.

use crate::analyse::Values;
use crate::analyse::examine::Examination;
use crate::check::Job;
use crate::check::budget::Deadlines;
use crate::check::leads::{Doubt, Gathered, Lead, Source, leads_of, merge};
use crate::check::novelty::{Novelty, Shown};
use crate::check::plan::Next;
use crate::check::tally::{Extent, Tally};
use crate::engines::interleave::Proven;
use crate::error::PipelineError;
use crate::findings::alike::ranked;
use crate::findings::failure::Norm;
use crate::findings::inputs::input_words;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::record::{RecordSettings, Scheduling, record};
use crate::store::run::{RecordedRun, RunRecord};
use rashomon_confirm::force::remove;
use rashomon_confirm::{Ending, Input, Output, Time, execute};
use rashomon_event::{Deadline, Evidence, FindingId, KeptPlace};
use rashomon_report::ProgramExit;
use rashomon_trace::{RunHeader, processes};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How much slower than the first recording a further one may be, and what it may take at least.
const SLOWDOWN: u32 = 5;
const LEAST_LIMIT: Duration = Duration::from_secs(1);

/// Of an excerpt: the most time, the share of the time for recordings, and the most bytes before it keeps no more accesses. While
/// nothing is suspected each has four times as many as the one before, up to the most: one thread alone may use up the first.
const EXCERPT: Duration = Duration::from_secs(1);
const EXCERPTS: u32 = 8;
const LEAST_EXCERPT: Duration = Duration::from_millis(50);
const EXCERPT_BYTES: u64 = 1 << 22;
const MOST_EXCERPT_BYTES: u64 = 1 << 26;

/// How a recording is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As the user runs the program.
    First,
    /// Once more, to its end.
    Further { within: Within },
    /// Its beginning.
    Excerpt,
    /// Once more, with the plain accesses of these places alone; if it does not end in its time, as far as it came.
    Places { kept: Vec<KeptPlace>, until: Deadline },
}

/// The time for a further recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// What recordings have of the budget.
    Share,
    /// All that is left.
    Budget,
}

/// What the analysis of a recording gave.
pub(super) struct Analysed {
    /// `None`: there was no time for all of its processes.
    pub shown: Option<Shown>,
    /// Whether there was any lead, known before or not.
    pub any: bool,
}

/// One program under investigation. Engines read what is known here and add to it; nothing else passes between them.
pub struct Case<'c, 'j, S: ?Sized> {
    pub job: &'c Job<'j, S>,
    pub run: &'c mut RunRecord,
    /// Findings that could still be decided.
    pub gathered: Gathered,
    pub(crate) novelty: Novelty,
    /// Of the whole; [`Deadlines::NEVER`] before the budget has begun.
    pub deadlines: Deadlines,
    pub tally: Tally,
    pub observer: &'c mut dyn Observer,
    /// Interleavings of critical sections that are proven: each cause is told once, whoever finds it.
    pub(crate) violations: Vec<Proven>,
    /// Executions behind the first one that were recorded, or were to be; and all that had been made of any kind when a whole one
    /// last left the world as it does.
    recorded: u64,
    whole: u64,
    /// A recording kept less than there was.
    lost: bool,
    /// The first recording is of one thread, from its beginning to its end.
    pub(super) alone: bool,
    /// The first recording is large, and still to be analysed.
    pub first_waits: bool,
    /// Recordings whose initial process there was no time to read.
    pub(super) unread: Vec<u32>,
    /// Whether a recording may be executed once more for the values that it lacks, and how often one was.
    pub may_replay: bool,
    pub(super) replayed: u32,
    /// Why nothing more is executed, where an execution could not be made. What was decided before stands.
    pub stopped: Option<PipelineError>,
}

impl<'c, 'j, S: Symbols + ?Sized> Case<'c, 'j, S> {
    pub fn new(job: &'c Job<'j, S>, run: &'c mut RunRecord, observer: &'c mut dyn Observer) -> Self {
        Self {
            job,
            run,
            gathered: Gathered::default(),
            novelty: Novelty::default(),
            deadlines: Deadlines::NEVER,
            tally: Tally::default(),
            observer,
            violations: Vec::new(),
            recorded: 0,
            whole: 0,
            lost: false,
            alone: false,
            first_waits: false,
            unread: Vec::new(),
            may_replay: true,
            replayed: 0,
            stopped: None,
        }
    }

    /// Takes an execution of an engine as one more recording, if it shows what none has shown before: `session` is moved into the
    /// store, and its leads are there for every engine. Says whether it was taken.
    pub fn hand_back(&mut self, session: &Path, recorded: RecordedRun) -> Result<bool, PipelineError> {
        let number = self.run.recordings.len() as u32;
        let folder = self.job.store.recording(number);
        remove(&folder)?;
        // However little of it was read: that it failed is new.
        let crashed = matches!(recorded.exit, ProgramExit::Signal { .. });
        std::fs::rename(session, &folder).map_err(PipelineError::io("move", session))?;
        let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.run.recordings.push(RecordedRun { folder: folder_name, ..recorded });
        let is_new = match self.analyse(number) {
            Ok(analysed) => analysed.shown.is_some_and(|shown| self.novelty.learn(shown).is_any()) || analysed.any,
            Err(error) => {
                self.tell(format!("an execution that was to become recording {} is of no use: {error}", number + 1));
                false
            }
        };
        if is_new || crashed {
            self.job.store.write_run(self.run)?;
            self.settle()?;
        } else {
            // No lead refers to it.
            self.run.recordings.pop();
            remove(&folder)?;
        }
        Ok(is_new || crashed)
    }

    /// Whether what was executed was not all kept, or not all looked at.
    pub(super) const fn has_lost(&self) -> bool {
        let tally = &self.tally;
        let lost = self.lost || tally.out_of_time > 0 || tally.set_aside > 0 || tally.not_analysed > 0 || tally.cut_short > 0;
        lost && !self.alone
    }

    /// So many executions, each as long as the first recording: how units of searching engines are compared. The clock does not
    /// decide between them.
    pub(super) fn takes(&self, executions: u64) -> Duration {
        let once = self.run.recordings.first().map_or(1, |first| first.milliseconds.max(1));
        Duration::from_millis(once.saturating_mul(executions))
    }

    /// Nothing more is executed. What was decided before stands.
    pub(super) fn stop(&mut self, error: PipelineError) {
        self.tally.note(format!("nothing more was executed after an error: {error}"), self.observer);
        self.stopped = Some(error);
    }

    /// Executions end where they have decided, or where their time does: what they were writing is cut short. Who restores the
    /// world before each execution finds it after the last as a whole, unobserved one leaves it. (A session that does not exist
    /// lets the program run unobserved.)
    pub(super) fn leave_whole(&mut self) {
        let job = self.job;
        let made = self.tally.executions + self.recorded;
        if made == self.whole || job.program.before_each.is_none() || self.stopped.is_some() {
            return;
        }
        self.whole = made;
        let session = job.store.scratch("whole").join("none");
        let forcing = job.forcing(self.run);
        // Threads that run in parallel, and spin, may take longer: it may outlast the budget by as much as is said of budgets.
        let until = self.deadlines.total.and(job.settings.budget.total / 10);
        let time = Time { limit: Some(forcing.limit), until };
        match execute(job.program, &session, &forcing.input, Output::Discard, time) {
            Ok(last) if last.ending == Ending::TimedOut => self.tally.note(
                "the last execution, which leaves the world as a whole one does, was ended with the \
                    budget: what it writes may be cut short"
                    .into(),
                self.observer,
            ),
            Ok(_) => {}
            Err(error) => self.stop(error.into()),
        }
    }

    /// Whether there is one more recording of use.
    pub(super) fn record_next(&mut self, next: Next, manner: Manner) -> Result<bool, PipelineError> {
        let (job, is_first) = (self.job, manner == Manner::First);
        let number = self.run.recordings.len() as u32;
        let folder = job.store.recording(number);
        let mut settings = RecordSettings { scheduling: next.scheduling, seed: next.seed, ..job.settings.record.clone() };
        if !is_first {
            self.recorded += 1;
            settings.output = Output::Discard;
            if settings.input == Input::Inherit {
                settings.input = Input::Empty;
            }
            let (limit, until) = self.bounds_of(&manner);
            settings.limit = Some(settings.limit.map_or(limit, |given| given.min(limit)));
            settings.until = until;
            if let Manner::Places { kept, .. } = &manner {
                settings.kept.clone_from(kept);
            }
            if manner == Manner::Excerpt {
                let given = if settings.trace_limit == 0 { u64::MAX } else { settings.trace_limit };
                settings.trace_limit = given.min(bytes_of_excerpt(number, !self.gathered.leads.is_empty()));
            }
        }
        let (mut recorded, header) = match record(job.program, &folder, &settings) {
            Ok(recorded) => recorded,
            Err(error) if is_first => return Err(error),
            Err(_) if self.deadlines.total.is_over() => {
                remove(&folder)?;
                return Ok(false);
            }
            Err(error) => {
                self.tell(format!("a further recording failed: {error}"));
                remove(&folder)?;
                return Ok(false);
            }
        };
        if matches!(manner, Manner::Further { .. }) && recorded.exit == ProgramExit::TimedOut {
            remove(&folder)?;
            return Ok(false);
        }
        if is_first && recorded.exit == ProgramExit::TimedOut && settings.until.is_over() {
            let seconds = Duration::from_millis(recorded.milliseconds).as_secs_f64();
            recorded.notes.push(format!(
                "the program was ended after {seconds:.1} s, half of the budget: what it would have done later was not seen; \
                 a larger --budget shows more of it"
            ));
        }
        for note in recorded.notes.iter().filter(|_| is_first) {
            self.observer.progress(Progress::Note(note));
        }
        self.run.recordings.push(recorded);
        job.tell_numbers(self.run, &self.tally, self.observer)?;
        job.store.write_run(self.run)?;
        let of_places = matches!(manner, Manner::Places { .. });
        self.tell_lost(&header, of_places || manner == Manner::Excerpt, of_places);
        Ok(true)
    }

    /// What a recording says of itself, before it is looked at. `is_meant`: an excerpt loses what it is meant to lose, and so
    /// does who keeps some places alone.
    fn tell_lost(&mut self, header: &RunHeader, is_meant: bool, of_places: bool) {
        self.lost |= header.notes.truncated() || header.notes.thinned();
        for loss in header.losses().into_iter().filter(|_| !is_meant) {
            if self.gathered.told.insert(loss.clone()) {
                self.tell(loss);
            }
        }
        for phrase in header.phrases().into_iter().filter(|_| !of_places) {
            self.tell_once(phrase);
        }
    }

    /// The same of a recording that was there before: nothing is executed.
    pub(super) fn take_given(&mut self, number: u32) -> Result<(), PipelineError> {
        let header = RunHeader::read(&self.job.store.recording(number))?;
        let Some(recorded) = self.run.recordings.get(number as usize) else { return Ok(()) };
        let of_places = !recorded.kept.is_empty();
        let is_excerpt = number > 0 && recorded.exit == ProgramExit::TimedOut;
        self.tell_lost(&header, of_places || is_excerpt, of_places);
        Ok(())
    }

    /// The most time of a further recording, and when it has to be over.
    fn bounds_of(&self, manner: &Manner) -> (Duration, Deadline) {
        let deadlines = &self.deadlines;
        let share = deadlines.recording.or(deadlines.total);
        match manner {
            Manner::Excerpt => {
                let limit = share.left().map_or(EXCERPT, |left| left / EXCERPTS);
                (limit.clamp(LEAST_EXCERPT, EXCERPT), share)
            }
            Manner::First | Manner::Further { .. } | Manner::Places { .. } => {
                let first = self.run.recordings.first().map_or(0, |first| first.milliseconds);
                let until = match manner {
                    Manner::Further { within: Within::Share } => share,
                    Manner::Places { until, .. } => *until,
                    _ => deadlines.total,
                };
                ((Duration::from_millis(first) * SLOWDOWN).max(LEAST_LIMIT), until)
            }
        }
    }

    /// What is left of the budget is shared out from now on.
    pub(super) fn begin_budget(&mut self) {
        self.deadlines = self.job.settings.budget.begin();
        self.observer.progress(Progress::Until(self.deadlines.total));
    }

    pub(super) fn tell_if_long(&mut self) {
        let budget = self.job.settings.budget.total;
        let first = self.run.recordings.first().map_or(Duration::ZERO, |first| Duration::from_millis(first.milliseconds));
        if !budget.is_zero() && first > budget {
            self.tell(format!(
                "recording the program took {:.1} s, longer than the budget of {:.1} s: a larger --budget gives more",
                first.as_secs_f64(),
                budget.as_secs_f64()
            ));
        }
    }

    /// Analyses a recording. What is found is in the store.
    pub(super) fn analyse(&mut self, number: u32) -> Result<Analysed, PipelineError> {
        let job = self.job;
        self.observer.progress(Progress::Analysing { number, of: self.run.recordings.len() as u32 });
        let recorded = self.run.recordings.get(number as usize).cloned();
        let (mut fresh, mut any) = (BTreeSet::new(), false);
        let mut all_shown = Some(Shown::default());
        for process in processes(&job.store.recording(number))? {
            let values = if self.may_replay { Values::Asked } else { Values::Known };
            let engine = (job.settings.engine, values);
            let mut examination = Examination::begin(process.folder.clone(), engine, &self.deadlines, job.symbols.trusted());
            let Some((loaded, shown)) = examination.loaded()? else {
                self.tally.not_analysed += 1;
                self.unread.extend(process.path.is_initial().then_some(number));
                all_shown = None;
                continue;
            };
            if let Some(all) = &mut all_shown {
                all.add(shown);
            }
            self.observer.progress(Progress::Recorded {
                number,
                events: loaded.trace.events.len(),
                threads: loaded.trace.threads.len(),
            });
            // Whatever else does not end in its time is no recording.
            let is_excerpt = number > 0 && recorded.as_ref().is_some_and(|recorded| recorded.exit == ProgramExit::TimedOut);
            let ended_well = recorded.as_ref().is_some_and(|recorded| recorded.exit == ProgramExit::Code { code: 0 });
            let extent = match job.program.client {
                _ if is_excerpt => Extent::Excerpt,
                Some(_) if ended_well => Extent::UntilAsked,
                _ => Extent::Whole,
            };
            self.tally.count(&loaded, &process.path, job.symbols.trusted(), extent, self.observer);
            if let Some(note) = input_words(&loaded, job.symbols).filter(|note| !self.tally.notes.contains(note)) {
                self.tally.note(note, self.observer);
            }
            let scheduling = recorded.as_ref().and_then(|recorded| recorded.policy.parse::<Scheduling>().ok());
            let seed = recorded.as_ref().map_or(0, |recorded| recorded.seed);
            let surroundings = scheduling.and_then(|scheduling| scheduling.surroundings(&process.path, seed));
            let kept = recorded.as_ref().map_or_else(Vec::new, |recorded| recorded.kept.clone());
            let from = Source { recording: number, process: process.path, surroundings, kept };
            let exit =
                recorded.as_ref().filter(|_| from.process.is_initial()).map_or(ProgramExit::Unknown, |recorded| recorded.exit);
            let may_be_wrong = Norm::at_worst(job.settings.expected_exit).is_wrong(exit);
            let exit = if may_be_wrong { exit } else { ProgramExit::Unknown };
            let with = (job.symbols, job.settings.record.quantum);
            let mut found = leads_of(&loaded, with, &from, exit, &mut examination, &mut self.tally);
            if !is_excerpt {
                let known: BTreeSet<FindingId> = found.iter().map(|lead| lead.finding.id.clone()).collect();
                let by_value = self.leads_by_value(&loaded, &from, examination.wanted())?;
                // It is the same execution, in which each was seen already.
                found.extend(by_value.into_iter().map(|lead| lead.seen_before(&known)));
            }
            any |= !found.is_empty();
            if found.iter().any(Lead::replays_its_recording) {
                self.gathered.remember(&from, &loaded, job.settings.record.quantum, job.program.client.is_some());
            }
            for lead in found {
                self.gathered.note(&lead);
                // Whether an exit code is wrong is known when all recordings are there.
                if matches!(lead.exit(), Some(ProgramExit::Code { .. })) {
                    merge(&mut self.gathered.exits, lead);
                    continue;
                }
                let id = lead.finding.id.clone();
                if merge(&mut self.gathered.leads, lead) {
                    fresh.insert(id);
                }
            }
        }
        job.tell_numbers(self.run, &self.tally, self.observer)?;
        for id in &fresh {
            if let Some(lead) = self.gathered.leads.get_mut(id) {
                job.complete(&mut lead.finding);
                job.store.write_finding(&lead.finding)?;
                self.observer.progress(Progress::Decided(&lead.finding));
            }
        }
        Ok(Analysed { shown: all_shown, any })
    }

    /// Analyses a recording when the time for predictions may be over: a part of what is left until then is for it.
    pub(super) fn analyse_late(&mut self, number: u32, until: Deadline) -> Result<Analysed, PipelineError> {
        const PART: u32 = 3;
        const AT_LEAST: Duration = Duration::from_millis(200);
        let deadlines = self.deadlines;
        let within = Deadline::within(until.limit(self.job.settings.budget.total) / PART);
        self.deadlines.predicting = deadlines.predicting.later(within).or(until);
        self.deadlines.left_behind = deadlines.left_behind.later(self.deadlines.predicting.and(AT_LEAST));
        let analysed = self.analyse(number);
        self.deadlines = deadlines;
        analysed
    }

    /// What only all recordings together say.
    pub(super) fn settle(&mut self) -> Result<(), PipelineError> {
        let job = self.job;
        self.tally.tell_out_of_time(self.observer);
        let norm = Norm::of(job.settings.expected_exit, self.run.recordings.iter().map(|recording| recording.exit));
        let Gathered { leads, exits, .. } = &mut self.gathered;
        for lead in std::mem::take(exits).into_values().filter(|lead| lead.exit().is_some_and(|exit| norm.is_wrong(exit))) {
            merge(leads, lead);
        }
        // How often each was seen is known now.
        for lead in leads.values() {
            job.store.write_finding(&lead.finding)?;
        }
        let witnesses = leads.values().filter(|lead| lead.finding.schedule.is_some()).count();
        let without = leads.len() - witnesses;
        self.observer.progress(Progress::Analysed { witnesses, without });
        Ok(())
    }

    /// For whoever watches, and for the report.
    pub(crate) fn tell(&mut self, note: String) {
        self.observer.progress(Progress::Note(&note));
        self.tally.notes.push(note);
    }

    /// What every recording would say again.
    fn tell_once(&mut self, phrase: &str) {
        if self.gathered.told.insert(phrase.to_owned()) {
            self.observer.progress(Progress::Note(phrase));
        }
    }
}

impl Gathered {
    /// What the same few replays show first; then one of each cause, the one that its threads come to first; of these surest and
    /// cheapest first. Ids break ties, so that the order is the same in every run.
    pub(crate) fn in_order(&mut self) -> Vec<Lead> {
        let mut leads: Vec<Lead> = std::mem::take(&mut self.leads).into_values().collect();
        leads.sort_by_key(|lead| (lead.finding.verdict.rank(), lead.came, lead.finding.id.clone()));
        let mut leads = ranked(leads, Lead::cause);
        leads.sort_by_key(|(rank, lead)| {
            let turns = lead.finding.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.turns.len());
            let was_ordered = lead.finding.evidence != Evidence::HappensBefore;
            let shared = lead.shared().map_or(u32::MAX, |(from, _)| from.recording);
            let promise = (lead.doubt() == Doubt::Refuted, lead.begun, shared, *rank, lead.doubt());
            (promise, lead.finding.verdict.rank(), was_ordered, turns, lead.finding.id.clone())
        });
        leads.into_iter().map(|(_, lead)| lead).collect()
    }
}

/// `number`: of the recording, the first excerpt having 1.
fn bytes_of_excerpt(number: u32, is_suspected: bool) -> u64 {
    let grown = if is_suspected { 0 } else { number.saturating_sub(1).min(8) };
    (EXCERPT_BYTES << (2 * grown)).min(MOST_EXCERPT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_grow_until_something_is_suspected() {
        let megabytes = |number, is_suspected| bytes_of_excerpt(number, is_suspected) >> 20;
        assert_eq!([1, 2, 3, 4, 1000].map(|number| megabytes(number, false)), [4, 16, 64, 64, 64]);
        assert_eq!([1, 2, 1000].map(|number| megabytes(number, true)), [4, 4, 4]);
    }
}
