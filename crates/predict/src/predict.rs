//! The cascade: candidates, cheapest evidence first, each with the best witness that can be found.
//!
//! Order: site pairs that happens-before leaves unordered, hybrid site pairs, other sync-preserving ones, lock-order patterns,
//! and last the hybrid pairs that only an order which ignores atomics can show. Pairs of sites take turns by the bytes that they
//! touch, so that a variable with a thousand pairs does not keep others waiting. Per pair of events: the sync-preserving ideal
//! gives a causal witness; failing that, the optimistic reordering graph; failing that, the exact decision, which may also refute
//! the pair, unless atomic reads may see other writes of the same values; then an order of the synchronisation level in which
//! atomic reads still come after their writers; failing that, one in which they need not. That one is not tried for a pair that
//! happens-before leaves unordered and of which one access can only be reached after the other by what it read from an atomic (a
//! relaxed flag): no state has both next, so the candidate has no witness, and whoever replays the recorded schedule can show it
//! unordered.
//!
//! Guarantee: every witness passes the checker at its level or above. Deterministic, unless a deadline cuts it short. A
//! free-running trace gives candidates without witnesses, for its order of accesses is not known.

use crate::candidates::Candidates;
use crate::deadlocks;
use crate::deciders::{Decision, Question, Stage, asked, begins_waits, can_decide};
use crate::index::Index;
use crate::maximal;
pub use crate::options::Options;
pub use crate::prediction::{Prediction, Predictions, Statistics, Wanted};
use crate::share::{Spent, fairly};
use crate::walk;
use rashomon_event::{Address, Candidate, CandidateKind, EventIndex, Evidence, Mode, SiteId, Trace, Witness, WitnessLevel};
use rashomon_order::{LockGraph, Pattern, SitePair};
use std::collections::{BTreeMap, BTreeSet};

/// All predictions of a trace. Witnesses are as long as the prefixes they run; for many candidates of a long trace see
/// [`predict_each`].
pub fn predict(trace: &Trace, options: &Options) -> Predictions {
    let mut findings = Vec::new();
    let statistics = predict_each(trace, options, |prediction| findings.push(prediction));
    Predictions { findings, statistics }
}

/// Hands each prediction over as it is made, in the same order as [`predict`].
pub fn predict_each(trace: &Trace, options: &Options, found: impl FnMut(Prediction)) -> Statistics {
    predict_and_ask(trace, options, found).0
}

/// The same, and which values could show more ([`Options::ask_for_values`]).
pub fn predict_and_ask(trace: &Trace, options: &Options, found: impl FnMut(Prediction)) -> (Statistics, Wanted) {
    let mut found = found;
    let candidates = Candidates::new(trace, options);
    // What the deciders need is as long as the trace, and most traces of sound programs have no candidate.
    if candidates.is_empty() {
        return (candidates.statistics, Wanted::default());
    }
    let memory = &candidates.memory;
    let index = Index::until(trace, memory, options.deadline);
    if !index.complete {
        return (candidates.without_witnesses(&mut found), Wanted::default());
    }
    let question = Question::new(&index, memory, options);
    let statistics = candidates.statistics;
    let most = options.deadline.left().map(|left| left / SHARE_OF_VALUES);
    let mut predictor = Predictor {
        question,
        statistics,
        ordered_by_atomics: Vec::new(),
        found,
        by_value: false,
        refuted: Vec::new(),
        shown: BTreeSet::new(),
        on_values: Spent::at_most(most),
        on_others: Spent::at_most(most),
    };
    predictor.races(candidates.unordered, candidates.suspects);
    predictor.deadlocks(&candidates.graph, &candidates.patterns);
    predictor.races_despite_atomics();
    let wanted = predictor.wanted();
    (predictor.statistics, wanted)
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all
}

/// The first byte that both accesses touch.
fn first_byte(trace: &Trace, pair: &SitePair) -> u64 {
    let (first, second) = pair.pairs[0];
    common_byte(trace, &[first, second]).unwrap_or(0)
}

/// The first byte that all accesses touch; none, if some event is no access.
fn common_byte(trace: &Trace, goals: &[EventIndex]) -> Option<u64> {
    let mut bytes = goals.iter().map(|&goal| trace.access(goal).map(|access| access.address.0));
    bytes.try_fold(0, |first, byte| byte.map(|byte| first.max(byte)))
}

/// Of longer traces no slice would be within the limits.
const MOST_EVENTS_ASKED: usize = 1 << 21;

/// Of the time that is left for a trace, the part that questions about values may take, and as much again those about further
/// pairs of events: each is a decision of its own, about what is refuted so far.
const SHARE_OF_VALUES: u32 = 16;

struct Predictor<'a, 't, F> {
    question: Question<'a, 't>,
    statistics: Statistics,
    ordered_by_atomics: Vec<(SitePair, bool)>,
    found: F,
    /// The last causal witness rests on values.
    by_value: bool,
    /// Goals that are refuted, about whose values will be asked.
    refuted: Vec<Vec<EventIndex>>,
    /// First bytes of races that have a causal witness: the others there are of the same cause.
    shown: BTreeSet<u64>,
    on_values: Spent,
    on_others: Spent,
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
        let by_value = std::mem::take(&mut self.by_value) && witness.is_some();
        self.statistics.by_value += usize::from(by_value);
        if self.question.options.by_value_only && !by_value {
            return;
        }
        if let (CandidateKind::Race { first, second }, Some((_, WitnessLevel::Causal))) = (&kind, &witness) {
            self.shown.extend(common_byte(self.question.index.trace, &[*first, *second]));
        }
        let witness = witness.map(|(order, level)| Witness { candidate: kind.clone(), order, level });
        (self.found)(Prediction { candidate: Candidate { kind, evidence, occurrences }, witness, refuted, by_value });
    }

    /// By the decider that found a causal witness.
    fn count(&mut self, decider: &str) {
        *match decider {
            "sync-preserving" => &mut self.statistics.sync_preserving,
            "sync-reversal" => &mut self.statistics.sync_reversal,
            _ => &mut self.statistics.reordered,
        } += 1;
    }

    /// What the deciders of a stage say of the goals: the first witness, with the one that found it, or the first refutation.
    /// Ordered, if each says so.
    fn ask(&self, stage: Stage, goals: &[EventIndex]) -> (Decision, &'static str) {
        let mut last = None;
        for decider in asked(self.question.options, stage).filter(|&decider| can_decide(decider, &self.question, goals)) {
            let decision = decider.decide(&self.question, goals);
            match decision {
                Decision::Witness(order) if !begins_waits(&self.question, goals, &order) => last = Some(Decision::Undecided),
                Decision::Witness(_) | Decision::Refuted => return (decision, decider.name()),
                Decision::Ordered if last != Some(Decision::Undecided) => last = Some(Decision::Ordered),
                Decision::Ordered | Decision::Undecided => last = Some(Decision::Undecided),
            }
        }
        (last.unwrap_or(Decision::Undecided), "")
    }

    /// A causal witness, counted by its decider; `Err`: whether there is none. Where no order keeps all writers, reads may see
    /// other writes of the same values.
    fn causal(&mut self, stage: Stage, goals: &[EventIndex]) -> Result<Vec<EventIndex>, bool> {
        let (decision, decider) = self.ask(stage, goals);
        let order = match decision {
            Decision::Witness(order) => Ok(order),
            Decision::Refuted => {
                let (order, is_refuted) = self.by_value(goals);
                self.by_value = order.is_some();
                if order.is_none() && self.refuted.len() < self.question.options.ask_for_values {
                    self.refuted.push(goals.to_vec());
                }
                order.ok_or(is_refuted)
            }
            Decision::Ordered | Decision::Undecided => Err(false),
        };
        if order.is_ok() {
            self.count(decider);
        }
        order
    }

    /// A witness by values, or whether there is none.
    fn by_value(&mut self, goals: &[EventIndex]) -> (Option<Vec<EventIndex>>, bool) {
        let options = self.question.options;
        let Some(facts) = self.question.valued_facts() else { return (None, true) };
        let decide = || maximal::by_value(facts, goals, &options.maximal, options.deadline);
        let Some(order) = self.on_values.on(decide) else { return (None, false) };
        (order.filter(|order| begins_waits(&self.question, goals, order)), true)
    }

    /// Which values that the trace does not tell could show goals that are refuted, of bytes of which no race has a witness: one
    /// pair of each two places first. Last, as a decision may take long.
    fn wanted(&mut self) -> Wanted {
        let (trace, options) = (self.question.index.trace, self.question.options);
        let mut refuted = std::mem::take(&mut self.refuted);
        refuted.retain(|goals| common_byte(trace, goals).is_none_or(|byte| !self.shown.contains(&byte)));
        if refuted.is_empty() || !trace.plain_values.is_empty() || trace.events.len() > MOST_EVENTS_ASKED {
            return Wanted::default();
        }
        let Some(facts) = self.question.open_facts() else { return Wanted::default() };
        let (mut granules, mut candidates) = (BTreeSet::new(), 0);
        let sites = |goals: &Vec<EventIndex>| sorted(goals.iter().map(|&goal| trace.event(goal).site));
        for goals in fairly(refuted, sites) {
            let ask = || maximal::values_may_tell(facts, &goals, &options.maximal, options.deadline);
            let Some(more) = self.on_values.on(ask) else { break };
            candidates += usize::from(!more.is_empty());
            granules.extend(more);
        }
        self.statistics.values_may_tell = candidates;
        Wanted { sites: facts.sites_of(&granules), candidates }
    }

    fn races(&mut self, unordered: Vec<SitePair>, suspects: Vec<SitePair>) {
        let mut candidates = Vec::new();
        for (pairs, evidence) in [(unordered, Evidence::HappensBefore), (suspects, Evidence::Hybrid)] {
            self.statistics.not_looked_at += pairs.len().saturating_sub(self.question.options.site_pairs);
            candidates.extend(
                fairly(pairs, |pair| first_byte(self.question.index.trace, pair))
                    .into_iter()
                    .take(self.question.options.site_pairs)
                    .map(|pair| (pair, evidence)),
            );
        }
        let candidates = fairly(candidates, |(pair, _)| first_byte(self.question.index.trace, pair));
        if self.question.index.trace.mode != Mode::Serial {
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
            self.site_pair_in_time(
                SitePair { sites, pairs: vec![events], others: Vec::new(), occurrences: 1 },
                Evidence::Hybrid,
                Some(events),
            );
        }
    }

    fn is_late(&self) -> bool {
        self.question.options.deadline.is_over()
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

    /// Whether anybody decides what the walk over sync-preserving ideals finds.
    fn walks(&self) -> bool {
        asked(self.question.options, Stage::Walked).next().is_some()
    }

    /// A sync-preserving race for each pair of sites that has one, representatives first.
    fn sync_preserving(&mut self, candidates: &[(SitePair, Evidence)]) -> BTreeMap<walk::Sites, (EventIndex, EventIndex)> {
        let mut found = BTreeMap::new();
        if !self.walks() {
            return found;
        }
        for (pair, _) in candidates {
            if self.is_late() {
                return found;
            }
            let race = pair.pairs.iter().find(|pair| self.question.closures.sync_preserving(&[pair.0, pair.1]).is_ok());
            found.extend(race.map(|&race| (pair.sites, race)));
        }
        let known = found.keys().copied().collect();
        let options = self.question.options;
        let walked = walk::races(&self.question.closures, self.question.memory, &known, options.ideals, options.deadline);
        self.statistics.not_looked_at += usize::from(!walked.complete);
        found.extend(walked.found);
        found
    }

    /// The first pair of events with a causal witness; else the first with any; else the first.
    fn site_pair(&mut self, pair: SitePair, evidence: Evidence, preserving: Option<(EventIndex, EventIndex)>) {
        let goals = |pair: (EventIndex, EventIndex)| [pair.0, pair.1];
        let causal = |order| Some((order, Stage::Causal.level()));
        if let Some(events) = preserving
            && let Ok(order) = self.causal(Stage::Walked, &goals(events))
        {
            return self.give_race(&pair, events, evidence, causal(order), false);
        }
        let mut refuted = pair.occurrences == pair.pairs.len() as u64 || !pair.others.is_empty();
        for &events in &pair.pairs {
            match self.causal(Stage::Causal, &goals(events)) {
                Ok(order) => return self.give_race(&pair, events, evidence, causal(order), false),
                Err(is_refuted) => refuted &= is_refuted,
            }
        }
        if refuted {
            match self.others(&pair) {
                Ok((events, order)) => return self.give_race(&pair, events, evidence, causal(order), false),
                Err(are_refuted) => refuted = are_refuted,
            }
        }
        if self.question.options.by_value_only {
            return;
        }
        let mut excluded = Vec::new();
        for &events in &pair.pairs {
            match self.ask(Stage::Synchronisation, &goals(events)).0 {
                Decision::Witness(order) => {
                    return self.give_race(&pair, events, evidence, Some((order, Stage::Synchronisation.level())), refuted);
                }
                Decision::Ordered | Decision::Refuted => {}
                Decision::Undecided => excluded.push(events),
            }
        }
        if evidence != Evidence::HappensBefore {
            return self.ordered_by_atomics.push((pair, refuted));
        }
        for events in excluded {
            if let (Decision::Witness(order), _) = self.ask(Stage::DespiteAtomics, &goals(events)) {
                return self.give_race(&pair, events, evidence, Some((order, Stage::DespiteAtomics.level())), refuted);
            }
        }
        self.give_race(&pair, pair.pairs[0], evidence, None, refuted);
    }

    /// Where no representative can happen: the first of the others that can, or whether none can.
    fn others(&mut self, pair: &SitePair) -> Result<((EventIndex, EventIndex), Vec<EventIndex>), bool> {
        let mut spent = std::mem::replace(&mut self.on_others, Spent::at_most(None));
        let mut found = Err(true);
        for &events in &pair.others {
            match spent.on(|| self.ask(Stage::Causal, &[events.0, events.1])) {
                Some((Decision::Refuted, _)) => {}
                Some((Decision::Witness(order), decider)) => {
                    self.count(decider);
                    found = Ok((events, order));
                    break;
                }
                _ => {
                    found = Err(false);
                    break;
                }
            }
        }
        self.on_others = spent;
        found
    }

    /// Hybrid pairs that only an order which ignores atomics can show: mostly correct synchronisation, so they come last.
    fn races_despite_atomics(&mut self) {
        for (pair, refuted) in std::mem::take(&mut self.ordered_by_atomics) {
            let tried = self.question.options.despite_atomics && !self.is_late();
            let orders = pair.pairs.iter().filter(|_| tried);
            let mut orders = orders.filter_map(|&(first, second)| {
                let (Decision::Witness(order), _) = self.ask(Stage::DespiteAtomics, &[first, second]) else { return None };
                Some(((first, second), Some((order, Stage::DespiteAtomics.level()))))
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
                if number >= self.question.options.lock_sets_per_sites {
                    self.statistics.not_looked_at += patterns.len();
                    continue;
                }
                self.statistics.not_looked_at += patterns.len().saturating_sub(self.question.options.patterns_per_sites);
                let occurrences = patterns.len() as u64;
                let tried = &patterns[..patterns.len().min(self.question.options.patterns_per_sites)];
                self.patterns(graph, tried, occurrences);
            }
        }
    }

    fn patterns(&mut self, graph: &LockGraph, patterns: &[&Pattern], occurrences: u64) {
        let evidence = |tuple: &[EventIndex]| {
            let observed = tuple.iter().all(|event| graph.unanswered.binary_search(event).is_ok());
            if observed { Evidence::Observed } else { Evidence::LockOrder }
        };
        let serial = self.question.index.trace.mode == Mode::Serial;
        if serial && self.walks() {
            for pattern in patterns {
                if let Some((tuple, _)) = deadlocks::sync_preserving(&self.question.closures, graph, pattern)
                    && let Ok(order) = self.causal(Stage::Walked, &tuple)
                {
                    let kind = deadlocks::candidate(graph, pattern, &tuple);
                    return self.give(kind, evidence(&tuple), occurrences, Some((order, Stage::Walked.level())), false);
                }
            }
        }
        let tuples: Vec<(&Pattern, Vec<EventIndex>)> = patterns
            .iter()
            .flat_map(|&pattern| {
                deadlocks::concurrent(graph, pattern, self.question.options.representatives)
                    .into_iter()
                    .map(move |tuple| (pattern, tuple))
            })
            .collect();
        if serial {
            for (pattern, tuple) in &tuples {
                if let Ok(order) = self.causal(Stage::Causal, tuple) {
                    let kind = deadlocks::candidate(graph, pattern, tuple);
                    return self.give(kind, evidence(tuple), occurrences, Some((order, Stage::Causal.level())), false);
                }
            }
        }
        let mut first = None;
        for (pattern, tuple) in &tuples {
            let kind = deadlocks::candidate(graph, pattern, tuple);
            let stages = [Stage::Synchronisation, Stage::DespiteAtomics];
            let found = stages.into_iter().filter(|_| serial).find_map(|stage| match self.ask(stage, tuple).0 {
                Decision::Witness(order) => Some((order, stage.level())),
                _ => None,
            });
            if found.is_some() {
                return self.give(kind, evidence(tuple), occurrences, found, false);
            }
            first.get_or_insert((kind, evidence(tuple)));
        }
        if let Some((kind, evidence)) = first {
            self.give(kind, evidence, occurrences, None, false);
        }
    }
}
