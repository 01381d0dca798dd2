//! Traces as streams of packed events: the vocabulary that analyses at memory speed share, and the formats such traces come in.
#![forbid(unsafe_code)]

pub mod error;
pub mod event;
pub mod names;
pub mod source;
pub mod to_trace;

pub use error::TraceError;
pub use event::{Event, Op, Space, order};
pub use names::Names;
pub use source::{BLOCK, Slice, Source};
pub use to_trace::{ImportError, Imported, to_trace};
