//! Threads that ended and that nobody joined or detached: what libc keeps of them is never given back.

use crate::report;
use crate::system::memory::Map;
use crate::system::thread::{self, Thread};
use core::sync::atomic::Ordering::*;

fn leaked() -> impl Iterator<Item = &'static Thread> {
    // At the process's end their states change no more.
    thread::all().filter(|thread| {
        thread.number.get() != 0 && thread.ended.load(Acquire) != 0 && !thread.joined.get() && !thread.detached.get()
    })
}

/// At the end of the process: one report for each place that made such threads.
pub fn report() {
    let mut alike = Map::new();
    for thread in leaked() {
        *alike.entry((thread.detected().creation.get() as u64, 1)) += 1;
    }
    for thread in leaked() {
        let count = core::mem::take(alike.entry((thread.detected().creation.get() as u64, 1)));
        if count > 0 {
            report::leak(thread.number.get(), count as u32);
        }
    }
    alike.clear_and_free();
}
