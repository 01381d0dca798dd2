//! Interned stacks as return addresses, for the time of a report.

use super::stacks::{self, StackId};
use crate::report::sources::DEEPEST;
use crate::system::memory::List;

/// The most stacks of one report.
pub const MOST: usize = 128;

/// Shows `body` the return addresses of up to [`MOST`] stacks.
pub fn with<R>(ids: &[StackId], body: impl FnOnce(&[&[u64]]) -> R) -> R {
    let ids = &ids[..ids.len().min(MOST)];
    // Lists have memory of their own: the program's stack may be small.
    let mut words = List::new();
    let mut room = [0; DEEPEST];
    let mut ends = [0; MOST];
    for (end, &id) in ends.iter_mut().zip(ids) {
        let length = stacks::walk(id, &mut room);
        room[..length].iter().for_each(|&address| words.push(address));
        *end = words.len();
    }
    let mut slices: [&[u64]; MOST] = [&[]; MOST];
    let mut begin = 0;
    for (slice, &end) in slices.iter_mut().zip(&ends[..ids.len()]) {
        *slice = &words.as_slice()[begin..end];
        begin = end;
    }
    let result = body(&slices[..ids.len()]);
    words.clear_and_free();
    result
}
