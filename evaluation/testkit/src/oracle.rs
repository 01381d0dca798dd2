//! The brute-force oracle: every state that some reordering of a tiny trace reaches, and the races and deadlocks seen there.
//!
//! A state is how far each thread has run, plus what the path leaves behind (last writers under value causality, reads that saw
//! otherwise, signals that came before their waiter). Everything else is derived anew from the events that ran: slow, obvious,
//! and written without a look at the witness checker or the predictor, whose oracle it is. At most 64 events.

mod between;
mod meeting;

pub use between::{MOST_TRIPLES, come_between};
pub use meeting::can_meet;

use rashomon_event::{Address, EventIndex, EventKind, Gap, LockMode, ReadUse, ThreadId, Trace};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Which reorderings count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Every read sees, byte by byte, the writer it saw in the trace.
    pub reads_from: bool,
    /// Critical sections on one lock whose modes conflict keep their order (Mathur et al., POPL 2021, Definition 2).
    pub lock_order: bool,
}

impl Rules {
    pub const SYNCHRONISATION: Self = Self { reads_from: false, lock_order: false };
    pub const CAUSAL: Self = Self { reads_from: true, lock_order: false };
    pub const SYNC_PRESERVING: Self = Self { reads_from: true, lock_order: true };
}

/// What the reorderings reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    /// Conflicting accesses of different threads that are both next, smaller index first.
    pub races: BTreeSet<(EventIndex, EventIndex)>,
    /// Cycles of waiting acquisitions, joins and exits of barriers in the order of [`rashomon_event::CandidateKind::Deadlock`],
    /// rotated so that the smallest index is first.
    pub deadlocks: BTreeSet<Vec<EventIndex>>,
    pub states: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    ran: u64,
    writers: BTreeMap<u64, u32>,
    /// Waits whose signal came too early.
    missed: u64,
    /// Reads that saw something else than in the trace, as nothing that ran depends on them.
    changed: u64,
}

/// What a read sees of one byte.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    pub reader: EventIndex,
    pub byte: u64,
    /// The writer that it saw in the trace, and the one that it would see.
    pub saw: Option<EventIndex>,
    pub sees: Option<EventIndex>,
}

struct Oracle<'t> {
    trace: &'t Trace,
    rules: Rules,
    /// Under [`Rules::reads_from`], whether a read may see that.
    may_see: &'t dyn Fn(Sight) -> bool,
    threads: Vec<Vec<u32>>,
    saw: Vec<Vec<Option<u32>>>,
}

pub fn reachable(trace: &Trace, rules: Rules) -> Reachable {
    reachable_if(trace, rules, &|sight| sight.sees == sight.saw)
}

/// Where reads count, they may see what `may_see` says.
pub fn reachable_if(trace: &Trace, rules: Rules, may_see: &dyn Fn(Sight) -> bool) -> Reachable {
    assert!(trace.events.len() <= 64, "the oracle is for tiny traces");
    let oracle = Oracle::new(trace, rules, may_see);
    let start = State { ran: 0, writers: BTreeMap::new(), missed: 0, changed: 0 };
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![start];
    let mut reachable = Reachable::default();
    while let Some(state) = stack.pop() {
        oracle.observe(&state, &mut reachable);
        for thread in 0..oracle.threads.len() {
            if let Some(next) = oracle.next(&state, thread).and_then(|event| oracle.step(&state, event))
                && seen.insert(next.clone())
            {
                stack.push(next);
            }
        }
    }
    reachable.states = seen.len();
    reachable
}

/// Whether a call into unseen code may have ordered two events: both belong to calls that reach common memory, or one does and
/// the other one accesses what that call reaches. Every thread's start and end access its handle.
fn unseen_orders(trace: &Trace, before: u32, after: u32) -> bool {
    let event = |index: u32| trace.events.at(index as usize);
    let inside = |gap: &Gap, index: u32| {
        let begun = event(index).thread == gap.thread && gap.begin.0 <= index;
        begun && gap.end.is_none_or(|end| index <= end.0)
    };
    let meet = |one: (u64, u64), other: (u64, u64)| one.0 < other.0 + other.1 && other.0 < one.0 + one.1;
    let common = |one: &Gap, other: &Gap| {
        let memory = one.reach.iter().any(|a| other.reach.iter().any(|b| meet((a.0.0, a.1), (b.0.0, b.1))));
        memory || one.threads.iter().any(|thread| other.threads.contains(thread))
    };
    let touches = |gap: &Gap, index: u32| {
        let bytes = event(index).access().map(|access| (access.address.0, u64::from(access.size)));
        let handle = matches!(event(index).kind, EventKind::Start | EventKind::End);
        bytes.is_some_and(|bytes| gap.reach.iter().any(|range| meet(bytes, (range.0.0, range.1))))
            || handle && gap.threads.contains(&event(index).thread)
    };
    let gaps = &trace.gaps;
    event(before).thread != event(after).thread
        && (gaps
            .iter()
            .filter(|gap| inside(gap, before))
            .any(|gap| touches(gap, after) || gaps.iter().any(|other| inside(other, after) && common(gap, other)))
            || gaps.iter().any(|gap| inside(gap, after) && touches(gap, before)))
}

impl<'t> Oracle<'t> {
    fn new(trace: &'t Trace, rules: Rules, may_see: &'t dyn Fn(Sight) -> bool) -> Self {
        let mut threads = vec![Vec::new(); trace.threads.len()];
        let mut saw = Vec::new();
        let mut writers: BTreeMap<u64, u32> = BTreeMap::new();
        for (index, event) in trace.events.iter().enumerate() {
            threads[event.thread.index()].push(index as u32);
            let mut bytes = Vec::new();
            if let Some(access) = event.access() {
                for byte in access.address.0..access.address.0 + u64::from(access.size) {
                    if access.class.reads() {
                        bytes.push(writers.get(&byte).copied());
                    }
                    if access.class.writes() {
                        writers.insert(byte, index as u32);
                    }
                }
            }
            saw.push(bytes);
        }
        Self { trace, rules, may_see, threads, saw }
    }

    fn next(&self, state: &State, thread: usize) -> Option<u32> {
        self.threads[thread].iter().copied().find(|&event| state.ran >> event & 1 == 0)
    }

    fn ran<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (u32, ThreadId, EventKind)> + 'a {
        let events = self.trace.events.iter().enumerate();
        events.filter(|&(index, _)| state.ran >> index & 1 == 1).map(|(index, event)| (index as u32, event.thread, event.kind))
    }

    /// (thread, mode, acquisition) of every section of `lock` that is open.
    fn holders(&self, state: &State, lock: Address) -> Vec<(ThreadId, LockMode)> {
        let mut holders = Vec::new();
        for (_, thread, kind) in self.ran(state) {
            match kind {
                EventKind::Acquire { lock: other, mode, .. } if other == lock => holders.push((thread, mode)),
                EventKind::WaitEnd { mutex, .. } if mutex == lock => holders.push((thread, LockMode::Exclusive)),
                EventKind::Release { lock: other, mode } if other == lock => {
                    if let Some(place) = holders.iter().position(|&holder| holder == (thread, mode)) {
                        holders.remove(place);
                    }
                }
                EventKind::WaitBegin { mutex, .. } if mutex == lock => {
                    holders.retain(|&holder| holder != (thread, LockMode::Exclusive));
                }
                _ => {}
            }
        }
        holders
    }

    fn lock_is_free(&self, state: &State, event: u32, lock: Address, mode: LockMode) -> bool {
        let conflict = |other: LockMode| other == LockMode::Exclusive || mode == LockMode::Exclusive;
        if self.holders(state, lock).iter().any(|&(_, other)| conflict(other)) {
            return false;
        }
        !self.rules.lock_order
            || self.ran(state).all(|(index, _, kind)| match kind {
                EventKind::Acquire { lock: other, mode, .. } if other == lock && conflict(mode) => index < event,
                EventKind::WaitEnd { mutex, .. } if mutex == lock => index < event,
                _ => true,
            })
    }

    fn wait_begin(&self, wait_end: u32) -> Option<u32> {
        let thread = self.trace.events.at(wait_end as usize).thread;
        (0..wait_end).rev().find(|&index| {
            let event = self.trace.events.at(index as usize);
            event.thread == thread && matches!(event.kind, EventKind::WaitBegin { .. })
        })
    }

    fn semaphore(&self, events: impl Iterator<Item = EventKind>, of: Address) -> i64 {
        events
            .map(|kind| match kind {
                EventKind::Post { semaphore } if semaphore == of => 1,
                EventKind::Take { semaphore } if semaphore == of => -1,
                _ => 0,
            })
            .sum()
    }

    fn initial(&self, of: Address) -> i64 {
        let kinds = || self.trace.events.iter().map(|event| event.kind);
        let least = -(0..=self.trace.events.len()).map(|end| self.semaphore(kinds().take(end), of)).min().unwrap_or(0);
        self.trace.semaphores.get(&of).map_or(least, |&said| least.max(said as i64))
    }

    fn enabled(&self, state: &State, index: u32) -> bool {
        let ran = |event: u32| state.ran >> event & 1 == 1;
        let event = self.trace.events.at(index as usize);
        let all = || self.trace.events.iter().enumerate().map(|(index, event)| (index as u32, event));
        if all().any(|(fork, other)| other.kind == EventKind::Fork { child: event.thread } && !ran(fork)) {
            return false;
        }
        if !self.unseen_ran(state, index) {
            return false;
        }
        match event.kind {
            EventKind::Join { child, .. } => {
                let created = all().all(|(fork, other)| other.kind != EventKind::Fork { child } || ran(fork));
                created && self.threads[child.index()].iter().all(|&event| ran(event))
            }
            EventKind::Acquire { lock, mode, .. } => self.lock_is_free(state, index, lock, mode),
            EventKind::WaitEnd { mutex, woken_by, timed_out, .. } => {
                let woken = timed_out || woken_by.is_none_or(|signal| ran(signal.0) && state.missed >> index & 1 == 0);
                woken && self.lock_is_free(state, index, mutex, LockMode::Exclusive)
            }
            EventKind::BarrierExit { barrier, generation } => all()
                .filter(|(_, other)| other.kind == EventKind::BarrierEnter { barrier, generation })
                .all(|(enter, _)| ran(enter)),
            EventKind::Take { semaphore } => {
                let kinds = self.ran(state).map(|(_, _, kind)| kind);
                self.initial(semaphore) + self.semaphore(kinds, semaphore) > 0
            }
            EventKind::OnceSeen { once } => all()
                .take(index as usize)
                .rfind(|(_, other)| other.kind == EventKind::OnceDone { once })
                .is_none_or(|(done, _)| ran(done)),
            EventKind::AcquireObject { object } => all()
                .take(index as usize)
                .rfind(|(_, other)| other.kind == EventKind::ReleaseObject { object })
                .is_none_or(|(at, _)| ran(at)),
            _ => true,
        }
    }

    /// Whether all that calls into unseen code may have ordered before an event has run.
    fn unseen_ran(&self, state: &State, index: u32) -> bool {
        (0..index).all(|before| state.ran >> before & 1 == 1 || !unseen_orders(self.trace, before, index))
    }

    fn step(&self, state: &State, index: u32) -> Option<State> {
        if !self.enabled(state, index) || !self.happens(state, index) {
            return None;
        }
        let mut next = state.clone();
        next.ran |= 1 << index;
        let event = self.trace.events.at(index as usize);
        if let EventKind::Signal { .. } = event.kind {
            for (wait, other) in self.trace.events.iter().enumerate() {
                if matches!(other.kind, EventKind::WaitEnd { woken_by: Some(signal), timed_out: false, .. } if signal.0 == index)
                    && self.wait_begin(wait as u32).is_some_and(|begin| state.ran >> begin & 1 == 0)
                {
                    next.missed |= 1 << wait;
                }
            }
        }
        if let Some(access) = event.access()
            && self.rules.reads_from
        {
            let bytes = access.address.0..access.address.0 + u64::from(access.size);
            let sight = |byte: u64, saw: Option<u32>| Sight {
                reader: EventIndex(index),
                byte,
                saw: saw.map(EventIndex),
                sees: state.writers.get(&byte).copied().map(EventIndex),
            };
            let keeps = |sight: Sight| (self.may_see)(sight) && !sight.sees.is_some_and(|write| self.is_changed(state, write));
            if access.class.reads() && !bytes.clone().zip(&self.saw[index as usize]).all(|(byte, &saw)| keeps(sight(byte, saw))) {
                self.trace.use_of(EventIndex(index))?;
                next.changed |= 1 << index;
            }
            if access.class.writes() {
                next.writers.extend(bytes.map(|byte| (byte, index)));
            }
        }
        Some(next)
    }

    fn changed<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a ReadUse> + 'a {
        self.trace.uses.iter().filter(|one| state.changed >> one.read.0 & 1 == 1)
    }

    /// Whether an event that is next is the recorded one, whatever its thread has read.
    fn happens(&self, state: &State, index: u32) -> bool {
        let thread = self.trace.events.at(index as usize).thread;
        let of_thread = |read: EventIndex| self.trace.event(read).thread == thread;
        !self.changed(state).any(|one| of_thread(one.read) && one.first.is_some_and(|first| first.0 <= index))
    }

    /// Whether a write that ran need not be of its recorded value.
    fn is_changed(&self, state: &State, write: EventIndex) -> bool {
        self.changed(state).any(|one| one.written.contains(&write))
    }

    /// Of an event that is the next one of its thread: whether that has been created, and what calls into unseen code may have
    /// ordered before it has run.
    fn may_be_next(&self, state: &State, index: u32) -> bool {
        let thread = self.trace.events.at(index as usize).thread;
        let events = self.trace.events.iter().enumerate();
        let mut forks = events.filter(|(_, other)| other.kind == EventKind::Fork { child: thread });
        forks.all(|(fork, _)| state.ran >> fork & 1 == 1) && self.unseen_ran(state, index) && self.happens(state, index)
    }

    fn observe(&self, state: &State, reachable: &mut Reachable) {
        let next = (0..self.threads.len()).filter_map(|thread| self.next(state, thread));
        let next: Vec<u32> = next.filter(|&event| self.may_be_next(state, event)).collect();
        for &one in &next {
            for &other in &next {
                if let (Some(a), Some(b)) =
                    (self.trace.events.at(one as usize).access(), self.trace.events.at(other as usize).access())
                    && one < other
                    && a.conflicts(&b)
                {
                    reachable.races.insert((EventIndex(one), EventIndex(other)));
                }
            }
        }
        for (place, &first) in next.iter().enumerate() {
            // `next` is sorted by thread, not by index: any start will do, the rotation makes it canonical.
            self.cycles(state, &next[place..], &mut vec![first], reachable);
        }
    }

    /// Whether the thread of one next event cannot go on before that of another has: it wants a lock that the other holds, its
    /// end, or its entry of a barrier.
    fn waits_for(&self, state: &State, waiter: u32, holder: u32) -> bool {
        let holder = self.trace.events.at(holder as usize).thread;
        match self.trace.events.at(waiter as usize).kind {
            EventKind::Acquire { lock, mode, may_wait: true } | EventKind::Request { lock, mode } => self
                .holders(state, lock)
                .iter()
                .any(|&(thread, held)| thread == holder && (held == LockMode::Exclusive || mode == LockMode::Exclusive)),
            EventKind::WaitEnd { mutex, woken_by, timed_out, .. } => {
                let woken =
                    timed_out || woken_by.is_none_or(|signal| state.ran >> signal.0 & 1 == 1 && state.missed >> waiter & 1 == 0);
                woken && self.holders(state, mutex).iter().any(|&(thread, _)| thread == holder)
            }
            // It has a next event.
            EventKind::Join { child, may_wait: true } => child == holder,
            EventKind::BarrierExit { barrier, generation } => self.threads[holder.index()].iter().any(|&enter| {
                self.trace.events.at(enter as usize).kind == EventKind::BarrierEnter { barrier, generation }
                    && state.ran >> enter & 1 == 0
            }),
            _ => false,
        }
    }

    fn cycles(&self, state: &State, next: &[u32], path: &mut Vec<u32>, reachable: &mut Reachable) {
        let last = path[path.len() - 1];
        if path.len() >= 2 && self.waits_for(state, last, path[0]) {
            let least = (0..path.len()).min_by_key(|&place| path[place]).unwrap_or(0);
            let cycle = path[least..].iter().chain(&path[..least]).map(|&event| EventIndex(event));
            reachable.deadlocks.insert(cycle.collect());
        }
        for &other in next {
            if !path.contains(&other) && self.waits_for(state, last, other) {
                path.push(other);
                self.cycles(state, next, path, reachable);
                path.pop();
            }
        }
    }
}
