//! The model of a trace: threads and the objects that they synchronise with, as processes.
//!
//! Carril, Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2.1-2.2, Figs. 1-3. Twice:
//! as terms of the algebra ([`terms`]), for small traces and for other checkers of refinement, and as an explicit search of the
//! same states ([`search`]), which is fast enough for recordings. `docs/theory-csp.md` numbers what differs from the source.
#![forbid(unsafe_code)]

pub mod facts;
pub mod filter;
pub mod live;
pub mod loops;
pub mod model;
pub mod objects;
pub mod search;
pub mod terms;

mod state;
mod trim;
