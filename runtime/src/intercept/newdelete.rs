//! `operator new` and `operator delete` in all their forms.
//!
//! Memory comes from libc as in libstdc++. When there is none, the C++ library's own operator is called, which runs the
//! new-handler and throws. All of these are weak in a static link: a program that replaces them keeps its own, as the standard
//! allows, and the allocations it makes inside are seen instead.
//!
//! Limit: with the C++ library linked statically there is no operator behind these to call: the exception is thrown without
//! asking the new-handler.

use super::heap::{allocating, freeing};
use crate::system::real::{__libc_malloc, __libc_memalign, Real};
use crate::system::tls::{CALLEE, CALLER, caller};
use core::arch::naked_asm;
use core::ffi::c_void;

#[used]
#[unsafe(link_section = "rashomon_real")]
static NEW: Real = Real::new(c"_Znwm", None);
#[used]
#[unsafe(link_section = "rashomon_real")]
static NEW_ALIGNED: Real = Real::new(c"_ZnwmSt11align_val_t", None);
#[used]
#[unsafe(link_section = "rashomon_real")]
static NEW_OR_NULL: Real = Real::new(c"_ZnwmRKSt9nothrow_t", None);
#[used]
#[unsafe(link_section = "rashomon_real")]
static NEW_ALIGNED_OR_NULL: Real = Real::new(c"_ZnwmSt11align_val_tRKSt9nothrow_t", None);

/// libstdc++'s `std::__throw_bad_alloc`, if the program has it; else the end of the process.
#[unsafe(naked)]
unsafe extern "C" fn throw_bad_alloc() -> *mut u8 {
    naked_asm!(
        ".weak _ZSt17__throw_bad_allocv",
        "mov rax, qword ptr [rip + _ZSt17__throw_bad_allocv@GOTPCREL]",
        "test rax, rax",
        "jz {fail}",
        "jmp rax",
        fail = sym fail,
    )
}

unsafe extern "C" fn fail() -> ! {
    crate::system::sys::die(&[b"out of memory in operator new, and no exception to throw"])
}

unsafe extern "C" fn new(bytes: usize) -> *mut u8 {
    // SAFETY: libc's allocator, with the program's size.
    let memory = allocating(bytes, caller(), || unsafe { __libc_malloc(bytes) });
    if memory.is_null() {
        return match NEW.address() {
            // SAFETY: called like `operator new`, which may throw.
            none if none.is_null() => unsafe { throw_bad_alloc() },
            // SAFETY: the C++ library's `operator new(size_t)`.
            next => unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut u8>(next)(bytes) },
        };
    }
    memory
}

unsafe extern "C" fn new_or_null(bytes: usize, tag: *const u8) -> *mut u8 {
    // SAFETY: as in `new`.
    let memory = allocating(bytes, caller(), || unsafe { __libc_malloc(bytes) });
    if memory.is_null() && !NEW_OR_NULL.address().is_null() {
        // SAFETY: the C++ library's `operator new` that does not throw.
        return unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize, *const u8) -> *mut u8>(NEW_OR_NULL.required())(
                bytes, tag,
            )
        };
    }
    memory
}

unsafe extern "C" fn new_aligned(bytes: usize, alignment: usize) -> *mut u8 {
    // SAFETY: libc's allocator; an alignment that it does not know it refuses.
    let memory = allocating(bytes, caller(), || unsafe { __libc_memalign(alignment, bytes) });
    if memory.is_null() {
        return match NEW_ALIGNED.address() {
            // SAFETY: as in `new`.
            none if none.is_null() => unsafe { throw_bad_alloc() },
            // SAFETY: the C++ library's aligned `operator new`.
            next => unsafe {
                core::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize, usize) -> *mut u8>(next)(bytes, alignment)
            },
        };
    }
    memory
}

unsafe extern "C" fn new_aligned_or_null(bytes: usize, alignment: usize, tag: *const u8) -> *mut u8 {
    // SAFETY: as in `new_aligned`.
    let memory = allocating(bytes, caller(), || unsafe { __libc_memalign(alignment, bytes) });
    if memory.is_null() && !NEW_ALIGNED_OR_NULL.address().is_null() {
        // SAFETY: the C++ library's aligned `operator new` that does not throw.
        return unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize, usize, *const u8) -> *mut u8>(
                NEW_ALIGNED_OR_NULL.required(),
            )(bytes, alignment, tag)
        };
    }
    memory
}

unsafe extern "C" fn delete(memory: *mut u8) {
    // SAFETY: the program gives the memory back.
    unsafe { freeing(memory, caller()) }
}

/// Weak, without twins: what a program calls if it replaces these is its own.
macro_rules! interpose_weakly {
    ($($name:ident => $target:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                concat!(".weak ", stringify!($name)),
                "5: mov r10, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov r11, [rsp]",
                "mov fs:[r10 + {caller}], r11",
                "lea r11, [rip + 5b]",
                "mov fs:[r10 + {callee}], r11",
                "jmp {target}",
                caller = const CALLER,
                callee = const CALLEE,
                target = sym $target,
            )
        }
    )* };
}

interpose_weakly! {
    _Znwm => new;
    _Znam => new;
    _ZnwmRKSt9nothrow_t => new_or_null;
    _ZnamRKSt9nothrow_t => new_or_null;
    _ZnwmSt11align_val_t => new_aligned;
    _ZnamSt11align_val_t => new_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t => new_aligned_or_null;
    _ZnamSt11align_val_tRKSt9nothrow_t => new_aligned_or_null;
    _ZdlPv => delete;
    _ZdaPv => delete;
    _ZdlPvm => delete;
    _ZdaPvm => delete;
    _ZdlPvRKSt9nothrow_t => delete;
    _ZdaPvRKSt9nothrow_t => delete;
    _ZdlPvSt11align_val_t => delete;
    _ZdaPvSt11align_val_t => delete;
    _ZdlPvmSt11align_val_t => delete;
    _ZdaPvmSt11align_val_t => delete;
    _ZdlPvSt11align_val_tRKSt9nothrow_t => delete;
    _ZdaPvSt11align_val_tRKSt9nothrow_t => delete;
}
