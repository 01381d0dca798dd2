//! Happens-before without locks (§3.4): program order, fork and join, signal and wait, barriers.
//!
//! Locks order nothing here: that two threads took a lock one after the other was an accident of the schedule; that they
//! exclude each other is what lock sets say.

use crate::event::Object;
use rustc_hash::FxHashMap;

/// For each thread, by its dense number, how many of its segments are known. A segment ends where the thread tells others
/// what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u32>);

impl Clock {
    pub fn of(&self, thread: usize) -> u32 {
        self.0.get(thread).copied().unwrap_or(0)
    }

    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (known, more) in self.0.iter_mut().zip(&other.0) {
            *known = (*known).max(*more);
        }
    }

    pub fn advance(&mut self, thread: usize) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, 0);
        }
        self.0[thread] += 1;
    }
}

#[derive(Default)]
struct Barrier {
    /// Number of the generation that gathers.
    gathering: u64,
    /// What those knew who arrived, and how many of them have not left yet.
    generations: FxHashMap<u64, (Clock, u32)>,
    /// The generation in which a thread arrived.
    arrived: FxHashMap<usize, u64>,
}

/// What objects carry from thread to thread.
#[derive(Default)]
pub(crate) struct Messages {
    signals: FxHashMap<Object, Clock>,
    barriers: FxHashMap<Object, Barrier>,
}

impl Messages {
    pub fn signal(&mut self, object: Object, thread: usize, clock: &mut Clock) {
        self.signals.entry(object).or_default().join(clock);
        clock.advance(thread);
    }

    pub fn wait(&self, object: Object, clock: &mut Clock) {
        if let Some(known) = self.signals.get(&object) {
            clock.join(known);
        }
    }

    pub fn arrive(&mut self, barrier: Object, thread: usize, clock: &mut Clock) {
        let barrier = self.barriers.entry(barrier).or_default();
        let (known, inside) = barrier.generations.entry(barrier.gathering).or_default();
        known.join(clock);
        *inside += 1;
        barrier.arrived.insert(thread, barrier.gathering);
        clock.advance(thread);
    }

    /// The first to leave ends the generation: all that take part have arrived. `false` if the thread did not arrive.
    pub fn leave(&mut self, barrier: Object, thread: usize, clock: &mut Clock) -> bool {
        let Some(barrier) = self.barriers.get_mut(&barrier) else { return false };
        let Some(generation) = barrier.arrived.remove(&thread) else { return false };
        barrier.gathering = barrier.gathering.max(generation + 1);
        if let Some((known, inside)) = barrier.generations.get_mut(&generation) {
            clock.join(known);
            *inside -= 1;
            if *inside == 0 {
                barrier.generations.remove(&generation);
            }
        }
        true
    }
}
