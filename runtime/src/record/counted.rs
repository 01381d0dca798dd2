//! Counted loops of programs that the compiler's plugin has instrumented: one record stands for all iterations of a nest of them
//! ([`rashomon_abi::nest`]).

use crate::record::limit;
use crate::record::recorder::{push, reserve_with_context};
use crate::record::{tree, values};
use crate::system::thread::Thread;
use rashomon_abi::nest::{LOOP, Loop, MOST_VALUES, MOST_WORDS, Nest, PLAN_WORDS, WRITTEN};
use rashomon_abi::record::{self, LOW_MASK, kind_of, low_of, word};

/// What the plugin knows of a nest, and where its values are.
#[derive(Clone, Copy)]
pub struct Plan {
    operations: &'static [u64],
    values: *const u64,
    count: usize,
    fixed: usize,
}

/// What became of a nest that is about to run.
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
    /// A plan of the plugin, and as many values as it says, once they are looked at.
    pub const unsafe fn new(plan: *const u64, values: *const u64) -> Self {
        // SAFETY: a plan has these words.
        unsafe {
            let operations = core::slice::from_raw_parts(plan.add(PLAN_WORDS), *plan.add(1) as usize);
            Self { operations, values, count: *plan as u32 as usize, fixed: (*plan >> 32) as usize }
        }
    }

    const fn values(&self) -> &[u64] {
        // SAFETY: by the contract of `new`.
        unsafe { core::slice::from_raw_parts(self.values, self.count) }
    }
}

/// A nest is about to run: its place in the program, and what it depends on.
pub fn tell(thread: &Thread, plan: Plan, place: u64) -> Told {
    let hot = thread.hot();
    if hot.deep.get() == 0 || !thread.keep_accesses.get() || hot.ignored.get() > 0 || tree::on() || values::on() {
        return Told::No;
    }
    if plan.count > MOST_VALUES {
        return Told::No;
    }
    let left = hot.quantum.get();
    let Some(size) = Nest::in_program(plan.operations, plan.values()).size() else { return Told::No };
    if left < 0 || (left as u64) < size.accesses {
        return Told::No;
    }
    if thread.counted.with(|known| known.get((place, 1))).is_none() {
        return Told::Undefined;
    }
    if !reserve_with_context(thread, 1 + plan.count) {
        return Told::No;
    }
    // SAFETY: reserved.
    unsafe {
        push(hot, word(0, record::NEST, place));
        for value in &plan.values()[plan.fixed..] {
            push(hot, WRITTEN | *value & LOW_MASK);
        }
        // No access behind the nest repeats one before it.
        (*hot.filter.get())[1] = 0;
    }
    // Where the turn ends is looked at when none is left, not before.
    hot.quantum.set(left - size.accesses as i64);
    limit::stands_for(thread, size.operations * 8);
    Told::All
}

/// The operations of a nest, its fixed values and the sites of its accesses, in the order of its operations. Whether it is
/// defined now.
///
/// # Safety
/// There are as many sites as accesses.
pub unsafe fn define(thread: &Thread, plan: Plan, mut sites: *const u64, place: u64) -> bool {
    let words = plan.operations.len();
    if words > MOST_WORDS || plan.count > MOST_VALUES || !reserve_with_context(thread, 2 + plan.fixed + words) {
        return false;
    }
    let hot = thread.hot();
    let mut at = 0;
    // SAFETY: reserved; the caller's arrays.
    unsafe {
        push(hot, word(0, record::NEST_DEFINITION, place));
        push(hot, WRITTEN | (plan.fixed as u64) << 48 | (plan.count as u64) << 32 | words as u64);
        for value in &plan.values()[..plan.fixed] {
            push(hot, WRITTEN | *value & LOW_MASK);
        }
        while at < words {
            let first = plan.operations[at];
            let (amounts, has_site) = match kind_of(first) {
                LOOP => (Loop::of(first).loops, false),
                1..=15 => (low_of(first) as usize, true),
                _ => (0, false),
            };
            for word in &plan.operations[at..=at + amounts] {
                push(hot, *word);
            }
            at += 1 + amounts;
            if has_site {
                push(hot, *sites & LOW_MASK);
                sites = sites.add(1);
                at += 1;
            }
        }
    }
    thread.counted.with(|known| *known.entry((place, 1)) = 1);
    true
}
