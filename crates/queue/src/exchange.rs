//! What coordinator and worker need of a queue.

use crate::error::QueueError;
use std::collections::BTreeSet;
use std::time::Duration;

/// A queue. Each call may fail with an error that passes, and then may or may not have had its effect; all of them can be
/// repeated.
pub trait Exchange: Sync {
    /// Says that the coordinator of a job is there. To be repeated, or the queue forgets it.
    fn open_job(&self, job: &str) -> Result<(), QueueError>;
    fn is_open(&self, job: &str) -> Result<bool, QueueError>;
    /// Removes the job, its units and their outcomes.
    fn close_job(&self, job: &str) -> Result<(), QueueError>;

    /// Says that a job has more to hand out than is there yet, or no longer. To be repeated, too.
    fn announce(&self, job: &str, more: bool) -> Result<(), QueueError>;
    /// Whether some job has. Where several have, one may be overlooked.
    fn is_announced(&self) -> Result<bool, QueueError>;

    /// Keeps bytes under a name.
    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), QueueError>;
    fn fetch(&self, name: &str, most: u64) -> Result<Vec<u8>, QueueError>;
    /// That there is nothing is no error.
    fn discard(&self, name: &str) -> Result<(), QueueError>;

    /// Hands out a unit. The same attempt again is no other unit.
    fn publish(&self, job: &str, number: u32, attempt: u32, message: &[u8]) -> Result<(), QueueError>;
    /// The units that wait for a worker or are with one.
    fn queued(&self, job: &str) -> Result<BTreeSet<u32>, QueueError>;
    /// A unit, if there is one within this time.
    fn take(&self, within: Duration) -> Result<Option<Box<dyn Taken>>, QueueError>;

    /// The first outcome of a unit stays. `false`: there is one already.
    fn conclude(&self, job: &str, number: u32, outcome: &[u8]) -> Result<bool, QueueError>;
    /// Units of which there may be an outcome. Costs the queue time for each of them.
    fn concluded(&self, job: &str) -> Result<BTreeSet<u32>, QueueError>;
    /// Those that were concluded behind a position, 0 being the beginning, and the position behind them. Costs time for each of
    /// these alone. Positions begin anew where the queue has lost its outcomes.
    fn concluded_after(&self, job: &str, position: u64) -> Result<(BTreeSet<u32>, u64), QueueError>;
    fn outcome(&self, job: &str, number: u32) -> Result<Option<Vec<u8>>, QueueError>;
    /// Takes an outcome back, so that there may be another one.
    fn reopen(&self, job: &str, number: u32) -> Result<(), QueueError>;
}

/// A unit that a worker has, as long as it renews it. Without that somebody else gets it.
pub trait Taken: Send + Sync {
    fn message(&self) -> &[u8];
    /// How often it has been taken, this time included.
    fn deliveries(&self) -> u64;
    fn renew(&self) -> Result<(), QueueError>;
    /// It is not handed out again.
    fn done(&self) -> Result<(), QueueError>;
    /// It is handed out again after this time.
    fn give_back(&self, after: Duration) -> Result<(), QueueError>;
}

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// Repeats what fails with an error that passes, for so long.
pub(crate) fn patiently<T>(
    patience: Duration,
    tell: &mut dyn FnMut(&QueueError),
    mut call: impl FnMut() -> Result<T, QueueError>,
) -> Result<T, QueueError> {
    let start = std::time::Instant::now();
    loop {
        match call() {
            Err(error) if error.is_passing() && start.elapsed() < patience => {
                tell(&error);
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}
