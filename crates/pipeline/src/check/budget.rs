//! How the time of a whole `check` is shared out.
//!
//! A budget that is asked for is the total of everything, and the first recording may take half of it. One that nobody asked for
//! begins when the first recording has ended, which is the program itself and is bounded by its own limit. What is shared out is
//! what is left behind the first recording: further recordings, loading, prediction, forcing. Of that, looking at recordings may
//! take half unless another part is asked for, so that what is predicted can be forced; and recordings are only begun during its
//! first third.

use rashomon_event::Deadline;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of all that comes after the first recording; zero: nothing is forced.
    pub total: Duration,
    /// Of all predictions together; zero: as long as the total allows; `None`: a half of it.
    pub predict_within: Option<Duration>,
    /// When all has to be over, whenever it began.
    pub until: Deadline,
}

/// Of predictions where nothing is to be forced and no time is given.
const USUAL: Duration = Duration::from_secs(60);
/// What is left of a budget that is spent: zero would be none.
const LEAST: Duration = Duration::from_millis(1);

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
    pub const NONE: Self = Self { total: Duration::ZERO, predict_within: Some(Duration::ZERO), until: Deadline::NEVER };

    /// What is shared out begins now.
    pub fn begin(&self) -> Deadlines {
        let left = if self.total.is_zero() { self.total } else { self.until.limit(self.total).max(LEAST) };
        let total = Deadline::within_if_any(left);
        let whole = if left.is_zero() { self.predict_within.unwrap_or(USUAL) } else { left };
        let predicting = match self.predict_within {
            Some(within) => Deadline::within_if_any(within).or(total),
            None if left.is_zero() => Deadline::within(USUAL),
            None => Deadline::within(left / 2),
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
        let deadlines = Budget { total: Duration::from_secs(60), predict_within: None, until: Deadline::NEVER }.begin();
        assert_eq!([deadlines.recording, deadlines.predicting, deadlines.total].map(left), [Some(20), Some(30), Some(60)]);
        assert_eq!(left(deadlines.left_behind), Some(33));
    }

    #[test]
    fn what_the_first_recording_took_is_not_shared_out() {
        let begun = |ago| Deadline::within(Duration::from_secs(60)).less(Duration::from_secs(ago));
        let after = |ago| Budget { total: Duration::from_secs(60), predict_within: None, until: begun(ago) }.begin();
        assert_eq!([after(30).recording, after(30).predicting, after(30).total].map(left), [Some(10), Some(15), Some(30)]);
        assert!(after(70).total.left().is_some_and(|left| left <= LEAST));
    }

    #[test]
    fn predictions_never_take_more_than_all() {
        let given = |within| {
            let predict_within = Some(Duration::from_secs(within));
            Budget { total: Duration::from_secs(60), predict_within, until: Deadline::NEVER }.begin()
        };
        assert_eq!(left(given(10).predicting), Some(10));
        assert_eq!(left(given(100).predicting), Some(60));
        assert_eq!(left(given(0).predicting), Some(60));
        assert_eq!(left(given(0).left_behind), Some(61));
    }

    #[test]
    fn without_a_budget_predictions_are_bounded_alone() {
        let none = Budget { predict_within: Some(Duration::from_secs(30)), ..Budget::NONE }.begin();
        assert_eq!([none.recording, none.predicting, none.total].map(left), [Some(10), Some(30), None]);
        assert_eq!(left(Budget { predict_within: None, ..Budget::NONE }.begin().predicting), Some(60));
        assert_eq!(Budget::NONE.begin(), Deadlines::NEVER);
    }
}
