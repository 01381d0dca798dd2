//! Files that are nearly right: what was once a good file, damaged in ways that disks, transfers and adversaries damage it.

use crate::random::SplitMix;

/// Deterministic from its seed.
pub struct Mutator {
    random: SplitMix,
}

/// Values that lengths, counts and offsets should not have.
const HOSTILE: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 0x8000_0000, 0x7fff_ffff_ffff_ffff, u64::MAX, u64::MAX - 7];

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { random: SplitMix(seed) }
    }

    /// Below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound.max(1) as u64) as usize
    }

    /// A part of so many bytes, short ones more often.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let longest = length - start;
        let scale = 1 << self.below(12);
        start..start + self.below(longest.min(scale) + 1)
    }

    /// One to four kinds of damage; parts of `donor` may be spliced in.
    pub fn mutate(&mut self, good: &[u8], donor: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..=self.below(4) {
            self.damage(&mut bytes, donor);
        }
        bytes
    }

    fn damage(&mut self, bytes: &mut Vec<u8>, donor: &[u8]) {
        if bytes.is_empty() {
            bytes.extend_from_slice(&donor[..self.below(donor.len() + 1)]);
            return;
        }
        match self.below(8) {
            0 => {
                let at = self.below(bytes.len());
                bytes[at] ^= 1 << self.below(8);
            }
            1 => {
                let at = self.below(bytes.len());
                bytes[at] = self.random.draw() as u8;
            }
            2 => bytes.truncate(self.below(bytes.len())),
            3 => {
                let part = self.range(donor.len());
                let into = self.range(bytes.len());
                bytes.splice(into, donor[part].iter().copied());
            }
            4 => {
                let part = bytes[self.range(bytes.len())].to_vec();
                let at = self.below(bytes.len() + 1);
                bytes.splice(at..at, part);
            }
            5 => {
                let part = self.range(bytes.len());
                bytes.drain(part);
            }
            // Lengths stand at the begin of things, and at even places.
            6 => {
                let width = 1 << self.below(4);
                let begin = if self.below(2) == 0 { bytes.len().min(128) } else { bytes.len() };
                let at = self.below(begin) / width * width;
                let value = HOSTILE[self.below(HOSTILE.len())];
                let value = if self.below(2) == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
                let value = if value[0] == 0 && value[7] != 0 { &value[8 - width..] } else { &value[..width] };
                let count = width.min(bytes.len() - at);
                bytes[at..at + count].copy_from_slice(&value[..count]);
            }
            _ => {
                let part = self.range(bytes.len());
                let value = self.random.draw() as u8;
                bytes[part].fill(value);
            }
        }
    }
}

/// The most memory this process ever had, in bytes, where the system says so.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_damages_alike_and_nearly_always() {
        let good: Vec<u8> = (0..2000).map(|number| (number % 251) as u8).collect();
        let (mut one, mut other) = (Mutator::new(5), Mutator::new(5));
        let mut same = 0;
        for _ in 0..1000 {
            let damaged = one.mutate(&good, &good);
            assert_eq!(damaged, other.mutate(&good, &good));
            same += usize::from(damaged == good);
        }
        assert!(same < 100, "{same} of 1000 are as they were");
    }
}
