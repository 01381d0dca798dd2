//! Counted loops of programs that the compiler's plugin has instrumented: one record stands for all iterations
//! ([`rashomon_abi::record::COUNTED`]).

use crate::record::limit;
use crate::record::recorder::{push, reserve_with_context};
use crate::record::{tree, values};
use crate::system::thread::Thread;
use rashomon_abi::record::counted::{MOST_ACCESSES, MOST_BASES, MOST_OPERATIONS, PLAN_WORDS, WRITTEN};
use rashomon_abi::record::{self, LOW_MASK, SEGMENT, kind_of, word};

/// What the plugin knows of a loop.
#[derive(Clone, Copy)]
pub struct Plan(*const u64);

/// What became of a loop that is about to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Its hooks are to tell it.
    No,
    /// The same, unless it is defined.
    Undefined,
    All,
}

impl Plan {
    /// # Safety
    /// A plan of the plugin.
    pub const unsafe fn new(plan: *const u64) -> Self {
        Self(plan)
    }

    fn word(self, at: usize) -> u64 {
        // SAFETY: a plan has these words.
        unsafe { *self.0.add(at) }
    }

    /// Accesses before the exit and operations there; the same of a whole iteration.
    fn counts(self) -> [(u64, usize); 2] {
        [self.word(0), self.word(1)].map(|word| (word >> 32, word as u32 as usize))
    }

    /// How many bases there are, and how many of these are told with the plan.
    fn bases(self) -> [usize; 2] {
        let word = self.word(2);
        [word as u32 as usize, (word >> 32) as usize]
    }
}

/// A loop is about to run: its place in the program, and where its bases are.
///
/// # Safety
/// There are as many bases as the plan says.
pub unsafe fn tell(thread: &Thread, plan: Plan, iterations: u64, bases: *const u64, place: u64) -> Told {
    let hot = thread.hot();
    if hot.deep.get() == 0 || !thread.keep_accesses.get() || hot.ignored.get() > 0 || tree::on() || values::on() {
        return Told::No;
    }
    let [(before, once), (within, all)] = plan.counts();
    let accesses = iterations.saturating_mul(within).saturating_add(before);
    let left = hot.quantum.get();
    if accesses > MOST_ACCESSES || left < accesses as i64 {
        return Told::No;
    }
    if thread.counted.with(|known| known.get((place, 1))).is_none() {
        return Told::Undefined;
    }
    let [count, fixed] = plan.bases();
    if count > MOST_BASES || !reserve_with_context(thread, 2 + count) {
        return Told::No;
    }
    // SAFETY: reserved; the caller's array.
    unsafe {
        push(hot, word(0, record::COUNTED, place));
        push(hot, WRITTEN | iterations);
        for at in fixed..count {
            push(hot, WRITTEN | *bases.add(at) & LOW_MASK);
        }
        // No access behind the loop repeats one before it.
        (*hot.filter.get())[1] = 0;
    }
    // Where the turn ends is looked at when none is left, not before.
    hot.quantum.set(left - accesses as i64);
    limit::stands_for(thread, (iterations * all as u64 + once as u64) * 8);
    Told::All
}

/// The bases of a loop and the sites of its accesses, in the order of its operations. Whether the loop is defined now.
///
/// # Safety
/// There are as many as the plan says.
pub unsafe fn define(thread: &Thread, plan: Plan, bases: *const u64, sites: *const u64, place: u64) -> bool {
    let [(_, once), (accesses, all)] = plan.counts();
    let [count, fixed] = plan.bases();
    if all > MOST_OPERATIONS || count > MOST_BASES || !reserve_with_context(thread, 2 + fixed + all + accesses as usize) {
        return false;
    }
    let hot = thread.hot();
    let mut next = 0;
    // SAFETY: reserved; the caller's array.
    unsafe {
        push(hot, word(once as u64, record::COUNTED_DEFINITION, place));
        push(hot, WRITTEN | (fixed as u64) << 48 | (count as u64) << 32 | all as u64);
        for at in 0..fixed {
            push(hot, WRITTEN | *bases.add(at) & LOW_MASK);
        }
        for at in 0..all {
            let operation = plan.word(PLAN_WORDS + at);
            push(hot, operation);
            if kind_of(operation) != SEGMENT {
                push(hot, *sites.add(next));
                next += 1;
            }
        }
    }
    thread.counted.with(|known| *known.entry((place, 1)) = 1);
    true
}
