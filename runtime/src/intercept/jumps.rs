//! `longjmp` and its kin: functions that are left without returning.
//!
//! The shadow call stack knows the stack pointer inside each function; whatever lies below the jump's target is gone. Jumps
//! between stacks (from a handler on an alternate stack, between coroutines) are judged by address like all others, so that call
//! contexts may be wrong behind them, and nothing else.

use crate::detect;
use crate::system::real::real;
use crate::system::tls::hot;
use core::arch::asm;
use core::ffi::c_int;

/// The stack pointer of the frame that called `setjmp`: word 6 of the buffer, as glibc's pointer guard hides it on x86-64.
///
/// # Safety
/// `buffer` was filled by `setjmp`.
unsafe fn target(buffer: *const u64) -> u64 {
    let guard: u64;
    // SAFETY: by the contract; the guard lies in the thread's control block.
    unsafe {
        asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, pure, readonly));
        (*buffer.add(6)).rotate_right(17) ^ guard
    }
}

/// Takes the entries of functions that a jump leaves from the shadow call stack.
///
/// # Safety
/// As [`target`].
unsafe fn unwind(buffer: *const u64) {
    let block = hot();
    // SAFETY: this thread's block; entries between bottom and top are written.
    unsafe {
        let Some(thread) = block.thread.get() else { return };
        // A handler that runs inside the runtime (a fault there) leaves it.
        block.nesting.set(0);
        let target = target(buffer);
        if detect::on() {
            thread.with_own(|own| detect::handlers::jumped(own, &raw const block as u64, target));
        }
        let mut top = block.top.get();
        // The hook's own return address lies between a function's stack pointer and the one noted.
        while top > block.bottom.get() && (*top.sub(1)).stack_pointer + 8 < target {
            top = top.sub(1);
        }
        if top < block.top.get() {
            block.top.set(top);
            block.overflow.set(0);
            block.dirty.set(1);
            block.lowest.set(block.lowest.get().min(top));
        }
    }
}

macro_rules! jumps {
    ($($function:ident $name:ident;)*) => { $(
        unsafe extern "C" fn $function(buffer: *const u64, value: c_int) {
            // SAFETY: the program's own buffer, of a frame that is still there if the program is right.
            unsafe {
                unwind(buffer);
                real!(fn $name(*const u64, c_int) -> ())(buffer, value)
            }
        }
    )* };
}

jumps! {
    jump longjmp;
    jump_plain _longjmp;
    jump_masked siglongjmp;
    jump_checked __longjmp_chk;
}

interpose! {
    longjmp => jump;
    _longjmp => jump_plain;
    siglongjmp => jump_masked;
    __longjmp_chk => jump_checked;
}
