//! `__libc_start_main`: `main` begins at a page boundary of the stack.
//!
//! Where the initial stack ends within its page is random, and depends on the size of the environment. A function with a variable
//! of more than the ABI's alignment of 16 bytes (vectors, what is padded to cache lines) rounds its stack pointer down, and by
//! how much depends on that place; all that lies further down moves along. Positions name places in a stack by their distance
//! from its end, so they would not be found again. With `main` at a page boundary, from which distances are counted, every
//! execution has the same ones.
//!
//! Constructors run before `main`, on the stack as it is; what they have there is named by its distance from the end, random or
//! not. Limit: those that use more of it than [`UPPER_BYTES`].

use super::exits;
use crate::system::real::{__libc_stack_end, real};
use core::arch::global_asm;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

const PAGE: u64 = 4096;
/// Between the end of the stack and `main`, which begins somewhat further down.
pub const UPPER_BYTES: u64 = 15 * PAGE;

static MAIN: AtomicUsize = AtomicUsize::new(0);
/// Where it is to begin; 0: where it is called.
static BEGIN: AtomicU64 = AtomicU64::new(0);

/// Has `main`, which is not yet called, begin at a page boundary, and tells which.
pub fn align_main() -> u64 {
    // SAFETY: set by the loader.
    let end = unsafe { __libc_stack_end as u64 };
    let begin = (end - UPPER_BYTES) & !(PAGE - 1);
    BEGIN.store(begin, Relaxed);
    begin
}

unsafe extern "C" {
    fn rashomon_call_main();
}

/// Whether `main` returns to this address: it lies in the few instructions that call it.
pub fn calls_main(address: u64) -> bool {
    address.wrapping_sub(rashomon_call_main as *const () as u64) < 40
}

global_asm!(
    ".text",
    ".hidden rashomon_call_main",
    ".globl rashomon_call_main",
    ".type rashomon_call_main,@function",
    "rashomon_call_main:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rax, [rip + {begin}]",
    "test rax, rax",
    "cmovne rsp, rax",
    "call [rip + {main}]",
    "push rax",
    "push rax",
    "call {returned}",
    "pop rax",
    "pop rax",
    "leave",

    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size rashomon_call_main, . - rashomon_call_main",
    begin = sym BEGIN,
    main = sym MAIN,
    returned = sym main_returned,
);

/// What libc does next is to call `exit`, from inside.
unsafe extern "C" fn main_returned() {
    exits::asked(MAIN.load(Relaxed) as u64 + 1);
}

/// # Safety
/// As the function of libc, which only a program's start code calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: usize,
    count: c_int,
    arguments: usize,
    initialise: usize,
    finish: usize,
    finish_loader: usize,
    stack_end: usize,
) -> c_int {
    MAIN.store(main, Relaxed);
    // SAFETY: by the contract; the function in the place of `main` calls it.
    unsafe {
        real!("GLIBC_2.34" fn __libc_start_main(unsafe extern "C" fn(), c_int, usize, usize, usize, usize, usize) -> c_int)(
            rashomon_call_main,
            count,
            arguments,
            initialise,
            finish,
            finish_loader,
            stack_end,
        )
    }
}
