//! Names of events: what happens, the thread, the object, and a number where each use is an instance of its own.

use super::{numbered, takes_part};
use crate::facts::Facts;
use rashomon_event::{Access, Address, EventIndex, EventKind, LockMode, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
pub struct Names {
    /// Number of each lock, condition, … among its kind, from 1.
    objects: FxHashMap<(char, Address), usize>,
    counts: FxHashMap<char, usize>,
    joined: FxHashSet<u32>,
    /// Parts of shared objects, by what accesses touch of them.
    parts: FxHashMap<usize, Vec<(u64, u32, bool)>>,
}

impl Names {
    pub fn new(trace: &Trace, facts: &Facts) -> Self {
        let mut names = Self::default();
        for event in &trace.events {
            if let EventKind::Join { child, .. } = event.kind
                && child.index() < facts.threads.len()
            {
                names.joined.insert(child.0);
            }
        }
        // Numbers in the order of the trace.
        for index in trace.indices() {
            let _ = names.of(trace, facts, index);
        }
        names
    }

    pub fn start(&self, thread: usize) -> String {
        format!("start_t{}", thread + 1)
    }

    pub fn end(&self, thread: usize) -> String {
        format!("end_t{}", thread + 1)
    }

    /// Whether somebody waits for its end.
    pub fn is_joined(&self, thread: usize) -> bool {
        self.joined.contains(&(thread as u32))
    }

    /// Such as `m2` for the second mutex.
    pub fn object(&mut self, letter: char, address: Address) -> String {
        let count = self.counts.entry(letter).or_default();
        let number = *self.objects.entry((letter, address)).or_insert_with(|| {
            *count += 1;
            *count
        });
        format!("{letter}{number}")
    }

    /// `None`: it takes no part in synchronisation.
    pub fn of(&mut self, trace: &Trace, facts: &Facts, index: EventIndex) -> Option<String> {
        let event = trace.event(index);
        if !takes_part(event.kind) {
            return None;
        }
        let thread = format!("t{}", event.thread.0 + 1);
        let other = |child: ThreadId| format!("t{}", child.0 + 1);
        let instance = numbered(index);
        Some(match event.kind {
            EventKind::Fork { child } if facts.fork.get(child.index()) == Some(&Some(index)) => {
                format!("fork_{thread}_{}", other(child))
            }
            EventKind::Fork { child } => format!("fork_{thread}_{}_{instance}", other(child)),
            EventKind::Join { child, .. } => format!("join_{thread}_{}", other(child)),
            EventKind::Acquire { lock, mode, .. } => {
                let word = if mode == LockMode::Exclusive { "lock" } else { "rlock" };
                format!("{word}_{thread}_{}", self.object('m', lock))
            }
            EventKind::Release { .. } if facts.idle.contains(&index) => return None,
            EventKind::Release { lock, mode } => {
                let word = if mode == LockMode::Exclusive { "unlock" } else { "runlock" };
                format!("{word}_{thread}_{}", self.object('m', lock))
            }
            EventKind::WaitBegin { condition, .. } => format!("wait_{thread}_{}_{instance}", self.object('c', condition)),
            EventKind::WaitEnd { condition, .. } => format!("woken_{thread}_{}_{instance}", self.object('c', condition)),
            EventKind::Signal { condition, broadcast } => {
                let word = if broadcast { "broadcast" } else { "signal" };
                format!("{word}_{thread}_{}_{instance}", self.object('c', condition))
            }
            EventKind::BarrierEnter { barrier, generation } => {
                format!("barrier_enter_{thread}_{}_{generation}", self.object('b', barrier))
            }
            EventKind::BarrierExit { barrier, generation } => {
                format!("barrier_exit_{thread}_{}_{generation}", self.object('b', barrier))
            }
            EventKind::Post { semaphore } => format!("post_{thread}_{}", self.object('s', semaphore)),
            EventKind::Take { semaphore } => format!("take_{thread}_{}", self.object('s', semaphore)),
            EventKind::OnceDone { .. } => format!("once_{thread}_{instance}"),
            EventKind::OnceSeen { .. } => format!("seen_{thread}_{instance}"),
            EventKind::ReleaseObject { .. } => format!("release_{thread}_{instance}"),
            EventKind::AcquireObject { .. } => format!("acquire_{thread}_{instance}"),
            _ => return None,
        })
    }

    /// Parts of an object have numbers if there are several.
    pub fn access(&mut self, thread: usize, object: usize, access: &Access) -> String {
        let parts = self.parts.entry(object).or_default();
        let part = (access.address.0, access.size, access.atomic);
        let number = parts.iter().position(|known| *known == part).unwrap_or_else(|| {
            parts.push(part);
            parts.len() - 1
        });
        let word = if access.class.writes() { "write" } else { "read" };
        let name = format!("{word}_t{}_v{}", thread + 1, object + 1);
        if number == 0 { name } else { format!("{name}_p{number}") }
    }
}
