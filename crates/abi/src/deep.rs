//! What the compiler's plugin tells: static tables in the program, and numbers at run time.
//!
//! A table is a sequence of bytes in a section of the program, which nothing reads while it runs. Its address is its name: the
//! runtime records it, and the host finds the bytes in the file of the module. Numbers in tables are unsigned, seven bits a byte,
//! the least significant first, the top bit set in all but the last byte (LEB128).
//!
//! A *loop table* ([`LOOPS`]) is [`VERSION`] and a [`loop_kind`].
//!
//! A *table of dependences* ([`DEPENDENCES`]) belongs to a function, whose code is cut into *segments*: a block begins one,
//! and so does what follows a call behind which the program tells where it goes on. It is [`VERSION`], the number of bytes of the
//! function's name and these, the numbers of its parameters, registers, blocks and segments, and each segment: a number, 0 if it
//! goes on behind a call, else that of its block + 1; [`told`]; its [`step`]s up to one that ends it. Parameters are the first
//! registers. *Roots* are a number of registers and these.
//!
//! At run time a function tells its table ([`crate::record::ACTIVATION`]), and segments that cannot be known from what came
//! before ([`crate::record::SEGMENT`]); where control comes back other than by a return, with the activation that it comes
//! back to ([`crate::record::RESUME`]).

/// Of the tables.
pub const VERSION: u64 = 1;

/// Sections of the tables.
pub const LOOPS: &str = "rashomon_loops";
pub const DEPENDENCES: &str = "rashomon_dependences";

pub mod loop_kind {
    /// It waits on a condition variable until its predicate holds.
    pub const CONDITION: u64 = 1;
    /// It reads memory until somebody else has written it.
    pub const SPIN: u64 = 2;
    /// The same with atomic read-modify-write operations.
    pub const SPIN_MODIFYING: u64 = 3;
    /// It reads memory under a lock that it takes each time.
    pub const POLL: u64 = 4;
}

/// Whether a segment is told at run time.
pub mod told {
    /// It is known from the segment before it.
    pub const NOT: u64 = 0;
    pub const AS_SEGMENT: u64 = 1;
    /// With its activation: behind a call that may return twice, and where an exception is caught.
    pub const AS_RESUME: u64 = 2;
}

/// A call.
pub mod call {
    /// The callee is told, and nothing follows its end.
    pub const CALLEE_TELLS: u64 = 1;
}

/// Steps of a segment.
pub mod step {
    /// Register; number of ways, each the block that control comes from and the roots of the value.
    pub const PHI: u64 = 1;
    /// Register; roots of the address. An access is recorded.
    pub const READ: u64 = 2;
    /// Roots of the value; roots of the address. An access is recorded.
    pub const WRITE: u64 = 3;
    /// Register; roots of the operands; roots of the address. An atomic operation is recorded.
    pub const ATOMIC: u64 = 4;
    /// Register; roots.
    pub const COMPUTE: u64 = 5;
    /// Bytes are copied: a range that is read and one that is written are recorded, if there are any bytes.
    pub const COPY: u64 = 6;
    /// Roots of the value. A range that is written is recorded, if there are any bytes.
    pub const FILL: u64 = 7;
    /// [`super::call`] bits; hash of the callee's name ([`super::name_hash`]), 0 if it is not known; register of the result,
    /// counted from 1, or 0; number of arguments and the roots of each.
    pub const CALL: u64 = 8;
    /// Roots of the condition; the block where the paths meet, or the number of blocks if they meet at the function's end.
    pub const BRANCH: u64 = 9;

    /// The segment ends. The one that follows.
    pub const GO_ON: u64 = 16;
    /// It ends, and what follows is told: number of segments that it may be, and these.
    pub const TOLD: u64 = 17;
    /// The function returns. Roots of the result.
    pub const RETURN: u64 = 18;
    /// It does not go on here.
    pub const LEAVE: u64 = 19;
}

/// Of a function's name as linkers see it (FNV-1a); never 0.
pub const fn name_hash(name: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ name[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    if hash == 0 { 1 } else { hash }
}

/// The number at the begin of `bytes`, and how many of them it takes; `None` if there is none of at most 64 bits.
pub fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// The bytes of a number, and how many of them count.
pub const fn bytes_of(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut at = 0;
    loop {
        bytes[at] = (value & 0x7f) as u8;
        value >>= 7;
        at += 1;
        if value == 0 {
            return (bytes, at);
        }
        bytes[at - 1] |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let (bytes, count) = bytes_of(value);
            assert_eq!(number(&bytes[..count]), Some((value, count)));
            assert_eq!(number(&bytes[..count - 1]), None, "cut short");
        }
        assert_eq!(number(&[0xff; 10]), None, "more than 64 bits");
    }
}
