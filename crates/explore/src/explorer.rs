//! Executions of one program under plans, several at a time where the search allows it.

use crate::error::ExploreError;
use crate::failure::{Expected, Failure};
use crate::file::{self, Answer, End, Request, VisibleAccesses};
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_abi::control::option;
use rashomon_abi::exploration::MAX_THREADS;
use rashomon_confirm::force::{header_of, new_session};
use rashomon_confirm::{Execution, Forcing, Output, Program, execute};
use rashomon_event::Schedule;
use rashomon_trace::control::{self, ControlRequest, Policy};
use rashomon_trace::{RunHeader, RunMode};
use std::path::PathBuf;
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
    /// Steps of one execution.
    pub steps: u64,
    pub expected: Expected,
    /// Executions at the same time.
    pub jobs: usize,
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
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub schedules: u64,
    pub until: Option<Instant>,
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
        let session = self.folder.join(format!("exploration-{slot}"));
        let request = ControlRequest {
            mode: RunMode::Serial,
            policy: Policy::Explore,
            quantum: 0,
            options: option::NO_STREAMS | option::NO_CONTEXTS,
            patience_ms: u64::try_from(self.forcing.patience.as_millis()).unwrap_or(u64::MAX),
            processes: self.forcing.processes,
            base_time_nanoseconds: self.forcing.base_time_nanoseconds,
            schedule: Some(&self.base),
            ..ControlRequest::default()
        };
        let control = control::encode(&request).map_err(rashomon_confirm::ConfirmError::from)?;
        new_session(&session, &control)?;
        let path = session.join(rashomon_abi::exploration::FILE);
        file::write(
            &path,
            &Request {
                sampling: plan.sampling,
                seed: plan.seed,
                steps: self.steps,
                accesses: &self.accesses,
                races: self.races,
                hold: self.hold,
                prefer: self.prefer,
                asleep: plan.asleep,
                decisions: &plan.decisions,
            },
        )?;
        let execution = execute(self.program, &session, &self.forcing.input, Output::Discard, Some(self.forcing.limit))?;
        let header = header_of(&session)?.ok_or(ExploreError::NotObserved)?;
        let Answer { log, end, unmet, race } = file::read(&path)?;
        if end == End::TooManyThreads {
            return Err(ExploreError::TooManyThreads { limit: MAX_THREADS });
        }
        let failure = match end {
            End::None => Failure::of(&header, execution.ending, self.expected),
            End::Steps | End::LogFull => Some(Failure::Endless),
            End::Asleep | End::Held | End::TooManyThreads => None,
        };
        Ok(Observation { failure, log, end, unmet, race, header, execution })
    }

    /// Executes what a search plans until it has no more, a limit is reached, or `observe` has seen enough. Observations come in the order of plans, whatever ends first.
    pub fn search(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        mut observe: impl FnMut(&Plan, &Observation) -> Go,
    ) -> Result<Summary, ExploreError> {
        let begin = Instant::now();
        let mut summary = Summary::default();
        let at_once = if search.parallel() { self.jobs.max(1) } else { 1 };
        loop {
            let late = limits.until.is_some_and(|until| Instant::now() >= until);
            let left = limits.schedules.saturating_sub(summary.schedules);
            let mut plans = Vec::new();
            while !late && plans.len() < at_once.min(usize::try_from(left).unwrap_or(usize::MAX)) {
                match search.next() {
                    Some(plan) => plans.push(plan),
                    None => break,
                }
            }
            if plans.is_empty() {
                summary.exhausted = !late && left > 0 && search.is_exhaustive();
                break;
            }
            let mut stop = false;
            for (plan, observation) in plans.iter().zip(self.execute_all(&plans)) {
                let observation = observation?;
                summary.schedules += 1;
                summary.steps += observation.log.steps.len() as u64;
                summary.most_steps = summary.most_steps.max(observation.log.steps.len());
                search.learn(plan, &observation.log, observation.end);
                if !stop {
                    stop = observe(plan, &observation) == Go::Stop;
                }
                if stop {
                    break;
                }
            }
            if stop {
                break;
            }
        }
        summary.duration = begin.elapsed();
        Ok(summary)
    }

    fn execute_all(&self, plans: &[Plan]) -> Vec<Result<Observation, ExploreError>> {
        if let [plan] = plans {
            return vec![self.execute(0, plan)];
        }
        std::thread::scope(|scope| {
            let handles: Vec<_> =
                plans.iter().enumerate().map(|(slot, plan)| scope.spawn(move || self.execute(slot, plan))).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            handles.into_iter().map(join).collect()
        })
    }
}
