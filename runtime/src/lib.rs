//! The library inside the program under test: takes the place of the ThreadSanitizer runtime.
//!
//! **Event source** (`hooks`, `atomics`, `intercept`) → **policy gate** (`sched`, `policy`, `replay`) → **recorder** (`recorder`).
//!
//! Rules of this world:
//! - `no_std`, no allocation through the program's allocator, no libc call that is interposed here except through [`real`].
//! - Runtime code runs under a [`thread::Runtime`] guard: hooks and interposers that are entered below it pass through.
//! - A thread that the runtime does not know (created before, or by somebody else) passes through everywhere.
//! - Without a session in the environment everything passes through: instrumented programs run as if nothing were there.
//! - Nothing here decides what is a bug, except that threads which wait for each other for ever are one.
#![no_std]
#![deny(clippy::undocumented_unsafe_blocks)]

mod atomics;
mod clock;
mod config;
mod deadlock;
mod detect;
mod elastic;
mod endless;
mod explore;
mod family;
mod filter;
mod finish;
mod fork;
mod glibc;
mod header;
mod hooks;
mod init;
mod intercept;
mod linger;
mod loader;
mod lock;
mod memory;
mod modules;
mod nudge;
mod openmp;
mod outside;
mod patience;
mod policy;
mod provoke;
mod real;
mod recorder;
mod replay;
#[allow(dead_code, reason = "the detector's entry points, whether anything calls them or not")]
mod report;
mod sched;
mod signals;
mod snapshot;
mod standstill;
mod storage;
mod sys;
mod thread;
mod tls;
mod tree;
mod wait;
mod watchdog;
mod wide;
mod world;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |location| location.line());
    let file = info.location().map_or("", |location| location.file());
    sys::die(&[b"internal error at ", file.as_bytes(), b":", sys::Decimal::new(line as u64).bytes()])
}
