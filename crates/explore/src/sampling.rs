//! Random walks: every execution has a seed of its own; nothing is learned but the number of steps, which PCT wants to know.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::search::{Plan, Search};
use rashomon_event::counted;

#[derive(Clone, Debug)]
pub struct Samples {
    sampling: Sampling,
    seed: u64,
    given: u64,
}

impl Samples {
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, seed, given: 0 }
    }
}

impl Search for Samples {
    fn next(&mut self) -> Option<Plan> {
        self.given += 1;
        let seed = self.seed.wrapping_add(self.given - 1);
        Some(Plan { sampling: self.sampling, seed, ..Plan::of(Vec::new()) })
    }

    fn learn(&mut self, _plan: &Plan, log: &Log, _end: End) {
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
        counted(self.given, "random schedule")
    }
}
