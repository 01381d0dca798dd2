//! What the user reads. One model, [`Report`] of [`rashomon_event::Finding`] and [`RunSummary`], one file a format, each a line in
//! [`format::FORMATS`]. Online detection's warnings and what the linear analyses find have more to say of themselves in
//! [`warning`] and [`analysis`], and are findings for every format that does not ask. No I/O, no clock, no environment: the same
//! input gives the same bytes.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod format;
pub mod frame;
pub mod json;
pub mod lost;
pub mod order;
pub mod summary;
pub mod text;
mod told;
pub mod tsan;
pub mod warning;

pub use format::{FORMATS, Format, Options, Rendered, Report, named};
pub use lost::Lost;
pub use order::{Shown, by_importance};
pub use summary::{Counts, ProgramExit, RunSummary, Status};
