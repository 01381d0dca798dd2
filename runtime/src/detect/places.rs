//! Places of the program that a thread comes to: their call stacks, and the references of their accesses ([`super::spans`]).

use super::fast::Memos;
use super::local::{self, cover, now};
use super::spans::{self, Block, GRANULE, Granule};
use super::stacks::{self, StackId};
use crate::detect::own::Own;
use rashomon_abi::record::LOW_MASK;

/// A place of the program that accessed: its stack, and its reference in the span that `generation` numbers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Cached {
    site: u64,
    context: StackId,
    generation: u32,
    stack: StackId,
    reference: u32,
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

/// What follows a block that is full. A span that has all the slabs that one can have ends, and the thread goes on with another
/// one of the same epoch. `NONE`: there are no references left.
fn another(thread: &mut Own, full: Block, atomic: bool) -> Block {
    let next = |thread: &mut Own| match atomic {
        true => thread.detect.atomic_references.granule(),
        false => thread.detect.references.window(),
    };
    if !atomic {
        thread.detect.references.close(full);
    }
    let block = next(thread);
    let references = if atomic { &thread.detect.atomic_references } else { &thread.detect.references };
    if block.size != 0 || !references.is_full() {
        return block;
    }
    local::span_ends(thread);
    next(thread)
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
        block = another(thread, block, atomic);
        if block.size == 0 {
            return 0;
        }
        if !atomic {
            // The hooks know one window: places that have a reference of an earlier one take another.
            thread.detect.generation = thread.detect.generation.wrapping_add(1);
        }
    }
    let reference = block.next;
    block.next += 1;
    let local = &mut thread.detect;
    let cached = local.cached(site, context);
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
