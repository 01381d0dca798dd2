//! A thread that runs without any event keeps its turn, as turns change hands at events only: a loop that looks at a variable
//! which the compiler did not instrument, or keeps in a register.
//!
//! The watchdog sends it a signal; the handler, on that thread, gives the turn up. The thread goes on beside the others and
//! stands in line again at its next event. What it does until then nobody sees: the recording says so, and from where on another
//! execution may differ.
//!
//! The signal is one of those that do nothing unless they are handled, and only while the program does not handle it itself.
//! Inside the runtime, and in a hook, the handler does nothing; it is tried again.

use crate::serial::sched::{CURRENT, LOCK};
use crate::serial::watchdog;
use crate::system::entry;
use crate::system::header;
use crate::system::signals::{self, SA_ONSTACK, SA_RESTART, SA_SIGINFO, SignalInfo};
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, State, Thread};
use crate::system::tls::{current, hot};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};
use rashomon_abi::header::{field, note};

/// SIGURG, SIGWINCH
const SIGNALS: [c_int; 2] = [23, 28];

/// It was said that nothing can be done.
static SAID: AtomicBool = AtomicBool::new(false);

/// Makes a thread that runs give its turn up, soon. Under the scheduler's lock.
pub fn send(thread: &Thread) {
    let free =
        |&signal: &c_int| !signals::is_handled(signal) && !sys::blocks_signals(thread.kernel_id.get(), 1 << (signal as u64 - 1));
    match SIGNALS.into_iter().find(free) {
        Some(signal) => {
            // SAFETY: the handler is of the type that its flags say; then a signal to a thread of this process.
            // All are blocked in the watchdog, which calls this.
            unsafe {
                if signals::lend(signal, handler(), SA_SIGINFO | SA_ONSTACK | SA_RESTART) {
                    syscall!(sys::TGKILL, sys::process_id(), thread.kernel_id.get(), signal);
                }
            }
        }
        None if !SAID.swap(true, Relaxed) => sys::message(&[
            b"thread ",
            sys::Decimal::new(u64::from(thread.number.get())).bytes(),
            b" runs without any event, and lets itself not be interrupted: all others wait for it",
        ]),
        None => {}
    }
}

/// What the kernel calls.
pub fn handler() -> usize {
    nudged as *const () as usize
}

unsafe extern "C" fn nudged(signal: c_int, _information: *mut SignalInfo, context: *mut u8) {
    let thread = current();
    // SAFETY: `context` is a `ucontext_t`; RIP is register 16 of its `gregs`, which begin at byte 40.
    let interrupted = unsafe { *(context.add(40) as *const u64).add(16) };
    // SAFETY: this thread's block and record.
    unsafe {
        let Some(thread) = thread else { return };
        if hot().nesting.get() > 0 || entry::is_in_hook(interrupted) {
            return;
        }
        let runtime = Runtime::enter();
        LOCK.with(|| {
            // Before another thread runs, which may want the signal for itself.
            signals::take_back(signal);
            if CURRENT.load(Acquire) == thread.number.get()
                && thread.state.get() == State::Running
                && thread.evicted.load(Acquire) == 0
            {
                thread.force_slow_path();
                header::note(note::UNSEEN);
                let next = header::word(field::SEQUENCE).load(Relaxed);
                let _ = header::word(field::NOT_REEXECUTABLE_FROM).compare_exchange(0, next, Relaxed, Relaxed);
                watchdog::take_turn(thread);
            }
        });
        drop(runtime);
    }
}
