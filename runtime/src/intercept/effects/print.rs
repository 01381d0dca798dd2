//! `printf` and its kin: they read the format and the strings that it names, and write the text where it goes to memory.

use super::formats::{Arguments, Conversions, Limit, Modifier, interpose_with_twins};
use super::*;
use crate::intercept::descriptors::{self, transfer};
use crate::intercept::stdio::{gives, standard_output};
use core::ffi::c_int;

/// Where the text goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// To the standard output, the stream or the descriptor at this argument.
    Standard,
    Stream(usize),
    File(usize),
    /// Into memory at this argument, without a limit or with one in the next.
    Unlimited(usize),
    Limited(usize),
    /// Into a new block that this argument is the place for.
    Allocated(usize),
}

/// One of these functions: the twin that takes a list, how many arguments it has before that, the last of which is the format.
pub struct Row {
    twin: fn(&[usize], &mut Arguments) -> c_int,
    fixed: usize,
    output: Output,
    each: usize,
}

/// Reads of the strings that a format names.
unsafe fn strings(r: &Accesses<'_>, format: usize, each: usize, mut arguments: Arguments) {
    const INT: usize = 0xffff_ffff;
    // SAFETY: by the contract, a format that ends.
    for conversion in unsafe { Conversions::of(format, each, false) } {
        if conversion.width == Limit::Argument {
            // SAFETY: the format says that the next argument is the width.
            unsafe { arguments.integer() };
        }
        let precision = match conversion.precision {
            Limit::None => None,
            Limit::Number(number) => Some(number),
            // A negative one is none.
            // SAFETY: the same of the precision.
            Limit::Argument => usize::try_from(unsafe { arguments.integer() & INT } as u32 as c_int).ok(),
        };
        match conversion.character {
            // SAFETY: the conversion takes a number of that type.
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => unsafe {
                arguments.pass_float(conversion.modifier == Modifier::LongDouble)
            },
            b's' | b'S' => {
                // SAFETY: the conversion takes an address.
                let text = unsafe { arguments.integer() };
                match (precision, conversion.is_wide()) {
                    (Some(most), false) => r.text_up_to(text, most),
                    (None, false) => r.text(text),
                    (None, true) => r.wide(text),
                    // How many characters make so many bytes is up to the locale.
                    (Some(_), true) => {}
                }
            }
            b'n' => {
                // SAFETY: the conversion takes the address of a number.
                Accesses { class: AccessClass::Write, ..*r }.bytes(unsafe { arguments.integer() }, conversion.integer_bytes())
            }
            b'm' => {}
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'b' | b'B' | b'c' | b'C' | b'p' => {
                // SAFETY: the conversion takes a word, or less.
                unsafe { arguments.integer() };
            }
            // A conversion that somebody registered: what it takes is not known.
            _ => return,
        }
    }
}

impl Row {
    const fn new(twin: fn(&[usize], &mut Arguments) -> c_int, fixed: usize, each: usize, output: Output) -> Self {
        Self { twin, fixed, output, each }
    }

    unsafe fn call(&self, fixed: &[usize], arguments: &mut Arguments) -> c_int {
        let call = Call::entered();
        if let Some(call) = &call {
            let r = Accesses { call, class: AccessClass::Read };
            let format = fixed[self.fixed - 1];
            if self.each == 1 {
                r.text(format)
            } else {
                r.wide(format)
            }
            // SAFETY: the program's format, and a copy of the list of its arguments.
            unsafe { strings(&r, format, self.each, *arguments) };
            call.again();
        }
        let result = match self.output {
            Output::Standard => gives(standard_output(), || (self.twin)(fixed, arguments)),
            Output::Stream(at) => gives(fixed[at], || (self.twin)(fixed, arguments)),
            Output::File(at) => {
                transfer(descriptors::Call::output(fixed[at] as c_int, caller()), || (self.twin)(fixed, arguments) as isize)
                    as c_int
            }
            _ => (self.twin)(fixed, arguments),
        };
        if let Some(call) = &call
            && let Ok(length) = usize::try_from(result)
        {
            let w = Accesses { call, class: AccessClass::Write };
            match self.output {
                Output::Standard | Output::Stream(_) | Output::File(_) => {}
                Output::Unlimited(at) => w.bytes(fixed[at], (length + 1) * self.each),
                Output::Limited(at) => w.bytes(fixed[at], (length + 1).min(fixed[at + 1]) * self.each),
                Output::Allocated(at) => {
                    w.bytes(fixed[at], 8);
                    // SAFETY: the call succeeded, and stored the address of what it allocated.
                    w.bytes(unsafe { word(fixed[at]) }, length + 1);
                }
            }
        }
        result
    }
}

const NARROW: usize = 1;

interpose_with_twins! {
    printf vprintf(format) 1 NARROW Output::Standard;
    fprintf vfprintf(stream format) 2 NARROW Output::Stream(0);
    dprintf vdprintf(file format) 2 NARROW Output::File(0);
    sprintf vsprintf(to format) 2 NARROW Output::Unlimited(0);
    snprintf vsnprintf(to room format) 3 NARROW Output::Limited(0);
    asprintf vasprintf(place format) 2 NARROW Output::Allocated(0);
    __printf_chk __vprintf_chk(flag format) 2 NARROW Output::Standard;
    __fprintf_chk __vfprintf_chk(stream flag format) 3 NARROW Output::Stream(0);
    __dprintf_chk __vdprintf_chk(file flag format) 3 NARROW Output::File(0);
    __sprintf_chk __vsprintf_chk(to flag object format) 4 NARROW Output::Unlimited(0);
    __snprintf_chk __vsnprintf_chk(to room flag object format) 5 NARROW Output::Limited(0);
    __asprintf_chk __vasprintf_chk(place flag format) 3 NARROW Output::Allocated(0);
    wprintf vwprintf(format) 1 WIDE Output::Standard;
    fwprintf vfwprintf(stream format) 2 WIDE Output::Stream(0);
    swprintf vswprintf(to room format) 3 WIDE Output::Limited(0);
}
