//! What an acquire load of the current value of an atomic location receives.
//!
//! C++20 [intro.races]: a release sequence is headed by a release store and continued by read-modify-writes only. C11 §5.1.2.4
//! and C++17: also by later stores of the heading thread. A store after a release fence heads a sequence that passes on what the
//! fence saw ([atomics.fences]). In a serial recording the modification order is the order of the trace.
//!
//! Deviations, both towards *more* order (so towards fewer races): (1) a plain write to the bytes does not end the sequence; (2)
//! a location is a byte range, and an access that overlaps others in part receives from all of them and replaces only those it
//! covers.

use crate::clock::{JoinedClocks, VectorClock};
use rashomon_event::{Access, ThreadId};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseSequences {
    Cpp20,
    C11,
}

struct Location {
    start: u64,
    end: u64,
    /// The heads of the release sequences that the current value belongs to.
    heads: JoinedClocks,
}

/// All atomic locations, by the granules they touch.
pub(crate) struct Locations {
    rule: ReleaseSequences,
    granules: FxHashMap<u64, Vec<Location>>,
}

/// An atomic object is at most 16 bytes; longer ranges in a damaged trace are cut here.
const MAX_ATOMIC: u64 = 64;

fn span(access: &Access) -> (u64, u64) {
    (access.address.0, access.address.0.saturating_add(u64::from(access.size).clamp(1, MAX_ATOMIC)))
}

impl Locations {
    pub fn new(rule: ReleaseSequences) -> Self {
        Self { rule, granules: FxHashMap::default() }
    }

    pub fn load(&self, access: &Access, mut receive: impl FnMut(&JoinedClocks)) {
        let (start, end) = span(access);
        for granule in start / 8..=(end - 1) / 8 {
            for location in self.granules.get(&granule).into_iter().flatten() {
                if location.start < end && start < location.end {
                    receive(&location.heads);
                }
            }
        }
    }

    /// `head`: what the store passes on, if it is a release or follows a release fence.
    pub fn store(&mut self, access: &Access, thread: ThreadId, read_modify_write: bool, head: Option<&VectorClock>) {
        let (start, end) = span(access);
        for granule in start / 8..=(end - 1) / 8 {
            let locations = self.granules.entry(granule).or_default();
            locations.retain(|location| {
                let same = location.start == start && location.end == end;
                same || !(start <= location.start && location.end <= end)
            });
            let place = locations.iter().position(|location| location.start == start && location.end == end);
            let place = place.unwrap_or_else(|| {
                locations.push(Location { start, end, heads: JoinedClocks::default() });
                locations.len() - 1
            });
            let heads = &mut locations[place].heads;
            if !read_modify_write {
                match self.rule {
                    ReleaseSequences::Cpp20 => heads.clear(),
                    ReleaseSequences::C11 => heads.keep_only(thread),
                }
            }
            if let Some(head) = head {
                heads.add(head.clone());
            }
        }
    }
}
