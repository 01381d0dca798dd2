//! Progress on standard error: a line that changes on a terminal, with the time that is left; elsewhere a line every four
//! seconds, also while one thing lasts; nothing when asked to be quiet. What is found, and what the user should know, is a line
//! of its own at once.

use crate::live::Live;
use crate::ongoing::Ongoing;
use crate::terminal::{error_is_terminal, say};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use rashomon_event::{Deadline, FindingId, counted, harmless};
use rashomon_pipeline::{Observer, Progress};
use rashomon_report::text;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct Reporter {
    quiet: bool,
    live: Option<Arc<Live>>,
    bar: Option<ProgressBar>,
    /// Where no line takes another one's place.
    ongoing: Option<Ongoing>,
    until: Deadline,
    /// Proofs that were told: engines come to the same one.
    told: BTreeSet<(FindingId, &'static str)>,
}

/// What was explored so far, for whoever is told of an interruption.
static EXPLORED: Mutex<Option<String>> = Mutex::new(None);

/// What was explored until now, in words; `None`: nothing.
pub fn explored() -> Option<String> {
    EXPLORED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn explored_words(schedules: u64, found: usize) -> String {
    let schedules = counted(schedules, "schedule");
    if found == 0 {
        format!("{schedules}, none failed")
    } else {
        format!("{schedules}, {} found", counted(found as u64, "failure"))
    }
}

/// Between lines where none takes another one's place.
pub const EVERY: Duration = Duration::from_secs(4);

/// The same behind the first minute of a program that writes where we do: it may be a server.
const RARELY: Duration = Duration::from_secs(60);

impl Reporter {
    pub fn new(quiet: bool) -> Self {
        Self::telling(quiet, None)
    }

    /// Also to a report.
    pub fn telling(quiet: bool, live: Option<Arc<Live>>) -> Self {
        Self { quiet, live, bar: None, ongoing: None, until: Deadline::NEVER, told: BTreeSet::new() }
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
        if let Some(ongoing) = &self.ongoing {
            ongoing.was_said();
        }
    }

    /// What goes on now: shown until the next thing does.
    fn now(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        if !error_is_terminal() {
            self.lasts(text, EVERY);
            return;
        }
        let until = self.until;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(style(until));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(harmless(text).into_owned());
    }

    /// What is said of it again and again, as long as nothing else is.
    fn lasts(&mut self, text: &str, later: Duration) {
        self.ongoing.get_or_insert_with(Ongoing::new).begin(harmless(text).into_owned(), self.until, later);
    }

    pub fn finish(&mut self) {
        self.ongoing = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Reporter {
    fn progress(&mut self, progress: Progress<'_>) {
        // First, so that what is said is in it.
        if let Some(live) = &self.live {
            live.progress(&progress);
        }
        match progress {
            Progress::Recording { number: 0, of } => {
                // The terminal belongs to the program now.
                self.finish();
                let which = of.filter(|&of| of > 1).map(|of| format!(" execution 1 of {of}")).unwrap_or_default();
                let what = format!("recording{which}");
                self.line(&what);
                if !self.quiet && !error_is_terminal() {
                    self.lasts(&what, RARELY);
                }
            }
            Progress::Recording { number, of: Some(of) } => self.now(&format!("recording execution {} of {of}", number + 1)),
            Progress::Recording { number, of: None } => self.now(&format!("recording another schedule ({})", number + 1)),
            Progress::Analysing { number: 0, .. } => self.now("analysing"),
            Progress::Analysing { number, .. } => self.now(&format!("analysing recording {}", number + 1)),
            Progress::Recorded { number: 0, events, threads } => {
                let threads = counted(threads as u64, "thread");
                self.now(&format!("analysing {} of {threads}", counted(events as u64, "event")));
            }
            Progress::Recorded { .. } => {}
            Progress::Working(what) => self.now(what),
            Progress::Analysed { witnesses, without } => {
                self.now(&format!("schedules to force: {witnesses}; findings that no schedule is known for: {without}"));
            }
            Progress::Forcing { id, number, of } => self.now(&format!("forcing {id} ({} of {of})", number + 1)),
            Progress::Provoking { execution, open } => {
                self.now(&format!("provoking: execution {execution}, {open} pairs of accesses undecided"));
            }
            Progress::Exploring { schedules, found } => {
                let words = explored_words(schedules, found);
                self.now(&format!("exploring: {words}"));
                *EXPLORED.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
            }
            Progress::Decided(finding) => {
                if let Some(grade) = finding.verdict.grade().map(text::grade_name)
                    && self.told.insert((finding.id.clone(), grade))
                {
                    self.line(&format!("proven ({grade}): {}", finding.id));
                }
            }
            Progress::Until(deadline) => {
                self.until = deadline;
                if let Some(bar) = &self.bar {
                    bar.set_style(style(deadline));
                }
                if let Some(ongoing) = &self.ongoing {
                    ongoing.ends_by(deadline);
                }
            }
            Progress::Replaced(_) | Progress::Numbers(_) => {}
            Progress::Note(note) => self.line(note),
        }
    }
}

/// The line on a terminal. It is drawn anew with each tick, so that the time runs.
fn style(until: Deadline) -> ProgressStyle {
    let left = move |_: &ProgressState, line: &mut dyn fmt::Write| {
        // A line that cannot be drawn is drawn again soon.
        let _ = line.write_str(&left_words(until));
    };
    ProgressStyle::with_template("{spinner} {msg}{left}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("left", left)
}

pub fn left_words(until: Deadline) -> String {
    until.left().map_or_else(String::new, |left| format!(" ({} s left at most)", left.as_secs()))
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// How far a long count has come: a line on a terminal, from the first second on; elsewhere a line every four seconds.
pub struct Counter {
    what: &'static str,
    of: Option<u64>,
    quiet: bool,
    began: Instant,
    next: Instant,
    bar: Option<ProgressBar>,
}

impl Counter {
    const REDRAWN: Duration = Duration::from_millis(250);

    pub fn new(quiet: bool, what: &'static str, of: Option<u64>) -> Self {
        let began = Instant::now();
        let first = if error_is_terminal() { Duration::from_secs(1) } else { EVERY };
        Self { what, of, quiet, began, next: began + first, bar: None }
    }

    pub fn reached(&mut self, count: u64) {
        // A look at the clock every block of two thousand is cheap.
        if self.quiet || Instant::now() < self.next {
            return;
        }
        let words = counter_words(count, self.of, self.what, self.began.elapsed());
        if !error_is_terminal() {
            self.next = Instant::now() + EVERY;
            say!("{words}");
            return;
        }
        self.next = Instant::now() + Self::REDRAWN;
        let bar = self.bar.get_or_insert_with(ProgressBar::new_spinner);
        bar.set_message(words);
        bar.tick();
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Such as `2.0 of 8.0 million events, 25 %, 0.5 a second (12 s left)`.
fn counter_words(count: u64, of: Option<u64>, what: &str, took: Duration) -> String {
    let (millions, speed) = (count as f64 / 1e6, count as f64 / took.as_secs_f64().max(1e-3));
    let Some(of) = of.filter(|&of| of > 0) else {
        return format!("{millions:.1} million {what}, {:.1} a second", speed / 1e6);
    };
    let part = 100.0 * count as f64 / of as f64;
    let left = of.saturating_sub(count) as f64 / speed.max(1.0);
    format!("{millions:.1} of {:.1} million {what}, {part:.0} %, {:.1} a second ({left:.0} s left)", of as f64 / 1e6, speed / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_say_how_long_it_takes() {
        let took = Duration::from_secs(4);
        let words = counter_words(2_000_000, Some(8_000_000), "events", took);
        assert_eq!(words, "2.0 of 8.0 million events, 25 %, 0.5 a second (12 s left)");
        assert_eq!(counter_words(2_000_000, None, "events", took), "2.0 million events, 0.5 a second");
        assert!(counter_words(0, Some(8), "events", Duration::ZERO).ends_with("(8 s left)"));
    }
}
