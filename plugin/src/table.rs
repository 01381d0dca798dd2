//! Tables as bytes.

use rashomon_abi::deep;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Vec<u8>);

impl Table {
    pub fn new() -> Self {
        Self::default().number(deep::VERSION)
    }

    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.push(number);
        self
    }

    pub fn push(&mut self, number: u64) {
        let (bytes, count) = deep::bytes_of(number);
        self.0.extend_from_slice(&bytes[..count]);
    }

    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.push(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A number of registers, and these.
    pub fn push_all(&mut self, registers: &[u32]) {
        self.push(registers.len() as u64);
        registers.iter().for_each(|one| self.push(u64::from(*one)));
    }

    pub fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
