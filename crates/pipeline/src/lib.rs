//! The phases as a library: record → predict → check witnesses → confirm → store.
//!
//! Each phase is a module with one public entry, and borrows what earlier phases made. Whatever is decided is in the store before
//! the next thing starts, so ending the tool at any moment loses nothing that was known.
#![forbid(unsafe_code)]

pub mod analyse;
pub mod check;
pub mod detect;
mod ended;
pub mod enforce;
pub mod engines;
pub mod error;
pub mod explore;
pub mod findings;
pub mod minimise;
pub mod perfetto;
pub mod program;
pub mod progress;
pub mod provoke;
pub mod record;
pub mod replay;
pub mod shard;
pub mod store;
pub mod table;
pub mod timeline;
pub mod trace;
pub mod witness;

pub use check::budget::{Budget, Deadlines};
pub use check::leads::{Gathered, Lead};
pub use check::tally::Tally;
pub use check::{Job, Settings};
pub use engines::case::Case;
pub use error::PipelineError;
pub use explore::{ExploreSettings, Explored, Stops, Strategy};
pub use findings::binaries::Binaries;
pub use minimise::Shortened;
pub use progress::{Observer, Progress};
pub use provoke::{ProvokeSettings, ProvokeTally};
pub use record::packed::Recorded;
pub use record::{Accesses, RecordSettings, Scheduling, UnseenCalls};
pub use store::Store;
pub use store::run::{RecordedRun, RunRecord, ShellText, StoredClient};
pub use store::seal::Origin;
