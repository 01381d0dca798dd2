//! The cascade: candidates, cheapest evidence first, each with the best witness that can be found.
//!
//! Order: site pairs that happens-before leaves unordered, hybrid site pairs, other sync-preserving ones, lock-order patterns,
//! and last the hybrid pairs that only an order which ignores atomics can show. Pairs of sites take turns by the bytes that they
//! touch, so that a variable with a thousand pairs does not keep others waiting. Per pair of events: the sync-preserving ideal
//! gives a causal witness; failing that, the optimistic reordering graph; failing that, the exact decision, which may also refute
//! the pair; then an order of the synchronisation level in which atomic reads still come after their writers; failing that, one
//! in which they need not. That one is not tried for a pair that happens-before leaves unordered and of which one access can only
//! be reached after the other by what it read from an atomic (a relaxed flag): no state has both next, so the candidate has no
//! witness, and whoever replays the recorded schedule can show it unordered.
//!
//! Guarantee: every witness passes the checker at its level or above. Deterministic, unless a deadline cuts it short. A
//! free-running trace gives candidates without witnesses, for its order of accesses is not known.

use crate::candidates::Candidates;
use crate::closure::{Closures, Cut};
use crate::deadlocks;
use crate::dependences::Dependences;
use crate::exact::{self, Decision};
use crate::index::Index;
use crate::optimistic::{NotFound, Optimistic};
use crate::regroup::{Order, regroup};
use crate::reversal::sync_reversal;
use crate::walk;
use rashomon_event::{
    Address, Candidate, CandidateKind, Deadline, EventIndex, Evidence, Mode, SiteId, Trace, Witness, WitnessLevel,
};
use rashomon_order::{LockGraph, Pattern, SharedMemory, SitePair};
use std::cell::OnceCell;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Options {
    /// Event pairs looked at per pair of sites.
    pub representatives: usize,
    /// Sync-preserving ideals computed for pairs of sites whose representatives have no sync-preserving race.
    pub ideals: usize,
    /// What the exact decision of one pair or tuple of events may cost.
    pub exact: exact::Limits,
    /// Whether to look for witnesses of the synchronisation level.
    pub optimistic: bool,
    /// Whether to look, last, for those in which even atomic reads need not come after their writers.
    pub despite_atomics: bool,
    /// Failures after which one search for an order gives up.
    pub search_budget: usize,
    /// Largest optimistic order (in events) that is made to follow the trace and then regrouped.
    pub regroup_limit: usize,
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

impl Default for Options {
    fn default() -> Self {
        Self {
            representatives: 4,
            ideals: 200_000,
            exact: exact::Limits::default(),
            optimistic: true,
            despite_atomics: true,
            search_budget: 2_000,
            regroup_limit: 2_000_000,
            deadlock_threads: 5,
            patterns: 10_000,
            patterns_per_sites: 8,
            lock_sets_per_sites: 16,
            site_pairs: 10_000,
            deadline: Deadline::NEVER,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub candidate: Candidate,
    pub witness: Option<Witness>,
    /// No correct reordering of the trace shows any of the event pairs looked at.
    pub refuted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub events: usize,
    pub shared_granules: usize,
    /// Site pairs.
    pub happens_before_pairs: usize,
    pub hybrid_pairs: usize,
    pub lock_dependencies: usize,
    pub deadlock_patterns: usize,
    /// Predictions, by witness.
    pub causal: usize,
    /// Of the causal ones, by the least class of reorderings that has them.
    pub sync_preserving: usize,
    pub sync_reversal: usize,
    pub reordered: usize,
    pub synchronisation: usize,
    pub without_witness: usize,
    /// Predictions of which no causal witness can exist, whatever else they have.
    pub refuted: usize,
    /// Site pairs or patterns beyond the limits of [`Options`].
    pub not_looked_at: usize,
    /// Of those, what there was no time for.
    pub out_of_time: usize,
    /// There was no time for all of the trace, so that not even the suspicions are all known.
    pub cut_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predictions {
    pub findings: Vec<Prediction>,
    pub statistics: Statistics,
}

/// All predictions of a trace. Witnesses are as long as the prefixes they run; for many candidates of a long trace see
/// [`predict_each`].
pub fn predict(trace: &Trace, options: &Options) -> Predictions {
    let mut findings = Vec::new();
    let statistics = predict_each(trace, options, |prediction| findings.push(prediction));
    Predictions { findings, statistics }
}

/// Hands each prediction over as it is made, in the same order as [`predict`].
pub fn predict_each(trace: &Trace, options: &Options, found: impl FnMut(Prediction)) -> Statistics {
    let mut found = found;
    let candidates = Candidates::new(trace, options);
    // What the deciders need is as long as the trace, and most traces of sound programs have no candidate.
    if candidates.is_empty() {
        return candidates.statistics;
    }
    let memory = &candidates.memory;
    let index = Index::until(trace, memory, options.deadline);
    if !index.complete {
        return candidates.without_witnesses(&mut found);
    }
    let index = &index;
    let trace_order = OnceCell::new();
    let statistics = candidates.statistics;
    let closures = Closures::new(index);
    let mut predictor =
        Predictor { index, closures, memory, trace_order, options, statistics, ordered_by_atomics: Vec::new(), found };
    predictor.races(candidates.unordered, candidates.suspects);
    predictor.deadlocks(&candidates.graph, &candidates.patterns);
    predictor.races_despite_atomics();
    predictor.statistics
}

/// One of each variable first, in the order given, then a second one of each.
fn fairly<T>(all: Vec<T>, variable: impl Fn(&T) -> u64) -> Vec<T> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut rank = |one: T| {
        let count = counts.entry(variable(&one)).or_default();
        *count += 1;
        (*count, one)
    };
    let mut ranked: Vec<(u32, T)> = all.into_iter().map(&mut rank).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, one)| one).collect()
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all
}

/// The first byte that both accesses touch.
fn first_byte(trace: &Trace, pair: &SitePair) -> u64 {
    let byte = |event| trace.event(event).access().map_or(0, |access| access.address.0);
    let (first, second) = pair.pairs[0];
    byte(first).max(byte(second))
}

struct Predictor<'a, 't, F> {
    index: &'a Index<'t>,
    closures: Closures<'a, 't>,
    memory: &'a SharedMemory,
    /// Constraints of the recorded order, once a causal witness needs them.
    trace_order: OnceCell<Dependences>,
    options: &'a Options,
    statistics: Statistics,
    ordered_by_atomics: Vec<(SitePair, bool)>,
    found: F,
}

/// How far the causal deciders came with a candidate.
enum Causal {
    Witness(Vec<EventIndex>, Class),
    Refuted,
    Undecided,
}

/// Classes of correct reorderings, each within the next.
#[derive(Clone, Copy)]
enum Class {
    SyncPreserving,
    SyncReversal,
    Any,
}

impl<F: FnMut(Prediction)> Predictor<'_, '_, F> {
    fn give(
        &mut self,
        kind: CandidateKind,
        evidence: Evidence,
        occurrences: u64,
        witness: Option<(Vec<EventIndex>, WitnessLevel)>,
        refuted: bool,
    ) {
        let count = match &witness {
            Some((_, WitnessLevel::Causal)) => &mut self.statistics.causal,
            Some((_, WitnessLevel::Synchronisation)) => &mut self.statistics.synchronisation,
            None => &mut self.statistics.without_witness,
        };
        *count += 1;
        self.statistics.refuted += usize::from(refuted);
        let witness = witness.map(|(order, level)| Witness { candidate: kind.clone(), order, level });
        (self.found)(Prediction { candidate: Candidate { kind, evidence, occurrences }, witness, refuted });
    }

    fn count(&mut self, class: Class) {
        *match class {
            Class::SyncPreserving => &mut self.statistics.sync_preserving,
            Class::SyncReversal => &mut self.statistics.sync_reversal,
            Class::Any => &mut self.statistics.reordered,
        } += 1;
    }

    /// The deciders behind the sync-preserving one.
    fn reverse(&self, goals: &[EventIndex]) -> Causal {
        if let Some(order) = sync_reversal(&self.closures, self.memory, goals) {
            return Causal::Witness(order, Class::SyncReversal);
        }
        match exact::decide_until(&self.closures, self.memory, goals, &self.options.exact, self.options.deadline) {
            Decision::Witness(order) => Causal::Witness(order, Class::Any),
            Decision::Refuted => Causal::Refuted,
            Decision::Undecided => Causal::Undecided,
        }
    }

    fn races(&mut self, unordered: Vec<SitePair>, suspects: Vec<SitePair>) {
        let mut candidates = Vec::new();
        for (pairs, evidence) in [(unordered, Evidence::HappensBefore), (suspects, Evidence::Hybrid)] {
            self.statistics.not_looked_at += pairs.len().saturating_sub(self.options.site_pairs);
            candidates.extend(
                fairly(pairs, |pair| first_byte(self.index.trace, pair))
                    .into_iter()
                    .take(self.options.site_pairs)
                    .map(|pair| (pair, evidence)),
            );
        }
        let candidates = fairly(candidates, |(pair, _)| first_byte(self.index.trace, pair));
        if self.index.trace.mode != Mode::Serial {
            for (pair, evidence) in candidates {
                self.give_race(&pair, pair.pairs[0], evidence, None, false);
            }
            return;
        }
        let mut preserving = self.sync_preserving(&candidates);
        for (pair, evidence) in candidates {
            let known = preserving.remove(&pair.sites);
            self.site_pair_in_time(pair, evidence, known);
        }
        // Sites of which the hybrid analysis has forgotten an access.
        for (sites, events) in preserving {
            self.site_pair_in_time(SitePair { sites, pairs: vec![events], occurrences: 1 }, Evidence::Hybrid, Some(events));
        }
    }

    fn is_late(&self) -> bool {
        self.options.deadline.is_over()
    }

    fn out_of_time(&mut self, candidates: usize) {
        self.statistics.not_looked_at += candidates;
        self.statistics.out_of_time += candidates;
    }

    fn site_pair_in_time(&mut self, pair: SitePair, evidence: Evidence, preserving: Option<(EventIndex, EventIndex)>) {
        if !self.is_late() {
            return self.site_pair(pair, evidence, preserving);
        }
        self.out_of_time(1);
        if evidence == Evidence::HappensBefore {
            self.give_race(&pair, pair.pairs[0], evidence, None, false);
        }
    }

    /// A sync-preserving race for each pair of sites that has one, representatives first.
    fn sync_preserving(&mut self, candidates: &[(SitePair, Evidence)]) -> BTreeMap<walk::Sites, (EventIndex, EventIndex)> {
        let mut found = BTreeMap::new();
        for (pair, _) in candidates {
            if self.is_late() {
                return found;
            }
            let race = pair.pairs.iter().find(|pair| self.closures.sync_preserving(&[pair.0, pair.1]).is_ok());
            found.extend(race.map(|&race| (pair.sites, race)));
        }
        let known = found.keys().copied().collect();
        let walked = walk::races(&self.closures, self.memory, &known, self.options.ideals, self.options.deadline);
        self.statistics.not_looked_at += usize::from(!walked.complete);
        found.extend(walked.found);
        found
    }

    /// The first pair of events with a causal witness; else the first with any; else the first.
    fn site_pair(&mut self, pair: SitePair, evidence: Evidence, preserving: Option<(EventIndex, EventIndex)>) {
        let goals = |pair: (EventIndex, EventIndex)| [pair.0, pair.1];
        if let Some(events) = preserving
            && let Some(order) = self.causal(&goals(events))
        {
            self.count(Class::SyncPreserving);
            return self.give_race(&pair, events, evidence, Some((order, WitnessLevel::Causal)), false);
        }
        let mut refuted = pair.occurrences == pair.pairs.len() as u64;
        for &events in &pair.pairs {
            match self.reverse(&goals(events)) {
                Causal::Witness(order, class) => {
                    self.count(class);
                    return self.give_race(&pair, events, evidence, Some((order, WitnessLevel::Causal)), false);
                }
                Causal::Refuted => {}
                Causal::Undecided => refuted = false,
            }
        }
        let mut excluded = Vec::new();
        for &events in &pair.pairs {
            match self.optimistic(&goals(events), &self.index.atomic) {
                Ok(order) => {
                    return self.give_race(&pair, events, evidence, Some((order, WitnessLevel::Synchronisation)), refuted);
                }
                Err(NotFound::Ordered) => {}
                Err(NotFound::Excluded) => excluded.push(events),
            }
        }
        if evidence != Evidence::HappensBefore {
            return self.ordered_by_atomics.push((pair, refuted));
        }
        for events in excluded {
            if let Ok(order) = self.optimistic(&goals(events), &self.index.instances) {
                return self.give_race(&pair, events, evidence, Some((order, WitnessLevel::Synchronisation)), refuted);
            }
        }
        self.give_race(&pair, pair.pairs[0], evidence, None, refuted);
    }

    /// Hybrid pairs that only an order which ignores atomics can show: mostly correct synchronisation, so they come last.
    fn races_despite_atomics(&mut self) {
        for (pair, refuted) in std::mem::take(&mut self.ordered_by_atomics) {
            let tried = self.options.despite_atomics && !self.is_late();
            let orders = pair.pairs.iter().filter(|_| tried);
            let mut orders = orders.filter_map(|&(first, second)| {
                let order = self.optimistic(&[first, second], &self.index.instances).ok()?;
                Some(((first, second), Some((order, WitnessLevel::Synchronisation))))
            });
            let (events, witness) = orders.next().unwrap_or((pair.pairs[0], None));
            self.give_race(&pair, events, Evidence::Hybrid, witness, refuted);
        }
    }

    fn give_race(
        &mut self,
        pair: &SitePair,
        (first, second): (EventIndex, EventIndex),
        evidence: Evidence,
        witness: Option<(Vec<EventIndex>, WitnessLevel)>,
        refuted: bool,
    ) {
        self.give(CandidateKind::Race { first, second }, evidence, pair.occurrences, witness, refuted);
    }

    fn causal(&self, goals: &[EventIndex]) -> Option<Vec<EventIndex>> {
        let cut = self.closures.sync_preserving(goals).ok()?;
        self.regroup(&cut)
    }

    /// The recorded order of what is below the cut, with fewer context switches.
    fn regroup(&self, cut: &Cut) -> Option<Vec<EventIndex>> {
        let trace_order = self.trace_order.get_or_init(|| {
            let whole = self.index.threads.iter().map(|events| events.len() as u32).collect();
            Order::of(self.index, self.memory, &whole, self.index.trace.indices())
        });
        regroup(self.index, cut, &[&self.index.instances, trace_order])
    }

    fn optimistic(&self, goals: &[EventIndex], needs: &Dependences) -> Result<Vec<EventIndex>, NotFound> {
        if !self.options.optimistic {
            return Err(NotFound::Excluded);
        }
        let (index, memory) = (self.index, self.memory);
        let (budget, regroup_limit) = (self.options.search_budget, self.options.regroup_limit);
        Optimistic { index, memory, needs, goals, budget, regroup_limit }.find()
    }

    fn deadlocks(&mut self, graph: &LockGraph, patterns: &[Pattern]) {
        // Patterns with the same acquisition sites and the same locks are one finding. Of the same code with other locks, as
        // where a function of the program takes them all, there are a few.
        type ByLocks<'a> = BTreeMap<Vec<Option<Address>>, Vec<&'a Pattern>>;
        let mut by_sites: BTreeMap<Vec<SiteId>, ByLocks<'_>> = BTreeMap::new();
        for pattern in patterns {
            let sorted_sites = sorted(pattern.iter().map(|&number| graph.dependencies[number].site));
            let locks = sorted(pattern.iter().map(|&number| deadlocks::lock_of(graph, number)));
            by_sites.entry(sorted_sites).or_default().entry(locks).or_default().push(pattern);
        }
        for by_locks in by_sites.into_values() {
            for (number, patterns) in by_locks.into_values().enumerate() {
                if self.is_late() {
                    self.out_of_time(patterns.len());
                    continue;
                }
                if number >= self.options.lock_sets_per_sites {
                    self.statistics.not_looked_at += patterns.len();
                    continue;
                }
                self.statistics.not_looked_at += patterns.len().saturating_sub(self.options.patterns_per_sites);
                let occurrences = patterns.len() as u64;
                let tried = &patterns[..patterns.len().min(self.options.patterns_per_sites)];
                self.patterns(graph, tried, occurrences);
            }
        }
    }

    fn patterns(&mut self, graph: &LockGraph, patterns: &[&Pattern], occurrences: u64) {
        let evidence = |tuple: &[EventIndex]| {
            let observed = tuple.iter().all(|event| graph.unanswered.binary_search(event).is_ok());
            if observed { Evidence::Observed } else { Evidence::LockOrder }
        };
        let serial = self.index.trace.mode == Mode::Serial;
        if serial {
            for pattern in patterns {
                if let Some((tuple, cut)) = deadlocks::sync_preserving(&self.closures, graph, pattern)
                    && let Some(order) = self.regroup(&cut)
                {
                    let kind = deadlocks::candidate(graph, pattern, &tuple);
                    self.count(Class::SyncPreserving);
                    return self.give(kind, evidence(&tuple), occurrences, Some((order, WitnessLevel::Causal)), false);
                }
            }
        }
        let tuples: Vec<(&Pattern, Vec<EventIndex>)> = patterns
            .iter()
            .flat_map(|&pattern| {
                deadlocks::concurrent(graph, pattern, self.options.representatives).into_iter().map(move |tuple| (pattern, tuple))
            })
            .collect();
        if serial {
            for (pattern, tuple) in &tuples {
                if let Causal::Witness(order, class) = self.reverse(tuple) {
                    let kind = deadlocks::candidate(graph, pattern, tuple);
                    self.count(class);
                    return self.give(kind, evidence(tuple), occurrences, Some((order, WitnessLevel::Causal)), false);
                }
            }
        }
        let mut first = None;
        for (pattern, tuple) in &tuples {
            let kind = deadlocks::candidate(graph, pattern, tuple);
            if serial
                && let Some(order) =
                    self.optimistic(tuple, &self.index.atomic).or_else(|_| self.optimistic(tuple, &self.index.instances)).ok()
            {
                return self.give(kind, evidence(tuple), occurrences, Some((order, WitnessLevel::Synchronisation)), false);
            }
            first.get_or_insert((kind, evidence(tuple)));
        }
        if let Some((kind, evidence)) = first {
            self.give(kind, evidence, occurrences, None, false);
        }
    }
}
