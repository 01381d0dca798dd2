//! Reading, writing and closing; pipes and event counters.

use super::descriptors::{
    Call, Descriptor, Kind, Part, closed, closes, look, made, parts, renamed, transfer, used, uses, write_all,
};
use super::kernel::{self, Object};
use super::timers::were_read;
use crate::detect;
use crate::detect::descriptors::Use;
use crate::intercept::hooks::access_by_call;
use crate::record::external;
use crate::record::recorder;
use crate::serial::sched;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{AccessClass, Op, sync_source};

/// The program's memory was read or written by a call.
pub fn touched(address: *const u8, bytes: isize, site: u64, class: AccessClass) {
    if bytes > 0 {
        // SAFETY: only the numbers are used.
        unsafe { access_by_call(address as u64, bytes as u64, site, class as u64) }
    }
}

/// The same for the first `bytes` of a vector of buffers.
pub fn touched_parts(parts: &[Part], bytes: isize, site: u64, class: AccessClass) {
    let mut left = bytes.max(0) as usize;
    for part in parts {
        let here = part.bytes.min(left);
        touched(part.base, here as isize, site, class);
        left -= here;
    }
}

unsafe extern "C" fn read_bytes(file: c_int, buffer: *mut u8, bytes: usize) -> isize {
    let site = caller();
    // SAFETY: the program's room, which the kernel fills.
    let result =
        transfer(Call::input(file, site), || unsafe { real!(fn read(c_int, *mut u8, usize) -> isize)(file, buffer, bytes) });
    touched(buffer, result, site, AccessClass::Write);
    // SAFETY: that many bytes were read into it.
    unsafe { were_read(file, buffer, result, site) };
    result
}

unsafe extern "C" fn read_checked(file: c_int, buffer: *mut u8, bytes: usize, size: usize) -> isize {
    if bytes > size {
        // SAFETY: ends the program: the room is too small.
        return unsafe { real!(fn __read_chk(c_int, *mut u8, usize, usize) -> isize)(file, buffer, bytes, size) };
    }
    // SAFETY: the room is as large as the program says.
    unsafe { read_bytes(file, buffer, bytes) }
}

unsafe extern "C" fn read_parts(file: c_int, vector: *const Part, count: c_int) -> isize {
    let site = caller();
    // SAFETY: the program's parts, which the kernel fills.
    let result =
        transfer(Call::input(file, site), || unsafe { real!(fn readv(c_int, *const Part, c_int) -> isize)(file, vector, count) });
    // SAFETY: the program says that so many parts lie there.
    touched_parts(unsafe { parts(vector, count) }, result, site, AccessClass::Write);
    result
}

fn write_real(file: c_int, buffer: *const u8, bytes: usize) -> isize {
    // SAFETY: by the callers, bytes of the program's.
    unsafe { real!(fn write(c_int, *const u8, usize) -> isize)(file, buffer, bytes) }
}

unsafe extern "C" fn write_bytes(file: c_int, buffer: *mut u8, bytes: usize) -> isize {
    let site = caller();
    touched(buffer, bytes as isize, site, AccessClass::Read);
    write_all(
        Call::output(file, site),
        &[Part { base: buffer, bytes }],
        || write_real(file, buffer, bytes),
        |start, bytes| write_real(file, start, bytes),
    )
}

unsafe extern "C" fn write_at(file: c_int, buffer: *const u8, bytes: usize, offset: i64) -> isize {
    touched(buffer, bytes as isize, caller(), AccessClass::Read);
    // SAFETY: bytes of the program's.
    unsafe { real!(fn pwrite(c_int, *const u8, usize, i64) -> isize)(file, buffer, bytes, offset) }
}

unsafe extern "C" fn write_parts(file: c_int, vector: *const Part, count: c_int) -> isize {
    let site = caller();
    // SAFETY: the program says that so many parts lie there.
    let buffers = unsafe { parts(vector, count) };
    touched_parts(buffers, isize::MAX, site, AccessClass::Read);
    // SAFETY: the real function with the program's arguments.
    let whole = || unsafe { real!(fn writev(c_int, *const Part, c_int) -> isize)(file, vector, count) };
    write_all(Call::output(file, site), buffers, whole, |start, bytes| write_real(file, start, bytes))
}

unsafe extern "C" fn eventfd_get(file: c_int, value: *mut u64) -> c_int {
    let site = caller();
    // SAFETY: the program's room for a number.
    let result = transfer(Call::input(file, site), || unsafe { real!(fn read(c_int, *mut u64, usize) -> isize)(file, value, 8) });
    touched(value.cast(), result, site, AccessClass::Write);
    if result == 8 { 0 } else { -1 }
}

unsafe extern "C" fn eventfd_add(file: c_int, value: u64) -> c_int {
    let result = transfer(Call::output(file, caller()), || write_real(file, (&raw const value).cast(), 8));
    if result == 8 { 0 } else { -1 }
}

/// A call after which the other ends of a file see that nothing more will come: an event for pipes and sockets.
pub fn ends(descriptor: Descriptor, site: u64, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    if matches!(descriptor.kind, Kind::Pipe | Kind::Socket) || descriptor.is_standard() {
        sched::point(&runtime, Op::Release, descriptor.object(), site);
        recorder::sync(runtime.thread(), Op::Release, descriptor.object(), sync_source::FILE, site, &[]);
    }
    let lock = Object::FileLock(descriptor.object());
    if descriptor.kind == Kind::Direct && kernel::is_used(lock) {
        // Which it may have locked.
        kernel::release(&runtime, lock, site);
    }
    let result = runtime.outside(real);
    sched::files_moved();
    result
}

unsafe extern "C" fn close_file(file: c_int) -> c_int {
    let site = caller();
    // SAFETY: a number only.
    let real = || unsafe { real!(fn close(c_int) -> c_int)(file) };
    if crate::system::tls::current().is_none() {
        return real();
    }
    let close = closes(file, site);
    let result = ends(look(file), site, real);
    closed(file, close, result);
    result
}

/// A descriptor is about to be another's twin. Duplicating it to itself only asks whether it is one.
fn duplicates(file: c_int, to: Option<c_int>, site: u64) -> Option<Use> {
    uses(file, site);
    let to_other = to.filter(|&to| to != file);
    if let Some(to) = to_other {
        uses(to, site);
    }
    if detect::on()
        && let Some(runtime) = Runtime::try_enter()
    {
        let one = runtime.with_own(|own| detect::descriptors::used(own, file, site));
        if let Some(to) = to_other {
            runtime.with_own(|own| detect::descriptors::replaces(own, to, site));
        }
        return one.filter(|_| to != Some(file));
    }
    None
}

/// It is, unless the call failed.
fn duplicated(one: Option<Use>, result: c_int) -> c_int {
    sched::files_moved();
    if let Some(_) = one
        && let Some(runtime) = Runtime::try_enter()
    {
        used(&runtime, one, result as isize);
    }
    result
}

/// It is, under a number that was asked for.
fn replaced(file: c_int, one: Option<Use>, result: c_int, site: u64) -> c_int {
    duplicated(one, result);
    renamed(result);
    if detect::on()
        && result >= 0
        && result != file
        && let Some(runtime) = Runtime::try_enter()
    {
        runtime.with_own(|own| detect::descriptors::replaced(own, result, site));
    }
    result
}

unsafe extern "C" fn duplicate(file: c_int) -> c_int {
    let site = caller();
    let one = duplicates(file, None, site);
    // SAFETY: a number only.
    made(duplicated(one, unsafe { real!(fn dup(c_int) -> c_int)(file) }), site)
}

unsafe extern "C" fn duplicate_to(file: c_int, to: c_int) -> c_int {
    let site = caller();
    let one = duplicates(file, Some(to), site);
    // SAFETY: numbers only.
    replaced(file, one, unsafe { real!(fn dup2(c_int, c_int) -> c_int)(file, to) }, site)
}

unsafe extern "C" fn duplicate_to_with(file: c_int, to: c_int, flags: c_int) -> c_int {
    let site = caller();
    let one = duplicates(file, Some(to), site);
    // SAFETY: numbers only, too.
    replaced(file, one, unsafe { real!(fn dup3(c_int, c_int, c_int) -> c_int)(file, to, flags) }, site)
}

unsafe extern "C" fn event_counter_made(value: u32, flags: c_int) -> c_int {
    let site = caller();
    // SAFETY: numbers only.
    made(unsafe { real!(fn eventfd(u32, c_int) -> c_int)(value, flags) }, site)
}

unsafe extern "C" fn created(path: *const u8, mode: u32) -> c_int {
    let site = caller();
    // SAFETY: the program's path.
    made(unsafe { real!(fn creat64(*const u8, u32) -> c_int)(path, mode) }, site)
}

/// Two descriptors came from this process: what is read from them is not from outside.
pub fn made_pair(result: c_int, ends: *const c_int, site: u64) -> c_int {
    if result != 0 {
        return result;
    }
    touched(ends.cast(), 8, site, AccessClass::Write);
    // SAFETY: filled by the call that succeeded.
    for end in unsafe { [*ends, *ends.add(1)] } {
        made(end, site);
    }
    if let Some(_runtime) = Runtime::try_enter() {
        // SAFETY: filled by the call that succeeded.
        for end in unsafe { [*ends, *ends.add(1)] } {
            external::made_here(look(end).identity);
        }
    }
    result
}

unsafe extern "C" fn pipe_made(ends: *mut c_int) -> c_int {
    let site = caller();
    // SAFETY: the program's room for two descriptors.
    made_pair(unsafe { real!(fn pipe(*mut c_int) -> c_int)(ends) }, ends, site)
}

unsafe extern "C" fn pipe_made_with(ends: *mut c_int, flags: c_int) -> c_int {
    let site = caller();
    // SAFETY: as in `pipe_made`.
    made_pair(unsafe { real!(fn pipe2(*mut c_int, c_int) -> c_int)(ends, flags) }, ends, site)
}

interpose! {
    read => read_bytes;
    __read_chk => read_checked;
    readv => read_parts;
    write => write_bytes;
    pwrite => write_at;
    pwrite64 => write_at;
    writev => write_parts;
    eventfd => event_counter_made;
    eventfd_read => eventfd_get;
    eventfd_write => eventfd_add;
    close => close_file;
    creat => created;
    creat64 => created;
    dup => duplicate;
    dup2 => duplicate_to;
    dup3 => duplicate_to_with;
    pipe => pipe_made;
    pipe2 => pipe_made_with;
}
