//! Events of a trace as rows of one table, in a Parquet file: for SQL.
//!
//! A row is plain numbers and words; what they are taken from, this crate does not know. `docs/how-to/sql.md` describes the
//! columns. Parquet is written by the crate `parquet`, column by column and without arrow, in groups of rows; memory is that of
//! one group, whatever the length of the trace.
#![forbid(unsafe_code)]

mod column;
mod error;
mod row;
mod writer;

pub use column::{COLUMNS, Column, Kind, VERSION};
pub use error::TableError;
pub use row::{Row, Text};
pub use writer::{GROUP, TableWriter};
