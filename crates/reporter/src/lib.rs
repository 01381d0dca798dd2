//! The host's half of online detection's reports.
//!
//! The runtime inside the program finds something and sends what belongs to it as addresses ([`rashomon_abi::report`]). Here
//! addresses get names ([`names`]), suppressions decide whether anybody wants to know ([`suppressions`]), and a format of
//! `rashomon_report` writes it down. [`session`] is the conversation, without any I/O; [`serve`] holds it over two streams.
#![forbid(unsafe_code)]

pub mod decode;
pub mod error;
pub mod names;
pub mod options;
pub mod serve;
pub mod session;
pub mod suppressions;

pub use error::ReporterError;
pub use serve::serve;
pub use session::Session;
pub use suppressions::Suppressions;
