//! The filter in front of the recorder: which accesses need not be kept.
//!
//! Per thread, a direct-mapped table of what was kept last. An entry is two words:
//!
//! ```text
//! span:16 | address:48        times:11 | kind:5 | site:48   (site and address xor-ed with the hash of the locks held)
//! ```
//!
//! - **Same span**: the same access (address, site, kind, locks) was kept since the thread's last event with a place in the global order. Nothing that
//!   any analysis here asks can tell the two apart.
//! - **Cap**: it was kept `times` ≥ the control's `ACCESS_CAP` in earlier spans. That loses what a later instance alone would show, and who really wrote what a
//!   later read sees; the recording is marked as thinned, and the host claims no causal prediction from it. 0 switches it off, until half of the room for the
//!   trace is used up.
//!
//! Which entries collide must not depend on where the kernel put things, or two recordings with one seed would differ: the slot is computed from the distance to
//! the region an address lies in (program, heap, mappings, initial stack) and from the site's place in its page.

use crate::real::__libc_stack_end;
use crate::sys::syscall;
use crate::thread::{Held, Thread};
use crate::{config, header};
use core::mem::offset_of;
use rashomon_abi::control::field;
use rashomon_abi::header::note;
use rashomon_abi::record::CHUNK_BYTES;

/// Where regions begin (an address at or above `…_low` lies in it), and what distances in them count from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Layout {
    program: u64,
    heap_low: u64,
    mappings_low: u64,
    mappings: u64,
    stack_low: u64,
    stack: u64,
}

pub const PROGRAM: usize = offset_of!(Layout, program);
pub const HEAP_LOW: usize = offset_of!(Layout, heap_low);
pub const MAPPINGS_LOW: usize = offset_of!(Layout, mappings_low);
pub const MAPPINGS: usize = offset_of!(Layout, mappings);
pub const STACK_LOW: usize = offset_of!(Layout, stack_low);
pub const STACK: usize = offset_of!(Layout, stack);

/// Written once, before any thread records.
pub static mut LAYOUT: Layout =
    Layout { program: 0, heap_low: u64::MAX, mappings_low: u64::MAX, mappings: 0, stack_low: u64::MAX, stack: 0 };

/// Multiplier that spreads the sites of one loop over the table: their accesses walk through it side by side.
pub const SPREAD: u32 = 0x9e37_79b1;
pub const TIMES_SHIFT: u32 = 53;
const MAX_CAP: u64 = (1 << (64 - TIMES_SHIFT)) - 1;
/// Bits of the site that the locks' hash is mixed into.
const LOCKS_MASK: u64 = 0x0000_ffff_ffff_f000;

/// Entries of a thread's table. The first threads do most of the work of most programs; a table is memory once it is touched.
pub const fn entries(number: u32) -> usize {
    match number {
        0..8 => 1 << 18,
        8..32 => 1 << 16,
        32..128 => 1 << 13,
        _ => 1 << 11,
    }
}

pub fn initialise() {
    // SAFETY: asks where the heap ends; set by the loader.
    let (heap, stack_end) = unsafe { (syscall!(12usize, 0) as u64, __libc_stack_end as u64) };
    // The loader lies among the mappings, and this variable in the loader.
    let loader = (&raw const __libc_stack_end) as u64 & !0xfff;
    let layout = Layout {
        program: 0,
        heap_low: heap,
        mappings_low: 7 << 44,
        mappings: loader,
        stack_low: stack_end.saturating_sub(64 << 20),
        stack: stack_end,
    };
    // SAFETY: before any thread records. The program's own distance is that to its place in the page: pages of a program keep theirs.
    unsafe { (&raw mut LAYOUT).write(Layout { program: program_base(heap), ..layout }) };
}

/// Something that moves with the program: its entry point's page, from the kernel's auxiliary vector.
fn program_base(otherwise: u64) -> u64 {
    // SAFETY: argc, argv…, 0, envp…, 0, then pairs up to a zero one.
    unsafe {
        let stack = __libc_stack_end;
        let mut at = stack.add(1 + *stack + 1);
        while *at != 0 {
            at = at.add(1);
        }
        let mut pair = at.add(1);
        while *pair != 0 {
            if *pair == 9 {
                return *pair.add(1) as u64 & !0xfff;
            }
            pair = pair.add(2);
        }
    }
    otherwise & !0xfff
}

/// The slot of an access; what the hook computes in assembly.
fn slot(thread: &mut Thread, address: u64, site: u64) -> usize {
    // SAFETY: written once before.
    let layout = unsafe { (&raw const LAYOUT).read() };
    let base = if address >= layout.stack_low {
        layout.stack
    } else if address >= layout.mappings_low {
        layout.mappings
    } else if address >= layout.heap_low {
        layout.heap_low
    } else {
        layout.program
    };
    ((address.wrapping_sub(base) >> 3) ^ (((site & 0xfff) as u32).wrapping_mul(SPREAD) >> 8) as u64) as usize
        & thread.hot().filter_mask as usize
}

/// A chunk is full: was the table worth its cache misses? Where nearly everything is kept anyway, a small one finds what little repeats; from time to
/// time the large one has another try. `executed`: accesses that the chunk took.
pub fn tune(thread: &mut Thread, executed: u64) {
    const SMALL_MASK: u64 = (1 << 10) - 1;
    const TRIES: u32 = 32;
    let kept_nearly_all = executed < (CHUNK_BYTES / 8) as u64 * 5 / 4;
    let full = entries(thread.number) as u64 - 1;
    let try_again = thread.chunk_index.is_multiple_of(TRIES);
    thread.hot().filter_mask = if kept_nearly_all && !try_again { SMALL_MASK.min(full) } else { full };
}

/// The times word at which a thread's accesses are capped.
pub fn cap() -> u64 {
    match config::word(field::ACCESS_CAP) {
        0 => u64::MAX,
        cap => cap.min(MAX_CAP) << TIMES_SHIFT,
    }
}

/// Half of the room for the trace is used up: from here on accesses are capped, so that the other half lasts longer.
pub fn run_short(thread: &mut Thread) {
    const CAP_WHEN_SHORT: u64 = 16;
    thread.hot().cap = thread.hot().cap.min(CAP_WHEN_SHORT << TIMES_SHIFT);
}

/// Whether an access has to be kept. Notes it as kept.
pub fn keeps(thread: &mut Thread, address: u64, site: u64, kind: u64) -> bool {
    let at = slot(thread, address, site);
    let (span, locks, cap) = (thread.hot().span, thread.hot().locks, thread.hot().cap);
    let (key, tag) = (span.wrapping_add(address), (site | kind << 48) ^ locks);
    // SAFETY: inside the table.
    let entry = unsafe { &mut *thread.hot().filter.add(at) };
    if (entry[1] ^ tag) << (64 - TIMES_SHIFT) != 0 || (entry[0] ^ key) << 16 != 0 {
        *entry = [key, tag];
        return true;
    }
    if entry[0] == key {
        return false;
    }
    if entry[1] >= cap {
        thread.hot().capped = 1;
        return false;
    }
    *entry = [key, entry[1] + (1 << TIMES_SHIFT)];
    true
}

/// The locks held changed by this one.
pub fn locks_changed(thread: &mut Thread, held: Held) {
    let mut hash = (held.lock ^ held.shared as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    if !thread.hot.is_null() {
        thread.hot().locks ^= hash & LOCKS_MASK;
    }
}

/// At the thread's end: says so if the cap took anything away.
pub fn report(thread: &mut Thread) {
    if thread.hot().capped != 0 {
        header::note(note::THINNED);
    }
}
