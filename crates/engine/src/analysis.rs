//! What all analyses have in common.

use rashomon_packed::{Event, Space};

/// Sees every event once, in the order of the trace.
pub trait Analysis {
    /// The next events; the first of them is the trace's event number `first`, from 0.
    fn block(&mut self, first: u64, events: &[Event]);

    /// A window ends: nothing before event `first` forms a pair with anything from it on.
    fn boundary(&mut self, first: u64);

    /// There will be this many numbers of the space.
    fn expect(&mut self, _space: Space, _numbers: u32) {}

    /// Memory held, about.
    fn bytes(&self) -> usize;

    /// Variables in its table.
    fn slots(&self) -> usize {
        0
    }
}
