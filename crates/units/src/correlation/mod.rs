//! Other ways to tell which locations belong together (§6: what follows does not depend on how the sets were found).
//!
//! Each looks at a stored execution and gives sets, which [`Analysis::declare`] makes the sets of another analysis:
//!
//! | | evidence | finds what the region hypothesis does not | does not find |
//! |---|---|---|---|
//! | [`Analysis`] | dependences (§3.1) | | members that are written independently (test 21) |
//! | [`CoAccess`] | accessed together, again and again | the same, after a few executions of the function | what is accessed together once |
//! | [`Structures`] | one structure, and a dependence within it | the same, at once | what is in no structure, or in one with constant address |

mod co_access;
mod structures;

pub use co_access::{CoAccess, CoAccessOptions};
pub use structures::Structures;

use crate::analysis::Analysis;
use crate::event::{Bytes, Event};
use rustc_hash::FxHashMap;

/// A way to tell from an execution which locations belong together.
pub trait Correlation {
    fn event(&mut self, event: &Event<'_>);

    /// Disjoint sets, each of at least two locations.
    fn sets(&self) -> Vec<Vec<Bytes>>;
}

/// The region hypothesis.
impl Correlation for Analysis {
    fn event(&mut self, event: &Event<'_>) {
        Analysis::event(self, event);
    }

    fn sets(&self) -> Vec<Vec<Bytes>> {
        self.correlated_sets()
    }
}

/// Ranges that belong together, by pairs.
#[derive(Default)]
struct Groups {
    parent: FxHashMap<Bytes, Bytes>,
}

impl Groups {
    fn root(&self, range: Bytes) -> Bytes {
        let mut at = range;
        while let Some(above) = self.parent.get(&at).filter(|above| **above != at) {
            at = *above;
        }
        at
    }

    fn join(&mut self, one: Bytes, other: Bytes) {
        let (one, other) = (self.root(one), self.root(other));
        self.parent.insert(one.max(other), one.min(other));
        self.parent.insert(one.min(other), one.min(other));
    }

    fn sets(&self) -> Vec<Vec<Bytes>> {
        let mut sets: FxHashMap<Bytes, Vec<Bytes>> = FxHashMap::default();
        for range in self.parent.keys() {
            sets.entry(self.root(*range)).or_default().push(*range);
        }
        let mut sets: Vec<Vec<Bytes>> = sets.into_values().filter(|set| set.len() > 1).collect();
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets.sort_unstable();
        sets
    }
}
