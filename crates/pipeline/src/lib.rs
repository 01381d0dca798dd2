//! The phases as a library: record → predict → check witnesses → confirm → store.
//!
//! Each phase is a module with one public entry, and borrows what earlier phases made. Whatever is decided is in the store before
//! the next thing starts, so ending the tool at any moment loses nothing that was known.
#![forbid(unsafe_code)]

mod alike;
pub mod analyse;
pub mod binaries;
pub mod budget;
pub mod check;
pub mod compose;
pub mod describe;
pub mod error;
mod examine;
pub mod explore;
pub mod failure;
mod gather;
pub mod identity;
pub mod imported;
pub mod libraries;
mod lock;
pub mod minimise;
mod misuse;
pub mod modules;
mod named;
pub mod novelty;
pub mod plan;
pub mod progress;
pub mod prove;
pub mod provoke;
mod provoke_blocked;
mod provoke_catch;
mod provoke_plan;
mod provoke_vary;
pub mod pursue;
pub mod record;
pub mod recorded;
mod recorded_processes;
pub mod replay;
pub mod run;
pub mod rust;
pub mod seal;
pub mod store;
pub mod symbols;
pub mod timed;
mod witness_steps;
pub mod witnesses;

pub use binaries::Binaries;
pub use budget::{Budget, Deadlines};
pub use check::{Gathered, Job, Lead, Settings, Tally};
pub use error::PipelineError;
pub use explore::{ExploreSettings, Explored, Stops, Strategy};
pub use minimise::Shortened;
pub use progress::{Observer, Progress};
pub use provoke::{ProvokeSettings, ProvokeTally};
pub use record::{Accesses, RecordSettings, Scheduling};
pub use recorded::Recorded;
pub use run::{RecordedRun, RunRecord, ShellText, StoredClient};
pub use seal::Origin;
pub use store::Store;
