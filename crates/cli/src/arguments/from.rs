//! A check of what is recorded already.

use clap::Args;
use std::path::PathBuf;

/// Of `check`.
#[derive(Clone, Debug, Args)]
pub struct FromOptions {
    /// Begin with the recordings of this store in place of a first one, as of an execution that is rare: they are copied into the
    /// new store, count as its first ones, and the check goes on from there. Without PROG the store says what is executed, and
    /// how; with it, PROG and its arguments have to be the recorded ones. --quantum is that of the store.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["per_test_case", "queue"], help_heading = "Recording")]
    pub from: Option<PathBuf>,
    /// With --from: run the store's program although the store was not recorded by you on this machine.
    #[arg(long, requires = "from", help_heading = "Recording")]
    pub trust: bool,
}
