//! The limit of a recording's size: what happens when it is reached.

use crate::record::filter;
use crate::record::recorder::{BYTES, FULL};
use crate::system::thread::Thread;
use crate::system::{config, header};
use core::sync::atomic::Ordering::*;
use rashomon_abi::control::field::TRACE_LIMIT;
use rashomon_abi::header::note;
use rashomon_abi::record::CHUNK_BYTES;

/// So many bytes were recorded.
pub(super) fn watch(thread: &Thread, total: u64) {
    let limit = config::word(TRACE_LIMIT);
    if limit != 0 && total > limit / 2 {
        filter::run_short(thread);
    }
    if limit != 0 && total > limit && FULL.swap(1, AcqRel) == 0 {
        header::note(note::TRUNCATED);
    }
}

/// Once there is no room, no accesses are kept.
pub(super) fn heed(thread: &Thread) {
    if FULL.load(Relaxed) != 0 {
        thread.keep_accesses.set(false);
        thread.hot().deep.set(0);
    }
}

/// A record was written that stands for others of so many bytes: they count as if they were there, since who reads the recording
/// gets them all.
pub(super) fn stands_for(thread: &Thread, bytes: u64) {
    let sum = thread.stood_for.get() + bytes;
    thread.stood_for.set(sum);
    if sum > 16 * CHUNK_BYTES as u64 {
        thread.stood_for.set(0);
        watch(thread, BYTES.fetch_add(sum, Relaxed) + sum);
        heed(thread);
    }
}
