//! Static shares of the work: commands that know nothing of each other, on one machine or several, do different parts of it.
//!
//! Which part is whose follows from the share alone. What is drawn has other seeds in each share, and so have recordings, but for
//! the first one, from which all begin. What is listed is dealt out: leads by their ids, pairs of accesses to provoke by their
//! places, the recordings of a command that only records or analyses by their numbers, and, of a search by few preemptions, what
//! follows from each change of the first schedule. A check forces the leads of others, too, once its own are decided, and its
//! search without draws tries in each share what it tries in a whole check.

use rashomon_abi::numbers::Fnv;
use rashomon_event::{CodePlace, FindingId};
use std::fmt;
use std::str::FromStr;

/// The most shares.
pub const MOST: u32 = 10_000;
/// Seeds of two shares are so far apart.
const APART: u64 = 1 << 32;

/// One of so many shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    index: u32,
    of: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl Shard {
    /// All of the work.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    pub fn is_whole(self) -> bool {
        self == Self::WHOLE
    }

    /// From 0, and how many there are.
    pub const fn of(self) -> (usize, usize) {
        (self.index as usize, self.of as usize)
    }

    /// Whether what has this place in a list that all know is done here.
    pub fn has_place(self, place: usize) -> bool {
        place % self.of as usize == self.index as usize
    }

    /// The place in that list of the one that is done here after so many others.
    pub fn place(self, done: u32) -> u32 {
        done.saturating_mul(self.of).saturating_add(self.index)
    }

    /// Whether a finding is looked after here.
    pub fn owns(self, id: &FindingId) -> bool {
        self.has_hash(Fnv::EMPTY.with(id.as_bytes()))
    }

    /// Whether two accesses at these places, in any order, are looked after here.
    pub fn owns_places(self, places: [CodePlace; 2]) -> bool {
        // Modules have other numbers in other recordings.
        let mut offsets = places.map(|place| place.offset);
        offsets.sort_unstable();
        self.has_hash(offsets.iter().fold(Fnv::EMPTY, |hash, offset| hash.with(&offset.to_le_bytes())))
    }

    /// The lowest bits of such a hash depend on the lowest ones of the bytes alone.
    fn has_hash(self, Fnv(hash): Fnv) -> bool {
        (hash >> 32) % u64::from(self.of) == u64::from(self.index)
    }

    /// Added to the seed of everything that is drawn behind the first recording.
    pub fn seeds(self) -> u64 {
        u64::from(self.index) * APART
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Such as `2/5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST => Ok(Self { index: number - 1, of }),
            _ => Err(format!("expected NUMBER/OF, such as 2/5, from 1/OF to OF/OF, with at most {MOST}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_and_place_is_of_one_share() {
        let shares: Vec<Shard> = (1..=5).map(|number| format!("{number}/5").parse().unwrap()).collect();
        let mut owned = [0; 5];
        for hash in 0..1000u32 {
            let id = FindingId::of("race", hash.wrapping_mul(0x9e37_79b9));
            let owners: Vec<usize> = (0..5).filter(|share| shares[*share].owns(&id)).collect();
            assert_eq!(owners.len(), 1, "{id}");
            owned[owners[0]] += 1;
            assert_eq!(shares.iter().filter(|share| share.has_place(hash as usize)).count(), 1);
            let places = [0x1000, u64::from(hash) * 5].map(|offset| CodePlace { module: Some(0), offset });
            let mut owners = shares.iter().filter(|share| share.owns_places(places));
            assert!(owners.next().is_some_and(|owner| owner.owns_places([places[1], places[0]])));
            assert!(owners.next().is_none());
            assert!(Shard::WHOLE.owns(&id) && Shard::WHOLE.has_place(hash as usize));
        }
        assert!(owned.iter().all(|number| (100..300).contains(number)), "{owned:?}");
    }

    #[test]
    fn what_is_no_share_is_none() {
        for text in ["", "1", "0/2", "3/2", "1/0", "a/2", "1/10001", "-1/2", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        assert_eq!("2/5".parse::<Shard>().unwrap().to_string(), "2/5");
        assert_ne!("2/2".parse::<Shard>().unwrap().seeds(), Shard::WHOLE.seeds());
    }
}
