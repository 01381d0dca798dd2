//! Which steps of an execution are ordered, and which could have come in the other order: the partial order of a trace under the
//! dependence relation of `rashomon_abi::exploration::Operation::depends`, as vector clocks.
//!
//! C. Flanagan, P. Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software", POPL 2005, §3-4 (dependence, may be
//! co-enabled). Deviation 1: what a new thread does is ordered behind the step that created it.

use crate::log::{Log, Pending};
use rashomon_abi::exploration::Operation;
use rashomon_abi::record::{AccessClass, Op};
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const GRANULE: u64 = 8;

/// Objects of an operation, as keys. Two accesses that depend on each other do so in a key of both: see [`part`].
pub(crate) fn keys(operation: &Operation) -> Vec<u64> {
    if operation.class != 0 {
        let first = operation.object / GRANULE;
        let last = operation.object.saturating_add(operation.bytes.max(1) - 1) / GRANULE;
        // Longer ones (memset) meet in their common granules; a bound on what one access may cost.
        return (first..=last.min(first + (1 << 16))).collect();
    }
    // The key space of synchronisation objects is apart.
    [operation.object, operation.second]
        .into_iter()
        .filter(|&object| object != 0 && object != rashomon_abi::exploration::NO_WAIT)
        .map(|object| object | 1 << 63)
        .collect()
}

/// What an operation does under one of its keys: of an access its bytes there, and whether it writes them. So there are few
/// different ones under a key, however often it is met.
fn part(operation: &Operation, key: u64) -> Operation {
    if operation.class == 0 {
        return *operation;
    }
    let start = operation.object.max(key * GRANULE);
    let end = operation.object.saturating_add(operation.bytes.max(1)).min((key + 1).saturating_mul(GRANULE));
    let class = if operation.writes() { AccessClass::Write } else { AccessClass::Read };
    Operation { object: start, bytes: end - start, class: class as u64, ..Operation::default() }
}

/// Whether what it depends on is not known: it concerns something outside, such as files, and names no object.
pub fn is_opaque(operation: &Operation) -> bool {
    let alone = matches!(Op::from_code(operation.op), Some(Op::ThreadCreate | Op::Fence | Op::Yield | Op::Sleep));
    operation.class == 0 && operation.object == 0 && !alone
}

/// Whether there is a state in which both could be the next step of their threads, as far as the operations tell: never for the
/// release of a lock and what waits for it.
pub fn may_be_co_enabled(one: &Operation, other: &Operation) -> bool {
    let op = |operation: &Operation| if operation.class == 0 { Op::from_code(operation.op) } else { None };
    let releases = |op: Op| matches!(op, Op::Unlock | Op::UnlockShared | Op::CondWaitBegin);
    let takes = |operation: &Operation, op: Op| match op {
        Op::Lock | Op::LockShared => operation.second != rashomon_abi::exploration::NO_WAIT,
        Op::CondWaitEnd => true,
        _ => false,
    };
    match (op(one), op(other)) {
        (Some(a), Some(b)) => {
            let condition = |a: Op, b: Op| a == Op::CondWaitBegin && b == Op::CondWaitBegin;
            !(releases(a) && (takes(other, b) || releases(b)) && !condition(a, b)
                || releases(b) && takes(one, a)
                || condition(a, b) && one.second == other.second
                || matches!((a, b), (Op::ThreadEnd, Op::ThreadJoin) | (Op::ThreadJoin, Op::ThreadEnd)))
        }
        _ => true,
    }
}

/// The steps of one thread that do the same under one key, in their order.
struct Occurrences {
    thread: u32,
    part: Operation,
    steps: Vec<u32>,
}

/// The order of one execution. Time and space: steps times threads.
pub struct Order<'a> {
    log: &'a Log,
    /// By step and thread: steps of that thread, counted by index + 1 of the last, that are before or equal to the step.
    clocks: Vec<u32>,
    /// By step: the one before it of its thread.
    previous: Vec<Option<u32>>,
    by_key: FxHashMap<u64, Vec<Occurrences>>,
    threads: usize,
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

impl<'a> Order<'a> {
    pub fn of(log: &'a Log) -> Self {
        let threads = log.threads.len();
        let mut order = Self {
            log,
            clocks: Vec::with_capacity(log.steps.len() * threads),
            previous: Vec::with_capacity(log.steps.len()),
            by_key: FxHashMap::default(),
            threads,
        };
        let mut last: Vec<Option<u32>> = vec![None; threads];
        for (at, step) in (0_u32..).zip(&log.steps) {
            let thread = step.thread as usize;
            order.previous.push(last[thread].replace(at));
            let mut clock = order.known_before(at as usize);
            for key in keys(&step.does.operation) {
                let part = part(&step.does.operation, key);
                for earlier in order.latest_of_each(key, at, step.thread, |other| other.depends(&part)) {
                    join(&mut clock, order.clock(earlier as usize));
                }
                order.add(key, step.thread, part, at);
            }
            clock[thread] = at + 1;
            order.clocks.extend_from_slice(&clock);
        }
        order
    }

    fn add(&mut self, key: u64, thread: u32, part: Operation, at: u32) {
        let under = self.by_key.entry(key).or_default();
        match under.iter_mut().find(|known| known.thread == thread && known.part == part) {
            Some(known) => known.steps.push(at),
            None => under.push(Occurrences { thread, part, steps: vec![at] }),
        }
    }

    fn clock(&self, at: usize) -> &[u32] {
        &self.clocks[at * self.threads..][..self.threads]
    }

    fn at_birth(&self, thread: u32) -> Vec<u32> {
        let creation = self.log.threads[thread as usize].and_then(|birth| birth.steps.checked_sub(1));
        match creation.filter(|&step| (step + 1) * self.threads <= self.clocks.len()) {
            Some(step) => self.clock(step).to_vec(),
            None => vec![0; self.threads],
        }
    }

    /// What the thread of a step knows before it makes it.
    fn known_before(&self, at: usize) -> Vec<u32> {
        match self.previous[at] {
            Some(previous) => self.clock(previous as usize).to_vec(),
            None => self.at_birth(self.log.steps[at].thread),
        }
    }

    /// Of each other thread the last step before `before` with that key of whose part there `wanted` holds.
    fn latest_of_each(&self, key: u64, before: u32, thread: u32, wanted: impl Fn(&Operation) -> bool) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for known in self.by_key.get(&key).map_or(&[][..], Vec::as_slice) {
            if known.thread == thread || !wanted(&known.part) {
                continue;
            }
            let earlier = known.steps.partition_point(|&step| step < before);
            let Some(&latest) = earlier.checked_sub(1).map(|last| &known.steps[last]) else { continue };
            match found.iter_mut().find(|other| self.log.steps[**other as usize].thread == known.thread) {
                Some(other) => *other = latest.max(*other),
                None => found.push(latest),
            }
        }
        found
    }

    /// For each number of steps, what is the same for all executions that begin with an equivalent list of so many: their
    /// threads' steps, and how these are ordered. It ends behind the first step of which is not known what it depends on.
    pub fn states(&self) -> Vec<u128> {
        let mut counts = vec![0_u32; self.threads];
        // By step: how many of its thread there were up to it.
        let mut numbers = Vec::with_capacity(self.log.steps.len());
        let mut state = 0_u128;
        let mut states = vec![state];
        for (at, step) in self.log.steps.iter().enumerate() {
            if is_opaque(&step.does.operation) {
                break;
            }
            let count = &mut counts[step.thread as usize];
            *count += 1;
            numbers.push(*count);
            let before: Vec<u32> =
                self.clock(at).iter().map(|&last| last.checked_sub(1).map_or(0, |last| numbers[last as usize])).collect();
            let hash = |salt: u64| {
                let mut hasher = DefaultHasher::new();
                (salt, step.thread, &step.does, &before).hash(&mut hasher);
                u128::from(hasher.finish())
            };
            // The order in which they are added does not matter.
            state = state.wrapping_add(hash(0) << 64 | hash(1));
            states.push(state);
        }
        states
    }

    /// Whether step `first` is before step `second` in every equivalent execution.
    pub fn before(&self, first: usize, second: usize) -> bool {
        self.clock(second)[self.log.steps[first].thread as usize] > first as u32
    }

    /// Earlier steps, of other threads, that step `at` could have come before.
    pub fn reversible(&self, at: usize) -> Vec<usize> {
        let step = &self.log.steps[at];
        self.reversible_by(step.thread, &step.does, at, &self.known_before(at))
    }

    /// The same for an operation that was still pending when the execution ended.
    pub fn reversible_pending(&self, thread: u32, pending: &Pending) -> Vec<usize> {
        let end = self.log.steps.len();
        self.reversible_by(thread, pending, end, &self.known_at(thread, end))
    }

    fn reversible_by(&self, thread: u32, pending: &Pending, at: usize, knew: &[u32]) -> Vec<usize> {
        let mut found = Vec::new();
        for key in keys(&pending.operation) {
            let part = part(&pending.operation, key);
            let wanted = |other: &Operation| other.depends(&part) && may_be_co_enabled(other, &part);
            let mut latest = self.latest_of_each(key, at as u32, thread, wanted);
            latest.retain(|&earlier| knew[self.log.steps[earlier as usize].thread as usize] <= earlier);
            let passed = |one: u32| latest.iter().any(|&other| one < other && self.before(one as usize, other as usize));
            // What comes before another of them is reversed once that one was.
            found.extend(latest.iter().copied().filter(|&one| !passed(one)).map(|earlier| earlier as usize));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Threads with which a continuation can begin that makes step `first` later than what comes behind it up to `second` and
    /// does not depend on it, then `pending`, which is `thread`'s at `second` (initials of notdep(e, E).e': Abdulla, Aronis,
    /// Jonsson, Sagonas, POPL 2014, §4).
    pub fn initials(&self, first: usize, second: usize, thread: u32, pending: &Pending) -> u64 {
        let kept: Vec<usize> = (first + 1..second.min(self.log.steps.len())).filter(|&at| !self.before(first, at)).collect();
        let mut firsts: Vec<Option<usize>> = vec![None; self.threads];
        for &at in &kept {
            firsts[self.log.steps[at].thread as usize].get_or_insert(at);
        }
        let mut initials = 0;
        for (number, at) in firsts.iter().enumerate().filter_map(|(number, at)| Some((number, (*at)?))) {
            let preceded = firsts
                .iter()
                .enumerate()
                .any(|(other, first)| other != number && first.is_some_and(|first| self.before(first, at)));
            if !preceded {
                initials |= 1 << number;
            }
        }
        if firsts[thread as usize].is_none() {
            let knew = self.known_at(thread, second);
            let preceded = kept.iter().any(|&at| {
                let step = &self.log.steps[at];
                knew[step.thread as usize] > at as u32 || step.does.operation.depends(&pending.operation)
            });
            if !preceded {
                initials |= 1 << thread;
            }
        }
        initials
    }

    /// What a thread knows before it makes its operation: at a step of its own, or behind the last step.
    fn known_at(&self, thread: u32, at: usize) -> Vec<u32> {
        if at < self.log.steps.len() {
            return self.known_before(at);
        }
        let last = self.log.steps.iter().rposition(|step| step.thread == thread);
        last.map_or_else(|| self.at_birth(thread), |last| self.clock(last).to_vec())
    }
}
