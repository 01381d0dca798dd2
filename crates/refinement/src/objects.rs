//! Shared objects: overlapping and adjacent bytes that several threads touch, one of them writing, are one (§3).

use rashomon_event::{Access, EventIndex, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes from the first address up to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Sorted and disjoint.
    pub all: Vec<Object>,
}

impl Objects {
    pub fn new(trace: &Trace) -> Self {
        let distinct: FxHashSet<(u64, u64, u32, bool)> = trace
            .events
            .iter()
            .filter_map(|event| {
                let Access { address, size, class, .. } = event.access()?;
                Some((address.0, address.0.saturating_add(u64::from(size)), event.thread.0, class.writes()))
            })
            .collect();
        // Where accesses begin and end: place, whether it ends, thread, whether it writes.
        let mut borders: Vec<(u64, bool, u32, bool)> = Vec::with_capacity(2 * distinct.len());
        for (from, to, thread, writes) in distinct {
            borders.extend([(from, false, thread, writes), (to, true, thread, writes)]);
        }
        borders.sort_unstable();
        let mut all: Vec<Object> = Vec::new();
        let (mut threads, mut writers): (FxHashMap<u32, u32>, u32) = (FxHashMap::default(), 0);
        let mut last = 0;
        for (place, ends, thread, writes) in borders {
            if place > last && threads.len() > 1 && writers > 0 {
                match all.last_mut().filter(|object| object.to == last) {
                    Some(object) => object.to = place,
                    None => all.push(Object { from: last, to: place }),
                }
            }
            last = place;
            let count = threads.entry(thread).or_default();
            if ends {
                *count -= 1;
                writers -= u32::from(writes);
                if *count == 0 {
                    threads.remove(&thread);
                }
            } else {
                *count += 1;
                writers += u32::from(writes);
            }
        }
        Self { all }
    }

    /// Those that an access touches, by number.
    pub fn touched(&self, access: &Access) -> impl Iterator<Item = usize> + '_ {
        let (from, to) = (access.address.0, access.address.0.saturating_add(u64::from(access.size)));
        let first = self.all.partition_point(|object| object.to <= from);
        let count = self.all[first..].iter().take_while(|object| object.from < to).count();
        first..first + count
    }

    /// Pairs of accesses of different threads that conflict there. For small traces.
    pub fn conflicts(&self, trace: &Trace, object: usize) -> Vec<(EventIndex, EventIndex)> {
        let touches =
            |event: &EventIndex| trace.access(*event).is_some_and(|access| self.touched(&access).any(|one| one == object));
        let events: Vec<EventIndex> = trace.indices().filter(touches).collect();
        let mut pairs = Vec::new();
        for (place, &second) in events.iter().enumerate() {
            for &first in &events[..place] {
                let (one, other) = (trace.event(first), trace.event(second));
                if let (Some(a), Some(b)) = (one.access(), other.access())
                    && one.thread != other.thread
                    && a.conflicts(&b)
                {
                    pairs.push((first, second));
                }
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{AccessClass, Address, ThreadId};
    use rashomon_testkit::TraceBuilder;

    fn objects(accesses: &[(u32, AccessClass, u64, u32)]) -> Vec<(u64, u64)> {
        let mut builder = TraceBuilder::with_threads(3);
        for &(thread, class, address, size) in accesses {
            builder.access(ThreadId(thread), class, Address(address), size);
        }
        Objects::new(&builder.build()).all.iter().map(|object| (object.from, object.to)).collect()
    }

    #[test]
    fn adjacent_and_overlapping_shared_bytes_are_one_object() {
        use AccessClass::{Read, Write};
        assert_eq!(objects(&[(0, Write, 8, 4), (1, Read, 8, 4), (0, Read, 12, 4), (1, Write, 12, 4)]), [(8, 16)]);
        assert_eq!(objects(&[(0, Write, 8, 8), (1, Write, 12, 8)]), [(12, 16)]);
        assert_eq!(objects(&[(0, Write, 8, 1), (1, Write, 8, 1), (0, Write, 10, 1), (2, Write, 10, 1)]), [(8, 9), (10, 11)]);
        assert_eq!(objects(&[(0, Read, 8, 4), (1, Read, 8, 4), (1, Write, 20, 4)]), []);
    }
}
