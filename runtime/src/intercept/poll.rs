//! Waiting for several files: `poll`, `select`, `epoll_wait` and their kin.
//!
//! In serial mode the thread asks the kernel without waiting and blocks in the model in between; time-outs are virtual. A wait
//! that finds something is an `Acquire` of the first file that is ready (of the epoll set, whose changes are releases), one that
//! finds nothing a `Blocking`; one without time that finds nothing is a poll.

use super::descriptors::{EINTR, Interruption, POLLIN, POLLOUT, POLLPRI, Ready, look, made, poll_now, wait_for_files};
use super::files::touched;
use super::lock_common::nanoseconds;
use crate::record::recorder;
use crate::serial::clock::{self, NEVER};
use crate::serial::sched::{self, PollFile};
use crate::serial::world;
use crate::system::config;
use crate::system::memory::List;
use crate::system::real::{real, set_errno};
use crate::system::sys::{self, syscall};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{AccessClass, Op, sync_source};

/// `until` of a call that does not wait at all.
const AT_ONCE: u64 = 0;

fn until_milliseconds(timeout: c_int) -> u64 {
    match timeout {
        0 => AT_ONCE,
        timeout if timeout < 0 => NEVER,
        timeout => clock::elapsed() + timeout as u64 * 1_000_000,
    }
}

/// # Safety
/// `time` is null or points to a timespec.
unsafe fn until_time(time: *const [i64; 2]) -> u64 {
    if time.is_null() {
        return NEVER;
    }
    // SAFETY: by the contract.
    match unsafe { nanoseconds(time) } {
        0 => AT_ONCE,
        nanoseconds => clock::elapsed().saturating_add(nanoseconds),
    }
}

/// The frame of every such call. `ask` makes the call without waiting, `first_ready` names a file of a call that found something.
fn wait(
    runtime: &Runtime,
    files: &mut [PollFile],
    until: u64,
    site: u64,
    mut ask: impl FnMut() -> c_int,
    first_ready: impl Fn(&[PollFile]) -> c_int,
    blocking: impl FnOnce() -> c_int,
) -> c_int {
    let thread = runtime.thread();
    sched::point(runtime, Op::Acquire, 0, site);
    let mut result = 0;
    if config::serial() {
        files.iter().for_each(|file| world::polls(file.file));
    }
    if !config::serial() {
        result = sched::external(runtime, blocking);
    } else if until == AT_ONCE {
        result = runtime.outside(ask);
    } else {
        let ready = |_: &mut [PollFile]| {
            result = runtime.outside(&mut ask);
            result != 0
        };
        if wait_for_files(runtime, files, until, Interruption::Always, site, ready) == Ready::Interrupted {
            set_errno(EINTR);
            result = -1;
        }
    }
    if result > 0 {
        let file = first_ready(files);
        recorder::sync(thread, Op::Acquire, look(file).object(), sync_source::FILE, site, &[]);
        thread.spins.set(0);
    } else {
        recorder::sync(thread, Op::Blocking, 0, sync_source::FILE, site, &[result as u64]);
        if until == AT_ONCE {
            sched::failed_try(runtime);
        } else {
            thread.spins.set(0);
        }
    }
    result
}

/// Handlers never let such a call go on, whatever they were installed with; so the mask of `ppoll` and its kin only has to hold
/// while it waits.
///
/// # Safety
/// `mask` is null or points to a signal mask.
unsafe fn with_mask<R>(mask: *const u64, body: impl FnOnce() -> R) -> R {
    if mask.is_null() || !config::serial() {
        return body();
    }
    let mut before = 0u64;
    // SAFETY: masks of eight bytes.
    unsafe {
        syscall!(sys::RT_SIGPROCMASK, 2, mask, &raw mut before, 8);
        let result = body();
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const before, 0usize, 8);
        result
    }
}

fn first_returned(files: &[PollFile]) -> c_int {
    files.iter().find(|file| file.returned != 0).map_or(-1, |file| file.file)
}

unsafe fn poll_until(files: *mut PollFile, count: usize, until: u64, site: u64, blocking: impl FnOnce() -> c_int) -> c_int {
    touched(files.cast(), (count * 8) as isize, site, AccessClass::Read);
    let Some(runtime) = Runtime::try_enter() else { return blocking() };
    // SAFETY: by the callers, the program's array of so many files.
    let slice = if count == 0 { &mut [][..] } else { unsafe { core::slice::from_raw_parts_mut(files, count) } };
    // SAFETY: the same; only one of the two is used at a time.
    let again = if count == 0 { &mut [][..] } else { unsafe { core::slice::from_raw_parts_mut(files, count) } };
    let ask = || match poll_now(again) {
        error if error < 0 => {
            set_errno(-error as c_int);
            -1
        }
        ready => ready as c_int,
    };
    let result = wait(&runtime, slice, until, site, ask, first_returned, blocking);
    drop(runtime);
    touched(files.cast(), (count * 8) as isize, site, AccessClass::Write);
    result
}

unsafe extern "C" fn poll_files(files: *mut PollFile, count: usize, timeout: c_int) -> c_int {
    let site = caller();
    // SAFETY: the program's array, here and behind.
    unsafe {
        poll_until(files, count, until_milliseconds(timeout), site, || {
            real!(fn poll(*mut PollFile, usize, c_int) -> c_int)(files, count, timeout)
        })
    }
}

unsafe extern "C" fn poll_files_checked(files: *mut PollFile, count: usize, timeout: c_int, size: usize) -> c_int {
    if size / 8 < count {
        // SAFETY: ends the program: the array is too small.
        return unsafe { real!(fn __poll_chk(*mut PollFile, usize, c_int, usize) -> c_int)(files, count, timeout, size) };
    }
    // SAFETY: the array is as large as the program says.
    unsafe { poll_files(files, count, timeout) }
}

unsafe extern "C" fn poll_files_masked(files: *mut PollFile, count: usize, time: *const [i64; 2], mask: *const u64) -> c_int {
    let site = caller();
    let blocking =
        // SAFETY: the program's array, time and mask; null where it has none.
        || unsafe { real!(fn ppoll(*mut PollFile, usize, *const [i64; 2], *const u64) -> c_int)(files, count, time, mask) };
    // SAFETY: the same arguments.
    unsafe {
        let until = until_time(time);
        with_mask(mask, || poll_until(files, count, until, site, blocking))
    }
}

unsafe extern "C" fn poll_files_masked_checked(
    files: *mut PollFile,
    count: usize,
    time: *const [i64; 2],
    mask: *const u64,
    size: usize,
) -> c_int {
    if size / 8 < count {
        // SAFETY: ends the program: the array is too small.
        return unsafe {
            real!(fn __ppoll_chk(*mut PollFile, usize, *const [i64; 2], *const u64, usize) -> c_int)(
                files, count, time, mask, size,
            )
        };
    }
    // SAFETY: the array is as large as the program says.
    unsafe { poll_files_masked(files, count, time, mask) }
}

/// The sets of a `select` call: as the program gave them, and where they are.
struct Sets {
    count: usize,
    places: [*mut u64; 3],
    asked: List<u64>,
}

impl Sets {
    const EVENTS: [i16; 3] = [POLLIN, POLLOUT, POLLPRI];

    unsafe fn new(count: c_int, places: [*mut u64; 3]) -> Self {
        let count = count.max(0) as usize;
        let mut asked = List::new();
        for place in places {
            for word in 0..count.div_ceil(64) {
                // SAFETY: by the contract, each set has that many words.
                asked.push(if place.is_null() { 0 } else { unsafe { *place.add(word) } });
            }
        }
        Self { count, places, asked }
    }

    fn files(&self) -> List<PollFile> {
        let words = self.count.div_ceil(64);
        let mut files = List::new();
        for file in 0..self.count {
            let wanted = (0..3).filter(|set| self.asked.as_slice()[set * words + file / 64] >> (file % 64) & 1 != 0);
            let events = wanted.fold(0, |events, set| events | Self::EVENTS[set]);
            if events != 0 {
                files.push(PollFile { file: file as c_int, events, returned: 0 });
            }
        }
        files
    }

    /// Asks the kernel, which changes the program's sets: afresh each time. What does not wait has no need of a mask.
    fn ask(&self) -> c_int {
        let words = self.count.div_ceil(64);
        for (set, place) in self.places.iter().enumerate().filter(|(_, place)| !place.is_null()) {
            for word in 0..words {
                // SAFETY: not null, and as long as it was when it was read.
                unsafe { *place.add(word) = self.asked.as_slice()[set * words + word] };
            }
        }
        let [read, write, except] = self.places;
        let mut zero = [0i64; 2];
        // SAFETY: the program's sets, and a time of our own.
        unsafe {
            real!(fn select(c_int, *mut u64, *mut u64, *mut u64, *mut [i64; 2]) -> c_int)(
                self.count as c_int,
                read,
                write,
                except,
                &mut zero,
            )
        }
    }

    fn clear(&self) {
        for place in self.places.iter().filter(|place| !place.is_null()) {
            for word in 0..self.count.div_ceil(64) {
                // SAFETY: not null, and as long as it was when it was read.
                unsafe { *place.add(word) = 0 };
            }
        }
    }

    fn first_ready(&self) -> c_int {
        let ready = |file: usize| {
            // SAFETY: the same, below the highest file.
            self.places.iter().any(|place| !place.is_null() && unsafe { *place.add(file / 64) } >> (file % 64) & 1 != 0)
        };
        (0..self.count).find(|&file| ready(file)).map_or(-1, |file| file as c_int)
    }
}

unsafe fn select_until(count: c_int, places: [*mut u64; 3], until: u64, site: u64, blocking: impl FnOnce() -> c_int) -> c_int {
    let bytes = (count.max(0) as usize).div_ceil(64) * 8;
    for place in places.iter().filter(|place| !place.is_null()) {
        touched(place.cast(), bytes as isize, site, AccessClass::Read);
    }
    let Some(runtime) = Runtime::try_enter() else { return blocking() };
    // SAFETY: by the callers, the program's sets for so many files.
    let mut sets = unsafe { Sets::new(count, places) };
    let mut files = sets.files();
    let result = wait(&runtime, files.as_mut_slice(), until, site, || sets.ask(), |_| sets.first_ready(), blocking);
    if result == 0 {
        sets.clear();
    }
    files.clear_and_free();
    sets.asked.clear_and_free();
    drop(runtime);
    if result >= 0 {
        for place in places.iter().filter(|place| !place.is_null()) {
            touched(place.cast(), bytes as isize, site, AccessClass::Write);
        }
    }
    result
}

unsafe extern "C" fn select_files(count: c_int, read: *mut u64, write: *mut u64, except: *mut u64, time: *mut [i64; 2]) -> c_int {
    let site = caller();
    // SAFETY: the program's sets and time; null where it has none.
    let blocking = || unsafe {
        real!(fn select(c_int, *mut u64, *mut u64, *mut u64, *mut [i64; 2]) -> c_int)(count, read, write, except, time)
    };
    // SAFETY: the same arguments.
    unsafe {
        if time.is_null() {
            return select_until(count, [read, write, except], NEVER, site, blocking);
        }
        let [seconds, microseconds] = *time;
        let limit = [seconds, microseconds.saturating_mul(1_000)];
        let until = until_time(&limit);
        let result = select_until(count, [read, write, except], until, site, blocking);
        if config::serial() && until != AT_ONCE && crate::system::tls::current().is_some() {
            // As Linux does: what is left of the time.
            let left = until.saturating_sub(clock::elapsed()) / 1_000;
            *time = [(left / 1_000_000) as i64, (left % 1_000_000) as i64];
        }
        result
    }
}

unsafe extern "C" fn select_files_masked(
    count: c_int,
    read: *mut u64,
    write: *mut u64,
    except: *mut u64,
    time: *const [i64; 2],
    mask: *const u64,
) -> c_int {
    let site = caller();
    type Select = unsafe extern "C" fn(c_int, *mut u64, *mut u64, *mut u64, *const [i64; 2], *const u64) -> c_int;
    let blocking = || {
        #[used]
        #[unsafe(link_section = "rashomon_real")]
        static REAL: crate::system::real::Real = crate::system::real::Real::new(c"pselect", None);
        // SAFETY: the function of that name, with the program's arguments.
        unsafe { core::mem::transmute::<*mut core::ffi::c_void, Select>(REAL.required())(count, read, write, except, time, mask) }
    };
    // SAFETY: the same arguments.
    unsafe {
        let until = until_time(time);
        with_mask(mask, || select_until(count, [read, write, except], until, site, blocking))
    }
}

/// `struct epoll_event` is packed: 12 bytes.
unsafe fn epoll_until(
    set: c_int,
    events: *mut u8,
    count: c_int,
    until: u64,
    site: u64,
    blocking: impl FnOnce() -> c_int,
) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return blocking() };
    // SAFETY: by the callers, the program's room for so many events.
    let ask = || unsafe { real!(fn epoll_wait(c_int, *mut u8, c_int, c_int) -> c_int)(set, events, count, 0) };
    let mut files = [PollFile { file: set, events: POLLIN, returned: 0 }];
    let result = wait(&runtime, &mut files, until, site, ask, |_| set, blocking);
    drop(runtime);
    touched(events, result as isize * 12, site, AccessClass::Write);
    result
}

unsafe extern "C" fn epoll_wait_files(set: c_int, events: *mut u8, count: c_int, timeout: c_int) -> c_int {
    let site = caller();
    // SAFETY: the program's room for so many events, here and behind.
    unsafe {
        epoll_until(set, events, count, until_milliseconds(timeout), site, || {
            real!(fn epoll_wait(c_int, *mut u8, c_int, c_int) -> c_int)(set, events, count, timeout)
        })
    }
}

unsafe extern "C" fn epoll_wait_masked(set: c_int, events: *mut u8, count: c_int, timeout: c_int, mask: *const u64) -> c_int {
    let site = caller();
    let blocking =
        // SAFETY: the same, with its mask, or null.
        || unsafe { real!(fn epoll_pwait(c_int, *mut u8, c_int, c_int, *const u64) -> c_int)(set, events, count, timeout, mask) };
    // SAFETY: the same arguments.
    unsafe { with_mask(mask, || epoll_until(set, events, count, until_milliseconds(timeout), site, blocking)) }
}

unsafe extern "C" fn epoll_wait_masked_until(
    set: c_int,
    events: *mut u8,
    count: c_int,
    time: *const [i64; 2],
    mask: *const u64,
) -> c_int {
    let site = caller();
    // SAFETY: as in `epoll_wait_masked`, with its time, or null.
    let blocking = || unsafe {
        real!(fn epoll_pwait2(c_int, *mut u8, c_int, *const [i64; 2], *const u64) -> c_int)(set, events, count, time, mask)
    };
    // SAFETY: the same arguments.
    unsafe {
        let until = until_time(time);
        with_mask(mask, || epoll_until(set, events, count, until, site, blocking))
    }
}

/// Data handed to the kernel with a file comes back from the wait: that orders.
unsafe extern "C" fn epoll_change(set: c_int, what: c_int, file: c_int, event: *const u8) -> c_int {
    let site = caller();
    if !event.is_null() {
        touched(event, 12, site, AccessClass::Read);
    }
    // SAFETY: the program's event, or null where the kernel looks at none.
    let real = || unsafe { real!(fn epoll_ctl(c_int, c_int, c_int, *const u8) -> c_int)(set, what, file, event) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let object = look(set).object();
    sched::point(&runtime, Op::Release, object, site);
    recorder::sync(runtime.thread(), Op::Release, object, sync_source::FILE, site, &[]);
    let result = real();
    sched::files_moved();
    result
}

unsafe extern "C" fn epoll_made(size: c_int) -> c_int {
    let site = caller();
    // SAFETY: a number only.
    made(unsafe { real!(fn epoll_create(c_int) -> c_int)(size) }, site)
}

unsafe extern "C" fn epoll_made_with(flags: c_int) -> c_int {
    let site = caller();
    // SAFETY: a number only.
    made(unsafe { real!(fn epoll_create1(c_int) -> c_int)(flags) }, site)
}

interpose! {
    epoll_create => epoll_made;
    epoll_create1 => epoll_made_with;
    poll => poll_files;
    __poll_chk => poll_files_checked;
    ppoll => poll_files_masked;
    __ppoll_chk => poll_files_masked_checked;
    select => select_files;
    pselect => select_files_masked;
    epoll_wait => epoll_wait_files;
    epoll_pwait => epoll_wait_masked;
    epoll_pwait2 => epoll_wait_masked_until;
    epoll_ctl => epoll_change;
}
