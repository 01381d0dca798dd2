//! Message queues, of POSIX and of System V, and System V's sets of semaphores.
//!
//! A queue of POSIX is a descriptor that poll(2) knows: its calls have the frame of all transfers ([`super::descriptors`]).
//! System V's objects are numbers; a thread that may have to wait for one gives up its turn.

use super::descriptors::{Call, EAGAIN, closed, closes, look, made, transfer};
use super::kernel::{self, Object};
use super::lock_common::{deadline, is_time};
use super::waits::external_unless;
use crate::record::external;
use crate::serial::clock::NEVER;
use crate::system::real::{errno, real, set_errno};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::{c_char, c_int};
use rashomon_abi::record::sync_source;

const TIMED_OUT: c_int = 110;
/// The object was removed.
const REMOVED: c_int = 43;

/// Variadic in C: its further arguments come in the third and fourth register.
pub unsafe extern "C" fn open(name: *const c_char, flags: c_int, mode: u32, attributes: *const u8) -> c_int {
    let site = caller();
    // SAFETY: the program's name; what the flags do not ask for is not read.
    let queue = unsafe { real!(fn mq_open(*const c_char, c_int, u32, *const u8) -> c_int)(name, flags, mode, attributes) };
    if queue >= 0
        && let Some(_runtime) = Runtime::try_enter()
    {
        let identity = look(queue).identity;
        if external::ordinal(identity).is_none() {
            external::made_here(identity);
        }
    }
    made(queue, site)
}

unsafe extern "C" fn close(queue: c_int) -> c_int {
    let close = closes(queue, caller());
    // SAFETY: a number only.
    let result = unsafe { real!(fn mq_close(c_int) -> c_int)(queue) };
    closed(queue, close, result);
    result
}

/// `until`: null is never.
fn exchange(call: Call, until: *const [i64; 2], real: impl FnMut() -> isize) -> isize {
    // What libc refuses at once does not wait.
    // SAFETY: not null: the program's own time.
    let until = if until.is_null() || !unsafe { is_time(until) } { NEVER } else { unsafe { deadline(0, until) } };
    let call = call.queue(until);
    let result = transfer(call, real);
    if result < 0 && errno() == EAGAIN && until != NEVER && !look(call.file).is_nonblocking() {
        set_errno(TIMED_OUT);
    }
    result
}

pub unsafe extern "C" fn send(queue: c_int, from: *const u8, bytes: usize, priority: u32) -> c_int {
    // SAFETY: the program's bytes, as the real function reads them.
    exchange(Call::output(queue, caller()), core::ptr::null(), || unsafe {
        real!(fn mq_send(c_int, *const u8, usize, u32) -> c_int)(queue, from, bytes, priority) as isize
    }) as c_int
}

pub unsafe extern "C" fn send_until(queue: c_int, from: *const u8, bytes: usize, priority: u32, until: *const [i64; 2]) -> c_int {
    // SAFETY: as in `send`, with the program's time.
    exchange(Call::output(queue, caller()), until, || unsafe {
        real!(fn mq_timedsend(c_int, *const u8, usize, u32, *const [i64; 2]) -> c_int)(queue, from, bytes, priority, until)
            as isize
    }) as c_int
}

pub unsafe extern "C" fn receive(queue: c_int, to: *mut u8, bytes: usize, priority: *mut u32) -> isize {
    // SAFETY: the program's room, as the real function fills it.
    exchange(Call::input(queue, caller()), core::ptr::null(), || unsafe {
        real!(fn mq_receive(c_int, *mut u8, usize, *mut u32) -> isize)(queue, to, bytes, priority)
    })
}

pub unsafe extern "C" fn receive_until(
    queue: c_int,
    to: *mut u8,
    bytes: usize,
    priority: *mut u32,
    until: *const [i64; 2],
) -> isize {
    // SAFETY: as in `receive`, with the program's time.
    exchange(Call::input(queue, caller()), until, || unsafe {
        real!(fn mq_timedreceive(c_int, *mut u8, usize, *mut u32, *const [i64; 2]) -> isize)(queue, to, bytes, priority, until)
    })
}

/// A call that waits for what others do at an object of System V, or for its removal.
fn external_at(at: Object, id: c_int, takes: bool, real: impl FnOnce() -> isize) -> isize {
    let let_go = |result: isize| (takes && result >= 0 || result < 0 && errno() == REMOVED).then_some(at);
    external_unless(sync_source::OTHER, id as u32 as u64, real, |_| false, let_go)
}

pub unsafe extern "C" fn take_message(queue: c_int, message: *mut u8, bytes: usize, kind: i64, flags: c_int) -> isize {
    // SAFETY: the program's room, which begins with the kind of message.
    let real = || unsafe { real!(fn msgrcv(c_int, *mut u8, usize, i64, c_int) -> isize)(queue, message, bytes, kind, flags) };
    external_at(Object::MessageQueue(queue), queue, true, real)
}

pub unsafe extern "C" fn put_message(queue: c_int, message: *const u8, bytes: usize, flags: c_int) -> c_int {
    kernel::releases(Object::MessageQueue(queue), caller());
    // SAFETY: the program's message, which begins with its kind.
    let real = || unsafe { real!(fn msgsnd(c_int, *const u8, usize, c_int) -> c_int)(queue, message, bytes, flags) as isize };
    external_at(Object::MessageQueue(queue), queue, false, real) as c_int
}

const REMOVE: c_int = 0;

unsafe extern "C" fn control_queue(queue: c_int, command: c_int, argument: usize) -> c_int {
    let site = caller();
    if command == REMOVE {
        kernel::releases(Object::MessageQueue(queue), site);
    }
    // SAFETY: what the command makes of the argument is the program's affair.
    let result = unsafe { real!(fn msgctl(c_int, c_int, usize) -> c_int)(queue, command, argument) };
    if command != REMOVE && result >= 0 {
        kernel::acquires(Object::MessageQueue(queue), site);
    }
    result
}

/// `struct sembuf`.
#[repr(C)]
struct Operation {
    number: u16,
    change: i16,
    flags: i16,
}

/// Whoever changes a semaphore may let others go on; whoever takes from one, or waits until one is 0, was let go by those who
/// changed it.
unsafe fn change_semaphores_by(set: c_int, operations: *const Operation, count: usize, real: impl FnOnce() -> c_int) -> c_int {
    const MOST: usize = 1 << 16;
    // SAFETY: not null, by who calls it: so many operations.
    let of_set = || unsafe { core::slice::from_raw_parts(operations, count.min(MOST)) };
    let changes = || if operations.is_null() { &[][..] } else { of_set() };
    let any = |of: fn(i16) -> bool| changes().iter().any(|operation| of(operation.change));
    let (adds, takes, awaits_zero) = (any(|change| change > 0), any(|change| change < 0), any(|change| change == 0));
    let site = caller();
    if adds {
        kernel::releases(Object::SemaphoreSet(set), site);
    }
    if takes {
        kernel::releases(Object::Taken(set), site);
    }
    let result = external_at(Object::SemaphoreSet(set), set, takes, || real() as isize) as c_int;
    if awaits_zero && result >= 0 {
        kernel::acquires(Object::Taken(set), site);
    }
    result
}

unsafe extern "C" fn change_semaphores(set: c_int, operations: *const Operation, count: usize) -> c_int {
    // SAFETY: the program's operations, here and behind.
    unsafe {
        change_semaphores_by(set, operations, count, || {
            real!(fn semop(c_int, *const Operation, usize) -> c_int)(set, operations, count)
        })
    }
}

unsafe extern "C" fn change_semaphores_timed(
    set: c_int,
    operations: *const Operation,
    count: usize,
    time: *const [i64; 2],
) -> c_int {
    // SAFETY: as in `change_semaphores`, with the program's time.
    unsafe {
        change_semaphores_by(set, operations, count, || {
            real!(fn semtimedop(c_int, *const Operation, usize, *const [i64; 2]) -> c_int)(set, operations, count, time)
        })
    }
}

/// Variadic in C: its one further argument comes in the fourth register, whatever it is.
unsafe extern "C" fn control_semaphores(set: c_int, number: c_int, command: c_int, argument: usize) -> c_int {
    let site = caller();
    // SETVAL, SETALL
    let changes = matches!(command, REMOVE | 16 | 17);
    if changes {
        kernel::releases(Object::SemaphoreSet(set), site);
        kernel::releases(Object::Taken(set), site);
    }
    // SAFETY: what the command makes of the argument is the program's affair.
    let result = unsafe { real!(fn semctl(c_int, c_int, c_int, usize) -> c_int)(set, number, command, argument) };
    if !changes && result >= 0 {
        kernel::acquires(Object::SemaphoreSet(set), site);
        kernel::acquires(Object::Taken(set), site);
    }
    result
}

interpose! {
    mq_open => open;
    mq_close => close;
    msgctl => control_queue;
    semop => change_semaphores;
    semtimedop => change_semaphores_timed;
    semctl => control_semaphores;
}
