//! Lockset warnings, the access each may race with, and the beginning of an execution that brings both together.
//!
//! O. Shacham, M. Sagiv, A. Schuster, "Scaling Model Checking of Dataraces Using Dynamic Information", JPDC 67 (2007).
//! [`warnings`]: §2.3, Fig. 2. [`partner`]: §3.1. [`prefix`]: Fig. 8. What follows the prefix, §3.2, is explored by executing the
//! program.

pub mod partner;
pub mod prefix;
pub mod warnings;

pub use partner::{Pair, partner};
pub use prefix::{Prefix, prefix};
pub use warnings::{LocksetStates, Warning, warnings};

#[cfg(test)]
mod tests;
