//! A hasher for keys that are dense integers already: one multiplication a word. Nothing may depend on the order of iteration.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Clone, Copy, Default)]
pub struct IntegerHasher(u64);

impl IntegerHasher {
    fn add(&mut self, word: u64) {
        // The multiplier is 2^64 divided by the golden ratio, made odd (Knuth, TAOCP 3, §6.4).
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for IntegerHasher {
    fn finish(&self) -> u64 {
        // Tables take the low bits; multiplication leaves the good ones on top.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add(u64::from(byte));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }
}

pub type IntegerMap<K, V> = HashMap<K, V, BuildHasherDefault<IntegerHasher>>;
