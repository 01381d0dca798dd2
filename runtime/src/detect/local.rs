//! What the detector knows of one thread.

use super::blocks::Reserve;
use super::clock::{Clock, Epoch};
use super::fast::{self, Memos};
use super::handlers::Running;
use super::ignores::Begun;
use super::locks::Held;
use super::locksets::{self, LockSet, Steps};
use super::shadow::{self, REFERENCE_SHIFT};
use super::spans::{self, Block, GRANULE, Granule, NO_WINDOW, References, When};
use super::stacks::{self, Calls, StackId};
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
use rashomon_abi::record::LOW_MASK;

const CACHED: usize = 2048;
/// Places of the program that have memos.
const MEMOS: usize = 128;
/// A thread's tables: memos, [`Cached`], steps between lock sets, calls.
const TABLES: usize = MEMOS * size_of::<Memos>() + CACHED * size_of::<Cached>() + Steps::BYTES + Calls::BYTES;

static KEPT: Pool = Pool::new(TABLES);

/// A place of the program that accessed: its stack, and its reference in the span that `generation` numbers.
#[derive(Clone, Copy)]
#[repr(C)]
struct Cached {
    site: u64,
    context: StackId,
    generation: u32,
    stack: StackId,
    reference: u32,
}

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
    pub context: StackId,
    context_path: List<StackId>,
    calls: Calls,

    /// Numbers spans, and stretches of them with one lock set.
    generation: u32,
    references: References,
    atomic_references: References,
    window: Block,
    pub(super) atomic_block: Block,
    /// The lock set changed since the window's last granule was begun.
    granule_stale: bool,
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
        // SAFETY: so large a mapping, which is this thread's; all bytes zero are tables that know nothing.
        unsafe { self.memos.cast::<u8>().write_bytes(0, TABLES) };
        // SAFETY: inside the tables.
        unsafe {
            self.cache = self.memos.add(MEMOS).cast();
            let steps = self.cache.add(CACHED).cast::<u8>();
            self.steps.begin(steps);
            self.calls.begin(steps.add(Steps::BYTES));
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
        // SAFETY: the thread's own table, used no more.
        unsafe { KEPT.put(self.memos.cast()) };
        self.cache = core::ptr::null_mut();
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
    fn cached(&mut self, site: u64, context: StackId) -> &'static mut Cached {
        // SAFETY: inside the thread's table.
        unsafe { &mut *self.cache.add(Self::mixed(site, context) % CACHED) }
    }

    #[inline(always)]
    fn memos(&self, site: u64, context: StackId) -> *mut Memos {
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
fn cover(thread: &mut Own, window: Block) {
    if super::counting() {
        return;
    }
    thread.hot().window.set([window.base << REFERENCE_SHIFT; 4]);
    cover_as_many(thread, window.size);
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
    thread.detect.slept_at = call_stack(thread, site);
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

/// The stack of the function that the thread is in.
#[inline(always)]
pub fn context(thread: &mut Own) -> StackId {
    if thread.hot().dirty.get() == 0 { thread.detect.context } else { new_context(thread) }
}

#[inline(never)]
fn new_context(thread: &mut Own) -> StackId {
    let (bottom, lowest, top) = {
        let hot = thread.hot();
        hot.dirty.set(0);
        let lowest = hot.lowest.replace(hot.top.get());
        (hot.bottom.get(), lowest.min(hot.top.get()), hot.top.get())
    };
    // SAFETY: all three point into the shadow stack.
    let (known, depth) = unsafe { (lowest.offset_from(bottom) as usize, top.offset_from(bottom) as usize) };
    thread.detect.context_path.truncate(known);
    for level in thread.detect.context_path.len()..depth {
        // SAFETY: below the top.
        let site = unsafe { (*bottom.add(level)).site } & (LOW_MASK | stacks::EXTERNAL);
        let parent = thread.detect.context_path.as_slice().last().copied().unwrap_or(0);
        let context = thread.detect.calls.intern(parent, site);
        thread.detect.context_path.push(context);
    }
    thread.detect.context = thread.detect.context_path.as_slice().last().copied().unwrap_or(0);
    thread.detect.context
}

/// The stack of a call or access at `site`.
pub fn stack(thread: &mut Own, site: u64) -> StackId {
    let context = context(thread);
    if site == 0 { context } else { stack_in(thread, context, site) }
}

fn stack_in(thread: &mut Own, context: StackId, site: u64) -> StackId {
    let cached = thread.detect.cached(site, context);
    if cached.site != site || cached.context != context || cached.stack == 0 {
        *cached = Cached { site, context, generation: 0, stack: stacks::intern(context, site), reference: 0 };
    }
    cached.stack
}

/// The stack of the call of an interposed function from `site`, with that function innermost.
pub fn call_stack(thread: &mut Own, site: u64) -> StackId {
    let caller = stack(thread, site);
    match thread.hot().entered.get() {
        0 => caller,
        function => stack_in(thread, caller, (function + 1) | stacks::FUNCTION),
    }
}

/// The reference of an access that the interposed function makes through which the runtime was entered.
pub fn reference_of_call(thread: &mut Own, site: u64, atomic: bool) -> u32 {
    let function = thread.hot().entered.get();
    reference_within(thread, site, function, atomic)
}

/// The reference of an access inside of `function`, called from `site`.
pub fn reference_within(thread: &mut Own, site: u64, function: u64, atomic: bool) -> u32 {
    if function == 0 {
        return reference(thread, site, atomic);
    }
    let context = stack(thread, site);
    reference_in(thread, context, (function + 1) | stacks::FUNCTION, atomic)
}

/// The reference of an access to an object of the program's kind `tag`, told from `site` in a function that was called from
/// `called_from`.
pub fn reference_of_object(thread: &mut Own, called_from: u64, tag: u64, site: u64) -> u32 {
    let function = stack(thread, called_from);
    let context = stack_in(thread, function, stacks::TAG | tag);
    reference_in(thread, context, site, false)
}

/// The reference of an access at `site`. 0 when there are none left.
#[inline(always)]
pub fn reference(thread: &mut Own, site: u64, atomic: bool) -> u32 {
    let context = context(thread);
    reference_in(thread, context, site, atomic)
}

/// A place that makes a plain access.
pub enum Place {
    /// Its reference in this span, and what was last done there.
    Known(u32, *mut Memos),
    /// Its reference is new.
    New(u32),
    /// It has none yet.
    Unknown,
}

/// The place of a plain access at `site`, as far as that is a matter of this thread alone, and of few instructions.
#[inline(always)]
pub fn known(thread: &mut Own, site: u64) -> Place {
    if thread.hot().dirty.get() != 0 {
        return Place::Unknown;
    }
    let context = thread.detect.context;
    let memos = thread.detect.memos(site, context);
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
    if cached.site != site || cached.context != context {
        return Place::Unknown;
    }
    if cached.generation == local.generation {
        return Place::Known(cached.reference, memos);
    }
    if cached.stack == 0 || local.granule_stale || local.window.is_full() {
        return Place::Unknown;
    }
    Place::New(take(thread, cached))
}

/// The next reference of the window, for a place of the program.
#[inline(always)]
fn take(thread: &mut Own, cached: &mut Cached) -> u32 {
    let shared = granule(thread, false);
    let local = &mut thread.detect;
    let reference = local.window.next;
    local.window.next += 1;
    spans::define(reference, cached.stack, shared);
    (cached.generation, cached.reference) = (local.generation, reference);
    reference
}

/// What an access of the thread has in common with others.
#[inline(always)]
fn granule(thread: &Own, atomic: bool) -> Granule {
    let mut when = now(thread);
    when.slot_atomic |= atomic as u32;
    Granule { when, thread: thread.number.get(), lock_set: thread.detect.lock_set }
}

#[inline(always)]
fn reference_in(thread: &mut Own, context: StackId, site: u64, atomic: bool) -> u32 {
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
    if cached.site == site && cached.context == context && cached.generation == local.generation {
        return cached.reference;
    }
    new_reference(thread, site, context, atomic)
}

#[cold]
#[inline(never)]
fn new_reference(thread: &mut Own, site: u64, context: StackId, atomic: bool) -> u32 {
    let shared = granule(thread, atomic);
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
    if cached.site != site || cached.context != context || cached.stack == 0 {
        *cached = Cached { site, context, generation: 0, stack: stacks::intern(context, site), reference: 0 };
    }
    let mut block = if atomic { local.atomic_block } else { local.window };
    if !atomic && core::mem::replace(&mut local.granule_stale, false) {
        block.next = block.next.next_multiple_of(GRANULE);
    }
    let fresh = block.is_full();
    if fresh {
        block = if atomic {
            local.atomic_references.granule()
        } else {
            local.references.close(block);
            local.references.window()
        };
        if block.size == 0 {
            return 0;
        }
        if !atomic {
            // The hooks know one window: places that have a reference of an earlier one take another.
            local.generation = local.generation.wrapping_add(1);
        }
    }
    let reference = block.next;
    block.next += 1;
    spans::define(reference, cached.stack, shared);
    cached.generation = local.generation;
    cached.reference = reference;
    if atomic {
        local.atomic_block = block;
    } else {
        local.window = block;
        if fresh {
            cover(thread, block);
        }
    }
    reference
}
