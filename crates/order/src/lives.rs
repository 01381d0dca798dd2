//! Uses of synchronisation objects that nothing orders with where these begin or end their lives.
//!
//! To initialise or destroy an object, or to free its memory, while another thread may use it is undefined (POSIX.1-2017,
//! §2.9.9; C++20 [basic.life]). So it is to touch memory whose allocation does not happen before that. An initialisation
//! counts as a write of the object here, its end too, and a use as a read, made before the use orders anything: what
//! ThreadSanitizer does.
//!
//! [`unordered_uses`] are unordered in the trace itself. [`reorderable_uses`] are those that creation and joining of threads do
//! not keep on the right side in every order: whether there is one that has them on the wrong side is for a model to decide.
//!
//! Guarantee: what [`unordered_uses`] returns is unordered under the model. Limit: of a thread's uses only the latest is compared
//! with what comes behind it. An earlier one is ordered whenever the latest is; where the latest is not, that one is told.

use crate::happens_before::{HappensBefore, Model};
use rashomon_event::{Address, Deadline, Edge, Event, EventIndex, EventKind, EventSet, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

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
/// object, as edges name it, that an event uses, or `None` if it uses none that is looked at. It is asked of what is no plain
/// access, and of `by_accesses`.
pub fn unordered_uses(
    trace: &Trace,
    model: Model,
    edges: &[Edge],
    used: impl Fn(EventIndex, &Event) -> Option<Address>,
    by_accesses: &EventSet,
    deadline: Deadline,
) -> Vec<(usize, EventIndex)> {
    let mut objects = contested(trace, edges, &used, by_accesses);
    let mut found = Vec::new();
    if objects.is_empty() {
        return found;
    }
    let mut order = HappensBefore::new(trace, model);
    let mut coming = edges.iter().enumerate().peekable();
    let kept = trace.kept_events();
    for (index, event) in deadline.bound(trace.events.select([trace.events.besides_accesses(), &kept, by_accesses])) {
        while let Some((number, edge)) = coming.next_if(|(_, edge)| edge.before <= index) {
            pass(&order, (number, edge), &mut objects, &mut found);
        }
        if let Some(object) = used(index, &event).and_then(|object| objects.get_mut(&object)) {
            let clock = order.clock(event.thread);
            let unordered =
                object.edges.iter().filter(|(thread, time, _)| *thread != event.thread && clock.knows(*thread) < *time);
            found.extend(unordered.map(|(.., number)| (*number, index)));
            put(&mut object.uses, event.thread, clock.time(), index);
        }
        if !matches!(event.kind, EventKind::Access(_)) || order.is_kept(index) {
            order.receive(index, &event);
            order.release(index, &event);
        }
    }
    // What a thread does last.
    coming.filter(|_| !deadline.is_over()).for_each(|edge| pass(&order, edge, &mut objects, &mut found));
    found
}

/// The uses so far that an edge is not ordered with.
fn pass(
    order: &HappensBefore,
    (number, edge): (usize, &Edge),
    objects: &mut FxHashMap<Address, Object>,
    found: &mut Vec<(usize, EventIndex)>,
) {
    let Some(object) = objects.get_mut(&edge.object) else { return };
    let clock = order.clock(edge.thread);
    let unordered = object.uses.iter().filter(|(thread, time, _)| *thread != edge.thread && clock.knows(*thread) < *time);
    found.extend(unordered.map(|(.., used)| (number, *used)));
    put(&mut object.edges, edge.thread, clock.time(), number);
}

/// What of an object's present life is remembered.
#[derive(Default)]
struct Life {
    /// The latest use and the latest release by each thread: when, and which.
    uses: Vec<(ThreadId, u32, EventIndex)>,
    releases: Vec<(ThreadId, u32, EventIndex)>,
    /// The edge that began it, when its thread passed that, and who has used the object since.
    begun: Option<(usize, u32, Vec<ThreadId>)>,
}

/// Edges, by their numbers, each with a use by another thread in the life that it begins or ends, of which the creation and the
/// joining of threads alone do not say that it comes in that life: of each thread the first one behind a beginning, and the
/// latest one, and the latest release of a lock, before an end. `edges` are in the order of the trace; `is_end` says which of
/// them are ends.
///
/// Limit: of a thread one use and one release are compared with an edge. Where no order shows that one on the wrong side, one may
/// show another.
pub fn reorderable_uses(
    trace: &Trace,
    edges: &[Edge],
    is_end: impl Fn(usize) -> bool,
    object_of: impl Fn(Address) -> Option<Address>,
    deadline: Deadline,
) -> Vec<(usize, EventIndex)> {
    let used = |_: EventIndex, event: &Event| used_or_released(&event.kind).and_then(&object_of);
    let mut lives: FxHashMap<Address, Life> =
        contested(trace, edges, &used, &EventSet::default()).into_keys().map(|object| (object, Life::default())).collect();
    let mut found = Vec::new();
    if lives.is_empty() {
        return found;
    }
    let mut order = HappensBefore::new(trace, Model::C11);
    let mut coming = edges.iter().enumerate().peekable();
    let pass = |order: &HappensBefore, (number, edge): (usize, &Edge), lives: &mut FxHashMap<Address, Life>| {
        let Some(life) = lives.get_mut(&edge.object) else { return Vec::new() };
        let clock = order.clock(edge.thread);
        let over = std::mem::take(life);
        if !is_end(number) {
            life.begun = Some((number, clock.time(), vec![edge.thread]));
            return Vec::new();
        }
        let all = over.uses.into_iter().chain(over.releases);
        all.filter(|(thread, time, _)| *thread != edge.thread && clock.knows(*thread) < *time)
            .map(|(.., used)| (number, used))
            .collect()
    };
    for (index, event) in deadline.bound(trace.events.select([trace.events.besides_accesses()])) {
        while let Some(edge) = coming.next_if(|(_, edge)| edge.before <= index) {
            found.extend(pass(&order, edge, &mut lives));
        }
        if let Some(life) = used(index, &event).and_then(|object| lives.get_mut(&object)) {
            let clock = order.clock(event.thread);
            let is_release = matches!(event.kind, EventKind::Release { .. });
            if let Some((number, time, seen)) = &mut life.begun
                && !is_release
                && !seen.contains(&event.thread)
            {
                seen.push(event.thread);
                let unordered = clock.knows(edges[*number].thread) < *time;
                found.extend(unordered.then_some((*number, index)));
            }
            let latest = if is_release { &mut life.releases } else { &mut life.uses };
            put(latest, event.thread, clock.time(), index);
        }
        if matches!(event.kind, EventKind::Start | EventKind::End | EventKind::Fork { .. } | EventKind::Join { .. }) {
            order.receive(index, &event);
            order.release(index, &event);
        }
    }
    coming.filter(|_| !deadline.is_over()).for_each(|edge| found.extend(pass(&order, edge, &mut lives)));
    found
}

const fn used_or_released(kind: &EventKind) -> Option<Address> {
    match *kind {
        EventKind::Release { lock, .. } => Some(lock),
        _ => used_by(kind),
    }
}

/// The objects with an edge by one thread and a use by another.
fn contested(
    trace: &Trace,
    edges: &[Edge],
    used: &impl Fn(EventIndex, &Event) -> Option<Address>,
    by_accesses: &EventSet,
) -> FxHashMap<Address, Object> {
    let mut by_object: FxHashMap<Address, FxHashSet<ThreadId>> = FxHashMap::default();
    for edge in edges {
        by_object.entry(edge.object).or_default().insert(edge.thread);
    }
    let mut objects = FxHashMap::default();
    if by_object.is_empty() {
        return objects;
    }
    for (index, event) in trace.events.select([trace.events.besides_accesses(), by_accesses]) {
        if let Some(object) = used(index, &event)
            && let Some(threads) = by_object.get(&object)
            && (threads.len() > 1 || !threads.contains(&event.thread))
        {
            objects.entry(object).or_default();
        }
    }
    objects
}
