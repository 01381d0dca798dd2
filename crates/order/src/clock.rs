//! Vector clocks that share what does not change.
//!
//! A thread's own time goes up with each release, so an event at time τ is ordered before whatever has received a clock of that
//! thread with time ≥ τ (Flanagan, Freund, "FastTrack", PLDI 2009, §3, epochs). A release leaves a [`VectorClock`]: the thread,
//! its time, and a snapshot of the other components, which successive clocks share until the thread receives something new.
//!
//! Invariant: whoever knows time τ of a thread knows everything that thread knew at its release at τ. So a join may be skipped by
//! looking at one component.

use rashomon_event::ThreadId;
use std::sync::Arc;

/// What a release passes on.
#[derive(Clone, Debug)]
pub struct VectorClock {
    pub thread: ThreadId,
    pub time: u32,
    /// The components of the other threads; the own one is `time`.
    base: Arc<[u32]>,
}

impl VectorClock {
    /// The latest time of `thread` that is ordered before this clock.
    pub fn knows(&self, thread: ThreadId) -> u32 {
        if thread == self.thread { self.time } else { self.base.get(thread.index()).copied().unwrap_or(0) }
    }

    /// Whether neither of two positions, each given by the clock taken there, is ordered before the other.
    pub fn concurrent(&self, other: &Self) -> bool {
        self.knows(other.thread) < other.time && other.knows(self.thread) < self.time
    }
}

/// The vector clock of one thread.
#[derive(Clone, Debug)]
pub struct ThreadClock {
    thread: ThreadId,
    components: Vec<u32>,
    /// The components as last read, while still valid.
    base: Option<Arc<[u32]>>,
}

impl ThreadClock {
    pub fn new(thread: ThreadId, threads: usize) -> Self {
        let mut components = vec![0; threads.max(thread.index() + 1)];
        components[thread.index()] = 1;
        Self { thread, components, base: None }
    }

    /// The thread's own time.
    pub fn time(&self) -> u32 {
        self.components[self.thread.index()]
    }

    /// The latest time of `thread` that is ordered before now.
    pub fn knows(&self, thread: ThreadId) -> u32 {
        self.components[thread.index()]
    }

    /// The present moment, without a release.
    pub fn now(&mut self) -> VectorClock {
        let base = self.base.get_or_insert_with(|| Arc::from(self.components.as_slice()));
        VectorClock { thread: self.thread, time: self.components[self.thread.index()], base: Arc::clone(base) }
    }

    /// Everything up to now is passed on; what follows is not.
    pub fn release(&mut self) -> VectorClock {
        let clock = self.now();
        self.components[self.thread.index()] += 1;
        clock
    }

    pub fn receive(&mut self, clock: &VectorClock) {
        if self.components[clock.thread.index()] >= clock.time {
            return;
        }
        for (mine, &theirs) in self.components.iter_mut().zip(clock.base.iter()) {
            *mine = (*mine).max(theirs);
        }
        self.components[clock.thread.index()] = clock.time;
        self.base = None;
    }

    pub fn receive_all(&mut self, clocks: &JoinedClocks) {
        for clock in &clocks.clocks {
            self.receive(clock);
        }
    }
}

/// The clocks that a synchronisation object passes on: the newest of each thread.
#[derive(Clone, Debug, Default)]
pub struct JoinedClocks {
    clocks: Vec<VectorClock>,
}

impl JoinedClocks {
    pub fn add(&mut self, clock: VectorClock) {
        match self.clocks.iter_mut().find(|known| known.thread == clock.thread) {
            Some(known) if known.time < clock.time => *known = clock,
            Some(_) => {}
            None => self.clocks.push(clock),
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for clock in &other.clocks {
            self.add(clock.clone());
        }
    }

    /// Forgets the clocks of all other threads.
    pub fn keep_only(&mut self, thread: ThreadId) {
        self.clocks.retain(|clock| clock.thread == thread);
    }

    pub fn clear(&mut self) {
        self.clocks.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.clocks.is_empty()
    }
}
