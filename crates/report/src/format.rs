//! What a format is. A new one is a file of this crate and a line in its `formats!`.
//!
//! The whole of a small one, `counted.rs`, whose line is `counted: Counted,`:
//!
//! ```
//! use rashomon_report::format::{Format, Options, Report};
//!
//! /// How many findings there are.
//! #[derive(Debug)]
//! pub struct Counted;
//!
//! impl Format for Counted {
//!     fn name(&self) -> &'static str {
//!         "counted"
//!     }
//!
//!     fn about(&self) -> &'static str {
//!         "the number of findings"
//!     }
//!
//!     fn report(&self, report: Report<'_>, _options: &Options) -> String {
//!         format!("{}\n", report.findings.len())
//!     }
//! }
//!
//! let run = rashomon_report::summary::RunSummary::without_run();
//! assert_eq!(Counted.report(Report { findings: &[], run: &run }, &Options::default()), "0\n");
//! ```

use crate::FORMATS;
use crate::analysis::Analysis;
use crate::frame::FRAME_FORMAT;
use crate::order::Shown;
use crate::sources::Excerpts;
use crate::summary::RunSummary;
use crate::timeline::Timelines;
use crate::warning::Warning;
use rashomon_event::Finding;
use std::fmt::Debug;

/// The format of that name.
pub fn named(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

/// The one model of a report: what was found, and the run that it came from.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub findings: &'a [Finding],
    pub run: &'a RunSummary,
}

/// How a report looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub shown: Shown,
    /// ANSI colours.
    pub colour: bool,
    /// Columns of the terminal; lines are wrapped there. What is no terminal has no end, so that whoever searches finds.
    pub width: usize,
    /// What formats that show sources show of them.
    pub excerpts: Excerpts,
    /// What formats that show timelines draw.
    pub timelines: Timelines,
    /// Paths below this folder are seen from it; empty: none.
    pub folder: String,
    /// Every frame, with whole names.
    pub full_stacks: bool,
    /// Every turn of a schedule.
    pub full_schedule: bool,
    /// Findings of one cause stand alone.
    pub ungrouped: bool,
    /// Pairs of an analysis that are shown.
    pub limit: usize,
    /// Of the frames of online detection.
    pub strip_path_prefix: String,
    pub stack_trace_format: String,
    pub vs_style: bool,
    pub print_summary: bool,
    pub second_deadlock_stack: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shown: Shown::Claims,
            colour: false,
            width: usize::MAX,
            excerpts: Excerpts::default(),
            timelines: Timelines::default(),
            folder: String::new(),
            full_stacks: false,
            full_schedule: false,
            ungrouped: false,
            limit: usize::MAX,
            strip_path_prefix: String::new(),
            stack_trace_format: FRAME_FORMAT.to_owned(),
            vs_style: false,
            print_summary: true,
            second_deadlock_stack: false,
        }
    }
}

/// A warning as text, in the parts in which the runtime prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// A line without its end; the program may want to print it itself.
    pub summary: Option<String>,
    pub tail: String,
}

/// A format. It needs no more than [`Format::report`]: what online detection and the linear analyses find comes to it as
/// findings, unless it has more to say of them. No I/O, no clock, no environment: the same input gives the same bytes.
pub trait Format: Debug + Sync {
    /// As users write it.
    fn name(&self) -> &'static str;

    /// Whom it is for, in a help text.
    fn about(&self) -> &'static str;

    /// Findings, in the order of [`crate::by_importance`], and the run.
    fn report(&self, report: Report<'_>, options: &Options) -> String;

    /// One warning of a process under online detection, which goes on.
    fn warning(&self, warning: &Warning, process: u64, options: &Options) -> Rendered {
        let findings = [warning.finding(process)];
        let options = Options { shown: Shown::Everything, ..options.clone() };
        let text = self.report(Report { findings: &findings, run: &RunSummary::without_run() }, &options);
        Rendered { text, ..Rendered::default() }
    }

    /// What analyses in one pass found in a trace.
    fn analysis(&self, analysis: &Analysis, options: &Options) -> String {
        let run = RunSummary { events: analysis.events, notes: analysis.notices.clone(), ..RunSummary::without_run() };
        let options = Options { shown: Shown::Everything, ..options.clone() };
        self.report(Report { findings: &analysis.findings(), run: &run }, &options)
    }

    /// It shows lines of sources, which whoever asks for a report reads ([`Excerpts`]).
    fn shows_sources(&self) -> bool {
        false
    }

    /// It shows executions, which whoever asks for a report reads ([`Timelines`]).
    fn shows_timelines(&self) -> bool {
        false
    }

    /// Nothing but reports may stand in what is written: no totals, no colours.
    fn is_for_machines(&self) -> bool {
        false
    }
}
