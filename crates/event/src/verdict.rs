//! From evidence to a verdict: the one state machine by which a finding becomes proven, and stops being so.
//!
//! An analysis begins with [`Verdict::Suspected`], [`Verdict::Predicted`] or [`Verdict::Refuted`]. After that only executions
//! count. What came of them is a [`Trial`], and [`Verdict::advance`] is the only function that turns one into a verdict: nobody
//! else can make a [`Proof`], as its fields are private, and nobody else makes a [`Verdict::Diverged`].
//!
//! | trial | suspected | predicted | diverged | refuted | proven |
//! |---|---|---|---|---|---|
//! | [`Shown`](Trial::Shown) | proven | proven | proven | proven | stays; its replays are counted |
//! | [`ShownOnce`](Trial::ShownOnce) | diverged | stays | diverged | stays | stays; its replays are counted |
//! | [`Left`](Trial::Left) | diverged | stays | diverged | stays | stays |
//! | [`NotShown`](Trial::NotShown) | stays | stays | stays | stays | stays |
//! | [`Replayed`](Trial::Replayed), at least once | stays | stays | stays | stays | stays; its replays are counted |
//! | [`Replayed`](Trial::Replayed), never | stays | stays | stays | stays | diverged |
//! | [`Repeated`](Trial::Repeated) | stays | stays | stays | stays | stays; its repetitions are counted |
//!
//! Why so:
//! - One execution that shows a finding is proof that it can happen, also of what an analysis refuted: the trace's model was too
//!   narrow then.
//! - A schedule decides what happens. One that shows the finding once and never again leaves out what decided: that is no proof,
//!   whether the first execution was forced or recorded. It was replayed, retried, and then the verdict says what came instead.
//! - A proof that there was no time to replay keeps its verdict, as it was seen, and says so: its [`Replays`] are `0 of 0`.
//! - A sound witness stays a prediction when forcing leaves its schedule: the execution may depend on what no trace holds.
//! - Where threads run in parallel and are only held, nothing decides who runs when. That the accesses do not meet in one more
//!   such execution says nothing about the one in which they met: repetitions are counted, and never demote.
//!
//! No other code can make a proof:
//!
//! ```compile_fail,E0423
//! use rashomon_event::{Grade, Verdict, verdict::Proof};
//! let verdict = Verdict::Proven(Proof { grade: Grade::CoEnabled, replays: Default::default() });
//! ```
//! ```compile_fail,E0451
//! use rashomon_event::{Grade, verdict::Proof};
//! let proof = Proof { grade: Grade::CoEnabled, replays: Default::default() };
//! ```

use serde::{Deserialize, Serialize};

/// How a proven finding was established (`docs/reference/verdicts.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Both accesses were held side by side on the same bytes.
    CoEnabled,
    /// Both were executed and exact C++20 happens-before orders neither.
    Unordered,
    /// The threads are blocked in the cycle shown.
    Deadlocked,
    /// All threads are blocked and no cycle explains it.
    Stuck,
    /// All threads repeat themselves for ever, or are blocked.
    Endless,
    /// Critical sections were interleaved, with an outcome that no serial order of them has.
    Violated,
    /// A signal ended the program.
    Crashed,
    /// The program ended with another exit code than it should.
    WrongExit,
    /// The recorded execution did it.
    Observed,
    /// An access touched a block that was no longer there.
    Freed,
}

/// In how many further executions what was shown once came about again: it reproduces `shown` of `of`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replays {
    pub shown: u32,
    pub of: u32,
}

impl Replays {
    /// Every one of them showed it.
    pub const fn all(of: u32) -> Self {
        Self { shown: of, of }
    }

    const fn and(self, other: Self) -> Self {
        Self { shown: self.shown.saturating_add(other.shown), of: self.of.saturating_add(other.of) }
    }
}

/// That an execution showed a finding. Only [`Verdict::advance`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Proof {
    grade: Grade,
    /// `0 of 0`: there was no further execution.
    #[serde(default)]
    replays: Replays,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Verdict {
    /// An execution showed it.
    Proven(Proof),
    /// A checked causal witness, not forced.
    Predicted,
    /// Evidence or an optimistic witness, not forced.
    Suspected,
    /// Forcing left the schedule, or what was shown once did not come about again. Says what.
    Diverged { expected: String, actual: String },
    /// Infeasible under the trace's model.
    Refuted,
}

/// What came of executing the program for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// An execution, recorded or forced, showed it, and those that repeated it did as `replays` says: at least one, if there were
    /// any.
    Shown { grade: Grade, replays: Replays },
    /// An execution showed it, and none that repeated it did. `expected`: what was repeated; `actual`: what came instead.
    ShownOnce { expected: String, actual: String, of: u32 },
    /// The forced execution left the schedule.
    Left { expected: String, actual: String },
    /// The execution kept to the schedule as far as it was decided, and did not show it.
    NotShown,
    /// The schedule of what is proven was replayed. `expected` and `actual`: of the last replay that did not show it.
    Replayed { replays: Replays, expected: String, actual: String },
    /// What is proven was provoked again, with threads that run in parallel.
    Repeated(Replays),
}

impl Verdict {
    /// The verdict after a trial. See the table of [this module](self).
    #[must_use]
    pub fn advance(self, trial: Trial) -> Self {
        match (self, trial) {
            (Self::Proven(proof), Trial::Shown { replays, .. } | Trial::Repeated(replays)) => Self::Proven(proof.and(replays)),
            (Self::Proven(proof), Trial::ShownOnce { of, .. }) => Self::Proven(proof.and(Replays { shown: 0, of })),
            (Self::Proven(_), Trial::Replayed { replays: Replays { shown: 0, of: 1.. }, expected, actual }) => {
                Self::Diverged { expected, actual }
            }
            (Self::Proven(proof), Trial::Replayed { replays, .. }) => Self::Proven(proof.and(replays)),
            (_, Trial::Shown { grade, replays }) => Self::Proven(Proof { grade, replays }),
            (
                Self::Suspected | Self::Diverged { .. },
                Trial::ShownOnce { expected, actual, .. } | Trial::Left { expected, actual },
            ) => Self::Diverged { expected, actual },
            (verdict, _) => verdict,
        }
    }

    /// How it was proven; `None`: it is not.
    pub const fn grade(&self) -> Option<Grade> {
        match self {
            Self::Proven(proof) => Some(proof.grade),
            _ => None,
        }
    }

    /// How often what is proven came about again; `None`: it is not proven.
    pub const fn replays(&self) -> Option<Replays> {
        match self {
            Self::Proven(proof) => Some(proof.replays),
            _ => None,
        }
    }

    pub const fn is_proven(&self) -> bool {
        matches!(self, Self::Proven(_))
    }

    /// The surest first. The one ranking by which findings are merged, tried and shown.
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Proven(_) => 0,
            Self::Predicted => 1,
            Self::Diverged { .. } => 2,
            Self::Suspected => 3,
            Self::Refuted => 4,
        }
    }

    /// Its one word, as reports have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Proven(_) => "proven",
            Self::Predicted => "predicted",
            Self::Suspected => "suspected",
            Self::Diverged { .. } => "diverged",
            Self::Refuted => "refuted",
        }
    }
}

impl Proof {
    const fn and(self, replays: Replays) -> Self {
        Self { grade: self.grade, replays: self.replays.and(replays) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        text.to_owned()
    }

    fn diverged(expected: &str) -> Verdict {
        Verdict::Diverged { expected: words(expected), actual: words("b") }
    }

    fn proven(shown: u32, of: u32) -> Verdict {
        Verdict::Proven(Proof { grade: Grade::Deadlocked, replays: Replays { shown, of } })
    }

    fn shown() -> Trial {
        Trial::Shown { grade: Grade::Deadlocked, replays: Replays::all(1) }
    }

    fn shown_once() -> Trial {
        Trial::ShownOnce { expected: words("once"), actual: words("b"), of: 1 }
    }

    fn left() -> Trial {
        Trial::Left { expected: words("left"), actual: words("b") }
    }

    fn replayed(shown: u32, of: u32) -> Trial {
        Trial::Replayed { replays: Replays { shown, of }, expected: words("replay"), actual: words("b") }
    }

    fn repeated(shown: u32, of: u32) -> Trial {
        Trial::Repeated(Replays { shown, of })
    }

    /// What becomes of suspected, predicted, diverged, refuted and proven.
    #[track_caller]
    fn row(trial: &Trial, expected: [Verdict; 5]) {
        let before = [Verdict::Suspected, Verdict::Predicted, diverged("a"), Verdict::Refuted, proven(1, 2)];
        assert_eq!(before.map(|verdict| verdict.advance(trial.clone())), expected, "{trial:?}");
    }

    #[test]
    fn every_cell_of_the_table() {
        let stays = |last: Verdict| [Verdict::Suspected, Verdict::Predicted, diverged("a"), Verdict::Refuted, last];
        row(&shown(), [proven(1, 1), proven(1, 1), proven(1, 1), proven(1, 1), proven(2, 3)]);
        row(&shown_once(), [diverged("once"), Verdict::Predicted, diverged("once"), Verdict::Refuted, proven(1, 3)]);
        row(&left(), [diverged("left"), Verdict::Predicted, diverged("left"), Verdict::Refuted, proven(1, 2)]);
        row(&Trial::NotShown, stays(proven(1, 2)));
        row(&replayed(1, 3), stays(proven(2, 5)));
        row(&replayed(0, 3), stays(diverged("replay")));
        row(&replayed(0, 0), stays(proven(1, 2)));
        row(&repeated(2, 3), stays(proven(3, 5)));
        row(&repeated(0, 3), stays(proven(1, 5)));
    }

    #[test]
    fn what_was_stored_before_replays_were_counted_says_that_none_were() {
        let old: Verdict = serde_json::from_str(r#"{"status":"proven","grade":"co-enabled"}"#).unwrap();
        assert_eq!((old.grade(), old.replays()), (Some(Grade::CoEnabled), Some(Replays::default())));
        let text = serde_json::to_string(&proven(1, 2)).unwrap();
        assert_eq!(text, r#"{"status":"proven","grade":"deadlocked","replays":{"shown":1,"of":2}}"#);
    }

    #[test]
    fn the_surest_comes_first() {
        let ranks = [proven(0, 0), Verdict::Predicted, diverged("a"), Verdict::Suspected, Verdict::Refuted];
        assert!(ranks.is_sorted_by_key(Verdict::rank));
    }
}
