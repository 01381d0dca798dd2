//! Communicating sequential processes: terms, their transitions, and refinement in the traces and the stable-failures model.
//!
//! Roscoe, *Understanding Concurrent Systems*, 2010, chapters 9, 10 and 16, is the reference for the semantics.
#![forbid(unsafe_code)]

pub mod interpreter;
pub mod reduce;
pub mod refine;
pub mod script;
pub mod term;
pub mod transitions;

mod builtin;
mod error;
mod evaluate;
mod lexer;
mod parse;
mod scope;
mod syntax;
mod written;
