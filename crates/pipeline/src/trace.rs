//! Traces: recordings of our own, and files in any format.

pub use rashomon_abi::HEADER_FILE;
pub use rashomon_trace::{DumpOptions, LoadedTrace, Policy, ProcessFolder, Recording, RunHeader, Stream, processes};

/// Trace files, whoever wrote them.
pub mod file {
    pub use rashomon_packed::{
        CheckOptions, Checked, Event, Format, Generator, Names, Op, OpenOptions, Preset, Shape, Sink, Source, Space, TraceError,
        WriteOptions, copy, create, open,
    };
}
