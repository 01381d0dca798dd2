//! How the time of a whole `check` is shared out.
//!
//! The budget is what we add to the program: it begins when the first recording has ended, which is the program itself and is
//! bounded by its own limit. It is the total of everything behind: further recordings, loading, prediction, forcing. Within it,
//! looking at recordings may take half unless another part is asked for, so that what is predicted can be forced; and recordings
//! are only begun during its first third.

use rashomon_event::Deadline;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of all that comes after the first recording; zero: nothing is forced.
    pub total: Duration,
    /// Of all predictions together; zero: as long as the total allows; `None`: a half of it.
    pub predict_within: Option<Duration>,
}

/// Of predictions where nothing is to be forced and no time is given.
const USUAL: Duration = Duration::from_secs(60);

/// When what has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    pub total: Deadline,
    /// No further witness is looked for.
    pub predicting: Deadline,
    /// No further recording is begun; it has to be over then, too.
    pub recording: Deadline,
    /// What still looks at a recording is left behind.
    pub left_behind: Deadline,
}

impl Deadlines {
    pub const NEVER: Self =
        Self { total: Deadline::NEVER, predicting: Deadline::NEVER, recording: Deadline::NEVER, left_behind: Deadline::NEVER };
}

impl Budget {
    /// For commands that bound nothing.
    pub const NONE: Self = Self { total: Duration::ZERO, predict_within: Some(Duration::ZERO) };

    /// The budget begins now.
    pub fn begin(&self) -> Deadlines {
        let total = Deadline::within_if_any(self.total);
        let whole = if self.total.is_zero() { self.predict_within.unwrap_or(USUAL) } else { self.total };
        let predicting = match self.predict_within {
            Some(within) => Deadline::within_if_any(within).or(total),
            None if self.total.is_zero() => Deadline::within(USUAL),
            None => Deadline::within(self.total / 2),
        };
        let recording = if whole.is_zero() { Deadline::NEVER } else { Deadline::within(whole / 3) };
        // What is known by then is told without a witness, which takes a moment.
        let left_behind = predicting.and(Duration::from_millis(200).max(whole / 20));
        let left_behind = left_behind.or(total.and(Duration::from_millis(200).max(whole / 50)));
        Deadlines { total, predicting, recording, left_behind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(deadline: Deadline) -> Option<u64> {
        deadline.left().map(|left| left.as_secs_f64().round() as u64)
    }

    #[test]
    fn half_of_the_budget_is_for_forcing() {
        let deadlines = Budget { total: Duration::from_secs(60), predict_within: None }.begin();
        assert_eq!([deadlines.recording, deadlines.predicting, deadlines.total].map(left), [Some(20), Some(30), Some(60)]);
        assert_eq!(left(deadlines.left_behind), Some(33));
    }

    #[test]
    fn predictions_never_take_more_than_all() {
        let given = |within| Budget { total: Duration::from_secs(60), predict_within: Some(Duration::from_secs(within)) }.begin();
        assert_eq!(left(given(10).predicting), Some(10));
        assert_eq!(left(given(100).predicting), Some(60));
        assert_eq!(left(given(0).predicting), Some(60));
        assert_eq!(left(given(0).left_behind), Some(61));
    }

    #[test]
    fn without_a_budget_predictions_are_bounded_alone() {
        let none = Budget { total: Duration::ZERO, predict_within: Some(Duration::from_secs(30)) }.begin();
        assert_eq!([none.recording, none.predicting, none.total].map(left), [Some(10), Some(30), None]);
        assert_eq!(left(Budget { total: Duration::ZERO, predict_within: None }.begin().predicting), Some(60));
        assert_eq!(Budget::NONE.begin(), Deadlines::NEVER);
    }
}
