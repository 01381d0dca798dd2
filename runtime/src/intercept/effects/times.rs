//! Times and dates.

use super::*;
use crate::intercept::{time as clocks, timers};
use crate::system::real::errno;
use core::ffi::c_int;

/// Bytes of a `struct tm`, of a `time_t`, of a `struct timespec` or `timeval`.
pub const DATE: usize = 56;
const SECONDS: usize = 8;
pub const TIME: usize = 16;
/// EINTR
const INTERRUPTED: c_int = 4;
/// TIMER_ABSTIME
const UNTIL: c_int = 1;

/// Tells which fields of a date a format makes `strptime` write: those that it changes in either of two dates without a common
/// field.
fn date_fields(w: &Accesses<'_>, text: usize, format: usize, date: usize) {
    const FIELD: usize = 4;
    let (mut ones, mut twos) = ([1u32; DATE / FIELD], [2u32; DATE / FIELD]);
    // Days and months that there are: the function computes with what it finds.
    for place in [&mut ones, &mut twos] {
        // SAFETY: the program's text and format, which the function has just read; a date of our own.
        unsafe { real!(fn strptime(usize, usize, *mut u32) -> usize)(text, format, place.as_mut_ptr()) };
    }
    for (field, (one, two)) in ones.into_iter().zip(twos).enumerate() {
        w.bytes(date + field * FIELD, if (one, two) == (1, 2) { 0 } else { FIELD });
    }
}

effects! {
    time(place) -> usize, by clocks::seconds, writes |w, _| { w.bytes(place, SECONDS); };
    clock_gettime(clock, place) -> c_int, by clocks::get_time,
        writes |w, result| { w.bytes(place, if result == 0 { TIME } else { 0 }); };
    gettimeofday(place, zone) -> c_int, by clocks::time_of_day,
        writes |w, result| { w.bytes(place, if result == 0 { TIME } else { 0 }); };
    timespec_get(place, base) -> c_int, by clocks::spec_time,
        writes |w, result| { w.bytes(place, if result != 0 { TIME } else { 0 }); };
    clock_getres(clock, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { TIME } else { 0 }); };
    clock_nanosleep(clock, flags: c_int, asked, left) -> c_int, by clocks::clock_sleep,
        reads |r| { r.bytes(asked, TIME); },
        writes |w, result| { w.bytes(left, if result == INTERRUPTED && flags & UNTIL == 0 { TIME } else { 0 }); };
    nanosleep(asked, left) -> c_int, by clocks::nano_sleep,
        reads |r| { r.bytes(asked, TIME); },
        writes |w, result| { w.bytes(left, if result != 0 && errno() == INTERRUPTED { TIME } else { 0 }); };
    thrd_sleep(asked, left) -> c_int, by clocks::thread_sleep,
        reads |r| { r.bytes(asked, TIME); },
        writes |w, result| { w.bytes(left, if result == -1 { TIME } else { 0 }); };
    timerfd_settime(file, flags, new, old) -> c_int, by clocks::set_timer_file,
        reads |r| { r.bytes(new, 32); },
        writes |w, result| { w.bytes(old, if result == 0 { 32 } else { 0 }); };
    timerfd_gettime(file, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 32 } else { 0 }); };
    gmtime_r(seconds, date) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.bytes(result, DATE); };
    localtime_r(seconds, date) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.bytes(result, DATE); };
    gmtime(seconds) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.bytes(result, DATE); };
    localtime(seconds) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.bytes(result, DATE); };
    mktime(date) -> usize, writes |w, _| { w.bytes(date, DATE); };
    timegm(date) -> usize, writes |w, _| { w.bytes(date, DATE); };
    timelocal(date) -> usize, writes |w, _| { w.bytes(date, DATE); };
    asctime(date) -> usize, reads |r| { r.bytes(date, DATE); }, writes |w, result| { w.text(result); };
    asctime_r(date, to) -> usize, reads |r| { r.bytes(date, DATE); }, writes |w, result| { w.text(result); };
    ctime(seconds) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.text(result); };
    ctime_r(seconds, to) -> usize, reads |r| { r.bytes(seconds, SECONDS); }, writes |w, result| { w.text(result); };
    strftime(to, most, format, date) -> usize,
        reads |r| { r.text(format); r.bytes(date, DATE); },
        writes |w, length| { w.bytes(to, if length > 0 { length + 1 } else { 0 }); };
    strftime_l(to, most, format, date, locale) -> usize,
        reads |r| { r.text(format); r.bytes(date, DATE); },
        writes |w, length| { w.bytes(to, if length > 0 { length + 1 } else { 0 }); };
    wcsftime(to, most, format, date) -> usize,
        reads |r| { r.wide(format); r.bytes(date, DATE); },
        writes |w, length| { w.bytes(to, if length > 0 { (length + 1) * WIDE } else { 0 }); };
    strptime(text, format, date) -> usize, reads |r| { r.text(format); }, writes |w, end| {
        if end != 0 {
            Accesses { class: AccessClass::Read, ..w }.bytes(text, end - text);
            date_fields(&w, text, format, date);
        }
    };
    times(place) -> usize, writes |w, _| { w.bytes(place, 32); };
    getitimer(which, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 32 } else { 0 }); };
    setitimer(which, new, old) -> c_int, by timers::set_interval,
        reads |r| { r.bytes(new, 32); },
        writes |w, result| { w.bytes(old, if result == 0 { 32 } else { 0 }); };
    timer_create(clock, event, place) -> c_int, by timers::create,
        writes |w, result| { w.bytes(place, if result == 0 { 8 } else { 0 }); };
    timer_settime(timer, flags, new, old) -> c_int, by timers::set,
        reads |r| { r.bytes(new, 32); },
        writes |w, result| { w.bytes(old, if result == 0 { 32 } else { 0 }); };
    timer_gettime(timer, place) -> c_int, writes |w, result| { w.bytes(place, if result == 0 { 32 } else { 0 }); };
}
