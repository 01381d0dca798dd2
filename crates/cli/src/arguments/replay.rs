//! What is replayed, and under which debugger.

use super::seconds;
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("debugger").args(["gdb", "lldb", "vscode"]))]
pub struct ReplayOptions {
    /// The finding's id, or the beginning of it.
    #[arg(required_unless_present = "recording")]
    pub finding: Option<String>,
    /// Replay the first recording of this store instead of a finding. Default store: the latest.
    #[arg(long, value_name = "STORE", num_args = 0..=1, conflicts_with_all = ["finding", "store", "debugger", "times"])]
    pub recording: Option<Option<PathBuf>>,
    /// With --recording: record the replay into this folder.
    #[arg(long, short, value_name = "DIR", requires = "recording")]
    pub output: Option<PathBuf>,
    /// The store with the finding. Default: the latest.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Run under gdb and stop where the finding happens.
    ///
    /// `rashomon threads`, `rashomon step-turn`, `rashomon back-to TURN`, `rashomon snapshot` and `rashomon watch` are commands
    /// there; `help rashomon` says what they do.
    #[arg(long)]
    pub gdb: bool,
    /// The same under lldb: `lldb` in PATH, or the highest `lldb-VERSION`.
    #[arg(long)]
    pub lldb: bool,
    /// Print a launch.json for Visual Studio Code that runs this under lldb (by lldb-dap) or gdb (by the extension cpptools).
    ///
    /// Scripts that it names, and what its executions write, are in the store.
    #[arg(long)]
    pub vscode: bool,
    /// Under a debugger: stop when so many turns are over, before the finding happens. 0: where the program starts.
    #[arg(long, value_name = "TURN", requires = "debugger")]
    pub back_to: Option<u64>,
    /// Replay N times, and say how many showed the finding.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "debugger")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub times: u32,
    /// Seconds after which one execution is ended. Default: 10 times the recorded execution, plus 5.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Run the store's program although the store was not recorded by you on this machine.
    #[arg(long)]
    pub trust: bool,
    /// Make the session of an execution under a debugger, which asks for it by itself.
    #[arg(long, value_name = "SESSION", hide = true, conflicts_with_all = ["debugger", "recording", "times"])]
    pub prepare: Option<PathBuf>,
    /// Further arguments for the debugger, such as `-batch -ex 'thread apply all bt'`.
    #[arg(last = true, value_name = "DEBUGGER ARGUMENTS", requires = "debugger", conflicts_with = "vscode")]
    #[arg(allow_hyphen_values = true)]
    pub debugger_arguments: Vec<OsString>,
}
