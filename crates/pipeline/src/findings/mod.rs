//! From events to findings: what is said of them, under which id, and which of them are one.

pub(crate) mod alike;
pub mod assembly;
pub(crate) mod atomicity;
pub mod binaries;
pub mod compose;
pub(crate) mod correlated;
pub(crate) mod critical;
pub mod declared;
pub mod describe;
pub mod failure;
mod fault;
pub mod identity;
pub(crate) mod inputs;
mod locals;
mod members;
pub(crate) mod misuse;
pub(crate) mod named;
pub mod rust;
pub mod symbols;
mod wrappers;
