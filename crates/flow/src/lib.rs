//! From a recording of a program that the compiler's plugin has instrumented to the steps of [`rashomon_units`].
//!
//! The plugin's tables ([`rashomon_abi::deep`]) say what each function does with its registers; the recording says which way each
//! activation went, and where its accesses went. [`feed`] walks through both side by side. What is not instrumented reads and
//! writes as its recorded accesses say; its result is computed from its arguments and from what it read.
//!
//! Where the two do not fit (accesses that annotations let the runtime ignore, frames that an exception left in code without
//! tables) the walk goes on at the next segment that fits, and [`Walked`] counts what was left out.
#![forbid(unsafe_code)]

mod feed;
mod judge;
mod table;
mod uses;
mod walk;
mod walked;

pub use feed::feed;
pub use judge::{Judged, judge};
pub use table::{Lost, Tables};
pub use uses::uses;
pub use walked::Walked;
