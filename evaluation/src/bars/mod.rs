//! Bars against regressions: what the tool costs and finds on the project's own programs and on programs that others wrote.

pub mod budgets;
pub mod complete;
pub mod crashes;
pub mod detect;
pub mod distribute;
pub mod engine;
pub mod explore;
pub mod fingerprints;
pub mod formats;
pub mod formats_out;
pub mod llvm_tsan;
pub mod long;
pub mod memcached;
pub mod mutations;
pub mod oracle;
pub mod packages;
pub mod pbzip2;
pub mod primitives;
pub mod public;
pub mod real;
pub mod replay;
pub mod runtime;
pub mod scale;
pub mod spine;
pub mod stores;
pub mod whole;
