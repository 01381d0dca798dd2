//! Calls that wait in the kernel for something that cannot be asked for beforehand: children, signals, file locks, messages,
//! names.
//!
//! The thread gives up its turn meanwhile ([`sched::external`]) and takes it back when the call returns; one `Blocking` event
//! each, with the result. Under a schedule the others wait for it. Which order such calls return in is up to the kernel: the
//! recorded turns tell.

use super::descriptors::{EINTR, look, made, renamed};
use super::kernel::{self, Object};
use crate::record::external;
use crate::record::recorder;
use crate::serial::sched;
use crate::system::config;
use crate::system::processor::everywhere;
use crate::system::real::{errno, real};
use crate::system::signals::SignalInfo;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::{c_char, c_int};
use rashomon_abi::record::{Op, sync_source};

/// The frame of such a call: `object` is what it waits for, as far as a number tells.
fn external(source: u16, object: u64, real: impl FnOnce() -> isize) -> isize {
    external_unless(source, object, real, |_| false, |_| None)
}

/// A call that waits for processes, with a result of at least `least` if one ended: there is one to wait for because some thread
/// started it.
fn external_processes(object: u64, least: isize, real: impl FnOnce() -> isize) -> c_int {
    let ended = |result| (result >= least).then_some(Object::Processes);
    external_unless(sync_source::PROCESS, object, real, |_| false, ended) as c_int
}

/// The same of a call of whose result can be told whether it comes from outside, and what the thread was let go on by.
pub fn external_unless(
    source: u16,
    object: u64,
    real: impl FnOnce() -> isize,
    from_outside: impl FnOnce(isize) -> bool,
    acquired: impl FnOnce(isize) -> Option<Object>,
) -> isize {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Blocking, object, site);
    let result = sched::external(&runtime, real);
    let outcome = if result < 0 { -errno() as u64 } else { result as u64 };
    runtime.thread().spins.set(0);
    if config::serial() && from_outside(result) {
        external::came_in(runtime.thread(), object, source, site, None);
    }
    if !acquired(result).is_some_and(|at| kernel::acquire(&runtime, at, site)) {
        recorder::sync(runtime.thread(), Op::Blocking, object, source, site, &[outcome]);
    }
    result
}

pub unsafe extern "C" fn wait_any(status: *mut c_int) -> c_int {
    // SAFETY: the program's room for a status, or null.
    external_processes(0, 1, || unsafe { real!(fn wait(*mut c_int) -> c_int)(status) as isize })
}

pub unsafe extern "C" fn wait_process(process: c_int, status: *mut c_int, options: c_int) -> c_int {
    // SAFETY: as in `wait_any`.
    external_processes(process as u32 as u64, 1, || unsafe {
        real!(fn waitpid(c_int, *mut c_int, c_int) -> c_int)(process, status, options) as isize
    })
}

pub unsafe extern "C" fn wait_identity(kind: c_int, process: u32, information: *mut u8, options: c_int) -> c_int {
    // SAFETY: the program's room for `siginfo_t`, or null.
    external_processes(process as u64, 0, || unsafe {
        real!(fn waitid(c_int, u32, *mut u8, c_int) -> c_int)(kind, process, information, options) as isize
    })
}

pub unsafe extern "C" fn wait_usage(status: *mut c_int, options: c_int, usage: *mut u8) -> c_int {
    // SAFETY: as in `wait_any`, and room for what was used, or null.
    external_processes(0, 1, || unsafe { real!(fn wait3(*mut c_int, c_int, *mut u8) -> c_int)(status, options, usage) as isize })
}

pub unsafe extern "C" fn wait_process_usage(process: c_int, status: *mut c_int, options: c_int, usage: *mut u8) -> c_int {
    // SAFETY: as in `wait_usage`.
    external_processes(process as u32 as u64, 1, || unsafe {
        real!(fn wait4(c_int, *mut c_int, c_int, *mut u8) -> c_int)(process, status, options, usage) as isize
    })
}

unsafe extern "C" fn shell(command: *const c_char) -> c_int {
    // SAFETY: the program's command, or null.
    external_processes(0, 0, || unsafe { everywhere(|| real!(fn system(*const c_char) -> c_int)(command)) as isize })
}

unsafe extern "C" fn close_process(stream: *mut u8) -> c_int {
    if !stream.is_null() {
        // SAFETY: not null: a stream of the program's.
        renamed(unsafe { real!(fn fileno(*mut u8) -> c_int)(stream) });
    }
    // SAFETY: the program closes this stream, once.
    external_processes(0, 0, || unsafe { real!(fn pclose(*mut u8) -> c_int)(stream) as isize })
}

/// Waits for one of a set of signals. One that nobody in this process sent is external input.
unsafe fn taken(mask: *const u64, information: *mut SignalInfo, time: *const [i64; 2], again: bool) -> c_int {
    let mut local = SignalInfo([0; 128]);
    let information = if information.is_null() { &raw mut local } else { information };
    let real =
        // SAFETY: the program's set and time; its room for the information, or ours.
        || unsafe { real!(fn sigtimedwait(*const u64, *mut SignalInfo, *const [i64; 2]) -> c_int)(mask, information, time) };
    loop {
        // SAFETY: the call that took the signal has filled it.
        let sent_elsewhere = |signal| signal > 0 && unsafe { !(*information).is_own() };
        let came = |signal: isize| (signal > 0).then_some(Object::Signal(signal as c_int));
        let result = external_unless(sync_source::SIGNAL, 0, || real() as isize, sent_elsewhere, came) as c_int;
        if result >= 0 || !again || errno() != EINTR {
            return result;
        }
    }
}

/// Goes on after a handler, and tells of errors by its result.
pub unsafe extern "C" fn take_signal(mask: *const u64, signal: *mut c_int) -> c_int {
    // SAFETY: the program's set; neither room nor time.
    match unsafe { taken(mask, core::ptr::null_mut(), core::ptr::null(), true) } {
        result if result < 0 => errno(),
        result => {
            // SAFETY: the program's room for a number.
            unsafe { *signal = result };
            0
        }
    }
}

pub unsafe extern "C" fn take_signal_information(mask: *const u64, information: *mut SignalInfo) -> c_int {
    // SAFETY: the program's set, and room or null.
    unsafe { taken(mask, information, core::ptr::null(), false) }
}

pub unsafe extern "C" fn take_signal_timed(mask: *const u64, information: *mut SignalInfo, time: *const [i64; 2]) -> c_int {
    // SAFETY: the program's set and time, and room or null.
    unsafe { taken(mask, information, time, false) }
}

unsafe extern "C" fn wait_for_handler() -> c_int {
    // SAFETY: no arguments.
    external(sync_source::SIGNAL, 0, || unsafe { real!(fn pause() -> c_int)() as isize }) as c_int
}

unsafe extern "C" fn wait_for_handler_masked(mask: *const u64) -> c_int {
    // SAFETY: the program's set.
    external(sync_source::SIGNAL, 0, || unsafe { real!(fn sigsuspend(*const u64) -> c_int)(mask) as isize }) as c_int
}

/// The lock belongs to the open file: threads that opened it by themselves exclude each other, and who gives it up lets others go
/// on. A shared lock may take the place of an exclusive one.
unsafe extern "C" fn lock_file(file: c_int, operation: c_int) -> c_int {
    // LOCK_SH, LOCK_EX, LOCK_UN
    // SAFETY: numbers only.
    lock_open_file(file, operation & 9 != 0, operation & 3 != 0, || unsafe {
        real!(fn flock(c_int, c_int) -> c_int)(file, operation)
    })
}

fn lock_open_file(file: c_int, gives: bool, takes: bool, real: impl FnOnce() -> c_int) -> c_int {
    let site = caller();
    let lock = Object::FileLock(look(file).object());
    kernel::uses(lock);
    if gives {
        kernel::releases(lock, site);
    }
    external_unless(sync_source::OTHER, 0, || real() as isize, |_| false, |result| (takes && result >= 0).then_some(lock))
        as c_int
}

/// The lock belongs to the process, whose threads it does not keep apart: it orders none of them.
unsafe extern "C" fn lock_section(file: c_int, command: c_int, length: i64) -> c_int {
    // SAFETY: numbers only.
    external(sync_source::OTHER, 0, || unsafe { real!(fn lockf(c_int, c_int, i64) -> c_int)(file, command, length) as isize })
        as c_int
}

/// Variadic in C: its one further argument comes in the third register, whatever it is.
unsafe extern "C" fn control(file: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: what the command makes of the argument is the program's affair.
    let real = || unsafe { real!(fn fcntl64(c_int, c_int, usize) -> c_int)(file, command, argument) as isize };
    let site = caller();
    match command {
        // F_SETLKW: of the process, as lockf's.
        7 => external(sync_source::OTHER, 0, real) as c_int,
        // F_OFD_SETLK, F_OFD_SETLKW, with F_RDLCK, F_WRLCK or F_UNLCK
        37 | 38 if argument != 0 => {
            // SAFETY: of these commands it is a `struct flock`, which begins with the kind.
            let kind = unsafe { *(argument as *const u16) };
            lock_open_file(file, kind != 1, kind != 2, || real() as c_int)
        }
        // F_DUPFD, F_DUPFD_CLOEXEC
        0 | 1030 => made(real() as c_int, site),
        _ => real() as c_int,
    }
}

pub unsafe extern "C" fn resolve(node: *const c_char, service: *const c_char, hints: *const u8, result: *mut *mut u8) -> c_int {
    // SAFETY: the program's texts and hints, or null, and its place for the result.
    external(sync_source::OTHER, 0, || unsafe {
        real!(fn getaddrinfo(*const c_char, *const c_char, *const u8, *mut *mut u8) -> c_int)(node, service, hints, result)
            as isize
    }) as c_int
}

/// Opening one end of a named pipe waits for the other; everything else is the plain call.
///
/// # Safety
/// `path` is a string.
unsafe fn opened(directory: c_int, path: *const c_char, flags: c_int, real: impl FnOnce() -> c_int) -> c_int {
    // O_NONBLOCK, O_RDWR
    if !config::serial() || flags & 0o4002 != 0 || crate::system::tls::current().is_none() {
        return real();
    }
    let mut status = [0u64; 18];
    // SAFETY: by the contract; newfstatat into a local `struct stat`.
    let failed = unsafe { crate::system::sys::syscall!(262usize, directory as isize, path, status.as_mut_ptr(), 0usize) } < 0;
    if failed || status[3] as u32 & 0o170_000 != 0o010_000 {
        return real();
    }
    external(sync_source::FILE, 0, || real() as isize) as c_int
}

const WORKING_DIRECTORY: c_int = -100;

pub unsafe extern "C" fn open_file(path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let site = caller();
    // SAFETY: the program's path.
    let real = || unsafe { real!(fn open64(*const c_char, c_int, u32) -> c_int)(path, flags, mode) };
    // SAFETY: the program's own argument.
    made(unsafe { opened(WORKING_DIRECTORY, path, flags, real) }, site)
}

pub unsafe extern "C" fn open_file_at(directory: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    let site = caller();
    // SAFETY: the program's path.
    let real = || unsafe { real!(fn openat64(c_int, *const c_char, c_int, u32) -> c_int)(directory, path, flags, mode) };
    // SAFETY: as above.
    made(unsafe { opened(directory, path, flags, real) }, site)
}

interpose! {
    system => shell;
    pclose => close_process;
    pause => wait_for_handler;
    sigsuspend => wait_for_handler_masked;
    flock => lock_file;
    lockf => lock_section;
    lockf64 => lock_section;
    fcntl => control;
    fcntl64 => control;
}
