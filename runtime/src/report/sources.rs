//! What reports ask the rest of the runtime.

use crate::system::registered::Registered;
use crate::system::thread::{self, State, Thread};
use crate::system::{config, ending, modules, storage, sys};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Longest stack of a report.
pub const DEEPEST: usize = 1024;

/// A block of the heap.
#[derive(Clone, Copy)]
pub struct Block {
    pub start: u64,
    pub size: u64,
    pub thread: u32,
    /// Where it was allocated.
    pub stack: u32,
    pub tag: u32,
}

/// What only rooms above this one know.
pub struct Sources {
    /// Where a thread was created; 0: not known.
    pub creation: fn(&Thread) -> u32,
    /// The return addresses of an interned stack, innermost first; their number.
    pub walk: fn(u32, &mut [u64]) -> usize,
    /// The same for the calling thread's stack, without the runtime's own frames.
    pub own_stack: fn(&mut [u64]) -> usize,
    /// The live block of the heap that holds an address.
    pub heap: fn(u64) -> Option<Block>,
    /// Whether an address is of a heap that a virtual machine keeps.
    pub is_managed: fn(u64) -> bool,
    /// Whether a return address is the place that starts the program or a thread.
    pub starts: fn(u64) -> bool,
}

/// Set where detection begins.
pub static SOURCES: Registered<Sources> = Registered::none();

fn sources() -> Option<&'static Sources> {
    SOURCES.get().filter(|_| config::detecting())
}

/// The return addresses of an interned stack, innermost first; their number.
pub fn walk(stack: u32, into: &mut [u64]) -> usize {
    let Some(sources) = sources() else { return 0 };
    let count = (sources.walk)(stack, into);
    trimmed(&into[..count]).len()
}

/// A stack without the place, in libc or here, that starts threads and programs, where every stack ends.
pub fn trimmed(stack: &[u64]) -> &[u64] {
    match stack {
        [rest @ .., last] if !rest.is_empty() && (starts(*last) || in_libc(*last)) => rest,
        _ => stack,
    }
}

fn starts(address: u64) -> bool {
    SOURCES.get().is_some_and(|sources| (sources.starts)(address))
}

fn in_libc(address: u64) -> bool {
    static RANGE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    if RANGE[1].load(Acquire) == 0 {
        modules::each(|module| {
            if module.path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(b"libc.so")) {
                RANGE[0].store(module.start, Relaxed);
                RANGE[1].store(module.end, Release);
            }
        });
    }
    (RANGE[0].load(Relaxed)..RANGE[1].load(Relaxed)).contains(&address)
}

/// The live block of the heap that holds an address.
pub fn heap(address: u64) -> Option<Block> {
    let sources = sources()?;
    // Blocks are searched for backwards, which is long where none can be.
    if !(sources.is_managed)(address) && (in_module(address) || owner(address).is_some()) {
        return None;
    }
    (sources.heap)(address)
}

fn in_module(address: u64) -> bool {
    let mut inside = false;
    modules::each(|module| inside |= module.start <= address && address < module.end);
    inside
}

/// Where a thread was created; 0: not known.
pub fn creation_stack(thread: &Thread) -> u32 {
    sources().map_or(0, |sources| (sources.creation)(thread))
}

/// The calling thread's stack, without the runtime's own frames; the number of return addresses.
pub fn own_stack(into: &mut [u64]) -> usize {
    sources().map_or(0, |sources| (sources.own_stack)(into))
}

/// A thread of that number, if there is one.
pub fn thread(number: u32) -> Option<&'static Thread> {
    thread::by_number(number)
}

pub fn is_running(thread: &Thread) -> bool {
    thread.state.get() != State::Ended && thread.ended.load(Relaxed) == 0
}

/// Whether another thread than the calling one still runs.
pub fn other_threads() -> bool {
    others().next().is_some()
}

/// Whether one of them can do anything before another one lets it.
pub fn other_threads_go_on() -> bool {
    others().any(|thread| ending::may_go_on(thread.kernel_id.get()))
}

fn others() -> impl Iterator<Item = &'static Thread> {
    let own = sys::thread_id();
    (0..thread::count())
        .filter_map(thread)
        .filter(move |thread| is_running(thread) && thread.kernel_id.get() != own && thread.kernel_id.get() != 0)
}

/// Where a running thread has its static thread-local storage: libc puts it at the upper end of the stack's mapping, the thread's
/// own record above it.
pub fn thread_local(thread: &Thread) -> (u64, u64) {
    let pointer = thread.handle.load(Relaxed);
    if thread.number.get() == 0 || pointer == 0 {
        return thread.tls.get();
    }
    storage::around(pointer).unwrap_or(thread.tls.get())
}

/// The running thread whose stack (true) or thread-local storage (false) holds an address.
pub fn owner(address: u64) -> Option<(u32, bool)> {
    let inside = |(start, end): (u64, u64)| start <= address && address < end;
    (0..thread::count()).filter_map(thread).filter(|thread| is_running(thread)).find_map(|thread| {
        if inside(thread_local(thread)) {
            Some((thread.number.get(), false))
        } else if inside(thread.stack.get()) {
            Some((thread.number.get(), true))
        } else {
            None
        }
    })
}
