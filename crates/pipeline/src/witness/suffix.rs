//! How the model is searched from the prefix on.
//!
//! Shacham et al. 2007, Fig. 3, remember every state; here executions are repeated, and what is remembered are states of partial
//! orders (`rashomon_explore::preemptions`). Without it, [`Suffix::Preemptions`] executes equivalent schedules again and again.
//! [`Suffix::Dpor`] executes one schedule of each equivalence class, with sleep sets (`rashomon_explore::dpor`).
//!
//! Both see the side by side of two accesses wherever there is one: if an execution with it exists, p next to q, then p and q are
//! dependent and may be co-enabled. DPOR reverses them from where p is next; p is asleep from there on, so its thread stands
//! before it until q, or another step in conflict with it, is next. States that are equal have the same continuations.
//! `explore/tests/oracle.rs` compares with all schedules of small programs.
//!
//! Both count on it that steps and their order determine the state. That is so where no plain accesses race but those that are
//! visible: where the recording has other races ([`Races`]) states are not remembered, and DPOR does not say that it tried
//! everything.

use crate::explore::racing_sites;
use rashomon_event::{CodePlace, Deadline, Trace};
use rashomon_explore::dpor::Dpor;
use rashomon_explore::preemptions::PreemptionBounding;
use rashomon_explore::{Search, VisibleAccesses};
use std::cell::OnceCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// Schedules with few preemptions first, up to so many.
    Preemptions {
        most: usize,
        /// What follows from a state is tried once, where that is sound.
        remember: bool,
    },
    /// All schedules up to the order of independent steps.
    Dpor,
}

impl Suffix {
    /// A new search, and whether it may say that nothing is left. `is_whole`: whether visible steps and their order determine the
    /// state.
    pub fn search(self, is_whole: impl FnOnce() -> bool) -> (Box<dyn Search>, bool) {
        match self {
            Self::Preemptions { most, remember } => {
                let new = if remember && is_whole() { PreemptionBounding::remembering } else { PreemptionBounding::new };
                (Box::new(new(most)), true)
            }
            Self::Dpor => (Box::new(Dpor::new()), is_whole()),
        }
    }
}

/// The plain accesses of a recording that race as far as it tells; found when they are asked for.
pub struct Races<'a> {
    trace: &'a Trace,
    until: Deadline,
    sites: OnceCell<Option<Vec<CodePlace>>>,
}

impl<'a> Races<'a> {
    pub fn of(trace: &'a Trace, until: Deadline) -> Self {
        Self { trace, until, sites: OnceCell::new() }
    }

    /// Whether only accesses race that are visible. What was not looked at in time may race.
    pub fn are_only(&self, visible: &VisibleAccesses) -> bool {
        let sites = self.sites.get_or_init(|| {
            let sites = racing_sites(self.trace, self.until);
            (!self.until.is_over()).then_some(sites)
        });
        match (visible, sites) {
            (VisibleAccesses::All, _) => true,
            (VisibleAccesses::Sites(visible), Some(sites)) => sites.iter().all(|site| visible.contains(site)),
            (VisibleAccesses::None, Some(sites)) => sites.is_empty(),
            (_, None) => false,
        }
    }
}
