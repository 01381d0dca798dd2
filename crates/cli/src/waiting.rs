//! Progress of what does not tell how far it has come: what goes on, for how long, and how long it may take still. A line on a
//! terminal, from the first second on; elsewhere a line every four seconds; nothing when asked to be quiet.

use crate::progress::{EVERY, left_words};
use crate::terminal::{error_is_terminal, say};
use indicatif::ProgressBar;
use rashomon_event::{Deadline, harmless};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lasts as long as it is there.
#[must_use]
pub struct Waiting(Option<(Sender<()>, JoinHandle<()>)>);

impl Waiting {
    const FIRST: Duration = Duration::from_secs(1);
    const REDRAWN: Duration = Duration::from_millis(250);

    /// `until`: when it is over, at the latest.
    pub fn new(quiet: bool, what: &str, until: Deadline) -> Self {
        if quiet {
            return Self(None);
        }
        let (end, ended) = channel();
        let what = harmless(what).into_owned();
        Self(Some((end, std::thread::spawn(move || tell(&what, until, &ended)))))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // Nothing in it fails, and nothing depends on it.
            let _ = thread.join();
        }
    }
}

fn tell(what: &str, until: Deadline, ended: &Receiver<()>) {
    let began = Instant::now();
    let on_terminal = error_is_terminal();
    let (first, further) = if on_terminal { (Waiting::FIRST, Waiting::REDRAWN) } else { (EVERY, EVERY) };
    let mut bar: Option<ProgressBar> = None;
    let mut pause = first;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = further;
        let words = words(what, began.elapsed(), until);
        if !on_terminal {
            say!("{words}");
            continue;
        }
        let bar = bar.get_or_insert_with(ProgressBar::new_spinner);
        bar.set_message(words);
        bar.tick();
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Such as `analysing: 12 s (48 s left at most)`.
pub fn words(what: &str, took: Duration, until: Deadline) -> String {
    format!("{what}: {} s{}", took.as_secs(), left_words(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_goes_on_and_for_how_long() {
        assert_eq!(words("analysing", Duration::from_secs(12), Deadline::NEVER), "analysing: 12 s");
        let bounded = words("analysing", Duration::from_secs(12), Deadline::within(Duration::from_secs(60)));
        assert!(bounded.starts_with("analysing: 12 s (") && bounded.ends_with(" s left at most)"), "{bounded}");
        drop(Waiting::new(false, "analysing", Deadline::NEVER));
    }
}
