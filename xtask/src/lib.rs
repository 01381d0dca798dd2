//! What the project's own commands share: where things are, and which packages they need.
#![forbid(unsafe_code)]

pub mod packages;
pub mod plugin;
pub mod release;
pub mod workspace;
