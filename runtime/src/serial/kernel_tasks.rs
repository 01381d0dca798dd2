//! What the kernel says of the process's threads: which of them sleep for ever, and how often each has run.

use crate::detect;
use crate::serial::standstill::is_helper;
use crate::system::mappings;
use crate::system::memory::List;
use crate::system::sys::{self, syscall};

/// What a thread does by the kernel's account.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub id: u32,
    pub switches: u64,
    /// Address of the futex that it sleeps on for ever, or of the lock that it spins on; 0: it does neither.
    pub futex: u64,
}

/// Every thread of the process but the runtime's own. False: it cannot be told.
pub fn census(tasks: &mut List<Task>, spinning: impl Fn(u32) -> Option<Task>) -> bool {
    let mut buffer = [0u8; 2048];
    let mut complete = true;
    // SAFETY: a terminated path; our own buffer. O_DIRECTORY | O_CLOEXEC
    let folder = unsafe { syscall!(sys::OPENAT, -100isize, c"/proc/self/task".as_ptr(), 0o2200000, 0) };
    if folder < 0 {
        return false;
    }
    loop {
        const GETDENTS64: usize = 217;
        // SAFETY: as above.
        let length = unsafe { syscall!(GETDENTS64, folder, buffer.as_mut_ptr(), buffer.len()) };
        if length <= 0 {
            complete &= length == 0;
            break;
        }
        let mut rest = &buffer[..length as usize];
        // `linux_dirent64`: eight bytes each of inode and offset, two of length, one of type, then the name.
        while rest.len() > 19 {
            let record = (rest[16] as usize | (rest[17] as usize) << 8).clamp(20, rest.len());
            let id = decimal(&rest[19..record]) as u32;
            rest = &rest[record..];
            if id == 0 || is_helper(id) || detect::background::is_own(id) {
                continue;
            }
            if let Some(task) = task(id) {
                tasks.push(if task.futex == 0 { spinning(id).unwrap_or(task) } else { task });
            }
        }
    }
    // SAFETY: our own descriptor.
    unsafe { syscall!(sys::CLOSE, folder) };
    complete
}

fn decimal(text: &[u8]) -> u64 {
    text.iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0u64, |value, &byte| value.wrapping_mul(10).wrapping_add((byte - b'0') as u64))
}

/// `None`: it is gone.
fn task(id: u32) -> Option<Task> {
    let mut text = [0u8; 256];
    let length = read_of(id, b"/syscall", &mut text);
    if length < 0 {
        return None;
    }
    let text = &text[..length as usize];
    // The initial thread has ended, and is waited for.
    if text.starts_with(b"-1 0x0 ") {
        return None;
    }
    let argument = |index: usize| {
        let digits = text.split(|&byte| byte == b' ').nth(index + 1).unwrap_or_default();
        let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
        digits.iter().fold(0u64, |value, digit| value << 4 | u64::from((*digit as char).to_digit(16).unwrap_or(0)))
    };
    const PRIVATE: u64 = 128;
    let waits = decimal(text) == sys::FUTEX as u64
        && text.first().is_some_and(u8::is_ascii_digit)
        // FUTEX_WAIT, LOCK_PI, WAIT_BITSET, LOCK_PI2
        && matches!(argument(1) & 127, 0 | 6 | 9 | 13)
        && argument(3) == 0
        && (argument(1) & PRIVATE != 0 || !mappings::is_shared(argument(0)));
    let futex = if waits { argument(0) } else { 0 };
    let mut status = [0u8; 4096];
    let length = read_of(id, b"/status", &mut status).max(0) as usize;
    let mut switches = 0;
    for line in status[..length].split(|&byte| byte == b'\n') {
        for name in [&b"voluntary_ctxt_switches:\t"[..], b"nonvoluntary_ctxt_switches:\t"] {
            switches += line.strip_prefix(name).map_or(0, decimal);
        }
    }
    // Nothing is known of what never switched.
    Some(Task { id, switches, futex: if switches == 0 { 0 } else { futex } })
}

fn read_of(id: u32, name: &[u8], text: &mut [u8]) -> isize {
    let mut path = [0u8; 64];
    let digits = sys::Decimal::new(id as u64);
    let parts = [b"/proc/self/task/".as_slice(), digits.bytes(), name];
    for (to, from) in path.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    // SAFETY: a terminated path and the caller's buffer.
    unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if file < 0 {
            return -1;
        }
        let length = syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, file);
        length
    }
}

/// Whether a timer of the process will send a signal.
pub fn timer_armed() -> bool {
    const GETITIMER: usize = 36;
    for timer in 0..3usize {
        let mut value = [0i64; 4];
        // SAFETY: a local `struct itimerval`.
        if unsafe { syscall!(GETITIMER, timer, value.as_mut_ptr()) } < 0 || value[2..] != [0, 0] {
            return true;
        }
    }
    let mut text = [0u8; 16];
    // SAFETY: a terminated path and a local buffer. Kernels without it have no such timers.
    unsafe {
        let file = syscall!(sys::OPENAT, -100isize, c"/proc/self/timers".as_ptr(), 0o2000000, 0);
        if file < 0 {
            return false;
        }
        let length = syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, file);
        length != 0
    }
}

/// Reads memory that may be unmapped at this moment, by the kernel: a thread that waited may have gone on meanwhile, and done
/// away with what it waited for. False: it cannot be read.
///
/// # Safety
/// So many bytes of the caller's may be written.
pub unsafe fn read_foreign(address: u64, to: *mut u8, bytes: usize) -> bool {
    const PROCESS_VM_READV: usize = 310;
    let own = [to as u64, bytes as u64];
    let foreign = [address, bytes as u64];
    // No file of /proc: its descriptor would be the lowest free number, which the program may be about to be given.
    // SAFETY: two vectors of one range each; by the contract, and the kernel refuses what cannot be read.
    unsafe {
        let process = sys::process_id() as usize;
        sys::call(PROCESS_VM_READV, process, own.as_ptr() as usize, 1, foreign.as_ptr() as usize, 1, 0) == bytes as isize
    }
}
