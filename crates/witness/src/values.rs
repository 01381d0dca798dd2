//! Values of atomic events, byte by byte: two writes of the same value are the same to who reads it.
//!
//! Known is what atomic events of the trace carry, and what was in memory before, where an atomic load saw it. Nothing else is
//! equal to anything.

use rashomon_event::{AtomicOp, EventIndex, EventKind, Trace};
use std::collections::HashMap;

/// Bytes of memory before the trace, by address.
pub(crate) type Initial = HashMap<u64, u8>;

/// The byte that an event wrote to an address.
pub(crate) fn written(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    match trace.event(event).kind {
        EventKind::Atomic { op: AtomicOp::Store | AtomicOp::Rmw, .. } => carried(trace, event, address),
        _ => None,
    }
}

/// The byte that a load, or a compare-exchange that failed, saw at an address.
pub(crate) fn loaded(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    match trace.event(event).kind {
        EventKind::Atomic { op: AtomicOp::Load | AtomicOp::CasFailed, .. } => carried(trace, event, address),
        _ => None,
    }
}

fn carried(trace: &Trace, event: EventIndex, address: u64) -> Option<u8> {
    let EventKind::Atomic { access, value, .. } = trace.event(event).kind else { return None };
    if !trace.atomic_values || !(access.address.0..access.address.0 + u64::from(access.size)).contains(&address) {
        return None;
    }
    value.to_le_bytes().get((address - access.address.0) as usize).copied()
}
