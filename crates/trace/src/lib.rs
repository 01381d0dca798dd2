//! The recording on disk: opening and validating a session, loading it as a trace, writing one, and the control file that asks
//! for a run. The bytes are specified in `docs/trace-format.md` and declared in `rashomon_abi`.
#![deny(unsafe_code)]

mod advance;
mod bytes;
mod chunks;
mod conditions;
pub mod control;
mod control_provoke;
mod convert;
mod counted;
pub mod crash;
mod decoded;
pub mod dump;
pub mod error;
mod freed;
mod gaps;
pub mod header;
pub mod identity;
mod intern;
mod load;
pub mod loaded;
mod map;
pub mod misuse;
pub mod modules;
pub mod normalise;
mod notes;
mod places;
pub mod processes;
pub mod provoked;
pub mod recording;
pub mod space;
pub mod stat;
pub mod stream;
mod threads;
pub mod turns;
mod values;
pub mod verify;
pub mod write;

pub use chunks::{Fault, FaultKind};
pub use control::{After, ControlRequest, Enforcement, Policy};
pub use control_provoke::{ProvokeRequest, Watched};
pub use crash::Crash;
pub use dump::DumpOptions;
pub use error::{ControlError, TraceError};
pub use header::{Divergence, DivergenceKind, Origin, RunHeader, RunMode, RunOutcome, RunState};
pub use identity::{SyncKind, SyncObject, SyncObjects};
pub use loaded::{
    BlockedRecord, Flow, FlowRecord, FrameRecord, GoalRecord, InputFile, InputRecord, LifeRecord, LoadedTrace, Shortcoming,
};
pub use misuse::{Misuse, MisuseRecord, Moment};
pub use normalise::Names;
pub use notes::RunNotes;
pub use processes::{ProcessFolder, process_folder, processes};
pub use provoked::{Catch, CatchSide, DescriptorState, HoldEnd, Provoked, Step};
pub use recording::{Recording, Stream, stream_file_name};
pub use stat::Statistics;
pub use verify::Verification;
pub use write::{SessionWriter, StreamWriter};
