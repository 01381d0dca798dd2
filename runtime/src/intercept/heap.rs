//! The allocator: lifetimes of heap blocks.

use crate::real::{__libc_calloc, __libc_free, __libc_malloc, __libc_memalign, __libc_realloc};
use crate::thread::Runtime;
use crate::tls::caller;
use crate::{detect, recorder, replay};
use core::ffi::c_int;
use rashomon_abi::record::{Op, allocation_kind};

/// Records a block that begins to live.
pub fn allocated(address: u64, bytes: usize, site: u64, kind: u16) {
    if address == 0 {
        return;
    }
    let Some(runtime) = Runtime::try_enter() else { return };
    let thread = runtime.thread();
    if detect::on() {
        detect::sync(thread, Op::Allocate, address, kind, site, &[bytes as u64]);
        return;
    }
    let count = thread.allocations.entry((site, kind as u64));
    let ordinal = *count;
    *count += 1;
    replay::allocated(thread, site, ordinal, address, kind == allocation_kind::MAPPING);
    recorder::sync(thread, Op::Allocate, address, kind, site, &[bytes as u64, ordinal]);
}

/// Records that a block's life ends. Before it really does.
pub fn freed(address: u64, site: u64) {
    if address == 0 {
        return;
    }
    if let Some(runtime) = Runtime::try_enter() {
        recorder::sync(runtime.thread(), Op::Free, address, 0, site, &[]);
    }
}

fn heap_block(block: *mut u8, bytes: usize, site: u64) -> *mut u8 {
    allocated(block as u64, bytes, site, allocation_kind::HEAP);
    block
}

unsafe extern "C" fn allocate(bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    heap_block(unsafe { __libc_malloc(bytes) }, bytes, site)
}

unsafe extern "C" fn allocate_zeroed(count: usize, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    heap_block(unsafe { __libc_calloc(count, bytes) }, count.wrapping_mul(bytes), site)
}

unsafe extern "C" fn reallocate(block: *mut u8, bytes: usize) -> *mut u8 {
    let site = caller();
    freed(block as u64, site);
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    let new = unsafe { __libc_realloc(block, bytes) };
    if new.is_null() && bytes > 0 && !block.is_null() {
        // It failed: the old block lives on, as a new object of unknown size at least.
        return heap_then_null(block, site);
    }
    heap_block(new, bytes, site)
}

fn heap_then_null(block: *mut u8, site: u64) -> *mut u8 {
    // SAFETY: a live block of the allocator.
    let bytes = unsafe { crate::real::malloc_usable_size(block) };
    allocated(block as u64, bytes, site, allocation_kind::HEAP);
    core::ptr::null_mut()
}

unsafe extern "C" fn reallocate_array(block: *mut u8, count: usize, bytes: usize) -> *mut u8 {
    match count.checked_mul(bytes) {
        // SAFETY: glibc's own entry point, or ours, with the program's arguments.
        Some(total) => unsafe { reallocate(block, total) },
        None => {
            crate::real::set_errno(12);
            core::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn release(block: *mut u8) {
    freed(block as u64, caller());
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    unsafe { __libc_free(block) }
}

unsafe extern "C" fn aligned(alignment: usize, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    heap_block(unsafe { __libc_memalign(alignment, bytes) }, bytes, site)
}

unsafe extern "C" fn posix_aligned(block: *mut *mut u8, alignment: usize, bytes: usize) -> c_int {
    let site = caller();
    if !alignment.is_power_of_two() || alignment < 8 {
        return 22;
    }
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    let new = unsafe { __libc_memalign(alignment, bytes) };
    if new.is_null() {
        return 12;
    }
    // SAFETY: the program's own variable.
    unsafe { *block = heap_block(new, bytes, site) };
    0
}

unsafe extern "C" fn page_aligned(bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    heap_block(unsafe { __libc_memalign(4096, bytes) }, bytes, site)
}

unsafe extern "C" fn page_multiple(bytes: usize) -> *mut u8 {
    let site = caller();
    let bytes = bytes.next_multiple_of(4096);
    // SAFETY: glibc's own entry point, or ours, with the program's arguments.
    heap_block(unsafe { __libc_memalign(4096, bytes) }, bytes, site)
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
}
