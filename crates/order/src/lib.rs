//! Partial orders over a trace and what follows from them: happens-before, lock sets, hybrid candidates, the lock graph.
#![forbid(unsafe_code)]

pub mod candidates;
pub mod clock;
mod contention;
pub mod gaps;

pub mod happens_before;
pub mod history;
pub mod lives;
pub mod lock_graph;
pub mod lockset;
pub mod pairs;
pub mod release_sequence;
mod semaphores;
pub mod shared_memory;
pub mod spanning;
pub mod targets;

pub use candidates::{hybrid, hybrid_until, races, races_if_atomic, races_until};
pub use clock::{ThreadClock, VectorClock};
pub use gaps::kept;
pub use happens_before::{Edges, HappensBefore, Model, ReleaseSequences, unordered};
pub use lock_graph::{Dependency, Instance, LockGraph, Pattern, Wish};
pub use lockset::{Held, LockSetId, LockSets, held_at};
pub use pairs::{OTHERS, SitePair};
pub use semaphores::initial_counts;
pub use shared_memory::{GRANULE, SharedMemory};
