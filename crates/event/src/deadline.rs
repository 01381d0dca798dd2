//! When work has to end.
//!
//! One value is made where a budget begins, and handed down to whatever may take long. Nobody else counts time.

use std::time::{Duration, Instant};

/// How many steps of a loop are made between two looks at the clock.
const STEPS: u32 = 4096;

/// A moment after which nothing further is begun; or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub const NEVER: Self = Self(None);

    pub const fn at(moment: Instant) -> Self {
        Self(Some(moment))
    }

    /// A time that is too long to be told is none.
    pub fn within(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    /// As [`Deadline::within`], but zero is no limit.
    pub fn within_if_any(time: Duration) -> Self {
        if time.is_zero() { Self::NEVER } else { Self::within(time) }
    }

    /// The earlier of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(two)) => Self(Some(one.min(two))),
            (one, two) => Self(one.or(two)),
        }
    }

    /// The later of two.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(one, two)| one.max(two)))
    }

    /// So much earlier.
    #[must_use]
    pub fn less(self, time: Duration) -> Self {
        Self(self.0.map(|moment| moment.checked_sub(time).unwrap_or(moment)))
    }

    /// So much later.
    #[must_use]
    pub fn and(self, time: Duration) -> Self {
        Self(self.0.and_then(|moment| moment.checked_add(time)))
    }

    pub fn is_over(self) -> bool {
        self.0.is_some_and(|moment| Instant::now() >= moment)
    }

    /// `None`: as long as it takes.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|moment| moment.saturating_duration_since(Instant::now()))
    }

    /// What is left for something that may take `most`.
    pub fn limit(self, most: Duration) -> Duration {
        self.left().map_or(most, |left| left.min(most))
    }

    pub const fn moment(self) -> Option<Instant> {
        self.0
    }

    /// The same items, until the deadline has passed. Whoever needs all of them asks [`Bounded::was_cut`] behind the loop.
    pub fn bound<I: IntoIterator>(self, items: I) -> Bounded<I::IntoIter> {
        Bounded { items: items.into_iter(), watch: self.watch() }
    }

    /// For loops within loops: asked in each step, it looks at the clock now and then.
    pub const fn watch(self) -> Watch {
        Watch { deadline: self, left: STEPS, over: false }
    }
}

/// See [`Deadline::watch`].
#[derive(Clone, Debug)]
pub struct Watch {
    deadline: Deadline,
    /// Steps until the next look at the clock.
    left: u32,
    over: bool,
}

impl Watch {
    /// Whether the deadline has passed, as far as was looked: it may have up to [`STEPS`] steps ago.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        if self.over {
            return true;
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = STEPS;
            self.over = self.deadline.is_over();
        }
        self.over
    }
}

/// See [`Deadline::bound`].
#[derive(Clone, Debug)]
pub struct Bounded<I> {
    items: I,
    watch: Watch,
}

impl<I> Bounded<I> {
    /// Whether the deadline ended it.
    pub const fn was_cut(&self) -> bool {
        self.watch.over
    }
}

impl<I: Iterator> Iterator for Bounded<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        if self.watch.is_over() { None } else { self.items.next() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_two_counts() {
        let soon = Deadline::within(Duration::from_secs(1));
        let late = Deadline::within(Duration::from_secs(100));
        assert_eq!(soon.or(late), soon);
        assert_eq!(late.or(soon), soon);
        assert_eq!(Deadline::NEVER.or(soon), soon);
        assert_eq!(soon.or(Deadline::NEVER), soon);
        assert_eq!(Deadline::NEVER.left(), None);
        assert_eq!(Deadline::within_if_any(Duration::ZERO), Deadline::NEVER);
    }

    #[test]
    fn what_takes_long_gets_what_is_left() {
        let over = Deadline::at(Instant::now());
        assert!(over.is_over());
        assert_eq!(over.limit(Duration::from_secs(5)), Duration::ZERO);
        assert_eq!(Deadline::NEVER.limit(Duration::from_secs(5)), Duration::from_secs(5));
        assert!(Deadline::within(Duration::from_secs(100)).limit(Duration::from_secs(5)) == Duration::from_secs(5));
        assert!(!over.and(Duration::from_secs(100)).is_over());
        assert_eq!(Deadline::within(Duration::MAX), Deadline::NEVER);
    }

    #[test]
    fn a_loop_without_end_ends() {
        let over = Deadline::at(Instant::now());
        let mut bounded = over.bound(0_u64..);
        assert_eq!(bounded.by_ref().count() as u32, STEPS - 1);
        assert!(bounded.was_cut());
        assert_eq!(bounded.next(), None);
        assert_eq!(Deadline::NEVER.bound(0..20_000).count(), 20_000);
    }
}
