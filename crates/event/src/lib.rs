//! The vocabulary every other crate speaks: what happened (events, traces), what might (candidates, witnesses), how to
//! make it happen (schedules) and what the user is told (findings). Data and small invariants only; no I/O, no algorithms.
#![forbid(unsafe_code)]

pub mod candidate;
pub mod counted;
pub mod deadline;
pub mod event;
pub mod event_set;
pub mod events;
pub mod finding;
pub mod finding_id;
pub mod harmless;
pub mod ids;
pub mod library;
pub mod paste;
pub mod path_text;
pub mod program_order;
pub mod provocation;
pub mod schedule;
pub mod timeline;
pub mod trace;
pub mod verdict;

pub use candidate::{Candidate, CandidateKind, Edge, Evidence, Stand, Witness, WitnessLevel};
pub use counted::counted;
pub use deadline::Deadline;
pub use event::{Access, AccessClass, AtomicOp, Event, EventKind, LockMode, MemoryOrder, OtherOp};
pub use event_set::{EventSet, NumberedEvents};
pub use events::{Events, Like};
pub use finding::{Finding, FindingKind, Frame, Harm, Side};
pub use finding_id::{FindingId, NoFindingId};
pub use harmless::harmless;
pub use ids::{Address, ContextId, EventIndex, ObjectId, ProcessPath, SiteId, ThreadId, ThreadPath};
pub use paste::{pasted, quoted};
pub use path_text::{path_bytes, path_of, path_text};
pub use program_order::ProgramOrder;
pub use provocation::{Descriptor, First, Provocation};
pub use schedule::{CodePlace, Goal, KeptPlace, Landmark, ObjectName, Place, Position, Schedule, Surroundings, Turn};
pub use trace::{
    Context, Gap, LoopKind, LoopMark, MadeLock, Mode, ModuleInfo, Object, ObjectKind, PlainValue, ReadUse, Site, ThreadInfo,
    Trace,
};
pub use verdict::{Grade, Replays, Trial, Verdict};
