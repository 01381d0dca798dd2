//! The phases in a row, over one store.

use crate::analyse::analyse;
use crate::compose::Composer;
use crate::error::PipelineError;
use crate::modules::{unmodelled, unseen_functions};
use crate::progress::{Observer, Progress};
use crate::prove::{Prover, load, may_be_unordered};
use crate::record::{RecordSettings, Scheduling, record};
use crate::run::{RunRecord, quoted};
use crate::store::Store;
use crate::symbols::Symbols;
use rashomon_confirm::{Forcing, Input, Program};
use rashomon_event::{Finding, ProcessPath, Schedule, Surroundings, Verdict};
use rashomon_report::{ProgramExit, RunSummary};
use rashomon_trace::{LoadedTrace, Policy, process_folder, processes};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

/// How much slower than the recorded one a forced execution may be, and what it may take at least.
const SLOWDOWN: u32 = 10;
const LEAST_LIMIT: Duration = Duration::from_secs(5);
/// Other witnesses of the same finding that are tried when one does not show it.
const MAX_ALTERNATIVES: usize = 3;

pub struct Settings {
    pub record: RecordSettings,
    /// The first one is as `record` says; the others switch at random with the following seeds.
    pub recordings: u32,
    /// Wall-clock time of all forced executions together.
    pub budget: Duration,
    /// Wall-clock time of all predictions together; zero: no limit.
    pub predict_within: Duration,
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
}

/// Where a finding was seen first.
#[derive(Clone, Debug)]
struct Source {
    /// Number of the recording.
    recording: u32,
    process: ProcessPath,
    /// Of a process that another one made: how the others run when it is forced.
    surroundings: Option<Surroundings>,
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
    pub notes: Vec<String>,
}

impl Tally {
    fn tell_out_of_time(&mut self, observer: &mut dyn Observer) {
        if self.out_of_time > 0 {
            let note = out_of_time(self.out_of_time);
            observer.progress(Progress::Note(&note));
            self.notes.push(note);
        }
    }

    /// Counts a recording, and notes what is wrong with it.
    fn count(&mut self, loaded: &LoadedTrace, process: &ProcessPath, observer: &mut dyn Observer) {
        self.events += loaded.trace.events.len() as u64;
        self.threads = self.threads.max(loaded.trace.threads.len() as u64);
        let mut notes: Vec<String> = Vec::new();
        if !ended_blocked(loaded) {
            notes.extend(loaded.shortcomings.iter().map(|shortcoming| format!("the trace is not complete: {shortcoming}")));
        }
        if !process.is_initial() {
            notes.iter_mut().for_each(|note| *note = format!("process {process}: {note}"));
        }
        if loaded.trace.mode == rashomon_event::Mode::Free {
            notes.push("recorded with threads in parallel: nothing is predicted, only suspected and proven".into());
        }
        let unknown = unmodelled(&loaded.trace);
        if !unknown.is_empty() {
            notes.push(format!(
                "not instrumented, so that nothing is predicted, only suspected and proven: {}",
                unknown.join(", ")
            ));
        }
        let functions = unseen_functions(&loaded.trace);
        if !functions.is_empty() {
            notes.push(format!("not seen by the runtime, so that nothing is predicted: {}", functions.join(", ")));
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
    /// Records as often as asked for. `run` is in the store after each.
    pub fn record_all(&self, run: &mut RunRecord, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        self.store.write_run(run)?;
        for number in 0..self.settings.recordings.max(1) {
            observer.progress(Progress::Recording { number, of: self.settings.recordings });
            let mut settings = self.settings.record.clone();
            if number > 0 {
                settings.scheduling = Scheduling::Serial(Policy::Random);
                settings.seed = settings.seed.wrapping_add(u64::from(number));
                settings.output = rashomon_confirm::Output::Discard;
                if settings.input == Input::Inherit {
                    settings.input = Input::Empty;
                }
            }
            let (recorded, header) = record(self.program, &self.store.recording(number), &settings)?;
            run.recordings.push(recorded);
            self.store.write_run(run)?;
            for phrase in header.notes.phrases() {
                observer.progress(Progress::Note(phrase));
            }
        }
        Ok(())
    }

    /// Analyses every recording. Each finding is in the store, with what is known of it before anything is forced.
    pub fn analyse_all(
        &self,
        run: &RunRecord,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Lead>, PipelineError> {
        let mut leads: BTreeMap<String, Lead> = BTreeMap::new();
        let deadline = deadline(self.settings.predict_within);
        let of = run.recordings.len() as u32;
        for number in 0..of {
            observer.progress(Progress::Analysing { number, of });
            let recorded = run.recordings.get(number as usize);
            for process in processes(&self.store.recording(number))? {
                let loaded = load(&process.folder)?;
                observer.progress(Progress::Recorded {
                    number,
                    events: loaded.trace.events.len(),
                    threads: loaded.trace.threads.len(),
                });
                tally.count(&loaded, &process.path, observer);
                let scheduling = recorded.and_then(|recorded| recorded.policy.parse::<Scheduling>().ok());
                let seed = recorded.map_or(0, |recorded| recorded.seed);
                let surroundings = scheduling.and_then(|scheduling| scheduling.surroundings(&process.path, seed));
                let from = Source { recording: number, process: process.path, surroundings };
                let found = leads_of(&loaded, self.symbols, self.settings.record.quantum, &from, deadline, tally);
                found.into_iter().for_each(|lead| merge(&mut leads, lead));
            }
        }
        tally.tell_out_of_time(observer);
        let mut leads: Vec<Lead> = leads.into_values().collect();
        // Surest and cheapest first; ids break ties, so that the order is the same in every run.
        leads.sort_by_key(|lead| {
            let turns = lead.finding.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.turns.len());
            (verdict_rank(&lead.finding.verdict), turns, lead.finding.id.clone())
        });
        for lead in &mut leads {
            self.complete(&mut lead.finding);
            self.store.write_finding(&lead.finding)?;
            observer.progress(Progress::Decided(&lead.finding));
        }
        let witnesses = leads.iter().filter(|lead| lead.finding.schedule.is_some()).count();
        observer.progress(Progress::Analysed { witnesses, without: leads.len() - witnesses });
        Ok(leads)
    }

    /// Forces what can be forced, until the budget is spent.
    pub fn confirm_all(
        &self,
        run: &RunRecord,
        leads: Vec<Lead>,
        tally: &mut Tally,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let deadline = Instant::now() + self.settings.budget;
        let scratch = self.store.scratch();
        let mut prover =
            Prover { program: self.program, forcing: self.forcing(run), symbols: self.symbols, scratch: &scratch, executions: 0 };
        let limit = prover.forcing.limit;
        let of = leads.len();
        let mut replays: Replays = BTreeMap::new();
        for (number, mut lead) in leads.into_iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tally.untried += u64::from(is_open(&lead.finding));
                continue;
            }
            prover.forcing.limit = limit.min(left);
            observer.progress(Progress::Forcing { id: &lead.finding.id, number, of });
            self.confirm_one(&mut prover, &mut lead, &mut replays)?;
            self.complete(&mut lead.finding);
            self.store.write_finding(&lead.finding)?;
            observer.progress(Progress::Decided(&lead.finding));
        }
        tally.executions += prover.executions;
        // Forced executions end where they have decided: what they were writing is cut short. Who restores the world before each execution
        // finds it after the last as a whole, unobserved one leaves it. (A session that does not exist lets the program run unobserved.)
        if prover.executions > 0 && self.program.before_each.is_some() {
            let session = scratch.join("none");
            rashomon_confirm::execute(
                self.program,
                &session,
                &prover.forcing.input,
                rashomon_confirm::Output::Discard,
                Some(limit),
            )?;
        }
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).map_err(PipelineError::io("remove", &scratch))?;
        }
        Ok(())
    }

    fn confirm_one(&self, prover: &mut Prover<'_, S>, lead: &mut Lead, replays: &mut Replays) -> Result<(), PipelineError> {
        let session = self.store.proof(&lead.finding.id);
        let mut recorded = |from: &Source| -> Result<Option<Schedule>, PipelineError> {
            let key = (from.recording, from.process.clone());
            if let Some(known) = replays.get(&key) {
                return Ok(known.clone());
            }
            let loaded = load(&process_folder(&self.store.recording(from.recording), &from.process))?;
            let schedule = (loaded.trace.mode == rashomon_event::Mode::Serial).then(|| Schedule {
                surroundings: from.surroundings.clone(),
                ..loaded.replay_schedule(self.settings.record.quantum)
            });
            replays.insert(key, schedule.clone());
            Ok(schedule)
        };
        if lead.finding.schedule.is_none() && matches!(lead.finding.verdict, Verdict::Proven { .. }) {
            if let Some(schedule) = recorded(&lead.from)? {
                if lead.finding.kind.is_misuse() {
                    prover.replay_misuse(&mut lead.finding, &schedule, &session)?;
                } else {
                    prover.replay_blocked(&mut lead.finding, &schedule, &session)?;
                }
            }
            return self.clean_up(&session);
        }
        let schedules: Vec<Schedule> = lead.finding.schedule.iter().chain(&lead.alternatives).cloned().collect();
        for schedule in schedules {
            if prover.force_schedule(&mut lead.finding, &schedule, &session)? {
                return self.clean_up(&session);
            }
        }
        if may_be_unordered(&lead.finding)
            && let Some(schedule) = recorded(&lead.from)?
        {
            prover.prove_unordered(&mut lead.finding, &schedule, &session)?;
        }
        self.clean_up(&session)
    }

    fn clean_up(&self, session: &std::path::Path) -> Result<(), PipelineError> {
        if !self.settings.keep && session.exists() {
            std::fs::remove_dir_all(session).map_err(PipelineError::io("remove", session))?;
        }
        Ok(())
    }

    /// How executions of this program are forced.
    pub fn forcing(&self, run: &RunRecord) -> Forcing {
        let recorded = run.recordings.iter().map(|recording| recording.milliseconds).max().unwrap_or(0);
        let derived = Duration::from_millis(recorded) * SLOWDOWN + LEAST_LIMIT;
        Forcing {
            limit: self.settings.forced_limit.unwrap_or(derived),
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

    /// Adds the reproduce command where there is something to reproduce.
    pub(crate) fn complete(&self, finding: &mut Finding) {
        let again = finding.schedule.is_some() || finding.provocation.is_some();
        finding.reproduce = again.then(|| reproduce_command(&self.settings.tool, self.store, &finding.id));
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
            notes: run.notes.iter().chain(&tally.notes).cloned().collect(),
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
    let deadline = deadline(within);
    for process in processes(session)? {
        let loaded = load(&process.folder)?;
        tally.count(&loaded, &process.path, observer);
        let from = Source { recording: 0, process: process.path, surroundings: None };
        leads_of(&loaded, symbols, 0, &from, deadline, tally).into_iter().for_each(|lead| merge(&mut leads, lead));
    }
    tally.tell_out_of_time(observer);
    let findings = leads.into_values().map(|lead| lead.finding);
    Ok(findings.collect())
}

fn ended_blocked(loaded: &LoadedTrace) -> bool {
    matches!(loaded.header.outcome, rashomon_trace::Outcome::Deadlock | rashomon_trace::Outcome::Stuck)
}

/// Replay schedules, as far as they were asked for, of the processes of recordings.
type Replays = BTreeMap<(u32, ProcessPath), Option<Schedule>>;

pub(crate) fn out_of_time(suspicions: u64) -> String {
    format!("there was no time to look for schedules that show {suspicions} more suspicions: --predict-within gives more")
}

/// When predictions that may take so long have to end.
pub(crate) fn deadline(within: Duration) -> Option<Instant> {
    (!within.is_zero()).then(|| Instant::now() + within)
}

fn leads_of<S: Symbols + ?Sized>(
    loaded: &LoadedTrace,
    symbols: &S,
    quantum: u64,
    from: &Source,
    deadline: Option<Instant>,
    tally: &mut Tally,
) -> Vec<Lead> {
    // Made when there is something to say: it reads the whole trace and all modules.
    let composer = LazyCell::new(|| Composer::new(loaded, symbols, quantum));
    let mut leads = Vec::new();
    let mut lead = |mut finding: Finding| {
        if let Some(schedule) = &mut finding.schedule {
            schedule.surroundings.clone_from(&from.surroundings);
        }
        if !from.process.is_initial() {
            finding.notes.push(format!("seen in process {}, which the program made", from.process));
        }
        leads.push(Lead { finding, alternatives: Vec::new(), from: from.clone() });
    };
    if ended_blocked(loaded)
        && let Some(finding) = composer.of_blocked()
    {
        lead(finding);
    }
    for record in &loaded.misuses {
        lead(composer.of_misuse(record));
    }
    let statistics = analyse(&loaded.trace, deadline, |analysed| {
        let mut finding = composer.of_candidate(&analysed.candidate, analysed.witness.as_ref());
        finding
            .notes
            .extend(analysed.rejected.map(|reason| format!("the predicted schedule was rejected by the checker: {reason}")));
        lead(finding);
    });
    tally.out_of_time += statistics.out_of_time as u64;
    leads
}

/// Ready to paste into a shell, whatever its working directory.
pub(crate) fn reproduce_command(tool: &OsStr, store: &Store, id: &str) -> String {
    let words = [quoted(tool), "replay".into(), "--store".into(), quoted(store.path().as_os_str()), id.into()];
    words.map(|word: OsString| word.to_string_lossy().into_owned()).join(" ")
}

const fn verdict_rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Proven { .. } => 0,
        Verdict::Predicted => 1,
        Verdict::Suspected => 2,
        Verdict::Diverged { .. } | Verdict::Refuted => 3,
    }
}

/// Whether forcing could still decide it.
fn is_open(finding: &Finding) -> bool {
    finding.schedule.is_some() && !matches!(finding.verdict, Verdict::Proven { .. })
}

/// One finding per id: the surer one stays, the other's schedule may be tried too.
fn merge(leads: &mut BTreeMap<String, Lead>, new: Lead) {
    let Some(old) = leads.get_mut(&new.finding.id) else {
        leads.insert(new.finding.id.clone(), new);
        return;
    };
    let occurrences = old.finding.occurrences + new.finding.occurrences;
    let is_better = |a: &Finding, b: &Finding| {
        (verdict_rank(&a.verdict), a.schedule.is_none()) < (verdict_rank(&b.verdict), b.schedule.is_none())
    };
    let other = if is_better(&new.finding, &old.finding) { std::mem::replace(old, new) } else { new };
    old.finding.occurrences = occurrences;
    let known: Vec<&Schedule> = old.finding.schedule.iter().chain(&old.alternatives).collect();
    let fresh: Vec<Schedule> =
        other.finding.schedule.into_iter().chain(other.alternatives).filter(|s| !known.contains(&s)).collect();
    old.alternatives.extend(fresh);
    old.alternatives.truncate(MAX_ALTERNATIVES);
}
