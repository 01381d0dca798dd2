//! Uses of locks, condition variables and barriers that the recording orders, and that another order of it shows where these are
//! gone or not yet there.
//!
//! [`super::lives`] tells what happens-before leaves unordered in the recording itself. Here the maximal causal model
//! (`rashomon_predict::maximal`, §4.4 of Rajagopalan's thesis) decides about what it orders, but threads' creations and joins do
//! not: whether a thread can be about to use, or to release, an object that another one has destroyed or whose memory it has
//! given back; or about to use one that another thread is about to initialise. Each order passes the checker at the causal level.
//!
//! Where the end comes as soon as its thread has run so far, what goes wrong first is told: the lock is held there, or it is used
//! behind. That is what an execution of the order shows, which proves it.
//!
//! Limits. Of a thread's uses in one life one is asked about ([`reorderable_uses`]), of two places at most [`PER_PLACES`] pairs,
//! of a recording [`MOST_ASKED`]. A read-write lock, a spin lock or a barrier that is destroyed leaves no trace in later uses: of
//! these the use has to be able to stand beside the end.

use crate::analyse::lives::{Told, asks_for_end, bytes, edges_of, moment, ordered};
use rashomon_event::{Address, Deadline, Edge, EventIndex, EventKind, Mode, SiteId, Stand, Trace, WitnessLevel};
use rashomon_order::SharedMemory;
use rashomon_order::lives::{reorderable_uses, used_by};
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, meets};
use rashomon_trace::{LoadedTrace, Misuse, MisuseRecord, Moment, SyncKind};
use rashomon_witness::Checker;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;

/// Pairs of a use and an edge at the same two places.
const PER_PLACES: u32 = 4;
const MOST_ASKED: usize = 256;

/// A wrong use that another order shows.
pub(crate) struct Foreseen {
    /// As an execution of the order would tell it.
    pub record: MisuseRecord,
    /// Ends with the use, or where the end of what is held comes next.
    pub order: Vec<EventIndex>,
}

/// What has a life.
#[derive(Default)]
struct Objects {
    /// Bytes, by identity.
    bytes: FxHashMap<Address, Address>,
    /// By the bytes.
    kinds: FxHashMap<Address, SyncKind>,
}

impl Objects {
    fn of(loaded: &LoadedTrace) -> Self {
        let mut objects = Self::default();
        for object in loaded.sync_objects.iter() {
            if let Some((identity, data)) = bytes(object) {
                objects.bytes.insert(identity, data);
                objects.kinds.insert(data, object.kind);
            }
        }
        objects
    }

    fn is(&self, identity: Address, data: Address) -> bool {
        self.bytes.get(&identity) == Some(&data)
    }

    /// Whether later uses tell that it is over: of such a lock or condition variable, or of any lock in memory that was given
    /// back.
    fn tell(&self, told: &Told) -> bool {
        let kind = self.kinds.get(&told.edge.object);
        match told.misuse {
            Misuse::RacesWithDestroy => matches!(kind, Some(SyncKind::Mutex | SyncKind::Condition)),
            Misuse::RacesWithFree => !matches!(kind, Some(SyncKind::Barrier)),
            _ => false,
        }
    }
}

/// Hands over each as it is decided.
pub(crate) fn foresee(loaded: &LoadedTrace, limits: &Limits, deadline: Deadline, mut found: impl FnMut(Foreseen)) {
    let trace = &loaded.trace;
    if trace.mode != Mode::Serial {
        return;
    }
    let objects = Objects::of(loaded);
    let mut edges = edges_of(loaded, &objects.bytes, deadline);
    for told in edges.iter_mut().filter(|told| told.misuse == Misuse::RacesWithFree) {
        // It is an event itself, and over behind that.
        told.edge.before.0 += 1;
    }
    edges.sort_by_key(|told| (told.edge.before, told.edge.object));
    let asked = candidates(loaded, &objects, &edges, deadline);
    if asked.is_empty() || deadline.is_over() {
        return;
    }
    let memory = SharedMemory::new(trace);
    let index = Index::until(trace, &memory, deadline);
    let facts = Facts::with_values(&index, &memory, deadline).filter(|_| index.complete);
    let Some(facts) = facts else { return };
    let checker = LazyCell::new(|| Checker::new(trace));
    let end = asks_for_end(trace, true);
    let mut known = places_of(&loaded.misuses);
    for (number, used) in asked {
        let told = &edges[number];
        let stands = stands(&objects, &edges, number);
        let decision = meets(&facts, used, &stands, limits, deadline).decision;
        let Decision::Witness(order) = decision else { continue };
        if checker.meets(&order, used, &stands) != Ok(WitnessLevel::Causal) {
            continue;
        }
        let mut foreseen = wrong(trace, &objects, told, (order, used));
        let late = |moment: &Moment| end.is_some_and(|end| moment.before > end);
        foreseen.record.late = std::iter::once(&foreseen.record.at).chain(&foreseen.record.earlier).any(late);
        if places(&foreseen.record).is_some_and(|places| known.insert(places)) {
            found(foreseen);
        }
    }
}

/// Places of two moments, whatever went wrong there.
type Places = (SiteId, SiteId);

fn places(record: &MisuseRecord) -> Option<Places> {
    record.earlier.map(|earlier| ordered(record.at.site, earlier.site))
}

fn places_of(records: &[MisuseRecord]) -> FxHashSet<Places> {
    records.iter().filter_map(places).collect()
}

/// Edges, by their numbers, and uses, that nothing has told of yet.
fn candidates(loaded: &LoadedTrace, objects: &Objects, edges: &[Told], deadline: Deadline) -> Vec<(usize, EventIndex)> {
    let plain: Vec<Edge> = edges.iter().map(|told| told.edge).collect();
    let is_end = |number: usize| edges[number].misuse != Misuse::RacesWithInit;
    let object_of = |identity| objects.bytes.get(&identity).copied();
    let known = places_of(&loaded.misuses);
    let mut counts: FxHashMap<Places, u32> = FxHashMap::default();
    let mut all = reorderable_uses(&loaded.trace, &plain, is_end, object_of, deadline);
    all.retain(|&(number, used)| {
        let (told, event) = (&edges[number], loaded.trace.event(used));
        let is_release = matches!(event.kind, EventKind::Release { .. });
        if is_release && !objects.tell(told) {
            return false;
        }
        let places = ordered(event.site, told.at.site);
        let count = counts.entry(places).or_default();
        *count += 1;
        !known.contains(&places) && *count <= PER_PLACES
    });
    all.truncate(MOST_ASKED);
    all
}

/// Where the thread of an edge has to stand while the object is used, and where others may not have come that make it anew.
fn stands(objects: &Objects, edges: &[Told], number: usize) -> Vec<Stand> {
    let told = &edges[number];
    let Edge { object, thread, before } = told.edge;
    if !objects.tell(told) {
        return vec![Stand::at(thread, before)];
    }
    let anew = edges[number + 1..].iter().filter(|other| other.misuse == Misuse::RacesWithInit && other.edge.object == object);
    let anew = anew.map(|other| Stand::up_to(other.edge.thread, other.edge.before));
    std::iter::once(Stand::behind(thread, before)).chain(anew).collect()
}

/// What an execution of the order shows, and as much of the order as that takes.
fn wrong(trace: &Trace, objects: &Objects, told: &Told, (mut order, used): (Vec<EventIndex>, EventIndex)) -> Foreseen {
    let Edge { object, thread, before } = told.edge;
    let of_object = |identity: Address| objects.is(identity, object);
    order.push(used);
    if !objects.tell(told) {
        let at = moment(&trace.event(used), used);
        let object = used_by(&trace.kind(used)).unwrap_or(object);
        let record = MisuseRecord { misuse: told.misuse, at, earlier: Some(told.at), object, refused: false, late: false };
        return Foreseen { record, order };
    }
    // Nothing stops the thread between its last event and the edge.
    let is_before = |event: &EventIndex| trace.event(*event).thread == thread && *event < before;
    let passes = order.iter().rposition(is_before).map_or(0, |last| last + 1);
    let mut held: Vec<EventIndex> = Vec::new();
    for &event in &order[..passes] {
        match trace.kind(event) {
            EventKind::Acquire { lock, .. } if of_object(lock) => held.push(event),
            EventKind::WaitEnd { mutex, .. } if of_object(mutex) => held.push(event),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } if of_object(lock) => {
                let of_thread = |taken: &EventIndex| trace.event(*taken).thread == trace.event(event).thread;
                if let Some(place) = held.iter().rposition(of_thread) {
                    held.remove(place);
                }
            }
            _ => {}
        }
    }
    if let Some(&taken) = held.last() {
        order.truncate(passes);
        let event = trace.event(taken);
        let object = used_by(&event.kind).unwrap_or(object);
        let earlier = Some(moment(&event, taken));
        let record = MisuseRecord { misuse: Misuse::DestroyLocked, at: told.at, earlier, object, refused: false, late: false };
        return Foreseen { record, order };
    }
    let uses = |event: &EventIndex| {
        let event = trace.event(*event);
        event.thread != thread && used_by(&event.kind).is_some_and(of_object)
    };
    let first = order[passes..].iter().position(uses).map_or(order.len() - 1, |place| passes + place);
    order.truncate(first + 1);
    let (event, at) = (trace.event(order[first]), order[first]);
    let object = used_by(&event.kind).unwrap_or(object);
    let record = MisuseRecord {
        misuse: Misuse::UseOfDestroyed,
        at: moment(&event, at),
        earlier: Some(told.at),
        object,
        refused: false,
        late: false,
    };
    Foreseen { record, order }
}
