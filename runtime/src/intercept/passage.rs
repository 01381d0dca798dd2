//! The way through which calls into code that is not seen go: a piece of code for each function, and what all of them come to.
//!
//! The passage keeps every register that may hold an argument or a result, of the width that the processor has (results in the
//! x87 stack stay there), and calls the function with a copy of the words above the return address. A frame of its own lies
//! between, with what unwinding needs to know, so that exceptions and cancellation pass.
//!
//! Limit: at most [`STACK_WORDS`] words of arguments on the stack.

use crate::intercept::gaps::{begin, end};
use crate::system::sys::{self, syscall};
use core::arch::naked_asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU64, Ordering::*};

const STACK_WORDS: usize = 64;
const PAGE: usize = 4096;
/// Of a passage's frame: what is not vectors.
const SCALARS: usize = 96;

/// What a piece of code comes from and goes to. The code jumps through the first word; the passage calls through the second.
#[repr(C)]
pub struct Entry {
    passage: u64,
    pub target: u64,
}

/// `endbr64; movabs r11, entry; jmp [r11]`: the code for one function. 0: there is no memory for it.
pub fn piece(target: u64) -> u64 {
    let page = sys::map_anonymous(PAGE);
    if page.is_null() {
        return 0;
    }
    page.expose_provenance();
    // SAFETY: a fresh page: the entry, then the code.
    unsafe {
        page.cast::<Entry>().write(Entry { passage: widest(), target });
        let code = page.add(size_of::<Entry>());
        code.cast::<[u8; 6]>().write([0xf3, 0x0f, 0x1e, 0xfa, 0x49, 0xbb]);
        code.add(6).cast::<u64>().write_unaligned(page as u64);
        code.add(14).cast::<[u8; 3]>().write([0x41, 0xff, 0x23]);
        // PROT_READ | PROT_EXEC
        syscall!(sys::MPROTECT, page, PAGE, 5);
    }
    page as u64 + size_of::<Entry>() as u64
}

/// Once it is known. A virtual machine's processor takes longer to tell than a system call.
static WIDEST: AtomicU64 = AtomicU64::new(0);

/// The passage for the vectors that the processor and the kernel let programs use.
fn widest() -> u64 {
    let known = WIDEST.load(Relaxed);
    if known != 0 {
        return known;
    }
    let passage = find_widest();
    WIDEST.store(passage, Relaxed);
    passage
}

fn find_widest() -> u64 {
    const USES_XSAVE: u32 = 1 << 27;
    const AVX512F: u32 = 1 << 16;
    // The vectors' state: 16 bytes, 32 bytes, and the three parts of 64 bytes.
    const AVX: u64 = 6;
    const AVX512: u64 = 0xe6;
    // SAFETY: every processor with 64 bits tells what it can do; the register is there if it says so.
    let (state, more) = unsafe {
        if __cpuid(1).ecx & USES_XSAVE == 0 {
            return narrow as *const () as u64;
        }
        (xgetbv(), __cpuid_count(7, 0).ebx)
    };
    if more & AVX512F != 0 && state & AVX512 == AVX512 {
        wide as *const () as u64
    } else if state & AVX == AVX {
        middle as *const () as u64
    } else {
        narrow as *const () as u64
    }
}

#[target_feature(enable = "xsave")]
unsafe fn xgetbv() -> u64 {
    // SAFETY: by the caller.
    unsafe { _xgetbv(0) }
}

macro_rules! passages {
    ($($name:ident: $move:literal $register:literal $bytes:literal;)*) => { $(
        /// Comes with the entry in `r11`, all else as the caller left it.
        #[unsafe(naked)]
        #[unsafe(link_section = "rashomon_passages")]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, {frame}",
                "mov [rbp - 48], rdi",
                "mov [rbp - 40], rsi",
                "mov [rbp - 32], rdx",
                "mov [rbp - 24], rcx",
                "mov [rbp - 16], r8",
                "mov [rbp - 8], r9",
                "mov [rbp - 56], rax",
                "mov [rbp - 64], r10",
                "mov [rbp - 72], r11",
                concat!($move, " [rsp], ", $register, "0"),
                concat!($move, " [rsp + {v1}], ", $register, "1"),
                concat!($move, " [rsp + {v2}], ", $register, "2"),
                concat!($move, " [rsp + {v3}], ", $register, "3"),
                concat!($move, " [rsp + {v4}], ", $register, "4"),
                concat!($move, " [rsp + {v5}], ", $register, "5"),
                concat!($move, " [rsp + {v6}], ", $register, "6"),
                concat!($move, " [rsp + {v7}], ", $register, "7"),
                "mov rdi, r11",
                "lea rsi, [rbp - 48]",
                "mov rdx, rbp",
                "call {begin}",
                "mov [rbp - 80], rax",
                concat!($move, " ", $register, "0, [rsp]"),
                concat!($move, " ", $register, "1, [rsp + {v1}]"),
                concat!($move, " ", $register, "2, [rsp + {v2}]"),
                concat!($move, " ", $register, "3, [rsp + {v3}]"),
                concat!($move, " ", $register, "4, [rsp + {v4}]"),
                concat!($move, " ", $register, "5, [rsp + {v5}]"),
                concat!($move, " ", $register, "6, [rsp + {v6}]"),
                concat!($move, " ", $register, "7, [rsp + {v7}]"),
                "sub rsp, 8 * {words}",
                "lea rsi, [rbp + 16]",
                "mov rdi, rsp",
                "mov ecx, {words}",
                "rep movsq",
                "mov rdi, [rbp - 48]",
                "mov rsi, [rbp - 40]",
                "mov rdx, [rbp - 32]",
                "mov rcx, [rbp - 24]",
                "mov r8, [rbp - 16]",
                "mov r9, [rbp - 8]",
                "mov rax, [rbp - 56]",
                "mov r10, [rbp - 64]",
                "mov r11, [rbp - 72]",
                "call [r11 + 8]",
                "mov [rbp - 48], rax",
                "mov [rbp - 40], rdx",
                concat!($move, " [rsp], ", $register, "0"),
                concat!($move, " [rsp + {v1}], ", $register, "1"),
                "mov rdi, [rbp - 72]",
                "mov rsi, [rbp - 80]",
                "mov rdx, rbp",
                "call {end}",
                "mov rax, [rbp - 48]",
                "mov rdx, [rbp - 40]",
                concat!($move, " ", $register, "0, [rsp]"),
                concat!($move, " ", $register, "1, [rsp + {v1}]"),
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                frame = const SCALARS + 8 * $bytes,
                v1 = const $bytes,
                v2 = const 2 * $bytes,
                v3 = const 3 * $bytes,
                v4 = const 4 * $bytes,
                v5 = const 5 * $bytes,
                v6 = const 6 * $bytes,
                v7 = const 7 * $bytes,
                words = const STACK_WORDS,
                begin = sym begin,
                end = sym end,
            )
        }
    )* };
}

passages! {
    narrow: "movups" "xmm" 16;
    middle: "vmovups" "ymm" 32;
    wide: "vmovups" "zmm" 64;
}
