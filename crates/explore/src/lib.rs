//! Exploration of a real program's schedules: re-executions under the serial policy EXPLORE, each of which makes a list of
//! decisions and leaves a log of all that were made; searches that learn from logs which lists to try next; and a minimiser of
//! the failing ones.
//!
//! Guarantee: a failure is an execution that happened, and its schedule replays it. A search that says it is exhaustive has
//! executed (a representative of) every schedule within its bounds, for visible operations: synchronisation, atomics and the
//! chosen plain accesses.
#![forbid(unsafe_code)]

pub mod batch;
pub mod beside;
pub mod crowd;
pub mod dependence;
pub mod dpor;
pub mod error;
pub mod explorer;
pub mod extension;
pub mod failure;
pub mod file;
pub mod log;
pub mod minimise;
pub mod novelty;
pub mod order_table;
pub mod orders;
pub mod preemptions;
pub mod reads_from;
pub mod sampling;
pub mod schedule;
pub mod search;
pub mod shape;

pub use error::ExploreError;
pub use explorer::{Explorer, Observation, Summary};
pub use failure::{Expected, Failure};
pub use file::{Request, Sampling, VisibleAccesses};
pub use log::{Log, Pending, Step};
pub use minimise::{Critical, Minimised, minimise};
pub use novelty::Novelty;
pub use search::{Plan, Search};
