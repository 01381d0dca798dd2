//! Progress on standard error: a line that changes on a terminal, with the time that is left; elsewhere a line every ten seconds
//! at most; nothing when asked to be quiet. What is found, and what the user should know, is a line of its own at once.

use crate::live::Live;
use crate::terminal::{error_is_terminal, say};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use rashomon_event::{Deadline, harmless};
use rashomon_pipeline::{Observer, Progress};
use rashomon_report::text;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Reporter {
    quiet: bool,
    live: Option<Arc<Live>>,
    bar: Option<ProgressBar>,
    until: Deadline,
    /// When there was a line, where none takes another one's place.
    last: Instant,
}

/// Between lines where none takes another one's place.
const EVERY: Duration = Duration::from_secs(10);

impl Reporter {
    pub fn new(quiet: bool) -> Self {
        Self::telling(quiet, None)
    }

    /// Also to a report.
    pub fn telling(quiet: bool, live: Option<Arc<Live>>) -> Self {
        Self { quiet, live, bar: None, until: Deadline::NEVER, last: Instant::now() }
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
    }

    /// What goes on now: shown until the next thing does.
    fn now(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        if !error_is_terminal() {
            if self.last.elapsed() >= EVERY {
                self.last = Instant::now();
                self.line(&format!("{text}{}", left_words(self.until)));
            }
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

    pub fn finish(&mut self) {
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
                self.line(&format!("recording{which}"));
            }
            Progress::Recording { number, of: Some(of) } => self.now(&format!("recording execution {} of {of}", number + 1)),
            Progress::Recording { number, of: None } => self.now(&format!("recording another schedule ({})", number + 1)),
            Progress::Analysing { number: 0, .. } => self.now("analysing"),
            Progress::Analysing { number, .. } => self.now(&format!("analysing recording {}", number + 1)),
            Progress::Recorded { number: 0, events, threads } => self.now(&format!("{events} events of {threads} threads")),
            Progress::Recorded { .. } => {}
            Progress::Analysed { witnesses, without } => {
                self.now(&format!("schedules to force: {witnesses}; findings that no schedule is known for: {without}"));
            }
            Progress::Forcing { id, number, of } => self.now(&format!("forcing {id} ({} of {of})", number + 1)),
            Progress::Provoking { execution, open } => {
                self.now(&format!("provoking: execution {execution}, {open} pairs of accesses undecided"));
            }
            Progress::Decided(finding) => {
                if let Some(grade) = finding.verdict.grade() {
                    self.line(&format!("proven ({}): {}", text::grade_name(grade), finding.id));
                }
            }
            Progress::Until(deadline) => {
                self.until = deadline;
                if let Some(bar) = &self.bar {
                    bar.set_style(style(deadline));
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

fn left_words(until: Deadline) -> String {
    until.left().map_or_else(String::new, |left| format!(" ({} s left at most)", left.as_secs()))
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// How far a long count has come: a line on a terminal, from the first second on, and nothing elsewhere.
pub struct Counter {
    what: &'static str,
    of: Option<u64>,
    shown: bool,
    began: Instant,
    next: Instant,
    bar: Option<ProgressBar>,
}

impl Counter {
    const EVERY: Duration = Duration::from_millis(250);

    pub fn new(quiet: bool, what: &'static str, of: Option<u64>) -> Self {
        let began = Instant::now();
        let shown = !quiet && error_is_terminal();
        Self { what, of, shown, began, next: began + Duration::from_secs(1), bar: None }
    }

    pub fn reached(&mut self, count: u64) {
        // A look at the clock every block of two thousand is cheap.
        if !self.shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Self::EVERY;
        let bar = self.bar.get_or_insert_with(ProgressBar::new_spinner);
        let millions = count as f64 / 1e6;
        let part = match self.of {
            Some(of) if of > 0 => format!(" of {:.1}, {:.0} %", of as f64 / 1e6, 100.0 * count as f64 / of as f64),
            _ => String::new(),
        };
        let speed = millions / self.began.elapsed().as_secs_f64();
        bar.set_message(format!("{millions:.1}{part} million {}, {speed:.1} a second", self.what));
        bar.tick();
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
