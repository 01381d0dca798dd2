//! Values of plain accesses of a recording: gathered while it is loaded, and held against each other.
//!
//! A read that sees something else than the last write before it left says that somebody wrote unseen. Such a write has no value
//! then: whether others of the same value stand for it is not known.

use rashomon_event::{EventIndex, PlainValue, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// In the order in which they were told: threads take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(Vec<PlainValue>);

impl Values {
    pub fn note(&mut self, event: EventIndex, written: bool, value: u64) {
        let (read, written) = if written { (None, Some(value)) } else { (Some(value), None) };
        self.0.push(PlainValue { event, read, written });
    }

    /// One entry for each event, sorted.
    pub fn finish(mut self) -> Vec<PlainValue> {
        self.0.sort_by_key(|value| value.event);
        self.0.dedup_by(|next, kept| {
            let same = next.event == kept.event;
            if same {
                (kept.read, kept.written) = (kept.read.or(next.read), kept.written.or(next.written));
            }
            same
        });
        self.0
    }
}

/// A byte of memory: who wrote it last, or saw it first where nobody had, and what, where that is known.
#[derive(Clone, Copy)]
struct Last {
    event: EventIndex,
    is_write: bool,
    value: Option<u8>,
}

/// Takes the values of writes away that a later read contradicts, and of reads that contradict each other.
pub(crate) fn drop_contradicted(trace: &mut Trace) {
    if trace.plain_values.is_empty() {
        return;
    }
    let mut memory: FxHashMap<u64, Last> = FxHashMap::default();
    let valued: FxHashSet<u64> = trace.plain_values.iter().flat_map(|value| bytes_of(trace, value.event)).collect();
    let mut contradicted: FxHashSet<EventIndex> = FxHashSet::default();
    for event in trace.indices() {
        let Some(access) = trace.access(event) else { continue };
        let value = trace.plain_value(event);
        let byte = |value: Option<u64>, at: u64| value.filter(|_| at < 8).map(|value| (value >> (8 * at)) as u8);
        let bytes = access.address.0..access.address.0 + u64::from(access.size);
        for address in bytes.filter(|address| valued.contains(address)) {
            let at = address - access.address.0;
            if let Some(read) = byte(value.and_then(|value| value.read), at) {
                let last = *memory.entry(address).or_insert(Last { event, is_write: false, value: Some(read) });
                if last.value.is_some_and(|left| left != read) {
                    contradicted.extend([Some(last.event), Some(event).filter(|_| !last.is_write)].into_iter().flatten());
                }
            }
            if access.class.writes() {
                let value = byte(value.and_then(|value| value.written), at);
                memory.insert(address, Last { event, is_write: true, value });
            }
        }
    }
    for value in trace.plain_values.iter_mut().filter(|value| contradicted.contains(&value.event)) {
        (value.read, value.written) = (None, None);
    }
}

fn bytes_of(trace: &Trace, event: EventIndex) -> impl Iterator<Item = u64> {
    let access = trace.access(event);
    access.into_iter().flat_map(|access| access.address.0..access.address.0 + u64::from(access.size.min(8)))
}
