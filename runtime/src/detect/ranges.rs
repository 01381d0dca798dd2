//! Accesses to many bytes: [`rashomon_logic::ranges`] over the words of the shadow, and single words at both ends.
//!
//! The walk goes a page of the shadow at a time, 2 KiB of the program's memory. In each the first word that nobody has accessed
//! yet is put there by an exchange, as [`shadow::put_first`] says, which is also what brings the page into memory; the others are
//! plain stores. **Limit**: of two threads that come to the same such word in the same few nanoseconds the later one wins, as in
//! words that have cells, unless it is where one of them began.

use super::access::{self, Fate, How, fate, recognised};
use super::shadow::{self, BYTES, CELLS};
use super::{Detector, detector, spans};
use crate::detect::own::Own;
use crate::system::tls::Hot;
use core::sync::atomic::AtomicU32;
use rashomon_abi::record::AccessClass;
use rashomon_logic::cells::encode;
use rashomon_logic::ranges::{self, Change, Judge};

/// Bytes of a range that is worth it.
const SHORTEST: u64 = 32;
/// Bytes of the program's memory behind a page of the shadow.
const PAGE: u64 = 2048;

/// Bytes of a range of which to ask whether it is covered costs less than to go on without.
const SHORT: u64 = 64;

/// Whether accesses of the thread's current span stand for all of a short range, as the hooks ask of one access. Of a thread that
/// is not known nothing counts, and all is covered.
#[inline(always)]
pub fn is_covered(hot: &Hot, address: u64, bytes: u64, class: u64) -> bool {
    if bytes > SHORT {
        return false;
    }
    let covers = if class == AccessClass::Read as u64 { hot.covers_read.get() } else { hot.covers_write.get() };
    let (covers, window) = (covers[0], hot.window.get()[0]);
    parts(address, bytes).all(|(at, bits)| shadow::has_covering(shadow::cells(at), window, covers | bits, bits))
}

/// The words of some bytes, and which bytes of each.
#[inline(always)]
fn parts(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u32)> {
    let end = address + bytes;
    let (first, last) = (address.next_multiple_of(8).min(end), (end & !7).max(address));
    let before = (first > address).then(|| (address, shadow::byte_bits(address, first - address)));
    let behind = (end > last && last >= first).then(|| (last, shadow::byte_bits(last, end - last)));
    before.into_iter().chain((first..last).step_by(8).map(|at| (at, BYTES))).chain(behind)
}

/// Makes all cells of the words of some bytes what `cells` makes of which bytes they are.
#[inline(always)]
pub fn put_all(address: u64, bytes: u64, cells: impl Fn(u32) -> [u32; CELLS]) {
    const MARKED: u64 = 1 << shadow::MARKED;
    let (mut at, end) = (address, address + bytes);
    while at < end {
        let stop = end.min((at & !(MARKED - 1)) + MARKED);
        shadow::mark(at);
        parts(at, stop - at).for_each(|(at, bits)| shadow::put(shadow::cells(at), cells(bits)));
        at = stop;
    }
}

/// An access to any bytes, with the reference that stands for it.
pub fn access(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) {
    let many = bytes >= SHORTEST && detector() != Detector::LockSet && !how.atomic;
    if many && shadow::is_contiguous(address, bytes) {
        return walk(thread, address, bytes, how, reference);
    }
    let end = address.wrapping_add(bytes);
    let mut at = address;
    while at < end {
        let stop = end.min((at & !7) + 8);
        if !access::word(thread, at, stop - at, how, reference) {
            return;
        }
        at = stop;
    }
}

fn walk(thread: &mut Own, address: u64, bytes: u64, how: How, reference: u32) {
    let end = address + bytes;
    let (first, last) = (address.next_multiple_of(8), end & !7);
    if first > address && !access::word(thread, address, first - address, how, reference) {
        return;
    }
    let mut at = first;
    while at < last {
        let stop = last.min((at & !(PAGE - 1)) + PAGE);
        shadow::mark(at);
        let mut page = Page { thread, from: at, how, reference };
        if !ranges::walk(shadow::words(at, stop), &mut page) {
            return;
        }
        at = stop;
    }
    if last < end {
        access::word(thread, last, end - last, how, reference);
    }
}

/// An access to the whole words of one page.
struct Page<'a> {
    thread: &'a mut Own,
    from: u64,
    how: How,
    reference: u32,
}

impl Judge for Page<'_> {
    #[inline(always)]
    fn meaning(&self) -> u32 {
        spans::meaning()
    }

    #[inline(always)]
    fn look(&self, word: &[AtomicU32; CELLS]) -> [u32; CELLS] {
        shadow::values(shadow::look(word))
    }

    #[inline(always)]
    fn are(&self, words: &[[AtomicU32; CELLS]], seen: &[u32; CELLS]) -> bool {
        shadow::are(words, seen)
    }

    fn change(&mut self, seen: &[u32; CELLS]) -> Option<Change> {
        let new = encode(self.reference, self.how.read, BYTES);
        match fate(self.thread, seen, 0, BYTES, self.how) {
            Fate::Covered { unknown } if unknown < CELLS => Some(Change::NONE.and(unknown, recognised(new, seen[unknown]))),
            Fate::Covered { .. } => Some(Change::NONE),
            Fate::New { at, superfluous } if at < CELLS => {
                let change =
                    (0..CELLS).filter(|at| superfluous >> at & 1 != 0).fold(Change::NONE, |change, at| change.and(at, 0));
                Some(change.and(at, new))
            }
            Fate::New { .. } | Fate::Freed | Fate::Race { .. } => None,
        }
    }

    fn one(&mut self, number: usize) -> bool {
        access::word(self.thread, self.from + 8 * number as u64, 8, self.how, self.reference)
    }

    fn changed(&mut self, words: usize) {
        self.thread.detected().counts.checked.add(words as u64);
    }
}
