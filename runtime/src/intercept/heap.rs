//! The allocator: lifetimes of heap blocks.
//!
//! A block is as long as `malloc_usable_size` tells, which may be more than was asked for: programs use the rest, too.
//!
//! libc's allocator runs inside the runtime, so that handlers of signals wait until it is left: a thread that forks holds the
//! runtime's locks while it waits for the allocator's, and a handler above a call that holds those may need the runtime's.

use crate::detect;
use crate::intercept::{hooks, mappings, quarantine};
use crate::record::{reach, recorder};
use crate::serial::replay;
use crate::system::real::{__libc_calloc, __libc_free, __libc_malloc, __libc_memalign, __libc_realloc, real};
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{Op, allocation_kind, free};

fn begins(thread: &Thread, address: u64, bytes: usize, site: u64, kind: u16) {
    let spare = match kind {
        // SAFETY: by the callers, a live block of the allocator's.
        allocation_kind::HEAP => unsafe { usable_bytes(address as *const u8) }.saturating_sub(bytes) as u64,
        _ => 0,
    };
    if detect::on() {
        thread.with_own(|own| detect::sync(own, Op::Allocate, address, kind, site, &[bytes as u64, 0, spare]));
        return;
    }
    let ordinal = thread.allocations.with(|counts| {
        let count = counts.entry((site, kind as u64));
        *count += 1;
        *count - 1
    });
    replay::allocated(thread, site, ordinal, address, kind == allocation_kind::MAPPING);
    if kind != allocation_kind::DESCRIPTOR {
        reach::begins(address, bytes as u64 + spare, kind == allocation_kind::MAPPING);
    }
    recorder::sync(thread, Op::Allocate, address, kind, site, &[bytes as u64, ordinal, spare]);
}

/// Records a block that begins to live.
pub fn allocated(address: u64, bytes: usize, site: u64, kind: u16) {
    if address != 0
        && let Some(runtime) = Runtime::try_enter()
    {
        begins(runtime.thread(), address, bytes, site, kind);
    }
}

/// Records that a block's life ends. Before it really does.
pub fn freed(address: u64, bytes: u64, site: u64) {
    hooks::ends(address, bytes, site);
    if address != 0
        && let Some(runtime) = Runtime::try_enter()
    {
        reach::ends(address);
        recorder::sync(runtime.thread(), Op::Free, address, 0, site, &[]);
    }
}

/// Makes a heap block and records it, if there is one.
pub fn allocating(bytes: usize, site: u64, make: impl Fn() -> *mut u8) -> *mut u8 {
    let Some(runtime) = Runtime::try_enter() else { return make() };
    let mut block = make();
    if block.is_null() && quarantine::release_all() {
        block = make();
    }
    if !block.is_null() {
        begins(runtime.thread(), block as u64, bytes, site, allocation_kind::HEAP);
    }
    block
}

/// Records that a heap block's life ends, and ends it.
///
/// # Safety
/// The program gave the block back to the allocator.
pub unsafe fn freeing(block: *mut u8, site: u64) {
    if block.is_null() {
        return;
    }
    let again = quarantine::take(block);
    // SAFETY: by the contract.
    unsafe { ends(block, site) };
    let runtime = Runtime::try_enter();
    if let Some(runtime) = &runtime {
        reach::ends(block as u64);
        recorder::sync(runtime.thread(), Op::Free, block as u64, if again { free::AGAIN } else { 0 }, site, &[]);
    }
    // SAFETY: by the contract. What is given back once more libc gets twice, and does what it does then.
    unsafe {
        match runtime {
            Some(_) if quarantine::on() && !again => quarantine::hold(block),
            _ => __libc_free(block),
        }
        if again {
            __libc_free(block);
        }
    }
}

/// The block is given back: for who still uses it that is a write of all of it.
///
/// # Safety
/// Null, or a live block of glibc's allocator.
unsafe fn ends(block: *mut u8, site: u64) {
    if !block.is_null() {
        // SAFETY: by the contract.
        hooks::ends(block as u64, unsafe { usable_bytes(block) } as u64, site);
    }
}

/// Of a block of glibc's allocator: the word before it tells the length of its chunk, which begins two words before the block.
/// Chunks that are mappings of their own end with it, others with the first word of the next. Asking glibc could end in the
/// allocator of somebody else that the program is linked with.
///
/// # Safety
/// A live block of glibc's allocator.
unsafe fn usable_bytes(block: *const u8) -> usize {
    const WORD: usize = size_of::<usize>();
    const IS_MAPPED: usize = 2;
    const FLAGS: usize = 7;
    // SAFETY: by the contract.
    let header = unsafe { block.cast::<usize>().sub(1).read() };
    (header & !FLAGS) - if header & IS_MAPPED != 0 { 2 * WORD } else { WORD }
}

unsafe extern "C" fn usable(block: *const u8) -> usize {
    // SAFETY: not null: the program asks for a block of its own.
    if block.is_null() { 0 } else { unsafe { usable_bytes(block) } }
}

unsafe extern "C" fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: glibc's allocator, with the program's size.
    allocating(bytes, caller(), || unsafe { __libc_malloc(bytes) })
}

unsafe extern "C" fn allocate_zeroed(count: usize, bytes: usize) -> *mut u8 {
    // SAFETY: the same; it refuses what overflows.
    allocating(count.wrapping_mul(bytes), caller(), || unsafe { __libc_calloc(count, bytes) })
}

/// More than this no process can have, so a request for it leaves the old block as it is.
const ADDRESSES: usize = 1 << 47;

unsafe extern "C" fn reallocate(block: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= ADDRESSES {
        // SAFETY: it fails, and leaves the program's block as it is.
        return unsafe { __libc_realloc(block, bytes) };
    }
    let site = caller();
    // SAFETY: not null: a block of the program's.
    if !block.is_null() && !unsafe { is_to_be_had(block, bytes) } {
        // SAFETY: as above.
        return unsafe { reallocate_or_leave(block, bytes, site) };
    }
    // SAFETY: null, or the program's block, which it is about to give up.
    unsafe { ends(block, site) };
    // SAFETY: as `realloc` is called; nothing is to be recorded.
    let Some(runtime) = Runtime::try_enter() else { return unsafe { __libc_realloc(block, bytes) } };
    let thread = runtime.thread();
    if !block.is_null() {
        reach::ends(block as u64);
        recorder::sync(thread, Op::Free, block as u64, 0, site, &[]);
    }
    // SAFETY: as `realloc` is called.
    let new = unsafe { resized(block, bytes) };
    if !new.is_null() {
        begins(thread, new as u64, bytes, site, allocation_kind::HEAP);
    } else if bytes > 0 && !block.is_null() {
        // It failed: the old block lives on, as a new object of unknown size at least.
        // SAFETY: not given up, as the allocator had no other.
        begins(thread, block as u64, unsafe { usable_bytes(block) }, site, allocation_kind::HEAP);
    }
    new
}

/// As `realloc` does. Where blocks are held a small one moves, unless it has room and would keep half of its bytes: glibc would
/// let it grow over what is free behind it, or give out what it leaves.
///
/// # Safety
/// As for `realloc`.
unsafe fn resized(block: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: by the contract.
    let old = if block.is_null() { 0 } else { unsafe { usable_bytes(block) } };
    if !quarantine::on() || old == 0 || old >= LARGE {
        // SAFETY: by the contract.
        let mut new = unsafe { __libc_realloc(block, bytes) };
        if new.is_null() && bytes > 0 && quarantine::release_all() {
            // SAFETY: by the contract: that it failed left the block as it was.
            new = unsafe { __libc_realloc(block, bytes) };
        }
        return new;
    }
    if bytes <= old && bytes > old / 2 {
        return block;
    }
    // SAFETY: glibc's allocator; two blocks of these lengths. The old one is the program's no more.
    unsafe {
        let make = || if bytes > 0 { __libc_malloc(bytes) } else { core::ptr::null_mut() };
        let mut new = make();
        if new.is_null() && bytes > 0 {
            if !quarantine::release_all() {
                return new;
            }
            new = make();
        }
        if !new.is_null() {
            real!(fn memcpy(*mut u8, *const u8, usize) -> *mut u8)(new, block, old.min(bytes));
        }
        if !new.is_null() || bytes == 0 {
            quarantine::hold(block);
        }
        new
    }
}

/// From here on glibc asks the kernel for each block.
const LARGE: usize = 128 << 10;

/// Whether a block may grow so far: the kernel is asked before the block's end is told, for nothing ends where it refuses.
///
/// # Safety
/// A live block of glibc's allocator.
unsafe fn is_to_be_had(block: *const u8, bytes: usize) -> bool {
    // SAFETY: by the contract.
    let now = unsafe { usable_bytes(block) };
    bytes < LARGE || bytes <= now || mappings::is_to_be_had(bytes)
}

/// Where the kernel refuses a new block, the old one may still grow in its place: what comes of it is told when it is known.
///
/// # Safety
/// A live block of glibc's allocator.
unsafe fn reallocate_or_leave(block: *mut u8, bytes: usize, site: u64) -> *mut u8 {
    // SAFETY: by the contract.
    let (old, new) = unsafe { (usable_bytes(block) as u64, __libc_realloc(block, bytes)) };
    if !new.is_null() {
        freed(block as u64, old, site);
        allocated(new as u64, bytes, site, allocation_kind::HEAP);
    }
    new
}

unsafe extern "C" fn reallocate_array(block: *mut u8, count: usize, bytes: usize) -> *mut u8 {
    match count.checked_mul(bytes) {
        // SAFETY: as `realloc` is called, with the size of all.
        Some(total) => unsafe { reallocate(block, total) },
        None => {
            crate::system::real::set_errno(12);
            core::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn release(block: *mut u8) {
    // SAFETY: the program gives the block back.
    unsafe { freeing(block, caller()) }
}

unsafe extern "C" fn aligned(alignment: usize, bytes: usize) -> *mut u8 {
    // SAFETY: glibc's allocator; an alignment that it does not know it refuses.
    allocating(bytes, caller(), || unsafe { __libc_memalign(alignment, bytes) })
}

unsafe extern "C" fn posix_aligned(block: *mut *mut u8, alignment: usize, bytes: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < 8 {
        return 22;
    }
    // SAFETY: the same, with an alignment that it knows.
    let new = allocating(bytes, caller(), || unsafe { __libc_memalign(alignment, bytes) });
    if new.is_null() {
        return 12;
    }
    // SAFETY: the program's place for the address.
    unsafe { *block = new };
    0
}

unsafe extern "C" fn page_aligned(bytes: usize) -> *mut u8 {
    // SAFETY: as in `posix_aligned`.
    allocating(bytes, caller(), || unsafe { __libc_memalign(4096, bytes) })
}

unsafe extern "C" fn page_multiple(bytes: usize) -> *mut u8 {
    let bytes = bytes.next_multiple_of(4096);
    // SAFETY: as in `posix_aligned`.
    allocating(bytes, caller(), || unsafe { __libc_memalign(4096, bytes) })
}

interpose! {
    malloc => allocate;
    calloc => allocate_zeroed;
    realloc => reallocate;
    reallocarray => reallocate_array;
    free => release;
    cfree => release;
    memalign => aligned;
    aligned_alloc => aligned;
    posix_memalign => posix_aligned;
    valloc => page_aligned;
    pvalloc => page_multiple;
    malloc_usable_size => usable;
}
