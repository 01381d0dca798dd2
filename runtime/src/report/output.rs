//! Where reports go: standard error, unless `log_path` or the program say otherwise.

use super::options;
use crate::system::lock::RawLock;
use crate::system::sys::{self, Decimal, syscall};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};

const STDERR: i32 = 2;
const LONGEST_PATH: usize = 4096;

static LOCK: RawLock = RawLock::new();
/// The program's choice (`__sanitizer_set_report_fd`), -1: none.
static CHOSEN: AtomicI32 = AtomicI32::new(-1);
/// The log file, and the process that opened it.
static FILE: AtomicI32 = AtomicI32::new(-1);
static OPENED_BY: AtomicU32 = AtomicU32::new(0);
/// The program's choice of a path.
static mut PATH: [u8; LONGEST_PATH] = [0; LONGEST_PATH];
static mut PATH_LENGTH: usize = 0;

/// Where to write now.
pub fn descriptor() -> i32 {
    match CHOSEN.load(Acquire) {
        -1 => LOCK.with(log),
        chosen => chosen,
    }
}

fn log() -> i32 {
    // SAFETY: guarded by LOCK.
    let chosen = unsafe {
        let path = &raw const PATH;
        core::slice::from_raw_parts(path.cast::<u8>(), PATH_LENGTH)
    };
    let path = if chosen.is_empty() { options::get().log_path } else { chosen };
    match path {
        b"" | b"stderr" => STDERR,
        b"stdout" => 1,
        _ => {
            let process = sys::process_id();
            if FILE.load(Relaxed) < 0 || OPENED_BY.load(Relaxed) != process {
                OPENED_BY.store(process, Relaxed);
                FILE.store(open(path, process), Relaxed);
            }
            FILE.load(Relaxed)
        }
    }
}

/// `PATH.PID`, or `PATH.PROGRAM.PID`.
fn open(path: &[u8], process: u32) -> i32 {
    let mut name = [0_u8; LONGEST_PATH];
    let mut length = 0;
    let mut push = |part: &[u8]| {
        for &byte in part.iter().take(LONGEST_PATH - 1 - length) {
            name[length] = byte;
            length += 1;
        }
    };
    push(path);
    if options::get().log_exe_name {
        let mut program = [0_u8; LONGEST_PATH];
        // SAFETY: a terminated path and a local buffer.
        let count =
            unsafe { syscall!(89usize, c"/proc/thread-self/exe".as_ptr(), program.as_mut_ptr(), program.len()) }.max(0) as usize;
        push(b".");
        push(program[..count].rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    }
    push(b".");
    push(Decimal::new(u64::from(process)).bytes());
    push(options::get().log_suffix);
    // SAFETY: a terminated path. O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
    let file = unsafe { syscall!(sys::OPENAT, -100isize, name.as_ptr(), 0o2001101, 0o660) } as i32;
    if file < 0 {
        sys::message(&[b"cannot open the file for reports ", &name[..length], b": they go to standard error"]);
        return STDERR;
    }
    file
}

/// The program's user or root is about to change: a log file is opened while that can be done.
pub fn keep() {
    descriptor();
}

/// Writes all of it, as far as it can be written.
pub fn text(mut text: &[u8]) {
    let file = descriptor();
    while !text.is_empty() {
        // SAFETY: reads the text.
        let count = unsafe { syscall!(sys::WRITE, file, text.as_ptr(), text.len()) };
        match count {
            count if count > 0 => text = &text[count as usize..],
            count if count == -sys::EINTR => {}
            count if count == -sys::EAGAIN => wait_for_room(file),
            _ => return,
        }
    }
}

/// A descriptor that does not block was made so by the program; a report is written whole all the same.
fn wait_for_room(file: i32) {
    let mut poll = file as u32 as u64 | 4 << 32;
    // SAFETY: one `pollfd` (POLLOUT).
    unsafe { syscall!(sys::POLL, &raw mut poll, 1, 1000) };
}

pub fn texts(parts: &[&[u8]]) {
    parts.iter().for_each(|part| text(part));
}

/// Whether colours are shown where reports go: a terminal.
pub fn is_terminal() -> bool {
    let mut settings = [0_u8; 64];
    // SAFETY: TCGETS fills the buffer, which is longer than what it writes.
    unsafe { syscall!(16usize, descriptor(), 0x5401, settings.as_mut_ptr()) == 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_set_report_fd(descriptor: usize) {
    CHOSEN.store(descriptor as i32, Release);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_set_report_path(path: *const c_char) {
    if path.is_null() {
        return;
    }
    // SAFETY: a terminated text of the program's; the place is guarded by LOCK.
    LOCK.with(|| unsafe {
        let bytes = CStr::from_ptr(path).to_bytes();
        let length = bytes.len().min(LONGEST_PATH - 100);
        let place = &raw mut PATH;
        place.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length);
        PATH_LENGTH = length;
        CHOSEN.store(-1, Release);
        FILE.store(-1, Relaxed);
    });
}

/// In a forked child.
pub fn forked() {
    LOCK.reset();
}
