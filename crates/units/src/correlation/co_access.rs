//! Locations that are accessed together again and again.
//!
//! After Lu, Park, Hu, Ma, Jiang, Li, Popa, Zhou, *MUVI: Automatically Inferring Multi-Variable Access Correlations and Detecting
//! Related Semantic and Concurrency Bugs*, SOSP 2007, which mines the source for variables that functions access together.
//!
//! Deviations:
//! 1. What is mined is an execution: a transaction is an activation of a function, a variable is a range of bytes as accessed.
//!    Functions that it calls are transactions of their own.
//! 2. Confidence is asked for both ways. A variable that everything reads, such as a configuration, would else be in one set
//!    with everything.
//! 3. Only ranges that are known to be shared are variables.

use super::{Correlation, Groups};
use crate::event::{Bytes, Event, Step, Thread};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct CoAccessOptions {
    /// Activations that must access both.
    pub support: u32,
    /// Of the activations that access one of two variables, how many percent must access the other.
    pub confidence: u32,
    /// Accesses to shared ranges between two that count as together.
    pub distance: usize,
    /// Variables, and pairs of them, that are counted; further ones are not looked at.
    pub variables: usize,
    pub pairs: usize,
}

impl Default for CoAccessOptions {
    fn default() -> Self {
        CoAccessOptions { support: 3, confidence: 80, distance: 16, variables: 1 << 16, pairs: 1 << 20 }
    }
}

type Variable = u32;

#[derive(Default)]
struct Transaction {
    recent: VecDeque<Variable>,
    variables: FxHashSet<Variable>,
    pairs: FxHashSet<(Variable, Variable)>,
}

#[derive(Default)]
struct Counts {
    variables: FxHashMap<Variable, u32>,
    pairs: FxHashMap<(Variable, Variable), u32>,
}

pub struct CoAccess {
    options: CoAccessOptions,
    /// Ascending, disjoint.
    shared: Vec<Bytes>,
    numbers: FxHashMap<Bytes, Variable>,
    ranges: Vec<Bytes>,
    open: FxHashMap<Thread, Vec<Transaction>>,
    counts: Counts,
}

impl CoAccess {
    /// `shared`: what [`crate::Sharing`] found.
    pub fn new(options: CoAccessOptions, mut shared: Vec<Bytes>) -> CoAccess {
        shared.sort_unstable();
        let (numbers, open) = (FxHashMap::default(), FxHashMap::default());
        CoAccess { options, shared, numbers, ranges: Vec::new(), open, counts: Counts::default() }
    }

    fn is_shared(&self, bytes: Bytes) -> bool {
        let behind = self.shared.partition_point(|range| range.start < bytes.end());
        behind > 0 && self.shared[behind - 1].end() > bytes.start
    }

    fn variable(&mut self, bytes: Bytes) -> Option<Variable> {
        if let Some(number) = self.numbers.get(&bytes) {
            return Some(*number);
        }
        if self.ranges.len() >= self.options.variables || !self.is_shared(bytes) {
            return None;
        }
        let number = self.ranges.len() as Variable;
        self.ranges.push(bytes);
        self.numbers.insert(bytes, number);
        Some(number)
    }

    fn access(&mut self, thread: Thread, bytes: Bytes) {
        let Some(variable) = self.variable(bytes) else { return };
        let stack = self.open.entry(thread).or_default();
        if stack.is_empty() {
            stack.push(Transaction::default());
        }
        let Some(transaction) = stack.last_mut() else { return };
        transaction.variables.insert(variable);
        for other in &transaction.recent {
            // Variables of one transaction are many only in loops over arrays, whose cells are no set.
            if *other != variable && transaction.pairs.len() < 4096 {
                transaction.pairs.insert((variable.min(*other), variable.max(*other)));
            }
        }
        transaction.recent.push_back(variable);
        if transaction.recent.len() > self.options.distance {
            transaction.recent.pop_front();
        }
    }

    fn end(&mut self, thread: Thread) {
        if let Some(transaction) = self.open.get_mut(&thread).and_then(Vec::pop) {
            self.counts.add(&transaction, self.options.pairs);
        }
    }
}

impl Counts {
    fn add(&mut self, transaction: &Transaction, most: usize) {
        for variable in &transaction.variables {
            *self.variables.entry(*variable).or_default() += 1;
        }
        for pair in &transaction.pairs {
            if self.pairs.len() < most || self.pairs.contains_key(pair) {
                *self.pairs.entry(*pair).or_default() += 1;
            }
        }
    }
}

impl Correlation for CoAccess {
    fn event(&mut self, event: &Event<'_>) {
        match event.step {
            Step::Enter { .. } => {
                let stack = self.open.entry(event.thread).or_default();
                if stack.is_empty() {
                    stack.push(Transaction::default());
                }
                stack.push(Transaction::default());
            }
            Step::Exit { .. } => self.end(event.thread),
            Step::Load { bytes, .. } | Step::Store { bytes, .. } => self.access(event.thread, bytes),
            _ => {}
        }
    }

    fn sets(&self) -> Vec<Vec<Bytes>> {
        let mut counts = Counts { variables: self.counts.variables.clone(), pairs: self.counts.pairs.clone() };
        for transaction in self.open.values().flatten() {
            counts.add(transaction, self.options.pairs);
        }
        let mut groups = Groups::default();
        for ((one, other), together) in &counts.pairs {
            let confident = [one, other].iter().all(|variable| {
                let alone = counts.variables.get(variable).copied().unwrap_or(0);
                u64::from(*together) * 100 >= u64::from(self.options.confidence) * u64::from(alone)
            });
            if *together >= self.options.support && confident {
                groups.join(self.ranges[*one as usize], self.ranges[*other as usize]);
            }
        }
        groups.sets()
    }
}
