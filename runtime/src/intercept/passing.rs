//! Calls that pass data on from file to file without showing it to the program: they acquire the one and release the other.

use super::descriptors::{
    Call, Descriptor, Interruption, POLLIN, POLLOUT, Part, Ready, look, parts, poll_now, transfer, used, uses, wait_for_files,
};
use super::files::touched_parts;
use crate::detect;
use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::sched::{self, PollFile};
use crate::system::config;
use crate::system::real::{real, set_errno};
use crate::system::sys::{self, syscall};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{AccessClass, Op, sync_source};

/// Waits until there is something to take in. What comes between this and the call that takes it was released before it came.
fn awaits_input(runtime: &Runtime, from: Descriptor, at_once: bool, site: u64) -> Ready {
    let mut files = [PollFile { file: from.file, events: POLLIN, returned: 0 }];
    if at_once || from.is_nonblocking() || poll_now(&mut files) != 0 {
        return Ready::Yes;
    }
    if config::serial() {
        return wait_for_files(runtime, &mut files, NEVER, Interruption::ByFlag, site, |files| poll_now(files) != 0);
    }
    // SAFETY: a local array of the kernel's own layout.
    sched::external(runtime, || unsafe { syscall!(sys::POLL, files.as_mut_ptr(), 1usize, -1isize) });
    Ready::Yes
}

fn passes(from: c_int, to: c_int, at_once: bool, real: impl FnOnce() -> isize) -> isize {
    let site = caller();
    uses(from, site);
    uses(to, site);
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let ends = if detect::on() { [from, to] } else { [-1; 2] };
    let ends = ends.map(|file| runtime.with_own(|own| detect::descriptors::used(own, file, site)));
    let (from, to) = (look(from), look(to));
    let thread = runtime.thread();
    if !from.is_silent() {
        sched::point(&runtime, Op::Acquire, from.object(), site);
        let ready = awaits_input(&runtime, from, at_once, site);
        recorder::sync(thread, Op::Acquire, from.object(), sync_source::FILE, site, &[]);
        if ready == Ready::Interrupted {
            set_errno(super::descriptors::EINTR);
            return -1;
        }
    }
    if !to.is_silent() {
        sched::point(&runtime, Op::Release, to.object(), site);
        recorder::sync(thread, Op::Release, to.object(), sync_source::FILE, site, &[]);
    }
    let mut files = [PollFile { file: to.file, events: POLLOUT, returned: 0 }];
    let result =
        if config::serial() && poll_now(&mut files) != 0 { runtime.outside(real) } else { sched::external(&runtime, real) };
    thread.spins.set(0);
    sched::files_moved();
    ends.into_iter().for_each(|one| used(&runtime, one, result));
    result
}

const NONBLOCKING: u32 = 2;

unsafe extern "C" fn spliced(from: c_int, skip: *mut i64, to: c_int, seek: *mut i64, bytes: usize, flags: u32) -> isize {
    // SAFETY: the function itself with the program's arguments.
    passes(from, to, flags & NONBLOCKING != 0, || unsafe {
        real!(fn splice(c_int, *mut i64, c_int, *mut i64, usize, u32) -> isize)(from, skip, to, seek, bytes, flags)
    })
}

unsafe extern "C" fn copied(from: c_int, to: c_int, bytes: usize, flags: u32) -> isize {
    // SAFETY: the same for `tee`.
    passes(from, to, flags & NONBLOCKING != 0, || unsafe {
        real!(fn tee(c_int, c_int, usize, u32) -> isize)(from, to, bytes, flags)
    })
}

unsafe extern "C" fn sent(to: c_int, from: c_int, offset: *mut i64, bytes: usize) -> isize {
    // SAFETY: the same for `sendfile`.
    passes(from, to, false, || unsafe { real!(fn sendfile64(c_int, c_int, *mut i64, usize) -> isize)(to, from, offset, bytes) })
}

/// Memory goes into a pipe, or comes out of it: the end that is given tells.
unsafe extern "C" fn mapped(file: c_int, vector: *const Part, count: usize, flags: u32) -> isize {
    let site = caller();
    let at_once = flags & NONBLOCKING != 0;
    // SAFETY: the same for `vmsplice`.
    let real = || unsafe { real!(fn vmsplice(c_int, *const Part, usize, u32) -> isize)(file, vector, count, flags) };
    // SAFETY: the program says that so many parts lie there.
    let buffers = unsafe { parts(vector, count as c_int) };
    if look(file).refuses(POLLIN) {
        touched_parts(buffers, isize::MAX, site, AccessClass::Read);
        return transfer(Call::output(file, site).at_once(at_once), real);
    }
    let result = transfer(Call::input(file, site).at_once(at_once), real);
    touched_parts(buffers, result, site, AccessClass::Write);
    result
}

interpose! {
    splice => spliced;
    tee => copied;
    vmsplice => mapped;
    sendfile => sent;
    sendfile64 => sent;
}
