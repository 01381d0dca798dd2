//! What the rest stands on: system calls, memory of our own, locks, the real functions behind the interposed ones, the shared
//! pages of the session (`header`, `config`), the loaded modules, and what is known of each thread.
//!
//! Calls: nothing.

pub mod config;
pub mod dynamic;
pub mod ending;
#[macro_use]
pub mod entry;
pub mod folder;
pub mod glibc;
pub mod guard;
pub mod guarded;
pub mod handles;
pub mod header;
pub mod held;
pub mod loader;
pub mod lock;
pub mod mappings;
pub mod memory;
pub mod modules;
pub mod pool;
pub mod process_name;
pub mod processor;
pub mod real;
pub mod registered;
pub mod shared;
pub mod signal_types;
pub mod signals;
pub mod slot;
pub mod storage;
pub mod stripes;
pub mod sys;
pub mod thread;
pub mod tls;
