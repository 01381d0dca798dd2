//! `scanf` and its kin: they write what their format's conversions name, as far as they came.

use super::formats::{Arguments, Conversion, Conversions, Limit, Modifier, interpose_with_twins};
use super::*;
use crate::intercept::stdio::{Wants, standard_input, takes};
use core::ffi::c_int;

/// One of these functions: the twin that takes a list, and how many arguments it has before that, the last of which is the
/// format. `input`: which of them is a string that is read.
pub struct Row {
    twin: fn(&[usize], &mut Arguments) -> c_int,
    fixed: usize,
    input: Option<usize>,
    each: usize,
}

/// What a conversion stored at a place of the program's.
unsafe fn stored(w: &Accesses<'_>, conversion: &Conversion, place: usize) {
    let text = matches!(conversion.character, b's' | b'S' | b'[');
    let single = matches!(conversion.character, b'c' | b'C');
    if (text || single) && conversion.modifier == Modifier::Allocate {
        w.bytes(place, 8);
        if text {
            // SAFETY: the conversion was assigned: the address of what was allocated lies there.
            w.text(unsafe { word(place) });
        }
        return;
    }
    match conversion.character {
        _ if text && conversion.is_wide() => w.wide(place),
        _ if text => w.text(place),
        _ if single => {
            let count = if let Limit::Number(count) = conversion.width { count } else { 1 };
            w.bytes(place, count * if conversion.is_wide() { WIDE } else { 1 });
        }
        b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => w.bytes(
            place,
            match conversion.modifier {
                Modifier::Long => 8,
                Modifier::LongDouble => 10,
                _ => 4,
            },
        ),
        b'p' => w.bytes(place, 8),
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'b' | b'n' => w.bytes(place, conversion.integer_bytes()),
        _ => {}
    }
}

/// The first `count` conversions that store something did. Those that tell how far it came are not counted: they did if nothing
/// between them and the one before could stop it.
unsafe fn assigned(w: &Accesses<'_>, format: usize, each: usize, mut arguments: Arguments, count: usize) {
    let mut left = count;
    // SAFETY: by the contract, a format that ends.
    for conversion in unsafe { Conversions::of(format, each, true) } {
        let tells = conversion.character == b'n';
        if left == 0 && !(tells && conversion.adjacent) {
            return;
        }
        if conversion.star {
            continue;
        }
        // SAFETY: each conversion that stores takes an address.
        unsafe { stored(w, &conversion, arguments.integer()) };
        left -= usize::from(!tells);
    }
}

impl Row {
    const fn new(twin: fn(&[usize], &mut Arguments) -> c_int, fixed: usize, each: usize, input: Option<usize>) -> Self {
        Self { twin, fixed, input, each }
    }

    unsafe fn call(&self, fixed: &[usize], arguments: &mut Arguments) -> c_int {
        let call = Call::entered();
        let format = fixed[self.fixed - 1];
        let list = *arguments;
        if let Some(call) = &call {
            let r = Accesses { call, class: AccessClass::Read };
            if self.each == 1 {
                r.text(format)
            } else {
                r.wide(format)
            }
            match self.input {
                Some(at) if self.each == 1 => r.text(fixed[at]),
                Some(at) => r.wide(fixed[at]),
                None => {}
            }
            call.again();
        }
        let result = match self.input {
            Some(_) => (self.twin)(fixed, arguments),
            None => {
                let stream = if self.fixed == 1 { standard_input() } else { fixed[0] };
                takes(stream, Wants::Unknown, || (self.twin)(fixed, arguments))
            }
        };
        if let Some(call) = &call
            && let Ok(count) = usize::try_from(result)
        {
            // SAFETY: the program's format, and a copy of the list of its arguments.
            unsafe { assigned(&Accesses { call, class: AccessClass::Write }, format, self.each, list, count) };
        }
        result
    }
}

const NARROW: usize = 1;

// The first names are those of C before 1999, where `%a` could mean an allocation; headers lead to the second ones, and from
// glibc 2.38 on to the third ones.
interpose_with_twins! {
    scanf vscanf(format) 1 NARROW None;
    fscanf vfscanf(stream format) 2 NARROW None;
    sscanf vsscanf(text format) 2 NARROW Some(0);
    __isoc99_scanf __isoc99_vscanf(format) 1 NARROW None;
    __isoc99_fscanf __isoc99_vfscanf(stream format) 2 NARROW None;
    __isoc99_sscanf __isoc99_vsscanf(text format) 2 NARROW Some(0);
    __isoc23_scanf __isoc23_vscanf(format) 1 NARROW None;
    __isoc23_fscanf __isoc23_vfscanf(stream format) 2 NARROW None;
    __isoc23_sscanf __isoc23_vsscanf(text format) 2 NARROW Some(0);
    __isoc99_swscanf __isoc99_vswscanf(text format) 2 WIDE Some(0);
    __isoc99_fwscanf __isoc99_vfwscanf(stream format) 2 WIDE None;
}
