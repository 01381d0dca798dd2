//! How an interposed function begins, wherever it is, and which kind of entry point a code address belongs to: each kind has a
//! section of its own.

use crate::system::tls;

/// What begins the assembly of an interposed function.
macro_rules! names_of {
    ($name:ident) => {
        concat!(
            ".weak ",
            stringify!($name),
            "\n.globl __interceptor_",
            stringify!($name),
            "\n.type __interceptor_",
            stringify!($name),
            ", @function\n__interceptor_",
            stringify!($name),
            ":"
        )
    };
}
pub(crate) use names_of;

/// One entry point: says who calls it and under which name, then goes on in `target`.
macro_rules! entry_point {
    ($(#[$attribute:meta])* $name:ident => $target:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        $(#[$attribute])*
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::system::entry::names_of!($name),
                "5: mov r10, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov r11, [rsp]",
                "mov fs:[r10 + {caller}], r11",
                "lea r11, [rip + 5b]",
                "mov fs:[r10 + {callee}], r11",
                "jmp {target}",
                caller = const $crate::system::tls::CALLER,
                callee = const $crate::system::tls::CALLEE,
                target = sym $target,
            )
        }
    };
}
pub(crate) use entry_point;

macro_rules! interpose {
    ($($name:ident => $target:path;)*) => { $($crate::system::entry::entry_point!($name => $target);)* };
}
pub(crate) use interpose;

/// The same, in a section of their own: so that it can be told which kind of function was called.
macro_rules! interpose_in {
    ($section:literal; $($name:ident => $target:path;)*) => { $(
        $crate::system::entry::entry_point!(#[unsafe(link_section = $section)] $name => $target);
    )* };
}
pub(crate) use interpose_in;

unsafe extern "C" {
    static __start_rashomon_polls: u8;
    static __stop_rashomon_polls: u8;
    static __start_rashomon_mutex: u8;
    static __stop_rashomon_mutex: u8;
    static __start_rashomon_hooks: u8;
    static __stop_rashomon_hooks: u8;
    static __start_rashomon_passages: u8;
    static __stop_rashomon_passages: u8;
}

/// Whether an interposed function, by its address, does nothing of its own: atomic operations, tries, yields, sleeps.
pub fn is_poll(callee: u64) -> bool {
    (&raw const __start_rashomon_polls as u64..&raw const __stop_rashomon_polls as u64).contains(&callee)
}

/// Whether it takes a mutex or gives it back.
pub fn is_mutex_call(callee: u64) -> bool {
    (&raw const __start_rashomon_mutex as u64..&raw const __stop_rashomon_mutex as u64).contains(&callee)
}

/// Whether a code address lies in a hook that compiled code calls at an access, a function's begin or its end.
pub fn is_in_hook(address: u64) -> bool {
    (&raw const __start_rashomon_hooks as u64..&raw const __stop_rashomon_hooks as u64).contains(&address)
}

/// Whether a code address lies in a passage to code that is not seen (`intercept/passage.rs`).
pub fn is_in_passage(address: u64) -> bool {
    (&raw const __start_rashomon_passages as u64..&raw const __stop_rashomon_passages as u64).contains(&address)
}

/// How far above a function's frame that of the passage lies at most that called it.
const NEAR: u64 = 1 << 16;

/// Who called the passage that an interposed function returns to: code that is not seen jumped to that function as its last act.
/// `otherwise`: where the passage's frame was left by a jump.
#[cold]
pub fn caller_of_passage(otherwise: u64) -> u64 {
    let here = 0_u8;
    let frame = tls::hot().passage.get();
    let distance = frame.wrapping_sub((&raw const here).addr() as u64);
    // SAFETY: the frame of a passage that has not returned, right above this one.
    if distance < NEAR { unsafe { return_of(frame) } } else { otherwise }
}

/// Where a passage returns to.
///
/// # Safety
/// The frame of a passage that has not returned.
pub unsafe fn return_of(frame: u64) -> u64 {
    // SAFETY: by the contract; the frame begins with the caller's frame pointer, and the return address is above it.
    unsafe { *((frame + 8) as *const u64) }
}
