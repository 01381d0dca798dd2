//! Progress on standard error: a line that changes on a terminal, plain lines elsewhere, nothing when asked to be quiet.

use indicatif::{ProgressBar, ProgressStyle};
use rashomon_event::Verdict;
use rashomon_pipeline::{Observer, Progress};
use rashomon_report::text;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

pub struct Reporter {
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Reporter {
    pub fn new(quiet: bool) -> Self {
        Self { quiet, bar: None }
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("rashomon: {text}")),
            None => eprintln!("rashomon: {text}"),
        }
    }

    /// What goes on now: shown until the next thing does.
    fn now(&mut self, text: String) {
        if self.quiet {
            return;
        }
        if !std::io::stderr().is_terminal() {
            self.line(&text);
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(text);
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Reporter {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Recording { number, of } => {
                // The terminal belongs to the program now.
                self.finish();
                let which = if of > 1 { format!(" execution {} of {of}", number + 1) } else { String::new() };
                self.line(&format!("recording{which}"));
            }
            Progress::Analysing { number, of } => {
                let which = if of > 1 { format!(" recording {} of {of}", number + 1) } else { String::new() };
                self.now(format!("analysing{which}"));
            }
            Progress::Recorded { events, threads, .. } => self.now(format!("{events} events of {threads} threads")),
            Progress::Analysed { witnesses, without } => {
                self.now(format!("{witnesses} schedules to force, {without} findings without one"));
            }
            Progress::Forcing { id, number, of } => self.now(format!("forcing {id} ({} of {of})", number + 1)),
            Progress::Provoking { execution, open } => {
                self.now(format!("provoking: execution {execution}, {open} pairs of accesses undecided"));
            }
            Progress::Decided(finding) => {
                if let Verdict::Proven { grade } = finding.verdict {
                    self.line(&format!("proven ({}): {}", text::grade_name(grade), finding.id));
                }
            }
            Progress::Note(note) => self.line(note),
        }
    }
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
        let shown = !quiet && std::io::stderr().is_terminal();
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
