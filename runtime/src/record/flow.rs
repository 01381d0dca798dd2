//! Which way control goes in functions that the compiler's plugin has instrumented ([`rashomon_abi::deep`]).

use crate::record::filter;
use crate::record::recorder::{push, reserve};
use crate::system::config;
use crate::system::thread::Thread;
use crate::system::tls::Hot;
use rashomon_abi::control;
use rashomon_abi::record::{self, word};

/// A thread's stream begins. While segments are recorded the filter of accesses has one entry.
pub fn begins(thread: &Thread) {
    if config::option(control::option::DEPENDENCES) {
        thread.hot().deep.set(1);
        thread.hot().filter_mask.set(filter::mask(1));
    }
}

/// Activations of the parent are none of a forked child's.
pub fn forgets(hot: &Hot) {
    hot.deep.set(0);
    let process = (hot.activations.get() >> record::PROCESS_SHIFT) + 1;
    hot.activations.set(process << record::PROCESS_SHIFT);
}

/// A function that the compiler's plugin has instrumented begins, where the hook had no room.
pub fn activation(thread: &Thread, table: u64) {
    let hot = thread.hot();
    if reserve(thread, 1) {
        let process = hot.activations.get() >> record::PROCESS_SHIFT;
        // SAFETY: reserved.
        unsafe { push(hot, word(process, record::ACTIVATION, table)) };
    }
}

/// It goes on with this segment.
pub fn segment(thread: &Thread, segment: u64) {
    if reserve(thread, 1) {
        // SAFETY: reserved.
        unsafe { push(thread.hot(), word(0, record::SEGMENT, segment)) };
    }
}

/// Control comes back to an activation.
pub fn resume(thread: &Thread, activation: u64, segment: u64) {
    if reserve(thread, 2) {
        // SAFETY: reserved.
        unsafe {
            push(thread.hot(), word(0, record::RESUME, segment));
            push(thread.hot(), activation);
        }
    }
}
