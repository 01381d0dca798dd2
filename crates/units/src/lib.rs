//! Races on correlated variables.
//!
//! Jannesari, *Detection of High-Level Synchronization Anomalies in Parallel Programs*, International Journal of Parallel
//! Programming, 2014. Sections and figures in this crate are those of this paper. `docs/theory-correlated.md` has the
//! definitions, what the answer is worth, and the numbered deviations.
//!
//! [`Analysis`] takes the [`Event`]s of one execution and finds [`ExtendedRace`]s: parallel computational units that access one
//! correlated set, one of them modifying it, without a lock that both hold throughout. Units and sets are inferred from data and
//! control dependences; sets can be declared as well.
//!
//! An extended race is a suspicion: that the unit was meant to be atomic, and that the set belongs together, is a hypothesis.
#![forbid(unsafe_code)]

mod accesses;
mod analysis;
mod correlation;
mod detect;
mod event;
mod forest;
mod locks;
mod memory;
mod moments;
mod options;
mod order;
mod ranges;
mod report;
mod sharing;
mod steps;
mod sweep;
mod synchronisation;
mod threads;
mod world;

pub use analysis::{Analysis, UnitView};
pub use correlation::{CoAccess, CoAccessOptions, Correlation, Structures};
pub use event::{Bytes, Event, Line, Lock, Meeting, Mode, Object, Register, Step, Thread};
pub use locks::{Counts, LockSet};
pub use options::{Detection, Limits, Options, Overwriting, SharedDependences};
pub use report::{Dependence, ExtendedRace, Link, Reason, Side, Summary};
pub use sharing::Sharing;
