//! What the kernel tells of the process and the machine; signals and threads.

use super::*;
use crate::intercept::{c11, messages, threads, time, waits};
use core::ffi::c_int;

/// Bytes of a `sigset_t` that the library uses, of a `siginfo_t`, of a `struct rusage`.
const SIGNALS: usize = 8;
const INFORMATION: usize = 128;
const USAGE: usize = 144;

const fn if_done(result: c_int, bytes: usize) -> usize {
    if result == 0 { bytes } else { 0 }
}

/// The same for calls with a positive result.
const fn if_found(result: c_int, bytes: usize) -> usize {
    if result > 0 { bytes } else { 0 }
}

effects! {
    uname(to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, 390)); };
    sysinfo(to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, 112)); };
    getrusage(who, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, USAGE)); };
    getrlimit(which, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, 16)); };
    getrlimit64(which, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, 16)); };
    setrlimit(which, from) -> c_int, reads |r| { r.bytes(from, 16); };
    setrlimit64(which, from) -> c_int, reads |r| { r.bytes(from, 16); };
    prlimit(process, which, from, to) -> c_int,
        reads |r| { r.bytes(from, 16); },
        writes |w, result| { w.bytes(to, if_done(result, 16)); };
    getloadavg(to, count: c_int) -> c_int, writes |w, result| { w.bytes(to, result.max(0) as usize * 8); };
    wait(status) -> c_int, by waits::wait_any, writes |w, result| { w.bytes(status, if_found(result, 4)); };
    waitpid(process, status, options) -> c_int, by waits::wait_process,
        writes |w, result| { w.bytes(status, if_found(result, 4)); };
    waitid(kind, process, to, options) -> c_int, by waits::wait_identity, writes |w, result| {
        // Number, error and code; process, user and status.
        w.bytes(to, if_done(result, 12));
        w.bytes(if to == 0 { 0 } else { to + 16 }, if_done(result, 12));
    };
    wait3(status, options, usage) -> c_int, by waits::wait_usage,
        writes |w, result| { w.bytes(status, if_found(result, 4)); w.bytes(usage, if_found(result, USAGE)); };
    wait4(process, status, options, usage) -> c_int, by waits::wait_process_usage,
        writes |w, result| { w.bytes(status, if_found(result, 4)); w.bytes(usage, if_found(result, USAGE)); };
    sigwait(set, to) -> c_int, by waits::take_signal,
        reads |r| { r.bytes(set, SIGNALS); },
        writes |w, result| { w.bytes(to, if_done(result, 4)); };
    sigwaitinfo(set, to) -> c_int, by waits::take_signal_information,
        reads |r| { r.bytes(set, SIGNALS); },
        writes |w, result| { w.bytes(to, if_found(result, INFORMATION)); };
    sigtimedwait(set, to, time) -> c_int, by waits::take_signal_timed,
        reads |r| { r.bytes(set, SIGNALS); r.bytes(time, 16); },
        writes |w, result| { w.bytes(to, if_found(result, INFORMATION)); };
    sigemptyset(set) -> c_int, writes |w, _| { w.bytes(set, SIGNALS); };
    sigfillset(set) -> c_int, writes |w, _| { w.bytes(set, SIGNALS); };
    sigpending(set) -> c_int, writes |w, result| { w.bytes(set, if_done(result, 8)); };
    msgrcv(queue, to, bytes, kind, flags) -> isize, by messages::take_message,
        writes |w, result| { w.bytes(to, if result < 0 { 0 } else { result as usize + 8 }); };
    msgsnd(queue, from, bytes, flags) -> c_int, by messages::put_message, reads |r| { r.bytes(from, bytes.saturating_add(8)); };
    mq_receive(queue, to, bytes, priority) -> isize, by messages::receive,
        writes |w, result| { if result >= 0 { w.bytes(to, result as usize); w.bytes(priority, 4); } };
    mq_timedreceive(queue, to, bytes, priority, until) -> isize, by messages::receive_until,
        reads |r| { r.bytes(until, 16); },
        writes |w, result| { if result >= 0 { w.bytes(to, result as usize); w.bytes(priority, 4); } };
    mq_send(queue, from, bytes, priority) -> c_int, by messages::send, reads |r| { r.bytes(from, bytes); };
    mq_timedsend(queue, from, bytes, priority, until) -> c_int, by messages::send_until,
        reads |r| { r.bytes(from, bytes); r.bytes(until, 16); };
    sem_getvalue(semaphore, to) -> c_int, writes |w, result| { w.bytes(to, if_done(result, 4)); };
    getrandom(to, bytes, flags) -> isize, by time::random_bytes, writes |w, result| { w.bytes(to, result.max(0) as usize); };
    getentropy(to, bytes) -> c_int, by time::entropy, writes |w, result| { w.bytes(to, if_done(result, bytes)); };
    arc4random_buf(to, bytes) -> (), by time::random_buffer, writes |w, ()| { w.bytes(to, bytes); };
    pthread_getname_np(thread, to, bytes) -> c_int, writes |w, result| { if result == 0 { w.text(to); } };
    pthread_getschedparam(thread, policy, to) -> c_int,
        writes |w, result| { w.bytes(policy, if_done(result, 4)); w.bytes(to, if_done(result, 4)); };
    // Its name is there before the thread begins.
    pthread_create(to, attributes, routine: threads::Routine, argument) -> c_int, by threads::create,
        reads |r| { Accesses { class: AccessClass::Write, ..r }.bytes(to, 8); };
    thrd_create(to, routine: threads::Routine, argument) -> c_int, by c11::create,
        reads |r| { Accesses { class: AccessClass::Write, ..r }.bytes(to, 8); };
    thrd_join(thread, to) -> c_int, by c11::join, writes |w, result| { w.bytes(to, if_done(result, 4)); };
    pthread_join(thread, to) -> c_int, by threads::join, writes |w, result| { w.bytes(to, if_done(result, 8)); };
    pthread_tryjoin_np(thread, to) -> c_int, by threads::try_join, writes |w, result| { w.bytes(to, if_done(result, 8)); };
    pthread_timedjoin_np(thread, to, until) -> c_int, by threads::join_until_time,
        reads |r| { r.bytes(until, 16); },
        writes |w, result| { w.bytes(to, if_done(result, 8)); };
    pthread_clockjoin_np(thread, to, clock, until) -> c_int, by threads::join_until_clock,
        reads |r| { r.bytes(until, 16); },
        writes |w, result| { w.bytes(to, if_done(result, 8)); };
    backtrace(to, most: c_int) -> c_int, writes |w, count| { w.bytes(to, count.max(0) as usize * 8); };
    dladdr(address, to) -> c_int, writes |w, result| { w.bytes(to, if result != 0 { 32 } else { 0 }); };
}
