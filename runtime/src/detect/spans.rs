//! References: what a cell says about who accessed, and how.
//!
//! A *span* is the part of a thread's execution in which no two accesses to the same bytes can be told apart by the detector: it
//! ends where the thread releases something (a new epoch), and for the hybrid also where its lock set changes. Each call stack
//! that accesses in a span takes one *reference*, whatever it accesses: sweeping through an array costs one. References of a span
//! lie side by side in a *window*, whose size is a power of two, so that "an access of my current span" is a subtraction and a
//! masked comparison. What a window has left over is the next span's.
//!
//! ```text
//! reference → stack (u32)
//! granule of 4 references → epoch, slot, atomic (looked at by checks) | thread, lock set (looked at by reports)
//! slab of 1024 references → slot, and the last epoch in it once nothing is added (looked at by every check)
//! ```
//! Most of what a check meets is from slabs that are full, long known to whoever asks: one small table says so, and the granules,
//! which are many, stay out of the caches.
//!
//! Windows are parts of *slabs*. When slabs run short, the older half of those that no current span uses is
//! *swept*: all cells that name them are cleared, then they are used again. A sweep goes a step further with each slab that is
//! taken, since whoever takes one may hold locks of the program that others wait for. What is lost is what was accessed millions
//! of references ago and not since. A thread may read a cell just before it is swept and look its reference up after it was
//! reused; that is why a race is only believed if the cell still holds the reference when everything about it has been read
//! ([`super::access`]).

use super::clock::Epoch;
use super::shadow::{self, REFERENCE_SHIFT, reserve};
use super::stacks::StackId;
use crate::report::{options, output};
use crate::system::lock::RawLock;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};
pub use rashomon_logic::windows::GRANULE;
use rashomon_logic::windows::{Room, SLAB};

pub const REFERENCE_BITS: u32 = 32 - REFERENCE_SHIFT;
const REFERENCES: u32 = 1 << REFERENCE_BITS;
const SLABS: u32 = REFERENCES / SLAB;
/// Reference 0 is none; the rest of its granule marks memory that was freed. The whole first slab is kept apart for that.
pub const FREED: u32 = 1;
/// A window of the slab that is never given out: no cell has a reference of it.
pub const NO_WINDOW: u32 = REFERENCES - SLAB;

/// When and by whom: what ordering asks of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct When {
    pub epoch: Epoch,
    /// `slot << 1 | atomic`
    pub slot_atomic: u32,
}

impl When {
    /// As one word, which is read and written whole.
    #[inline(always)]
    const fn of(word: u64) -> Self {
        Self { epoch: word as u32, slot_atomic: (word >> 32) as u32 }
    }
}

/// What else a granule's references have in common.
#[derive(Clone, Copy)]
#[repr(C)]
struct Rest {
    thread: u32,
    lock_set: u32,
}

/// What references of a granule have in common.
#[derive(Clone, Copy)]
pub struct Granule {
    pub when: When,
    pub thread: u32,
    pub lock_set: u32,
}

impl Granule {
    pub fn epoch(&self) -> Epoch {
        self.when.epoch
    }
    pub fn slot(&self) -> u32 {
        self.when.slot_atomic >> 1
    }
    pub fn is_atomic(&self) -> bool {
        self.when.slot_atomic & 1 != 0
    }
}

mod state {
    pub const FREE: u8 = 0;
    pub const USED: u8 = 1;
    pub const RETIRED: u8 = 2;
    pub const SWEPT: u8 = 3;
}

static STACKS: AtomicPtr<StackId> = AtomicPtr::new(core::ptr::null_mut());
static WHEN: AtomicPtr<When> = AtomicPtr::new(core::ptr::null_mut());
static RESTS: AtomicPtr<Rest> = AtomicPtr::new(core::ptr::null_mut());
/// By slab: a slot and its last epoch in it, as a [`When`] has them; epoch [`OPEN`]: references are still being added.
static BOUNDS: [AtomicU64; SLABS as usize] = [const { AtomicU64::new(0) }; SLABS as usize];
const OPEN: Epoch = Epoch::MAX;
static STATES: [AtomicU8; SLABS as usize] = [const { AtomicU8::new(state::FREE) }; SLABS as usize];
pub static LOCK: RawLock = RawLock::new();
/// Slab to look at next; slabs in use or retired.
static mut NEXT: u32 = 1;
static mut TAKEN: u32 = 1;
static mut SWEEP: Option<Sweep> = None;
static RETIRED: AtomicU32 = AtomicU32::new(0);
pub static SWEEPS: AtomicU64 = AtomicU64::new(0);
/// How often references may have come to stand for something else.
static MEANING: AtomicU32 = AtomicU32::new(0);

pub fn initialise() {
    const GRANULES: usize = (REFERENCES / GRANULE) as usize;
    STACKS.store(reserve(REFERENCES as usize * 4).cast(), Release);
    WHEN.store(reserve(GRANULES * size_of::<When>()).cast(), Release);
    RESTS.store(reserve(GRANULES * size_of::<Rest>()).cast(), Release);
    set_bound(0, When { epoch: OPEN, slot_atomic: 0 });
    // Nobody knows when memory was freed.
    define(0, 0, Granule { when: When { epoch: Epoch::MAX, slot_atomic: u32::MAX }, thread: 0, lock_set: 0 });
}

/// Unchanged: every reference that was in a cell stands for what it stood for. To be read after the cells.
#[inline(always)]
pub fn meaning() -> u32 {
    MEANING.load(Acquire)
}

/// When the access of a reference was made.
#[inline(always)]
pub fn when(reference: u32) -> When {
    // SAFETY: inside the table, whatever the reference.
    unsafe { *WHEN.load(Relaxed).add((reference / GRANULE) as usize) }
}

/// A time by which the access of a reference had been made: whoever knows that knows the access. Of slabs that are still being
/// filled it is the time itself. Whether it was atomic is not said.
#[inline(always)]
pub fn no_later_than(reference: u32) -> When {
    let bound = bound_of(reference / SLAB);
    // SAFETY: inside the table, whatever the reference.
    let exact = unsafe { WHEN.load(Relaxed).add((reference / GRANULE) as usize).cast::<AtomicU64>() };
    let is_open = When::of(bound.load(Relaxed)).epoch == OPEN;
    // SAFETY: both are of tables that stay.
    When::of(unsafe { (*core::hint::select_unpredictable(is_open, exact.cast_const(), bound)).load(Relaxed) })
}

/// The same if it says less than the time itself.
#[inline(always)]
pub fn bound(reference: u32) -> Option<When> {
    let bound = When::of(bound_of(reference / SLAB).load(Relaxed));
    (bound.epoch != OPEN).then_some(bound)
}

#[inline(always)]
fn bound_of(slab: u32) -> &'static AtomicU64 {
    &BOUNDS[(slab % SLABS) as usize]
}

fn set_bound(slab: u32, bound: When) {
    bound_of(slab).store(bound.epoch as u64 | (bound.slot_atomic as u64) << 32, Relaxed);
}

#[inline(always)]
pub fn granule(reference: u32) -> Granule {
    let at = (reference / GRANULE) as usize;
    // SAFETY: inside the tables, whatever the reference.
    unsafe {
        let rest = *RESTS.load(Relaxed).add(at);
        Granule { when: *WHEN.load(Relaxed).add(at), thread: rest.thread, lock_set: rest.lock_set }
    }
}

pub fn stack(reference: u32) -> StackId {
    // SAFETY: as above.
    unsafe { *STACKS.load(Relaxed).add(reference as usize) }
}

/// Slabs before it is time to sweep: more where sweeping takes longer.
fn allowance() -> u32 {
    let slabs = match options::get().references {
        0 => 512 + shadow::marked().min(1 << 16) as u32 * 4,
        asked => asked.clamp(8, SLABS as i64) as u32,
    };
    slabs.min(SLABS - 1)
}

/// More than half of the slabs belong to threads: each gives its own back when its span ends.
static CROWDED: AtomicBool = AtomicBool::new(false);
/// Current spans have all slabs.
static NONE_LEFT: AtomicBool = AtomicBool::new(false);

/// A slab for a thread. 0 when all are in use by current spans.
fn take_slab() -> u32 {
    if NONE_LEFT.load(Relaxed) {
        return 0;
    }
    let slab = take_free_slab();
    if slab == 0 {
        static SAID: AtomicBool = AtomicBool::new(false);
        NONE_LEFT.store(RETIRED.load(Relaxed) == 0, Relaxed);
        if !SAID.swap(true, Relaxed) {
            output::text(b"rashomon: too many threads access memory at once: accesses of some of them are not looked at\n");
        }
    }
    slab
}

fn take_free_slab() -> u32 {
    LOCK.with(|| {
        let (next, taken, sweep) = (&raw mut NEXT, &raw mut TAKEN, &raw mut SWEEP);
        // SAFETY: under the lock.
        let (next, taken, sweep) = unsafe { (&mut *next, &mut *taken, &mut *sweep) };
        let room = *taken + 1 < SLABS;
        // Sweeping for less than this is not worth the walk, as long as there is room.
        let worthwhile = if room { allowance() / 4 } else { 1 };
        if sweep.is_none() && *taken >= allowance() && RETIRED.load(Relaxed) >= worthwhile {
            *sweep = Some(Sweep::begin(*next));
        }
        if let Some(begun) = sweep {
            // Small allowances, and none that is left, want their slabs at once.
            let steps = if room && options::get().references == 0 { 1 + shadow::marked() / STEPS } else { u64::MAX };
            if begun.go_on(steps) {
                *taken -= begun.slabs;
                *sweep = None;
            }
        }
        for _ in 0..SLABS {
            // Not all that is free lies within the allowance.
            if *next >= allowance().max(*taken + 1).min(SLABS - 1) {
                *next = 1;
            }
            let slab = *next;
            *next += 1;
            if STATES[slab as usize].load(Acquire) == state::FREE {
                STATES[slab as usize].store(state::USED, Relaxed);
                set_bound(slab, When { epoch: OPEN, slot_atomic: 0 });
                *taken += 1;
                CROWDED.store(*taken - RETIRED.load(Relaxed).min(*taken) > SLABS / 2, Relaxed);
                return slab;
            }
        }
        0
    })
}

/// Slabs that are taken while a sweep lasts, at most.
const STEPS: u64 = 256;

/// Clears the cells that name the older half of the slabs that were retired when it began. Under [`LOCK`].
struct Sweep {
    walk: shadow::Walk,
    slabs: u32,
}

impl Sweep {
    /// `next`: the slab taken longest ago, as slabs are taken in turn.
    fn begin(next: u32) -> Self {
        SWEEPS.fetch_add(1, Relaxed);
        let want = RETIRED.load(Relaxed).div_ceil(2);
        let mut at = next;
        let mut slabs = 0;
        for _ in 0..SLABS {
            if slabs < want && STATES[at as usize].load(Acquire) == state::RETIRED {
                STATES[at as usize].store(state::SWEPT, Relaxed);
                slabs += 1;
            }
            at = if at + 1 >= SLABS - 1 { 1 } else { at + 1 };
        }
        RETIRED.fetch_sub(slabs, Relaxed);
        Self { walk: shadow::Walk::new(), slabs }
    }

    /// So many parts of the shadow more. True: it is over, and the slabs are free.
    fn go_on(&mut self, parts: u64) -> bool {
        // Every other cell of the lock set detector is no reference.
        let step = if super::detector() == super::Detector::LockSet { 2 } else { 1 };
        for _ in 0..parts {
            let Some(cells) = self.walk.next() else {
                // No cell has a swept reference any more. Whoever sees one from here on has seen this first.
                MEANING.fetch_add(1, Release);
                for slab in &STATES {
                    if slab.load(Relaxed) == state::SWEPT {
                        slab.store(state::FREE, Release);
                    }
                }
                return true;
            };
            for word in cells.chunks_exact(shadow::CELLS).filter(|word| shadow::has_any(word)) {
                for cell in word.iter().step_by(step) {
                    let seen = cell.load(Relaxed);
                    if seen != 0 && STATES[(seen >> REFERENCE_SHIFT) as usize / SLAB as usize].load(Relaxed) == state::SWEPT {
                        // If it was overwritten meanwhile, it names something newer.
                        let _ = cell.compare_exchange(seen, 0, Relaxed, Relaxed);
                    }
                }
            }
        }
        false
    }
}

/// Nothing is added to a slab any more.
fn retire(slab: u32, now: When) {
    set_bound(slab, now);
    RETIRED.fetch_add(1, Relaxed);
    STATES[slab as usize].store(state::RETIRED, Release);
    if NONE_LEFT.load(Relaxed) {
        NONE_LEFT.store(false, Relaxed);
    }
}

/// Slabs that one span can have pieces of.
const SPAN_SLABS: usize = 32;

/// References of one thread.
pub struct References {
    slab: u32,
    /// What is left of it.
    room: Room,
    /// Slabs before the current one that the current span still uses.
    kept: [u32; SPAN_SLABS],
    kept_count: usize,
}

/// References that are being given out one by one: a window, or a granule of its own.
#[derive(Clone, Copy)]
pub struct Block {
    pub base: u32,
    pub size: u32,
    pub next: u32,
}

impl Block {
    pub const NONE: Self = Self { base: 0, size: 0, next: 0 };

    pub fn is_full(&self) -> bool {
        self.next == self.base + self.size
    }

    /// Whether a reference is one of them, given out or not.
    #[inline(always)]
    pub fn has(&self, reference: u32) -> bool {
        reference.wrapping_sub(self.base) < self.size
    }
}

impl References {
    pub const fn new() -> Self {
        Self { slab: 0, room: Room::NONE, kept: [0; SPAN_SLABS], kept_count: 0 }
    }

    /// Another slab. False: there is none.
    fn go_on(&mut self) -> bool {
        if self.kept_count == SPAN_SLABS {
            return false;
        }
        let fresh = take_slab();
        if fresh == 0 {
            return false;
        }
        if self.slab != 0 {
            self.kept[self.kept_count] = self.slab;
            self.kept_count += 1;
        }
        self.slab = fresh;
        self.room = Room::WHOLE;
        true
    }

    /// A granule. `NONE` when there is no room.
    pub fn granule(&mut self) -> Block {
        self.part(|room| room.granule().map(|begin| (begin, GRANULE)))
    }

    /// A window, as large as the slab has room for. It has to be [`Self::close`]d before the next one. `NONE` when there is no
    /// room.
    pub fn window(&mut self) -> Block {
        self.part(|room| room.window())
    }

    fn part(&mut self, of: impl Fn(&mut Room) -> Option<(u32, u32)>) -> Block {
        let mut part = if self.slab == 0 { None } else { of(&mut self.room) };
        if part.is_none() && self.go_on() {
            part = of(&mut self.room);
        }
        part.map_or(Block::NONE, |(begin, size)| {
            let base = self.slab * SLAB + begin;
            Block { base, size, next: base }
        })
    }

    /// What a window has not given out is room for the next one.
    pub fn close(&mut self, window: Block) {
        if window.size != 0 {
            self.room.close(window.next - self.slab * SLAB);
        }
    }

    /// Whether a reference lies in a slab that is not retired yet.
    pub fn owns(&self, reference: u32) -> bool {
        let slab = reference / SLAB;
        self.slab == slab || self.kept[..self.kept_count].contains(&slab)
    }

    /// Whether so many slabs are kept that one thread should not have more.
    pub fn is_long(&self) -> bool {
        self.kept_count >= 2
    }

    /// Whether the span has all the slabs that one can have.
    pub fn is_full(&self) -> bool {
        self.kept_count == SPAN_SLABS
    }

    /// The span is over, at that time of the thread's: no cell will be given a reference of it any more.
    pub fn span_ends(&mut self, now: When) {
        for &slab in &self.kept[..self.kept_count] {
            retire(slab, now);
        }
        self.kept_count = 0;
        if self.slab != 0 && CROWDED.load(Relaxed) {
            retire(self.slab, now);
            self.slab = 0;
        }
    }

    /// The thread is over.
    pub fn end(&mut self, now: When) {
        self.span_ends(now);
        if self.slab != 0 {
            retire(self.slab, now);
            self.slab = 0;
        }
    }
}

/// Defines a reference; at the begin of a granule also what it shares with the next ones.
pub fn define(reference: u32, stack: StackId, shared: Granule) {
    // SAFETY: inside the tables, and the calling thread's own block.
    unsafe {
        if reference.is_multiple_of(GRANULE) {
            let at = (reference / GRANULE) as usize;
            *WHEN.load(Relaxed).add(at) = shared.when;
            *RESTS.load(Relaxed).add(at) = Rest { thread: shared.thread, lock_set: shared.lock_set };
        }
        *STACKS.load(Relaxed).add(reference as usize) = stack;
    }
}
