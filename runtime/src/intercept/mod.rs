//! Where events come from: what compilers emit (`hooks`, `atomics`), and the functions of libc and libpthread that stand between
//! threads, one module a family.
//!
//! Every interposed name is a trampoline that notes its return address (the *site*) and jumps to the function here. Each function
//! follows one pattern: pass through unless the thread is known and outside the runtime; offer the turn
//! ([`crate::serial::sched::point`]); do the thing, in serial mode by trying and blocking in the model, in free mode by the real
//! function; record what happened — releases before they take effect, acquisitions after.
//!
//! The names are weak, and each has a strong twin `__interceptor_NAME` in the archive: a program that defines a function of that
//! name itself has its own, and reaches ours by the twin.
//!
//! Calls: `system`, `record`, `report`, `detect`, `serial`, `provoke`, `threads`.

pub(crate) use crate::system::entry::{interpose, interpose_in, names_of};

pub mod annotations;
pub mod atomics;
pub mod barrier;
pub mod c11;
pub mod cancel;
pub mod condition;
pub mod counter;
pub mod deep;
pub mod descriptors;
pub mod effects;
pub mod exits;
pub mod external;
pub mod fibers;
pub mod files;
pub mod flockfile;
pub mod forward;
pub mod futex;
pub mod gaps;
pub mod gated_wait;
pub mod globals;
pub mod handlers;
pub mod heap;
pub mod hooks;
pub mod identities;
pub mod java;
pub mod jumps;
pub mod kernel;
pub mod library;
pub mod lives;
pub mod lock_common;
pub mod mappings;
pub mod memory;
pub mod messages;
pub mod mutex;
pub mod names;
pub mod newdelete;
pub mod once;
pub mod passage;
pub mod passing;
pub mod poll;
pub mod process;
pub mod processors;
pub mod quarantine;
pub mod queue;
pub mod room;
pub mod rwlock;
pub mod semaphore;
pub mod signals;
pub mod sockets;
pub mod spin;
pub mod start;
pub mod stdio;
pub mod streams;
pub mod strings;
pub mod syscall_hooks;
pub mod threads;
pub mod time;
pub mod timers;
pub mod unserved;
pub mod user_locks;
pub mod users;
pub mod waits;
pub mod wide;
