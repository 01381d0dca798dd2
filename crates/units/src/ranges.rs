//! Tables of ranges of addresses, by their beginnings.

use crate::event::Bytes;
use std::collections::BTreeMap;

/// What a table of ranges says of an address, and where that ends.
pub(crate) fn of_range<V, T>(ranges: &BTreeMap<u64, V>, address: u64, read: impl Fn(&V) -> (u64, T)) -> (Option<T>, u64) {
    if let Some((_, value)) = ranges.range(..=address).next_back() {
        let (end, value) = read(value);
        if address < end {
            return (Some(value), end);
        }
    }
    let next = ranges.range(address..).find(|(start, _)| **start > address).map_or(u64::MAX, |(start, _)| *start);
    (None, next)
}

/// The parts of a range that a table does not have yet.
pub(crate) fn uncovered<V>(ranges: &BTreeMap<u64, V>, range: Bytes, end_of: impl Fn(&V) -> u64) -> Vec<(u64, u64)> {
    let (mut at, mut parts) = (range.start, Vec::new());
    while at < range.end() {
        let (known, stop) = of_range(ranges, at, |value| (end_of(value), ()));
        let stop = stop.min(range.end());
        if known.is_none() {
            parts.push((at, stop));
        }
        at = stop;
    }
    parts
}
