//! Sets of locks as numbers: equal sets have equal numbers, and 0 is the empty one.
//!
//! An element is a lock of one life ([`super::objects::element`]) and whether it is held shared. Sets are sorted and stored once;
//! the steps between sets that threads keep making are remembered by each of them.

use super::numbers::Numbers;
use super::shadow::reserve;
use crate::system::lock::RawLock;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};
use rashomon_logic::locksets;
pub use rashomon_logic::locksets::Element;

pub type LockSet = u32;
pub const EMPTY: LockSet = 0;
const MAX_SETS: usize = 1 << 22;
const ARENA_WORDS: usize = 1 << 28;

/// Word 0: how many; then the elements, sorted.
static SETS: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
static ARENA: AtomicPtr<Element> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(1);
static mut USED: usize = 1;
pub static LOCK: RawLock = RawLock::new();
static NUMBERS: Numbers = Numbers::new();

pub fn initialise() {
    SETS.store(reserve(MAX_SETS * 4).cast(), Release);
    ARENA.store(reserve(ARENA_WORDS * 8).cast(), Release);
    NUMBERS.initialise(1 << 10);
}

/// The elements of a set, sorted.
pub fn elements(set: LockSet) -> &'static [Element] {
    // SAFETY: numbers come from `intern`; the arena is never unmapped, and a set never changes.
    unsafe {
        let at = ARENA.load(Relaxed).add(*SETS.load(Relaxed).add(set as usize) as usize);
        core::slice::from_raw_parts(at.add(1), *at as usize)
    }
}

fn intern(elements_of: &[Element]) -> LockSet {
    if elements_of.is_empty() {
        return EMPTY;
    }
    let hash = elements_of
        .iter()
        .fold(0x9e37_79b9_7f4a_7c15u64, |hash, &element| (hash ^ element).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29));
    let find = || NUMBERS.find((hash ^ hash >> 32) as u32, |set| elements(set) == elements_of);
    if let Ok(known) = find() {
        return known;
    }
    LOCK.with(|| {
        let free = match find() {
            Ok(known) => return known,
            Err(free) => free,
        };
        let set = COUNT.load(Relaxed);
        // SAFETY: under the lock; both tables are large enough.
        unsafe {
            if set as usize >= MAX_SETS || USED + elements_of.len() + 1 > ARENA_WORDS {
                return EMPTY;
            }
            let at = ARENA.load(Relaxed).add(USED);
            *at = elements_of.len() as u64;
            core::ptr::copy_nonoverlapping(elements_of.as_ptr(), at.add(1), elements_of.len());
            *SETS.load(Relaxed).add(set as usize) = USED as u32;
            USED += elements_of.len() + 1;
        }
        COUNT.store(set + 1, Release);
        NUMBERS.add(&free, set);
        set
    })
}

/// The set with one element more, or less.
pub fn changed(set: LockSet, element: Element, held: bool) -> LockSet {
    intern(locksets::changed(elements(set), element, held).elements())
}

/// The set of one lock.
pub fn of_one(element: Element) -> LockSet {
    intern(&[element])
}

/// [`locksets::intersection`].
pub fn intersection(a: LockSet, b: LockSet) -> LockSet {
    if a == b { a } else { intern(locksets::intersection(elements(a), elements(b)).elements()) }
}

/// [`locksets::protects`].
pub fn protects(a: LockSet, b: LockSet) -> bool {
    a != EMPTY && b != EMPTY && locksets::protects(elements(a), elements(b))
}

/// [`locksets::is_subset`].
pub fn is_subset(a: LockSet, b: LockSet) -> bool {
    a == b || a == EMPTY || locksets::is_subset(elements(a), elements(b))
}

/// A step: from a set, to another, by which element.
type Step = (LockSet, LockSet, Element);

/// How many steps a thread remembers: servers have a lock for each of many objects.
const STEPS_BITS: u32 = 10;

/// Steps that a thread made lately. No element is 0, so that all bytes zero are no step.
pub struct Steps(*mut Step);

impl Steps {
    pub const BYTES: usize = size_of::<Step>() << STEPS_BITS;

    /// Of no thread yet.
    pub const fn new() -> Self {
        Self(core::ptr::null_mut())
    }

    /// # Safety
    /// [`Self::BYTES`] of memory, all zero, which nobody else uses for as long as steps are made.
    pub unsafe fn begin(&mut self, memory: *mut u8) {
        self.0 = memory.cast();
    }

    /// [`changed`], remembered.
    pub fn step(&mut self, set: LockSet, element: Element, held: bool) -> LockSet {
        let key = element ^ (held as u64) << 63;
        let at = ((set as u64 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - STEPS_BITS)) as usize;
        debug_assert!(!self.0.is_null() && key != 0);
        // SAFETY: inside the thread's table.
        let known = unsafe { &mut *self.0.add(at) };
        if known.0 != set || known.2 != key {
            *known = (set, changed(set, element, held), key);
        }
        known.1
    }
}
