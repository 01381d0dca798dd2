//! Lifetime races of a recording: uses of locks, condition variables and barriers that nothing orders with where these are
//! initialised, destroyed, or freed with the block that they are in; and of memory, with where it is allocated.
//!
//! Limits. Of memory only what instrumented code allocated and uses, as others order in ways that nobody sees, and what the
//! thread that allocated it has not touched itself: what it wrote there races as data. Locks that Rust's library makes of a
//! word have no such places; neither have semaphores, which may be destroyed once a wait has returned. [`MOST`] are told of a
//! recording.

use crate::analyse::modules::is_own;
use rashomon_event::{
    AccessClass, Address, Deadline, Edge, Event, EventIndex, EventKind, EventSet, ObjectId, ObjectKind, OtherOp, SiteId,
    ThreadId, Trace,
};
use rashomon_order::Model;
use rashomon_order::lives::{unordered_uses, used_by};
use rashomon_trace::{LoadedTrace, Misuse, MisuseRecord, Moment, SyncKind, SyncObject};
use rustc_hash::{FxHashMap, FxHashSet};

const MOST: usize = 64;

/// An edge of a life, and which one.
pub(super) struct Told {
    pub edge: Edge,
    pub at: Moment,
    pub misuse: Misuse,
}

/// The first one of each pair of places, but for those that are told already.
pub(crate) fn lifetime_races(loaded: &LoadedTrace, deadline: Deadline) -> Vec<MisuseRecord> {
    let trace = &loaded.trace;
    let objects: FxHashMap<Address, Address> = loaded.sync_objects.iter().filter_map(bytes).collect();
    let mut edges = edges_of(loaded, &objects, deadline);
    let given = given_untouched(trace, deadline);
    edges.extend(births(trace, &given));
    edges.sort_by_key(|told| (told.edge.before, told.edge.object));
    let plain: Vec<Edge> = edges.iter().map(|told| told.edge).collect();
    let used = |index: EventIndex, event: &Event| match used_by(&event.kind) {
        Some(object) => objects.get(&object).copied(),
        None => given.get(&index).copied(),
    };
    // C11 orders all that C++20 does.
    let by_accesses = given.keys().copied().collect();
    let unordered = unordered_uses(trace, Model::C11, &plain, used, &by_accesses, deadline);
    let known = |record: &MisuseRecord| record.earlier.map(|earlier| ordered(record.at.site, earlier.site));
    let mut seen: FxHashSet<(SiteId, SiteId)> = loaded.misuses.iter().filter_map(known).collect();
    let asked = asks_for_end(trace, !unordered.is_empty());
    let mut found = Vec::new();
    for (number, used) in unordered {
        let (told, event) = (&edges[number], trace.event(used));
        let object = used_by(&event.kind).unwrap_or(told.edge.object);
        if found.len() < MOST && seen.insert(ordered(event.site, told.at.site)) {
            found.push(MisuseRecord {
                misuse: told.misuse,
                at: moment(&event, used),
                earlier: Some(told.at),
                object,
                refused: false,
                late: asked.is_some_and(|asked| used.max(told.at.before) > asked),
            });
        }
    }
    found
}

pub(super) const fn ordered(one: SiteId, other: SiteId) -> (SiteId, SiteId) {
    if one.0 <= other.0 { (one, other) } else { (other, one) }
}

pub(super) const fn moment(event: &Event, index: EventIndex) -> Moment {
    Moment { thread: event.thread, site: event.site, context: event.context, before: index }
}

/// Identity and bytes of what has a life.
pub(super) fn bytes(object: &SyncObject) -> Option<(Address, Address)> {
    use SyncKind::{Barrier, Condition, Mutex, RwLock, Spin};
    matches!(object.kind, Mutex | RwLock | Spin | Condition | Barrier).then_some((object.identity, object.data?))
}

/// In the order of the trace.
pub(super) fn edges_of(loaded: &LoadedTrace, objects: &FxHashMap<Address, Address>, deadline: Deadline) -> Vec<Told> {
    let told = |object: Address, at: Moment, misuse: Misuse| Told {
        edge: Edge { object, thread: at.thread, before: at.before },
        at,
        misuse,
    };
    let misuse_of = |begins: bool| if begins { Misuse::RacesWithInit } else { Misuse::RacesWithDestroy };
    let lives = loaded.lives.iter().map(|life| told(life.data, life.at, misuse_of(life.begins)));
    let mut edges: Vec<Told> = lives.collect();
    let trace = &loaded.trace;
    let mut inside: FxHashMap<ObjectId, FxHashSet<Address>> = FxHashMap::default();
    for &data in objects.values() {
        if let Some(block) = trace.object_at(data).filter(|block| is_heap(trace, *block)) {
            inside.entry(block).or_default().insert(data);
        }
    }
    if !inside.is_empty() {
        for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
            if let EventKind::Access(access) = event.kind
                && access.class == AccessClass::End
                && let Some(held) = trace.object_at(access.address).and_then(|block| inside.get(&block))
            {
                edges.extend(held.iter().map(|&data| told(data, moment(&event, index), Misuse::RacesWithFree)));
            }
        }
    }
    edges
}

/// The first access of each thread to a block that another one allocated and has not touched until then, and the block's first
/// address.
fn given_untouched(trace: &Trace, deadline: Deadline) -> FxHashMap<EventIndex, Address> {
    let own: Vec<bool> = trace.modules.iter().map(is_own).collect();
    let is_seen = |event: &Event| trace.site(event.site).module.is_some_and(|module| own.get(module as usize) == Some(&true));
    let mut touched = vec![false; trace.objects.len()];
    let mut first: FxHashSet<(ObjectId, ThreadId)> = FxHashSet::default();
    let mut given = FxHashMap::default();
    // What threads touch next is mostly what they have touched last.
    let mut latest: Option<ObjectId> = None;
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
        let (EventKind::Access(access) | EventKind::Atomic { access, .. }) = event.kind else { continue };
        let holds = |id: ObjectId| {
            let object = &trace.objects[id.index()];
            access.address.0.wrapping_sub(object.base.0) < object.size
        };
        let Some(id) = latest.filter(|id| holds(*id)).or_else(|| trace.object_at(access.address)) else { continue };
        latest = Some(id);
        if touched[id.index()] {
            continue;
        }
        match owner(trace, id) {
            Some((thread, born)) if thread != event.thread => {
                if is_seen(&event) && is_seen(&trace.event(born)) && first.insert((id, event.thread)) {
                    given.insert(index, trace.objects[id.index()].base);
                }
            }
            _ => touched[id.index()] = true,
        }
    }
    given
}

/// Which thread allocated a block, and where, as far as the trace has that.
fn owner(trace: &Trace, block: ObjectId) -> Option<(ThreadId, EventIndex)> {
    let object = &trace.objects[block.index()];
    match object.kind {
        ObjectKind::Heap { thread, .. } | ObjectKind::Mapping { thread, .. } => Some((thread, object.born?)),
        _ => None,
    }
}

fn births(trace: &Trace, given: &FxHashMap<EventIndex, Address>) -> Vec<Told> {
    let blocks: FxHashSet<Address> = given.values().copied().collect();
    let born = blocks.into_iter().filter_map(|base| {
        let (thread, born) = owner(trace, trace.object_at(base)?)?;
        let at = moment(&trace.event(born), born);
        Some(Told { edge: Edge { object: base, thread, before: born }, at, misuse: Misuse::RacesWithAllocation })
    });
    born.collect()
}

fn is_heap(trace: &Trace, object: ObjectId) -> bool {
    matches!(trace.objects[object.index()].kind, ObjectKind::Heap { .. })
}

/// Where the end of the process was asked for. What comes behind it may as well never happen.
pub(super) fn asks_for_end(trace: &Trace, wanted: bool) -> Option<EventIndex> {
    let asks = |event: &EventIndex| trace.kind(*event) == EventKind::Other(OtherOp::AsksForEnd);
    EventSet::union([trace.events.besides_accesses()]).find(asks).filter(|_| wanted)
}
