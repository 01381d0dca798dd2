//! The life of a process of the program: start, fork, end. What has a state of its own is begun, renewed and closed here.
//!
//! Calls: `system`, `record`, `report`, `detect`, `serial`, `provoke`, `threads`, `intercept`, `openmp`.

pub mod fork;
pub mod init;
mod sources;
