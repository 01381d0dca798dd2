//! "This event needs that one before it", across threads, per thread in program order.
//!
//! A list keeps a dependence only if no earlier event of the same thread already needs as much of the same other thread; program
//! order implies the rest. So lists are short even where accesses are many.

use rustc_hash::FxHashMap;

/// The event at position `at` of its thread needs the first `count` events of `thread` before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    pub at: u32,
    pub thread: u32,
    pub count: u32,
}

/// Per thread, sorted by `at`.
#[derive(Clone, Debug, Default)]
pub struct Dependences {
    threads: Vec<Vec<Dependence>>,
    most: FxHashMap<u64, u32>,
}

impl Dependences {
    pub fn new(threads: usize) -> Self {
        Self { threads: vec![Vec::new(); threads], most: FxHashMap::default() }
    }

    /// Must be called in program order of `thread`. Dependences within a thread are dropped.
    pub fn add(&mut self, thread: u32, at: u32, on: u32, count: u32) {
        if thread == on || count == 0 {
            return;
        }
        let most = self.most.entry(u64::from(thread) << 32 | u64::from(on)).or_insert(0);
        if *most < count {
            *most = count;
            self.threads[thread as usize].push(Dependence { at, thread: on, count });
        }
    }

    /// One dependence on each (thread, number of events).
    pub fn add_all(&mut self, thread: u32, at: u32, on: &[(u32, u32)]) {
        for &(on, count) in on {
            self.add(thread, at, on, count);
        }
    }

    /// All dependences of a thread.
    pub fn of(&self, thread: usize) -> &[Dependence] {
        &self.threads[thread]
    }

    /// Those of the event at one position.
    pub fn at(&self, thread: usize, at: u32) -> &[Dependence] {
        let all = &self.threads[thread];
        let start = all.partition_point(|dependence| dependence.at < at);
        let length = all[start..].iter().take_while(|dependence| dependence.at == at).count();
        &all[start..start + length]
    }

    /// Frees what only building needs.
    pub fn seal(&mut self) {
        self.most = FxHashMap::default();
    }
}
