//! Counterexamples of refinement, each enforced in parallel with the online detector beside it.
//!
//! L. M. Carril, W. F. Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2.3: the model's
//! order of synchronisation is all that is enforced. What the detector then reports, or a deadlock of the program, confirms the
//! counterexample and says where; an order that cannot be enforced is told from one under which nothing happens.

use crate::detect::Flags;
use crate::error::PipelineError;
use crate::findings::binaries::Binaries;
use crate::findings::describe::Describer;
use rashomon_abi::record::Op;
use rashomon_abi::{DETECT_VARIABLE, REPORTER_VARIABLE};
use rashomon_confirm::enforce::{Kept, enforce, order_of, steps};
use rashomon_confirm::{Ending, Input, Program, Time};
use rashomon_event::{Address, CandidateKind, Deadline, EventIndex, ProcessPath, Trace};
use rashomon_files::Links;
use rashomon_predict::deciders::Decision;
use rashomon_predict::engines::opinions_of;
use rashomon_predict::{Engine, Options, Refinement};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::live::live;
use rashomon_refinement::loops::{self, Loop, behind};
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::{Object, Objects};
use rashomon_refinement::search::{Limits, near};
use rashomon_refinement::terms::names_of;
use rashomon_trace::SyncObjects;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of the detector's reports that are read.
const LARGEST: u64 = 64 << 20;

/// What looking for states in which nobody can go on may cost, in each recording.
const STUCK_STATES: usize = 20_000;
const STUCK_STEPS: usize = 1_000_000;

/// How counterexamples are made and enforced.
pub struct Enforcement<'a> {
    pub program: &'a Program,
    pub input: &'a Input,
    /// Names of what is raced for.
    pub symbols: &'a Binaries,
    /// Who names the detector's reports: the tool itself.
    pub reporter: OsString,
    /// Of executions; it is made, and removed.
    pub folder: PathBuf,
    /// Counterexamples of one shared object, and of deadlocks, of a recording, at most.
    pub most: usize,
    /// Events that are ordered anew, those before them as observed, where a model of the whole trace is too much.
    pub window: usize,
    /// How long the thread whose turn it is may take to come.
    pub step_timeout: Duration,
    /// Of one execution.
    pub limit: Duration,
    /// Behind it nothing is decided or enforced any more.
    pub deadline: Deadline,
}

/// What came of a counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The detector reported a race.
    Race,
    /// The program deadlocked.
    Deadlock,
    /// The order was kept, and nothing happened.
    Nothing,
    /// The order could not be kept.
    Infeasible,
}

impl Outcome {
    const fn is_confirmed(self) -> bool {
        matches!(self, Self::Race | Self::Deadlock)
    }
}

/// An order of synchronisation that leads to an error in the model, and what the program did under it.
#[derive(Clone, Debug, Serialize)]
pub struct Counterexample {
    /// The object that is raced for, as bytes of the trace, or `deadlock`.
    pub about: String,
    /// What lies there, in the words of findings.
    pub object: Option<String>,
    /// Names of the model's events.
    pub steps: Vec<String>,
    /// It enters a wait loop before the signal whose predicate let the thread pass.
    pub behind_wait_loop: bool,
    pub outcome: Outcome,
    /// Why the order could not be kept.
    pub why: Option<String>,
    /// Pairs of source lines whose accesses race, and those of a deadlock.
    pub places: BTreeSet<Vec<String>>,
    /// Milliseconds of the execution.
    pub milliseconds: u64,
}

/// How wait loops were known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitLoops {
    /// No recording was looked at.
    #[default]
    Unknown,
    Plugin,
    Recording,
}

impl WaitLoops {
    /// As it is told.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "not looked for",
            Self::Plugin => "marked by the compiler's plugin",
            Self::Recording => "guessed from the recording (rashomon cc --deep marks them)",
        }
    }
}

/// Of all recordings so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Enforced {
    pub counterexamples: Vec<Counterexample>,
    /// Pairs of accesses and tuples of waits that the model was asked about; those that have an order; those left open.
    pub candidates: usize,
    pub feasible: usize,
    pub undecided: usize,
    /// States of the models that were seen.
    pub states: usize,
    /// Seconds of deciding, and of executing.
    pub checking: f64,
    pub enforcing: f64,
    /// How wait loops were known: by the marks of the compiler's plugin, or by what sections of a mutex do.
    pub wait_loops: WaitLoops,
    /// There was no time for all.
    pub cut_short: bool,
    /// Recordings of threads that ran in parallel, which the model is not asked about.
    pub parallel: usize,
    /// What was enforced already, from another recording.
    #[serde(skip)]
    known: BTreeSet<(ProcessPath, Vec<String>)>,
}

/// An order, and what it is about.
struct Planned {
    about: String,
    object: Option<String>,
    steps: Vec<EventIndex>,
    names: Vec<String>,
    behind_wait_loop: bool,
    /// It ends where something was lost: a program that looks before it waits does not wait there.
    is_doubtful: bool,
    /// To the same goals, as close to the trace as can be: for programs that leave the shorter one, or do something else in it.
    near: Option<Vec<EventIndex>>,
}

impl Enforced {
    /// Decides the candidates of one more recording, and enforces what has an order that was not enforced yet.
    pub fn add(
        &mut self,
        (process, trace): (&ProcessPath, &Trace),
        with: &Enforcement<'_>,
        mut told: impl FnMut(&Counterexample),
    ) -> Result<(), PipelineError> {
        if trace.mode != rashomon_event::Mode::Serial {
            self.parallel += 1;
            return Ok(());
        }
        let begin = Instant::now();
        let planned = self.plan((process, trace), with);
        self.checking += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        for one in planned {
            if with.deadline.is_over() {
                self.cut_short = true;
                break;
            }
            let Some(mut found) = with.execute((process, trace), &one)? else {
                self.cut_short = true;
                break;
            };
            if let Some(near) = one.near.as_ref().filter(|_| !found.outcome.is_confirmed()) {
                let names = names_of(trace, near);
                let near = Planned {
                    about: one.about.clone(),
                    object: one.object.clone(),
                    steps: near.clone(),
                    names,
                    near: None,
                    ..one
                };
                match with.execute((process, trace), &near)? {
                    Some(again) if again.outcome.is_confirmed() => found = again,
                    Some(_) => {}
                    None => self.cut_short = true,
                }
            }
            told(&found);
            self.counterexamples.push(found);
        }
        self.enforcing += begin.elapsed().as_secs_f64();
        Ok(())
    }

    fn plan(&mut self, (process, trace): (&ProcessPath, &Trace), with: &Enforcement<'_>) -> Vec<Planned> {
        let objects = Objects::new(trace);
        self.wait_loops = match loops::Source::of(trace) {
            loops::Source::Marks => WaitLoops::Plugin,
            loops::Source::Sections => WaitLoops::Recording,
        };
        let loops = loops::loops(trace);
        let model = Model::respecting(trace, Atomics::Kept, &loops);
        let (unnamed, symbols) = (SyncObjects::default(), with.symbols);
        let describer = Describer::new(trace, &unnamed, symbols);
        let mut about_each: BTreeMap<String, usize> = BTreeMap::new();
        let mut planned = Vec::new();
        let refinement = Refinement { window: with.window, ..Refinement::default() };
        let options = Options { deadline: with.deadline, refinement, ..Options::default() };
        let complete = opinions_of(Engine::Csp, trace, &options, |kind, opinion| {
            self.candidates += 1;
            self.states += opinion.states;
            let order = match &opinion.decision {
                Decision::Witness(order) => order,
                Decision::Undecided => {
                    self.undecided += 1;
                    return;
                }
                Decision::Refuted | Decision::Ordered => return,
            };
            self.feasible += 1;
            let about = about(trace, &objects, kind);
            let number = about_each.entry(about.clone()).or_default();
            if *number >= with.most {
                return;
            }
            let steps = self::steps(trace, order);
            let names = names_of(trace, &steps);
            if self.known.insert((process.clone(), names.clone())) {
                *number += 1;
                let behind_wait_loop = !behind(&loops, order).is_empty();
                let near = near(&model, &kind.goals()).map(|order| self::steps(trace, &order)).filter(|near| *near != steps);
                let object =
                    object_of(trace, &objects, kind).map(|object| describer.data(Address(object.from), object.to - object.from));
                planned.push(Planned { about, object, steps, names, behind_wait_loop, is_doubtful: false, near });
            }
        });
        self.cut_short |= !complete;
        self.plan_stuck((process, trace), with, &loops, &mut planned);
        // Most of these are infeasible, and that costs a step's timeout each.
        planned.sort_by_key(|one| (one.is_doubtful, one.behind_wait_loop));
        planned
    }

    /// Orders to states in which nobody can go on: of cycles that are none of locks, of waits for what nobody does any more, and
    /// of what the recording itself ended with.
    fn plan_stuck(
        &mut self,
        (process, trace): (&ProcessPath, &Trace),
        with: &Enforcement<'_>,
        loops: &[Loop],
        planned: &mut Vec<Planned>,
    ) {
        let model = Model::to_the_end(trace, Atomics::Kept, loops);
        let limits = Limits { states: STUCK_STATES, steps: STUCK_STEPS, deadline: with.deadline, ..Limits::default() };
        let found = live(&model, with.most, &limits, true);
        self.states += found.states;
        self.undecided += usize::from(!found.complete && found.stuck.len() < with.most);
        self.candidates += found.stuck.len();
        self.feasible += found.stuck.len();
        for stuck in found.stuck {
            let steps = self::steps(trace, &stuck.order);
            let names = names_of(trace, &steps);
            if self.known.insert((process.clone(), names.clone())) {
                let near = near(&model, &stuck.waits).map(|order| self::steps(trace, &order)).filter(|near| *near != steps);
                planned.push(Planned {
                    about: String::from("deadlock"),
                    object: None,
                    steps,
                    names,
                    behind_wait_loop: false,
                    is_doubtful: !stuck.is_cycle,
                    near,
                });
            }
        }
    }

    /// How many came to that.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.counterexamples.iter().filter(|one| one.outcome == outcome).count()
    }

    /// Distinct places of all that are confirmed.
    pub fn places(&self) -> BTreeSet<&Vec<String>> {
        self.counterexamples.iter().flat_map(|one| &one.places).collect()
    }
}

/// What a pair of accesses is about.
fn object_of(trace: &Trace, objects: &Objects, kind: &CandidateKind) -> Option<Object> {
    let CandidateKind::Race { first, .. } = kind else { return None };
    let access = trace.event(*first).access()?;
    objects.touched(&access).next().map(|number| objects.all[number])
}

fn about(trace: &Trace, objects: &Objects, kind: &CandidateKind) -> String {
    if matches!(kind, CandidateKind::Deadlock { .. }) {
        return String::from("deadlock");
    }
    object_of(trace, objects, kind)
        .map_or_else(|| String::from("race"), |object| format!("v{:#x}-{:#x}", object.from, object.to - 1))
}

impl Enforcement<'_> {
    /// `None`: the end of the time for everything came first, and that says nothing about the order.
    fn execute(
        &self,
        (process, trace): (&ProcessPath, &Trace),
        planned: &Planned,
    ) -> Result<Option<Counterexample>, PipelineError> {
        let order = order_of(trace, &planned.steps);
        let mut program = self.program.clone();
        let mut flags = Flags::of_environment();
        let reports = self.folder.join("reports");
        let process = PathBuf::from(name_of(process));
        let pairs = [("enforce", self.folder.as_path()), ("enforce_process", process.as_path()), ("log_path", reports.as_path())];
        let mut pushed = pairs.into_iter().try_for_each(|(name, path)| flags.push(name, path));
        // Orders of locks that might deadlock are no deadlocks; whoever enforces wants to know what happened.
        // A mapping's end is its last write.
        let others = [("detect_deadlocks", "0"), ("report_thread_leaks", "0"), ("exitcode", "0"), ("unmap_is_write", "1")];
        for (name, value) in [("format", "json")].into_iter().chain(others) {
            pushed = pushed.and_then(|()| flags.push(name, value));
        }
        pushed.map_err(|error| PipelineError::Malformed { path: self.folder.clone(), reason: error.to_string() })?;
        program
            .environment
            .extend([(DETECT_VARIABLE.into(), flags.into_text()), (REPORTER_VARIABLE.into(), self.reporter.clone())]);
        let time = Time { limit: Some(self.limit), until: self.deadline };
        let (kept, execution) = enforce(&program, &order, &self.folder, (self.step_timeout, time), self.input)?;
        let (races, deadlocks) = reported(&self.folder, &reports)?;
        rashomon_confirm::force::remove(&self.folder)?;
        let why = match (kept, execution.ending) {
            (Kept::Whole | Kept::Deadlock { .. }, _) => None,
            (_, Ending::TimedOut) => Some(String::from("the execution took too long")),
            _ => Some(words(kept, &planned.names)),
        };
        let outcome = match kept {
            Kept::Whole | Kept::Deadlock { .. } if !deadlocks.is_empty() => Outcome::Deadlock,
            Kept::Deadlock { .. } => Outcome::Deadlock,
            Kept::Whole if !races.is_empty() => Outcome::Race,
            Kept::Whole => Outcome::Nothing,
            _ => Outcome::Infeasible,
        };
        let confirmed = outcome.is_confirmed();
        if !confirmed && execution.ending == Ending::TimedOut && self.deadline.is_over() {
            return Ok(None);
        }
        Ok(Some(Counterexample {
            about: planned.about.clone(),
            object: planned.object.clone(),
            steps: planned.names.clone(),
            behind_wait_loop: planned.behind_wait_loop,
            outcome,
            why,
            places: if confirmed { races.into_iter().chain(deadlocks).collect() } else { BTreeSet::new() },
            milliseconds: u64::try_from(execution.duration.as_millis()).unwrap_or(u64::MAX),
        }))
    }
}

/// As the runtime calls it.
fn name_of(process: &ProcessPath) -> String {
    process.0.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Why an order was left.
fn words(kept: Kept, names: &[String]) -> String {
    let step = |turn: usize| names.get(turn).map_or("the end", String::as_str);
    match kept {
        Kept::Whole => String::new(),
        Kept::Ended { turn } => format!("the program ended before {}", step(turn)),
        Kept::OtherOperation { turn, op } => {
            format!("its thread {} in place of {}", doing(op), step(turn))
        }
        Kept::Stuck { turn } => format!("nobody could go on before {}", step(turn)),
        Kept::Late { turn } => format!("nobody came to {}", step(turn)),
        Kept::Deadlock { turn } => format!("threads block each other before {}", step(turn)),
    }
}

/// What a thread that the gate holds is about to do.
fn doing(op: u64) -> &'static str {
    match Op::from_code(op) {
        Some(Op::Lock | Op::LockShared) => "took a lock",
        Some(Op::Unlock | Op::UnlockShared) => "released a lock",
        Some(Op::ThreadCreate) => "created a thread",
        Some(Op::ThreadJoin) => "joined a thread",
        Some(Op::CondWaitBegin) => "waited for a condition",
        Some(Op::CondWaitEnd) => "ended a wait",
        Some(Op::CondSignal | Op::CondBroadcast) => "signalled",
        Some(Op::BarrierEnter) => "entered a barrier",
        Some(Op::SemaphoreWait) => "took from a semaphore",
        Some(Op::SemaphorePost) => "posted to a semaphore",
        _ => "did something else",
    }
}

type Places = BTreeSet<Vec<String>>;

/// Races and deadlocks of the detector's reports: lines `NAME.PID` with an object each.
fn reported(folder: &Path, reports: &Path) -> Result<(Places, Places), PipelineError> {
    let (mut races, mut deadlocks) = (Places::new(), Places::new());
    let name = reports.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries =
        std::fs::read_dir(folder).map_err(|source| PipelineError::Io { action: "read", path: folder.into(), source })?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
            continue;
        }
        let bytes = rashomon_files::read(&path, Links::Refused, LARGEST).map_err(|source| PipelineError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        for line in bytes.split(|&byte| byte == b'\n') {
            let Ok(report) = serde_json::from_slice::<Value>(line) else { continue };
            match report["kind"].as_str() {
                Some("data-race" | "vptr-race" | "use-after-free" | "vptr-use-after-free" | "external-race") => {
                    races.insert(places(report["accesses"].as_array().into_iter().flatten().map(|access| &access["stack"])));
                }
                Some("deadlocked" | "stuck") => {
                    deadlocks.insert(places(report["stacks"].as_array().into_iter().flatten()));
                }
                _ => {}
            }
        }
    }
    Ok((races, deadlocks))
}

/// The innermost source line of each stack, sorted.
fn places<'a>(stacks: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let line = |stack: &Value| {
        let frames = stack.as_array().into_iter().flatten();
        let named = |frame: &Value| {
            let file = Path::new(frame["file"].as_str()?).file_name()?.to_string_lossy().into_owned();
            Some(format!("{file}:{}", frame["line"].as_u64()?))
        };
        frames.filter_map(named).next().unwrap_or_else(|| String::from("??"))
    };
    let mut lines: Vec<String> = stacks.map(line).collect();
    lines.sort();
    lines
}
