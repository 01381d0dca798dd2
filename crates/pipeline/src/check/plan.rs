//! What is recorded next.
//!
//! A recording of a small program costs tens of milliseconds, and each schedule may show sites, orders and values that others do
//! not. So recordings go on while they show something new ([`crate::check::novelty`]), with policies that err in different ways:
//! `random` switches everywhere alike, `pct` delays one thread for long, `run-to-block` and `round-robin` are what no draw gives.
//! Everything follows from the seed and from what was shown, but for the share of time: a machine that is slower may stop
//! earlier.
//!
//! The rule of [`UntilNothingNew`]: stop when [`FRUITLESS`] recordings in a row showed nothing new, when [`MOST`] are there, or
//! when the next one would not fit into the share of the budget (recording and looking at it taken together; the longest so far
//! counts). Why six: then every policy of the mix has had its turns and none showed anything; two that draw the same by chance,
//! as they often do in small programs, must not end it. Why a third of the budget: what is found must be forced, too, which takes
//! two executions a finding at least. A program that takes long thus gets one recording or two.

use crate::record::Scheduling;
use crate::shard::Shard;
use rashomon_trace::Policy;
use std::time::Duration;

/// Recordings in a row that show nothing new, after which there is no further one: once through the mix.
pub const FRUITLESS: u32 = UntilNothingNew::MIX.len() as u32;
/// The most recordings.
pub const MOST: u32 = 20;
/// Bytes of all recordings together.
pub const MOST_BYTES: u64 = 1 << 30;

/// A recording to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub scheduling: Scheduling,
    pub seed: u64,
}

/// What is known when the next recording is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Executions so far, those that were of no use included.
    pub recordings: u32,
    /// Of these, how many at the end showed nothing new.
    pub fruitless: u32,
    /// The longest, its analysis included.
    pub longest: Duration,
    /// Time that there still is for recording and analysing; `None`: no limit.
    pub left: Option<Duration>,
    /// Of all recordings, and of the largest.
    pub bytes: u64,
    pub largest: u64,
}

/// Chooses schedules, one after the other. Each engine that wants to see more executions is such a plan.
pub trait Plan {
    /// `None`: enough.
    fn next(&mut self, history: &History) -> Option<Next>;
    /// How many there will be, where that is known.
    fn total(&self) -> Option<u32>;
}

/// So many, whatever they show: the first as asked for, the others at random with the following seeds, or with the same policy if
/// that one draws.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pub first: Next,
    pub number: u32,
    /// Added to the seeds of those behind the first: see [`crate::shard`].
    pub seeds: u64,
}

impl Plan for Fixed {
    fn next(&mut self, history: &History) -> Option<Next> {
        (history.recordings < self.number).then(|| again(self.first, history.recordings, self.seeds))
    }

    fn total(&self) -> Option<u32> {
        Some(self.number)
    }
}

/// Those of [`Fixed`] that a part of the work makes, if all parts together make them.
#[derive(Clone, Copy, Debug)]
pub struct Dealt {
    pub first: Next,
    pub number: u32,
    pub shard: Shard,
}

impl Plan for Dealt {
    fn next(&mut self, history: &History) -> Option<Next> {
        let place = self.shard.place(history.recordings);
        (place < self.number).then(|| again(self.first, place, 0))
    }

    fn total(&self) -> Option<u32> {
        Some((0..self.number).filter(|place| self.shard.has_place(*place as usize)).count() as u32)
    }
}

/// The first recording, or a further one like it.
fn again(first: Next, number: u32, seeds: u64) -> Next {
    if number == 0 {
        return first;
    }
    let scheduling = if draws(first.scheduling) { first.scheduling } else { Scheduling::Serial(Policy::Random) };
    Next { scheduling, seed: first.seed.wrapping_add(u64::from(number)).wrapping_add(seeds) }
}

/// Whether another seed gives another schedule.
const fn draws(scheduling: Scheduling) -> bool {
    matches!(scheduling, Scheduling::Serial(Policy::Random | Policy::Pct))
}

/// Goes on as long as there is something new to see, within its share of time.
#[derive(Clone, Copy, Debug)]
pub struct UntilNothingNew {
    pub first: Next,
    /// Only recordings like the first: the policy was asked for.
    pub alike: bool,
    /// Added to the seeds of those behind the first: see [`crate::shard`].
    pub seeds: u64,
}

impl UntilNothingNew {
    /// Behind the first one; then again from the second on.
    const MIX: [Policy; 6] = [Policy::RunToBlock, Policy::Pct, Policy::Random, Policy::RoundRobin, Policy::Pct, Policy::Random];

    fn nth(&self, number: u32) -> Option<Next> {
        if number == 0 {
            return Some(self.first);
        }
        if self.alike {
            return draws(self.first.scheduling).then(|| again(self.first, number, self.seeds));
        }
        let place = (number - 1) as usize;
        let policy = match Self::MIX[place % Self::MIX.len()] {
            // The second time round these would give the same schedules again.
            Policy::RunToBlock | Policy::RoundRobin if place >= Self::MIX.len() => Policy::Pct,
            policy => policy,
        };
        Some(Next { scheduling: Scheduling::Serial(policy), ..again(self.first, number, self.seeds) })
    }
}

impl Plan for UntilNothingNew {
    fn next(&mut self, history: &History) -> Option<Next> {
        let first = history.recordings == 0;
        let enough = history.fruitless >= FRUITLESS
            || history.recordings >= MOST
            || history.left.is_some_and(|left| history.longest > left || left.is_zero())
            || history.bytes.saturating_add(history.largest) > MOST_BYTES;
        if enough && !first { None } else { self.nth(history.recordings) }
    }

    fn total(&self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Next = Next { scheduling: Scheduling::Serial(Policy::Random), seed: 7 };

    fn names(plan: &mut dyn Plan, mut history: History, new: impl Fn(u32) -> bool) -> Vec<(&'static str, u64)> {
        let mut names = Vec::new();
        while let Some(next) = plan.next(&history) {
            names.push((next.scheduling.name(), next.seed));
            history.fruitless = if new(history.recordings) { 0 } else { history.fruitless + 1 };
            history.recordings += 1;
        }
        names
    }

    #[test]
    fn shares_differ_behind_the_first_recording() {
        let seeds = |seeds| names(&mut Fixed { first: FIRST, number: 3, seeds }, History::default(), |_| true);
        assert_eq!(seeds(0), [("random", 7), ("random", 8), ("random", 9)]);
        assert_eq!(seeds(100), [("random", 7), ("random", 108), ("random", 109)]);
        let mut plan = UntilNothingNew { first: FIRST, alike: false, seeds: 100 };
        assert_eq!(names(&mut plan, History::default(), |number| number < 1)[..2], [("random", 7), ("run-to-block", 108)]);
    }

    #[test]
    fn policies_are_mixed_by_the_seed_alone() {
        let mut plan = UntilNothingNew { first: FIRST, alike: false, seeds: 0 };
        let all = names(&mut plan, History::default(), |_| true);
        assert_eq!(all.len() as u32, MOST);
        let start = [
            ("random", 7),
            ("run-to-block", 8),
            ("pct", 9),
            ("random", 10),
            ("round-robin", 11),
            ("pct", 12),
            ("random", 13),
            ("pct", 14),
        ];
        assert_eq!(all[..start.len()], start);
        assert_eq!(all, names(&mut plan, History::default(), |_| true));
        for once in ["run-to-block", "round-robin"] {
            assert_eq!(all.iter().filter(|(name, _)| *name == once).count(), 1, "{once} gives one schedule");
        }
    }

    #[test]
    fn a_round_of_the_mix_without_anything_new_ends_it() {
        let mut plan = UntilNothingNew { first: FIRST, alike: false, seeds: 0 };
        assert_eq!(names(&mut plan, History::default(), |number| number < 1).len() as u32, 1 + FRUITLESS);
        assert_eq!(names(&mut plan, History::default(), |number| number % 6 == 0).len() as u32, MOST);
        assert_eq!(names(&mut plan, History::default(), |number| number == 0 || number == 3).len() as u32, 4 + FRUITLESS);
    }

    #[test]
    fn long_programs_are_recorded_once_or_twice() {
        let history = |left, longest| History {
            recordings: 1,
            left: Some(Duration::from_secs(left)),
            longest: Duration::from_secs(longest),
            ..History::default()
        };
        let mut plan = UntilNothingNew { first: FIRST, alike: false, seeds: 0 };
        assert_eq!(plan.next(&history(20, 30)), None);
        assert_eq!(plan.next(&history(0, 0)), None);
        assert!(plan.next(&history(20, 15)).is_some());
        let large = History { recordings: 1, bytes: MOST_BYTES - 1, largest: 2, ..History::default() };
        assert_eq!(plan.next(&large), None);
        // The first one is the program itself.
        assert_eq!(plan.next(&History { left: Some(Duration::ZERO), ..History::default() }), Some(FIRST));
    }

    #[test]
    fn a_policy_that_was_asked_for_stays() {
        let first = |policy| Next { scheduling: Scheduling::Serial(policy), seed: 1 };
        let mut pct = UntilNothingNew { first: first(Policy::Pct), alike: true, seeds: 0 };
        let drawn: Vec<(&str, u64)> = (1..=1 + u64::from(FRUITLESS)).map(|seed| ("pct", seed)).collect();
        assert_eq!(names(&mut pct, History::default(), |number| number == 0), drawn);
        let mut block = UntilNothingNew { first: first(Policy::RunToBlock), alike: true, seeds: 0 };
        assert_eq!(names(&mut block, History::default(), |_| true), [("run-to-block", 1)]);
        let mut free = UntilNothingNew { first: Next { scheduling: Scheduling::Free, seed: 1 }, alike: true, seeds: 0 };
        assert_eq!(names(&mut free, History::default(), |_| true).len(), 1);
    }

    #[test]
    fn a_number_that_was_asked_for_stays() {
        let late = History { left: Some(Duration::ZERO), fruitless: 100, ..History::default() };
        let mut plan = Fixed { first: Next { scheduling: Scheduling::Serial(Policy::RoundRobin), seed: 5 }, number: 3, seeds: 0 };
        assert_eq!(names(&mut plan, late, |_| false), [("round-robin", 5), ("random", 6), ("random", 7)]);
        let mut drawn = Fixed { first: FIRST, number: 2, seeds: 0 };
        assert_eq!(names(&mut drawn, late, |_| false), [("random", 7), ("random", 8)]);
    }
}
