//! What the detector remembers of each word of the program's memory: four *cells* for every eight aligned bytes.
//!
//! A cell ([`rashomon_logic::cells`]) has a bit for each byte of the word that was accessed and tells reads from writes; its
//! *reference* ([`super::spans`]) names thread, epoch, lock set, call stack and whether the access was atomic. So a cell holds
//! everything a report needs, and nothing that was seen is ever forgotten for want of a history.
//!
//! The shadow is reserved as one mapping without memory; a page of it exists once it is written. A word's cells lie at
//! `base + 2 × (address mod 2^44)`, rounded down to 16: the regions that Linux uses (executables at 0x0…, 0x55…;
//! libraries, mappings and stacks at 0x7e…–0x7f…) differ in the 44 bits that count. Two words of one process that lie a
//! multiple of 16 TiB apart would share their cells; no fixed address is asked for, so address-space randomisation stays
//! as it is.
//!
//! **Limit**: four cells. When all are in use for accesses that are neither ordered before the new one nor covered by it, one at
//! random gives way.

use crate::system::sys::{self, syscall};
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_load_si128, _mm_loadu_si128, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi32,
    _mm_sub_epi32,
};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

pub use rashomon_logic::cells::{BYTES, CELLS, READ, REFERENCE_SHIFT, byte_bits};
/// Cells that no access can look like.
pub const NEVER: u32 = u32::MAX;

/// Bits of an address that tell words apart.
const ADDRESS_BITS: u32 = 44;
const SHADOW_BYTES: usize = 1 << (ADDRESS_BITS + 1);
/// Of twice an address: where its cells lie.
pub const SELECT: u64 = (SHADOW_BYTES as u64 - 1) & !15;
/// One word for each eight bytes of the program's memory: the object that lives there ([`super::objects`], [`super::blocks`]).
const TAGS_BYTES: usize = SHADOW_BYTES / 4;
/// The program's bytes that share a mark in [`MARKS`].
pub const MARKED: u32 = 16;

static CELLS_AT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static TAGS_AT: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// A byte for each such part of the program's memory: 1 once a cell of it was written. What walks over the shadow skips the rest.
static MARKS: AtomicPtr<AtomicU8> = AtomicPtr::new(core::ptr::null_mut());
/// The same for each gigabyte.
static GIGABYTES: [AtomicU8; 1 << (ADDRESS_BITS - GIGABYTE)] = [const { AtomicU8::new(0) }; 1 << (ADDRESS_BITS - GIGABYTE)];
const GIGABYTE: u32 = 30;
static MARK_COUNT: AtomicU64 = AtomicU64::new(0);

/// Address space without memory.
pub fn reserve(bytes: usize) -> *mut u8 {
    const NORESERVE: usize = 0x4000;
    const DONTDUMP: usize = 16;
    const NOHUGEPAGE: usize = 15;
    // SAFETY: a fresh private anonymous mapping.
    unsafe {
        let address = sys::call(sys::MMAP, 0, bytes, 3, 0x22 | NORESERVE, usize::MAX, 0);
        if address < 0 {
            sys::die(&[
                b"cannot reserve address space for detection (is it limited by ulimit -v or vm.overcommit_memory=2?), errno ",
                sys::Decimal::new(-address as u64).bytes(),
            ]);
        }
        syscall!(sys::MADVISE, address, bytes, DONTDUMP);
        syscall!(sys::MADVISE, address, bytes, NOHUGEPAGE);
        address as *mut u8
    }
}

pub fn initialise() {
    CELLS_AT.store(reserve(SHADOW_BYTES), Release);
    TAGS_AT.store(reserve(TAGS_BYTES).cast(), Release);
    MARKS.store(reserve(1 << (ADDRESS_BITS - MARKED)).cast(), Release);
}

pub fn base() -> *mut u8 {
    CELLS_AT.load(Relaxed)
}

/// The cells of the word at an address.
#[inline(always)]
pub fn cells(address: u64) -> &'static [AtomicU32; CELLS] {
    // SAFETY: inside the reservation, whatever the address; never unmapped.
    unsafe { &*base().add(((address << 1) & SELECT) as usize).cast() }
}

/// Whether a word has a cell that is not empty: most have none, and this is four of them at once.
#[inline(always)]
pub fn has_any(word: &[AtomicU32]) -> bool {
    debug_assert!(word.len() == CELLS);
    let all: u64;
    // SAFETY: reads the four cells, by machine loads as others write them.
    unsafe {
        core::arch::asm!(
            "mov {all}, [{word}]",
            "or {all}, [{word} + 8]",
            all = out(reg) all,
            word = in(reg) word.as_ptr(),
            options(nostack, readonly)
        )
    };
    all != 0
}

/// A word's cells as they are at one moment: each is read once, whole.
#[inline(always)]
pub fn look(word: &[AtomicU32; CELLS]) -> __m128i {
    // SAFETY: SSE2 is part of x86-64; a word's cells are aligned to 16. Other threads may write them meanwhile, as they do
    // between two loads.
    unsafe { _mm_load_si128(word.as_ptr().cast()) }
}

#[inline(always)]
pub fn values(cells: __m128i) -> [u32; CELLS] {
    // SAFETY: the same bits.
    unsafe { core::mem::transmute::<__m128i, [u32; CELLS]>(cells) }
}

/// Whether words look so.
#[inline(always)]
pub fn are(words: &[[AtomicU32; CELLS]], seen: &[u32; CELLS]) -> bool {
    // SAFETY: SSE2 is part of x86-64; four numbers are sixteen bytes, wherever they lie.
    let wanted = unsafe { _mm_loadu_si128(seen.as_ptr().cast()) };
    // SAFETY: the same.
    let mut same = unsafe { _mm_cmpeq_epi32(wanted, wanted) };
    for word in words {
        // SAFETY: the same.
        same = unsafe { _mm_and_si128(same, _mm_cmpeq_epi32(look(word), wanted)) };
    }
    // SAFETY: the same.
    unsafe { _mm_movemask_epi8(same) == 0xffff }
}

/// Whether one of a word's cells, less `base`, is `wanted` in the bits that count.
#[inline(always)]
pub fn has_covering(word: &[AtomicU32; CELLS], base: u32, bits: u32, wanted: u32) -> bool {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let seen = _mm_sub_epi32(look(word), _mm_set1_epi32(base.cast_signed()));
        let seen = _mm_and_si128(seen, _mm_set1_epi32(bits.cast_signed()));
        _mm_movemask_epi8(_mm_cmpeq_epi32(seen, _mm_set1_epi32(wanted.cast_signed()))) != 0
    }
}

/// The words of a range that does not cross a multiple of 16 TiB.
pub fn words(from: u64, to: u64) -> &'static [[AtomicU32; CELLS]] {
    debug_assert!(from.is_multiple_of(8) && to.is_multiple_of(8) && from <= to);
    // SAFETY: side by side inside the reservation, as they do not wrap around; never unmapped.
    unsafe { core::slice::from_raw_parts(cells(from), (to - from) as usize / 8) }
}

/// Whether a range crosses no multiple of 16 TiB.
pub const fn is_contiguous(from: u64, bytes: u64) -> bool {
    let last = from.wrapping_add(bytes - 1);
    last >= from && from >> ADDRESS_BITS == last >> ADDRESS_BITS
}

/// Puts a cell into a word that had none, and looks at it again: the cell that gave way unseen, or 0, if another thread put one
/// there.
///
/// Of two threads that come to the word before either has put its access there, one at least is told: both exchange, and look
/// behind that (Dekker's argument, see Dijkstra, "Cooperating sequential processes", 1965). The first touch of a page of the
/// shadow takes the kernel a microsecond, so threads that begin side by side often meet here. In words that have cells the moment
/// is as short as a few instructions, and to exchange takes as long as all the rest: there the later store wins.
#[inline(always)]
pub fn put_first(word: &[AtomicU32; CELLS], new: u32) -> Result<(), u32> {
    let old = word[0].swap(new, SeqCst);
    let [_, others @ ..] = values(look(word));
    if old == 0 && others == [0; CELLS - 1] { Ok(()) } else { Err(old) }
}

/// The tag of the word at an address.
#[inline(always)]
pub fn tag(address: u64) -> &'static AtomicU32 {
    // SAFETY: as above.
    unsafe { &*TAGS_AT.load(Relaxed).add(((address << 1) & SELECT) as usize / 16) }
}

/// A cell of this word is about to be written.
#[inline(always)]
pub fn mark(address: u64) {
    let at = (address & ((1 << ADDRESS_BITS) - 1)) >> MARKED;
    // SAFETY: as above.
    let mark = unsafe { &*MARKS.load(Relaxed).add(at as usize) };
    if mark.load(Relaxed) == 0 && mark.swap(1, Relaxed) == 0 {
        MARK_COUNT.fetch_add(1, Relaxed);
        GIGABYTES[(at >> (GIGABYTE - MARKED)) as usize].store(1, Release);
    }
}

fn is_marked(part: u64) -> bool {
    // SAFETY: as above.
    unsafe { (*MARKS.load(Relaxed).add(part as usize & ((1 << (ADDRESS_BITS - MARKED)) - 1))).load(Relaxed) != 0 }
}

/// Parts of 64 KiB of the program's memory that have cells.
pub fn marked() -> u64 {
    MARK_COUNT.load(Relaxed)
}

/// A walk over the cells of every marked part, in steps that may lie apart. Parts that are marked behind it are not visited.
#[derive(Clone, Copy)]
pub struct Walk {
    /// Next part to look at.
    at: usize,
}

impl Walk {
    pub const fn new() -> Self {
        Self { at: 0 }
    }

    /// The cells of the next one.
    pub fn next(&mut self) -> Option<&'static [AtomicU32]> {
        const WORDS: usize = (2 << MARKED) / 4;
        const IN_GIGABYTE: usize = 1 << (GIGABYTE - MARKED);
        while let Some(mark) = GIGABYTES.get(self.at / IN_GIGABYTE) {
            if mark.load(Acquire) == 0 {
                self.at = (self.at / IN_GIGABYTE + 1) * IN_GIGABYTE;
                continue;
            }
            // SAFETY: eight aligned marks of the reservation.
            if self.at.is_multiple_of(8) && unsafe { MARKS.load(Relaxed).add(self.at).cast::<u64>().read_volatile() } == 0 {
                self.at += 8;
                continue;
            }
            let part = self.at;
            self.at += 1;
            if is_marked(part as u64) {
                // SAFETY: a part's cells lie side by side inside the reservation.
                return Some(unsafe { core::slice::from_raw_parts(base().add(part << (MARKED + 1)).cast(), WORDS) });
            }
        }
        None
    }
}

/// The parts of a range that have cells, as whole words of the program's memory.
pub struct MarkedParts {
    at: u64,
    end: u64,
}

impl MarkedParts {
    pub const fn of(from: u64, bytes: u64) -> Self {
        Self { at: from & !7, end: from + bytes }
    }

    pub fn next(&mut self) -> Option<(u64, u64)> {
        while self.at < self.end {
            let (from, part) = (self.at, (self.at & ((1 << ADDRESS_BITS) - 1)) >> MARKED);
            self.at = self.end.min((from >> MARKED).wrapping_add(1) << MARKED);
            if is_marked(part) {
                return Some((from, self.at));
            }
        }
        None
    }
}

/// Whole pages of shadow that are given back rather than cleared.
const GIVE_BACK: u64 = 1 << 16;

/// Forgets all that was seen, and gives its memory back. Which parts were is still known: a thread may be writing there.
pub fn flush() {
    const DONTNEED: usize = 4;
    let mut walk = Walk::new();
    while let Some(cells) = walk.next() {
        // SAFETY: whole pages of the shadow; they read as zero from now on.
        unsafe { syscall!(sys::MADVISE, cells.as_ptr(), size_of_val(cells), DONTNEED) };
    }
}

/// Forgets what was seen of a range. Words at its ends are forgotten whole.
pub fn clear(from: u64, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let end = (from + bytes).next_multiple_of(8);
    let mut at = from & !7;
    let mut seen = at;
    while at < end {
        let part = (at & ((1 << ADDRESS_BITS) - 1)) >> MARKED;
        let stop = end.min((at >> MARKED).wrapping_add(1) << MARKED);
        if !is_marked(part) {
            clear_seen(seen, at);
            seen = stop;
        }
        at = stop;
    }
    clear_seen(seen, end);
}

/// The same where there are cells.
fn clear_seen(from: u64, to: u64) {
    const DONTNEED: usize = 4;
    // A page of shadow is 2 KiB of the program's memory.
    let (first, last) = (from.next_multiple_of(2048), to & !2047);
    if to - from >= GIVE_BACK && first < last {
        clear_words(from, first);
        // SAFETY: whole pages of the shadow; they read as zero from now on.
        unsafe { syscall!(sys::MADVISE, cells(first).as_ptr(), (last - first) * 2, DONTNEED) };
        clear_words(last, to);
    } else {
        clear_words(from, to);
    }
}

/// Forgets what lives in a range of whole pages.
pub fn clear_tags(from: u64, bytes: u64) {
    const DONTNEED: usize = 4;
    // A page of tags is 8 KiB of the program's memory.
    let (first, last) = (from.next_multiple_of(8192), (from + bytes) & !8191);
    if first < last {
        // SAFETY: whole pages of the tags; they read as zero from now on.
        unsafe { syscall!(sys::MADVISE, tag(first).as_ptr(), (last - first) / 2, DONTNEED) };
    }
    for (from, to) in [(from, first.min(from + bytes)), (last.max(from), from + bytes)] {
        for at in (from & !7..to).step_by(8) {
            if tag(at).load(Relaxed) != 0 {
                tag(at).store(0, Relaxed);
            }
        }
    }
}

fn clear_words(from: u64, to: u64) {
    let mut at = from;
    while at < to {
        put(cells(at), [0; CELLS]);
        at += 8;
    }
}

/// All cells of a word, whatever was there.
#[inline(always)]
pub fn put(word: &[AtomicU32; CELLS], all: [u32; CELLS]) {
    let (low, high) = (u64::from(all[0]) | u64::from(all[1]) << 32, u64::from(all[2]) | u64::from(all[3]) << 32);
    // SAFETY: SSE2 is part of x86-64; a word's cells are aligned to 16, and cells may be written by anybody. A machine store, as
    // others look at them meanwhile.
    unsafe {
        let all = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
        core::arch::asm!("movdqa [{word}], {all}", word = in(reg) word.as_ptr(), all = in(xmm_reg) all,
            options(nostack, preserves_flags));
    }
}
