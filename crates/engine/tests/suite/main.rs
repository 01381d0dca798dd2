//! Each analysis against its definition, a file for each. (What installs an allocator is a program of its own.)

#[path = "../support/mod.rs"]
mod support;

mod cp;
mod driver;
mod great_numbers;
mod happens_before;
mod hybrid;
mod redundancy;
mod serialisability;
mod wcp;
