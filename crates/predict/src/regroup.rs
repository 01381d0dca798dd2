//! The same reordering with fewer context switches.
//!
//! Two orders of the same events are equivalent if they agree on program order, on the needs of instances, on the order of
//! conflicting sections of each lock and on the order of accesses to a common granule of which one writes (Mazurkiewicz, "Trace
//! theory", 1986): then every read sees the same writer. [`Order::of`] gathers these constraints from one order, and [`regroup`]
//! runs one thread for as long as they allow, then the thread that it waits for. Whatever the order was valid for, the regrouped
//! one is as well.
//!
//! The constraints of the whole trace serve every projection of it onto a closed set: a constraint on events outside the set is
//! weakened to "all of that thread's events in the set", which the projection itself satisfies, so no cycle can arise.

use crate::closure::Cut;
use crate::dependences::Dependences;
use crate::index::{Effect, Index, Section};
use rashomon_event::{EventIndex, LockMode};
use rashomon_order::SharedMemory;
use rustc_hash::FxHashMap;

/// Per thread, how many of its events there were when it last did so. Not only the last of all threads: the thread in between may
/// be outside the set.
type Last = Vec<(u32, u32)>;

#[derive(Default)]
struct Granule {
    writers: Last,
    readers: Last,
}

#[derive(Default)]
struct Lock {
    exclusive: Last,
    shared: Last,
}

fn set(list: &mut Last, thread: u32, count: u32) {
    match list.iter_mut().find(|entry| entry.0 == thread) {
        Some(entry) => entry.1 = count,
        None => list.push((thread, count)),
    }
}

/// Builds the constraints of one order.
pub struct Order<'i, 't> {
    index: &'i Index<'t>,
    cut: &'i Cut,
    constraints: Dependences,
    granules: FxHashMap<u32, Granule>,
    locks: FxHashMap<u32, Lock>,
    next_step: Vec<u32>,
    /// Sections that stay open come after all that they exclude, whatever the order says.
    open_last: bool,
}

impl<'i, 't> Order<'i, 't> {
    /// The constraints that an order of the events below `cut` imposes on its equivalents (beside the needs of instances).
    pub fn of(index: &'i Index<'t>, memory: &SharedMemory, cut: &'i Cut, order: impl Iterator<Item = EventIndex>) -> Dependences {
        Self::build(index, memory, cut, order, false)
    }

    /// The same, but for sections that stay open below the cut: they come last of their lock.
    pub fn open_last(
        index: &'i Index<'t>,
        memory: &SharedMemory,
        cut: &'i Cut,
        order: impl Iterator<Item = EventIndex>,
    ) -> Dependences {
        Self::build(index, memory, cut, order, true)
    }

    fn build(
        index: &'i Index<'t>,
        memory: &SharedMemory,
        cut: &'i Cut,
        order: impl Iterator<Item = EventIndex>,
        open_last: bool,
    ) -> Dependences {
        let threads = index.thread_count();
        let mut builder = Self {
            open_last,
            index,
            cut,
            constraints: Dependences::new(threads),
            granules: FxHashMap::default(),
            locks: FxHashMap::default(),
            next_step: vec![0; threads],
        };
        for event in order {
            builder.event(event, memory);
        }
        builder.constraints.seal();
        builder.constraints
    }

    fn event(&mut self, event: EventIndex, memory: &SharedMemory) {
        let (thread, at) = self.index.place(event);
        if let Some(access) = self.index.trace.access(event) {
            for (granule, _) in memory.granules(&access) {
                self.access(thread, at, granule as u32, access.class.writes());
            }
        }
        let next = &mut self.next_step[thread as usize];
        if let Some(step) = self.index.steps[thread as usize].get(*next as usize)
            && step.at == at
        {
            *next += 1;
            self.lock(thread, at, step.effect);
            self.signal(event, thread, at);
        }
    }

    fn access(&mut self, thread: u32, at: u32, granule: u32, writes: bool) {
        let granule = self.granules.entry(granule).or_default();
        self.constraints.add_all(thread, at, &granule.writers);
        if writes {
            self.constraints.add_all(thread, at, &granule.readers);
            set(&mut granule.writers, thread, at + 1);
        } else {
            set(&mut granule.readers, thread, at + 1);
        }
    }

    fn lock(&mut self, thread: u32, at: u32, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Acquire(number) => {
                let section = self.index.sections[number as usize];
                if self.open_last && section.release >= self.cut[thread as usize] {
                    return self.last_of_its_lock(&section);
                }
                let lock = self.locks.entry(section.lock).or_default();
                self.constraints.add_all(thread, at, &lock.exclusive);
                if section.mode == LockMode::Exclusive {
                    self.constraints.add_all(thread, at, &lock.shared);
                }
            }
            Effect::Release(number) => {
                let section = self.index.sections[number as usize];
                let lock = self.locks.entry(section.lock).or_default();
                let last = match section.mode {
                    LockMode::Exclusive => &mut lock.exclusive,
                    LockMode::Shared => &mut lock.shared,
                };
                set(last, thread, at + 1);
            }
        }
    }

    fn last_of_its_lock(&mut self, section: &Section) {
        for use_ in &self.index.sections_on[section.lock as usize] {
            let cut = self.cut[use_.thread as usize];
            let sections = if section.mode == LockMode::Exclusive { &use_.sections } else { &use_.exclusive };
            let sections = sections.iter().map(|&number| &self.index.sections[number as usize]);
            let ended = sections.take_while(|other| other.acquire < cut).filter(|other| other.release < cut);
            if let Some(count) = ended.map(|other| other.release + 1).max() {
                self.constraints.add(section.thread, section.acquire, use_.thread, count);
            }
        }
    }

    /// A waiter that this signal wakes waits already.
    fn signal(&mut self, event: EventIndex, thread: u32, at: u32) {
        for wait in self.index.woken_by.get(&event).into_iter().flatten() {
            if wait.end < self.cut[wait.thread as usize] {
                self.constraints.add(thread, at, wait.thread, wait.begin + 1);
            }
        }
    }
}

/// An equivalent order of the events below `cut`. `lists` are all constraints; together with program order they must be free of
/// cycles. `None` if they are not.
pub fn regroup(index: &Index<'_>, cut: &Cut, lists: &[&Dependences]) -> Option<Vec<EventIndex>> {
    let threads = cut.len();
    let mut done: Cut = vec![0; threads];
    let mut next = vec![vec![0usize; threads]; lists.len()];
    let total: usize = cut.iter().map(|&count| count as usize).sum();
    let mut order = Vec::with_capacity(total);
    let mut current = 0;
    let mut idle = 0;
    while order.len() < total {
        let before = order.len();
        let waits_for = run(index, cut, lists, &mut next, &mut done, current, &mut order);
        idle = if order.len() == before { idle + 1 } else { 0 };
        if idle > 2 * threads {
            return None;
        }
        current = match waits_for {
            Some(thread) => thread,
            None => (0..threads).find(|&thread| done[thread] < cut[thread]).unwrap_or(0),
        };
    }
    Some(order)
}

/// Runs one thread as far as it gets; returns the thread it then waits for.
fn run(
    index: &Index<'_>,
    cut: &Cut,
    lists: &[&Dependences],
    next: &mut [Vec<usize>],
    done: &mut Cut,
    thread: usize,
    order: &mut Vec<EventIndex>,
) -> Option<usize> {
    while done[thread] < cut[thread] {
        let mut until = cut[thread];
        let mut waits_for = None;
        for (list, next) in lists.iter().zip(next.iter_mut()) {
            let next = &mut next[thread];
            while let Some(need) = list.of(thread).get(*next) {
                let on = need.thread as usize;
                if need.at >= cut[thread] {
                    break;
                }
                if done[on] < need.count.min(cut[on]) {
                    if need.at < until || (need.at == until && waits_for.is_none()) {
                        until = need.at;
                        waits_for = Some(on);
                    }
                    break;
                }
                *next += 1;
            }
        }
        let start = done[thread];
        order.extend(index.threads.range(thread, start..until.max(start)));
        done[thread] = until.max(start);
        if waits_for.is_some() {
            return waits_for;
        }
    }
    None
}
