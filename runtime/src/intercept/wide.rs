//! 128-bit cells: `cmpxchg16b` is all that every x86-64 processor has, so every operation is a compare-exchange, but for loads
//! where the processor has better.
//!
//! Depends on nothing else here: a test compiles it at every level of optimisation, among code that leaves few registers.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is there before; it was `expected`, and `desired` is there now, or that is not so.
///
/// # Safety
/// `address` is a 16-byte aligned object that may be written.
#[inline]
pub unsafe fn cmpxchg16b(address: *mut u128, expected: u128, desired: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // SAFETY: by the contract. RBX is the compiler's own: it cannot be named as an operand, and is swapped in and out. A register
    // that the compiler chooses may be RBX, which holds something else when the address is used, so every operand is named.
    unsafe {
        asm!("xchg rsi, rbx", "lock cmpxchg16b [rdi]", "mov rbx, rsi",
             in("rdi") address, inout("rsi") desired as u64 => _, in("rcx") (desired >> 64) as u64,
             inout("rax") low, inout("rdx") high, options(nostack));
    }
    (high as u128) << 64 | low as u128
}

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;
static LOADS_WHOLE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether an aligned load of 16 bytes is atomic: Intel and AMD promise it of all processors with AVX.
fn loads_whole() -> bool {
    const AVX: u32 = 1 << 28;
    let mut known = LOADS_WHOLE.load(Relaxed);
    if known == UNKNOWN {
        known = if core::arch::x86_64::__cpuid(1).ecx & AVX != 0 { YES } else { NO };
        LOADS_WHOLE.store(known, Relaxed);
    }
    known == YES
}

/// Works on memory that may only be read where the processor has such loads.
///
/// # Safety
/// `address` is a 16-byte aligned object.
#[inline]
pub unsafe fn load(address: *mut u128) -> u128 {
    if !loads_whole() {
        // SAFETY: by the contract; an unsuccessful exchange or one of equal values is a load.
        return unsafe { cmpxchg16b(address, 0, 0) };
    }
    let value: core::arch::x86_64::__m128i;
    // SAFETY: by the contract. An instruction of its own, which the compiler cannot split.
    unsafe {
        asm!(
            "movdqa {value}, [{address}]",
            value = out(xmm_reg) value,
            address = in(reg) address,
            options(nostack, preserves_flags)
        );
        core::mem::transmute(value)
    }
}
