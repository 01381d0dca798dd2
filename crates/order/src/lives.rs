//! Uses of synchronisation objects that nothing orders with where these begin or end their lives.
//!
//! To initialise or destroy an object, or to free its memory, while another thread may use it is undefined (POSIX.1-2017,
//! §2.9.9; C++20 [basic.life]). So it is to touch memory whose allocation does not happen before that. An initialisation
//! counts as a write of the object here, its end too, and a use as a read, made before the use orders anything: what
//! ThreadSanitizer does.
//!
//! Guarantee: what is returned is unordered under the model. Limit: of a thread's uses only the latest is compared with what
//! comes behind it. An earlier one is ordered whenever the latest is; where the latest is not, that one is told.

use crate::happens_before::{HappensBefore, Model};
use rashomon_event::{Address, Deadline, Event, EventIndex, EventKind, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Where an object begins or ends its life: between two events of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// By the address of its bytes.
    pub object: Address,
    pub thread: ThreadId,
    /// The event that comes next.
    pub before: EventIndex,
}

/// The synchronisation object that an event uses, and that has to live then.
pub const fn used_by(kind: &EventKind) -> Option<Address> {
    match *kind {
        EventKind::Acquire { lock: object, .. }
        | EventKind::Request { lock: object, .. }
        | EventKind::WaitBegin { condition: object, .. }
        | EventKind::Signal { condition: object, .. }
        | EventKind::BarrierEnter { barrier: object, .. } => Some(object),
        _ => None,
    }
}

#[derive(Default)]
struct Object {
    /// The latest use by each thread: when, and which.
    uses: Vec<(ThreadId, u32, EventIndex)>,
    /// The latest edge by each thread: when, and which.
    edges: Vec<(ThreadId, u32, usize)>,
}

fn put<T>(latest: &mut Vec<(ThreadId, u32, T)>, thread: ThreadId, time: u32, what: T) {
    match latest.iter_mut().find(|(other, ..)| *other == thread) {
        Some(place) => *place = (thread, time, what),
        None => latest.push((thread, time, what)),
    }
}

/// Edges, by their numbers, each with a use that is not ordered with it. `edges` are in the order of the trace; `used` gives the
/// object, as edges name it, that an event uses, or `None` if it uses none that is looked at.
pub fn unordered_uses(
    trace: &Trace,
    model: Model,
    edges: &[Edge],
    used: impl Fn(EventIndex, &Event) -> Option<Address>,
    deadline: Deadline,
) -> Vec<(usize, EventIndex)> {
    let mut objects = contested(trace, edges, &used);
    let mut found = Vec::new();
    if objects.is_empty() {
        return found;
    }
    let mut order = HappensBefore::new(trace, model);
    let mut coming = edges.iter().enumerate().peekable();
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
        while let Some((number, edge)) = coming.next_if(|(_, edge)| edge.before <= index) {
            let Some(object) = objects.get_mut(&edge.object) else { continue };
            let clock = order.clock(edge.thread);
            let unordered = object.uses.iter().filter(|(thread, time, _)| *thread != edge.thread && clock.knows(*thread) < *time);
            found.extend(unordered.map(|(.., used)| (number, *used)));
            put(&mut object.edges, edge.thread, clock.time(), number);
        }
        if let Some(object) = used(index, event).and_then(|object| objects.get_mut(&object)) {
            let clock = order.clock(event.thread);
            let unordered =
                object.edges.iter().filter(|(thread, time, _)| *thread != event.thread && clock.knows(*thread) < *time);
            found.extend(unordered.map(|(.., number)| (*number, index)));
            put(&mut object.uses, event.thread, clock.time(), index);
        }
        if !matches!(event.kind, EventKind::Access(_)) || order.is_kept(index) {
            order.receive(index, event);
            order.release(index, event);
        }
    }
    found
}

/// The objects with an edge by one thread and a use by another.
fn contested(trace: &Trace, edges: &[Edge], used: &impl Fn(EventIndex, &Event) -> Option<Address>) -> FxHashMap<Address, Object> {
    let mut by_object: FxHashMap<Address, FxHashSet<ThreadId>> = FxHashMap::default();
    for edge in edges {
        by_object.entry(edge.object).or_default().insert(edge.thread);
    }
    let mut objects = FxHashMap::default();
    if by_object.is_empty() {
        return objects;
    }
    for (index, event) in trace.indices().zip(&trace.events) {
        if let Some(object) = used(index, event)
            && let Some(threads) = by_object.get(&object)
            && (threads.len() > 1 || !threads.contains(&event.thread))
        {
            objects.entry(object).or_default();
        }
    }
    objects
}
