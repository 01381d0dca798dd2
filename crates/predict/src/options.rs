//! What a prediction may cost, and who decides.

use crate::{exact, maximal};
use rashomon_event::Deadline;

#[derive(Clone, Debug)]
pub struct Options {
    /// Names of the deciders that are asked; empty: all.
    pub deciders: Vec<&'static str>,
    /// Event pairs looked at per pair of sites.
    pub representatives: usize,
    /// Sync-preserving ideals computed for pairs of sites whose representatives have no sync-preserving race.
    pub ideals: usize,
    /// What the exact decision of one pair or tuple of events may cost.
    pub exact: exact::Limits,
    /// And of the maximal causal model, which is asked where the exact decision gives up.
    pub maximal: maximal::Limits,
    /// Refuted candidates of which it is asked whether values of plain accesses could show them, where the trace tells none.
    pub ask_for_values: usize,
    /// Nothing is told but what rests on values of plain accesses.
    pub by_value_only: bool,
    /// Whether to look for witnesses of the synchronisation level.
    pub optimistic: bool,
    /// Whether to look, last, for those in which even atomic reads need not come after their writers.
    pub despite_atomics: bool,
    /// Failures after which one search for an order gives up.
    pub search_budget: usize,
    /// Largest optimistic order (in events) that is made to follow the trace and then regrouped.
    pub regroup_limit: usize,
    /// What the search of the CSP model may cost.
    pub refinement: Refinement,
    /// Threads of a deadlock, at most 5.
    pub deadlock_threads: usize,
    pub patterns: usize,
    /// Patterns tried per set of acquisition sites.
    pub patterns_per_sites: usize,
    /// How many sets of locks are looked at of patterns with the same sites.
    pub lock_sets_per_sites: usize,
    /// Site pairs of each evidence that are looked at.
    pub site_pairs: usize,
    /// From then on no further witness is looked for: what happens-before leaves unordered is told without one, the rest is
    /// counted.
    pub deadline: Deadline,
}

/// Limits of the search of the CSP model ([`rashomon_refinement::search`]).
#[derive(Clone, Copy, Debug)]
pub struct Refinement {
    /// States remembered for one candidate.
    pub states: usize,
    /// Steps tried for one candidate.
    pub steps: usize,
    /// Steps tried for all of them together.
    pub all_steps: usize,
    /// Events that are ordered anew, the ones before them as observed, where the whole trace is too much.
    pub window: usize,
}

impl Default for Refinement {
    fn default() -> Self {
        Self { states: 50_000, steps: 4_000_000, all_steps: 100_000_000, window: 10_000 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deciders: Vec::new(),
            representatives: 4,
            ideals: 200_000,
            exact: exact::Limits::default(),
            maximal: maximal::Limits::default(),
            ask_for_values: 0,
            by_value_only: false,
            optimistic: true,
            despite_atomics: true,
            search_budget: 2_000,
            regroup_limit: 2_000_000,
            refinement: Refinement::default(),
            deadlock_threads: 5,
            patterns: 10_000,
            patterns_per_sites: 8,
            lock_sets_per_sites: 16,
            site_pairs: 10_000,
            deadline: Deadline::NEVER,
        }
    }
}
