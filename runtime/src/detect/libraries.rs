//! Libraries whose calls of interposed functions are left out, as the user asks.
//!
//! `called_from_lib:PATTERN` in the suppressions: neither the accesses nor the synchronisation of such calls count, for what a
//! library without instrumentation does between them is not seen; only its threads and the lives of its blocks are.
//! `ignore_noninstrumented_modules=1`: accesses that interposed functions make for any module without instrumentation do not
//! count. A module is instrumented if it refers to the entry points of the runtime, or holds it.
//!
//! A pattern stands for one library, which stays: what was called from another one, or from whatever comes to lie in its place,
//! must not be left out.

use crate::report::{self, options};
use crate::system::lock::RawLock;
use crate::system::modules;
use crate::system::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use rashomon_abi::pattern;

/// There are suppressions of calls; accesses of modules without instrumentation are left out.
const CALLS: u32 = 1;
const NOT_INSTRUMENTED: u32 = 2;
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Places of code. Only ever added to, under the lock; looked at without it.
struct Ranges<const MOST: usize> {
    ranges: [[AtomicU64; 2]; MOST],
    count: AtomicUsize,
}

impl<const MOST: usize> Ranges<MOST> {
    const fn new() -> Self {
        Self { ranges: [const { [const { AtomicU64::new(0) }; 2] }; MOST], count: AtomicUsize::new(0) }
    }
    fn contains(&self, address: u64) -> bool {
        self.ranges[..self.count.load(Acquire)]
            .iter()
            .any(|[start, end]| start.load(Relaxed) <= address && address < end.load(Relaxed))
    }
    fn add(&self, start: u64, end: u64) {
        let count = self.count.load(Relaxed);
        if let Some(place) = self.ranges.get(count).filter(|_| !self.contains(start)) {
            place[0].store(start, Relaxed);
            place[1].store(end, Relaxed);
            self.count.store(count + 1, Release);
        }
    }
}

/// Patterns that are heeded.
const MOST_PATTERNS: usize = 128;
static LEFT_OUT: Ranges<MOST_PATTERNS> = Ranges::new();
static INSTRUMENTED: Ranges<1024> = Ranges::new();
/// The path of each pattern's library, once that was loaded: length and bytes, for good.
static FOUND: [AtomicPtr<usize>; MOST_PATTERNS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_PATTERNS];
pub static LOCK: RawLock = RawLock::new();

fn patterns() -> impl Iterator<Item = &'static [u8]> {
    let texts = report::suppressions();
    texts.into_iter().flat_map(pattern::lines).filter(|(kind, _)| *kind == b"called_from_lib").map(|(_, pattern)| pattern)
}

/// Once, at the start.
pub fn initialise() {
    let calls = if patterns().next().is_some() { CALLS } else { 0 };
    let modules = if options::get().ignore_noninstrumented_modules { NOT_INSTRUMENTED } else { 0 };
    ASKED.store(calls | modules, Relaxed);
    look();
}

/// Whether anybody wants to know of libraries that come and go.
pub fn wanted() -> bool {
    ASKED.load(Relaxed) != 0
}

/// Looks at what is loaded: at the start, and when libraries have come or gone.
pub fn look() {
    if !wanted() {
        return;
    }
    // The loader's lock first, as whoever forks takes them.
    modules::held(|| LOCK.with(look_at_all));
}

fn look_at_all() {
    if ASKED.load(Relaxed) & NOT_INSTRUMENTED != 0 {
        modules::each(|module| {
            if module.is_instrumented() {
                INSTRUMENTED.add(module.start, module.end);
            }
        });
    }
    for (pattern, found) in patterns().zip(&FOUND) {
        look_for(pattern, found);
    }
}

fn look_for(pattern: &[u8], found: &AtomicPtr<usize>) {
    let mut loaded = false;
    modules::each(|module| {
        if !pattern::matches(pattern, module.path) {
            return;
        }
        if core::mem::replace(&mut loaded, true) {
            report::refuse(&[
                b"called_from_lib suppression '",
                pattern,
                b"' is matched against 2 libraries, one of them '",
                module.path,
                b"'",
            ]);
        }
        if found.load(Relaxed).is_null() {
            found.store(copy(module.path), Relaxed);
            LEFT_OUT.add(module.start, module.end);
        }
    });
    let known = found.load(Relaxed);
    if !known.is_null() && !loaded {
        // SAFETY: written by `copy`.
        let path = unsafe { core::slice::from_raw_parts(known.add(1).cast::<u8>(), *known) };
        report::refuse(&[
            b"library '",
            path,
            b"' that was matched against called_from_lib suppression '",
            pattern,
            b"' is unloaded",
        ]);
    }
}

fn copy(path: &[u8]) -> *mut usize {
    let memory = sys::map_anonymous(size_of::<usize>() + path.len()).cast::<usize>();
    if memory.is_null() {
        sys::die(&[b"out of memory for a library's name"]);
    }
    // SAFETY: fresh memory of that size.
    unsafe {
        memory.write(path.len());
        memory.add(1).cast::<u8>().copy_from_nonoverlapping(path.as_ptr(), path.len());
    }
    memory
}

/// Whether a call from `site` counts for nothing.
#[inline(always)]
pub fn leaves_out(site: u64) -> bool {
    ASKED.load(Relaxed) & CALLS != 0 && LEFT_OUT.contains(site)
}

/// Whether the accesses of a call from `site` do not count.
#[inline(always)]
pub fn leaves_out_accesses(site: u64) -> bool {
    ASKED.load(Relaxed) != 0 && is_left_out(site)
}

#[cold]
fn is_left_out(site: u64) -> bool {
    let asked = ASKED.load(Relaxed);
    asked & CALLS != 0 && LEFT_OUT.contains(site) || asked & NOT_INSTRUMENTED != 0 && !INSTRUMENTED.contains(site)
}
