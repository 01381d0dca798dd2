//! Executions of one program under plans.

use crate::error::ExploreError;
use crate::failure::{Expected, Failure};
use crate::file::{self, Answer, End, Refusal, Request, VisibleAccesses};
use crate::log::Log;
use crate::search::Plan;
use rashomon_abi::control::option;
use rashomon_confirm::force::{header_of, new_session};
use rashomon_confirm::snapshot::{self, Begun, Snapshot};
use rashomon_confirm::{ConfirmError, Ending, Execution, Forcing, Output, Program, execute};
use rashomon_event::{Deadline, Schedule};
use rashomon_trace::control::{self, ControlRequest, Policy};
use rashomon_trace::{RunHeader, RunMode};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// Of one batch.
    pub at_a_time: usize,
}

impl Limits {
    pub fn new(schedules: u64, until: Deadline) -> Self {
        Self { schedules, until, at_a_time: usize::MAX }
    }
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

/// A process that stands where exploration begins, and its file, in which it is told what to do.
pub(crate) struct Standing {
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
    pub(crate) fn stand(&self, slot: usize, plan: &Plan) -> Result<Result<Standing, Observation>, ExploreError> {
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
    pub(crate) fn execute_from(
        &self,
        slot: usize,
        plan: &Plan,
        from: &mut Option<Standing>,
    ) -> Result<Observation, ExploreError> {
        if let Some(Standing { snapshot, exploration, path }) = from
            && file::rewrite(exploration, path, &self.request(plan, false))?
        {
            if let Some((execution, header)) = snapshot.execute(self.forcing.limit())? {
                return Ok(self.judge(header, file::read_from(exploration, path)?, execution));
            }
            *from = None;
        }
        self.execute(slot, plan)
    }
}
