//! Traces as streams of packed events: the vocabulary that analyses at memory speed share, and the formats such traces come in.
//! The formats, their dialects and their limits are described in `docs/trace-format.md`.
#![deny(unsafe_code)]

pub mod checked;
pub mod error;
pub mod event;
pub mod export;
pub mod file;
pub mod format;
pub mod generate;
mod input;
mod intern;
pub mod names;
pub mod rapid_bin;
pub mod sink;
pub mod source;
pub mod speedygo;
pub mod std_text;
mod text;
pub mod to_trace;
mod window;

pub use checked::{CheckOptions, Checked};
pub use error::{Place, TraceError};
pub use event::{Event, Op, Space, order};
pub use export::{WriteOptions, create};
pub use file::{PackedSource, PackedWriter};
pub use format::{Format, OpenOptions, open, read};
pub use generate::{Generator, Preset, Shape};
pub use names::Names;
pub use sink::{Sink, copy};
pub use source::{BLOCK, Slice, Source};
pub use to_trace::{ImportError, Imported, memory_order, to_trace};
