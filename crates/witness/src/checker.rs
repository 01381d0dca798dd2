//! The trusted checker: is this reordering feasible for this trace, and at which level?
//!
//! Computed: a run of the witness's order from the initial state, rule by rule. *Synchronisation* level (Carril, Tichy,
//! "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §2, the processes of the trace model):
//! per-thread prefixes in program order, fork before the child, join after it, lock exclusion, wake-ups after their signals,
//! complete barrier generations, semaphores that never take from nothing, once, publication, and what calls into unseen code may
//! have ordered. *Causal* level (correct
//! reordering: Mathur, Pavlogiannis, Viswanathan, "Optimal Prediction of Synchronization-Preserving Races", POPL 2021, §2):
//! moreover every read sees, byte by byte, the writer it saw in the trace, or, where the trace tells it, the value; unless the
//! trace tells that nothing which happens depends on it (Huang, Meredith, Roşu, "Maximal Sound Predictive Race Detection with
//! Control Flow Abstraction", PLDI 2014, §2).
//!
//! Guarantee: an accepted order respects every rule above; after it each goal is the next event of its thread; goals of a race
//! conflict; the threads of a deadlock's goals wait for one another in a cycle, each for a lock that the next one holds, for its
//! end or for its entry of a barrier. Limit: what the trace does not say (other values, branches, unmodelled code) is not
//! checked, so only forcing proves an order of the synchronisation level.
//!
//! Choices: (1) The initial count of a semaphore is the one that the trace says. Where it says none, or takes were seen for which
//! that is too little (posts that nobody recorded), it is the least one under which the trace is possible. (2) The release of a
//! lock that the thread does not hold has no effect. (3) A thread's events all come after its fork and before its join, also
//! where the trace lacks its `Start` or `End`; its join comes after its fork. (4) A wake-up of unknown cause, or by a time-out,
//! needs no signal.

use crate::facts::Facts;
use crate::reads_from::ReadsFrom;
use crate::rejection::Rejection;
use rashomon_event::{Address, CandidateKind, EventIndex, EventKind, LockMode, Stand, ThreadId, Trace, Witness, WitnessLevel};
use std::collections::HashMap;

/// Checks one witness. To check many on one trace, keep a [`Checker`].
pub fn check(trace: &Trace, witness: &Witness) -> Result<WitnessLevel, Rejection> {
    Checker::new(trace).check(witness)
}

/// The facts of one trace, gathered once.
pub struct Checker<'t> {
    trace: &'t Trace,
    facts: Facts,
    reads_from: ReadsFrom,
}

/// A lock while the order runs.
#[derive(Default)]
struct LockState {
    exclusive: Option<ThreadId>,
    shared: Vec<ThreadId>,
}

impl LockState {
    fn excludes(&self, mode: LockMode) -> Option<ThreadId> {
        match mode {
            LockMode::Shared => self.exclusive,
            LockMode::Exclusive => self.exclusive.or(self.shared.first().copied()),
        }
    }
    /// Whether `holder` holds the lock in a mode that excludes `mode`.
    fn excluded_by(&self, holder: ThreadId, mode: LockMode) -> bool {
        self.exclusive == Some(holder) || (mode == LockMode::Exclusive && self.shared.contains(&holder))
    }
    fn release(&mut self, thread: ThreadId, mode: LockMode) {
        match mode {
            LockMode::Exclusive if self.exclusive == Some(thread) => self.exclusive = None,
            LockMode::Exclusive => {}
            LockMode::Shared => {
                if let Some(place) = self.shared.iter().position(|&holder| holder == thread) {
                    self.shared.swap_remove(place);
                }
            }
        }
    }
}

/// The state that the order leads to, event by event.
struct Run {
    /// Per thread, how many of its events have run.
    done: Vec<u32>,
    /// The places in the order of the signals and the begins of waits that have run.
    place: HashMap<EventIndex, u32>,
    locks: HashMap<Address, LockState>,
    counts: HashMap<Address, u64>,
}

impl<'t> Checker<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, facts: Facts::new(trace), reads_from: ReadsFrom::new(trace) }
    }

    /// The highest level at which the witness holds, whatever it claims.
    pub fn check(&self, witness: &Witness) -> Result<WitnessLevel, Rejection> {
        let goals = witness.candidate.goals();
        let run = self.run(&witness.order, &goals)?;
        match &witness.candidate {
            CandidateKind::Race { first, second } => self.race(*first, *second)?,
            CandidateKind::Deadlock { waits, locks } => self.deadlock(&run, waits, locks)?,
        }
        Ok(self.level(&witness.order, &goals, &[]))
    }

    /// The same of an order after which one event is next, and threads have run so far.
    pub fn meets(&self, order: &[EventIndex], next: EventIndex, stands: &[Stand]) -> Result<WitnessLevel, Rejection> {
        let run = self.run(order, &[next])?;
        for stand in stands {
            let thread = stand.thread;
            if thread.index() >= self.facts.fork.len() {
                return Err(Rejection::StandsElsewhere { thread });
            }
            let [least, most] = [stand.from, stand.to].map(|bound| self.trace.program_order().before(thread.index(), bound));
            let is_created = self.facts.fork[thread.index()].is_none_or(|fork| self.ran(&run, fork)) || !stand.has_begun();
            if !(least..=most).contains(&run.done[thread.index()]) || !is_created {
                return Err(Rejection::StandsElsewhere { thread });
            }
        }
        Ok(self.level(order, &[next], stands))
    }

    fn level(&self, order: &[EventIndex], goals: &[EventIndex], stands: &[Stand]) -> WitnessLevel {
        let is_causal = self.reads_from.kept_by(self.trace, order, goals, stands);
        if is_causal { WitnessLevel::Causal } else { WitnessLevel::Synchronisation }
    }

    /// The state that an order leads to, in which each goal is next.
    fn run(&self, order: &[EventIndex], goals: &[EventIndex]) -> Result<Run, Rejection> {
        for &event in order.iter().chain(goals) {
            if event.index() >= self.trace.events.len() {
                return Err(Rejection::UnknownEvent { event, events: self.trace.events.len() });
            }
        }
        let mut run = Run {
            done: vec![0; self.facts.fork.len()],
            place: HashMap::new(),
            locks: HashMap::new(),
            counts: self.facts.initial_count.clone(),
        };
        for (place, &index) in (1..).zip(order) {
            self.step(&mut run, index)?;
            if self.facts.paired.contains(&index) {
                run.place.insert(index, place);
            }
        }
        goals.iter().try_for_each(|&goal| self.goal_is_next(&run, goal))?;
        Ok(run)
    }

    fn step(&self, run: &mut Run, index: EventIndex) -> Result<(), Rejection> {
        let event = self.trace.event(index);
        let thread = event.thread;
        let done = &mut run.done[thread.index()];
        if self.trace.program_order().place(index) != (thread.0, *done) {
            return Err(Rejection::NotAPrefix { event: index, thread, expected: self.next(thread.index(), *done) });
        }
        *done += 1;
        // What has run stays so: the thread's first event alone can be too early.
        let is_first = *done == 1;
        if let Some(fork) = self.facts.fork[thread.index()].filter(|_| is_first)
            && !self.ran(run, fork)
        {
            return Err(Rejection::BeforeFork { event: index, thread, fork });
        }
        self.kept(run, index)?;
        match event.kind {
            EventKind::Join { child, .. } => {
                if let Some(last) = self.trace.program_order().last(child.index())
                    && !self.ran(run, last)
                {
                    return Err(Rejection::JoinBeforeEnd { event: index, last, child });
                }
                if let Some(&Some(fork)) = self.facts.fork.get(child.index())
                    && !self.ran(run, fork)
                {
                    return Err(Rejection::BeforeFork { event: index, thread: child, fork });
                }
            }
            EventKind::Acquire { lock, mode, .. } => self.acquire(run, index, lock, mode)?,
            EventKind::Release { lock, mode } => run.locks.entry(lock).or_default().release(thread, mode),
            EventKind::WaitBegin { mutex, .. } => {
                run.locks.entry(mutex).or_default().release(thread, LockMode::Exclusive);
            }
            EventKind::WaitEnd { mutex, woken_by, timed_out, .. } => {
                if let Some(signal) = woken_by
                    && !timed_out
                {
                    self.woken(run, index, signal)?;
                }
                self.acquire(run, index, mutex, LockMode::Exclusive)?;
            }
            EventKind::BarrierExit { barrier, generation } => {
                let entered = self.facts.entered.get(&(barrier, generation));
                if let Some(&missing) = entered.into_iter().flatten().find(|&&enter| !self.ran(run, enter)) {
                    return Err(Rejection::BarrierIncomplete { event: index, barrier, generation, missing });
                }
            }
            EventKind::Post { semaphore } => *run.counts.entry(semaphore).or_default() += 1,
            EventKind::Take { semaphore } => {
                let count = run.counts.entry(semaphore).or_default();
                *count = count.checked_sub(1).ok_or(Rejection::SemaphoreEmpty { event: index, semaphore })?;
            }
            EventKind::OnceSeen { .. } | EventKind::AcquireObject { .. } => {
                if let Some(&needed) = self.facts.released.get(&index)
                    && !self.ran(run, needed)
                {
                    return Err(Rejection::NotYetPublished { event: index, needed });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether an event has run: threads run their events in program order.
    fn ran(&self, run: &Run, event: EventIndex) -> bool {
        event.index() < self.trace.events.len() && {
            let (thread, at) = self.trace.program_order().place(event);
            at < run.done[thread as usize]
        }
    }

    /// The event of a thread that has so many before it.
    fn next(&self, thread: usize, done: u32) -> Option<EventIndex> {
        let order = self.trace.program_order();
        (done < order.count(thread)).then(|| order.at(thread, done))
    }

    /// What calls into unseen code may have ordered before an event has happened.
    fn kept(&self, run: &Run, index: EventIndex) -> Result<(), Rejection> {
        match self.trace.kept_before(index).find(|&needed| !self.ran(run, needed)) {
            Some(needed) => Err(Rejection::OrderedUnseen { event: index, needed }),
            None => Ok(()),
        }
    }

    fn acquire(&self, run: &mut Run, index: EventIndex, lock: Address, mode: LockMode) -> Result<(), Rejection> {
        let thread = self.trace.event(index).thread;
        let state = run.locks.entry(lock).or_default();
        if let Some(holder) = state.excludes(mode) {
            return Err(Rejection::LockHeld { event: index, lock, holder });
        }
        match mode {
            LockMode::Exclusive => state.exclusive = Some(thread),
            LockMode::Shared => state.shared.push(thread),
        }
        Ok(())
    }

    fn woken(&self, run: &Run, index: EventIndex, signal: EventIndex) -> Result<(), Rejection> {
        if !self.ran(run, signal) {
            return Err(Rejection::WokenBeforeSignal { event: index, signal });
        }
        match self.facts.wait_begin.get(&index) {
            Some(begin) if run.place.get(begin) > run.place.get(&signal) => {
                Err(Rejection::SignalBeforeWait { event: index, signal })
            }
            _ => Ok(()),
        }
    }

    fn goal_is_next(&self, run: &Run, goal: EventIndex) -> Result<(), Rejection> {
        let thread = self.trace.event(goal).thread.index();
        let next = self.next(thread, run.done[thread]);
        if next != Some(goal) {
            return Err(Rejection::GoalNotNext { goal, next });
        }
        if self.facts.fork[thread].is_some_and(|fork| !self.ran(run, fork)) {
            return Err(Rejection::GoalNotStarted { goal });
        }
        self.kept(run, goal)
    }

    fn race(&self, first: EventIndex, second: EventIndex) -> Result<(), Rejection> {
        let (one, other) = (self.trace.event(first), self.trace.event(second));
        if one.thread == other.thread {
            return Err(Rejection::SameThread { first, second });
        }
        match (one.access(), other.access()) {
            (Some(one), Some(other)) if one.conflicts(&other) => Ok(()),
            _ => Err(Rejection::NoConflict { first, second }),
        }
    }

    fn deadlock(&self, run: &Run, waits: &[EventIndex], locks: &[Option<Address>]) -> Result<(), Rejection> {
        if waits.len() < 2 || waits.len() != locks.len() {
            return Err(Rejection::MalformedCycle { waits: waits.len(), locks: locks.len() });
        }
        for (place, &goal) in waits.iter().enumerate() {
            let thread = self.trace.event(goal).thread;
            if let Some(&earlier) = waits[..place].iter().find(|&&earlier| self.trace.event(earlier).thread == thread) {
                return Err(Rejection::SameThread { first: earlier, second: goal });
            }
            let awaited = self.trace.event(waits[(place + 1) % waits.len()]).thread;
            match locks[place] {
                Some(lock) => self.waits_for_lock(run, goal, lock, awaited)?,
                None => self.waits_for_thread(run, goal, awaited)?,
            }
        }
        Ok(())
    }

    fn waits_for_lock(&self, run: &Run, goal: EventIndex, wanted: Address, holder: ThreadId) -> Result<(), Rejection> {
        let mode = match self.trace.kind(goal) {
            EventKind::Acquire { lock, mode, may_wait: true } | EventKind::Request { lock, mode } if lock == wanted => mode,
            EventKind::WaitEnd { mutex, woken_by, timed_out, .. } if mutex == wanted => {
                if let Some(signal) = woken_by
                    && !timed_out
                {
                    self.woken(run, goal, signal)?;
                }
                LockMode::Exclusive
            }
            _ => return Err(Rejection::NotAnAcquisition { goal, lock: wanted }),
        };
        if run.locks.get(&wanted).is_some_and(|state| state.excluded_by(holder, mode)) {
            return Ok(());
        }
        Err(Rejection::NotBlocked { goal, lock: wanted })
    }

    /// A thread that has a goal has not ended.
    fn waits_for_thread(&self, run: &Run, goal: EventIndex, awaited: ThreadId) -> Result<(), Rejection> {
        let waits = match self.trace.kind(goal) {
            EventKind::Join { child, may_wait } => may_wait && child == awaited,
            EventKind::BarrierExit { barrier, generation } => {
                let entered = self.facts.entered.get(&(barrier, generation)).into_iter().flatten();
                entered.into_iter().any(|&enter| self.trace.event(enter).thread == awaited && !self.ran(run, enter))
            }
            _ => false,
        };
        if waits { Ok(()) } else { Err(Rejection::DoesNotWait { goal, thread: awaited }) }
    }
}
