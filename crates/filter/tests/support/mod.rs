//! Detectors by their definitions, and the filter as the thesis prints it.
#![allow(dead_code, reason = "each test binary uses its part")]

use rashomon_event::{Access, Address, EventKind, LockMode, SiteId, ThreadId, Trace};
use rashomon_filter::Relation;
use rashomon_order::happens_before::{HappensBefore, thread_count};
use rashomon_order::{LockSets, Model, lockset};
use std::collections::{BTreeMap, BTreeSet};

pub type SitePairs = BTreeSet<(u32, u32)>;

struct Made {
    site: SiteId,
    thread: ThreadId,
    access: Access,
    time: u32,
    knows: Vec<u32>,
    locks: Vec<(Address, LockMode)>,
}

fn accesses(trace: &Trace, model: Model) -> Vec<Made> {
    let mut order = HappensBefore::new(trace, model);
    let mut locks = LockSets::new(order.threads());
    let mut made = Vec::new();
    for (index, event) in trace.indices().zip(&trace.events) {
        order.receive(index, &event);
        if let Some(access) = event.access() {
            let clock = order.clock(event.thread);
            made.push(Made {
                site: event.site,
                thread: event.thread,
                access,
                time: clock.time(),
                knows: (0..order.threads()).map(|thread| clock.knows(ThreadId(thread as u32))).collect(),
                locks: locks.held(event.thread).iter().map(|held| (held.lock, held.mode)).collect(),
            });
        }
        locks.step(index, &event);
        order.release(index, &event);
    }
    made
}

fn unique(one: &Made, other: &Made) -> (u32, u32) {
    (one.site.0.min(other.site.0), one.site.0.max(other.site.0))
}

/// All pairs of sites that race: full vector clocks and lock sets, every pair of accesses.
pub fn unique_races(trace: &Trace, relation: Relation) -> SitePairs {
    let made = accesses(trace, relation.order.unwrap_or(Model::WEAK));
    let mut found = SitePairs::new();
    for (place, later) in made.iter().enumerate() {
        for earlier in &made[..place] {
            let apart = relation.order.is_none() || later.knows[earlier.thread.index()] < earlier.time;
            let excluded = relation.lock_sets && lockset::exclude(&earlier.locks, &later.locks);
            if earlier.thread != later.thread && earlier.access.conflicts(&later.access) && apart && !excluded {
                found.insert(unique(earlier, later));
            }
        }
    }
    found
}

/// FastTrack (Flanagan, Freund, PLDI 2009): per byte the last write and, per thread, the last read since it; atomic accesses
/// apart from plain ones, as they do not conflict with each other. Pairs of sites, and racy bytes.
pub fn fast_track(trace: &Trace) -> (SitePairs, BTreeSet<u64>) {
    #[derive(Default)]
    struct Variable {
        writes: BTreeMap<bool, usize>,
        reads: BTreeMap<(bool, ThreadId), usize>,
    }
    let made = accesses(trace, Model::CPP20);
    let mut variables: BTreeMap<u64, Variable> = BTreeMap::new();
    let (mut pairs, mut bytes) = (SitePairs::new(), BTreeSet::new());
    for (index, new) in made.iter().enumerate() {
        let atomic = new.access.atomic;
        for byte in new.access.address.0..new.access.address.0 + u64::from(new.access.size) {
            let variable = variables.entry(byte).or_default();
            for old in variable.writes.values().chain(variable.reads.values()).map(|&old| &made[old]) {
                if old.thread != new.thread && old.access.conflicts(&new.access) && new.knows[old.thread.index()] < old.time {
                    pairs.insert(unique(old, new));
                    bytes.insert(byte);
                }
            }
            if new.access.class.writes() {
                variable.writes.retain(|&other, _| !other && atomic);
                variable.reads.retain(|&(other, _), _| !other && atomic);
                variable.writes.insert(atomic, index);
            } else {
                variable.reads.insert((atomic, new.thread), index);
            }
        }
    }
    (pairs, bytes)
}

/// Eraser with its states (Savage et al., TOCS 1997, §2.2 and 2.3): the first warning of each byte, by the access that makes it.
pub fn eraser(trace: &Trace) -> BTreeSet<(u64, usize)> {
    enum State {
        Exclusive(ThreadId),
        Shared { modified: bool, candidates: BTreeSet<Address> },
    }
    let mut states: BTreeMap<u64, State> = BTreeMap::new();
    let mut locks = LockSets::new(thread_count(trace));
    let mut warned = BTreeMap::new();
    for (index, event) in trace.indices().zip(&trace.events) {
        locks.step(index, &event);
        let Some(access) = event.access() else { continue };
        let writes = access.class.writes();
        // Atomic accesses protect themselves.
        let held = locks.held(event.thread).iter().filter(|held| !writes || held.mode == LockMode::Exclusive);
        let held: BTreeSet<Address> = held.map(|held| held.lock).collect();
        for byte in access.address.0..access.address.0 + u64::from(access.size) {
            let state = states.entry(byte).or_insert(State::Exclusive(event.thread));
            match state {
                State::Exclusive(first) if *first == event.thread => continue,
                State::Exclusive(_) => *state = State::Shared { modified: writes, candidates: held.clone() },
                State::Shared { modified, candidates } => {
                    *modified |= writes;
                    candidates.retain(|lock| held.contains(lock));
                }
            }
            if let State::Shared { modified: true, candidates } = state
                && candidates.is_empty()
            {
                warned.entry(byte).or_insert(index.index());
            }
        }
    }
    warned.into_iter().collect()
}

/// Algorithms 1 and 2 of the thesis to the letter: Γ is the sequence of held locks and messages, Θ is kept by code location
/// alone. With `receipts`, a child's receipt of its fork is a message of its own, as §3.2 says; Figure 3.4b leaves it out.
pub fn printed(trace: &Trace, receipts: bool) -> Vec<bool> {
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    enum Element {
        Lock(Address),
        Message(usize),
    }
    let mut contexts: Vec<Vec<Element>> = vec![Vec::new(); thread_count(trace)];
    let mut history: BTreeMap<(SiteId, Vec<Element>), Vec<ThreadId>> = BTreeMap::new();
    let mut kept = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        let context = &mut contexts[event.thread.index()];
        let mut keep = true;
        match event.kind {
            EventKind::Access(_) => {
                let stack = history.entry((event.site, context.clone())).or_default();
                keep = !stack.contains(&event.thread) && stack.len() < 2;
                if keep {
                    stack.push(event.thread);
                }
            }
            EventKind::Acquire { lock, .. } => context.push(Element::Lock(lock)),
            EventKind::Release { lock, .. } => context.retain(|element| *element != Element::Lock(lock)),
            EventKind::Fork { child } => {
                context.push(Element::Message(index));
                if receipts {
                    contexts[child.index()].push(Element::Message(index));
                }
            }
            EventKind::Join { .. } => context.push(Element::Message(index)),
            _ => {}
        }
        kept.push(keep);
    }
    kept
}
