//! What `accept` puts into which baseline.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AcceptOptions {
    /// Ids of findings, or the beginnings of them.
    #[arg(value_name = "FINDING", required_unless_present = "all")]
    pub findings: Vec<String>,
    /// Accept every proven and predicted finding of the store.
    #[arg(long, conflicts_with = "findings")]
    pub all: bool,
    /// The file with the accepted findings; it is created if there is none.
    #[arg(long, value_name = "FILE", default_value = "rashomon.baseline")]
    pub baseline: PathBuf,
    /// The store with the findings. Default: the latest.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
}
