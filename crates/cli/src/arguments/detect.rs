//! `rashomon detect`.

use super::{ClientOptions, Filter};
use clap::{Args, ValueEnum};
use rashomon_report::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DetectOptions {
    #[command(flatten)]
    pub client: ClientOptions,
    /// What makes two conflicting accesses a race: no happens-before order (hb), no common lock (lockset), or neither a common
    /// lock nor an order without locks (hybrid).
    #[arg(long, value_enum, default_value_t = Detector::Hb)]
    pub detector: Detector,
    /// Which accesses are left out before detection: none, or those that are redundant (tree).
    #[arg(long, value_enum, default_value_t = Filter::None)]
    pub filter: Filter,
    /// Load the runtime before the program begins: for libraries with instrumentation in a program that has none, such as Python
    /// with an extension module.
    #[arg(long)]
    pub preload: bool,
    /// The format of reports.
    #[arg(long, value_parser = super::formats(), default_value = "text")]
    pub format: &'static dyn Format,
    /// A suppression file in ThreadSanitizer's format.
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// List the suppressions that matched, at the end.
    #[arg(long)]
    pub print_suppressions: bool,
    /// The exit code if something was reported (0 to 255; 0: the program's own). Default: 66.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u8))]
    pub exitcode: Option<u8>,
    /// End the program at the first report.
    #[arg(long)]
    pub halt_on_error: bool,
    /// Write reports to FILE.PID, one file per process. Default: standard error.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Also show where the first mutex of each pair in a deadlock was locked.
    #[arg(long)]
    pub second_deadlock_stack: bool,
    /// Any other option of ThreadSanitizer. May be repeated.
    #[arg(long = "option", short = 'O', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// For scripts written for ThreadSanitizer: histories need no size here.
    #[arg(long, hide = true, value_name = "N")]
    pub history_size: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detector {
    Hb,
    Lockset,
    Hybrid,
}
