//! What a search is: it says which list of decisions to try next, and learns from the log of each execution.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::order_table::Order;
use rashomon_abi::exploration::Wanted;

/// One execution to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub decisions: Vec<u32>,
    /// Threads that are asleep at the last decision (bits by number).
    pub asleep: u64,
    pub sampling: Sampling,
    pub seed: u64,
    /// Of [`Sampling::Wanted`]; at most [`MOST_WANTED`](rashomon_abi::exploration::MOST_WANTED) count.
    pub wanted: Vec<Wanted>,
    /// Of [`Sampling::Ordered`].
    pub orders: Vec<Order>,
}

impl Plan {
    /// Those decisions, and then whoever ran as long as it can.
    pub fn of(decisions: Vec<u32>) -> Self {
        Self { decisions, asleep: 0, sampling: Sampling::Continue, seed: 0, wanted: Vec::new(), orders: Vec::new() }
    }
}

pub trait Search {
    /// `None`: there is nothing left to try, or nothing until what was planned has been learned.
    fn next(&mut self) -> Option<Plan>;
    /// The log of a plan, in the order in which plans were given, and whether exploration cut it.
    fn learn(&mut self, plan: &Plan, log: &Log, end: End);
    /// An execution that somebody else made before the first plan, and whether it failed.
    fn recorded(&mut self, _log: &Log, _failed: bool) {}
    /// Whether, with nothing left to try, all schedules within the bounds have been covered.
    fn is_exhaustive(&self) -> bool;
    /// Plans that may be executed at the same time.
    fn parallel(&self) -> bool;
    /// Of the plans, those that are no part of what it covers.
    fn beside(&self) -> u64 {
        0
    }
    /// What has been covered, in words.
    fn describe(&self) -> String;
}
