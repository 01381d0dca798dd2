//! The signal that ended a process, and what the kernel said with it.

use std::fmt;

/// Of a process that died: as the kernel told it the runtime, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub signal: u64,
    /// `si_code` of sigaction(2).
    pub code: i32,
    /// `si_addr`; of SIGILL and SIGFPE the instruction.
    pub address: u64,
}

/// Sent by the kernel, which does not say why.
const SI_KERNEL: i32 = 128;
/// Whoever follows a null pointer to a field of an object, or to an early element of an array, touches this page.
const PAGE: u64 = 4096;

impl Crash {
    /// Whether an instruction caused it; else somebody sent the signal.
    pub const fn is_of_an_instruction(&self) -> bool {
        self.code > 0
    }

    /// The memory that could not be accessed, where the kernel says which.
    pub const fn place(&self) -> Option<u64> {
        match (self.signal, self.code) {
            (7 | 11, 1..SI_KERNEL) => Some(self.address),
            _ => None,
        }
    }

    /// Whether a null pointer was followed, to an object's field or an early element of an array.
    pub const fn is_near_null(&self) -> bool {
        self.place().is_some() && self.address < PAGE
    }

    const fn name(&self) -> &'static str {
        match self.signal {
            4 => "SIGILL",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            11 => "SIGSEGV",
            _ => "a signal",
        }
    }

    /// What the code means.
    const fn reason(&self) -> &'static str {
        match (self.signal, self.code) {
            (_, ..=0) => "sent by this process or by another one",
            (11, 1) => "nothing is mapped at the address",
            (11, 2) => "the memory there may not be accessed in that way",
            (11, SI_KERNEL) => "an address that no memory can have",
            (7, 1) => "the address is not aligned as the access wants it",
            (7, 2) => "the mapping has no memory behind it: the file ends before",
            (7, 3) => "the hardware reports an error of the memory",
            (8, 1) => "an integer is divided by zero, or the quotient is too large",
            (8, 3) => "a number is divided by zero",
            (4, _) => "the instruction is none, or may not be executed",
            _ => "no further reason is known",
        }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { signal, code, address } = *self;
        write!(f, "{}: {} (code {code})", self.name(), self.reason())?;
        match self.place() {
            Some(0) => f.write_str(", address 0x0: a null pointer"),
            Some(_) if self.is_near_null() => write!(f, ", address {address:#x}: {address} bytes behind a null pointer"),
            Some(_) => write!(f, ", address {address:#x}"),
            None if matches!((signal, code), (4 | 8, 1..SI_KERNEL)) => write!(f, ", instruction {address:#x}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_said() {
        let said = |signal, code, address| Crash { signal, code, address }.to_string();
        assert_eq!(said(11, 1, 0), "SIGSEGV: nothing is mapped at the address (code 1), address 0x0: a null pointer");
        assert_eq!(
            said(11, 1, 24),
            "SIGSEGV: nothing is mapped at the address (code 1), address 0x18: 24 bytes behind a null pointer"
        );
        assert_eq!(
            said(11, 2, 0x4000_1000),
            "SIGSEGV: the memory there may not be accessed in that way (code 2), address 0x40001000"
        );
        assert_eq!(said(11, SI_KERNEL, 0), "SIGSEGV: an address that no memory can have (code 128)");
        assert_eq!(said(6, -6, 77), "SIGABRT: sent by this process or by another one (code -6)");
        assert!(said(8, 1, 0x55).ends_with(", instruction 0x55"));
    }
}
