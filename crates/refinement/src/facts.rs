//! What a trace says about its synchronisation: which instance each event belongs to. One pass; terms and search start from it.

use rashomon_event::{Address, EventIndex, EventKind, LockMode, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A wait that a signal ended: an instance of its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// `None`: the trace does not have it.
    pub begin: Option<EventIndex>,
    pub signal: EventIndex,
    pub end: EventIndex,
}

/// A use of a barrier by all who meet there.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    pub enters: Vec<EventIndex>,
    pub exits: Vec<EventIndex>,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Per thread, its events in program order.
    pub threads: Vec<Vec<EventIndex>>,
    /// Per event, its place in its thread.
    pub position: Vec<u32>,
    /// Per thread, the fork that makes it.
    pub fork: Vec<Option<EventIndex>>,
    pub waits: Vec<Wait>,
    pub barriers: BTreeMap<(Address, u32), Barrier>,
    /// Initial counts of semaphores, no more than are ever taken.
    pub counts: BTreeMap<Address, u32>,
    /// The first has to come before the second: publication, once, what calls into unseen code may have
    /// ordered, and what atomic reads saw where that is asked for.
    pub edges: Vec<(EventIndex, EventIndex)>,
    /// Releases of locks that their thread does not hold: they do nothing.
    pub idle: FxHashSet<EventIndex>,
    /// Waits with which threads ended: requests for locks, and others. Empty unless they are asked for.
    pub unanswered: FxHashSet<EventIndex>,
}

/// Which orders of atomic accesses the model admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomics {
    /// Any: values are ignored.
    Free,
    /// An atomic read comes after the writes that it saw.
    Kept,
}

impl Facts {
    pub fn new(trace: &Trace, atomics: Atomics) -> Self {
        let count = rashomon_order::happens_before::thread_count(trace);
        let mut facts = Self { threads: vec![Vec::new(); count], fork: vec![None; count], ..Self::default() };
        let mut waiting: Vec<Option<EventIndex>> = vec![None; count];
        let mut held: FxHashMap<(u32, Address, LockMode), u32> = FxHashMap::default();
        let mut takes: FxHashMap<Address, u32> = FxHashMap::default();
        let mut released: FxHashMap<(Address, bool), EventIndex> = FxHashMap::default();
        for (index, event) in trace.indices().zip(&trace.events) {
            let thread = event.thread.index();
            facts.position.push(facts.threads[thread].len() as u32);
            facts.threads[thread].push(index);
            let mut hold = |lock, mode| *held.entry((event.thread.0, lock, mode)).or_default() += 1;
            match event.kind {
                EventKind::Fork { child } if child.index() < count && facts.fork[child.index()].is_none() => {
                    facts.fork[child.index()] = Some(index);
                }
                EventKind::Acquire { lock, mode, .. } => hold(lock, mode),
                EventKind::WaitEnd { mutex, woken_by, timed_out, .. } => {
                    hold(mutex, LockMode::Exclusive);
                    let begin = waiting[thread].take();
                    if let Some(signal) = woken_by.filter(|signal| !timed_out && signal.index() < trace.events.len()) {
                        facts.waits.push(Wait { begin, signal, end: index });
                    }
                }
                EventKind::Release { lock, mode } => facts.release(&mut held, index, (event.thread.0, lock, mode)),
                EventKind::WaitBegin { mutex, .. } => {
                    waiting[thread] = Some(index);
                    facts.release(&mut held, index, (event.thread.0, mutex, LockMode::Exclusive));
                }
                EventKind::BarrierEnter { barrier, generation } => {
                    facts.barriers.entry((barrier, generation)).or_default().enters.push(index);
                }
                EventKind::BarrierExit { barrier, generation } => {
                    facts.barriers.entry((barrier, generation)).or_default().exits.push(index);
                }
                EventKind::Take { semaphore } => *takes.entry(semaphore).or_default() += 1,
                EventKind::OnceDone { once } => _ = released.insert((once, true), index),
                EventKind::ReleaseObject { object } => _ = released.insert((object, false), index),
                EventKind::OnceSeen { once } => facts.edges.extend(released.get(&(once, true)).map(|&done| (done, index))),
                EventKind::AcquireObject { object } => {
                    facts.edges.extend(released.get(&(object, false)).map(|&release| (release, index)));
                }
                _ => {}
            }
        }
        for (semaphore, count) in rashomon_order::initial_counts(trace) {
            let most = takes.get(&semaphore).copied().unwrap_or(0);
            facts.counts.insert(semaphore, u32::try_from(count).unwrap_or(most).min(most));
        }
        facts.edges.extend(&trace.kept);
        if atomics == Atomics::Kept {
            facts.keep_atomics(trace);
        }
        facts
    }

    /// What each thread waited for when the recording ended.
    pub(crate) fn keep_unanswered(&mut self, trace: &Trace) {
        for events in &self.threads {
            let mut last = events.iter().rev().copied();
            let Some(event) = last.next() else { continue };
            let request = |event: &EventIndex| matches!(trace.kind(*event), EventKind::Request { .. });
            let unanswered = match trace.kind(event) {
                EventKind::Request { .. } => Some(event),
                EventKind::Blocked { .. } => Some(last.next().filter(request).unwrap_or(event)),
                _ => None,
            };
            self.unanswered.extend(unanswered);
        }
    }

    fn release(
        &mut self,
        held: &mut FxHashMap<(u32, Address, LockMode), u32>,
        index: EventIndex,
        what: (u32, Address, LockMode),
    ) {
        match held.get_mut(&what).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => _ = self.idle.insert(index),
        }
    }

    /// Of the bytes that some atomic access reads, the last writer of each before it, whoever writes how.
    fn keep_atomics(&mut self, trace: &Trace) {
        let bytes = |access: rashomon_event::Access| access.address.0..access.address.0.saturating_add(u64::from(access.size));
        let accesses = || trace.indices().filter_map(|index| Some((index, trace.access(index)?)));
        let atomic = |access: &rashomon_event::Access| access.atomic && access.class.reads();
        let mut writers: FxHashMap<u64, Option<EventIndex>> = accesses()
            .filter(|(_, access)| atomic(access))
            .flat_map(|(_, access)| bytes(access))
            .map(|byte| (byte, None))
            .collect();
        if writers.is_empty() {
            return;
        }
        let lowest = writers.keys().copied().min().unwrap_or(0);
        let highest = writers.keys().copied().max().unwrap_or(0);
        for (index, access) in accesses() {
            let touched = bytes(access);
            if touched.end <= lowest || touched.start > highest {
                continue;
            }
            if atomic(&access) {
                let mut last = None;
                for byte in touched.clone() {
                    if let Some(&Some(writer)) = writers.get(&byte)
                        && last != Some(writer)
                    {
                        last = Some(writer);
                        self.edges.push((writer, index));
                    }
                }
            }
            if access.class.writes() {
                for byte in touched.start.max(lowest)..touched.end.min(highest + 1) {
                    if let Some(writer) = writers.get_mut(&byte) {
                        *writer = Some(index);
                    }
                }
            }
        }
    }

    /// Thread and place of an event.
    pub fn place(&self, trace: &Trace, event: EventIndex) -> (usize, u32) {
        (trace.event(event).thread.index(), self.position[event.index()])
    }
}
