//! A trace in a few lines, for the messages of failing tests.

use rashomon_event::{EventKind, Trace};
use std::fmt::Write;

pub fn describe(trace: &Trace) -> String {
    let mut text = String::new();
    for (index, event) in trace.events.iter().enumerate() {
        let what = match event.access() {
            Some(access) => format!("{:?} {}:{}", access.class, access.address, access.size),
            None => String::new(),
        };
        let kind = match event.kind {
            EventKind::Access(_) => what,
            EventKind::Atomic { op, order, .. } => format!("{op:?} {order:?} {what}"),
            kind => format!("{kind:?}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "e{index} {} {kind}", event.thread);
    }
    text
}
