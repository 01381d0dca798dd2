//! What the detector knows of one thread.

use super::blocks::Reserve;
use super::clock::{Clock, Epoch};
use super::fast::{self, Memos};
use super::handlers::Running;
use super::ignores::Begun;
use super::locks::Held;
use super::locksets::{self, LockSet, Steps};
use super::places::{self, Cached};
use super::shadow::{self, REFERENCE_SHIFT};
use super::spans::{Block, NO_WINDOW, References, When};
use super::stacks::{Calls, StackId};
use super::statistics::Counts;
use super::tree::{self, Tree};
use super::{Detector, Own, closings, detector, lock_order};
use crate::system::memory::List;
use crate::system::pool::Pool;
use crate::system::shared::Shared;
use crate::system::sys;
use crate::system::thread::all;
use crate::system::tls::Hot;
use core::arch::x86_64::{__m128i, _mm_set1_epi32, _mm_sub_epi32};
use core::sync::atomic::Ordering::Relaxed;

const CACHED: usize = 2048;
/// Places of the program that have memos.
const MEMOS: usize = 128;
/// A thread's tables: memos, [`Cached`], steps between lock sets, calls; and its last generation. All that they say is true for
/// any thread, but for what is of a generation or of a reference: they go to the next thread as they are.
const TABLES: usize = MEMOS * size_of::<Memos>() + CACHED * size_of::<Cached>() + Steps::BYTES + Calls::BYTES + 8;

static KEPT: Pool = Pool::new(TABLES);

/// What others may ask of it at any time.
pub struct Told {
    /// The slot that the thread's epochs are counted in, and the current one.
    pub slot: Shared<u32>,
    pub epoch: Shared<Epoch>,
    /// Where this thread was created.
    pub creation: Shared<StackId>,
    pub counts: Counts,
}

pub struct Local {
    pub clock: Clock,
    pub lock_set: LockSet,
    pub steps: Steps,
    pub held: List<Held>,
    pub orders: lock_order::Known,
    /// Depth of regions whose synchronisation the program does not want to count.
    pub ignores_sync: u32,
    /// Where regions began that leave out accesses, and synchronisation.
    pub ignores_begun: [Begun; 2],
    /// Signal handlers that run; the signal that the thread is sending to itself.
    pub handlers: Running,
    pub sending: i32,
    /// Where the hot block of this thread is kept while another fibre runs in its place.
    pub parked: *mut Hot,
    pub blocks: Reserve,
    /// Of the latest release fence; empty: there was none.
    pub fence_released: Clock,
    /// What relaxed loads saw that no acquire fence has received yet.
    pub fence_pending: Clock,
    pub has_fence: bool,

    pub closed_last: closings::Last,

    /// Where the thread last slept, and what others had done when it went on.
    slept_at: StackId,
    slept: Clock,

    /// The current call context, and that of each entry of the shadow stack.
    pub(super) context: StackId,
    pub(super) context_path: List<StackId>,
    pub(super) calls: Calls,

    /// Numbers spans, and stretches of them with one lock set.
    pub(super) generation: u32,
    pub(super) references: References,
    pub(super) atomic_references: References,
    pub(super) window: Block,
    pub(super) atomic_block: Block,
    /// The lock set changed since the window's last granule was begun.
    pub(super) granule_stale: bool,
    cache: *mut Cached,
    memos: *mut Memos,
    random: u32,
    pub tree: Tree,
}

impl Local {
    /// A thread that begins with what its creator passed on.
    pub fn new() -> Self {
        Self {
            clock: Clock::new(),
            lock_set: locksets::EMPTY,
            steps: Steps::new(),
            held: List::new(),
            orders: lock_order::Known::new(),
            ignores_sync: 0,
            ignores_begun: [Begun::new(), Begun::new()],
            handlers: Running::new(),
            sending: 0,
            parked: core::ptr::null_mut(),
            blocks: Reserve::new(),
            fence_released: Clock::new(),
            fence_pending: Clock::new(),
            has_fence: false,
            closed_last: closings::Last::NONE,
            slept_at: 0,
            slept: Clock::new(),
            context: 0,
            context_path: List::new(),
            calls: Calls::new(),
            generation: 1,
            references: References::new(),
            atomic_references: References::new(),
            window: Block::NONE,
            atomic_block: Block::NONE,
            granule_stale: false,
            cache: core::ptr::null_mut(),
            memos: core::ptr::null_mut(),
            random: 0x9e37_79b9,
            tree: Tree::new(),
        }
    }

    /// `slot`: the thread's.
    pub fn begin(&mut self, slot: u32) {
        self.memos = KEPT.take().cast();
        if self.memos.is_null() {
            sys::die(&[b"out of memory for a new thread"]);
        }
        // SAFETY: inside the tables, which are this thread's; all bytes zero are tables that know nothing.
        unsafe {
            self.cache = self.memos.add(MEMOS).cast();
            let steps = self.cache.add(CACHED).cast::<u8>();
            self.steps.begin(steps);
            self.calls.begin(steps.add(Steps::BYTES));
            self.generation = Self::last_generation(self.memos).read().wrapping_add(1);
        }
        self.tree.begin();
        self.random = self.random.wrapping_add(slot.wrapping_mul(0x85eb_ca6b)) | 1;
    }

    /// The thread makes no access any more. Its clock stays, for whoever joins it.
    pub fn end(&mut self, now: When) {
        self.tree.end(now);
        self.references.end(now);
        self.atomic_references.end(now);
        self.blocks.shrink(0);
        self.fence_released.clear();
        self.fence_pending.clear();
        self.slept.clear();
        self.held.clear_and_free();
        self.orders.free();
        self.context_path.clear_and_free();
        // SAFETY: the thread's own tables, used no more.
        unsafe {
            Self::last_generation(self.memos).write(self.generation);
            KEPT.put(self.memos.cast());
        }
        self.cache = core::ptr::null_mut();
    }

    /// Where the tables keep it.
    fn last_generation(tables: *mut Memos) -> *mut u32 {
        // SAFETY: inside the tables, behind the calls.
        unsafe { tables.byte_add(TABLES - 8).cast() }
    }

    pub fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    #[inline(always)]
    fn mixed(site: u64, context: StackId) -> usize {
        let mixed = (site as u32).wrapping_mul(0x9e37_79b1) ^ context.wrapping_mul(0x85eb_ca6b);
        (mixed ^ mixed >> 15) as usize
    }

    #[inline(always)]
    pub(super) fn cached(&mut self, site: u64, context: StackId) -> &'static mut Cached {
        // SAFETY: inside the thread's table.
        unsafe { &mut *self.cache.add(Self::mixed(site, context) % CACHED) }
    }

    #[inline(always)]
    pub(super) fn memos(&self, site: u64, context: StackId) -> *mut Memos {
        // SAFETY: inside the thread's table.
        unsafe { self.memos.add(Self::mixed(site, context) % MEMOS) }
    }

    /// Cells with references of the window.
    #[inline(always)]
    pub fn of_window(&self, cells: __m128i) -> u32 {
        if self.window.size == 0 {
            return 0;
        }
        let select = !((self.window.size << REFERENCE_SHIFT) - 1);
        // SAFETY: SSE2 is part of x86-64.
        let cells = unsafe { _mm_sub_epi32(cells, _mm_set1_epi32((self.window.base << REFERENCE_SHIFT).cast_signed())) };
        fast::equal(cells, select, 0)
    }
}

/// Nothing of this thread's current span is recognised by the hooks.
fn uncover(thread: &mut Own) {
    thread.hot().window.set([NO_WINDOW << REFERENCE_SHIFT; 4]);
}

/// The hooks recognise accesses with references of this window.
pub fn cover(thread: &mut Own, window: Block) {
    if super::counting() {
        return;
    }
    thread.hot().window.set([window.base << REFERENCE_SHIFT; 4]);
    cover_as_many(thread, window.size);
}

/// The thread's next plain access has to enter the runtime, where a signal that came while a hook ran is told to the program. Not
/// while the runtime's own code runs.
pub fn enters_soon(hot: &Hot) {
    hot.window.set([NO_WINDOW << REFERENCE_SHIFT; 4]);
    hot.dirty.set(1);
}

/// It has entered.
pub fn cover_again(thread: &mut Own) {
    let window = thread.detect.window;
    if window.size != 0 && thread.hot().window.get()[0] != window.base << REFERENCE_SHIFT {
        cover(thread, window);
    }
}

/// Windows have so many references, a power of two.
fn cover_as_many(thread: &mut Own, size: u32) {
    let select = !((size << REFERENCE_SHIFT) - 1);
    let hot = thread.hot();
    if hot.covers_read.get()[0] != select {
        hot.covers_read.set([select; 4]);
        hot.covers_write.set([select | shadow::READ; 4]);
        hot.covers_read_word.set([select | shadow::BYTES; 4]);
        hot.covers_write_word.set([select | shadow::READ | shadow::BYTES; 4]);
    }
}

/// Whether the hooks recognise a reference.
#[inline(always)]
pub fn is_covering(thread: &Own, reference: u32) -> bool {
    thread.detect.window.has(reference)
}

/// What the hooks ask, where they do not: whether the span has covered an access within a word.
pub fn is_covered(thread: &Own, address: u64, bytes: u64, is_read: bool) -> bool {
    let bits = shadow::byte_bits(address, bytes);
    shadow::cells(address)
        .iter()
        .map(|cell| cell.load(Relaxed))
        .any(|cell| cell & bits == bits && (is_read || cell & shadow::READ == 0) && is_covering(thread, cell >> REFERENCE_SHIFT))
}

/// The hooks let every access through to the slow path, until the span's next reference.
pub fn open(thread: &mut Own) {
    thread.hot().whole_word.set([shadow::BYTES; 4]);
    cover_as_many(thread, 1);
    uncover(thread);
}

/// The thread's own time.
pub fn now(thread: &Own) -> When {
    When { epoch: thread.detected().epoch.get(), slot_atomic: thread.detected().slot.get() << 1 }
}

pub fn span_ends(thread: &mut Own) {
    let now = now(thread);
    let record = thread.thread();
    let local = &mut thread.detect;
    local.generation = local.generation.wrapping_add(1);
    if local.window.size == 0 && local.atomic_block.size == 0 {
        return;
    }
    record.detected().counts.spans.add(1);
    local.references.close(local.window);
    local.references.span_ends(now);
    local.atomic_references.span_ends(now);
    local.window = Block::NONE;
    local.atomic_block = Block::NONE;
    uncover(thread);
}

/// Everything up to here was passed on to somebody: what follows is another epoch.
pub fn epoch_ends(thread: &mut Own) {
    span_ends(thread);
    thread.next_epoch();
    tree::sends(thread);
}

/// The same; what was passed on is a mutex, to whoever locks it next.
pub fn released(thread: &mut Own, object: u32) {
    span_ends(thread);
    thread.next_epoch();
    tree::releases(thread, object);
}

/// The thread is going to sleep.
pub fn sleeps(thread: &mut Own, site: u64) {
    thread.detect.slept_at = places::call_stack(thread, site);
}

/// The thread has slept.
pub fn wakes(thread: &mut Own) {
    for other in all() {
        // An epoch that changes meanwhile is a little old.
        let (slot, epoch) = (other.detected().slot.get(), other.detected().epoch.get());
        thread.detect.slept.set(slot, epoch);
    }
}

/// Where a thread slept, if what `when` tells of had been done by the time it went on.
pub fn slept_since(thread: &Own, when: When) -> StackId {
    let local = &thread.detect;
    if local.slept_at != 0 && local.slept.get(when.slot_atomic >> 1) >= when.epoch { local.slept_at } else { 0 }
}

/// What follows is done under another lock set.
pub fn lock_set_changes(thread: &mut Own, to: LockSet) {
    if thread.detect.lock_set == to {
        return;
    }
    thread.detect.lock_set = to;
    match detector() {
        // The order of events decides; the lock set is told in reports only.
        Detector::HappensBefore => {
            thread.detect.generation = thread.detect.generation.wrapping_add(1);
            thread.detect.granule_stale = true;
            thread.detect.atomic_block = Block::NONE;
        }
        Detector::LockSet | Detector::Hybrid => span_ends(thread),
    }
}
