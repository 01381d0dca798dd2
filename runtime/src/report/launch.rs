//! Starts the reporter: a process of its own, whose parent is gone before the program can wait for children, connected by a
//! socket.

use super::options;
use crate::system::real;
use crate::system::sys::{self, syscall};
use core::ffi::{CStr, c_int};
use rashomon_abi::{REPORTER_COMMAND, REPORTER_VARIABLE};

const STACK_BYTES: usize = 64 << 10;
/// Descriptors of the program's own are seldom that high.
const HIGH: usize = 1000;

/// What the processes that are made need; they share our memory until one executes the reporter.
#[repr(C)]
struct Plan {
    socket: i32,
    error: c_int,
    path: *const u8,
    arguments: [*const u8; 3],
    environment: [*const u8; 8],
    /// End of the second process's stack.
    stack: usize,
}

/// Our end of the socket to a reporter that has been executed.
pub fn start() -> Result<i32, &'static [u8]> {
    let mut path = [0_u8; 4096];
    if !find(&mut path) {
        return Err(b"no reporter: `rashomon` is not in PATH, and neither RASHOMON_REPORTER nor the option reporter names it");
    }
    let mut pair = [0_i32; 2];
    let stack = sys::map_anonymous(2 * STACK_BYTES);
    if stack.is_null() {
        return Err(b"out of memory for the reporter");
    }
    let mut command = [0_u8; 16];
    command[..REPORTER_COMMAND.len()].copy_from_slice(REPORTER_COMMAND.as_bytes());
    let mut plan = Plan {
        socket: 0,
        error: 0,
        path: path.as_ptr(),
        arguments: [path.as_ptr(), command.as_ptr(), core::ptr::null()],
        environment: environment(),
        stack: stack as usize + 2 * STACK_BYTES,
    };
    // SAFETY: fresh descriptors and memory; both processes are gone, or have left our memory, before `clone` returns here, as it
    // waits for the first (CLONE_VFORK), which waits for the second.
    unsafe {
        // AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC
        if sys::call(53, 1, 0o2000001, 0, pair.as_mut_ptr() as usize, 0, 0) < 0 {
            sys::unmap(stack, 2 * STACK_BYTES);
            return Err(b"no socket for the reporter");
        }
        let (own, theirs) = (raised(pair[0]), raised(pair[1]));
        plan.socket = theirs;
        let (all, mut mask) = (u64::MAX, 0_u64);
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const all, &raw mut mask, 8);
        let child = clone(first as *const () as usize, &raw mut plan as usize, stack as usize + STACK_BYTES);
        if child > 0 {
            // __WALL: it sends no signal when it ends.
            while syscall!(61usize, child, 0usize, 0x4000_0000, 0usize) == -sys::EINTR {}
        }
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const mask, 0usize, 8);
        syscall!(sys::CLOSE, theirs);
        sys::unmap(stack, 2 * STACK_BYTES);
        if child < 0 || (&raw const plan.error).read_volatile() != 0 {
            syscall!(sys::CLOSE, own);
            return Err(b"the reporter cannot be executed");
        }
        Ok(own)
    }
}

/// The descriptor under a high number, if there is one free; never one of the first three.
unsafe fn raised(descriptor: i32) -> i32 {
    for lowest in [HIGH, 200, 3] {
        // SAFETY: our own descriptor. F_DUPFD_CLOEXEC
        let copy = unsafe { syscall!(sys::FCNTL, descriptor, 1030, lowest) };
        if copy >= 0 {
            // SAFETY: as above.
            unsafe { syscall!(sys::CLOSE, descriptor) };
            return copy as i32;
        }
    }
    descriptor
}

/// A process that shares our memory, runs `function(argument)` on a stack of its own, and lets us go on when it executes
/// something or ends. Its end sends no signal.
unsafe fn clone(function: usize, argument: usize, stack: usize) -> isize {
    let result: isize;
    // SAFETY: the child uses nothing of our stack, and `function` does not return.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") 56_isize => result, // clone
            in("rdi") 0x4100, // CLONE_VM | CLONE_VFORK
            in("rsi") stack & !15,
            in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") function, in("r13") argument,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Makes the process that becomes the reporter, and ends.
unsafe extern "C" fn first(plan: *mut Plan) -> ! {
    // SAFETY: the plan lives until both processes are gone.
    unsafe {
        let child = clone(second as *const () as usize, plan as usize, (*plan).stack);
        if child < 0 {
            (&raw mut (*plan).error).write_volatile(child as c_int);
        }
        loop {
            syscall!(60usize, 0); // exit
        }
    }
}

/// Becomes the reporter.
unsafe extern "C" fn second(plan: *mut Plan) -> ! {
    // SAFETY: as above; descriptors are no longer shared.
    unsafe {
        let plan = &mut *plan;
        const DUP2: usize = 33;
        syscall!(DUP2, plan.socket, 0);
        syscall!(DUP2, plan.socket, 1);
        let null = syscall!(sys::OPENAT, -100isize, c"/dev/null".as_ptr(), 1, 0);
        if null >= 0 {
            syscall!(DUP2, null, 2);
        }
        // close_range; kernels before 5.9 have none
        if syscall!(436usize, 3, u32::MAX, 0) < 0 {
            for descriptor in 3..4096 {
                syscall!(sys::CLOSE, descriptor);
            }
        }
        let error = syscall!(59usize, plan.path, plan.arguments.as_ptr(), plan.environment.as_ptr()); // execve
        (&raw mut plan.error).write_volatile(error as c_int);
        loop {
            syscall!(60usize, 127);
        }
    }
}

/// Of the program's environment what a tool may need; nothing that would load something into it or make it record.
fn environment() -> [*const u8; 8] {
    let mut list = [core::ptr::null(); 8];
    let mut count = 0;
    for name in ["PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR", "DEBUGINFOD_URLS", "LANG"] {
        if let Some(value) = real::environment(name.as_bytes()) {
            // SAFETY: the value follows `NAME=` in the same text.
            list[count] = unsafe { value.as_ptr().sub(name.len() + 1) };
            count += 1;
        }
    }
    list
}

/// The reporter's path, terminated.
fn find(path: &mut [u8; 4096]) -> bool {
    let chosen = options::get().reporter;
    let chosen = if chosen.is_empty() { real::environment(REPORTER_VARIABLE.as_bytes()).unwrap_or_default() } else { chosen };
    if !chosen.is_empty() {
        return is_program(path, &[chosen]);
    }
    let folders = real::environment(b"PATH").unwrap_or_default();
    folders
        .split(|&byte| byte == b':')
        .filter(|folder| folder.starts_with(b"/"))
        .any(|folder| is_program(path, &[folder, b"/rashomon"]))
}

fn is_program(path: &mut [u8; 4096], parts: &[&[u8]]) -> bool {
    path.fill(0);
    let mut at = 0;
    for part in parts {
        if at + part.len() >= path.len() {
            return false;
        }
        path[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    // SAFETY: a terminated path. access(X_OK)
    CStr::from_bytes_until_nul(path).is_ok() && unsafe { syscall!(21usize, path.as_ptr(), 1) == 0 }
}
