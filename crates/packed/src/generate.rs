//! Traces made up: feasible by construction, decided by a seed, as fast as they can be analysed.
//!
//! The generator plays an execution. At each step it picks a thread, which runs on for a few events: it takes a lock nobody
//! holds, accesses variables, or gives its innermost lock back. So lock use is well nested, no two threads hold a lock, and the
//! order of events is one that happened. The initial thread (0) writes the variables that are only read later, forks all others,
//! takes part, and joins them. There are exactly as many events as asked for, unless that is too few for all of this.
//!
//! Kinds of variables, whose numbers lie one kind behind the other: *protected* (always accessed under their lock), *local*
//! (always by the same thread), *read-shared* (written before the first fork) and *racy* (accessed by anybody, without a lock on
//! purpose). Two accesses of a racy variable need not be a race: locks taken in between may order them.

mod shape;

pub use shape::{Preset, Shape};

use crate::error::TraceError;
use crate::event::{Event, Op, Space};
use crate::names::Names;
use crate::source::{BLOCK, Source};
use shape::Layout;

/// Wang Yi's wyrand: a counter, multiplied and folded. Good enough for choices, two nanoseconds each.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }
}

/// 32 random bits to a number below `bound`.
#[inline]
fn below(bits: u32, bound: u32) -> u32 {
    ((u64::from(bits) * u64::from(bound)) >> 32) as u32
}

/// Where in the program a variable is accessed.
#[inline]
fn location(target: u32, op: Op, locations: u32) -> u32 {
    let mixed = (target.wrapping_mul(2) + op as u32).wrapping_mul(0x9e37_79b1);
    1 + below(mixed, locations)
}

#[derive(Clone, Debug, Default)]
struct ThreadState {
    /// Locks held, the innermost last.
    held: Vec<u32>,
    /// Region that is open.
    region: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Writes of variable `next` of those only read later.
    Initialise {
        next: u32,
    },
    Fork {
        next: u32,
    },
    Run,
    /// Locks and regions of thread `thread` are closed, then those of the next.
    Close {
        thread: u32,
    },
    Join {
        next: u32,
    },
    Done,
}

#[derive(Clone, Debug)]
pub struct Generator {
    shape: Shape,
    layout: Layout,
    random: Random,
    threads: Vec<ThreadState>,
    /// Whether a thread holds it.
    taken: Vec<bool>,
    phase: Phase,
    emitted: u64,
    /// Events that are needed to end from here.
    closing: u64,
    names: Names,
}

impl Generator {
    /// An error is what is wrong with the shape.
    pub fn new(shape: Shape) -> Result<Self, String> {
        let layout = Layout::of(&shape)?;
        let threads = vec![ThreadState::default(); shape.threads as usize];
        let taken = vec![false; shape.locks as usize];
        let phase = Phase::Initialise { next: 0 };
        let random = Random(shape.seed);
        let closing = u64::from(shape.threads) - 1;
        Ok(Self { shape, layout, random, threads, taken, phase, emitted: 0, closing, names: Names::default() })
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    #[inline]
    fn push(&mut self, block: &mut Vec<Event>, thread: u32, op: Op, target: u32) {
        let location = location(target, op, self.shape.locations);
        block.push(Event::new(thread as u16, op, target, location));
    }

    /// So many accesses of the thread, which holds the lock.
    ///
    /// Branches would be mispredicted, as what they ask is random: which kind of variable it is indexes a table instead, and the
    /// block grows once for all accesses.
    #[inline]
    fn accesses(&mut self, block: &mut Vec<Event>, thread: u32, lock: Option<u32>, count: usize) {
        let (pools, thresholds) = self.layout.pools(&self.shape, thread, lock);
        let locations = self.shape.locations;
        let random = &mut self.random;
        block.extend((0..count).map(|_| {
            let bits = random.next();
            let (which, class) = ((bits >> 32) as u32, bits as u32);
            let kind = class >> 16;
            let pool = &pools[usize::from(kind >= thresholds[0]) + usize::from(kind >= thresholds[1])];
            let target = pool.first + below(which, pool.variables);
            let op = if class & 0xffff >= pool.reads { Op::Write } else { Op::Read };
            Event::new(thread as u16, op, target, location(target, op, locations))
        }));
    }

    /// Takes a lock nobody holds, if one is found soon.
    fn acquire(&mut self, block: &mut Vec<Event>, thread: u32) -> bool {
        let innermost = self.threads[thread as usize].held.last().copied();
        for _ in 0..4 {
            let bits = self.random.next();
            // Low numbers are drawn more often: some locks are hot.
            let (one, other) = (below(bits as u32, self.shape.locks), below((bits >> 32) as u32, self.shape.locks));
            let lock = one.min(other);
            let in_order = !self.shape.ordered || innermost.is_none_or(|innermost| lock > innermost);
            if in_order && !self.taken[lock as usize] {
                self.taken[lock as usize] = true;
                self.threads[thread as usize].held.push(lock);
                if self.shape.requests {
                    self.push(block, thread, Op::Request, lock);
                }
                self.push(block, thread, Op::Acquire, lock);
                self.closing += 1;
                return true;
            }
        }
        false
    }

    #[inline]
    fn release(&mut self, block: &mut Vec<Event>, thread: u32) -> bool {
        let Some(lock) = self.threads[thread as usize].held.pop() else { return false };
        self.taken[lock as usize] = false;
        self.push(block, thread, Op::Release, lock);
        self.closing -= 1;
        true
    }

    /// The thread begins a region, or ends the one it is in.
    fn region(&mut self, block: &mut Vec<Event>, thread: u32, choice: u32) {
        match self.threads[thread as usize].region.take() {
            Some(region) => {
                self.push(block, thread, Op::End, region);
                self.closing -= 1;
            }
            None => {
                let region = below(choice, self.shape.locations.min(shape::REGIONS));
                self.threads[thread as usize].region = Some(region);
                self.push(block, thread, Op::Begin, region);
                self.closing += 1;
            }
        }
    }

    /// A thread runs on for a few events; `room`: how many at most.
    #[inline]
    fn burst(&mut self, block: &mut Vec<Event>, room: usize) {
        let before = block.len();
        let bits = self.random.next();
        let thread = below(bits as u32, self.shape.threads);
        let choice = (bits >> 32) as u32;
        let depth = self.threads[thread as usize].held.len() as u32;
        if self.shape.transactions && depth == 0 && choice & 3 == 0 {
            self.region(block, thread, choice);
        }
        let enters = if depth == 0 {
            (choice >> 2 & 0xffff) < self.layout.enters && self.shape.locks > 0
        } else {
            depth < self.shape.nesting && choice >> 18 & 1 == 0
        };
        if enters {
            self.acquire(block, thread);
        } else if depth > 0 {
            self.release(block, thread);
        }
        let lock = self.threads[thread as usize].held.last().copied();
        let longest = room.saturating_sub(block.len() - before).min(self.layout.burst(lock.is_some()));
        let accesses = below((choice >> 2).wrapping_mul(0x9e37_79b1), longest as u32 + 1);
        self.accesses(block, thread, lock, accesses as usize);
    }

    /// Events of a burst that are no accesses, and those needed to undo them.
    const OVERHEAD: u64 = 6;

    fn run(&mut self, block: &mut Vec<Event>) {
        while block.len() + 16 <= BLOCK {
            let left = self.shape.events.saturating_sub(self.emitted + block.len() as u64);
            if left <= self.closing + Self::OVERHEAD {
                // What is left behind the closing is filled with accesses of the initial thread.
                let more = left.saturating_sub(self.closing) as usize;
                self.accesses(block, 0, self.threads[0].held.last().copied(), more);
                self.phase = Phase::Close { thread: 0 };
                return;
            }
            let room = (left - self.closing - Self::OVERHEAD + 3).min((BLOCK - block.len()) as u64) as usize;
            self.burst(block, room);
        }
    }

    fn close(&mut self, block: &mut Vec<Event>, thread: u32) {
        while block.len() < BLOCK {
            if self.release(block, thread) {
                continue;
            }
            if let Some(region) = self.threads[thread as usize].region.take() {
                self.push(block, thread, Op::End, region);
                self.closing -= 1;
                continue;
            }
            let next = thread + 1;
            self.phase = if next < self.shape.threads { Phase::Close { thread: next } } else { Phase::Join { next: 1 } };
            return;
        }
    }

    fn step(&mut self, block: &mut Vec<Event>) {
        match self.phase {
            Phase::Initialise { next } if next < self.shape.read_shared => {
                self.push(block, 0, Op::Write, self.layout.shared_first + next);
                self.phase = Phase::Initialise { next: next + 1 };
            }
            Phase::Initialise { .. } => self.phase = Phase::Fork { next: 1 },
            Phase::Fork { next } if next < self.shape.threads => {
                self.push(block, 0, Op::Fork, next);
                self.phase = Phase::Fork { next: next + 1 };
            }
            Phase::Fork { .. } => self.phase = Phase::Run,
            Phase::Run => self.run(block),
            Phase::Close { thread } => self.close(block, thread),
            Phase::Join { next } if next < self.shape.threads => {
                self.push(block, 0, Op::Join, next);
                self.closing -= 1;
                self.phase = Phase::Join { next: next + 1 };
            }
            Phase::Join { .. } => self.phase = Phase::Done,
            Phase::Done => {}
        }
    }
}

impl Source for Generator {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        while self.phase != Phase::Done && block.len() < BLOCK && !(self.phase == Phase::Run && block.len() + 16 > BLOCK) {
            self.step(block);
        }
        self.emitted += block.len() as u64;
        Ok(())
    }

    fn expected(&self, space: Space) -> Option<u32> {
        Some(match space {
            Space::Thread => self.shape.threads,
            Space::Variable => self.layout.variables,
            Space::Lock => self.shape.locks,
            Space::Region if self.shape.transactions => self.shape.locations.min(shape::REGIONS),
            Space::Region | Space::Object => 0,
            Space::Location => self.shape.locations + 1,
        })
    }

    fn events(&self) -> Option<u64> {
        Some(self.shape.events)
    }

    fn names(&self) -> &Names {
        &self.names
    }
}
