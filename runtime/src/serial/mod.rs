//! Who runs next, and who waits for whom: the turn, its policies, enforcement of schedules, exploration, snapshots, virtual time,
//! and the threads that wait for each other for ever.
//!
//! Calls: `system`, `report`, `detect`, `record`.

pub mod arrivals;
pub mod blocked;
pub mod calls;
pub mod cancellation;
pub mod clock;
pub mod deadlock;
pub mod debugged;
pub mod elastic;
pub mod endless;
pub mod exploration;
pub mod explore;
pub mod gate;
pub mod goals;
pub mod kept;
pub mod kernel_tasks;
pub mod linger;
pub mod named;
pub mod nudge;
pub mod orders;
pub mod part;
pub mod points;
pub mod policy;
pub mod preconditions;
pub mod replay;
pub mod sched;
pub mod settling;
pub mod shutdown;
pub mod snapshot;
pub mod standstill;
pub mod strategy;
mod trial;
pub mod turn_lock;
pub mod visible;
pub mod wait;
pub mod wanted;
pub mod watchdog;
pub mod world;
