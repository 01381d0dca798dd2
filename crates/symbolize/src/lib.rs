//! From addresses of a recorded process to the program's source, offline: the module files are read when a report is made.
#![forbid(unsafe_code)]

mod blocks;
pub mod demangle;
mod dwarf;
pub mod error;
mod in_block;
mod locals;
mod members;
pub mod symbolizer;
mod symbols;
mod variables;

pub use demangle::demangle;
pub use error::SymbolizeError;
pub use in_block::{InBlock, MemberName};
pub use locals::{Local, StackFrame};
pub use symbolizer::{DataSymbol, Symbolizer, Variable};
pub use symbols::{CachedObject, build_id, with_object};
