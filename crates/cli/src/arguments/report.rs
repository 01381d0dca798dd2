//! What is reported, and how it looks.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The weakest verdict that makes the exit code 66.
    #[arg(long, value_enum, default_value_t = FailOn::Proven)]
    pub fail_on: FailOn,
    /// Which findings are shown.
    #[arg(long, value_enum, default_value_t = Show::Claims)]
    pub show: Show,
    /// Also write the report as JSON; `-`: to standard output (the program's own output then goes to standard error).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub look: LookOptions,
}

/// How much of a finding the report for people shows.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LookOptions {
    /// Show every frame of a stack, with whole names. Without it the frames of libraries are folded.
    #[arg(long, help_heading = "What the report shows")]
    pub full_stacks: bool,
    /// Show every turn of a schedule. Without it turns of threads that take no part, and turns inside libraries, are folded.
    #[arg(long, help_heading = "What the report shows")]
    pub full_schedule: bool,
    /// Tell each finding by itself. Without it races on the same object are one finding with its members.
    #[arg(long, help_heading = "What the report shows")]
    pub ungrouped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Proven,
    Predicted,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// Proven and predicted.
    Claims,
    /// Also suspected and diverged.
    Suspicions,
    /// Also refuted.
    Everything,
}
