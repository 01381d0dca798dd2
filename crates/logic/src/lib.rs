//! The runtime's pure logic, over plain slices and numbers: no memory of its own, no system call, no thread.
//! The runtime stores the data and calls this; the host tests it against models that are slow and plain.
#![no_std]
#![forbid(unsafe_code)]

pub mod access;
pub mod cells;
pub mod clocks;
pub mod dependences;
pub mod extent;
pub mod locksets;
pub mod mappings;
pub mod operations;
pub mod orders;
pub mod pct;
pub mod pieces;
pub mod quarantine;
pub mod ranges;
pub mod sent;
pub mod wanted;
pub mod windows;
