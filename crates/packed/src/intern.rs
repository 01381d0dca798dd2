//! Names to dense numbers, in order of first appearance.
//!
//! Traces call things `V1234` or `1234`: a name of at most one character and a decimal number is found in an array. All others
//! are found by hash, with their bytes compared. Limits: a name's length, bounded by its reader; the numbers of the space. An
//! array's length is bounded by eight times the names known, so that `V4294967295` costs nothing.

use crate::event::Space;
use crate::names::Names;

/// Length of an array that needs no justification by names known.
const SMALL: usize = 1 << 18;
/// Different first characters that get an array.
const PREFIXES: usize = 8;
/// All names of one space, in bytes.
const NAME_BYTES: usize = 1 << 34;

#[derive(Debug)]
struct Numbered {
    /// 0: none.
    prefix: u8,
    /// Number plus one, by the decimal; 0: none.
    numbers: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Interner {
    space: Space,
    numbered: Vec<Numbered>,
    /// Upper half: part of the hash. Lower half: number plus one; 0: empty. A power of two, never more than half full.
    slots: Vec<u64>,
    hashed: usize,
}

/// The space has no number left, or no room for another name.
#[derive(Debug)]
pub(crate) struct Full;

impl Interner {
    pub fn new(space: Space) -> Self {
        Self { space, numbered: Vec::new(), slots: vec![0; 64], hashed: 0 }
    }

    /// The number of what is called by a letter (0: none) and a decimal number, if it is in an array.
    #[inline]
    pub fn known(&self, prefix: u8, decimal: u64) -> Option<u32> {
        let numbered = self.numbered.iter().find(|numbered| numbered.prefix == prefix)?;
        numbered.numbers.get(decimal as usize)?.checked_sub(1)
    }

    /// The name's number; a new one, if it was never seen.
    #[inline]
    pub fn number(&mut self, names: &mut Names, name: &[u8]) -> Result<u32, Full> {
        if let Some((prefix, decimal)) = split(name)
            && let Some(number) = self.known(prefix, decimal.into())
        {
            return Ok(number);
        }
        self.number_slowly(names, name)
    }

    /// The number of what is called by a letter (0: none) and a decimal number.
    #[inline]
    pub fn numbered(&mut self, names: &mut Names, prefix: u8, decimal: u64) -> Result<u32, Full> {
        if let Some(number) = self.known(prefix, decimal) {
            return Ok(number);
        }
        let mut name = Vec::with_capacity(24);
        if prefix != 0 {
            name.push(prefix);
        }
        name.extend_from_slice(decimal.to_string().as_bytes());
        self.number_slowly(names, &name)
    }

    #[cold]
    fn add(&mut self, names: &mut Names, name: &[u8]) -> Result<u32, Full> {
        let number = names.count(self.space);
        if number >= self.space.limit() || names.size(self.space) + name.len() > NAME_BYTES {
            return Err(Full);
        }
        names.push_bytes(self.space, name);
        Ok(number)
    }

    fn number_slowly(&mut self, names: &mut Names, name: &[u8]) -> Result<u32, Full> {
        let hash = hash(name);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let number = self.slots[at] as u32 - 1;
            if self.slots[at] >> 32 == hash >> 32 && names.bytes(self.space, number) == Some(name) {
                // Perhaps worth an array by now.
                if let Some((prefix, decimal)) = split(name) {
                    self.remember(prefix, decimal as usize, number, names.count(self.space));
                }
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
        let number = self.add(names, name)?;
        if let Some((prefix, decimal)) = split(name)
            && self.remember(prefix, decimal as usize, number, names.count(self.space))
        {
            return Ok(number);
        }
        self.slots[at] = hash >> 32 << 32 | u64::from(number + 1);
        self.hashed += 1;
        if self.hashed * 2 > self.slots.len() {
            self.grow(names);
        }
        Ok(number)
    }

    /// In an array, if that is worth its length.
    fn remember(&mut self, prefix: u8, decimal: usize, number: u32, known: u32) -> bool {
        if decimal >= SMALL.max(8 * known as usize) {
            return false;
        }
        let index = match self.numbered.iter().position(|numbered| numbered.prefix == prefix) {
            Some(index) => index,
            None if self.numbered.len() < PREFIXES => {
                self.numbered.push(Numbered { prefix, numbers: Vec::new() });
                self.numbered.len() - 1
            }
            None => return false,
        };
        let numbers = &mut self.numbered[index].numbers;
        if decimal >= numbers.len() {
            numbers.resize(decimal + 1, 0);
        }
        numbers[decimal] = number + 1;
        true
    }

    fn grow(&mut self, names: &Names) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let name = names.bytes(self.space, slot as u32 - 1).expect("every number found by hash has a name");
            let mut at = hash(name) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// At most one character that is no digit, and a decimal number without leading zeros.
#[inline]
fn split(name: &[u8]) -> Option<(u8, u32)> {
    let (prefix, digits) = match name {
        [first, rest @ ..] if !first.is_ascii_digit() => (*first, rest),
        _ => (0, name),
    };
    if digits.is_empty() || digits.len() > 9 || digits[0] == b'0' && digits.len() > 1 {
        return None;
    }
    let mut value = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some((prefix, value))
}

/// Multiply and fold, eight bytes at a time. Whoever chooses names to collide makes reading slow, not wrong.
fn hash(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        (product as u64) ^ (product >> 64) as u64
    };
    let mut state = name.len() as u64 ^ 0x5bd1_e995_9d1b_54a3;
    let mut words = name.chunks_exact(8);
    for word in &mut words {
        state = mix(state, u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(mix(state, u64::from_le_bytes(last)), FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_same_name_has_the_same_number_whatever_it_looks_like() {
        let mut names = Names::default();
        let mut interner = Interner::new(Space::Variable);
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut state = 7_u64;
        for _ in 0..60_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = state >> 40;
            let name = match state >> 33 & 7 {
                0 => format!("{value}"),
                1 => format!("V{value}"),
                2 => format!("0{}", value % 100),
                3 => format!("V{}", value % 1000),
                4 => format!("x.y[{}]", value % 5000),
                5 => "V4294967295".to_owned(),
                6 => format!("{}", value * 1_000_000),
                _ => String::new(),
            };
            let number = interner.number(&mut names, name.as_bytes()).unwrap();
            let next = known.len() as u32;
            assert_eq!(*known.entry(name.clone()).or_insert(next), number, "{name}");
            assert_eq!(names.get(Space::Variable, number), name);
        }
    }

    #[test]
    fn threads_run_out() {
        let mut names = Names::default();
        let mut interner = Interner::new(Space::Thread);
        for number in 0..1 << 16 {
            assert_eq!(interner.number(&mut names, format!("thread {number}").as_bytes()).unwrap(), number);
        }
        assert!(interner.number(&mut names, b"one more").is_err());
        assert_eq!(interner.number(&mut names, b"thread 5").unwrap(), 5);
    }
}
