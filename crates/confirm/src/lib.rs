//! The host side of forcing: turns a witness or a recording into a schedule, starts the program under it, supervises the
//! execution and says what came of it.
//!
//! A proof is an execution that happened, never an argument: what this crate calls proven was reported by the runtime from
//! inside the program, and (unless asked otherwise) it was made to happen twice.
#![deny(unsafe_code)]

pub mod client;
mod descendants;
pub mod enforce;
pub mod error;
pub mod execution;
pub mod force;
mod keeper;
pub mod outcome;
mod process;
mod process_tree;
pub mod provoke;
pub mod schedule;
pub mod snapshot;
pub mod unordered;
mod waiting;

pub use client::{Client, ClientEnding, Served, ServerEnding};
pub use error::ConfirmError;
pub use execution::{Ending, Execution, Input, Output, Program, Time, execute, no_session};
pub use force::{Attempt, Confirmation, Forcing, confirm, force};
pub use keeper::{keep, quit_terminates};
pub use outcome::{Divergence, Outcome};
pub use process::kill_running;
pub use provoke::{ProvokedRun, provoke};
pub use schedule::{Plan, Planner};
pub use snapshot::Snapshot;
pub use unordered::unordered_pair;
