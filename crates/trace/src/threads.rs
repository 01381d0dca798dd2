//! The threads of a recording: who created whom.

use rashomon_abi::MAX_THREADS;
use rashomon_event::{ObjectId, ThreadId, ThreadInfo, ThreadPath};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Creator and how many threads it had created before.
    origin: Option<(ThreadId, u32)>,
    /// Handle of the stack in the address space.
    stack: Option<u32>,
}

/// Threads are numbered in order of creation; a creator's number is smaller than its child's.
#[derive(Debug, Default)]
pub struct ThreadTable(Vec<Entry>);

impl ThreadTable {
    /// The thread of a recorded number, if that can be one.
    pub fn known(&mut self, number: u64) -> Option<ThreadId> {
        let thread = ThreadId(u32::try_from(number).ok().filter(|&number| (number as usize) < MAX_THREADS)?);
        self.exists(thread);
        Some(thread)
    }

    pub fn exists(&mut self, thread: ThreadId) {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, Entry::default());
        }
    }

    pub fn created(&mut self, child: ThreadId, parent: ThreadId, spawn_ordinal: u64) {
        self.exists(child);
        if parent < child {
            self.0[child.index()].origin = Some((parent, spawn_ordinal as u32));
        }
    }

    /// `parent` as a thread's first record says it: a number, or `u64::MAX` for the initial thread.
    pub fn started(&mut self, thread: ThreadId, parent: u64, spawn_ordinal: u64) {
        self.exists(thread);
        if let Some(parent) = self.known(parent) {
            self.created(thread, parent, spawn_ordinal);
        }
    }

    pub fn set_stack(&mut self, thread: ThreadId, stack: Option<u32>) {
        self.exists(thread);
        self.0[thread.index()].stack = stack;
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// A thread whose creation was not recorded gets the path `[u32::MAX, number]`, which no created thread has.
    pub fn into_threads(self, id_of: impl Fn(u32) -> ObjectId) -> Vec<ThreadInfo> {
        let mut threads: Vec<ThreadInfo> = Vec::with_capacity(self.0.len());
        for (number, entry) in self.0.iter().enumerate() {
            let path = match entry.origin {
                Some((parent, ordinal)) => threads[parent.index()].path.child(ordinal),
                None if number == 0 => ThreadPath::default(),
                None => ThreadPath(vec![u32::MAX, number as u32]),
            };
            threads.push(ThreadInfo {
                path,
                parent: entry.origin.map(|(parent, _)| parent),
                spawn_ordinal: entry.origin.map_or(0, |(_, ordinal)| ordinal),
                stack: entry.stack.map(&id_of),
            });
        }
        threads
    }
}
