//! The beginning of a witness: Shacham et al. 2007, Fig. 8 (ExtendConstructWitnessPrefix). All up to a1, and of what comes behind
//! it whatever does not depend on a1 or on what its thread does later: the longer it is, the less is left to explore.
//!
//! Numbers in brackets are lines of Fig. 8. Deviation 1: line 12 must read m^α = m^{a1}. Deviation 2: a read-modify-write is a
//! read first (line 20), then a write. Deviation 3: threads that wait for a stuck thread, other than for a lock, are stuck too:
//! join, start of a thread that is not created, a condition wait whose signal is missing, a barrier that not all reach, a
//! semaphore or another object to which something is not posted, an initialisation that is not done. Deviation 4: V is a bit for
//! each byte. Deviation 5: "local memory" (line 15) is memory for which V is never set; it needs no case of its own.
//!
//! Guarantee: the events of the prefix, in their order, are an execution of the program up to each thread's position, as every
//! read sees what it saw. Cost: O(events between a1 and a2).

use super::partner::Pair;
use rashomon_event::{Address, Event, EventIndex, EventKind, LockMode, ThreadId, Trace};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub order: Vec<EventIndex>,
    /// An access that conflicts with a1 and is next in its thread: the prefix alone is a witness [14].
    pub race: Option<EventIndex>,
    pub stuck: Vec<ThreadId>,
}

struct State<'a> {
    trace: &'a Trace,
    order: Vec<EventIndex>,
    stuck: HashSet<ThreadId>,
    /// V: of eight bytes each, those that a missing write would have changed.
    missing: HashMap<u64, u8>,
    /// Holders, with modes.
    held: HashMap<Address, Vec<(ThreadId, LockMode)>>,
    /// Threads created and ended, signals, posts and the like in the prefix.
    created: HashSet<ThreadId>,
    ended: HashSet<ThreadId>,
    included: HashSet<EventIndex>,
    /// Objects (with a barrier's generation) to which something is missing.
    lacking: HashSet<(Address, u32)>,
}

/// The bytes of an event's access: eight at a time, and which of them.
fn bytes_of(event: &Event) -> impl Iterator<Item = (u64, u8)> + use<> {
    let (from, to) = event.access().map_or((0, 0), |access| (access.address.0, access.address.0 + u64::from(access.size)));
    let words = if from < to { from / 8..(to - 1) / 8 + 1 } else { 0..0 };
    words.map(move |word| {
        let (low, high) = (from.max(word * 8) % 8, (to - 1).min(word * 8 + 7) % 8);
        (word, (0xff_u8 << low) & (0xff_u8 >> (7 - high)))
    })
}

impl State<'_> {
    fn include(&mut self, index: EventIndex) {
        let event = self.trace.event(index);
        match event.kind {
            EventKind::Acquire { lock, mode, .. } => self.held.entry(lock).or_default().push((event.thread, mode)),
            EventKind::WaitEnd { mutex, .. } => self.held.entry(mutex).or_default().push((event.thread, LockMode::Exclusive)),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                if let Some(holders) = self.held.get_mut(&lock)
                    && let Some(at) = holders.iter().rposition(|(thread, _)| *thread == event.thread)
                {
                    holders.remove(at);
                }
            }
            EventKind::Fork { child } => {
                self.created.insert(child);
            }
            EventKind::End => {
                self.ended.insert(event.thread);
            }
            _ => {}
        }
        if event.access().is_some_and(|access| access.class.writes()) {
            // [19]
            for (word, bytes) in bytes_of(&event) {
                if let Some(missing) = self.missing.get_mut(&word) {
                    *missing &= !bytes;
                }
            }
        }
        self.included.insert(index);
        self.order.push(index);
    }

    /// What others will miss of an event that is left out [8-10].
    fn leave_out(&mut self, index: EventIndex) {
        let event = self.trace.event(index);
        if event.access().is_some_and(|access| access.class.writes()) {
            for (word, bytes) in bytes_of(&event) {
                *self.missing.entry(word).or_default() |= bytes;
            }
        }
        let lacking = match event.kind {
            EventKind::Post { semaphore } => Some((semaphore, 0)),
            EventKind::ReleaseObject { object } => Some((object, 0)),
            EventKind::OnceBegin { once } | EventKind::OnceDone { once } => Some((once, 0)),
            EventKind::BarrierEnter { barrier, generation } => Some((barrier, generation)),
            _ => None,
        };
        self.lacking.extend(lacking);
    }

    fn held_by_others(&self, lock: Address, mode: LockMode, thread: ThreadId) -> bool {
        self.held.get(&lock).is_some_and(|holders| {
            holders.iter().any(|(holder, held)| *holder != thread && !(mode == LockMode::Shared && *held == LockMode::Shared))
        })
    }

    /// Whether the thread cannot do this without what is left out [20-31].
    fn gets_stuck(&self, event: &Event) -> bool {
        if event.access().is_some_and(|access| access.class.reads())
            && bytes_of(event).any(|(word, bytes)| self.missing.get(&word).is_some_and(|missing| missing & bytes != 0))
        {
            return true;
        }
        match event.kind {
            EventKind::Start => event.thread.0 != 0 && !self.created.contains(&event.thread),
            EventKind::Join { child, .. } => !self.ended.contains(&child),
            EventKind::Acquire { lock, mode, .. } => self.held_by_others(lock, mode, event.thread),
            EventKind::WaitEnd { mutex, woken_by, timed_out, .. } => {
                self.held_by_others(mutex, LockMode::Exclusive, event.thread)
                    || !timed_out && woken_by.is_some_and(|signal| !self.included.contains(&signal))
            }
            EventKind::BarrierExit { barrier, generation } => self.lacking.contains(&(barrier, generation)),
            EventKind::Take { semaphore } => self.lacking.contains(&(semaphore, 0)),
            EventKind::AcquireObject { object } => self.lacking.contains(&(object, 0)),
            EventKind::OnceSeen { once } | EventKind::OnceBegin { once } => self.lacking.contains(&(once, 0)),
            _ => false,
        }
    }
}

/// Π, extended; without the extension it is what precedes a1.
pub fn prefix(trace: &Trace, pair: Pair, extend: bool) -> Prefix {
    let mut state = State {
        trace,
        order: Vec::new(),
        stuck: HashSet::new(),
        missing: HashMap::new(),
        held: HashMap::new(),
        created: HashSet::new(),
        ended: HashSet::new(),
        included: HashSet::new(),
        lacking: HashSet::new(),
    };
    (0..pair.a1.0).map(EventIndex).for_each(|index| state.include(index));
    let a1 = trace.event(pair.a1);
    let mut race = None;
    if extend && let Some(first) = a1.access() {
        state.stuck.insert(a1.thread);
        for index in (pair.a1.0..=pair.a2.0).map(EventIndex) {
            let event = trace.event(index);
            if state.stuck.contains(&event.thread) {
                state.leave_out(index);
                continue;
            }
            // [12-14]
            if event.access().is_some_and(|access| access.conflicts(&first)) {
                race = Some(index);
                break;
            }
            if state.gets_stuck(&event) {
                state.stuck.insert(event.thread);
                state.leave_out(index);
                if state.stuck.len() == trace.threads.len() {
                    break;
                }
            } else {
                state.include(index);
            }
        }
    }
    let mut stuck: Vec<ThreadId> = state.stuck.into_iter().collect();
    stuck.sort_unstable();
    Prefix { order: state.order, race, stuck }
}
