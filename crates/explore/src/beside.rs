//! All schedules with few preemptions, and beside them those in which reads see what they have not seen yet, and those in which
//! objects are touched in orders that they have not had.
//!
//! Most bugs of small programs need one or two preemptions, and a search that has tried them all can say so
//! ([`PreemptionBounding`]). Where several threads have to line up the schedules with so few are many, and none of them may fail;
//! what steers reads ([`ReadsFrom`]) or whole orders ([`Orders`]) needs a handful then, but can never say that nothing is left.
//! So the exhaustive search has the first [`ALONE`] schedules to itself, which are all that tiny programs have; from then on
//! every other one is steered, by the one and the other in turn. What any of them executes teaches those that steer.
//!
//! When the exhaustive search has tried everything steering goes on up to as many schedules as that took: a program without a
//! bug costs at most twice what trying everything within the bound costs. Where it gives up, as with more threads than it can
//! tell apart, steering has no end of its own.
//!
//! Guarantee: that of [`PreemptionBounding`].

use crate::file::End;
use crate::log::Log;
use crate::orders::Orders;
use crate::preemptions::PreemptionBounding;
use crate::reads_from::ReadsFrom;
use crate::search::{Plan, Search};
use std::collections::VecDeque;

/// Schedules that are exhaustive search's alone.
const ALONE: u64 = 32;

/// Whose plan it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Bounding,
    Steering,
    Ordering,
}

#[derive(Clone, Debug)]
pub struct Beside {
    bounding: PreemptionBounding,
    steering: ReadsFrom,
    ordering: Orders,
    /// Of plans that are not learned yet, oldest first.
    open: VecDeque<By>,
    bounded: u64,
    steered: u64,
    /// Of those that are steered, the ones by orders of objects.
    ordered: u64,
}

impl Beside {
    /// Schedules with up to `most` preemptions, and others.
    pub fn new(most: usize, seed: u64) -> Self {
        Self {
            bounding: PreemptionBounding::remembering(most),
            steering: ReadsFrom::new(seed),
            ordering: Orders::new(seed),
            open: VecDeque::new(),
            bounded: 0,
            steered: 0,
            ordered: 0,
        }
    }

    /// A plan of the exhaustive search.
    fn bound(&mut self) -> Option<Plan> {
        let plan = self.bounding.next()?;
        self.bounded += 1;
        self.open.push_back(By::Bounding);
        Some(plan)
    }

    fn steer(&mut self) -> Option<Plan> {
        let orders = self.ordering.has_choices() && (self.steered % 2 == 1 || !self.steering.has_choices());
        let (plan, by) = if orders { (self.ordering.next()?, By::Ordering) } else { (self.steering.next()?, By::Steering) };
        self.steered += 1;
        self.ordered += u64::from(by == By::Ordering);
        self.open.push_back(by);
        Some(plan)
    }

    fn has_choices(&self) -> bool {
        self.steering.has_choices() || self.ordering.has_choices()
    }
}

impl Search for Beside {
    fn next(&mut self) -> Option<Plan> {
        let takes_turns = self.bounded > ALONE;
        if takes_turns && self.steered < self.bounded - ALONE && self.has_choices() {
            return self.steer();
        }
        if let Some(plan) = self.bound() {
            return Some(plan);
        }
        // What is not learned yet may lead to more.
        if self.open.contains(&By::Bounding) || !self.has_choices() {
            return None;
        }
        let goes_on = takes_turns && self.steered < self.bounded;
        if goes_on || !self.bounding.is_exhaustive() { self.steer() } else { None }
    }

    fn learn(&mut self, plan: &Plan, log: &Log, end: End) {
        match self.open.pop_front() {
            Some(By::Steering) => {
                self.steering.learn(plan, log, end);
                self.ordering.watch(log);
            }
            Some(By::Ordering) => {
                self.ordering.learn(plan, log, end);
                self.steering.watch(log);
            }
            _ => {
                self.bounding.learn(plan, log, end);
                self.steering.watch(log);
                self.ordering.watch(log);
            }
        }
    }

    /// The first plan of the exhaustive search is the one without preemptions in any case.
    fn recorded(&mut self, log: &Log, _failed: bool) {
        self.ordering.watch(log);
    }

    fn is_exhaustive(&self) -> bool {
        self.bounding.is_exhaustive()
    }

    fn parallel(&self) -> bool {
        true
    }

    fn beside(&self) -> u64 {
        self.steered
    }

    fn describe(&self) -> String {
        let mut parts = vec![self.bounding.describe()];
        parts.extend((self.steered > self.ordered).then(|| self.steering.describe()));
        parts.extend((self.ordered > 0).then(|| self.ordering.describe()));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Sampling;
    use crate::log::{Pending, Step};
    use rashomon_abi::exploration::Operation;
    use rashomon_abi::record::AccessClass;

    /// Threads that could all be first, and write what the others read: with few preemptions that are many schedules.
    fn log(threads: u32) -> Log {
        let everybody = (1u64 << threads) - 1;
        let step = |thread: u32| {
            let class = if thread.is_multiple_of(2) { AccessClass::Write } else { AccessClass::Read };
            let operation = Operation { object: 64, bytes: 4, class: class as u64, ..Operation::default() };
            let does = Pending { operation, site: 1 + u64::from(thread), ..Pending::default() };
            Step { thread, enabled: everybody & !((1 << thread) - 1), asleep: 0, waiting: 0, does, after: None }
        };
        let threads_born = vec![None; threads as usize];
        Log { threads: threads_born, steps: (0..threads).map(step).collect(), ..Log::default() }
    }

    /// How many of either kind are planned, in the order of their plans, if all executions were alike.
    fn planned(search: &mut Beside, log: &Log, end: End, most: usize) -> Vec<bool> {
        let mut steered = Vec::new();
        while steered.len() < most
            && let Some(plan) = search.next()
        {
            steered.push(plan.sampling != Sampling::Continue);
            search.learn(&plan, log, end);
        }
        steered
    }

    #[test]
    fn few_schedules_are_exhaustive_search_s_alone() {
        let mut search = Beside::new(2, 0);
        let steered = planned(&mut search, &log(3), End::None, 1_000);
        assert!(steered.len() > 1 && !steered.contains(&true), "{steered:?}");
        assert!(search.is_exhaustive() && search.beside() == 0);
    }

    #[test]
    fn what_is_not_learned_is_not_exhausted() {
        let mut search = Beside::new(2, 0);
        let plan = search.next().expect("there is a first schedule");
        assert!(search.next().is_none() && !search.is_exhaustive());
        search.learn(&plan, &Log::default(), End::None);
        assert!(search.is_exhaustive());
    }

    #[test]
    fn of_many_schedules_every_other_one_is_steered() {
        let mut search = Beside::new(2, 0);
        let steered = planned(&mut search, &log(20), End::None, 200);
        let alone = steered.iter().take_while(|steered| !**steered).count();
        assert_eq!(alone as u64, ALONE + 1);
        assert!(steered[alone..].chunks_exact(2).all(|two| two[0] != two[1]), "{steered:?}");
        assert_eq!(search.beside() as usize, steered.iter().filter(|steered| **steered).count());
    }

    #[test]
    fn what_exhaustive_search_gives_up_is_steered() {
        let mut search = Beside::new(2, 0);
        let steered = planned(&mut search, &log(3), End::Steps, 100);
        assert_eq!(steered.len(), 100, "steering has no end");
        assert!(!search.is_exhaustive());
    }

    #[test]
    fn where_nothing_is_read_nothing_is_steered() {
        let mut search = Beside::new(2, 0);
        let silent = Log::default();
        assert_eq!(planned(&mut search, &silent, End::Steps, 100), [false]);
    }
}
