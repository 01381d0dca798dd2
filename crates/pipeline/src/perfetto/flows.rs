//! Which event of another thread an event comes after, because of what both do.

use rashomon_event::{Address, Event, EventIndex, EventKind, ThreadId, Trace};
use std::collections::{BTreeMap, HashMap};

/// Flows by number, from where they begin and to where they end.
#[derive(Debug, Default)]
pub struct Flows {
    from: BTreeMap<EventIndex, Vec<u64>>,
    to: BTreeMap<EventIndex, Vec<u64>>,
}

impl Flows {
    /// In one pass, with the latest release of everything.
    pub fn of(trace: &Trace) -> Self {
        let (mut flows, mut latest, mut number) = (Self::default(), Latest::default(), 0);
        for index in trace.indices() {
            let event = trace.event(index);
            for source in latest.before(&event) {
                if trace.event(source).thread != event.thread {
                    number += 1;
                    flows.from.entry(source).or_default().push(number);
                    flows.to.entry(index).or_default().push(number);
                }
            }
            latest.remember(index, &event);
        }
        flows
    }

    pub fn from(&self, event: EventIndex) -> &[u64] {
        self.from.get(&event).map_or(&[], Vec::as_slice)
    }

    pub fn to(&self, event: EventIndex) -> &[u64] {
        self.to.get(&event).map_or(&[], Vec::as_slice)
    }
}

/// The latest event that released each thing.
#[derive(Default)]
pub struct Latest {
    forks: HashMap<ThreadId, EventIndex>,
    ends: HashMap<ThreadId, EventIndex>,
    locks: HashMap<Address, EventIndex>,
    objects: HashMap<Address, EventIndex>,
    barriers: HashMap<(Address, u32), Vec<EventIndex>>,
    atomics: HashMap<Address, EventIndex>,
}

impl Latest {
    /// What an event comes after.
    pub fn before(&self, event: &Event) -> Vec<EventIndex> {
        let one = |found: Option<&EventIndex>| found.copied().into_iter().collect();
        match event.kind {
            EventKind::Start => one(self.forks.get(&event.thread)),
            EventKind::Join { child, .. } => one(self.ends.get(&child)),
            EventKind::Acquire { lock, .. } => one(self.locks.get(&lock)),
            EventKind::WaitEnd { mutex, woken_by, .. } => woken_by.into_iter().chain(self.locks.get(&mutex).copied()).collect(),
            EventKind::BarrierExit { barrier, generation } => {
                self.barriers.get(&(barrier, generation)).cloned().unwrap_or_default()
            }
            EventKind::Take { semaphore: object }
            | EventKind::OnceSeen { once: object }
            | EventKind::AcquireObject { object } => one(self.objects.get(&object)),
            EventKind::Atomic { access, .. } if access.class.reads() => one(self.atomics.get(&access.address)),
            _ => Vec::new(),
        }
    }

    pub fn remember(&mut self, index: EventIndex, event: &Event) {
        match event.kind {
            EventKind::Fork { child } => _ = self.forks.insert(child, index),
            EventKind::End => _ = self.ends.insert(event.thread, index),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => _ = self.locks.insert(lock, index),
            EventKind::BarrierEnter { barrier, generation } => {
                self.barriers.entry((barrier, generation)).or_default().push(index);
            }
            EventKind::Post { semaphore: object }
            | EventKind::OnceDone { once: object }
            | EventKind::ReleaseObject { object } => _ = self.objects.insert(object, index),
            EventKind::Atomic { access, .. } if access.class.writes() => _ = self.atomics.insert(access.address, index),
            _ => {}
        }
    }
}
