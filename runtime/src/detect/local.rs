//! What the detector knows of one thread.

use super::blocks::Reserve;
use super::clock::{Clock, Epoch};
use super::fast::Memos;
use super::handlers::Running;
use super::ignores::Begun;
use super::locks::Held;
use super::locksets::{self, LockSet, Steps};
use super::shadow::{self, REFERENCE_SHIFT};
use super::spans::{self, Block, GRANULE, Granule, References, When};
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
use core::sync::atomic::Ordering::Relaxed;
use rashomon_abi::record::LOW_MASK;

const CACHED: usize = 512;
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
    padding: u64,
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
    block: Block,
    pub(super) atomic_block: Block,
    /// The lock set changed since the block's last granule was begun.
    granule_stale: bool,
    /// References that the last span took.
    hint: u32,
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
            block: Block::NONE,
            atomic_block: Block::NONE,
            granule_stale: false,
            hint: 1,
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
    pub fn end(&mut self) {
        self.tree.end();
        self.references.end();
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
        (site as u32 ^ (site >> 9) as u32 ^ context << 2 ^ context >> 6) as usize
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

    /// Of accesses whose place is not looked up.
    pub fn any_memos(&self) -> *mut Memos {
        self.memos
    }
}

/// Nothing of this thread's current span is recognised by the hooks.
fn uncover(thread: &mut Own) {
    // No cell has all bits, whatever bits are compared.
    let hot = thread.hot();
    hot.covered.set([u32::MAX; 4]);
    hot.covered_word.set([u32::MAX; 4]);
}

/// The hooks recognise accesses with references of this block.
fn cover(thread: &mut Own, block: Block) {
    if super::counting() {
        return;
    }
    let select = !((block.size << REFERENCE_SHIFT) - 1);
    let hot = thread.hot();
    hot.covers_read.set([select; 4]);
    hot.covers_write.set([select | shadow::READ; 4]);
    hot.covered.set([block.base << REFERENCE_SHIFT; 4]);
    hot.covers_read_word.set([select | shadow::BYTES; 4]);
    hot.covers_write_word.set([select | shadow::READ | shadow::BYTES; 4]);
    hot.covered_word.set([block.base << REFERENCE_SHIFT | shadow::BYTES; 4]);
}

/// Whether the hooks recognise a reference.
#[inline(always)]
pub fn is_covering(thread: &Own, reference: u32) -> bool {
    let block = thread.detect.block;
    reference.wrapping_sub(block.base) < block.size
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
    uncover(thread);
}

pub fn span_ends(thread: &mut Own) {
    let record = thread.thread();
    let local = &mut thread.detect;
    local.generation = local.generation.wrapping_add(1);
    if local.block.size == 0 && local.atomic_block.size == 0 {
        return;
    }
    record.detected().counts.spans.add(1);
    if local.block.size != 0 {
        let used = local.block.next - local.block.base;
        local.hint = if local.block.size <= local.hint.next_power_of_two() { used } else { local.block.size };
    }
    local.references.span_ends();
    local.block = Block::NONE;
    local.atomic_block = Block::NONE;
    uncover(thread);
}

/// Everything up to here was passed on to somebody: what follows is another epoch.
pub fn epoch_ends(thread: &mut Own) {
    thread.next_epoch();
    span_ends(thread);
    tree::sends(thread);
}

/// The same; what was passed on is a mutex, to whoever locks it next.
pub fn released(thread: &mut Own, object: u32) {
    thread.next_epoch();
    span_ends(thread);
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
        *cached = Cached { site, context, generation: 0, stack: stacks::intern(context, site), reference: 0, padding: 0 };
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

/// The reference of a plain access at `site`, if it has one in this span, and what was last done at that place.
#[inline(always)]
pub fn known(thread: &mut Own, site: u64) -> Option<(u32, *mut Memos)> {
    if thread.hot().dirty.get() != 0 {
        return None;
    }
    let context = thread.detect.context;
    let memos = thread.detect.memos(site, context);
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
    (cached.site == site && cached.context == context && cached.generation == local.generation)
        .then_some((cached.reference, memos))
}

/// The same, with a new reference if need be: 0 when there are none left.
#[inline(always)]
pub fn known_or_new(thread: &mut Own, site: u64) -> (u32, *mut Memos) {
    let context = context(thread);
    let reference = reference_in(thread, context, site, false);
    (reference, thread.detect.memos(site, context))
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
    let record = thread.thread();
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
    if cached.site != site || cached.context != context || cached.stack == 0 {
        *cached = Cached { site, context, generation: 0, stack: stacks::intern(context, site), reference: 0, padding: 0 };
    }
    let shared = Granule {
        when: When { epoch: record.detected().epoch.get(), slot_atomic: record.detected().slot.get() << 1 | atomic as u32 },
        thread: record.number.get(),
        lock_set: local.lock_set,
    };
    let mut block = if atomic { local.atomic_block } else { local.block };
    if !atomic && core::mem::replace(&mut local.granule_stale, false) {
        block.next = block.next.next_multiple_of(GRANULE);
    }
    let fresh = block.is_full();
    if fresh {
        let size = match block.size {
            _ if atomic => spans::SMALLEST_BLOCK,
            0 => local.hint.next_power_of_two().clamp(spans::SMALLEST_BLOCK, 64),
            size => (size * 4).min(spans::LARGEST_BLOCK),
        };
        block = local.references.block(size);
        if block.size == 0 {
            return 0;
        }
        if !atomic {
            // The hooks know one block: places that have a reference of an earlier one take another.
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
        local.block = block;
        if fresh {
            cover(thread, block);
        }
    }
    reference
}
