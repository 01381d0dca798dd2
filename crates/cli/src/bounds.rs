//! What `--budget` asks for.

use crate::arguments::ConfirmOptions;
use rashomon_event::Deadline;
use rashomon_pipeline::check::budget::Budget;
use std::time::Duration;

/// What comes behind the first recording, in seconds, unless `--budget` is given.
pub const CONFIRM_BUDGET: Duration = Duration::from_secs(60);
pub const PROVOKE_BUDGET: Duration = Duration::from_secs(60);
pub const EXPLORE_BUDGET: Duration = Duration::from_secs(300);
pub const WITNESS_BUDGET: Duration = Duration::from_secs(600);

/// Even a small budget lets most programs end.
const LEAST_RECORDING: Duration = Duration::from_millis(500);

/// What the first recording may take of a budget.
pub fn of_recording(total: Duration) -> Duration {
    (total / 2).max(LEAST_RECORDING)
}

/// When a command has to end. A budget that is given bounds all of it, and the first recording may take half; otherwise that
/// takes as long as it takes, and the usual time begins behind it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    total: Duration,
    until: Deadline,
    /// When the first recording has to be over.
    pub recording: Deadline,
}

impl Bounds {
    /// Of commands that are not bounded.
    pub const NONE: Self = Self { total: Duration::ZERO, until: Deadline::NEVER, recording: Deadline::NEVER };

    /// A budget that is given begins now; zero is none.
    pub fn of(given: Option<Duration>, usual: Duration) -> Self {
        let Some(total) = given else { return Self { total: usual, ..Self::NONE } };
        if total.is_zero() {
            return Self::NONE;
        }
        Self { total, until: Deadline::within(total), recording: Deadline::within(of_recording(total)) }
    }

    /// Of what comes behind the first recording, which has ended now.
    pub fn rest(self) -> Deadline {
        Deadline::within(self.total).or(self.until)
    }
}

impl ConfirmOptions {
    pub fn budget(&self, bounds: Bounds) -> Budget {
        Budget { total: bounds.total, predict_within: self.predict_within, until: bounds.until }
    }
}
