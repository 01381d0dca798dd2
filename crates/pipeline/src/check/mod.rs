//! The phases in a row, over one store.

pub mod budget;
mod gather;
pub mod novelty;
pub mod plan;
pub mod prove;
pub mod pursue;

use crate::analyse::examine::Examination;
use crate::analyse::modules::Unseen;
use crate::check::budget::{Budget, Deadlines};
use crate::check::prove::{Prover, load, may_be_unordered};
use crate::check::pursue::{Pursuit, Pursuits, Tried};
use crate::error::PipelineError;
use crate::findings::alike::{self, Cause, Counts};
use crate::findings::compose::Composer;
use crate::findings::failure::{MOST_CONTROLS, Norm, Replayed, failure_of};
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::record::RecordSettings;
use crate::store::Store;
use crate::store::reproduce_command;
use crate::store::run::RunRecord;
use rashomon_confirm::force::remove;
use rashomon_confirm::{Ending, Forcing, Input, Output, Program, Time, execute};
use rashomon_event::{CandidateKind, Deadline, Evidence, Finding, FindingId, ProcessPath, Schedule, Side, Surroundings, Verdict};
use rashomon_report::{ProgramExit, RunSummary};
use rashomon_trace::{LoadedTrace, Shortcoming, process_folder, processes};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::iter::Enumerate;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

/// How much slower than the recorded one a forced execution may be, and what it may take at least.
const SLOWDOWN: u32 = 10;
const LEAST_LIMIT: Duration = Duration::from_secs(5);
/// Other witnesses of the same finding that are tried when one does not show it.
const MAX_ALTERNATIVES: usize = 3;

pub struct Settings {
    pub record: RecordSettings,
    /// The exit code that is right; `None`: see [`crate::findings::failure`].
    pub expected_exit: Option<i32>,
    /// Wall-clock time of everything behind the first recording.
    pub budget: Budget,
    /// Of one forced execution; `None`: from the duration of the recorded one.
    pub forced_limit: Option<Duration>,
    /// How often a finding has to come about to be proven.
    pub times: u32,
    /// Keep the sessions of proofs.
    pub keep: bool,
    /// The tool, for reproduce commands.
    pub tool: OsString,
}

/// One program, one store, one set of symbols.
pub struct Job<'a, S: ?Sized> {
    pub program: &'a Program,
    pub store: &'a Store,
    pub settings: &'a Settings,
    pub symbols: &'a S,
}

/// A finding on its way, with what can still be tried.
pub struct Lead {
    pub finding: Finding,
    alternatives: Vec<Schedule>,
    from: Source,
    /// Of a recording that ended wrongly.
    exit: Option<ProgramExit>,
    /// What it has in common with others.
    cause: Option<Cause>,
    /// Events of its threads before it.
    pub(crate) came: usize,
    /// Another recording that shows the pair unordered, and its sides there, where the one at hand has a schedule instead.
    unordered: Option<(Source, Vec<Side>)>,
}

impl Lead {
    /// How the recorded program ended, where that is what was found.
    pub(crate) fn exit(&self) -> Option<ProgramExit> {
        self.exit
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// Whether the recorded schedule may be wanted again.
    pub(crate) fn replays_its_recording(&self) -> bool {
        self.exit.is_some() || self.finding.schedule.is_none() && is_proven(&self.finding) || may_be_unordered(&self.finding)
    }

    /// Is gone after from now on, as its schedules have not shown it.
    fn pursue(self, run: &RunRecord, pursuits: &mut Pursuits) {
        let schedules = self.finding.schedule.iter().cloned().chain(self.alternatives);
        let pursuit = Pursuit::new(schedules, run.recordings.get(self.from.recording as usize));
        pursuits.add(self.finding, pursuit, self.cause);
    }
}

/// What recordings gave.
#[derive(Default)]
pub struct Gathered {
    pub(crate) leads: BTreeMap<FindingId, Lead>,
    /// Exits that are wrong if another recording ends with 0.
    pub(crate) exits: BTreeMap<FindingId, Lead>,
    /// Schedules of recorded processes.
    replays: Replays,
    /// What replays of recorded processes held that nobody sees.
    unseen: BTreeMap<(u32, ProcessPath), Unseen>,
    pub(crate) told: BTreeSet<String>,
    pub deadlines: Deadlines,
}

impl Gathered {
    /// Keeps the schedule of a recording that is in memory now; a very long one is loaded again when it is wanted.
    pub(crate) fn remember(&mut self, from: &Source, loaded: &LoadedTrace, quantum: u64, has_client: bool) {
        if loaded.turns().len() <= MOST_REMEMBERED {
            self.replays.insert(from.key(), from.schedule(loaded, quantum, has_client));
        }
    }
}

/// Findings in a row whose schedules did not show them, before those are pursued in between.
const IN_VAIN: u32 = 4;

/// Turns of a schedule that is kept.
const MOST_REMEMBERED: usize = 1 << 16;

type Replays = BTreeMap<(u32, ProcessPath), Option<Arc<Schedule>>>;

/// Where a finding was seen first.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Number of the recording.
    pub recording: u32,
    pub process: ProcessPath,
    /// Of a process that another one made: how the others run when it is forced.
    pub surroundings: Option<Surroundings>,
}

impl Source {
    /// The initial process.
    fn of_recording(recording: u32) -> Self {
        Self { recording, process: ProcessPath::default(), surroundings: None }
    }

    fn key(&self) -> (u32, ProcessPath) {
        (self.recording, self.process.clone())
    }

    /// A client asks the same again: with one it goes on behind what came from outside.
    fn schedule(&self, loaded: &LoadedTrace, quantum: u64, has_client: bool) -> Option<Arc<Schedule>> {
        (loaded.trace.mode == rashomon_event::Mode::Serial).then(|| {
            let recorded = if has_client { loaded.whole_schedule(quantum) } else { loaded.replay_schedule(quantum) };
            Arc::new(Schedule { surroundings: self.surroundings.clone(), ..recorded })
        })
    }
}

/// Numbers that end up in the summary.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub events: u64,
    pub threads: u64,
    pub executions: u64,
    pub untried: u64,
    /// Suspicions for which there was no time to look for another schedule.
    pub out_of_time: u64,
    /// Suspicions of a recording beyond [`MOST_OF_ONE_RECORDING`]; of the recording with the most.
    pub set_aside: u64,
    /// Those that are like others: of the same bytes, functions and locks.
    pub alike: BTreeSet<FindingId>,
    /// Processes of recordings that there was no time to load, and those of which not all was looked at.
    pub not_analysed: u64,
    pub cut_short: u64,
    pub notes: Vec<String>,
}

impl Tally {
    /// What there was no time for.
    pub(crate) fn tell_out_of_time(&mut self, observer: &mut dyn Observer) {
        let mut notes = Vec::new();
        if self.out_of_time > 0 {
            notes.push(out_of_time(self.out_of_time));
        }
        if self.set_aside > 0 {
            notes.push(format!(
                "{} more suspicions were not looked at: of a recording {MOST_OF_ONE_RECORDING} are; mend what is reported and check again",
                self.set_aside
            ));
        }
        if self.cut_short > 0 {
            notes.push(format!(
                "there was no time to look at all of {}: --budget or --predict-within gives more",
                recorded(self.cut_short)
            ));
        }
        if self.not_analysed > 0 {
            notes.push(format!(
                "there was no time to load {}: --budget or --predict-within gives more",
                recorded(self.not_analysed)
            ));
        }
        for note in notes {
            observer.progress(Progress::Note(&note));
            self.notes.push(note);
        }
    }

    /// What was not gone after because others like it were.
    /// `reported`: what one recording set aside and another brought.
    fn tell_alike(&mut self, reported: &BTreeSet<FindingId>, observer: &mut dyn Observer) {
        self.alike.retain(|id| !reported.contains(id));
        if self.alike.is_empty() {
            return;
        }
        let note = format!(
            "{} more suspicions are of the same bytes, functions and locks as others here, and were set aside; mend what is reported and check again",
            self.alike.len()
        );
        self.note(note, observer);
    }

    /// For whoever watches, and for the report.
    fn note(&mut self, note: String, observer: &mut dyn Observer) {
        observer.progress(Progress::Note(&note));
        self.notes.push(note);
    }

    /// Counts a recording, and notes what is wrong with it.
    pub(crate) fn count(&mut self, loaded: &LoadedTrace, process: &ProcessPath, trusted: &[String], observer: &mut dyn Observer) {
        self.events += loaded.trace.events.len() as u64;
        self.threads = self.threads.max(loaded.trace.threads.len() as u64);
        let mut notes: Vec<String> = Vec::new();
        if !ended_blocked(loaded) {
            // Of a program that died the streams end where they are, and are whole up to there.
            let died = loaded.shortcomings.contains(&Shortcoming::Crashed);
            let told = loaded.shortcomings.iter().filter(|one| !(died && matches!(one, Shortcoming::Unfinished { .. })));
            notes.extend(told.map(|shortcoming| format!("the trace is not complete: {shortcoming}")));
        }
        if !process.is_initial() {
            notes.iter_mut().for_each(|note| *note = format!("process {process}: {note}"));
        }
        if loaded.trace.mode == rashomon_event::Mode::Free {
            notes.push("recorded with threads in parallel: nothing is predicted, only suspected and proven".into());
        }
        let unseen = Unseen::of(&loaded.trace, trusted);
        let unknown: Vec<&str> = unseen.libraries.iter().chain(&unseen.standard).map(String::as_str).collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "not instrumented, so that nothing is predicted, only suspected and proven: {}",
                unknown.join(", ")
            ));
        }
        if !unseen.functions.is_empty() {
            notes.push(format!("not seen by the runtime, so that nothing is predicted: {}", unseen.functions.join(", ")));
        }
        for note in notes {
            if !self.notes.contains(&note) {
                observer.progress(Progress::Note(&note));
                self.notes.push(note);
            }
        }
    }
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Forces what can be forced, until the budget is spent. An execution that cannot be made ends it: the error is handed back,
    /// and noted, beside what was decided before.
    pub fn confirm_all(
        &self,
        run: &RunRecord,
        mut gathered: Gathered,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<Option<PipelineError>, PipelineError> {
        let mut leads = gathered.in_order();
        self.set_alike_aside(&mut leads, tally, observer)?;
        let scratch = self.store.scratch();
        let mut prover =
            Prover { program: self.program, forcing: self.forcing(run), symbols: self.symbols, scratch: &scratch, executions: 0 };
        // The last execution, which leaves the world whole, takes about as long as the first one did, and as the sleeps did that
        // passed there in virtual time.
        let whole = match (&self.program.before_each, run.recordings.first()) {
            (Some(_), Some(first)) => {
                let slept =
                    rashomon_confirm::force::header_of(&self.store.recording(0))?.map_or(0, |header| header.virtual_nanoseconds);
                (Duration::from_millis(first.milliseconds) + Duration::from_nanos(slept)).min(self.settings.budget.total / 4)
            }
            _ => Duration::ZERO,
        };
        prover.forcing.deadline = gathered.deadlines.total.less(whole);
        let mut leads = leads.into_iter().enumerate();
        let mut stopped = self.confirm_leads(run, &mut leads, &mut gathered, &mut prover, tally, observer).err();
        tally.untried += leads.filter(|(_, lead)| is_open(lead)).count() as u64;
        tally.executions += prover.executions;
        // Forced executions end where they have decided: what they were writing is cut short. Who restores the world before each
        // execution finds it after the last as a whole, unobserved one leaves it. (A session that does not exist lets the program
        // run unobserved.)
        if prover.executions > 0 && self.program.before_each.is_some() && stopped.is_none() {
            let session = scratch.join("none");
            // Threads that run in parallel, and spin, may take longer: it may outlast the budget by as much as is said of
            // budgets.
            let until = gathered.deadlines.total.and(self.settings.budget.total / 10);
            let time = Time { limit: Some(prover.forcing.limit), until };
            match execute(self.program, &session, &prover.forcing.input, Output::Discard, time) {
                Ok(last) if last.ending == Ending::TimedOut => tally.note(
                    "the last execution, which leaves the world as a whole one does, was ended with the budget: what it writes may be cut short".into(),
                    observer,
                ),
                Ok(_) => {}
                Err(error) => stopped = Some(error.into()),
            }
        }
        if let Some(error) = &stopped {
            tally.note(format!("nothing more was executed after an error: {error}"), observer);
        }
        remove(&scratch)?;
        Ok(stopped)
    }

    /// Everybody's own schedules, and then the pursuit of what they did not show.
    fn confirm_leads(
        &self,
        run: &RunRecord,
        leads: &mut Enumerate<IntoIter<Lead>>,
        gathered: &mut Gathered,
        prover: &mut Prover<'_, S>,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let nothing = self.settings.budget.total.is_zero();
        let of = leads.len();
        let mut pursuits = Pursuits::default();
        let mut proven = Counts::default();
        let mut in_vain = 0;
        for (number, mut lead) in leads {
            if pursuits.has_shown(&lead.finding.id) {
                continue;
            }
            if proven.of(lead.cause) >= alike::PROVEN && !is_proven(&lead.finding) {
                self.set_aside(&lead.finding.id, tally, observer)?;
                continue;
            }
            let is_late = || nothing || prover.forcing.deadline.is_over();
            if is_late() {
                tally.untried += u64::from(is_open(&lead));
                continue;
            }
            observer.progress(Progress::Forcing { id: &lead.finding.id, number, of });
            let before = lead.finding.clone();
            let confirmed = self.confirm_one(prover, &mut lead, gathered, run);
            let late = prover.forcing.deadline.is_over() && !is_proven(&lead.finding) && !is_proven(&before);
            if late || confirmed.is_err() {
                // The end of the budget ended it, or it could not be tried: that says nothing about the finding.
                tally.untried += u64::from(is_open(&Lead { finding: before, ..lead }));
                confirmed?;
                continue;
            }
            self.complete(&mut lead.finding);
            self.store.write_finding(&lead.finding)?;
            let so_far = Tally { executions: tally.executions + prover.executions, ..tally.clone() };
            self.tell_numbers(run, &so_far, observer)?;
            observer.progress(Progress::Decided(&lead.finding));
            if is_proven(&lead.finding) {
                in_vain = 0;
                proven.count(lead.cause);
                pursuits.is_shown(&lead.finding.id);
                continue;
            }
            in_vain += 1;
            lead.pursue(run, &mut pursuits);
            // Where schedules are left again and again, the others' schedules may be, too: holding has its turns as well.
            if in_vain >= IN_VAIN
                && let Tried::Shown(cause) = self.pursue_next(&mut pursuits, prover, (number, of), observer)?
            {
                proven.count(cause);
            }
        }
        // Of what is proven often enough the rest is not pursued.
        for finding in pursuits.without(|cause| proven.of(cause) >= alike::PROVEN) {
            self.set_aside(&finding.id, tally, observer)?;
        }
        self.tell_alike(tally, observer)?;
        self.pursue_all(&mut pursuits, prover, observer)
    }

    /// Of each cause no more than can be of interest.
    fn set_alike_aside(
        &self,
        leads: &mut Vec<Lead>,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let mut counts = Counts::default();
        for lead in std::mem::take(leads) {
            if counts.count(lead.cause) < alike::TAKEN || is_proven(&lead.finding) {
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
    fn set_aside(&self, id: &FindingId, tally: &mut Tally, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        if self.store.has_proof(id) {
            return Ok(());
        }
        tally.alike.insert(id.clone());
        self.store.remove_finding(id)?;
        observer.progress(Progress::Replaced(id));
        Ok(())
    }

    fn confirm_one(
        &self,
        prover: &mut Prover<'_, S>,
        lead: &mut Lead,
        gathered: &mut Gathered,
        run: &RunRecord,
    ) -> Result<(), PipelineError> {
        let session = self.store.proof(&lead.finding.id);
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
        let schedules: Vec<Schedule> = lead.finding.schedule.iter().chain(&lead.alternatives).cloned().collect();
        for schedule in schedules {
            if prover.force_schedule(&mut lead.finding, &schedule, &session)? {
                return self.clean_up(&session);
            }
        }
        let shown = may_be_unordered(&lead.finding).then(|| (lead.from.clone(), lead.finding.sides.clone()));
        if let Some((from, sides)) = shown.or_else(|| lead.unordered.clone())
            && let Some(schedule) = self.recorded(&from, gathered)?
        {
            let mut finding = Finding { sides, evidence: Evidence::HappensBefore, ..lead.finding.clone() };
            let unseen = gathered.unseen.entry(from.key()).or_default();
            if prover.prove_unordered(&mut finding, &schedule, unseen, &session)? {
                lead.finding = finding;
            } else {
                (lead.finding.notes, lead.finding.unseen) = (finding.notes, finding.unseen);
            }
        }
        self.clean_up(&session)
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

    pub(crate) fn clean_up(&self, session: &std::path::Path) -> Result<(), PipelineError> {
        if !self.settings.keep {
            remove(session)?;
        }
        Ok(())
    }

    /// How executions of this program are forced.
    pub fn forcing(&self, run: &RunRecord) -> Forcing {
        let recorded = run.recordings.iter().map(|recording| recording.milliseconds).max().unwrap_or(0);
        let derived = Duration::from_millis(recorded) * SLOWDOWN + LEAST_LIMIT;
        Forcing {
            limit: self.settings.forced_limit.unwrap_or(derived),
            deadline: Deadline::NEVER,
            patience: self.settings.record.patience,
            input: match &self.settings.record.input {
                Input::Inherit => Input::Empty,
                other => other.clone(),
            },
            base_time_nanoseconds: self.settings.record.base_time_nanoseconds,
            trace_limit: self.settings.record.trace_limit,
            processes: self.settings.record.processes,
            times: self.settings.times,
        }
    }

    /// Adds the reproduce command where something came about that can be reproduced.
    pub(crate) fn complete(&self, finding: &mut Finding) {
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
            store: self.store.path().display().to_string(),
            notes: run.notes.iter().chain(run.notes_of_recordings()).chain(&tally.notes).cloned().collect(),
            interrupted: false,
        }
    }
}

/// The findings of a recording that belongs to no store. Nothing is written.
pub fn analyse_session<S: Symbols + ?Sized>(
    session: &std::path::Path,
    symbols: &S,
    within: Duration,
    tally: &mut Tally,
    observer: &mut dyn Observer,
) -> Result<Vec<Finding>, PipelineError> {
    observer.progress(Progress::Analysing { number: 0, of: 1 });
    let mut leads = BTreeMap::new();
    let deadlines = Budget { total: Duration::ZERO, predict_within: Some(within) }.begin();
    for process in processes(session)? {
        let mut examination = Examination::begin(process.folder, &deadlines);
        let Some((loaded, _)) = examination.loaded()? else {
            tally.not_analysed += 1;
            continue;
        };
        tally.count(&loaded, &process.path, symbols.trusted(), observer);
        let from = Source { recording: 0, process: process.path, surroundings: None };
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

fn ended_blocked(loaded: &LoadedTrace) -> bool {
    matches!(
        loaded.header.outcome,
        rashomon_trace::Outcome::Deadlock | rashomon_trace::Outcome::Stuck | rashomon_trace::Outcome::Endless
    )
}

pub(crate) fn out_of_time(suspicions: u64) -> String {
    format!("there was no time to look for schedules that show {suspicions} more suspicions: --predict-within gives more")
}

fn recorded(processes: u64) -> String {
    if processes == 1 { "one recorded process".into() } else { format!("{processes} recorded processes") }
}

/// Suspicions that are looked at in one recording: to say what one is costs a look at the whole trace.
const MOST_OF_ONE_RECORDING: u64 = 4000;

/// What a recorded process shows, and what its analysis finds. `exit`: how the recorded program ended, if this is the process
/// that says so; `quantum`: as in the recording's control.
pub(crate) fn leads_of<S: Symbols + ?Sized>(
    loaded: &LoadedTrace,
    (symbols, quantum): (&S, u64),
    from: &Source,
    exit: ProgramExit,
    examination: &mut Examination,
    tally: &mut Tally,
) -> Vec<Lead> {
    // Made when there is something to say: it reads the whole trace and all modules.
    let composer = LazyCell::new(|| Composer::new(loaded, symbols, quantum));
    let mut leads = Vec::new();
    let mut lead = |mut finding: Finding, exit: Option<ProgramExit>, (cause, came): (Option<Cause>, usize)| {
        if let Some(schedule) = &mut finding.schedule {
            schedule.surroundings.clone_from(&from.surroundings);
        }
        if !from.process.is_initial() {
            finding.notes.push(format!("seen in process {}, which the program made", from.process));
        }
        leads.push(Lead { finding, alternatives: Vec::new(), from: from.clone(), exit, cause, came, unordered: None });
    };
    if ended_blocked(loaded)
        && let Some(finding) = composer.of_blocked()
    {
        lead(finding, None, (None, 0));
    }
    for record in &loaded.misuses {
        lead(composer.of_misuse(record), None, (None, 0));
    }
    if let Some(failure) = failure_of(exit) {
        lead(composer.of_failure(failure), Some(exit), (None, 0));
    }
    let mut looked_at = 0;
    let mut counts = Counts::default();
    while let Some(analysed) = examination.found() {
        // Races are what there may be thousands of; other kinds come behind them, and are few.
        looked_at += u64::from(matches!(analysed.candidate.kind, CandidateKind::Race { .. }));
        if looked_at > MOST_OF_ONE_RECORDING && matches!(analysed.candidate.kind, CandidateKind::Race { .. }) {
            tally.set_aside = tally.set_aside.max(looked_at - MOST_OF_ONE_RECORDING);
            continue;
        }
        let mut finding = composer.of_candidate(&analysed.candidate, analysed.witness.as_ref());
        finding
            .notes
            .extend(analysed.rejected.map(|reason| format!("the predicted schedule was rejected by the checker: {reason}")));
        let cause = Cause::of(&finding, &analysed.candidate, &loaded.trace);
        if counts.count(cause) < alike::TAKEN {
            tally.alike.remove(&finding.id);
            let came = analysed.candidate.kind.goals().iter().map(|goal| composer.describer.events_before(*goal)).sum();
            lead(finding, None, (cause, came));
        } else {
            tally.alike.insert(finding.id);
        }
    }
    match examination.statistics() {
        Some(statistics) => {
            tally.out_of_time += statistics.out_of_time as u64;
            tally.cut_short += u64::from(statistics.cut_short);
        }
        None => tally.cut_short += 1,
    }
    leads
}

pub(crate) const fn is_proven(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Proven { .. })
}

/// Whether forcing could still decide it.
fn is_open(lead: &Lead) -> bool {
    (lead.finding.schedule.is_some() || lead.exit.is_some()) && !is_proven(&lead.finding)
}

/// One finding per id: the surer one stays, the other's schedule may be tried too. Says whether more is known now than before.
pub(crate) fn merge(leads: &mut BTreeMap<FindingId, Lead>, new: Lead) -> bool {
    let Some(old) = leads.get_mut(&new.finding.id) else {
        leads.insert(new.finding.id.clone(), new);
        return true;
    };
    let occurrences = old.finding.occurrences + new.finding.occurrences;
    let is_better =
        |a: &Finding, b: &Finding| (a.verdict.rank(), a.schedule.is_none()) < (b.verdict.rank(), b.schedule.is_none());
    let improved = is_better(&new.finding, &old.finding);
    let other = if improved { std::mem::replace(old, new) } else { new };
    if !may_be_unordered(&old.finding) && old.unordered.is_none() {
        let shown = may_be_unordered(&other.finding).then(|| (other.from.clone(), other.finding.sides.clone()));
        old.unordered = other.unordered.or(shown);
    }
    old.finding.occurrences = occurrences;
    let known: Vec<&Schedule> = old.finding.schedule.iter().chain(&old.alternatives).collect();
    let fresh: Vec<Schedule> =
        other.finding.schedule.into_iter().chain(other.alternatives).filter(|s| !known.contains(&s)).collect();
    old.alternatives.extend(fresh);
    old.alternatives.truncate(MAX_ALTERNATIVES);
    improved
}
