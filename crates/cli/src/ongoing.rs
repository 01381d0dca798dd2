//! What goes on, where lines do not take one another's place: a line when nothing was said for a while, so that a reader of a log
//! sees what the tool is at, and for how long, however long that takes.

use crate::progress::{EVERY, left_words};
use crate::terminal::say;
use crate::waiting::words;
use rashomon_event::Deadline;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often is looked whether there is something to say.
const LOOKED: Duration = Duration::from_millis(250);
/// Behind it, what lasts is said less often if that was asked for.
const SOON: Duration = Duration::from_secs(60);

struct State {
    what: Option<String>,
    since: Instant,
    until: Deadline,
    /// When there was a line.
    last: Instant,
    later: Duration,
}

/// Says something as long as it is there.
#[must_use]
pub struct Ongoing {
    state: Arc<Mutex<State>>,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Ongoing {
    pub fn new() -> Self {
        let now = Instant::now();
        let state = State { what: None, since: now, until: Deadline::NEVER, last: now, later: EVERY };
        let state = Arc::new(Mutex::new(state));
        let (end, ended) = channel();
        let seen = Arc::clone(&state);
        Self { state, ticker: Some((end, std::thread::spawn(move || tick(&seen, &ended)))) }
    }

    /// From now on it is this. `later`: the pause between two lines when it has lasted for a minute.
    pub fn begin(&self, what: String, until: Deadline, later: Duration) {
        let mut state = lock(&self.state);
        if state.what.as_ref() != Some(&what) {
            state.since = Instant::now();
        }
        (state.what, state.until, state.later) = (Some(what), until, later);
    }

    pub fn ends_by(&self, until: Deadline) {
        lock(&self.state).until = until;
    }

    /// Something else stands there.
    pub fn was_said(&self) {
        lock(&self.state).last = Instant::now();
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.ticker.take() {
            drop(end);
            // Nothing in it fails, and nothing depends on it.
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tick(state: &Mutex<State>, ended: &Receiver<()>) {
    while ended.recv_timeout(LOOKED) == Err(RecvTimeoutError::Timeout) {
        // Whoever reads slowly is not to make others wait for the lock.
        let line = lock(state).line(Instant::now());
        if let Some(line) = line {
            say!("{line}");
        }
    }
}

impl State {
    /// What is to be said now, if anything.
    fn line(&mut self, now: Instant) -> Option<String> {
        let what = self.what.as_ref()?;
        let lasted = now.saturating_duration_since(self.since);
        let pause = if lasted < SOON { EVERY } else { self.later };
        if now.saturating_duration_since(self.last) < pause {
            return None;
        }
        self.last = now;
        Some(if lasted.as_secs() == 0 { format!("{what}{}", left_words(self.until)) } else { words(what, lasted, self.until) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(began: Instant, later: Duration) -> State {
        State { what: Some("analysing".into()), since: began, until: Deadline::NEVER, last: began, later }
    }

    /// The seconds at which something is said.
    fn said(state: &mut State, began: Instant, until: u64) -> Vec<u64> {
        (0..until).filter(|&second| state.line(began + Duration::from_secs(second)).is_some()).collect()
    }

    #[test]
    fn what_lasts_is_said_again() {
        let began = Instant::now();
        assert_eq!(said(&mut state(began, EVERY), began, 14), [4, 8, 12]);
        let mut lasting = state(began, EVERY);
        assert_eq!(lasting.line(began + Duration::from_secs(5)).as_deref(), Some("analysing: 5 s"));
        lasting.last = began + Duration::from_secs(20);
        assert_eq!(lasting.line(began + Duration::from_secs(21)), None);
    }

    #[test]
    fn a_program_that_runs_for_long_is_left_alone() {
        let began = Instant::now();
        let seconds = said(&mut state(began, SOON), began, 200);
        assert_eq!(seconds.iter().filter(|&&second| second < 60).count(), 14);
        assert!(seconds.iter().filter(|&&second| second >= 60).eq(&[116, 176]));
    }

    #[test]
    fn nothing_is_said_before_anything_goes_on() {
        let ongoing = Ongoing::new();
        assert_eq!(lock(&ongoing.state).line(Instant::now() + SOON), None);
        ongoing.begin("forcing".into(), Deadline::NEVER, EVERY);
        assert_eq!(lock(&ongoing.state).line(Instant::now()), None);
    }
}
