//! Counterexamples of refinement, each enforced in parallel with the online detector beside it.
//!
//! L. M. Carril, W. F. Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2.3: the model's
//! order of synchronisation is all that is enforced. What the detector then reports, or a deadlock of the program, confirms the
//! counterexample and says where; an order that cannot be enforced is told from one under which nothing happens.

mod reports;

use crate::detect::Flags;
use crate::error::PipelineError;
use crate::findings::binaries::Binaries;
use crate::findings::describe::Describer;
use rashomon_abi::record::Op;
use rashomon_abi::{DETECT_VARIABLE, REPORTER_VARIABLE};
use rashomon_confirm::enforce::{Kept, enforce, order_of, steps};
use rashomon_confirm::{Ending, Input, Program, Time};
use rashomon_event::{Address, CandidateKind, Deadline, EventIndex, ProcessPath, Schedule, Trace};
use rashomon_predict::deciders::Decision;
use rashomon_predict::engines::opinions_of;
use rashomon_predict::{Engine, Options, Refinement};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::live::live;
use rashomon_refinement::loops::{self, Loop, behind};
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::{Object, Objects};
use rashomon_refinement::search::{Limits, near};
use rashomon_refinement::terms::Called;
use rashomon_trace::SyncObjects;
use reports::reported;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

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
    /// The order was kept, in each of up to three executions, and nothing happened.
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
    /// How many of them race: an execution that deadlocks may show a race as well.
    pub races: usize,
    /// It shows a race, but neither the deadlock nor the two lines that the order was to lead to.
    pub elsewhere: bool,
    /// Executions of this order, and of one closer to the trace if there is one.
    pub executions: usize,
    /// Milliseconds of the one that is told of.
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
    /// What was enforced while nothing happened, and is not told yet.
    #[serde(skip)]
    quiet: Vec<(Planned, Counterexample)>,
}

/// Operations in an order, and their names in the model.
#[derive(Clone, Debug)]
struct Order {
    names: Vec<String>,
    turns: Schedule,
}

impl Order {
    fn of(trace: &Trace, called: &mut Called<'_>, steps: &[EventIndex]) -> Self {
        Self { names: called.names(steps), turns: order_of(trace, steps) }
    }
}

/// An order, and what it is about.
#[derive(Clone, Debug)]
struct Planned {
    process: ProcessPath,
    about: String,
    object: Option<String>,
    /// The source lines that the order leads to, as [`reports`] tells them, sorted; of a race.
    lines: Vec<String>,
    order: Order,
    behind_wait_loop: bool,
    /// It ends where something was lost: a program that looks before it waits does not wait there.
    is_doubtful: bool,
    /// To the same goals, as close to the trace as can be: for programs that leave the shorter one, or do something else in it.
    near: Option<Order>,
}

/// Executions of an order that is kept while nothing happens. Behind its last step an execution is free, so whether threads come
/// to where they race or block each other may be chance.
const TRIES: usize = 3;

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
            let (found, is_whole) = with.enforce(&one)?;
            self.cut_short |= !is_whole;
            match found {
                None => break,
                Some(found) if found.outcome == Outcome::Nothing => self.quiet.push((one, found)),
                Some(found) => {
                    told(&found);
                    self.counterexamples.push(found);
                }
            }
        }
        self.enforcing += begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Behind the last recording: what was kept while nothing happened is tried again, as long as there is time, and told.
    pub fn finish(&mut self, with: &Enforcement<'_>, mut told: impl FnMut(&Counterexample)) -> Result<(), PipelineError> {
        let begin = Instant::now();
        let mut quiet = std::mem::take(&mut self.quiet);
        for _ in 1..TRIES {
            for (one, found) in quiet.iter_mut().filter(|(_, found)| found.outcome == Outcome::Nothing) {
                if with.deadline.is_over() {
                    break;
                }
                if let Some(again) = with.enforce(one)?.0 {
                    let executions = found.executions + again.executions;
                    if again.outcome.is_confirmed() {
                        *found = again;
                    }
                    found.executions = executions;
                }
            }
        }
        for (_, found) in quiet {
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
        // Of what is left, one half at least is for executions: what is decided and not enforced is of no use to anybody.
        let until = with.deadline.left().map_or(Deadline::NEVER, |left| Deadline::within(left / 2));
        let options = Options { deadline: until, refinement, ..Options::default() };
        let mut called = Called::new(trace);
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
            let order_found = Order::of(trace, &mut called, &steps);
            if self.known.insert((process.clone(), order_found.names.clone())) {
                *number += 1;
                let behind_wait_loop = !behind(&loops, order).is_empty();
                let near = near(&model, &kind.goals()).map(|order| self::steps(trace, &order)).filter(|near| *near != steps);
                let object =
                    object_of(trace, &objects, kind).map(|object| describer.data(Address(object.from), object.to - object.from));
                let line = |goal: &EventIndex| reports::line_of(&describer.side_before(*goal).stack);
                let mut lines: Vec<String> = kind.goals().iter().map(line).collect();
                lines.sort();
                planned.push(Planned {
                    process: process.clone(),
                    about,
                    object,
                    lines,
                    order: order_found,
                    behind_wait_loop,
                    is_doubtful: false,
                    near: near.map(|near| Order::of(trace, &mut called, &near)),
                });
            }
        });
        self.cut_short |= !complete;
        self.plan_stuck((process, trace), (with.most, until), &loops, &mut called, &mut planned);
        // Most of these are infeasible, and that costs a step's timeout each.
        planned.sort_by_key(|one| (one.is_doubtful, one.behind_wait_loop));
        planned
    }

    /// Orders to states in which nobody can go on: of cycles that are none of locks, of waits for what nobody does any more, and
    /// of what the recording itself ended with.
    fn plan_stuck(
        &mut self,
        (process, trace): (&ProcessPath, &Trace),
        (most, until): (usize, Deadline),
        loops: &[Loop],
        called: &mut Called<'_>,
        planned: &mut Vec<Planned>,
    ) {
        let model = Model::to_the_end(trace, Atomics::Kept, loops);
        let limits = Limits { states: STUCK_STATES, steps: STUCK_STEPS, deadline: until, ..Limits::default() };
        let found = live(&model, most, &limits, true);
        self.states += found.states;
        self.undecided += usize::from(!found.complete && found.stuck.len() < most);
        self.candidates += found.stuck.len();
        self.feasible += found.stuck.len();
        for stuck in found.stuck {
            let steps = self::steps(trace, &stuck.order);
            let order = Order::of(trace, called, &steps);
            if self.known.insert((process.clone(), order.names.clone())) {
                let near = near(&model, &stuck.waits).map(|order| self::steps(trace, &order)).filter(|near| *near != steps);
                planned.push(Planned {
                    process: process.clone(),
                    about: String::from("deadlock"),
                    object: None,
                    lines: Vec::new(),
                    order,
                    behind_wait_loop: false,
                    is_doubtful: !stuck.is_cycle,
                    near: near.map(|near| Order::of(trace, called, &near)),
                });
            }
        }
    }

    /// How many came to that.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.counterexamples.iter().filter(|one| one.outcome == outcome).count()
    }

    /// How many show a race.
    pub fn races(&self) -> usize {
        self.counterexamples.iter().filter(|one| one.races > 0).count()
    }

    /// Distinct places of all that are confirmed.
    pub fn places(&self) -> BTreeSet<&Vec<String>> {
        self.counterexamples.iter().flat_map(|one| &one.places).collect()
    }
}

/// What a pair of accesses is about.
fn object_of(trace: &Trace, objects: &Objects, kind: &CandidateKind) -> Option<Object> {
    let CandidateKind::Race { first, .. } = kind else { return None };
    let access = trace.access(*first)?;
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
    /// Executes an order, and the one closer to the trace if that does not confirm it. `None`: the end of the time for everything
    /// came first, and that says nothing about the order. And whether there was time for all.
    fn enforce(&self, planned: &Planned) -> Result<(Option<Counterexample>, bool), PipelineError> {
        let Some(mut found) = self.execute(planned, &planned.order)? else { return Ok((None, false)) };
        if let Some(near) = planned.near.as_ref().filter(|_| !found.outcome.is_confirmed()) {
            let Some(again) = self.execute(planned, near)? else { return Ok((Some(found), false)) };
            if again.outcome.is_confirmed() {
                found = again;
            }
            found.executions = 2;
        }
        Ok((Some(found), true))
    }

    fn execute(&self, planned: &Planned, order: &Order) -> Result<Option<Counterexample>, PipelineError> {
        let mut program = self.program.clone();
        let mut flags = Flags::of_environment();
        let reports = self.folder.join("reports");
        let process = PathBuf::from(name_of(&planned.process));
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
        let (kept, execution) = enforce(&program, &order.turns, &self.folder, (self.step_timeout, time), self.input)?;
        let (races, deadlocks) = reported(&self.folder, &reports)?;
        rashomon_confirm::force::remove(&self.folder)?;
        let why = match (kept, execution.ending) {
            (Kept::Whole | Kept::Deadlock { .. }, _) => None,
            (_, Ending::TimedOut) => Some(String::from("the execution took too long")),
            _ => Some(words(kept, &order.names)),
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
            steps: order.names.clone(),
            behind_wait_loop: planned.behind_wait_loop,
            outcome,
            why,
            races: if confirmed { races.len() } else { 0 },
            elsewhere: outcome == Outcome::Race && !races.contains(&planned.lines),
            places: if confirmed { races.into_iter().chain(deadlocks).collect() } else { BTreeSet::new() },
            executions: 1,
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
