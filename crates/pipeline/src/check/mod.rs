//! The phases in a row, over one store.

pub mod budget;
pub mod dependences;
pub(crate) mod known;
pub mod leads;
mod learning;
pub mod novelty;
pub mod plan;
pub mod postponed;
pub mod prove;
pub mod pursue;

pub mod tally;
mod uses;

use crate::analyse::examine::Examination;
use crate::analyse::{Engine, Values};
use crate::check::budget::Budget;
use crate::check::leads::{Doubt, Gathered, Hurry, Lead, Source, is_proven, leads_of, merge};
use crate::check::postponed::Postponed;
use crate::check::prove::{Prover, load, may_be_unordered};
use crate::check::tally::{Extent, Tally};
use crate::error::PipelineError;
use crate::findings::alike::{self, Counts};
use crate::findings::declared::Declarations;
use crate::findings::failure::{MOST_CONTROLS, Norm, Replayed};
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::record::RecordSettings;
use crate::shard::Shard;
use crate::store::Store;
use crate::store::reproduce_command;
use crate::store::run::RunRecord;
use rashomon_confirm::force::remove;
use rashomon_confirm::{Forcing, Input, Output, Program};
use rashomon_event::{Deadline, Evidence, Finding, FindingId, FindingKind, Schedule, Side};
use rashomon_report::order::FORCED_IN_VAIN;
use rashomon_report::{ProgramExit, RunSummary};
use rashomon_trace::{process_folder, processes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// How much slower than the recorded one a forced execution may be, and what it may take at least.
const SLOWDOWN: u32 = 10;
const LEAST_LIMIT: Duration = Duration::from_secs(5);
/// The same where a race of a program that serves is forced: while one thread is held, the client that awaits its answer waits,
/// too, and nothing ends the execution but its time. A deadlock takes the runtime longer to see.
const SLOWDOWN_WITH_CLIENT: u32 = 4;
const LEAST_LIMIT_WITH_CLIENT: Duration = Duration::from_secs(1);

pub struct Settings {
    pub record: RecordSettings,
    /// The exit code that is right; `None`: see [`crate::findings::failure`].
    pub expected_exit: Option<i32>,
    /// Who predicts.
    pub engine: Engine,
    /// Wall-clock time of everything behind the first recording.
    pub budget: Budget,
    /// Of one forced execution; `None`: from the duration of the recorded one.
    pub forced_limit: Option<Duration>,
    /// How often a finding has to come about to be proven.
    pub times: u32,
    /// Which part of the work is done.
    pub shard: Shard,
    /// What is forced behind everything else.
    pub postponed: Postponed,
    /// Variables that are declared to belong together.
    pub correlated: Declarations,
    /// Keep the sessions of proofs.
    pub keep: bool,
    /// The tool, for reproduce commands.
    pub tool: OsString,
}

impl Settings {
    /// The same for a part of the work, if one is asked for. What is drawn is drawn otherwise there.
    #[must_use]
    pub fn of_part(mut self, shard: Option<Shard>) -> Self {
        self.shard = shard.unwrap_or_default();
        self.record.seed = self.record.seed.wrapping_add(self.shard.seeds());
        self
    }
}

/// One program, one store, one set of symbols.
pub struct Job<'a, S: ?Sized> {
    pub program: &'a Program,
    pub store: &'a Store,
    pub settings: &'a Settings,
    pub symbols: &'a S,
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Of each cause no more than can be of interest.
    pub(crate) fn set_alike_aside(
        &self,
        leads: &mut Vec<Lead>,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let mut counts = Counts::default();
        for lead in std::mem::take(leads) {
            let is_kept = is_proven(&lead.finding) || lead.doubt() == Doubt::Refuted;
            if is_kept || counts.count(lead.cause) < alike::TAKEN {
                leads.push(lead);
            } else {
                self.set_aside(&lead.finding.id, tally, observer)?;
            }
        }
        Ok(())
    }

    /// How many suspicions were set aside and are in no other recording, either.
    pub fn tell_alike(&self, tally: &mut Tally, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let reported = self.store.findings()?.into_iter().map(|finding| finding.id).collect();
        tally.tell_alike(&reported, observer);
        Ok(())
    }

    /// The finding is one of many: it is counted, and no longer told.
    pub(crate) fn set_aside(&self, id: &FindingId, tally: &mut Tally, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        if self.store.has_proof(id) {
            return Ok(());
        }
        tally.alike.insert(id.clone());
        self.store.remove_finding(id)?;
        observer.progress(Progress::Replaced(id));
        Ok(())
    }

    /// By all schedules that were not forced yet; of a lead that [waits](Lead::waits), or is [forced once](Lead::is_forced_once),
    /// by its first one. Replays of a recording that shows it come before these where they cost little; where time is short, they
    /// come behind the first one.
    pub(crate) fn confirm_one(
        &self,
        prover: &mut Prover<'_, S>,
        lead: &mut Lead,
        gathered: &mut Gathered,
        (run, hurry): (&RunRecord, Hurry),
    ) -> Result<(), PipelineError> {
        let session = self.store.proof(&lead.finding.id);
        // Whoever looks where nearly nothing is kept has little to find a schedule in.
        let is_replayed = |(from, _): &(&Source, &[Side])| gathered.is_replayed(from, self.settings.times);
        let early = lead.shared().or_else(|| lead.unordered().find(is_replayed).filter(|_| hurry == Hurry::Short));
        let looked = early.is_some();
        if let Some((from, sides)) = early {
            let seen = (from.clone(), sides.to_vec());
            if self.show_unordered(prover, lead, gathered, seen)? {
                return self.clean_up(&session);
            }
        }
        if let Some(exit) = lead.exit {
            if let Some(recorded) = self.recorded(&lead.from, gathered)? {
                let norm = Norm::of(self.settings.expected_exit, run.recordings.iter().map(|recording| recording.exit));
                let mut controls = Vec::new();
                for (number, recording) in (0..).zip(&run.recordings) {
                    if let ProgramExit::Code { code } = recording.exit
                        && !norm.is_wrong(recording.exit)
                        && controls.len() < MOST_CONTROLS
                    {
                        let schedule = self.recorded(&Source::of_recording(number), gathered)?;
                        controls.extend(schedule.map(|schedule| (schedule, code)));
                    }
                }
                let replayed = Replayed { exit, recorded: &recorded, controls: &controls };
                prover.replay_failure(&mut lead.finding, &replayed, &session)?;
            }
            return self.clean_up(&session);
        }
        if lead.finding.schedule.is_none() && is_proven(&lead.finding) {
            if let Some(schedule) = self.recorded(&lead.from, gathered)? {
                prover.replay_observed(&mut lead.finding, &schedule, &session)?;
            }
            return self.clean_up(&session);
        }
        if let Some(schedule) = lead.finding.schedule.clone().filter(|_| lead.finding.kind.is_misuse()) {
            prover.force_use(&mut lead.finding, &schedule, &session)?;
            return self.clean_up(&session);
        }
        let is_first = lead.waits(hurry) || lead.is_forced_once();
        let all = lead.finding.schedule.iter().chain(&lead.alternatives).skip(usize::from(lead.begun));
        let schedules: Vec<Schedule> = all.take(if is_first { 1 } else { usize::MAX }).cloned().collect();
        let limit = prover.forcing.limit;
        if self.program.client.is_some() && lead.finding.kind == FindingKind::DataRace && self.settings.forced_limit.is_none() {
            prover.forcing.limit = limit.min(longest(run) * SLOWDOWN_WITH_CLIENT + LEAST_LIMIT_WITH_CLIENT);
        }
        let mut is_shown = Ok(false);
        for schedule in &schedules {
            is_shown = prover.force_schedule(&mut lead.finding, schedule, &session);
            if !matches!(is_shown, Ok(false)) {
                break;
            }
        }
        let is_shown = match is_shown {
            Ok(false) if !is_first => self.learn(prover, lead, &session),
            shown => shown,
        };
        prover.forcing.limit = limit;
        let has_time = prover.forcing.deadline.left().is_none_or(|left| left > longest(run));
        let looks = match hurry {
            Hurry::Enough => !is_first,
            Hurry::Short => !lead.begun && !looked && has_time,
        };
        if is_shown? || !looks {
            return self.clean_up(&session);
        }
        let shown = may_be_unordered(&lead.finding).then(|| (lead.from.clone(), lead.finding.sides.clone()));
        if let Some(seen) = shown.or_else(|| lead.unordered.clone()) {
            self.show_unordered(prover, lead, gathered, seen)?;
        }
        self.clean_up(&session)
    }

    /// Whether replays of the recording show the two accesses, with these sides there, in no order. Then that is the finding.
    fn show_unordered(
        &self,
        prover: &mut Prover<'_, S>,
        lead: &mut Lead,
        gathered: &mut Gathered,
        (from, sides): (Source, Vec<Side>),
    ) -> Result<bool, PipelineError> {
        let Some(schedule) = self.recorded(&from, gathered)? else { return Ok(false) };
        let session = self.store.proof(&lead.finding.id);
        let mut finding = Finding { sides, evidence: Evidence::HappensBefore, ..lead.finding.clone() };
        let known = gathered.known(&from);
        if self.settings.keep {
            // Each proof has its own.
            known.forget();
        }
        let is_shown = prover.prove_unordered(&mut finding, &schedule, known, &session)?;
        if is_shown {
            lead.finding = finding;
        } else {
            (lead.finding.notes, lead.finding.unseen) = (finding.notes, finding.unseen);
        }
        Ok(is_shown)
    }

    /// The schedule of a recorded process, where it ran serially.
    fn recorded(&self, from: &Source, gathered: &mut Gathered) -> Result<Option<Arc<Schedule>>, PipelineError> {
        if let Some(known) = gathered.replays.get(&from.key()) {
            return Ok(known.clone());
        }
        let loaded = load(&process_folder(&self.store.recording(from.recording), &from.process))?;
        let schedule = from.schedule(&loaded, self.settings.record.quantum, self.program.client.is_some());
        gathered.replays.insert(from.key(), schedule.clone());
        Ok(schedule)
    }

    /// The recording, if there is time to read it.
    pub(crate) fn load_for_search(
        &self,
        recording: u32,
        until: Deadline,
        observer: &mut dyn Observer,
    ) -> Result<Option<rashomon_trace::LoadedTrace>, PipelineError> {
        observer.progress(Progress::Working(&format!("reading recording {}", recording + 1)));
        match rashomon_trace::Recording::open(&self.store.recording(recording))?.load_until(until) {
            Err(rashomon_trace::TraceError::OutOfTime { .. }) => {
                let note = format!(
                    "no time was left to read recording {} and search from it: a larger --budget gives more",
                    recording + 1
                );
                observer.progress(Progress::Note(&note));
                Ok(None)
            }
            loaded => Ok(Some(loaded?)),
        }
    }

    pub(crate) fn clean_up(&self, session: &std::path::Path) -> Result<(), PipelineError> {
        if !self.settings.keep {
            remove(session)?;
        }
        Ok(())
    }

    /// How executions of this program are forced.
    pub fn forcing(&self, run: &RunRecord) -> Forcing {
        let derived = longest(run) * SLOWDOWN + LEAST_LIMIT;
        Forcing {
            limit: self.settings.forced_limit.unwrap_or(derived),
            deadline: Deadline::NEVER,
            call_timeout: self.settings.record.call_timeout,
            input: match &self.settings.record.input {
                Input::Inherit => Input::Empty,
                other => other.clone(),
            },
            output: Output::Discard,
            base_time_nanoseconds: self.settings.record.base_time_nanoseconds,
            trace_limit: self.settings.record.trace_limit,
            processes: self.settings.record.processes,
            times: self.settings.times,
        }
    }

    /// Adds the reproduce command where something came about that can be reproduced.
    pub(crate) fn complete(&self, finding: &mut Finding) {
        if is_proven(finding) {
            // How it was tried before says no more than that it took several tries.
            finding.notes.retain(|note| !note.starts_with(FORCED_IN_VAIN));
        }
        finding.reproduce = finding.can_happen_again().then(|| reproduce_command(&self.settings.tool, self.store, &finding.id));
    }

    /// The numbers so far, for whoever watches and for the store: the tool may be ended at any moment.
    pub(crate) fn tell_numbers(&self, run: &RunRecord, tally: &Tally, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let summary = RunSummary { interrupted: true, ..self.summary(run, tally) };
        observer.progress(Progress::Numbers(&summary));
        self.store.write_summary(&summary)
    }

    pub fn summary(&self, run: &RunRecord, tally: &Tally) -> RunSummary {
        RunSummary {
            command: run.command(),
            exit: run.recordings.first().map_or(ProgramExit::Unknown, |recording| recording.exit),
            recordings: run.recordings.len() as u32,
            events: tally.events,
            threads: tally.threads,
            executions: tally.executions,
            untried: tally.untried,
            unexamined: tally.unexamined(),
            store: self.store.path().display().to_string(),
            notes: run.notes.iter().chain(run.notes_of_recordings()).chain(&tally.notes).cloned().collect(),
            test_cases: Vec::new(),
            interrupted: false,
            known: 0,
        }
    }
}

/// The findings of a recording that belongs to no store. Nothing is written.
pub fn analyse_session<S: Symbols + ?Sized>(
    session: &std::path::Path,
    symbols: &S,
    (engine, within): (Engine, Duration),
    tally: &mut Tally,
    observer: &mut dyn Observer,
) -> Result<Vec<Finding>, PipelineError> {
    observer.progress(Progress::Analysing { number: 0, of: 1 });
    let mut leads = BTreeMap::new();
    let deadlines = Budget { predict_within: Some(within), ..Budget::NONE }.begin();
    for process in processes(session)? {
        let mut examination = Examination::begin(process.folder, (engine, Values::Known), &deadlines, symbols.trusted());
        let Some((loaded, _)) = examination.loaded()? else {
            tally.not_analysed += 1;
            continue;
        };
        tally.count(&loaded, &process.path, symbols.trusted(), Extent::Whole, observer);
        let from = Source { recording: 0, process: process.path, surroundings: None, kept: Vec::new() };
        let found = leads_of(&loaded, (symbols, 0), &from, ProgramExit::Unknown, &mut examination, tally);
        for lead in found {
            merge(&mut leads, lead);
        }
    }
    tally.tell_out_of_time(observer);
    tally.tell_alike(&leads.keys().cloned().collect(), observer);
    let findings = leads.into_values().map(|lead| lead.finding);
    Ok(findings.collect())
}

/// The time of the longest recording.
pub(crate) fn longest(run: &RunRecord) -> Duration {
    Duration::from_millis(run.recordings.iter().map(|recording| recording.milliseconds).max().unwrap_or(0))
}
