//! Numbers that look drawn, and hashes that are the same in every build. Neither withstands an adversary.

/// What SplitMix64 adds to its state for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). The same seed gives
/// the same numbers everywhere.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    pub const fn draw(&mut self) -> u64 {
        self.0 = Self::next(self.0);
        Self::mixed(self.0)
    }

    /// Below `bound`; 0 where that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let number = self.draw();
        if bound == 0 { 0 } else { number % bound }
    }

    /// The state behind `state`, for states that are kept elsewhere.
    pub const fn next(state: u64) -> u64 {
        state.wrapping_add(STEP)
    }

    /// The `number`-th state behind `state`.
    pub const fn nth(state: u64, number: u64) -> u64 {
        state.wrapping_add(number.wrapping_mul(STEP))
    }

    /// The number of a state.
    pub const fn mixed(state: u64) -> u64 {
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// What an atomic counter of states has to be moved by.
    pub const STEP: u64 = STEP;
}

/// FNV-1a of 64 bits (G. Fowler, L. Noll, K.-P. Vo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv(pub u64);

impl Fnv {
    pub const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the published reference code with the seed 1234567.
    #[test]
    fn splitmix_is_splitmix() {
        let mut random = SplitMix(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(SplitMix::mixed(SplitMix::nth(1_234_567, 3)), drawn[2]);
        assert_eq!(random.below(0), 0);
    }

    /// From the published test vectors.
    #[test]
    fn fnv_is_fnv() {
        assert_eq!(Fnv::EMPTY.with(b"").0, 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::EMPTY.with(b"a").0, 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::EMPTY.with(b"foo").with(b"bar").0, 0x8594_4171_f739_67e8);
    }
}
