//! Executions of one program under plans, several at a time where the search allows it.

use crate::error::ExploreError;
use crate::failure::{Expected, Failure};
use crate::file::{self, Answer, End, Refusal, Request, VisibleAccesses};
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_abi::control::option;
use rashomon_confirm::force::{header_of, new_session};
use rashomon_confirm::snapshot::{self, Begun, Snapshot};
use rashomon_confirm::{ConfirmError, Ending, Execution, Forcing, Output, Program, execute};
use rashomon_event::{Deadline, Schedule};
use rashomon_trace::control::{self, ControlRequest, Policy};
use rashomon_trace::{RunHeader, RunMode};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What all executions share.
#[derive(Clone, Debug)]
pub struct Explorer<'a> {
    pub program: &'a Program,
    pub forcing: Forcing,
    /// Tables, and the turns after which exploration begins.
    pub base: Schedule,
    /// Sessions are made, and made again, in here.
    pub folder: PathBuf,
    pub accesses: VisibleAccesses,
    /// Look for conflicting accesses side by side.
    pub races: bool,
    /// Entries of the base's thread table.
    pub hold: Option<u32>,
    pub prefer: Option<u32>,
    /// Threads, by number, that are chosen when no other one can go on.
    pub last: u64,
    /// Steps of one execution.
    pub steps: u64,
    pub expected: Expected,
    /// Executions at the same time.
    pub jobs: usize,
    /// Executions of a search go on, after the first ones, from processes that stand where exploration begins, as far as the
    /// program allows that.
    pub snapshots: bool,
}

/// One explored execution.
#[derive(Clone, Debug)]
pub struct Observation {
    pub failure: Option<Failure>,
    pub log: Log,
    pub end: End,
    /// The first decision that could not be made.
    pub unmet: Option<u64>,
    /// Of [`Failure::Race`].
    pub race: [u32; 2],
    pub header: RunHeader,
    pub execution: Execution,
    /// Of a process that was to stand, and went on.
    pub refused: Refusal,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub schedules: u64,
    pub until: Deadline,
}

/// What became of a search.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub schedules: u64,
    /// Nothing within the bounds is left.
    pub exhausted: bool,
    pub steps: u64,
    pub most_steps: usize,
    pub duration: Duration,
    /// Of the schedules, those executed from a snapshot.
    pub from_snapshots: u64,
    /// Why there was none, where one was wanted.
    pub refused: Option<Refusal>,
}

/// A search that goes on.
#[derive(Default)]
pub struct Running {
    pub summary: Summary,
    /// By slot.
    snapshots: Vec<Option<Standing>>,
    /// Why there is none. Of a search that ends with its first execution nobody is told: that one began at the beginning anyway.
    refused: Option<Refusal>,
    /// Plans of the search that there was no time to execute, in their order: the next ones to be.
    unfinished: VecDeque<Plan>,
}

/// A process that stands where exploration begins, and its file, in which it is told what to do.
struct Standing {
    snapshot: Snapshot,
    exploration: File,
    path: PathBuf,
}

/// What to do after an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    On,
    Stop,
}

impl Explorer<'_> {
    /// One execution in a session of its own number.
    pub fn execute(&self, slot: usize, plan: &Plan) -> Result<Observation, ExploreError> {
        let session = self.session(slot);
        self.prepare(&session, plan, false)?;
        let execution = execute(self.program, &session, &self.forcing.input, Output::Discard, self.forcing.time())?;
        self.observe(&session, execution)
    }

    /// Whether an execution was ended because all of them have to be over.
    pub fn was_cut(&self, observation: &Observation) -> bool {
        observation.execution.ending == Ending::TimedOut && self.forcing.deadline.is_over()
    }

    fn session(&self, slot: usize) -> PathBuf {
        self.folder.join(format!("exploration-{slot}"))
    }

    /// A session with what an execution of the plan is to do.
    fn prepare(&self, session: &Path, plan: &Plan, snapshot: bool) -> Result<(), ExploreError> {
        let request = ControlRequest {
            mode: RunMode::Serial,
            policy: Policy::Explore,
            quantum: 0,
            options: option::NO_STREAMS | option::NO_CONTEXTS,
            call_timeout_ms: u64::try_from(self.forcing.call_timeout.as_millis()).unwrap_or(u64::MAX),
            processes: self.forcing.processes,
            base_time_nanoseconds: self.forcing.base_time_nanoseconds,
            schedule: Some(&self.base),
            ..ControlRequest::default()
        };
        let control = control::encode(&request).map_err(ConfirmError::from)?;
        new_session(session, &control)?;
        file::write(&session.join(rashomon_abi::exploration::FILE), &self.request(plan, snapshot))
    }

    fn request<'a>(&'a self, plan: &'a Plan, snapshot: bool) -> Request<'a> {
        Request {
            sampling: plan.sampling,
            seed: plan.seed,
            steps: self.steps,
            accesses: &self.accesses,
            races: self.races,
            hold: self.hold,
            prefer: self.prefer,
            asleep: plan.asleep,
            last: self.last,
            decisions: &plan.decisions,
            wanted: &plan.wanted,
            orders: &plan.orders,
            snapshot,
        }
    }

    /// What an execution left in its session.
    fn observe(&self, session: &Path, execution: Execution) -> Result<Observation, ExploreError> {
        let header = header_of(session)?.ok_or(ExploreError::NotObserved)?;
        Ok(self.judge(header, file::read(&session.join(rashomon_abi::exploration::FILE))?, execution))
    }

    fn judge(&self, header: RunHeader, answer: Answer, execution: Execution) -> Observation {
        let Answer { log, end, unmet, race, refused } = answer;
        let failure = match end {
            End::None | End::Repeating | End::Torn => Failure::of(&header, execution.ending, self.expected),
            End::Steps | End::LogFull => Some(Failure::Endless),
            End::Asleep | End::Held => None,
        };
        Observation { failure, log, end, unmet, race, header, execution, refused }
    }

    /// A process that stands where exploration begins; or, where there can be none, what came of the plan.
    fn stand(&self, slot: usize, plan: &Plan) -> Result<Result<Standing, Observation>, ExploreError> {
        let session = self.folder.join(format!("snapshot-{slot}"));
        self.prepare(&session, plan, true)?;
        match snapshot::begin(self.program, &session, &self.forcing.input, self.forcing.limit())? {
            Begun::Stands(snapshot) => {
                let path = session.join(rashomon_abi::exploration::FILE);
                let exploration =
                    OpenOptions::new().read(true).write(true).open(&path).map_err(ExploreError::io("open", &path))?;
                Ok(Ok(Standing { snapshot, exploration, path }))
            }
            Begun::Ended(execution) => self.observe(&session, execution).map(Err),
        }
    }

    /// One execution from a snapshot, or without one from the beginning.
    fn execute_from(&self, slot: usize, plan: &Plan, from: Option<&mut Option<Standing>>) -> Result<Observation, ExploreError> {
        if let Some(from) = from
            && let Some(Standing { snapshot, exploration, path }) = from
            && file::rewrite(exploration, path, &self.request(plan, false))?
        {
            if let Some((execution, header)) = snapshot.execute(self.forcing.limit())? {
                return Ok(self.judge(header, file::read_from(exploration, path)?, execution));
            }
            *from = None;
        }
        self.execute(slot, plan)
    }

    /// Executes what a search plans until it has no more, a limit is reached, or `observe` has seen enough. Observations come in
    /// the order of plans, whatever ends first.
    pub fn search(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        mut observe: impl FnMut(&Plan, &Observation) -> Go,
    ) -> Result<Summary, ExploreError> {
        let mut running = Running::default();
        while self.batch(search, limits, &mut running, &mut observe)? == Go::On {}
        Ok(running.summary)
    }

    /// The next plans of a search, as many as are executed at the same time. [`Go::Stop`]: it has no more, a limit is reached, or
    /// `observe` has seen enough.
    pub fn batch(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        running: &mut Running,
        observe: &mut dyn FnMut(&Plan, &Observation) -> Go,
    ) -> Result<Go, ExploreError> {
        let begin = Instant::now();
        let go = self.next_batch(search, limits, running, observe);
        running.summary.duration += begin.elapsed();
        go
    }

    fn next_batch(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        Running { summary, snapshots, refused, unfinished }: &mut Running,
        observe: &mut dyn FnMut(&Plan, &Observation) -> Go,
    ) -> Result<Go, ExploreError> {
        let at_once = if search.parallel() && self.program.runs_alone() { self.jobs.max(1) } else { 1 };
        let late = limits.until.is_over();
        let left = limits.schedules.saturating_sub(summary.schedules);
        let mut plans = Vec::new();
        while !late && plans.len() < at_once.min(usize::try_from(left).unwrap_or(usize::MAX)) {
            match unfinished.pop_front().or_else(|| search.next()) {
                Some(plan) => plans.push(plan),
                None => break,
            }
        }
        if plans.is_empty() {
            summary.exhausted = !late && left > 0 && search.is_exhaustive();
            return Ok(Go::Stop);
        }
        let mut without = None;
        while self.snapshots && refused.is_none() && snapshots.len() < plans.len() {
            let slot = snapshots.len();
            match self.stand(slot, &plans[slot]) {
                Err(error) if error.is_of_nothing() && self.forcing.deadline.is_over() => {
                    unfinished.extend(plans);
                    return Ok(Go::Stop);
                }
                Err(error) => return Err(error),
                Ok(Ok(snapshot)) => snapshots.push(Some(snapshot)),
                Ok(Err(observation)) => {
                    *refused = Some(observation.refused);
                    without = Some((slot, observation));
                }
            }
        }
        if summary.schedules + plans.len() as u64 > 1 {
            summary.refused = *refused;
        }
        let observations = self.execute_all(&plans, snapshots, without);
        summary.from_snapshots += snapshots.iter().take(plans.len()).flatten().count() as u64;
        for (number, (plan, observation)) in plans.iter().zip(observations).enumerate() {
            let observation = match observation {
                // It was ended with the budget, before it had begun.
                Err(error) if error.is_of_nothing() && self.forcing.deadline.is_over() => None,
                // The end of the budget ended it: that says nothing about the program.
                other => Some(other?).filter(|observation| !self.was_cut(observation)),
            };
            let Some(observation) = observation else {
                unfinished.extend(plans.drain(number..));
                return Ok(Go::Stop);
            };
            summary.schedules += 1;
            summary.steps += observation.log.steps.len() as u64;
            summary.most_steps = summary.most_steps.max(observation.log.steps.len());
            search.learn(plan, &observation.log, observation.end);
            if observe(plan, &observation) == Go::Stop {
                return Ok(Go::Stop);
            }
        }
        Ok(Go::On)
    }

    /// `done`: a plan by number that has been executed already.
    fn execute_all(
        &self,
        plans: &[Plan],
        snapshots: &mut [Option<Standing>],
        done: Option<(usize, Observation)>,
    ) -> Vec<Result<Observation, ExploreError>> {
        let mut snapshots = snapshots.iter_mut();
        let (number, mut observed) = done.map_or((usize::MAX, None), |(number, observation)| (number, Some(observation)));
        let mut work = plans.iter().enumerate().map(|(slot, plan)| {
            let snapshot = snapshots.next();
            let observed = if slot == number { observed.take() } else { None };
            move || observed.map_or_else(|| self.execute_from(slot, plan, snapshot), Ok)
        });
        if plans.len() == 1 {
            return work.next().map(|work| work()).into_iter().collect();
        }
        std::thread::scope(|scope| {
            let handles: Vec<_> = work.map(|work| scope.spawn(work)).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            handles.into_iter().map(join).collect()
        })
    }
}
