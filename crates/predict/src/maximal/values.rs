//! What accesses read and wrote, byte by byte, where that is known: of all accesses of a table, or as the trace tells it.

use rashomon_event::{Access, AccessClass, AtomicOp, EventIndex, EventKind, Trace};
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

    fn read(&self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        byte(&self.read, trace, event, address)
    }

    fn written(&self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        byte(&self.written, trace, event, address)
    }
}

/// Where values are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Table(&'a Values),
    /// What the trace tells. What an atomic read-modify-write read is what its writer wrote.
    Trace,
    /// The same, and whatever the trace does not tell may be anything: whether values could make a difference.
    Unknown,
}

impl Source<'_> {
    /// `writer`: whose write the event saw there.
    fn read(self, trace: &Trace, event: EventIndex, writer: Option<EventIndex>, address: u64) -> Option<u8> {
        if let Self::Table(values) = self {
            return values.read(trace, event, address);
        }
        match trace.kind(event) {
            EventKind::Atomic { op: AtomicOp::Load | AtomicOp::CasFailed, .. } => carried(trace, event, address),
            EventKind::Atomic { op: AtomicOp::Rmw, .. } => self.written(trace, writer?, address),
            EventKind::Access(access) => byte_of(trace.plain_value(event)?.read?, &access, address),
            _ => None,
        }
    }

    fn written(self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        if let Self::Table(values) = self {
            return values.written(trace, event, address);
        }
        match trace.kind(event) {
            EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, .. } => carried(trace, event, address),
            EventKind::Access(access) => byte_of(trace.plain_value(event)?.written?, &access, address),
            _ => None,
        }
    }

    /// What a byte was before the trace, if this read says so that saw nobody's write.
    pub(super) fn initial(self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        self.read(trace, event, None, address)
    }

    /// What a plain access found in memory, where the trace says it.
    pub(super) fn found(self, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
        match (self, trace.kind(event)) {
            (Self::Trace | Self::Unknown, EventKind::Access(access)) => {
                byte_of(trace.plain_value(event)?.read?, &access, address)
            }
            _ => None,
        }
    }

    /// Whether anything but the write that a read saw could have the same byte for it.
    pub(super) fn may_equal(self, trace: &Trace, event: EventIndex, saw: Option<EventIndex>, address: u64) -> bool {
        matches!(self, Self::Unknown) || self.read(trace, event, saw, address).is_some()
    }

    /// Whether a read that saw a byte of `saw` sees the same if it sees that of `writer`; `None`: what was there before,
    /// `initial`.
    pub(super) fn same(
        self,
        trace: &Trace,
        (event, address): (EventIndex, u64),
        saw: Option<EventIndex>,
        (writer, initial): (Option<EventIndex>, Option<u8>),
    ) -> bool {
        let offered = match writer {
            Some(writer) => self.written(trace, writer, address),
            None => initial,
        };
        match (offered, self.read(trace, event, saw, address)) {
            (Some(offered), Some(seen)) => offered == seen,
            // What is given back has no value.
            _ => matches!(self, Self::Unknown) && !writer.is_some_and(|writer| ends(trace, writer)),
        }
    }
}

fn ends(trace: &Trace, event: EventIndex) -> bool {
    trace.access(event).is_some_and(|access| access.class == AccessClass::End)
}

/// A byte of the value that an atomic event carries.
fn carried(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let EventKind::Atomic { access, value, .. } = trace.kind(event) else { return None };
    if trace.atomic_values { byte_of(value, &access, address) } else { None }
}

/// The byte of a value that an access has at an address.
fn byte_of(value: u64, access: &Access, address: u64) -> Option<u8> {
    let offset = address.checked_sub(access.address.0).filter(|&offset| offset < u64::from(access.size))?;
    value.to_le_bytes().get(usize::try_from(offset).ok()?).copied()
}

fn byte(table: &FxHashMap<EventIndex, Vec<u8>>, trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let offset = address.checked_sub(trace.access(event)?.address.0)?;
    table.get(&event)?.get(usize::try_from(offset).ok()?).copied()
}
