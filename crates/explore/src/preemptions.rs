//! All schedules with few preemptions first.
//!
//! M. Musuvathi, S. Qadeer, "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI 2007, Algorithm 1: schedules with c preemptions are
//! executed before any with c + 1; changes of the running thread where it cannot go on are free.
//!
//! Guarantee: when it is exhaustive, every schedule with at most that many preemptions was executed. Cost: of the order of (steps)^c; one list of decisions a schedule still to
//! be tried. Limit: lists beyond [`MAX_PLANNED`] are dropped, and the search is then not exhaustive.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::search::{Plan, Search};
use std::collections::VecDeque;

/// Decisions of all lists that wait to be tried.
const MAX_PLANNED: usize = 1 << 26;

#[derive(Clone, Debug)]
pub struct PreemptionBounding {
    most: usize,
    bound: usize,
    current: VecDeque<Vec<u32>>,
    next: VecDeque<Vec<u32>>,
    planned: usize,
    dropped: bool,
    executed: u64,
}

impl PreemptionBounding {
    /// Schedules with up to `most` preemptions.
    pub fn new(most: usize) -> Self {
        Self { most, bound: 0, current: [Vec::new()].into(), next: VecDeque::new(), planned: 0, dropped: false, executed: 0 }
    }

    /// The number of preemptions of the schedules that are being tried.
    pub fn bound(&self) -> usize {
        self.bound
    }
}

impl Search for PreemptionBounding {
    fn next(&mut self) -> Option<Plan> {
        if self.current.is_empty() && self.bound < self.most && !self.next.is_empty() {
            self.bound += 1;
            std::mem::swap(&mut self.current, &mut self.next);
        }
        let decisions = self.current.pop_front()?;
        self.planned -= decisions.len();
        Some(Plan { decisions, asleep: 0, sampling: Sampling::Continue, seed: 0 })
    }

    fn learn(&mut self, plan: &Plan, log: &Log, end: End) {
        self.executed += 1;
        self.dropped |= !matches!(end, End::None | End::Held);
        let decisions = log.decisions();
        let mut preemptions = 0;
        for (at, step) in log.steps.iter().enumerate() {
            if at >= plan.decisions.len() {
                let among = step.enabled & !step.waiting;
                for thread in (0..64).filter(|&thread| thread != step.thread && among >> thread & 1 != 0) {
                    let cost = preemptions + usize::from(log.is_preemption(at, thread));
                    if cost > self.most {
                        continue;
                    }
                    if self.planned > MAX_PLANNED {
                        self.dropped = true;
                        continue;
                    }
                    let list: Vec<u32> = decisions[..at].iter().copied().chain([thread]).collect();
                    self.planned += list.len();
                    if cost <= self.bound { self.current.push_back(list) } else { self.next.push_back(list) }
                }
            }
            preemptions += usize::from(log.is_preemption(at, step.thread));
        }
    }

    fn is_exhaustive(&self) -> bool {
        !self.dropped && self.current.is_empty() && (self.next.is_empty() || self.bound >= self.most)
    }

    fn parallel(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("{} schedules with up to {} preemptions", self.executed, self.bound)
    }
}
