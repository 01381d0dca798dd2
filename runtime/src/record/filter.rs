//! The filter in front of the recorder: which accesses need not be kept.
//!
//! Per thread, a direct-mapped table of what was kept last. An entry is two words:
//!
//! ```text
//! span:16 | address:48        times:11 | kind:5 | site:48   (site and address xor-ed with the hash of the locks held)
//! ```
//!
//! - **Same span**: the same access (address, site, kind, locks) was kept since the thread's last event with a place in the
//!   global order. Nothing that any analysis here asks can tell the two apart.
//! - **Cap**: it was kept `times` ≥ the control's `ACCESS_CAP` in earlier spans. That loses what a later instance alone would
//!   show, and who really wrote what a later read sees; the recording is marked as thinned, and the host claims no causal
//!   prediction from it. 0 switches it off, until half of the room for the trace is used up.
//!
//! Which entries collide depends on addresses, and so on where the kernel put things. Only repetitions are at stake: whoever
//! compares recordings leaves them out.

use crate::record::values;
use crate::system::thread::{Held, Thread};
use crate::system::{config, header};
use rashomon_abi::control::{self, field};
use rashomon_abi::header::note;
use rashomon_abi::record::CHUNK_BYTES;

/// Multiplier that spreads the sites of one loop over the table: their accesses walk through it side by side.
pub const SPREAD: u32 = 0x9e37_79b1;
pub const TIMES_SHIFT: u32 = 53;
const MAX_CAP: u64 = (1 << (64 - TIMES_SHIFT)) - 1;
/// Bits of the site that the locks' hash is mixed into.
const LOCKS_MASK: u64 = 0x0000_ffff_ffff_f000;

/// Entries of a thread's table. The first threads do most of the work of most programs; a table is memory where it is touched.
pub const fn entries(number: u32) -> usize {
    match number {
        0..8 => 1 << 18,
        8..32 => 1 << 16,
        32..128 => 1 << 13,
        _ => 1 << 11,
    }
}

/// Bytes of an entry, and of eight bytes of the program times two: that is why a slot's distance from the table's begin is so
/// cheap.
const ENTRY_BYTES: u64 = 16;

/// What selects a slot of a table of that many entries, in bytes from its begin.
pub const fn mask(entries: usize) -> u64 {
    (entries as u64 - 1) * ENTRY_BYTES
}

/// The slot of an access; what the hook computes in assembly.
fn slot(thread: &Thread, address: u64, site: u64) -> usize {
    // With values every access comes here, and the hook's own look goes to the first entry.
    let mask = if values::on() { mask(entries(thread.number.get())) } else { thread.hot().filter_mask.get() };
    let distance = ((address << 1) ^ ((site as u32).wrapping_mul(SPREAD) >> 4) as u64) & mask;
    (distance / ENTRY_BYTES) as usize
}

/// What selects a slot before anything is known of the thread: its first chunk is not longer.
pub const fn first_mask(number: u32) -> u64 {
    const FIRST: usize = CHUNK_BYTES / 8;
    let full = entries(number);
    mask(if full < FIRST { full } else { FIRST })
}

/// A chunk is full: how much of the table is worth its memory and cache misses? What earlier spans kept is of use for the cap
/// alone, so a part does that has room for a span of this thread's several times over. Where long spans keep nearly everything
/// anyway, a small part finds what little repeats; from time to time the larger one has another try. `executed`: accesses that
/// the chunk took.
pub fn tune(thread: &Thread, executed: u64) {
    let hot = thread.hot();
    let spans = hot.span.get().wrapping_sub(thread.span_before_chunk.replace(hot.span.get())) >> 48;
    if hot.deep.get() != 0 || values::on() {
        return;
    }
    const ROOM: usize = 8;
    /// Spans differ: the few long ones keep most.
    const LEAST: usize = 1 << 14;
    const SMALL: usize = 1 << 10;
    const TRIES: u32 = 32;
    let full = entries(thread.number.get());
    let of_span = CHUNK_BYTES / 8 / (spans as usize + 1);
    let wanted = if hot.cap.get() == u64::MAX { (ROOM * of_span).next_power_of_two().max(LEAST) } else { full };
    let kept_nearly_all = executed < (CHUNK_BYTES / 8) as u64 * 5 / 4;
    let try_again = thread.chunk_index.get().is_multiple_of(TRIES);
    let entries = if wanted > LEAST && kept_nearly_all && !try_again { SMALL } else { wanted };
    hot.filter_mask.set(mask(entries.min(full)));
}

/// Whether every access is kept, repetitions too: the hooks have to leave that to the recorder. Where the compiler's plugin tells
/// of segments, each of these empties the table (`flow.rs`).
pub fn keeps_all() -> bool {
    config::option(control::option::NO_FILTER) && !config::option(control::option::DEPENDENCES)
}

/// The times word at which a thread's accesses are capped.
pub fn cap() -> u64 {
    match config::word(field::ACCESS_CAP) {
        0 => u64::MAX,
        cap => cap.min(MAX_CAP) << TIMES_SHIFT,
    }
}

/// Half of the room for the trace is used up: from here on accesses are capped, so that the other half lasts longer.
pub fn run_short(thread: &Thread) {
    const CAP_WHEN_SHORT: u64 = 16;
    thread.hot().cap.set(thread.hot().cap.get().min(CAP_WHEN_SHORT << TIMES_SHIFT));
}

/// Whether an access has to be kept. Notes it as kept.
pub fn keeps(thread: &Thread, address: u64, site: u64, kind: u64) -> bool {
    let at = slot(thread, address, site);
    let (span, locks, cap) = (thread.hot().span.get(), thread.hot().locks.get(), thread.hot().cap.get());
    let (key, tag) = (span.wrapping_add(address), (site | kind << 48) ^ locks);
    // SAFETY: inside the table.
    let entry = unsafe { &mut *thread.hot().filter.get().add(at) };
    if (entry[1] ^ tag) << (64 - TIMES_SHIFT) != 0 || (entry[0] ^ key) << 16 != 0 {
        *entry = [key, tag];
        return true;
    }
    if entry[0] == key {
        return false;
    }
    if entry[1] >= cap {
        thread.hot().capped.set(1);
        return false;
    }
    // Where nothing is capped the number begins anew at some time.
    *entry = [key, entry[1].wrapping_add(1 << TIMES_SHIFT)];
    true
}

/// The locks held changed by this one.
pub fn locks_changed(thread: &Thread, held: Held) {
    let mut hash = (held.lock ^ held.shared as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    if thread.has_block() {
        thread.hot().locks.set(thread.hot().locks.get() ^ hash & LOCKS_MASK);
    }
}

/// Accesses up to here and from here on are told apart.
pub fn new_span(thread: &Thread) {
    let hot = thread.hot();
    hot.span.set(hot.span.get().wrapping_add(1 << 48));
    if hot.span.get() == 0 {
        // SAFETY: the thread's own table. An old entry must not look like one of the new round.
        unsafe { core::ptr::write_bytes(hot.filter.get(), 0, entries(thread.number.get())) };
        hot.span.set(1 << 48);
    }
}

/// At the thread's end: says so if the cap took anything away.
pub fn report(thread: &Thread) {
    if thread.hot().capped.get() != 0 {
        header::note(note::THINNED);
    }
}
