//! Values of accesses, byte by byte: two writes of the same value are the same to who reads it.
//!
//! Known is what atomic events of the trace carry, what it tells of plain accesses, and what was in memory before, where a read
//! saw it. Nothing else is equal to anything.

use rashomon_event::{Access, AtomicOp, EventIndex, EventKind, Trace};
use std::collections::HashMap;

/// Bytes of memory before the trace, by address.
pub(crate) type Initial = HashMap<u64, u8>;

/// The byte that an event wrote to an address.
pub(crate) fn written(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    match trace.kind(event) {
        EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, .. } => carried(trace, event, address),
        EventKind::Access(access) => byte_of(trace.plain_value(event)?.written?, &access, address),
        _ => None,
    }
}

/// The byte that a load, a compare-exchange that failed, or a plain access saw at an address.
pub(crate) fn seen(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    match trace.kind(event) {
        EventKind::Atomic { op: AtomicOp::Load | AtomicOp::CasFailed, .. } => carried(trace, event, address),
        EventKind::Access(access) => byte_of(trace.plain_value(event)?.read?, &access, address),
        _ => None,
    }
}

fn carried(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let EventKind::Atomic { access, value, .. } = trace.kind(event) else { return None };
    if trace.atomic_values { byte_of(value, &access, address) } else { None }
}

fn byte_of(value: u64, access: &Access, address: u64) -> Option<u8> {
    if !(access.address.0..access.address.0 + u64::from(access.size)).contains(&address) {
        return None;
    }
    value.to_le_bytes().get((address - access.address.0) as usize).copied()
}
