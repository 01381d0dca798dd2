//! Traces as tables of events, in Parquet files for SQL. `docs/how-to/sql.md` describes the columns.
//!
//! Recordings and trace files have the same columns; what a trace does not tell is NULL. An access of several variables has a
//! row for each, so that two accesses overlap exactly if they have a variable in common ([`crate::record::packed`] says what
//! variables of a recording are).
//!
//! Memory: a group of rows, and what the trace itself takes: of a trace file its names, a recording as a whole.

mod file;
mod held;
mod recording;

pub use file::of_file;
use rashomon_event::MemoryOrder;
use rashomon_packed::TraceError;
pub use rashomon_table::TableError;
pub use recording::of_recording;

/// Why a table is not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// What was written, to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub events: u64,
    pub rows: u64,
}

/// Kinds of texts.
mod kind {
    pub const THREAD: u8 = 1;
    pub const VARIABLE: u8 = 2;
    pub const LOCK: u8 = 3;
    pub const OBJECT: u8 = 4;
    pub const REGION: u8 = 5;
    pub const LOCATION: u8 = 6;
    pub const FUNCTION: u8 = 7;
    pub const FILE: u8 = 8;
}

/// As C++ calls them.
const fn order_words(order: MemoryOrder) -> &'static str {
    match order {
        MemoryOrder::Relaxed => "relaxed",
        MemoryOrder::Consume => "consume",
        MemoryOrder::Acquire => "acquire",
        MemoryOrder::Release => "release",
        MemoryOrder::AcqRel => "acq_rel",
        MemoryOrder::SeqCst => "seq_cst",
    }
}
