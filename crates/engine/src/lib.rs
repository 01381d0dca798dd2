//! Analyses that take one pass over a stream of packed events, each in a module that cites its rules.
#![deny(unsafe_code)]

pub mod analysis;
pub mod clock;
mod conflicts;
pub mod cp;
mod cycles;
pub mod detector;
pub mod driver;
mod eraser;
mod guard;
mod hints;
mod history;
pub mod hybrid;
mod latest;
pub mod lock_sets;
mod meter;
pub mod race;
pub mod redundancy;
pub mod running;
mod sections;
pub mod serialisability;
pub mod synchronisation;
mod table;
mod threads;
pub mod transactions;
pub mod tree_clock;
mod variables;
mod versions;
pub mod wcp;

pub use analysis::Analysis;
pub use clock::MAX_EVENTS;
pub use cp::Cp;
pub use detector::{Detector, Found, Wanted};
pub use driver::{EngineError, LinearResults, Progress, Report, Settings, analyse};
pub use hybrid::Hybrid;
pub use race::{Access, Pair, Race, Races};
pub use running::{Findings, Kind};
pub use wcp::Wcp;
