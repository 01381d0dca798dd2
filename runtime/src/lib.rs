//! The library inside the program under test: takes the place of the ThreadSanitizer runtime.
//!
//! **Event source** (`intercept`, `openmp`) → **policy gate** (`serial`, `provoke`) → **recorder** (`record`) or **detector**
//! (`detect`, `report`). Below them all is `system`; `threads` begins and ends a thread in each of them, `process` the process.
//! Each room says in its `mod.rs` what it is for and which others it calls; the tidy test holds it to that.
//!
//! Rules of this world:
//! - `no_std`, no allocation through the program's allocator, no libc call that is interposed here except through
//!   [`system::real`].
//! - Runtime code runs under a [`system::thread::Runtime`] guard: hooks and interposers that are entered below it pass through.
//! - A thread that the runtime does not know (created before, or by somebody else) passes through everywhere.
//! - Without a session in the environment everything passes through: instrumented programs run as if nothing were there.
//! - Nothing here decides what is a bug, except that threads which wait for each other for ever are one.
#![no_std]
#![deny(clippy::undocumented_unsafe_blocks)]

// First: all that is entered from outside begins with its macros.
#[macro_use]
mod system;

mod detect;
mod intercept;
mod openmp;
mod process;
mod provoke;
mod record;
#[allow(dead_code, reason = "the detector's entry points, whether anything calls them or not")]
mod report;
mod serial;
mod threads;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |location| location.line());
    let file = info.location().map_or("", |location| location.file());
    // Also what tells a program that has this runtime inside from one with the ordinary one (`xtask/src/assertions.rs`).
    let what: &[u8] = if cfg!(debug_assertions) { b"an assertion failed at " } else { b"internal error at " };
    system::sys::die(&[what, file.as_bytes(), b":", system::sys::Decimal::new(line as u64).bytes()])
}
