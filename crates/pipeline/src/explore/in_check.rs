//! Exploration as a part of a check: which schedules, when it ends, and what it says of that.

use crate::engines::engine::Account;
use crate::error::PipelineError;
use crate::explore::outcome::grade_of;
use crate::explore::{ExploreSettings, Exploring, Stops, Strategy};
use crate::findings::failure::is_own;
use rashomon_confirm::{Attempt, Forcing, force};
use rashomon_event::{Deadline, Schedule};
use rashomon_explore::preemptions::up_to;
use rashomon_explore::{Expected, Failure};
use std::path::Path;

/// Executions in a row that show nothing new, after which an exploration in a check is *dry*; or half of all, if these are more.
/// New are operations and orders of two of them ([`Novelty`]): there are few in a small program, and most of them are seen in its
/// first schedules. A failure that needs several of them together comes behind the last new one, and hence the second half.
pub const DRY: u64 = 300;

/// Steps of an execution in a check. What makes more is not explored there: all of its schedules would be too many, and to plan
/// them takes time and memory by the square of the steps.
const MOST_STEPS: u64 = 5_000;

impl ExploreSettings {
    /// Every schedule with up to two preemptions.
    pub fn of_check(jobs: usize) -> Self {
        Self {
            strategy: Strategy::Preemptions,
            schedules: u64::MAX,
            preemptions: 2,
            seed: 0,
            steps: Some(MOST_STEPS),
            stops: Stops::Racing,
            expected: Expected::AnyCode,
            minimise: 0,
            all: true,
            jobs,
            check: true,
        }
    }
}

impl Exploring {
    /// Executions so far, those of searches alone.
    pub(crate) fn executions(&self) -> u64 {
        self.running.summary.schedules
    }

    /// Whether executions of a check have shown nothing new for long.
    pub(crate) fn is_dry(&self) -> bool {
        self.settings.check && self.tried - self.last_new >= DRY.max(self.last_new)
    }

    /// Schedules that showed something new since they were asked for last.
    pub(crate) fn take_new(&mut self) -> Vec<Schedule> {
        std::mem::take(&mut self.new)
    }

    /// The schedule once more, recorded.
    pub(crate) fn replay(&self, schedule: &Schedule, session: &Path, until: Deadline) -> Result<Attempt, PipelineError> {
        let forcing = Forcing { times: 1, deadline: until, ..self.parts.forcing.clone() };
        Ok(force(&self.program, schedule, session, &forcing)?)
    }

    /// What was tried and what was left, in words.
    pub(crate) fn account(&self) -> Account {
        let most = self.settings.preemptions;
        let within = format!("{} at visible operations", up_to(most as u64));
        if self.running.summary.exhausted {
            let beside = self.search.beside();
            let mut tried = format!("every schedule {within} ({})", self.tried - beside);
            if beside > 0 {
                tried += &format!(", {beside} others that steer reads to new inputs");
            }
            return Account { tried: Some(tried), left: None, ..Account::default() };
        }
        if self.too_long {
            let left = format!("schedules are not explored: one has more than {MOST_STEPS} visible operations");
            return Account { tried: None, left: Some(left), ..Account::default() };
        }
        let why = if self.is_dry() {
            format!("the last {} showed nothing new", self.tried - self.last_new)
        } else {
            "their share of the time is spent, --budget gives more".into()
        };
        Account {
            tried: Some(self.search.describe()),
            left: Some(format!("the other schedules {within}: {why}")),
            ..Account::default()
        }
    }

    /// Failures that are stored.
    pub(crate) fn found(&self) -> usize {
        self.found.len()
    }
}

/// Whether a replay can prove it, and it says something about the program.
pub(super) fn may_be_proven(failure: Failure) -> bool {
    grade_of(failure).is_some() && !matches!(failure, Failure::Signal(signal) if !is_own(signal))
}
