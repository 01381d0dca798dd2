//! Numbers in strings: what is read ends with the first byte that is no part of the number.

use super::*;
use core::ffi::c_int;

/// The functions that tell where they stopped. The place they tell it in is ours if the program has none.
macro_rules! numbers {
    (@base) => { usize };
    ($($name:ident($($base:ident)?) -> $result:ty, $each:expr;)*) => { $(
        mod $name {
            use super::*;

            pub unsafe extern "C" fn call(text: usize, end: *mut usize $(, $base: c_int)?) -> $result {
                let call = Call::entered();
                let mut own = text;
                let place = if end.is_null() { &raw mut own } else { end };
                // SAFETY: the function itself with the program's arguments; a place of ours where the program has none.
                let result = unsafe {
                    let function = real!(fn $name(usize, *mut usize $(, numbers!(@int $base))?) -> $result);
                    function(text, place $(, $base)?)
                };
                if let Some(call) = &call
                    $( && is_base($base) )?
                {
                    // SAFETY: the call has just stored the end there.
                    let stop = unsafe { place.read_unaligned() };
                    Accesses { call, class: AccessClass::Read }.bytes(text, stop.saturating_sub(text) + $each);
                    Accesses { call, class: AccessClass::Write }.bytes(end as usize, 8);
                }
                result
            }
        }
        crate::intercept::interpose! { $name => $name::call; }
    )* };
    (@int $base:ident) => { c_int };
}

/// Otherwise the functions look at nothing, and do not tell where they stopped.
const fn is_base(base: c_int) -> bool {
    matches!(base, 0 | 2..=36)
}

numbers! {
    strtol(base) -> usize, 1;
    strtoul(base) -> usize, 1;
    strtoll(base) -> usize, 1;
    strtoull(base) -> usize, 1;
    strtoimax(base) -> usize, 1;
    strtoumax(base) -> usize, 1;
    strtoq(base) -> usize, 1;
    strtouq(base) -> usize, 1;
    __isoc23_strtol(base) -> usize, 1;
    __isoc23_strtoul(base) -> usize, 1;
    __isoc23_strtoll(base) -> usize, 1;
    __isoc23_strtoull(base) -> usize, 1;
    __isoc23_strtoimax(base) -> usize, 1;
    __isoc23_strtoumax(base) -> usize, 1;
    strtod() -> f64, 1;
    strtof() -> f32, 1;
    wcstol(base) -> usize, WIDE;
    wcstoul(base) -> usize, WIDE;
    wcstoll(base) -> usize, WIDE;
    wcstoull(base) -> usize, WIDE;
    __isoc23_wcstol(base) -> usize, WIDE;
    __isoc23_wcstoul(base) -> usize, WIDE;
    __isoc23_wcstoll(base) -> usize, WIDE;
    __isoc23_wcstoull(base) -> usize, WIDE;
    wcstod() -> f64, WIDE;
    wcstof() -> f32, WIDE;
}

/// Bytes that a conversion without an end looks at.
fn integer(text: usize) -> usize {
    let mut end = text;
    // SAFETY: the string that the program has converted; a place of ours.
    unsafe { real!(fn strtol(usize, *mut usize, c_int) -> usize)(text, &mut end, 10) };
    end - text + 1
}

fn real_number(text: usize) -> usize {
    let mut end = text;
    // SAFETY: as in `integer`.
    unsafe { real!(fn strtod(usize, *mut usize) -> f64)(text, &mut end) };
    end - text + 1
}

effects! {
    atoi(text) -> c_int, reads |r| { r.bytes(text, integer(text)); };
    atol(text) -> usize, reads |r| { r.bytes(text, integer(text)); };
    atoll(text) -> usize, reads |r| { r.bytes(text, integer(text)); };
    atof(text) -> f64, reads |r| { r.bytes(text, real_number(text)); };
}
