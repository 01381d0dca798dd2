//! What functions of the C library read and write of the program's memory: one table, a row for each function, in families.
//!
//! ```text
//! NAME(arguments) -> type, by FUNCTION, reads |r| { … }, writes |w, result| { … };
//! ```
//!
//! The function behind the name is called as it is, or `by` one of ours that has more to do with it. Before it, what it reads is
//! told; behind it, when the result says how much that was, what it wrote. Arguments are words unless a type is given: a register
//! holds whatever the program put there, and is passed on. Where a function may or may not look at a byte, it is not told: an
//! access that is missing hides a race, one that was never made invents one.
//!
//! What is told is what the C standard, POSIX and the manual say that a function does to its caller's objects. A buffer of the
//! library's own that a function returns a pointer to (`localtime`) is written by the call, too: whoever uses it while another
//! thread calls the function reads what is being written.

mod accounts;
mod algorithms;
mod checked;
mod files;
mod formats;
mod mathematics;
mod network;
mod numbers;
mod print;
mod scan;
mod streams;
mod system;
mod text;
mod times;
mod wide;

use crate::intercept::hooks::access_within;
use crate::system::glibc;
use crate::system::real::real;
use crate::system::tls::{caller, hot};
use rashomon_abi::record::AccessClass;

/// A call of such a function, whose accesses are told.
struct Call {
    site: u64,
    function: u64,
}

impl Call {
    /// Nothing if nobody counts: the calling thread is not known, is inside the runtime, or runs the C library's own code.
    fn entered() -> Option<Self> {
        let block = hot();
        let (known, function) = (block.is_outside(), block.callee.get());
        let site = caller();
        (known && !glibc::calls_from(site)).then_some(Self { site, function })
    }

    /// What it was entered by, for the function that does the work: telling of an access may call functions of the program.
    fn again(&self) {
        hot().caller.set(self.site);
        hot().callee.set(self.function);
    }
}

/// Accesses of one class that a call makes. Null pointers are none.
struct Accesses<'a> {
    call: &'a Call,
    class: AccessClass,
}

impl Accesses<'_> {
    fn bytes(&self, address: usize, bytes: usize) {
        if address != 0 && bytes > 0 && bytes <= isize::MAX as usize {
            // SAFETY: only the numbers are used.
            unsafe { access_within(address as u64, bytes as u64, self.call.site, self.class as u64, self.call.function) }
        }
    }
    /// A string and its end.
    fn text(&self, address: usize) {
        if address != 0 {
            self.bytes(address, text_length(address) + 1);
        }
    }
    /// A string, or as much of one as a limit allows.
    fn text_up_to(&self, address: usize, most: usize) {
        if address != 0 {
            self.bytes(address, text_looked_at(address, most));
        }
    }
    /// A string of wide characters and its end.
    fn wide(&self, address: usize) {
        if address != 0 {
            self.bytes(address, (wide_length(address, usize::MAX) + 1) * WIDE);
        }
    }
    fn wide_up_to(&self, address: usize, most: usize) {
        if address != 0 {
            let length = wide_length(address, most);
            self.bytes(address, if length < most { length + 1 } else { most } * WIDE);
        }
    }
}

/// Bytes of a `wchar_t`.
const WIDE: usize = 4;

fn text_length(text: usize) -> usize {
    // SAFETY: a string of the program's, which it hands to a function that reads all of it.
    unsafe { real!(fn strlen(usize) -> usize)(text) }
}

/// Bytes that a function reads which stops at the end of the string or after `most` bytes.
fn text_looked_at(text: usize, most: usize) -> usize {
    // SAFETY: the program's, which it hands to a function that reads as far as this one.
    let length = unsafe { real!(fn strnlen(usize, usize) -> usize)(text, most) };
    if length < most { length + 1 } else { most }
}

/// Characters before the end, at most so many.
fn wide_length(text: usize, most: usize) -> usize {
    // SAFETY: the same of wide characters.
    unsafe { real!(fn wcsnlen(usize, usize) -> usize)(text, most) }
}

/// What is stored at an address of the program's; 0 at none.
///
/// # Safety
/// Null, or the address of such an object.
unsafe fn word(address: usize) -> usize {
    // SAFETY: by the contract.
    if address == 0 { 0 } else { unsafe { (address as *const usize).read_unaligned() } }
}

/// The same of an `int`.
///
/// # Safety
/// As [`word`].
unsafe fn number(address: usize) -> usize {
    // SAFETY: by the contract.
    if address == 0 { 0 } else { unsafe { (address as *const u32).read_unaligned() as usize } }
}

/// The type of an argument.
macro_rules! argument {
    () => {
        usize
    };
    ($kind:ty) => {
        $kind
    };
}

macro_rules! perform {
    (($($version:literal)? $name:ident) ($($argument:ident: $kind:ty),*) -> $result:ty) => {
        real!($($version)? fn $name($($kind),*) -> $result)($($argument),*)
    };
    (($($version:literal)? $name:ident) ($($argument:ident: $kind:ty),*) -> $result:ty, $by:path) => {
        $by($($argument as _),*) as $result
    };
}

macro_rules! effects {
    ($($($version:literal)? $name:ident($($argument:ident $(: $kind:ty)?),*) -> $result:ty $(, by $by:path)? $(,
        reads |$r:ident| $before:block)? $(,
        writes |$w:ident, $value:pat_param| $after:block)?;)*) => { $(
        mod $name {
            #[allow(unused_imports, reason = "what rows may use")]
            use super::*;

            pub unsafe extern "C" fn call($($argument: argument!($($kind)?)),*) -> $result {
                let call = Call::entered();
                if let Some(_call) = &call {
                    $( let $r = Accesses { call: _call, class: AccessClass::Read }; $before; _call.again(); )?
                }
                // SAFETY: the function itself, or the one that stands in for it, with the program's own arguments.
                let result = unsafe {
                    perform!(($($version)? $name) ($($argument: argument!($($kind)?)),*) -> $result $(, $by)?)
                };
                if let Some(_call) = &call {
                    $( let $w = Accesses { call: _call, class: AccessClass::Write }; let $value = result; $after )?
                }
                result
            }
        }
        crate::intercept::interpose! { $name => $name::call; }
    )* };
}
use {argument, effects, perform};
