//! What `merge` makes one report of.

use super::ReportOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct MergeOptions {
    /// Folders that checks were kept in: stores, or what --per-test-case leaves.
    #[arg(value_name = "STORE", required = true)]
    pub stores: Vec<PathBuf>,
    #[command(flatten)]
    pub report: ReportOptions,
}
