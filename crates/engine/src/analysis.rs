//! What all analyses have in common.

use rashomon_packed::Event;

/// Sees every event once, in the order of the trace.
pub trait Analysis {
    /// The next events; the first of them is the trace's event number `first`, from 0.
    fn block(&mut self, first: u64, events: &[Event]);
}
