//! Format strings of `printf` and `scanf`, as far as they say what memory is read or written.
//!
//! Limit: arguments that are numbered (`%1$s`) end the parsing; what follows is not told.

use super::number;
use core::ffi::c_int;

/// The argument list of a C function with a variable number of arguments, as the System V ABI lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arguments {
    pub integers_taken: u32,
    pub floats_taken: u32,
    pub on_stack: *const usize,
    pub in_registers: *const u8,
}

impl Arguments {
    /// The next argument of an integer or pointer type.
    ///
    /// # Safety
    /// There is one.
    pub unsafe fn integer(&mut self) -> usize {
        const ALL: u32 = 48;
        if self.integers_taken < ALL {
            self.integers_taken += 8;
            // SAFETY: by the contract: the place of that register.
            return unsafe { self.in_registers.add(self.integers_taken as usize - 8).cast::<usize>().read() };
        }
        // SAFETY: by the contract.
        unsafe { self.stack(1) }
    }

    /// # Safety
    /// There are so many words on the stack.
    unsafe fn stack(&mut self, words: usize) -> usize {
        // SAFETY: by the contract.
        unsafe {
            let value = self.on_stack.read();
            self.on_stack = self.on_stack.add(words);
            value
        }
    }

    /// Passes over a floating-point argument.
    ///
    /// # Safety
    /// There is one.
    pub unsafe fn pass_float(&mut self, long_double: bool) {
        const ALL: u32 = 48 + 8 * 16;
        if long_double {
            // Aligned to its size.
            self.on_stack = (self.on_stack as usize).next_multiple_of(16) as *const usize;
            // SAFETY: by the contract.
            unsafe { self.stack(2) };
        } else if self.floats_taken < ALL {
            self.floats_taken += 16;
        } else {
            // SAFETY: by the contract.
            unsafe { self.stack(1) };
        }
    }
}

/// How long the argument of a conversion is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Modifier {
    None,
    Char,
    Short,
    Long,
    LongDouble,
    Allocate,
}

/// A limit in a conversion: none, a number, or the next argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    None,
    Number(usize),
    Argument,
}

/// `%-+ #0'I*.3ls`, or for `scanf` `%*3l[a-z]`.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// A star that for `scanf` means that nothing is stored.
    pub star: bool,
    pub width: Limit,
    pub precision: Limit,
    pub modifier: Modifier,
    /// Also for the variant with `l`: of wide characters.
    pub character: u8,
    /// Nothing that must match lies between the conversion before and this one.
    pub adjacent: bool,
}

impl Conversion {
    pub fn is_wide(&self) -> bool {
        self.modifier == Modifier::Long || matches!(self.character, b'S' | b'C')
    }

    /// Bytes of an integer that is stored by it.
    pub fn integer_bytes(&self) -> usize {
        match self.modifier {
            Modifier::Char => 1,
            Modifier::Short => 2,
            Modifier::Long | Modifier::LongDouble => 8,
            Modifier::None | Modifier::Allocate => 4,
        }
    }
}

/// The conversions of a format, whose characters are `each` bytes long.
pub struct Conversions {
    at: usize,
    each: usize,
    scans: bool,
}

impl Conversions {
    /// # Safety
    /// The address of a terminated string of such characters, which stays while this is used.
    pub unsafe fn of(format: usize, each: usize, scans: bool) -> Self {
        Self { at: format, each, scans }
    }

    fn peek(&self) -> u8 {
        // SAFETY: not behind the end, here and below.
        let narrow = || unsafe { *(self.at as *const u8) as usize };
        // SAFETY: as above.
        let wide = || unsafe { number(self.at) };
        let character = if self.each == 1 { narrow() } else { wide() };
        // What is no letter of formats is none.
        if character < 128 { character as u8 } else { 127 }
    }

    fn take(&mut self) -> u8 {
        let character = self.peek();
        if character != 0 {
            self.at += self.each;
        }
        character
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let is = self.peek() == wanted;
        if is {
            self.take();
        }
        is
    }

    fn digits(&mut self) -> Option<usize> {
        let mut value = None;
        while self.peek().is_ascii_digit() {
            let digit = (self.take() - b'0') as usize;
            value = Some(value.unwrap_or(0usize).saturating_mul(10).saturating_add(digit).min(c_int::MAX as usize));
        }
        value
    }

    fn modifier(&mut self) -> Modifier {
        let mut modifier = Modifier::None;
        loop {
            modifier = match self.peek() {
                b'h' if modifier == Modifier::Short => Modifier::Char,
                b'h' => Modifier::Short,
                b'l' | b'j' | b'z' | b't' | b'q' | b'Z' => Modifier::Long,
                b'L' => Modifier::LongDouble,
                b'm' if self.scans => Modifier::Allocate,
                _ => return modifier,
            };
            self.take();
        }
    }

    /// Behind `[`: up to the end of the set.
    fn pass_set(&mut self) {
        self.take_if(b'^');
        self.take_if(b']');
        while !matches!(self.take(), 0 | b']') {}
    }
}

impl Iterator for Conversions {
    type Item = Conversion;

    fn next(&mut self) -> Option<Conversion> {
        let mut adjacent = true;
        loop {
            match self.take() {
                0 => return None,
                b'%' if self.take_if(b'%') => adjacent = false,
                b'%' => break,
                // White space matches anything.
                b' ' | b'\t' | b'\n' if self.scans => {}
                _ => adjacent = false,
            }
        }
        let star = self.scans && self.take_if(b'*');
        while !self.scans && matches!(self.peek(), b'-' | b'+' | b' ' | b'#' | b'0' | b'\'' | b'I') {
            self.take();
        }
        let width =
            if !self.scans && self.take_if(b'*') { Limit::Argument } else { self.digits().map_or(Limit::None, Limit::Number) };
        if self.peek() == b'$' {
            return None;
        }
        let precision = match !self.scans && self.take_if(b'.') {
            false => Limit::None,
            true if self.take_if(b'*') => Limit::Argument,
            true => Limit::Number(self.digits().unwrap_or(0)),
        };
        if self.peek().is_ascii_digit() || self.peek() == b'$' {
            return None;
        }
        let modifier = self.modifier();
        let character = self.take();
        if self.scans && character == b'[' {
            self.pass_set();
        }
        (character != 0).then_some(Conversion { star, width, precision, modifier, character, adjacent })
    }
}

/// Trampolines of functions with a variable number of arguments behind `$fixed` ones: they make the list that the function's twin
/// takes, and call `$target` with it, the place of the fixed ones and a word that says which function it is.
macro_rules! interpose_variadic {
    ($($name:ident $fixed:literal => $target:path, $row:expr;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
                ".cfi_startproc",
                "5: mov r10, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov r11, [rsp]",
                "mov fs:[r10 + {caller}], r11",
                "lea r11, [rip + 5b]",
                "mov fs:[r10 + {callee}], r11",
                "sub rsp, 216",
                ".cfi_def_cfa_offset 224",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "jz 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                "mov dword ptr [rsp], 8 * {fixed}",
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rdi, [rsp + 32]",
                "mov [rsp + 16], rdi",
                "mov rsi, rsp",
                "lea rdx, [rip + {row}]",
                "call {target}",
                "add rsp, 216",
                ".cfi_def_cfa_offset 8",
                "ret",
                ".cfi_endproc",
                caller = const $crate::system::tls::CALLER,
                callee = const $crate::system::tls::CALLEE,
                fixed = const $fixed,
                row = sym $row,
                target = sym $target,
            )
        }
    )* };
}
pub(super) use interpose_variadic;

/// Functions with a variable number of arguments behind `$fixed` ones, each with its twin that takes a list. The file that
/// they are in has a `Row`, one of these functions, made by `Row::new(twin, fixed, each, particular)`; its `call` gets the fixed
/// arguments and the list.
macro_rules! interpose_with_twins {
    ($($name:ident $twin:ident($($argument:ident)*) $fixed:literal $each:ident $particular:expr;)*) => {
        /// From the trampolines of functions with a variable number of arguments.
        unsafe extern "C" fn listed(fixed: *const usize, arguments: &mut Arguments, row: &Row) -> c_int {
            // SAFETY: the trampoline has stored as many fixed arguments as the row says.
            unsafe { row.call(core::slice::from_raw_parts(fixed, row.fixed), arguments) }
        }
        $(
            mod $twin {
                use super::*;

                /// The list itself is used up by the function behind.
                fn real(fixed: &[usize], arguments: &mut Arguments) -> c_int {
                    let &[$($argument),*] = fixed else { return -1 };
                    // SAFETY: the function that takes a list, with the program's arguments.
                    unsafe {
                        let twin = real!(fn $twin($(interpose_with_twins!(@word $argument),)* *mut Arguments) -> c_int);
                        twin($($argument,)* arguments)
                    }
                }

                pub static ROW: Row = Row::new(real, $fixed, $each, $particular);

                pub unsafe extern "C" fn call($($argument: usize,)* arguments: &mut Arguments) -> c_int {
                    // SAFETY: the program's own arguments.
                    unsafe { ROW.call(&[$($argument),*], arguments) }
                }
            }
            $crate::intercept::effects::formats::interpose_variadic! { $name $fixed => listed, $twin::ROW; }
            $crate::intercept::interpose! { $twin => $twin::call; }
        )*
    };
    (@word $argument:ident) => { usize };
}
pub(super) use interpose_with_twins;
