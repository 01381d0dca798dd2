//! What accesses read and wrote, byte by byte, where that is known: of all accesses of a table, or of a recording's atomic ones.

use rashomon_event::{AtomicOp, EventIndex, EventKind, Trace};
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

/// Where values are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Table(&'a Values),
    /// Atomic events of a trace that has their values. What a read-modify-write read is what its writer wrote.
    Atomics,
}

impl Source<'_> {
    /// `writer`: whose write the event saw there.
    pub(super) fn read(self, trace: &Trace, event: EventIndex, writer: Option<EventIndex>, address: u64) -> Option<u8> {
        match (self, trace.event(event).kind) {
            (Self::Table(values), _) => values.read(trace, event, address),
            (Self::Atomics, EventKind::Atomic { op: AtomicOp::Load | AtomicOp::CasFailed, .. }) => carried(trace, event, address),
            (Self::Atomics, EventKind::Atomic { op: AtomicOp::Rmw, .. }) => self.written(trace, writer?, address),
            (Self::Atomics, _) => None,
        }
    }

    pub(super) fn written(self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        match (self, trace.event(event).kind) {
            (Self::Table(values), _) => values.written(trace, event, address),
            (Self::Atomics, EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, .. }) => carried(trace, event, address),
            (Self::Atomics, _) => None,
        }
    }
}

/// A byte of the value that an atomic event carries.
fn carried(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let EventKind::Atomic { access, value, .. } = trace.event(event).kind else { return None };
    let offset = address.checked_sub(access.address.0).filter(|&offset| offset < u64::from(access.size))?;
    value.to_le_bytes().get(usize::try_from(offset).ok()?).copied()
}

fn byte(table: &FxHashMap<EventIndex, Vec<u8>>, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let offset = address.checked_sub(trace.event(event).access()?.address.0)?;
    table.get(&event)?.get(usize::try_from(offset).ok()?).copied()
}
