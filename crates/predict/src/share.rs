//! Shares: of the time, and turns of what competes for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One of each variable first, in the order given, then a second one of each.
pub fn fairly<T, V: Ord>(all: Vec<T>, variable: impl Fn(&T) -> V) -> Vec<T> {
    let mut counts: BTreeMap<V, u32> = BTreeMap::new();
    let mut rank = |one: T| {
        let count = counts.entry(variable(&one)).or_default();
        *count += 1;
        (*count, one)
    };
    let mut ranked: Vec<(u32, T)> = all.into_iter().map(&mut rank).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, one)| one).collect()
}

/// Time on something that is to take a share of all. Without a deadline it takes what it takes.
pub struct Spent {
    most: Option<Duration>,
    spent: Duration,
}

impl Spent {
    pub const fn at_most(most: Option<Duration>) -> Self {
        Self { most, spent: Duration::ZERO }
    }

    /// `None`: its time is spent.
    pub fn on<T>(&mut self, question: impl FnOnce() -> T) -> Option<T> {
        if self.most.is_some_and(|most| self.spent >= most) {
            return None;
        }
        let begin = Instant::now();
        let answer = question();
        self.spent += begin.elapsed();
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_has_its_turn() {
        assert_eq!(fairly(vec![11, 12, 21, 13, 31, 22], |number| number / 10), [11, 21, 31, 12, 22, 13]);
    }

    #[test]
    fn what_is_spent_is_not_asked() {
        let mut spent = Spent::at_most(Some(Duration::ZERO));
        assert_eq!(spent.on(|| 1), None);
        let mut free = Spent::at_most(None);
        assert_eq!([free.on(|| 1), free.on(|| 2)], [Some(1), Some(2)]);
    }
}
