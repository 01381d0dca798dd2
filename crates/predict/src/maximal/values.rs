//! What accesses read and wrote, byte by byte, where that is known.

use rashomon_event::{EventIndex, Trace};
use rustc_hash::FxHashMap;

/// A side table of a trace. What it lacks is not known, and equal to nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    read: FxHashMap<EventIndex, Vec<u8>>,
    written: FxHashMap<EventIndex, Vec<u8>>,
}

impl Values {
    /// The bytes that an event read, from its first address on.
    pub fn set_read(&mut self, event: EventIndex, bytes: &[u8]) {
        self.read.insert(event, bytes.to_vec());
    }

    /// The bytes that an event wrote, from its first address on.
    pub fn set_written(&mut self, event: EventIndex, bytes: &[u8]) {
        self.written.insert(event, bytes.to_vec());
    }

    pub(super) fn read(&self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        byte(&self.read, trace, event, address)
    }

    pub(super) fn written(&self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        byte(&self.written, trace, event, address)
    }
}

fn byte(table: &FxHashMap<EventIndex, Vec<u8>>, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let offset = address.checked_sub(trace.event(event).access()?.address.0)?;
    table.get(&event)?.get(usize::try_from(offset).ok()?).copied()
}
