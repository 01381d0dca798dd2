//! Objects that synchronise: what has been released to each address.
//!
//! A word's tag ([`super::shadow::tag`]) names its object; an object at the first word of a heap block is named by the block
//! ([`super::blocks`]). Small atomics may share a word: each is an object, and those of a word form a list, for a store to one
//! must not replace what was released with the other. Objects appear when first used and vanish with the memory they lie in. Each
//! has a *life*, a number that no other object ever had: two locks at one address, one after the other, are two locks.

use super::clock::{Clock, Epoch};
use super::locksets::{self, Element, LockSet};
use super::shadow::{self, reserve};
use super::stacks::StackId;
use super::{blocks, lock_order};
use crate::report::Lock;
use crate::system::guarded::Guarded;
use crate::system::lock::RawLock;
use crate::system::shared::Shared;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

/// A number that names one object of all that ever were.
pub type Life = u64;

const MAX_OBJECTS: u32 = 1 << 24;
/// So many at once are made when they are initialised; further ones when they are first used. Programs have tables of millions of
/// locks, of which they use few.
const MADE_AT_ONCE: u32 = 1 << 20;
/// Bits of a life in a lock set's element, above the object's number and the bit for shared.
const LIFE_BITS: u32 = 39;

pub struct Object {
    lock: RawLock,
    known: Guarded<Known>,
    number: Shared<u32>,
    address: Shared<u64>,
    life: Shared<Life>,
    /// `released` is exactly what this slot knew at the begin of this epoch; slot `u32::MAX`: it is not.
    pub last_slot: Shared<u32>,
    pub last_epoch: Shared<Epoch>,
    /// Another slot than `last_slot` has received it.
    pub received: AtomicBool,
    /// Where it was created, or first used.
    pub creation: Shared<StackId>,
    /// Of a lock: see `record::lock_kind`, and [`flag`].
    pub flags: Shared<u32>,
    /// Of a lock: how often its owner holds it exclusively, how many hold it shared; number + 1 of the thread that owns it, or
    /// did last; where that took it, or gave it up.
    pub recursion: Shared<u32>,
    pub readers: Shared<u32>,
    pub owner: Shared<u32>,
    pub owner_stack: Shared<StackId>,
    /// The set of this lock alone, held exclusively; [`locksets::EMPTY`]: not known.
    pub alone: Shared<LockSet>,
    pub seen: Seen,
    next_free: Shared<u32>,
    /// Another one in the same word. Written before the object is found, and when none of the word's can be used any more.
    next_in_word: Shared<u32>,
}

/// What was released to an object.
pub struct Known {
    /// Of a lock: by exclusive holders.
    pub released: Clock,
    /// By shared holders since.
    pub shared: Clock,
}

/// An object whose lock the thread holds until this is dropped. Words of an object are written under its lock, and read at any
/// time; what was released is for the holder alone.
pub struct Locked<'a>(&'a Object);

impl Locked<'_> {
    #[inline(always)]
    pub fn known(&mut self) -> &mut Known {
        // SAFETY: under the lock, and this is the only guard of it.
        unsafe { &mut *self.0.known.as_ptr() }
    }
}

impl Deref for Locked<'_> {
    type Target = Object;

    #[inline(always)]
    fn deref(&self) -> &Object {
        self.0
    }
}

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.lock.unlock();
    }
}

/// The cells of a lock's first word when a thread last looked at them, and that thread's slot.
pub struct Seen {
    pub cells: [AtomicU64; 2],
    pub slot: AtomicU32,
}

impl Seen {
    fn now(address: u64) -> [u64; 2] {
        let cells = shadow::cells(address);
        let word = |at: usize| cells[at].load(Relaxed) as u64 | (cells[at + 1].load(Relaxed) as u64) << 32;
        [word(0), word(2)]
    }
    /// Nobody has accessed the word since that thread looked, which has this slot.
    pub fn is_still(&self, address: u64, slot: u32) -> bool {
        self.slot.load(Relaxed) == slot && self.is_unchanged(address)
    }
    pub fn is_unchanged(&self, address: u64) -> bool {
        Self::now(address) == [self.cells[0].load(Relaxed), self.cells[1].load(Relaxed)]
    }
    pub fn remember(&self, address: u64, slot: u32) {
        let [first, second] = Self::now(address);
        self.cells[0].store(first, Relaxed);
        self.cells[1].store(second, Relaxed);
        self.slot.store(slot, Relaxed);
    }
}

/// Flags above those of `record::lock_kind`.
pub mod flag {
    /// It is a lock.
    pub const LOCK: u32 = 1 << 16;
    pub const DESTROYED: u32 = 1 << 17;
    /// Something wrong with it was reported already.
    pub const REPORTED: u32 = 1 << 18;
    /// It was initialised before it was used, not found in use.
    pub const INITIALISED: u32 = 1 << 19;
    /// The program itself tells what is released to it: stores do not replace that.
    pub const TOLD: u32 = 1 << 30;
    /// The flags that an annotation gave ([`super::super::locks::flag`]) are shifted by this.
    pub const ANNOTATED: u32 = 20;
}

impl Object {
    #[inline(always)]
    pub fn lock(&self) -> Locked<'_> {
        self.lock.lock();
        Locked(self)
    }

    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number.get()
    }

    pub fn address(&self) -> u64 {
        self.address.get()
    }

    #[inline(always)]
    pub fn life(&self) -> Life {
        self.life.get()
    }

    #[inline(always)]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.get() & flag != 0
    }

    /// A call initialised it; its definition did not.
    pub fn is_initialised(&self) -> bool {
        self.has(flag::INITIALISED)
    }

    /// As a report tells of it: held for writing, or not.
    pub fn as_told(&self, write: bool) -> Lock {
        Lock {
            address: self.address(),
            write,
            destroyed: self.has(flag::DESTROYED),
            initialised: self.is_initialised(),
            created: self.creation.get(),
        }
    }

    /// It moved there, while nobody used it.
    pub fn moved(&self, address: u64) {
        self.address.set(address);
        self.seen.slot.store(u32::MAX, Relaxed);
    }

    /// Nobody holds it, as it is new.
    fn begins(&self, creation: StackId, flags: u32) {
        self.life.set(LIVES.fetch_add(1, Relaxed));
        self.alone.set(locksets::EMPTY);
        self.creation.set(creation);
        self.flags.set(flags);
        self.is_unowned();
    }

    fn is_unowned(&self) {
        self.last_slot.set(u32::MAX);
        self.owner.set(0);
        self.recursion.set(0);
        self.readers.set(0);
        self.seen.slot.store(u32::MAX, Relaxed);
    }
}

impl Locked<'_> {
    /// What was released to it reaches a slot.
    #[inline(always)]
    pub fn is_received(&self, slot: u32) {
        if self.last_slot.get() != slot {
            self.received.store(true, Relaxed);
        }
    }

    /// What was released to it is exactly what a slot knew at the begin of an epoch, and nobody received it.
    pub fn is_released_at(&self, slot: u32, epoch: Epoch) {
        self.last_slot.set(slot);
        self.last_epoch.set(epoch);
    }

    /// A thread that is at this epoch of its slot adds what it knows. If it has known all that was released here, then that is
    /// exactly what it knows: whoever knows this epoch need not look.
    pub fn is_added(&mut self, clock: &Clock, slot: u32, epoch: Epoch) {
        let (last_slot, last_epoch) = (self.last_slot.get(), self.last_epoch.get());
        let released = &mut self.known().released;
        if released.is_empty() || last_slot != u32::MAX && clock.get(last_slot) >= last_epoch {
            released.assign(clock);
            self.is_released_at(slot, epoch);
        } else {
            released.join(clock);
            self.last_slot.set(u32::MAX);
        }
    }

    /// Nobody has held or used it.
    pub fn unowned(&mut self) {
        let known = self.known();
        known.released.clear();
        known.shared.clear();
        self.is_unowned();
    }

    /// The object becomes another one at the same address.
    pub fn reborn(&mut self, creation: StackId) {
        self.begins(creation, self.flags.get());
        self.unowned();
    }
}

/// Locks that vanished last: what a report says about one that was held then.
const REMEMBERED: usize = 4096;

#[derive(Clone, Copy)]
struct Gone {
    life: Life,
    address: u64,
    initialised: bool,
    creation: StackId,
}

static mut GONE: [Gone; REMEMBERED] = [Gone { life: 0, address: 0, initialised: false, creation: 0 }; REMEMBERED];
static mut GONE_COUNT: usize = 0;

static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(1);
/// How many there are at this time.
static ALIVE: AtomicU32 = AtomicU32::new(0);
static LIVES: AtomicU64 = AtomicU64::new(1);
pub static LOCK: RawLock = RawLock::new();
static mut FREE: u32 = 0;

pub fn initialise() {
    OBJECTS.store(reserve(MAX_OBJECTS as usize * size_of::<Object>()).cast(), Release);
}

/// # Safety
/// A number from a tag or a lock set's element.
pub unsafe fn by_number(number: u32) -> &'static Object {
    // SAFETY: inside the table, which is never unmapped.
    unsafe { &*OBJECTS.load(Relaxed).add(number as usize) }
}

/// The tag that names the object at an address.
fn slot_of(address: u64) -> &'static AtomicU32 {
    let tag = shadow::tag(address);
    match blocks::of_tag(tag.load(Acquire)) {
        Some(block) => &block.object,
        None => tag,
    }
}

/// The object at an address, if there is one.
#[inline]
pub fn find(address: u64) -> Option<&'static Object> {
    let mut number = slot_of(address).load(Acquire);
    if blocks::is_block(number) {
        return None;
    }
    while number != 0 {
        // SAFETY: from a tag, or from such an object's list.
        let object = unsafe { by_number(number) };
        if object.address() == address {
            return Some(object);
        }
        number = object.next_in_word.get();
    }
    None
}

/// Whether an object had better be made when somebody uses it.
pub fn are_many() -> bool {
    ALIVE.load(Relaxed) >= MADE_AT_ONCE
}

/// The object at an address; `creation` is asked for where it is first used, if need be.
pub fn get(address: u64, creation: impl FnOnce() -> StackId) -> &'static Object {
    if let Some(known) = find(address) {
        return known;
    }
    let creation = creation();
    LOCK.with(|| {
        if let Some(known) = find(address) {
            return known;
        }
        // SAFETY: under the lock.
        let number = unsafe {
            if FREE != 0 {
                let number = FREE;
                FREE = by_number(number).next_free.get();
                number
            } else {
                let number = COUNT.fetch_add(1, Relaxed);
                if number >= MAX_OBJECTS {
                    crate::system::sys::die(&[b"more synchronisation objects at once than the detector can hold (2^24)"]);
                }
                number
            }
        };
        ALIVE.fetch_add(1, Relaxed);
        // SAFETY: nobody knows it yet.
        let object = unsafe { by_number(number) };
        object.number.set(number);
        object.address.set(address);
        object.begins(creation, 0);
        let slot = slot_of(address);
        object.next_in_word.set(slot.load(Relaxed));
        slot.store(number, Release);
        object
    })
}

/// The lock as an element of lock sets.
pub fn element(object: &Object, shared: bool) -> Element {
    (object.life() & ((1 << LIFE_BITS) - 1)) << (64 - LIFE_BITS) | (object.number() as u64) << 1 | shared as u64
}

/// The lock of an element; `None` when it is no more.
pub fn of_element(element: Element) -> Option<&'static Object> {
    // SAFETY: the number of an object that was.
    let object = unsafe { by_number((element >> 1) as u32 & (MAX_OBJECTS - 1)) };
    (element >> (64 - LIFE_BITS) == object.life() & ((1 << LIFE_BITS) - 1)).then_some(object)
}

/// Address, whether a call initialised it, and creation of a lock that is no more, if it vanished not too long ago.
pub fn of_gone_element(element: Element) -> Option<(u64, bool, StackId)> {
    let gone = &raw const GONE;
    let life = element >> (64 - LIFE_BITS);
    LOCK.with(|| {
        // SAFETY: under the lock.
        let gone = unsafe { &*gone };
        let known = gone.iter().find(|gone| gone.life != 0 && gone.life & ((1 << LIFE_BITS) - 1) == life)?;
        Some((known.address, known.initialised, known.creation))
    })
}

/// A forked child: an object that somebody was changing is begun anew.
///
/// # Safety
/// In a child that has one thread, which knows all that was released.
pub unsafe fn forked() {
    for number in 1..COUNT.load(Relaxed) {
        // SAFETY: by the contract; numbers below the count were given out.
        let object = unsafe { by_number(number) };
        if object.lock.is_locked() {
            object.lock.reset();
            let mut object = object.lock();
            // The arrays may be anybody's.
            *object.known() = Known { released: Clock::new(), shared: Clock::new() };
            object.last_slot.set(u32::MAX);
        }
    }
}

/// The objects of this tag vanish.
pub fn remove(tag: &AtomicU32) {
    let number = tag.load(Relaxed);
    if number == 0 || blocks::is_block(number) {
        return;
    }
    LOCK.with(|| {
        let mut number = tag.swap(0, AcqRel);
        while number != 0 {
            // SAFETY: from a tag, or from such an object's list.
            let object = unsafe { by_number(number) };
            let mut object = object.lock();
            if object.has(flag::LOCK) {
                let gone = &raw mut GONE;
                // SAFETY: under the lock.
                unsafe {
                    (*gone)[GONE_COUNT % REMEMBERED] = Gone {
                        life: object.life(),
                        address: object.address(),
                        initialised: object.is_initialised(),
                        creation: object.creation.get(),
                    };
                    GONE_COUNT += 1;
                }
            }
            lock_order::forget(&object);
            object.reborn(0);
            object.address.set(0);
            ALIVE.fetch_sub(1, Relaxed);
            number = object.next_in_word.replace(0);
            // SAFETY: under the lock.
            unsafe {
                object.next_free.set(FREE);
                FREE = object.number();
            }
        }
    });
}

/// Shows the objects that a tag names.
pub fn each_in_word(tag: u32, mut visit: impl FnMut(&'static Object)) {
    let mut number = match blocks::of_tag(tag) {
        Some(block) => block.object.load(Acquire),
        None => tag,
    };
    while number != 0 {
        // SAFETY: from a tag, or from such an object's list.
        let object = unsafe { by_number(number) };
        number = object.next_in_word.get();
        visit(object);
    }
}

/// The memory `[from, from + bytes)` is no longer what it was: objects in it vanish, each after it was shown to `last_look`.
pub fn remove_range(from: u64, bytes: u64, mut last_look: impl FnMut(&Object)) {
    let mut at = from & !7;
    let end = from.saturating_add(bytes);
    while at < end {
        let tag = shadow::tag(at);
        if tag.load(Relaxed) != 0 {
            each_in_word(tag.load(Acquire), &mut last_look);
            remove(tag);
        }
        at += 8;
    }
}
