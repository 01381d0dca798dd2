//! For tests: tiny traces in readable form, all traces of a small alphabet, random and large traces, and brute-force oracles.
#![forbid(unsafe_code)]

pub mod builder;
pub mod contents;
pub mod cuts;
pub mod describe;
pub mod enumerate;
pub mod gaps;
pub mod mutate;
pub mod oracle;
pub mod random;
pub mod reversal;
pub mod text;

pub use builder::TraceBuilder;
pub use contents::Contents;
pub use describe::describe;
pub use enumerate::enumerate;
pub use gaps::add_gaps;
pub use oracle::{MOST_TRIPLES, Reachable, Rules, Sight, can_meet, come_between, reachable, reachable_if};
pub use random::{Features, Shape, SplitMix, alike, large, random};
pub use text::{Labelled, ParseError, parse};
