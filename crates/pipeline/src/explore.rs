//! `explore`: schedules of the real program are tried until one fails; the failure is minimised, replayed and stored.
//!
//! Threads stop before all synchronisation, and before the plain accesses that one recording shows to matter: those of the hybrid
//! candidates. Limit: accesses that this recording does not show are not stopped at; `--accesses all` stops at all.

mod in_check;
mod library;
mod outcome;
mod recorded;
mod settings;
mod sites;
mod words;

pub use self::in_check::DRY;
use self::in_check::may_be_proven;
use self::library::of_library;
use self::outcome::{Kept, Look, grade_of, happened, is_failure, look_of, of_its_length, strategy_of, unless_too_much};
pub use self::settings::{ExploreSettings, Stops, Strategy};
use self::settings::{search_from, steps_of};
pub use self::sites::racing_sites;
use self::sites::rare_sites;
use self::words::{describe_schedule, operation};
use crate::check::Job;
use crate::check::leads::is_proven;
use crate::check::prove::{Prover, REPLAYS, is_blocked_as, load};
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::critical;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::store::run::RunRecord;
use crate::timeline::Drawing;
use rashomon_confirm::{Forcing, Planner, force};
use rashomon_event::{CodePlace, Deadline, Finding, FindingId, Replays, Schedule, Trial, Verdict};
pub use rashomon_explore::Expected as ExpectedExit;
use rashomon_explore::batch::Running;
use rashomon_explore::explorer::{Go, Limits};
use rashomon_explore::file::{End, Refusal};
use rashomon_explore::schedule::of_log;
use rashomon_explore::{
    Expected, Explorer, Failure, Log, Minimised, Novelty, Observation, Search, Summary, VisibleAccesses, minimise,
};
use rashomon_report::ProgramExit;
use rashomon_trace::LoadedTrace;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Of the engine.
pub const NAME: &str = "explore";

/// An exploration that goes on.
pub(crate) struct Exploring {
    program: rashomon_confirm::Program,
    settings: ExploreSettings,
    /// What has to end well again.
    controls: Vec<(Arc<Schedule>, i32)>,
    parts: Parts,
    search: Box<dyn Search>,
    /// Time that is kept for replays.
    replays: Duration,
    running: Running,
    found: Vec<Failed>,
    /// Failures that look alike before they are replayed, and how often one of them was known already.
    replayed: HashMap<Look, u32>,
    /// Schedules.
    tried: u64,
    novelty: Novelty,
    /// The last execution that showed anything new.
    last_new: u64,
    /// Schedules of executions that did, unless they failed.
    new: Vec<Schedule>,
    /// Of a check: schedules make more steps than all of them could be tried of.
    long: bool,
    /// What the search was told of the recording, and whether that failed.
    recorded: Option<(Log, bool)>,
    /// Executions that failed as no replay did.
    unproven: u64,
}

/// What an explorer is made of.
struct Parts {
    forcing: Forcing,
    base: Schedule,
    folder: PathBuf,
    accesses: VisibleAccesses,
    /// Those to rarely touched data, whether they may race or not.
    rare: Vec<CodePlace>,
    /// Threads, by number, that come last: no code of the program runs in them.
    last: u64,
    steps: u64,
}

impl Parts {
    fn explorer<'p>(
        &self,
        program: &'p rashomon_confirm::Program,
        settings: &ExploreSettings,
        deadline: Deadline,
    ) -> Explorer<'p> {
        Explorer {
            program,
            forcing: Forcing { deadline, ..self.forcing.clone() },
            base: self.base.clone(),
            folder: self.folder.clone(),
            accesses: self.accesses.clone(),
            races: false,
            hold: None,
            prefer: None,
            last: self.last,
            steps: self.steps,
            expected: settings.expected,
            jobs: settings.jobs,
            // What restores the program's world would have to do so in the middle of it.
            snapshots: program.runs_alone(),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    pub summary: Summary,
    /// The schedule, counted from 1, that showed each kind of failure first.
    pub found: Vec<(Failure, u64)>,
    /// What was covered, in words.
    pub covered: String,
    pub executions: u64,
}

/// A failure, and the execution that showed it.
struct Shown<'a> {
    failure: Failure,
    observation: &'a Observation,
    /// The same failure by a shorter schedule.
    minimised: Option<&'a Minimised>,
    /// Schedules tried up to and with it.
    after: u64,
    strategy: Strategy,
    /// By the exploration of a check.
    check: bool,
}

/// A failure that is stored.
struct Failed {
    id: FindingId,
    failure: Failure,
    /// Schedules tried up to and with it.
    after: u64,
    /// Only if it is to be shortened: the logs of long executions are large.
    observation: Option<Observation>,
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Ready to execute schedules of the program, whose first recording is in the store. `None`: there is no time to read that.
    pub(crate) fn begin_exploring(
        &self,
        run: &RunRecord,
        settings: &ExploreSettings,
        total: Deadline,
        observer: &mut dyn Observer,
    ) -> Result<Option<Exploring>, PipelineError> {
        let Some(loaded) = self.load_for_search(0, total, observer)? else { return Ok(None) };
        // What fails is replayed once, which takes about as long as the recording did.
        let once = Duration::from_millis(run.recordings.first().map_or(0, |recording| recording.milliseconds));
        let parts = self.parts(run, settings, &loaded, total);
        let log = if self.program.randomise_addresses { None } else { recorded::log_of(&loaded, &parts.accesses) };
        let exit = run.recordings.first().map(|recording| recording.exit);
        let recorded = log.map(|log| (log, exit.is_some_and(|exit| is_failure(exit, settings.expected))));
        Ok(Some(Exploring {
            // So that sites can be compared between executions; schedules do not need it.
            program: rashomon_confirm::Program { randomise_addresses: false, ..self.program.clone() },
            settings: *settings,
            controls: self.controls(run, settings.expected, &loaded),
            parts,
            search: search_from(settings, recorded.as_ref()),
            replays: (once * 2).max(LEAST_FOR_REPLAYS).min(total.limit(Duration::MAX) / 3),
            running: Running::default(),
            found: Vec::new(),
            replayed: HashMap::new(),
            tried: 0,
            novelty: Novelty::default(),
            last_new: 0,
            new: Vec::new(),
            long: false,
            recorded,
            unproven: 0,
        }))
    }

    /// Executes the next schedules, and replays and stores what fails. `false`: that was the last of it.
    pub(crate) fn explore_batch(
        &self,
        exploring: &mut Exploring,
        total: Deadline,
        observer: &mut dyn Observer,
    ) -> Result<bool, PipelineError> {
        let Exploring {
            program,
            settings,
            controls,
            parts,
            search,
            running,
            found,
            replayed,
            tried,
            novelty,
            last_new,
            new,
            long,
            unproven,
            ..
        } = exploring;
        let explorer = parts.explorer(program, settings, total);
        let at_a_time = if settings.check { CHECK_BATCH * settings.jobs } else { usize::MAX };
        let limits = Limits { at_a_time, ..Limits::new(settings.schedules, total.less(exploring.replays)) };
        let from_snapshots = explorer.snapshots && !running.is_without_snapshots();
        let (mut refused, mut is_another) = (None, false);
        let went = explorer.batch(search.as_mut(), limits, running, &mut |plan, observation| {
            *tried += 1;
            observer.progress(Progress::Exploring { schedules: *tried, found: found.len() });
            let is_new = settings.check && novelty.learn(&observation.log) > 0;
            if is_new {
                *last_new = *tried;
            }
            if let Some(go) = of_its_length(long, *tried, observation.end == End::Steps, settings.check) {
                return go;
            }
            let Some(failure) = observation.failure.filter(|failure| !settings.check || may_be_proven(*failure)) else {
                // The first schedule is like that of the recording.
                if is_new && *tried > 1 && !*long {
                    new.push(of_log(&explorer.base, &observation.log, None));
                }
                return Go::On;
            };
            let known = replayed.entry(look_of(failure, observation)).or_default();
            if *known >= MOST_KNOWN {
                return Go::On;
            }
            // In the store before anything else is tried: it can be shortened later.
            let shown = Shown {
                failure,
                observation,
                minimised: None,
                after: *tried,
                strategy: strategy_of(plan.sampling, settings.strategy),
                check: settings.check,
            };
            match self.take_failure(&explorer, &shown, (controls, settings), (found, known, unproven), observer) {
                Ok(is_again) => is_another = from_snapshots && !is_again,
                // The end of the time cut the replay short, and only proofs are stored.
                Err(_) if settings.check && total.is_over() => return Go::Stop,
                Err(error) => {
                    refused = Some(error);
                    return Go::Stop;
                }
            }
            if settings.all && !is_another { Go::On } else { Go::Stop }
        });
        let go = unless_too_much(went, *long)?;
        if is_another {
            exploring.start_over(Refusal::NotTheSame);
            return Ok(!total.is_over());
        }
        if *long && *tried == 1 && refused.is_none() {
            exploring.begin_long();
            return Ok(!total.is_over());
        }
        refused.map_or(Ok(go == Go::On), Err)
    }

    /// Stores a failure. `false`: no replay showed it, and only proofs are stored.
    fn take_failure(
        &self,
        explorer: &Explorer<'_>,
        shown: &Shown<'_>,
        (controls, settings): (&[(Arc<Schedule>, i32)], &ExploreSettings),
        (found, known, unproven): (&mut Vec<Failed>, &mut u32, &mut u64),
        observer: &mut dyn Observer,
    ) -> Result<bool, PipelineError> {
        let &Shown { failure, observation, after, .. } = shown;
        let kept = self.store_failure(explorer, shown, controls, (found, settings.check), observer)?;
        match &kept {
            Kept::Stored(id) => {
                let observation = (settings.minimise > 0).then(|| observation.clone());
                found.push(Failed { id: id.clone(), failure, after, observation });
                // To see that an execution does not end takes as long as one may take.
                *known = if matches!(failure, Failure::Endless | Failure::TimedOut) { MOST_KNOWN } else { 0 };
            }
            Kept::Known => *known += 1,
            Kept::NotAgain => {
                *known += 1;
                *unproven += 1;
            }
        }
        Ok(!matches!(kept, Kept::NotAgain))
    }

    /// Shortens what was found, and says what was covered.
    pub(crate) fn end_exploring(
        &self,
        exploring: &Exploring,
        total: Deadline,
        observer: &mut dyn Observer,
    ) -> Result<Explored, PipelineError> {
        let Exploring { program, settings, controls, parts, found, .. } = exploring;
        let summary = exploring.running.summary.clone();
        let until = total.less(exploring.replays);
        let explorer = parts.explorer(program, settings, total);
        let mut explored = Explored { summary, covered: exploring.search.describe(), ..Explored::default() };
        explored.executions = explored.summary.schedules;
        let shorter = Explorer { forcing: Forcing { deadline: until, ..explorer.forcing.clone() }, ..explorer.clone() };
        for one in found {
            explored.found.push((one.failure, one.after));
            if let Some(observation) = one.observation.as_ref().filter(|_| !until.is_over()) {
                let minimised = minimise(&shorter, observation, one.failure, settings.minimise)?;
                explored.executions += minimised.executions;
                let shown = (one, observation, &minimised);
                self.store_shorter(&explorer, shown, controls, (settings.strategy, found), observer)?;
            }
        }
        Ok(explored)
    }

    /// What ended well has to end well again, else a failure may come from what executions leave behind.
    fn controls(&self, run: &RunRecord, expected: Expected, loaded: &LoadedTrace) -> Vec<(Arc<Schedule>, i32)> {
        match run.recordings.first().map(|recording| recording.exit) {
            Some(ProgramExit::Code { code }) if !matches!(expected, Expected::Code(right) if right != code) => {
                vec![(Arc::new(loaded.replay_schedule(self.settings.record.quantum)), code)]
            }
            _ => Vec::new(),
        }
    }

    fn parts(&self, run: &RunRecord, settings: &ExploreSettings, loaded: &LoadedTrace, deadline: Deadline) -> Parts {
        Parts {
            forcing: self.forcing(run),
            base: Planner::new(&loaded.trace, 0).empty(),
            folder: self.store.scratch(NAME),
            rare: if settings.stops == Stops::Racing { rare_sites(&loaded.trace, deadline) } else { Vec::new() },
            last: if settings.check { of_library(loaded, self.symbols) } else { 0 },
            accesses: match settings.stops {
                Stops::Racing => VisibleAccesses::Sites(racing_sites(&loaded.trace, deadline)),
                Stops::None => VisibleAccesses::None,
                Stops::All => VisibleAccesses::All,
            },
            steps: settings.steps.unwrap_or_else(|| steps_of(loaded.trace.events.len())),
        }
    }

    /// The failure again, by the shorter schedule.
    fn store_shorter(
        &self,
        explorer: &Explorer<'_>,
        (one, observation, minimised): (&Failed, &Observation, &Minimised),
        controls: &[(Arc<Schedule>, i32)],
        (strategy, found): (Strategy, &[Failed]),
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let &Failed { ref id, failure, after, .. } = one;
        let shown = Shown { failure, observation, minimised: Some(minimised), after, strategy, check: false };
        // Where the shorter schedule comes to the same end elsewhere that is a finding of its own, beside the first one.
        let mut others = found.iter().filter(|other| other.id != *id);
        let first = self.store.finding(id)?;
        let finding = self.finding_of(explorer, &shown, controls, observer)?;
        // What is proven stays so when the shorter schedule is not.
        let is_worse = finding.id == *id && is_proven(&first) && !is_proven(&finding);
        if !is_worse && !others.any(|other| other.id == finding.id) { self.keep(&finding, observer) } else { Ok(()) }
    }

    /// Stores what the schedule shows when it is replayed, unless that is known.
    fn store_failure(
        &self,
        explorer: &Explorer<'_>,
        shown: &Shown<'_>,
        controls: &[(Arc<Schedule>, i32)],
        (known, is_of_check): (&[Failed], bool),
        observer: &mut dyn Observer,
    ) -> Result<Kept, PipelineError> {
        let finding = self.finding_of(explorer, shown, controls, observer)?;
        if known.iter().any(|known| known.id == finding.id) || is_of_check && self.store.has_proof(&finding.id) {
            return Ok(Kept::Known);
        }
        if is_of_check && !is_proven(&finding) {
            return Ok(Kept::NotAgain);
        }
        self.keep(&finding, observer)?;
        Ok(Kept::Stored(finding.id))
    }

    fn keep(&self, finding: &Finding, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        self.store.write_finding(finding)?;
        observer.progress(Progress::Decided(finding));
        Ok(())
    }

    fn finding_of(
        &self,
        explorer: &Explorer<'_>,
        shown: &Shown<'_>,
        controls: &[(Arc<Schedule>, i32)],
        observer: &mut dyn Observer,
    ) -> Result<Finding, PipelineError> {
        let &Shown { failure, observation, minimised, after, strategy, .. } = shown;
        let best = minimised.map_or(observation, |minimised| &minimised.observation);
        let schedule = of_log(&explorer.base, &best.log, None);
        let session = self.store.scratch(NAME).join("proof");
        let forcing = Forcing { times: 1, ..explorer.forcing.clone() };
        observer.progress(Progress::Forcing { id: &failure.to_string(), number: 0, of: 1 });
        let mut replays = Replays::default();
        let times = self.settings.times.max(1);
        let attempt = loop {
            let attempt = force(explorer.program, &schedule, &session, &forcing)?;
            replays.of += 1;
            replays.shown += u32::from(happened(failure, &attempt));
            if replays.shown >= times || replays.of >= REPLAYS.max(times) || explorer.forcing.deadline.is_over() {
                break attempt;
            }
        };
        let loaded = load(&session)?;
        let composer = Composer::new(&loaded, self.symbols, 0);
        let mut finding = composer.of_blocked().unwrap_or_else(|| composer.of_failure(failure));
        if shown.check && !loaded.blocked.is_empty() {
            // A cycle through a barrier, say, that was predicted: one cause, one finding.
            let known = self.store.findings()?;
            let known = known.into_iter().find(|known| is_proven(known) && is_blocked_as(known, &composer));
            finding.id = known.map_or(finding.id, |known| known.id);
        }
        if happened(failure, &attempt) {
            finding.forced = Some(Box::new(Drawing::of(&composer).to_its_end(&finding)));
        }
        let again = replays.shown >= times;
        let exit = match failure {
            Failure::Signal(signal) => Some(ProgramExit::Signal { signal }),
            Failure::Code(code) => Some(ProgramExit::Code { code }),
            _ => None,
        };
        let objection = match exit {
            Some(exit) if again && !controls.is_empty() => {
                let scratch = self.store.scratch(NAME).join("control");
                let mut prover =
                    Prover { program: explorer.program, forcing, symbols: self.symbols, scratch: &scratch, executions: 0 };
                prover.compare(&finding, exit, controls)?.objection()
            }
            _ => None,
        };
        finding.verdict = Verdict::Suspected;
        finding.advance(match grade_of(failure) {
            Some(grade) if again && objection.is_none() => Trial::Shown { grade, replays },
            Some(_) if !again && !explorer.forcing.deadline.is_over() => Trial::ShownOnce {
                expected: "what exploration showed, when its schedule was replayed".into(),
                actual: attempt.outcome.to_string(),
                of: replays.of,
            },
            _ => Trial::NotShown,
        });
        if let Some(objection) = objection {
            let late = explorer.forcing.deadline.is_over();
            finding.notes.push(if late { NO_TIME } else { objection }.into());
        } else if !again && explorer.forcing.deadline.is_over() {
            finding.notes.push(NO_TIME.into());
        } else if !again {
            finding.notes.push(format!("replaying its schedule did not show it: {}", attempt.outcome));
        }
        finding.notes.push(format!("found by exploration ({}): schedule number {after}", strategy.words()));
        finding.notes.push(describe_schedule(&schedule, best, minimised));
        if let Some(critical) = minimised.and_then(|minimised| minimised.critical.as_ref()) {
            let side = |side| operation(&composer, &best.log, side);
            critical::tell(&mut finding, side(&critical.first), side(&critical.second));
        }
        finding.schedule = Some(schedule);
        self.complete(&mut finding);
        Ok(finding)
    }
}

/// Schedules of a turn in a check, by number of those that are executed at the same time.
const CHECK_BATCH: usize = 4;

/// Time that is kept for replays, however short an execution is: the machine may be busy.
const LEAST_FOR_REPLAYS: Duration = Duration::from_millis(500);

/// Replays, of failures that look alike, that showed what was known, after which further ones are not replayed.
const MOST_KNOWN: u32 = 4;

/// Of a failure whose schedule, or what it is compared with, could not be replayed any more.
const NO_TIME: &str = "there was no time to replay its schedule: --budget gives more";
