//! What an explored execution did, choice by choice.

use rashomon_abi::exploration::{Operation, SET_THREADS, record};
use rashomon_abi::record::Op;

/// What a thread stands before. Addresses are those of that execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Pending {
    pub operation: Operation,
    pub site: u64,
    /// Synchronisation events that the thread has completed.
    pub ordinal: u32,
    /// Accesses since the last of them.
    pub count: u64,
}

impl Pending {
    /// The same operation in another execution of the program.
    pub fn same_place(&self, other: &Self) -> bool {
        self.ordinal == other.ordinal
            && self.operation.op == other.operation.op
            && (self.operation.op != 0 || self.count == other.count)
    }

    pub fn ends_thread(&self) -> bool {
        self.operation.op == Op::ThreadEnd as u64
    }
}

/// One choice, and what the chosen thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// By number, in the order of creation.
    pub thread: u32,
    /// Bits by thread number.
    pub enabled: u64,
    pub asleep: u64,
    /// Enabled, but only polling for what another thread is to do.
    pub waiting: u64,
    pub does: Pending,
    /// What it stood before when its turn was over; `None`: it ended, or the execution did.
    pub after: Option<Pending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadBirth {
    pub parent: Option<u32>,
    pub spawn_ordinal: u32,
    /// Steps made before.
    pub steps: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// By thread number.
    pub threads: Vec<Option<ThreadBirth>>,
    pub steps: Vec<Step>,
    /// Where threads stood when the execution ended; of one that was at work, what it did last.
    pub left: Vec<(u32, Pending)>,
    /// A thread stood before a step that it did not come to make: as behind a failure.
    pub is_cut: bool,
    /// Where threads stood when exploration began.
    pub first: Vec<(u32, Pending)>,
}

impl Log {
    pub fn decisions(&self) -> Vec<u32> {
        self.steps.iter().map(|step| step.thread).collect()
    }

    /// Whether the sets of its steps tell of all threads.
    pub fn has_whole_sets(&self) -> bool {
        self.threads.len() <= SET_THREADS
    }

    /// Changes of the running thread where it could have gone on.
    pub fn preemptions(&self) -> usize {
        (1..self.steps.len()).filter(|&at| self.is_preemption(at, self.steps[at].thread)).count()
    }

    /// Whether choosing `thread` at a step takes the turn from one that could go on.
    pub fn is_preemption(&self, at: usize, thread: u32) -> bool {
        let Some(before) = at.checked_sub(1).and_then(|before| self.steps.get(before)) else { return false };
        let step = &self.steps[at];
        let enabled = step.enabled & !step.waiting;
        before.thread != thread && enabled.checked_shr(before.thread).is_some_and(|rest| rest & 1 != 0)
    }
}

#[derive(Debug, Default)]
pub(crate) struct LogBuilder {
    log: Log,
    pending: Vec<Option<Pending>>,
    /// Of what is pending, what is still to be done.
    waits: Vec<bool>,
}

impl LogBuilder {
    /// `None`: such a record cannot follow those before.
    pub(crate) fn record(&mut self, words: &[u64]) -> Option<()> {
        let &[head, a, b, c, site, ordinal, count, choices] = words else { return None };
        let thread = record::thread(head);
        let slot = thread as usize;
        if self.pending.len() <= slot {
            self.pending.resize(slot + 1, None);
            self.waits.resize(slot + 1, false);
            self.log.threads.resize(slot + 1, None);
        }
        match record::kind(head) {
            record::THREAD => {
                let parent = u32::try_from(a).ok().filter(|&parent| parent != u32::MAX);
                let birth = ThreadBirth { parent, spawn_ordinal: b as u32, steps: self.log.steps.len() };
                self.log.threads[slot].get_or_insert(birth);
            }
            record::PENDING => {
                let operation = Operation {
                    op: record::op(head),
                    object: a,
                    second: b,
                    class: record::class(head),
                    bytes: c,
                    atomic: record::atomic(head),
                };
                let pending = Pending { operation, site, ordinal: ordinal as u32, count };
                self.pending[slot] = Some(pending);
                self.waits[slot] = true;
                if let Some(last) = self.log.steps.last_mut().filter(|last| last.thread == thread) {
                    last.after = Some(pending);
                }
                if self.log.steps.is_empty() {
                    self.log.first.retain(|(known, _)| *known != thread);
                    self.log.first.push((thread, pending));
                }
            }
            record::CHOICE => {
                if choices != self.log.steps.len() as u64 {
                    return None;
                }
                let does = self.pending[slot]?;
                self.waits[slot] = false;
                let after = (!does.ends_thread()).then_some(does);
                self.log.steps.push(Step { thread, enabled: a, asleep: b, waiting: c, does, after });
            }
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn finish(mut self) -> Log {
        let ended =
            |thread: u32| self.log.steps.iter().rev().find(|step| step.thread == thread).is_some_and(|step| step.after.is_none());
        let left = (0..).zip(&self.pending).filter_map(|(thread, pending)| Some((thread, (*pending)?)));
        self.log.left = left.filter(|&(thread, _)| !ended(thread)).collect();
        self.log.is_cut = self.waits.contains(&true);
        self.log
    }
}
