//! The processor's time stamp counter, for code that `rashomon cc` had assembled: a call of this stands there in the place of the
//! instruction. In serial mode a nanosecond of virtual time is a tick, so that who compares it with a clock finds it steady.
//!
//! Limits: code that clang compiled, which assembles by itself, has the instruction, and so have libraries. Halves of registers
//! that only AVX knows are not kept; nothing here uses them.

use super::time::reading;
use crate::serial::clock::MONOTONIC;
use crate::system::config;
use crate::system::thread::Runtime;

unsafe extern "C" fn ticks() -> u64 {
    match if config::serial() { Runtime::try_enter() } else { None } {
        Some(runtime) => reading(&runtime, MONOTONIC),
        // SAFETY: every processor of this architecture has it.
        None => unsafe { core::arch::x86_64::_rdtsc() },
    }
}

/// Ticks in `edx:eax`. All other registers and the flags are as they were.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __rashomon_counter() {
    core::arch::naked_asm!(
        "pushfq", "push rbp", "mov rbp, rsp", "cld",
        "push rcx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
        "sub rsp, 264", "and rsp, -16",
        "movaps [rsp], xmm0", "movaps [rsp + 16], xmm1", "movaps [rsp + 32], xmm2", "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4", "movaps [rsp + 80], xmm5", "movaps [rsp + 96], xmm6", "movaps [rsp + 112], xmm7",
        "movaps [rsp + 128], xmm8", "movaps [rsp + 144], xmm9", "movaps [rsp + 160], xmm10", "movaps [rsp + 176], xmm11",
        "movaps [rsp + 192], xmm12", "movaps [rsp + 208], xmm13", "movaps [rsp + 224], xmm14", "movaps [rsp + 240], xmm15",
        "call {ticks}",
        "movaps xmm0, [rsp]", "movaps xmm1, [rsp + 16]", "movaps xmm2, [rsp + 32]", "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]", "movaps xmm5, [rsp + 80]", "movaps xmm6, [rsp + 96]", "movaps xmm7, [rsp + 112]",
        "movaps xmm8, [rsp + 128]", "movaps xmm9, [rsp + 144]", "movaps xmm10, [rsp + 160]", "movaps xmm11, [rsp + 176]",
        "movaps xmm12, [rsp + 192]", "movaps xmm13, [rsp + 208]", "movaps xmm14, [rsp + 224]", "movaps xmm15, [rsp + 240]",
        "lea rsp, [rbp - 56]",
        "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rcx",
        "mov rdx, rax", "shr rdx, 32", "mov eax, eax",
        "pop rbp", "popfq", "ret",
        ticks = sym ticks,
    )
}
