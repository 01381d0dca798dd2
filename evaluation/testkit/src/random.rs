//! Random feasible traces: tiny ones with every kind of synchronisation for the oracles, large ones for throughput.

use crate::builder::TraceBuilder;
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, MemoryOrder, SiteId, ThreadId, Trace,
};

pub use rashomon_abi::numbers::SplitMix;

/// What a random trace may contain beside accesses and exclusive locks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    pub shared_locks: bool,
    pub partial_overlaps: bool,
    pub atomics: bool,
    /// Atomics may be relaxed; otherwise loads acquire and stores release.
    pub relaxed: bool,
    pub fork_join: bool,
    pub conditions: bool,
    pub barriers: bool,
    pub semaphores: bool,
    pub once: bool,
}

impl Features {
    pub const ALL: Self = Self {
        shared_locks: true,
        partial_overlaps: true,
        atomics: true,
        relaxed: true,
        fork_join: true,
        conditions: true,
        barriers: true,
        semaphores: true,
        once: true,
    };
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub threads: u32,
    pub events: usize,
    /// With none, the trace is locks (and what else is asked for).
    pub variables: u64,
    pub locks: u64,
    pub features: Features,
}

const VARIABLE: u64 = 0x1_0000;
const LOCK: u64 = 0x2_0000;
const CONDITION: u64 = 0x3_0000;
const BARRIER: u64 = 0x4_0000;
const SEMAPHORE: u64 = 0x5_0000;
const ONCE: u64 = 0x6_0000;
const OBJECT: u64 = 0x7_0000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unborn,
    Running,
    /// Since this `WaitBegin`; woken by that signal.
    Waiting {
        lock: u64,
        woken_by: Option<EventIndex>,
    },
    InBarrier {
        generation: u32,
    },
    Ended,
    Joined,
}

struct Simulation {
    rng: SplitMix,
    shape: Shape,
    builder: TraceBuilder,
    phases: Vec<Phase>,
    held: Vec<Vec<(u64, LockMode)>>,
    generation: u32,
    in_barrier: u32,
    semaphore: u64,
    once_done: bool,
    released: bool,
}

/// A random feasible trace. Every event has a site of its own.
pub fn random(seed: u64, shape: Shape) -> Trace {
    let born = if shape.features.fork_join { Phase::Unborn } else { Phase::Running };
    let mut phases = vec![born; shape.threads as usize];
    phases[0] = Phase::Running;
    let mut simulation = Simulation {
        rng: SplitMix(seed),
        shape,
        builder: TraceBuilder::with_threads(shape.threads),
        phases,
        held: vec![Vec::new(); shape.threads as usize],
        generation: 0,
        in_barrier: 0,
        semaphore: 0,
        once_done: false,
        released: false,
    };
    simulation.begin_semaphore(seed);
    // A draw may be impossible in its state; enough draws fill any trace that is not blocked.
    for _ in 0..shape.events * 40 {
        if simulation.builder.len() >= shape.events {
            break;
        }
        let thread = simulation.rng.below(u64::from(shape.threads)) as usize;
        simulation.step(thread);
    }
    simulation.builder.build()
}

impl Simulation {
    fn push(&mut self, thread: usize, kind: EventKind) -> EventIndex {
        self.builder.push(ThreadId(thread as u32), kind)
    }

    /// It begins with 0 to 3. One trace in four does not say so, one says too little, as where posts are missing.
    fn begin_semaphore(&mut self, seed: u64) {
        let mut rng = SplitMix(!seed);
        self.semaphore = rng.below(4);
        let said = match rng.below(4) {
            0 => None,
            1 => Some(self.semaphore.saturating_sub(1)),
            _ => Some(self.semaphore),
        };
        if let Some(count) = said.filter(|_| self.shape.features.semaphores) {
            self.builder.semaphore(Address(SEMAPHORE), count);
        }
    }

    fn free(&self, lock: u64, mode: LockMode) -> bool {
        self.held.iter().flatten().all(|&(held, other)| held != lock || (other == LockMode::Shared && mode == LockMode::Shared))
    }

    fn step(&mut self, thread: usize) {
        match self.phases[thread] {
            Phase::Unborn | Phase::Ended | Phase::Joined => {}
            Phase::Waiting { lock, woken_by } => {
                let timed_out = woken_by.is_none() && self.rng.below(6) == 0;
                if self.free(lock, LockMode::Exclusive) && (woken_by.is_some() || timed_out) {
                    let (condition, mutex) = (Address(CONDITION), Address(lock));
                    self.push(thread, EventKind::WaitEnd { condition, mutex, woken_by, timed_out });
                    self.held[thread].push((lock, LockMode::Exclusive));
                    self.phases[thread] = Phase::Running;
                }
            }
            Phase::InBarrier { generation } => {
                if generation < self.generation {
                    self.push(thread, EventKind::BarrierExit { barrier: Address(BARRIER), generation });
                    self.phases[thread] = Phase::Running;
                }
            }
            Phase::Running => self.act(thread),
        }
    }

    fn act(&mut self, thread: usize) {
        let features = self.shape.features;
        let draw = if self.shape.variables > 0 {
            self.rng.below(20)
        } else {
            // Locks, and what makes threads wait for each other.
            const DRAWS: [u64; 10] = [7, 8, 9, 10, 11, 12, 15, 16, 17, 18];
            DRAWS[self.rng.below(if features.fork_join || features.conditions || features.barriers { 10 } else { 6 }) as usize]
        };
        match draw {
            0..=6 => self.access(thread),
            7..=9 => self.acquire(thread),
            10..=12 => {
                if let Some((lock, mode)) = self.held[thread].pop() {
                    self.push(thread, EventKind::Release { lock: Address(lock), mode });
                }
            }
            13 | 14 if features.atomics => self.atomic(thread),
            15 | 16 if features.fork_join => self.fork_or_join(thread),
            17 if features.conditions => self.condition(thread),
            18 if features.barriers => {
                self.push(thread, EventKind::BarrierEnter { barrier: Address(BARRIER), generation: self.generation });
                self.phases[thread] = Phase::InBarrier { generation: self.generation };
                self.in_barrier += 1;
                if self.in_barrier == 2 {
                    self.in_barrier = 0;
                    self.generation += 1;
                }
            }
            19 if features.semaphores || features.once => self.count_or_release(thread),
            _ if self.shape.variables > 0 => self.access(thread),
            _ => self.acquire(thread),
        }
    }

    fn access(&mut self, thread: usize) {
        let class = [AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite][self.rng.below(3) as usize];
        let variable = VARIABLE + 16 * self.rng.below(self.shape.variables);
        let (offset, size) = if self.shape.features.partial_overlaps {
            [(0, 8), (0, 4), (4, 4), (2, 4), (6, 8)][self.rng.below(5) as usize]
        } else {
            (0, 8)
        };
        self.builder.access(ThreadId(thread as u32), class, Address(variable + offset), size);
    }

    fn acquire(&mut self, thread: usize) {
        let lock = LOCK + 64 * self.rng.below(self.shape.locks);
        let shared = self.shape.features.shared_locks && self.rng.below(3) == 0;
        let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
        if self.free(lock, mode) && !self.held[thread].iter().any(|&(held, _)| held == lock) {
            let may_wait = self.rng.below(8) != 0;
            self.push(thread, EventKind::Acquire { lock: Address(lock), mode, may_wait });
            self.held[thread].push((lock, mode));
        }
    }

    fn atomic(&mut self, thread: usize) {
        let (class, op) = [
            (AccessClass::Read, AtomicOp::Load),
            (AccessClass::Write, AtomicOp::Store),
            (AccessClass::ReadWrite, AtomicOp::Rmw),
            (AccessClass::Read, AtomicOp::CasFailed),
        ][self.rng.below(4) as usize];
        let order = if self.shape.features.relaxed && self.rng.below(2) == 0 {
            MemoryOrder::Relaxed
        } else {
            match class {
                AccessClass::Read => MemoryOrder::Acquire,
                AccessClass::Write => MemoryOrder::Release,
                AccessClass::ReadWrite | AccessClass::End => MemoryOrder::AcqRel,
            }
        };
        let access =
            Access { address: Address(VARIABLE + 16 * self.rng.below(self.shape.variables)), size: 8, class, atomic: true };
        self.push(thread, EventKind::Atomic { access, op, order, value: 0 });
    }

    fn fork_or_join(&mut self, thread: usize) {
        if let Some(child) = self.phases.iter().position(|&phase| phase == Phase::Unborn) {
            self.push(thread, EventKind::Fork { child: ThreadId(child as u32) });
            self.phases[child] = Phase::Running;
        } else if let Some(child) = self.phases.iter().position(|&phase| phase == Phase::Ended) {
            let may_wait = !self.builder.len().is_multiple_of(8);
            self.push(thread, EventKind::Join { child: ThreadId(child as u32), may_wait });
            self.phases[child] = Phase::Joined;
        } else if thread != 0 && self.held[thread].is_empty() {
            self.push(thread, EventKind::End);
            self.phases[thread] = Phase::Ended;
        }
    }

    fn condition(&mut self, thread: usize) {
        let exclusive = self.held[thread].iter().position(|&(_, mode)| mode == LockMode::Exclusive);
        match exclusive {
            Some(place) if self.rng.below(2) == 0 => {
                let (lock, _) = self.held[thread].remove(place);
                self.push(thread, EventKind::WaitBegin { condition: Address(CONDITION), mutex: Address(lock) });
                self.phases[thread] = Phase::Waiting { lock, woken_by: None };
            }
            _ => {
                let broadcast = self.rng.below(2) == 0;
                let signal = self.push(thread, EventKind::Signal { condition: Address(CONDITION), broadcast });
                for phase in &mut self.phases {
                    if let Phase::Waiting { woken_by: woken_by @ None, .. } = phase {
                        *woken_by = Some(signal);
                        if !broadcast {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn count_or_release(&mut self, thread: usize) {
        let features = self.shape.features;
        if features.semaphores && (!features.once || self.rng.below(2) == 0) {
            let semaphore = Address(SEMAPHORE);
            if self.semaphore > 0 && self.rng.below(2) == 0 {
                self.semaphore -= 1;
                self.push(thread, EventKind::Take { semaphore });
            } else {
                self.semaphore += 1;
                self.push(thread, EventKind::Post { semaphore });
            }
        } else if self.rng.below(2) == 0 {
            let once = Address(ONCE);
            let kind = if self.once_done { EventKind::OnceSeen { once } } else { EventKind::OnceDone { once } };
            self.once_done = true;
            self.push(thread, kind);
        } else {
            let object = Address(OBJECT);
            let acquire = self.released && self.rng.below(2) == 0;
            self.released = true;
            self.push(thread, if acquire { EventKind::AcquireObject { object } } else { EventKind::ReleaseObject { object } });
        }
    }
}

/// A large feasible trace: nested critical sections over data that their locks protect, thread-local and read-shared data, and a
/// few unprotected variables. Sites are few, as in a program.
pub fn large(seed: u64, threads: u32, locks: u64, events: usize) -> Trace {
    let mut rng = SplitMix(seed);
    let mut builder = TraceBuilder::with_threads(threads);
    let mut held: Vec<Vec<u64>> = vec![Vec::new(); threads as usize];
    let mut holder: Vec<Option<usize>> = vec![None; locks as usize];
    for child in 1..threads {
        builder.push_at(ThreadId(0), EventKind::Fork { child: ThreadId(child) }, SiteId(0));
    }
    while builder.len() < events {
        let thread = rng.below(u64::from(threads)) as usize;
        let id = ThreadId(thread as u32);
        for _ in 0..1 + rng.below(30) {
            let draw = rng.below(100);
            let innermost = held[thread].last().copied();
            if draw < 5 {
                let lock = innermost.map_or(0, |lock| lock + 1) + rng.below(locks);
                if lock < locks && holder[lock as usize].is_none() {
                    holder[lock as usize] = Some(thread);
                    held[thread].push(lock);
                    let kind = EventKind::Acquire { lock: Address(LOCK + 64 * lock), mode: LockMode::Exclusive, may_wait: true };
                    builder.push_at(id, kind, SiteId(1 + (lock % 50) as u32));
                }
            } else if draw < 12 {
                if let Some(lock) = held[thread].pop() {
                    holder[lock as usize] = None;
                    let kind = EventKind::Release { lock: Address(LOCK + 64 * lock), mode: LockMode::Exclusive };
                    builder.push_at(id, kind, SiteId(51 + (lock % 50) as u32));
                }
            } else {
                let class = if rng.below(3) == 0 { AccessClass::Write } else { AccessClass::Read };
                let (address, class, site) = match innermost {
                    _ if draw < 14 && rng.below(4) == 0 => (0x100_0000 + 8 * rng.below(50), class, 200 + rng.below(20)),
                    Some(lock) if draw < 60 => (0x200_0000 + 0x1000 * lock + 8 * rng.below(40), class, 300 + rng.below(100)),
                    _ if draw < 70 => (0x300_0000 + 8 * rng.below(2000), AccessClass::Read, 400 + rng.below(20)),
                    _ => (0x4000_0000 + 0x10_0000 * thread as u64 + 8 * rng.below(4000), class, 500 + rng.below(50)),
                };
                let access = Access { address: Address(address), size: 8, class, atomic: false };
                builder.push_at(id, EventKind::Access(access), SiteId(site as u32));
            }
        }
    }
    builder.build()
}

/// Workers that do the same: each takes a permit, goes through a few sections, posts, and touches what no lock protects. As many
/// permits as workers. A thread that takes all posts then touches what another one touches while it has one of them: never side
/// by side, and all states have to be seen to know.
pub fn alike(seed: u64, workers: u32, sections: u64) -> Trace {
    let mut rng = SplitMix(seed);
    let (permits, posts) = (Address(LOCK + 0x8000), Address(LOCK + 0x9000));
    let lock = |number: u64| Address(LOCK + 64 * number);
    let acquire = |number| EventKind::Acquire { lock: lock(number), mode: LockMode::Exclusive, may_wait: true };
    let release = |number| EventKind::Release { lock: lock(number), mode: LockMode::Exclusive };
    let write =
        |address| EventKind::Access(Access { address: Address(address), size: 8, class: AccessClass::Write, atomic: false });
    let mut of_worker = vec![EventKind::Take { semaphore: permits }];
    for _ in 0..sections {
        let outer = rng.below(2);
        let nested = outer == 0 && rng.below(2) == 0;
        of_worker.push(acquire(outer));
        if nested {
            of_worker.extend([acquire(2), write(0x200_0000), release(2)]);
        }
        of_worker.extend([write(0x200_1000 + 8 * outer), release(outer)]);
    }
    of_worker.extend([EventKind::Post { semaphore: posts }, write(0x300_0000)]);
    let mut builder = TraceBuilder::with_threads(workers + 2);
    builder.semaphore(permits, u64::from(workers));
    for child in 1..workers + 2 {
        builder.push_at(ThreadId(0), EventKind::Fork { child: ThreadId(child) }, SiteId(0));
    }
    let mut all = |thread: u32, kinds: &[EventKind]| {
        for (site, &kind) in (1..).zip(kinds) {
            builder.push_at(ThreadId(thread), kind, SiteId(100 * thread.min(2) + site));
        }
    };
    for worker in 2..workers + 2 {
        all(worker, &of_worker);
    }
    let take = EventKind::Take { semaphore: posts };
    all(1, &[take, acquire(0), write(0x100_0000), release(0), EventKind::Post { semaphore: posts }]);
    let takes = vec![take; workers as usize];
    all(0, &[takes, vec![acquire(rng.below(2)), write(0x100_0000)]].concat());
    builder.build()
}
