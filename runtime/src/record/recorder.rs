//! The sink that keeps events: per-thread streams of [chunks](chunk) (`rashomon_abi::record` describes the bytes).
//!
//! A stream is written by its own thread, or by the holder of the turn while its thread is stopped. Records are written front to
//! back, so an unfinished chunk is readable up to its last whole record whenever the process dies.

use crate::detect;
use crate::record::{chunk, filter, flow, frames, kept, limit, tree, values};
use crate::system::memory::Map;
use crate::system::registered::Registered;
use crate::system::sys;
use crate::system::thread::{State, Thread, all};
use crate::system::tls::Hot;
use crate::system::{config, folder, header};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::{field, note};
use rashomon_abi::record::{self, AccessClass, CHUNK_HEADER_WORDS, LOW_MASK, MAX_ARGUMENTS, Op, SITE_BIAS, word};
use rashomon_abi::unwritten;

/// Contexts beyond this number are recorded as their parents.
const MAX_CONTEXTS: u32 = 1 << 22;

/// Told of every synchronisation event of an execution of which nothing is kept.
pub static PASSED: Registered<fn(&Thread)> = Registered::none();
static ENABLED: AtomicU32 = AtomicU32::new(0);
/// Bytes of full and closed chunks, before they are compressed.
pub(super) static BYTES: AtomicU64 = AtomicU64::new(0);
pub(super) static FULL: AtomicU32 = AtomicU32::new(0);
/// Serial mode: nothing is kept any more, as what happens is what happened before.
static REPEATS: AtomicBool = AtomicBool::new(false);
/// Operations since the last one at a place (operation and call site) where none had been. For the holder of the turn.
static SAME: AtomicU32 = AtomicU32::new(0);
static mut PLACES: Map = Map::new();
/// Locks in tables ([`extends_table`]), and how many are recorded when they are initialised.
static TABLES: AtomicU32 = AtomicU32::new(0);
const MOST_IN_TABLES: u32 = 1 << 18;
/// So many of them are enough.
const MOST_SAME: u32 = 1 << 21;

/// # Safety
/// Before any thread records, or in a child that has one thread.
pub unsafe fn enable(directory: &[u8; 4096]) {
    // SAFETY: by the contract.
    unsafe { folder::set(directory) };
    BYTES.store(0, Relaxed);
    REPEATS.store(false, Relaxed);
    SAME.store(0, Relaxed);
    TABLES.store(0, Relaxed);
    FULL.store(0, Relaxed);
    ENABLED.store(1, Release);
}

pub fn disable() {
    ENABLED.store(0, Release);
}

/// Gives a thread its first chunk.
pub fn begin(thread: &Thread) {
    let streams = !config::option(control::option::NO_STREAMS);
    thread.keep_accesses.set(streams && !config::option(control::option::NO_ACCESSES) && FULL.load(Relaxed) == 0);
    if ENABLED.load(Acquire) != 0 && !config::option(control::option::NO_STREAMS) && !config::passes() {
        flow::begins(thread);
        values::begins(thread);
        open_chunk(thread);
    }
}

/// Gives a thread its next chunk, or none when nothing can be written any more.
fn open_chunk(thread: &Thread) {
    match chunk::next(thread) {
        Ok(()) => {
            thread.written_context.set(u32::MAX);
            limit::watch(thread, BYTES.load(Relaxed));
        }
        Err(errno) => stop(errno),
    }
    limit::heed(thread);
}

/// Nothing can be written any more.
fn stop(errno: isize) {
    header::unwritten(errno);
    if FULL.swap(2, AcqRel) != 2 {
        let words = unwritten::cause(errno as u64).map_or("cannot extend a trace file", |cause| cause.words);
        let number = sys::Decimal::new(errno as u64);
        sys::message(&[b"recording stops here: ", words.as_bytes(), b" (errno ", number.bytes(), b")"]);
    }
}

/// Makes the thread's chunk larger. If that fails, it is the last one.
fn grow_chunk(thread: &Thread) {
    if let Err(errno) = chunk::grow(thread) {
        close_chunk(thread);
        stop(errno);
        limit::heed(thread);
    }
}

/// The thread's last chunk.
fn close_chunk(thread: &Thread) {
    if !thread.chunk.get().is_null() {
        count(thread);
        chunk::close(thread, chunk::used(thread));
    }
}

fn count(thread: &Thread) {
    BYTES.fetch_add(((CHUNK_HEADER_WORDS + chunk::used(thread)) * 8) as u64, Relaxed);
}

/// Room for `words` words in one chunk. False when nothing is kept any more.
pub(super) fn reserve(thread: &Thread, words: usize) -> bool {
    if REPEATS.load(Relaxed) {
        // One that was in the kernel when recording ended.
        close_chunk(thread);
    }
    if thread.chunk.get().is_null() {
        return false;
    }
    let hot = thread.hot();
    loop {
        if (hot.end.get() as usize).wrapping_sub(hot.cursor.get() as usize) / 8 >= words {
            return true;
        }
        if !chunk::grows(thread) {
            break;
        }
        grow_chunk(thread);
    }
    count(thread);
    thread.settle();
    let executed = thread.executed.get() - thread.executed_before_chunk.replace(thread.executed.get());
    filter::tune(thread, executed);
    tree::chunk_ends(thread);
    open_chunk(thread);
    !thread.chunk.get().is_null()
}

/// # Safety
/// After [`reserve`].
pub(super) unsafe fn push(hot: &Hot, value: u64) {
    // SAFETY: room was reserved. Volatile: records appear in order, whenever the process dies.
    unsafe {
        let cursor = hot.cursor.get();
        cursor.write_volatile(value);
        hot.cursor.set(cursor.add(1));
    }
}

/// Brings the call context up to date with the shadow stack.
fn resolve_context(thread: &Thread) {
    let hot = thread.hot();
    if hot.dirty.get() == 0 {
        return;
    }
    let (bottom, lowest, top) = {
        let filters = tree::wants_all(thread) || kept::on() || values::on() || filter::keeps_all();
        // While accesses are ignored or asked about one by one the fast path stays shut.
        hot.dirty.set((hot.ignored.get() > 0 || filters) as u64);
        let lowest = hot.lowest.replace(hot.top.get());
        (hot.bottom.get(), lowest.min(hot.top.get()), hot.top.get())
    };
    if config::option(control::option::NO_CONTEXTS) {
        return;
    }
    // SAFETY: all three point into the shadow stack.
    let (known, depth) = unsafe { (lowest.offset_from(bottom) as usize, top.offset_from(bottom) as usize) };
    let mut parent = thread.context_path.with(|path| {
        path.truncate(known);
        path.as_slice().last().copied().unwrap_or(0)
    });
    for level in thread.context_path.with(|path| path.len())..depth {
        // SAFETY: below the top.
        let site = unsafe { (*bottom.add(level)).site } & LOW_MASK;
        let fresh = thread.context_count.get();
        let full = fresh >= MAX_CONTEXTS;
        let number = match thread.contexts.with(|contexts| contexts.get((site, parent as u64 + 1))) {
            Some(number) => number as u32,
            None if full => parent,
            None => {
                thread.contexts.with(|contexts| *contexts.entry((site, parent as u64 + 1)) = fresh as u64);
                thread.context_count.set(thread.context_count.get() + 1);
                define_context(thread, (parent, fresh), level);
                fresh
            }
        };
        thread.context_path.with(|path| path.push(number));
        parent = number;
    }
    thread.context.set(parent);
}

/// Writes down the context of an entry of the shadow stack, which is new, and where the frame of its function lies.
fn define_context(thread: &Thread, (parent, number): (u32, u32), level: usize) {
    if !reserve(thread, 4) {
        return;
    }
    let hot = thread.hot();
    // SAFETY: the entry and the one below it are on the shadow stack of the thread; four words were reserved.
    unsafe {
        let call = *hot.bottom.get().add(level);
        push(hot, word(0, record::CONTEXT_DEFINITION, call.site));
        push(hot, (parent as u64) << 32 | number as u64);
        let caller = level.checked_sub(1).map(|below| *hot.bottom.get().add(below));
        if let Some(address) = frames::address(thread.stack.get(), call, caller) {
            push(hot, word(0, record::FRAME, address));
            push(hot, call.stack_pointer.wrapping_add(8));
        }
    }
}

/// Room for a record of `words` words with its context in front.
pub(super) fn reserve_with_context(thread: &Thread, words: usize) -> bool {
    let hot = thread.hot();
    resolve_context(thread);
    if !reserve(thread, words + 2) {
        return false;
    }
    if thread.written_context.get() != thread.context.get() {
        thread.written_context.set(thread.context.get());
        // SAFETY: reserved.
        unsafe { push(hot, word(0, record::CONTEXT, thread.context.get() as u64)) };
    }
    true
}

/// An access of a power of two of bytes: the whole of what the hook does in assembly, for all cases.
pub fn access(thread: &Thread, address: u64, site: u64, kind: u64) {
    if !thread.keep_accesses.get() || kept::on() && !kept::keeps(site) {
        return;
    }
    let valued = values::wanted(site);
    let all = config::option(control::option::NO_FILTER);
    if !valued && !filter::keeps_all() && !filter::keeps(thread, address, site, kind) && !all {
        return;
    }
    if tree::on() && tree::is_redundant(thread, address, site, kind) {
        return;
    }
    if !reserve_with_context(thread, 2) {
        return;
    }
    let hot = thread.hot();
    let mut distance = site.wrapping_sub(hot.previous_site.get()).wrapping_add(SITE_BIAS);
    // SAFETY: two words were reserved.
    unsafe {
        if distance > 2 * SITE_BIAS - 1 {
            push(hot, word(0, record::SITE, site));
            distance = SITE_BIAS;
        }
        push(hot, word(distance, kind, address));
    }
    hot.previous_site.set(site);
    if valued {
        values::of(thread, address, kind);
    }
}

pub fn range(thread: &Thread, address: u64, bytes: u64, site: u64, class: u64) {
    if !thread.keep_accesses.get() || tree::on() && tree::is_redundant_range(thread, address, bytes, site, class) {
        return;
    }
    if kept::on() && class != AccessClass::End as u64 && !kept::keeps(site) {
        return;
    }
    if !reserve_with_context(thread, 3) {
        return;
    }
    let hot = thread.hot();
    // SAFETY: three words were reserved.
    unsafe {
        push(hot, word(class, record::RANGE, address));
        push(hot, bytes);
        push(hot, site);
    }
}

/// A synchronisation event: takes its place in the global order now.
pub fn sync(thread: &Thread, op: Op, object: u64, aux: u16, site: u64, arguments: &[u64]) -> u64 {
    if detect::on() {
        thread.with_own(|own| detect::sync(own, op, object, aux, site, arguments));
        return 0;
    }
    if config::passes() {
        passed(thread, op);
        return 0;
    }
    if config::serial() && !REPEATS.load(Relaxed) {
        if op == Op::LockInit && extends_table(thread.number.get(), object, site) {
            if TABLES.load(Relaxed) > MOST_IN_TABLES && !tree::on() {
                return 0;
            }
        } else {
            watch_repetition(op, site);
        }
    }
    let sequence = next_sequence(thread);
    sync_at(thread, op, object, aux, site, arguments, sequence);
    sequence
}

/// Serial mode: the thread initialises a lock behind all that it initialised at this place. A table of locks is no repetition,
/// however long; what begins to live there is known well enough by its first use, so that not all of it is kept. For the holder
/// of the turn.
fn extends_table(thread: u32, object: u64, site: u64) -> bool {
    let places = &raw mut PLACES;
    // SAFETY: for the holder of the turn, and nobody else has a reference.
    let highest = unsafe { (*places).entry((site ^ (Op::LockInit as u64) << 48, 2 + thread as u64)) };
    let extends = object > *highest && *highest != 0;
    *highest = object.max(*highest);
    if extends {
        TABLES.fetch_add(1, Relaxed);
    }
    extends
}

/// Serial mode: the recording is a beginning of the execution if nothing has happened for long but what had happened before; the
/// execution goes on. For the holder of the turn.
fn watch_repetition(op: Op, site: u64) {
    let places = &raw mut PLACES;
    // SAFETY: for the holder of the turn, and nobody else has a reference.
    let visits = unsafe { (*places).entry((site ^ (op as u64) << 48, 1)) };
    if *visits == 0 {
        *visits = 1;
        SAME.store(0, Relaxed);
    } else if SAME.fetch_add(1, Relaxed) >= MOST_SAME {
        header::note(note::REPEATS);
        ENABLED.store(0, Release);
        for thread in all() {
            // All but the calling one stand still, or are in the kernel and write nothing more.
            thread.keep_accesses.set(false);
            if thread.has_block() && thread.state.get() != State::External {
                close_chunk(thread);
            }
        }
        REPEATS.store(true, Release);
    }
}

/// The next place in the global order; none for what runs on after its stream was closed with the recording: nobody is to look
/// for it.
pub fn next_sequence(thread: &Thread) -> u64 {
    if thread.chunk.get().is_null() && header::has_ended() || REPEATS.load(Relaxed) { 0 } else { header::next_sequence() }
}

/// A synchronisation event of an execution that is provoked. Whether it is not kept.
fn passed(thread: &Thread, op: Op) -> bool {
    let passes = config::passes();
    if passes && op.has_ordinal() {
        thread.ordinal.set(thread.ordinal.get() + 1);
    }
    if let Some(told) = PASSED.get() {
        told(thread);
    }
    passes
}

/// The same at a place in the global order that was taken before.
pub fn sync_at(thread: &Thread, op: Op, object: u64, aux: u16, site: u64, arguments: &[u64], sequence: u64) {
    debug_assert!(arguments.len() <= MAX_ARGUMENTS);
    if config::provoking() && passed(thread, op) {
        return;
    }
    let hot = thread.hot();
    if reserve_with_context(thread, 3 + arguments.len()) {
        // SAFETY: reserved.
        unsafe {
            push(hot, word(op as u64, record::SYNC, object));
            push(hot, (arguments.len() as u64) << 48 | sequence);
            push(hot, (aux as u64) << 48 | (site & LOW_MASK));
            for &argument in arguments {
                push(hot, argument);
            }
        }
    }
    if op.has_ordinal() {
        thread.ordinal.set(thread.ordinal.get() + 1);
        thread.restart_count();
    }
    if tree::on() {
        tree::step(thread, op, object, aux, arguments);
    }
    filter::new_span(thread);
}

/// Serial mode: the thread goes on after others ran.
pub fn turn(thread: &Thread) {
    let hot = thread.hot();
    let count = thread.accesses_since_sync();
    if reserve(thread, 2) {
        // SAFETY: reserved.
        unsafe {
            push(hot, word(0, record::TURN, count));
            push(hot, header::next_sequence());
        }
    }
    if tree::on() {
        tree::resumes(thread);
    }
    filter::new_span(thread);
}

/// Serial mode: the thread begins to wait inside the operation that it is about to complete.
pub fn waits(thread: &Thread) {
    let hot = thread.hot();
    let count = thread.accesses_since_sync();
    if reserve(thread, 2) {
        // SAFETY: reserved.
        unsafe {
            push(hot, word(record::TURN_WAITS, record::TURN, count));
            push(hot, header::next_sequence());
        }
    }
}

/// Serial mode: the recording ends while the thread stands still, and could go on.
pub fn stands(thread: &Thread) {
    let hot = thread.hot();
    let count = thread.accesses_since_sync();
    if reserve(thread, 2) {
        // SAFETY: reserved.
        unsafe {
            push(hot, word(record::TURN_STANDS, record::TURN, count));
            push(hot, header::next_sequence());
        }
    }
}

/// The thread's last words.
pub fn finish(thread: &Thread) {
    let hot = thread.hot();
    filter::report(thread);
    thread.reload_quantum();
    let executed = thread.executed.get();
    if reserve(thread, 1) {
        // SAFETY: reserved.
        unsafe { push(hot, word(0, record::EXECUTED, executed)) };
    }
    header::word(field::ACCESSES_EXECUTED).fetch_add(executed, Relaxed);
    header::word(field::ACCESSES_REDUNDANT).fetch_add(thread.tree().with(tree::Tree::take_skipped), Relaxed);
    close_chunk(thread);
}

/// Throws away what a forked child inherited: its chunks belong to the parent.
pub fn forget(thread: &Thread) {
    disable();
    chunk::unmap(thread);
    thread.keep_accesses.set(false);
    thread.hot().pending.set(0);
    flow::forgets(thread.hot());
}
