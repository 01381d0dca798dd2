//! `memcpy` and its kin: accesses of whole ranges.
//!
//! The runtime's own copies arrive here as well (compilers emit the names): under a [`Runtime`] guard, or on an unknown thread,
//! these functions are nothing but libc's function or, before that is known, the string instructions of the processor, which take
//! long to begin.

use crate::intercept::hooks::access_by_call;
use crate::system::real::{Real, real};
use crate::system::tls::{caller, hot};
use core::arch::asm;
use core::ffi::c_int;
use rashomon_abi::record::AccessClass;

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
type Fill = unsafe extern "C" fn(*mut u8, c_int, usize) -> *mut u8;

#[used]
#[unsafe(link_section = "rashomon_real")]
static MEMMOVE: Real = Real::new(c"memmove", None);
#[used]
#[unsafe(link_section = "rashomon_real")]
static MEMSET: Real = Real::new(c"memset", None);

fn observed() -> bool {
    hot().is_outside()
}

/// # Safety
/// As memmove(3).
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: by the contract.
    unsafe {
        // At the very start nothing of libc's is known.
        let real = if observed() { MEMMOVE.required() } else { MEMMOVE.known() };
        if !real.is_null() {
            return core::mem::transmute::<*mut core::ffi::c_void, Copy>(real)(to, from, bytes);
        }
        if (to as usize).wrapping_sub(from as usize) >= bytes {
            asm!(
                "rep movsb",
                inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
                options(nostack, preserves_flags)
            );
        } else {
            let (to, from) = (to.add(bytes).sub(1), from.add(bytes).sub(1));
            asm!(
                "std", "rep movsb", "cld",
                inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
                options(nostack)
            );
        }
    }
    to
}

unsafe extern "C" fn move_bytes(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: the program's arguments.
    unsafe {
        if observed() {
            access_by_call(from as u64, bytes as u64, site, AccessClass::Read as u64);
            access_by_call(to as u64, bytes as u64, site, AccessClass::Write as u64);
        }
        copy(to, from, bytes)
    }
}

unsafe extern "C" fn move_bytes_to_end(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the program's arguments.
    unsafe { move_bytes(to, from, bytes).add(bytes) }
}

unsafe extern "C" fn fill(to: *mut u8, value: c_int, bytes: usize) -> *mut u8 {
    let site = caller();
    // SAFETY: the program's arguments.
    unsafe {
        let real = if observed() {
            access_by_call(to as u64, bytes as u64, site, AccessClass::Write as u64);
            MEMSET.required()
        } else {
            MEMSET.known()
        };
        if !real.is_null() {
            return core::mem::transmute::<*mut core::ffi::c_void, Fill>(real)(to, value, bytes);
        }
        asm!("rep stosb", inout("rdi") to => _, inout("rcx") bytes => _, in("al") value as u8, options(nostack, preserves_flags));
    }
    to
}

/// Whether eight bytes can be read where one can: they lie in one page.
pub fn are_in_page(at: *const u8) -> bool {
    at as usize & 4095 <= 4096 - 8
}

/// # Safety
/// [`are_in_page`], and the first byte is readable.
pub unsafe fn eight(at: *const u8) -> u64 {
    let value: u64;
    // A load of the compiler's could be a call of a function that is interposed.
    // SAFETY: by the contract.
    unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) at, options(nostack, readonly, preserves_flags)) };
    value
}

/// How many bytes are the same, below `bytes`.
///
/// # Safety
/// Both are readable up to the first difference.
unsafe fn common(a: *const u8, b: *const u8, bytes: usize) -> usize {
    let mut at = 0;
    // SAFETY: by the contract; what lies in the page of a readable byte is readable.
    unsafe {
        while at < bytes {
            let (here, there) = (a.add(at), b.add(at));
            if at + 8 <= bytes && are_in_page(here) && are_in_page(there) {
                let difference = eight(here) ^ eight(there);
                if difference != 0 {
                    return at + difference.trailing_zeros() as usize / 8;
                }
                at += 8;
            } else if here.read_volatile() == there.read_volatile() {
                at += 1;
            } else {
                return at;
            }
        }
    }
    at
}

unsafe extern "C" fn compare(a: *const u8, b: *const u8, bytes: usize) -> c_int {
    let site = caller();
    // SAFETY: the program's arguments: both ranges are readable up to the first difference, at least.
    unsafe {
        let same = observed() && real!(fn memcmp(*const u8, *const u8, usize) -> c_int)(a, b, bytes) == 0;
        let at = if same { bytes } else { common(a, b, bytes) };
        if observed() {
            let seen = (at + 1).min(bytes) as u64;
            access_by_call(a as u64, seen, site, AccessClass::Read as u64);
            access_by_call(b as u64, seen, site, AccessClass::Read as u64);
        }
        if at == bytes { 0 } else { *a.add(at) as c_int - *b.add(at) as c_int }
    }
}

interpose! {
    memcpy => move_bytes;
    memmove => move_bytes;
    mempcpy => move_bytes_to_end;
    memset => fill;
    memcmp => compare;
    bcmp => compare;
    __tsan_memcpy => move_bytes;
    __tsan_memmove => move_bytes;
    __tsan_memset => fill;
}
