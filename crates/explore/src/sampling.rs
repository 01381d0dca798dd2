//! Random walks: every execution has a seed of its own; nothing is learned but the number of steps, which PCT wants to know.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::counted;

#[derive(Clone, Debug)]
pub struct Samples {
    sampling: Sampling,
    seed: u64,
    given: u64,
    learned: u64,
}

impl Samples {
    /// Seeds that follow each other lead to executions that have nothing in common.
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, seed: SplitMix::mixed(seed), given: 0, learned: 0 }
    }
}

impl Search for Samples {
    fn next(&mut self) -> Option<Plan> {
        self.given += 1;
        let seed = self.seed.wrapping_add(self.given - 1);
        Some(Plan { sampling: self.sampling, seed, ..Plan::of(Vec::new()) })
    }

    fn learn(&mut self, _plan: &Plan, log: &Log, _end: End) {
        self.learned += 1;
        if let Sampling::Pct { length, .. } = &mut self.sampling {
            *length = (*length).max(log.steps.len() as u64);
        }
    }

    fn is_exhaustive(&self) -> bool {
        false
    }

    fn parallel(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        counted(self.learned, "random schedule")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbouring_seeds_share_no_execution() {
        let seeds = |seed| {
            let mut search = Samples::new(Sampling::Random, seed);
            (0..1_000).filter_map(|_| search.next()).map(|plan| plan.seed).collect::<HashSet<u64>>()
        };
        assert!((0..20).all(|seed| seeds(seed).is_disjoint(&seeds(seed + 1))));
    }
}
