//! What becomes of a thread's record, in every room: when the thread is registered, begins, ends, or is the only one of a forked
//! child.
//!
//! Calls: `system`, `record`, `detect`, `serial`.

use crate::detect;
use crate::detect::local::Local;
use crate::record::{filter, kept, recorder, tree, values};
use crate::serial::replay::{self, GoalAccess};
use crate::serial::sched::Wait;
use crate::serial::{policy, sched};
use crate::system::memory::{List, Map};
use crate::system::pool::Pool;
use crate::system::sys;
use crate::system::thread::{self, NO_THREAD, Thread};
use crate::system::tls::{Call, Hot, hot};

/// Entries of the shadow call stack; deeper calls are counted only.
const SHADOW_CALLS: usize = 1 << 15;
const CALLS_BYTES: usize = SHADOW_CALLS * size_of::<Call>();
static CALLS: Pool = Pool::new(CALLS_BYTES);

/// Registers a new thread. `None` when there is no memory.
pub fn register(parent: u32, spawn_ordinal: u32) -> Option<&'static Thread> {
    let thread = thread::new_record()?;
    // SAFETY: a new record.
    unsafe { register_in(thread, parent, spawn_ordinal) };
    Some(thread)
}

/// The same in the record of a thread that is over.
///
/// # Safety
/// Nobody but those who look at all threads knows it.
pub unsafe fn register_again(over: &'static Thread, parent: u32, spawn_ordinal: u32) {
    // SAFETY: by the contract.
    unsafe {
        thread::clear_record(over);
        register_in(over, parent, spawn_ordinal);
    }
}

/// # Safety
/// A record, all zero, that nobody knows yet.
unsafe fn register_in(thread: &'static Thread, parent: u32, spawn_ordinal: u32) {
    let complete = || {
        thread.schedule_index.set(replay::schedule_index(parent, spawn_ordinal));
        thread.serial().wait.set(Wait::NOTHING);
        thread.priority.set(policy::new_priority(thread.number.get()));
        if detect::on() {
            // SAFETY: by the contract.
            unsafe { thread.with_own_of_other(|own| own.detect = Local::new()) };
        }
    };
    // SAFETY: by the contract.
    unsafe { thread::register(thread, parent, spawn_ordinal, complete) };
}

/// Makes `thread` the calling thread's: from here on its hooks record.
///
/// # Safety
/// Once per thread, by that thread.
pub unsafe fn attach(thread: &'static Thread) {
    let block = hot();
    block.nesting.set(1);
    thread.kernel_id.set(sys::thread_id());
    thread.libc_id.set(thread.kernel_id.get());
    // SAFETY: the block is this thread's; its hooks do nothing until `thread` is set, at the end, nor does anybody else.
    unsafe { prepare(thread, block) };
    block.nesting.set(0);
}

/// Fills a block for a thread.
///
/// # Safety
/// Nobody uses the block, or its hooks pass through meanwhile. Nobody else executes the thread.
pub unsafe fn prepare(thread: &'static Thread, block: &'static Hot) {
    // In serial runs where the program's memory lies is to depend on its own order alone.
    let calls = if detect::on() { CALLS.take() } else { sys::map_anonymous(CALLS_BYTES) }.cast::<Call>();
    let entries = filter::entries(thread.number.get());
    let table = sys::map_anonymous(entries * 16).cast::<[u64; 2]>();
    if calls.is_null() || table.is_null() {
        sys::die(&[b"out of memory for a new thread"]);
    }
    block.top.set(calls);
    block.bottom.set(calls);
    block.lowest.set(calls);
    block.limit.set(calls.wrapping_add(SHADOW_CALLS));
    block.filter.set(table);
    block.filter_mask.set(filter::first_mask(thread.number.get()));
    block.cap.set(filter::cap());
    block.capped.set(0);
    block.locks.set(0);
    block.span.set(1 << 48);
    block.quantum.set(0);
    block.dirty.set((tree::on() || kept::on() || filter::keeps_all()) as u64);
    thread.runs_in(block);
    recorder::begin(thread);
    thread.since_sync.set(0);
    thread.reload.set(0);
    if detect::on() {
        // SAFETY: by the contract.
        unsafe { thread.with_own_of_other(detect::attach) };
    }
    block.thread.set(Some(thread));
    sched::reload_quantum(thread);
}

/// A forked child: this is its only thread, its first, and the one that its trace begins with.
///
/// # Safety
/// In such a child, by that thread, which gave up its chunk.
pub unsafe fn only(thread: &'static Thread) {
    let entries = filter::entries(0);
    let table = sys::map_anonymous(entries * 16).cast::<[u64; 2]>();
    if table.is_null() {
        sys::die(&[b"out of memory in a forked child"]);
    }
    let block = hot();
    // SAFETY: the calling thread's own table, which it gets another one for.
    unsafe { sys::unmap(block.filter.get().cast(), filter::entries(thread.number.get()) * 16) };
    block.filter.set(table);
    block.filter_mask.set(filter::first_mask(0));
    block.cap.set(filter::cap());
    block.capped.set(0);
    block.span.set(1 << 48);
    block.quantum.set(0);
    // The whole call stack is new to the stream.
    block.lowest.set(block.bottom.get());
    block.dirty.set(1);
    let complete = || {
        thread.serial().wait.set(Wait::NOTHING);
        thread.serial().goal.set(GoalAccess::NONE);
        thread.priority.set(policy::new_priority(0));
        thread.schedule_index.set(replay::schedule_index(NO_THREAD, 0));
    };
    // SAFETY: by the contract.
    unsafe { thread::register_only(thread, complete) };
    values::begins(thread);
    sched::reload_quantum(thread);
}

/// The thread is about to vanish: hooks that still come pass through.
///
/// # Safety
/// By the thread itself, after its last record, or of a fibre that does not run.
pub unsafe fn detach(thread: &Thread) {
    let block = thread.hot();
    if detect::on() {
        // SAFETY: by the contract.
        unsafe { thread.with_own_of_other(detect::detach) };
    }
    recorder::finish(thread);
    let (bottom, table) = (block.bottom.get(), block.filter.get());
    block.forget_thread();
    block.cursor.set(core::ptr::null_mut());
    block.end.set(core::ptr::null_mut());
    // SAFETY: the tables are used by nobody else once the block's thread is unknown.
    unsafe {
        if detect::on() {
            CALLS.put(bottom.cast())
        } else {
            sys::unmap(bottom.cast(), CALLS_BYTES)
        }
        sys::unmap(table.cast(), filter::entries(thread.number.get()) * 16);
    }
    sched::leaves_block(thread);
    thread.tree().with(tree::Tree::end);
    thread.contexts.with(Map::clear_and_free);
    thread.context_path.with(List::clear_and_free);
    thread.allocations.with(Map::clear_and_free);
    thread.serial().elastic.forget();
    // What it still holds, others may have to give up.
    if thread.held.is_empty() {
        thread.held.clear_and_free();
    }
}
