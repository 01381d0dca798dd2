//! Names that gcc's runtime exports and whose unversioned reference would bind to an old version in libc.
//!
//! A program linked against that runtime holds references without a version. What the library in its place does not define, the
//! loader takes from libc in its *oldest* version, which for these functions is another one than the program was compiled for.
//! They lead straight to the current ones.

use crate::system::real::{Real, c_name};
use core::arch::naked_asm;

/// The address behind a name.
unsafe extern "C" fn resolve(real: &'static Real) -> *mut core::ffi::c_void {
    real.required()
}

macro_rules! forward {
    ($($version:literal $name:ident)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[used]
            #[unsafe(link_section = "rashomon_real")]
            static REAL: Real = Real::new(
                c_name(concat!(stringify!($name), "\0")),
                Some(c_name(concat!($version, "\0"))),
            );
            // Every register that may hold an argument is kept, and the stack is aligned.
            naked_asm!(
                super::names_of!($name),
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "sub rsp, 16",
                "movups [rsp], xmm0",
                "lea rdi, [rip + {real}]",
                "call {resolve}",
                "mov r11, rax",
                "movups xmm0, [rsp]",
                "add rsp, 16",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                real = sym REAL,
                resolve = sym resolve,
            )
        }
    )* };
}

forward! {
    "GLIBC_2.22" fmemopen
    "GLIBC_2.23" lgamma
    "GLIBC_2.23" lgammaf
    "GLIBC_2.23" lgammal
    "GLIBC_2.3.4" pthread_attr_getaffinity_np
}
