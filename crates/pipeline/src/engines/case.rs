//! Recording and analysing, in turns: what a plan asks for is recorded, looked at at once, and what is found is in the store
//! before the next recording starts.
//!
//! The first recording is the program as the user runs it: its output is shown, its end is ours. Further ones discard their
//! output, read no input of ours and are bounded by what the first one took; one that does not end in that time is of no use and
//! is thrown away.

use crate::analyse::examine::Examination;
use crate::check::Job;
use crate::check::budget::Deadlines;
use crate::check::leads::{Gathered, Lead, Source, leads_of, merge};
use crate::check::novelty::{Novelty, Shown};
use crate::check::plan::{History, Next, Plan};
use crate::check::tally::Tally;
use crate::error::PipelineError;
use crate::findings::alike::ranked;
use crate::findings::failure::Norm;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::record::{RecordSettings, Scheduling, record};
use crate::store::run::RunRecord;
use rashomon_confirm::force::remove;
use rashomon_confirm::{Input, Output};
use rashomon_event::Evidence;
use rashomon_report::ProgramExit;
use rashomon_trace::processes;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// How much slower than the first recording a further one may be, and what it may take at least.
const SLOWDOWN: u32 = 5;
const LEAST_LIMIT: Duration = Duration::from_secs(1);

/// What is known while recordings are made and looked at.
struct Gathering<'g> {
    deadlines: Deadlines,
    gathered: Gathered,
    novelty: Novelty,
    tally: &'g mut Tally,
    observer: &'g mut dyn Observer,
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Records and analyses until the plan has enough. `run` is in the store after each recording, and every finding as soon as
    /// it is known. The budget begins with the end of the first recording.
    pub fn gather(
        &self,
        run: &mut RunRecord,
        plan: &mut dyn Plan,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<Gathered, PipelineError> {
        self.store.write_run(run)?;
        let mut gathering = Gathering {
            deadlines: Deadlines::NEVER,
            gathered: Gathered::default(),
            novelty: Novelty::default(),
            tally,
            observer,
        };
        let mut history = History::default();
        while let Some(next) = plan.next(&history) {
            let is_first = history.recordings == 0;
            if !is_first && gathering.deadlines.total.is_over() {
                let of = plan.total().map(|total| format!(" of {total}")).unwrap_or_default();
                gathering.tell(format!("the budget was spent after {}{of} recordings", run.recordings.len()));
                break;
            }
            gathering.observer.progress(Progress::Recording { number: history.recordings, of: plan.total() });
            let begin = Instant::now();
            let recorded = self.record_next(run, next, is_first, plan.total().is_none(), &mut gathering)?;
            if is_first {
                gathering.deadlines = self.settings.budget.begin();
                self.tell_if_long(run, &mut gathering);
            }
            let of_use = recorded && {
                let number = run.recordings.len() as u32 - 1;
                let bytes = size_of(&self.store.recording(number));
                history.bytes += bytes;
                history.largest = history.largest.max(bytes);
                match self.analyse(run, number, &mut gathering) {
                    Ok(shown) => shown.is_some_and(|shown| gathering.novelty.learn(shown).is_any()),
                    Err(error) if is_first => return Err(error),
                    // The others are worth what they are.
                    Err(error) => {
                        gathering.tell(format!("recording {} is of no use: {error}", number + 1));
                        false
                    }
                }
            };
            history.recordings += 1;
            history.barren = if of_use { 0 } else { history.barren + 1 };
            history.longest = history.longest.max(begin.elapsed());
            history.left = gathering.deadlines.recording.left();
        }
        self.settle(run, &mut gathering)?;
        gathering.gathered.deadlines = gathering.deadlines;
        Ok(gathering.gathered)
    }

    /// Records without looking at anything.
    pub fn record_all(&self, run: &mut RunRecord, plan: &mut dyn Plan, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        self.store.write_run(run)?;
        let mut gathering = Gathering {
            deadlines: Deadlines::NEVER,
            gathered: Gathered::default(),
            novelty: Novelty::default(),
            tally: &mut Tally::default(),
            observer,
        };
        let mut history = History::default();
        while let Some(next) = plan.next(&history) {
            gathering.observer.progress(Progress::Recording { number: history.recordings, of: plan.total() });
            self.record_next(run, next, history.recordings == 0, plan.total().is_none(), &mut gathering)?;
            history.recordings += 1;
        }
        Ok(())
    }

    /// Analyses what is recorded already.
    pub fn analyse_all(
        &self,
        run: &RunRecord,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<Gathered, PipelineError> {
        let deadlines = self.settings.budget.begin();
        let mut gathering = Gathering { deadlines, gathered: Gathered::default(), novelty: Novelty::default(), tally, observer };
        for number in 0..run.recordings.len() as u32 {
            self.analyse(run, number, &mut gathering)?;
        }
        self.settle(run, &mut gathering)?;
        gathering.gathered.deadlines = deadlines;
        Ok(gathering.gathered)
    }

    /// Whether there is one more recording of use.
    fn record_next(
        &self,
        run: &mut RunRecord,
        next: Next,
        is_first: bool,
        is_open_ended: bool,
        gathering: &mut Gathering<'_>,
    ) -> Result<bool, PipelineError> {
        let number = run.recordings.len() as u32;
        let folder = self.store.recording(number);
        let mut settings = RecordSettings { scheduling: next.scheduling, seed: next.seed, ..self.settings.record.clone() };
        if !is_first {
            settings.output = Output::Discard;
            if settings.input == Input::Inherit {
                settings.input = Input::Empty;
            }
            let first = run.recordings.first().map_or(Duration::ZERO, |first| Duration::from_millis(first.milliseconds));
            let limit = (first * SLOWDOWN).max(LEAST_LIMIT);
            let limit = settings.limit.map_or(limit, |given| given.min(limit));
            settings.limit = Some(limit);
            // Whoever asks for a number of recordings gives them the whole budget.
            let deadlines = &gathering.deadlines;
            settings.until = if is_open_ended { deadlines.recording.or(deadlines.total) } else { deadlines.total };
        }
        let (recorded, header) = match record(self.program, &folder, &settings) {
            Ok(recorded) => recorded,
            Err(error) if is_first => return Err(error),
            Err(_) if gathering.deadlines.total.is_over() => {
                remove(&folder)?;
                return Ok(false);
            }
            Err(error) => {
                gathering.tell(format!("a further recording failed: {error}"));
                remove(&folder)?;
                return Ok(false);
            }
        };
        if !is_first && recorded.exit == ProgramExit::TimedOut {
            remove(&folder)?;
            return Ok(false);
        }
        for note in recorded.notes.iter().filter(|_| is_first) {
            gathering.observer.progress(Progress::Note(note));
        }
        run.recordings.push(recorded);
        self.tell_numbers(run, gathering.tally, gathering.observer)?;
        self.store.write_run(run)?;
        for loss in header.losses() {
            if gathering.gathered.told.insert(loss.clone()) {
                gathering.tell(loss);
            }
        }
        for phrase in header.phrases() {
            gathering.tell_once(phrase);
        }
        Ok(true)
    }

    fn tell_if_long(&self, run: &RunRecord, gathering: &mut Gathering<'_>) {
        let budget = self.settings.budget.total;
        let first = run.recordings.first().map_or(Duration::ZERO, |first| Duration::from_millis(first.milliseconds));
        if !budget.is_zero() && first > budget {
            gathering.tell(format!(
                "recording the program took {:.1} s, longer than the budget of {:.1} s, which counts from here on: --budget gives more",
                first.as_secs_f64(),
                budget.as_secs_f64()
            ));
        }
    }

    /// Analyses a recording; `None` if there was no time for all of its processes. What is found is in the store.
    fn analyse(&self, run: &RunRecord, number: u32, gathering: &mut Gathering<'_>) -> Result<Option<Shown>, PipelineError> {
        gathering.observer.progress(Progress::Analysing { number, of: run.recordings.len() as u32 });
        let recorded = run.recordings.get(number as usize);
        let mut fresh = BTreeSet::new();
        let mut all_shown = Some(Shown::default());
        for process in processes(&self.store.recording(number))? {
            let mut examination = Examination::begin(process.folder.clone(), &gathering.deadlines);
            let Some((loaded, shown)) = examination.loaded()? else {
                gathering.tally.not_analysed += 1;
                all_shown = None;
                continue;
            };
            if let Some(all) = &mut all_shown {
                all.add(shown);
            }
            gathering.observer.progress(Progress::Recorded {
                number,
                events: loaded.trace.events.len(),
                threads: loaded.trace.threads.len(),
            });
            gathering.tally.count(&loaded, &process.path, self.symbols.trusted(), gathering.observer);
            let scheduling = recorded.and_then(|recorded| recorded.policy.parse::<Scheduling>().ok());
            let seed = recorded.map_or(0, |recorded| recorded.seed);
            let surroundings = scheduling.and_then(|scheduling| scheduling.surroundings(&process.path, seed));
            let from = Source { recording: number, process: process.path, surroundings };
            let exit = recorded.filter(|_| from.process.is_initial()).map_or(ProgramExit::Unknown, |recorded| recorded.exit);
            let may_be_wrong = Norm::at_worst(self.settings.expected_exit).is_wrong(exit);
            let exit = if may_be_wrong { exit } else { ProgramExit::Unknown };
            let with = (self.symbols, self.settings.record.quantum);
            let found = leads_of(&loaded, with, &from, exit, &mut examination, gathering.tally);
            if found.iter().any(Lead::replays_its_recording) {
                gathering.gathered.remember(&from, &loaded, self.settings.record.quantum, self.program.client.is_some());
            }
            for lead in found {
                // Whether an exit code is wrong is known when all recordings are there.
                if matches!(lead.exit(), Some(ProgramExit::Code { .. })) {
                    merge(&mut gathering.gathered.exits, lead);
                    continue;
                }
                let id = lead.finding.id.clone();
                if merge(&mut gathering.gathered.leads, lead) {
                    fresh.insert(id);
                }
            }
        }
        self.tell_numbers(run, gathering.tally, gathering.observer)?;
        for id in &fresh {
            if let Some(lead) = gathering.gathered.leads.get_mut(id) {
                self.complete(&mut lead.finding);
                self.store.write_finding(&lead.finding)?;
                gathering.observer.progress(Progress::Decided(&lead.finding));
            }
        }
        Ok(all_shown)
    }

    /// What only all recordings together say.
    fn settle(&self, run: &RunRecord, gathering: &mut Gathering<'_>) -> Result<(), PipelineError> {
        gathering.tally.tell_out_of_time(gathering.observer);
        let norm = Norm::of(self.settings.expected_exit, run.recordings.iter().map(|recording| recording.exit));
        let Gathered { leads, exits, .. } = &mut gathering.gathered;
        for lead in std::mem::take(exits).into_values().filter(|lead| lead.exit().is_some_and(|exit| norm.is_wrong(exit))) {
            merge(leads, lead);
        }
        // How often each was seen is known now.
        for lead in leads.values() {
            self.store.write_finding(&lead.finding)?;
        }
        let witnesses = leads.values().filter(|lead| lead.finding.schedule.is_some()).count();
        let without = leads.len() - witnesses;
        gathering.observer.progress(Progress::Analysed { witnesses, without });
        Ok(())
    }
}

impl Gathering<'_> {
    fn tell(&mut self, note: String) {
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
    /// One of each cause first, the one that its threads come to first; of these surest and cheapest first. Ids break ties, so
    /// that the order is the same in every run.
    pub(crate) fn in_order(&mut self) -> Vec<Lead> {
        let mut leads: Vec<Lead> = std::mem::take(&mut self.leads).into_values().collect();
        leads.sort_by_key(|lead| (lead.finding.verdict.rank(), lead.came, lead.finding.id.clone()));
        let mut leads = ranked(leads, Lead::cause);
        leads.sort_by_key(|(rank, lead)| {
            let turns = lead.finding.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.turns.len());
            let was_ordered = lead.finding.evidence != Evidence::HappensBefore;
            (*rank, lead.finding.verdict.rank(), was_ordered, turns, lead.finding.id.clone())
        });
        leads.into_iter().map(|(_, lead)| lead).collect()
    }
}

/// Bytes of the files of a recording. What cannot be read counts nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}
