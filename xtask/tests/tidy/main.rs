//! The laws of the architecture, read from `cargo metadata`, the sources and the runtime's object code.
#![forbid(unsafe_code)]

mod commands;
mod dependencies;
mod files;
mod laws;
mod links;
mod rooms;
mod source;
mod structure;
mod symbols;
mod text;
mod unsafety;
mod versions;
