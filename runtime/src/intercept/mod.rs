//! Where events come from: what compilers emit (`hooks`, `atomics`), and the functions of libc and libpthread that stand between
//! threads, one module a family.
//!
//! Every interposed name is a trampoline that notes its return address (the *site*) and jumps to the function here. Each function
//! follows one pattern: pass through unless the thread is known and outside the runtime; offer the turn
//! ([`crate::serial::sched::point`]); do the thing, in serial mode by trying and blocking in the model, in free mode by the real
//! function; record what happened — releases before they take effect, acquisitions after.
//!
//! The names are weak, and each has a strong twin `__interceptor_NAME` in the archive: a program that defines a function of that
//! name itself has its own, and reaches ours by the twin.
//!
//! Calls: `system`, `record`, `report`, `detect`, `serial`, `provoke`, `process`.

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

macro_rules! interpose {
    ($($name:ident => $target:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
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
    )* };
}
pub(crate) use interpose;

/// The same, in a section of their own: so that it can be told which kind of function was called.
macro_rules! interpose_in {
    ($section:literal; $($name:ident => $target:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[unsafe(link_section = $section)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
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
    )* };
}
pub(crate) use interpose_in;

unsafe extern "C" {
    static __start_rashomon_looks: u8;
    static __stop_rashomon_looks: u8;
    static __start_rashomon_mutex: u8;
    static __stop_rashomon_mutex: u8;
}

/// Whether an interposed function, by its address, does nothing of its own: atomic operations, tries, yields, sleeps.
pub fn is_look(callee: u64) -> bool {
    (&raw const __start_rashomon_looks as u64..&raw const __stop_rashomon_looks as u64).contains(&callee)
}

/// Whether it takes a mutex or gives it back.
pub fn is_mutex_call(callee: u64) -> bool {
    (&raw const __start_rashomon_mutex as u64..&raw const __stop_rashomon_mutex as u64).contains(&callee)
}

pub mod annotations;
pub mod atomics;
pub mod barrier;
pub mod c11;
pub mod cancel;
pub mod condition;
pub mod descriptors;
pub mod effects;
pub mod exits;
pub mod external;
pub mod files;
pub mod flockfile;
pub mod forward;
pub mod futex;
pub mod handlers;
pub mod heap;
pub mod hooks;
pub mod java;
pub mod jumps;
pub mod kernel;
pub mod library;
pub mod lock_common;
pub mod mappings;
pub mod memory;
pub mod messages;
pub mod mutex;
pub mod names;
pub mod newdelete;
pub mod once;
pub mod passing;
pub mod poll;
pub mod process;
pub mod queue;
pub mod rwlock;
pub mod semaphore;
pub mod sockets;
pub mod spin;
pub mod start;
pub mod stdio;
pub mod streams;
pub mod strings;
pub mod syscall_hooks;
pub mod threads;
pub mod time;
pub mod timers;
pub mod user_locks;
pub mod waits;
pub mod wide;
