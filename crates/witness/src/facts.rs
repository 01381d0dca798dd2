//! What the trace says about its synchronisation instances: which fork made a thread, which wait a wake-up belongs to, which
//! events entered a barrier. One pass over the trace.

use rashomon_event::{Address, EventIndex, EventKind, Trace};
use std::collections::{HashMap, HashSet};

pub(crate) struct Facts {
    /// Per thread, the fork that makes it.
    pub fork: Vec<Option<EventIndex>>,
    /// Per `WaitEnd`: its own `WaitBegin`.
    pub wait_begin: HashMap<EventIndex, EventIndex>,
    /// Begins of waits, and the signals that ended waits.
    pub paired: HashSet<EventIndex>,
    pub entered: HashMap<(Address, u32), Vec<EventIndex>>,
    /// The initial count: the one given, or the least under which the trace itself is possible if that is more (or none was
    /// given).
    pub initial_count: HashMap<Address, u64>,
    /// Per `OnceSeen` and `AcquireObject`: the latest `OnceDone` or `ReleaseObject` on its object before it.
    pub released: HashMap<EventIndex, EventIndex>,
}

impl Facts {
    pub fn new(trace: &Trace) -> Self {
        let count = trace.events.last_thread().map_or(0, |last| last.index() + 1).max(trace.threads.len());
        let mut facts = Self {
            fork: vec![None; count],
            wait_begin: HashMap::new(),
            paired: HashSet::new(),
            entered: HashMap::new(),
            initial_count: trace.semaphores.iter().map(|(&semaphore, &count)| (semaphore, count)).collect(),
            released: HashMap::new(),
        };
        let mut waiting: Vec<Option<EventIndex>> = vec![None; count];
        let mut balance: HashMap<Address, i64> = HashMap::new();
        let mut done: HashMap<Address, EventIndex> = HashMap::new();
        let mut latest: HashMap<Address, EventIndex> = HashMap::new();
        for (index, event) in trace.events.select([trace.events.besides_accesses()]) {
            let thread = event.thread.index();
            match event.kind {
                EventKind::Fork { child } if child.index() < count && facts.fork[child.index()].is_none() => {
                    facts.fork[child.index()] = Some(index);
                }
                EventKind::WaitBegin { .. } => waiting[thread] = Some(index),
                EventKind::WaitEnd { woken_by, .. } => {
                    facts.paired.extend(woken_by);
                    if let Some(begin) = waiting[thread].take() {
                        facts.wait_begin.insert(index, begin);
                        facts.paired.insert(begin);
                    }
                }
                EventKind::BarrierEnter { barrier, generation } => {
                    facts.entered.entry((barrier, generation)).or_default().push(index);
                }
                EventKind::Post { semaphore } => *balance.entry(semaphore).or_default() += 1,
                EventKind::Take { semaphore } => {
                    let balance = balance.entry(semaphore).or_default();
                    *balance -= 1;
                    let least = facts.initial_count.entry(semaphore).or_default();
                    *least = (*least).max(u64::try_from(-*balance).unwrap_or(0));
                }
                EventKind::OnceDone { once } => {
                    done.insert(once, index);
                }
                EventKind::OnceSeen { once } => {
                    if let Some(&needed) = done.get(&once) {
                        facts.released.insert(index, needed);
                    }
                }
                EventKind::ReleaseObject { object } => {
                    latest.insert(object, index);
                }
                EventKind::AcquireObject { object } => {
                    if let Some(&needed) = latest.get(&object) {
                        facts.released.insert(index, needed);
                    }
                }
                _ => {}
            }
        }
        facts
    }
}
