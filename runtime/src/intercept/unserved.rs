//! Functions of libc by which threads hand something on unseen, and that the runtime does not serve: that one was called is
//! noted, so that the host knows which of those that a program refers to matter.

use crate::system::header;
use crate::system::real::{Real, c_name};
use core::arch::naked_asm;
use core::sync::atomic::Ordering::Relaxed;
use rashomon_abi::header::field;
use rashomon_abi::unserved::NAMES;

/// Notes the call. The address behind the name.
unsafe extern "C" fn called(real: &'static Real, number: u64) -> *mut core::ffi::c_void {
    header::word(field::UNSERVED).fetch_or(1 << number, Relaxed);
    real.required()
}

/// The place of a name among those of the header.
const fn number_of(name: &str) -> u32 {
    let mut number = 0;
    while number < NAMES.len() {
        let (one, other) = (NAMES[number].as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        if at == one.len() && at == other.len() {
            return number as u32;
        }
        number += 1;
    }
    panic!()
}

macro_rules! unserved {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                #[used]
                #[unsafe(link_section = "rashomon_real")]
                static REAL: Real = Real::new(c_name(concat!(stringify!($name), "\0")), None);
                // Every register that may hold an argument is kept, and the stack is aligned.
                naked_asm!(
                    super::names_of!($name),
                    "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                    "lea rdi, [rip + {real}]",
                    "mov esi, {number}",
                    "call {called}",
                    "mov r11, rax",
                    "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                    "jmp r11",
                    real = sym REAL,
                    number = const number_of(stringify!($name)),
                    called = sym called,
                )
            }
        )*
        const _: () = assert!([$(stringify!($name)),*].len() == NAMES.len());
    };
}

unserved! {
    aio_error aio_error64 aio_fsync aio_fsync64 aio_read aio_read64 aio_return aio_return64 aio_suspend aio_suspend64 aio_write
    aio_write64 fanotify_init getaddrinfo_a inotify_init inotify_init1 lio_listio lio_listio64 mq_notify preadv2 preadv64v2
    pwritev2 pwritev64v2
}
