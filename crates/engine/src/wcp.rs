//! Races under weak causal precedence (WCP).
//!
//! Kini, Mathur, Viswanathan, "Dynamic Race Prediction in Linear Time", PLDI 2017, the definition of WCP and Algorithm 1. WCP
//! orders (a) the release of a critical section before a later access, in a section of the same lock, that conflicts with one in
//! the former; (b) the releases of two sections of one lock, of different threads, if something in the former is ordered before
//! something in the latter; (c) whatever follows by composition with happens-before on either side. An access races if an earlier
//! conflicting one of another thread is not ordered before it.
//!
//! Every thread has two clocks: H of happens-before, and P of what is WCP-ordered before its next event. At an access, P learns
//! the H of each release that rule (a) names; at a release, those of rule (b). From Roemer, Genç, Bond, "SmartTrack", PLDI 2020,
//! §4: an epoch comparison before each join, and sections instead of clocks in the tables: an access enters its open section in
//! the tables at once, so that a release has nothing to do for what was accessed. Two sections for each lock and variable
//! suffice, the latest one and the latest one of another thread than that, because the releases of a lock are ordered by
//! happens-before. Since a section is known by its acquisition's epoch, a queue is one list for each lock, with a place in it for
//! each thread.
//!
//! Deviations: (1) sections in shared mode, which the paper has not, count against exclusive ones only; (2) fork, join, objects,
//! barriers and atomics that synchronise are orders of WCP too, as in the authors' implementation; (3) under rule (a) two atomic
//! accesses conflict, though they do not race.
//!
//! Guarantee: exact for the second access of a WCP race (for every access, not only the first race). A trace with a WCP race has
//! a race or a deadlock in some reordering; a single pair is a candidate. Cost: O(locks held) tables and an occasional join for
//! an access; memory grows with the number of critical sections, as the paper's queues do (the paper proves that nothing linear
//! can do without).

use crate::analysis::Analysis;
use crate::clock::{ALWAYS, Row, Rows, Time, join, width_for};
use crate::conflicts::Conflicts;
use crate::hints::push;
use crate::race::Races;
use crate::sections::{NONE, Section};
use crate::synchronisation::{Clocks, Edges};
use crate::table::Table;
use crate::variables::{Share, Variables};
use rashomon_packed::{Event, Op, Space};
use rustc_hash::FxHashMap;

#[derive(Clone, Debug, Default)]
struct Lock {
    /// In the order of release; all of them, and per thread.
    exclusive: Vec<u32>,
    shared: Vec<Vec<u32>>,
    /// How many of the exclusive ones each thread is ordered behind.
    passed: Vec<u32>,
    /// What was WCP-ordered before the latest release, and before any shared one.
    known: Option<Box<Row>>,
    known_shared: Option<Box<Row>>,
}

#[derive(Clone, Debug)]
pub struct Wcp {
    clocks: Clocks,
    /// P, with a thread's own entry always known, and that entry.
    known: Rows,
    own: Vec<Time>,
    /// Open sections of each thread.
    open: Vec<Vec<(u32, u32)>>,
    locks: Table<Lock>,
    /// Rows that locks have.
    kept: usize,
    sections: Vec<Section>,
    rows: Rows,
    conflicts: Conflicts,
    /// Of variables that had more than one.
    lives: FxHashMap<u32, u32>,
    variables: Variables,
    races: Races,
    ahead: Ahead,
}

/// How many events before its turn what an access needs is asked for.
const AHEAD: usize = 16;
/// After how many more such wishes a pair's cell is near, so that the sections it names can be asked for.
const NEAR: usize = 8;

/// What locks threads will hold [`AHEAD`] events later, so that what an access will need can be asked for.
#[derive(Clone, Debug, Default)]
struct Ahead {
    held: Vec<Vec<u32>>,
    /// The latest pairs of lock and variable asked for.
    asked: [(u32, u32); NEAR],
    next: usize,
}

impl Ahead {
    fn begin(&mut self, open: &[Vec<(u32, u32)>]) {
        self.held.resize(open.len(), Vec::new());
        for (held, open) in self.held.iter_mut().zip(open) {
            held.clear();
            held.extend(open.iter().map(|(lock, _)| *lock));
        }
    }

    #[inline]
    fn event(&mut self, event: &Event, wcp: &Wcp) {
        let held = &mut self.held[usize::from(event.thread)];
        match event.op {
            Op::Acquire | Op::AcquireShared => held.push(event.target),
            Op::Release | Op::ReleaseShared => {
                if let Some(place) = held.iter().rposition(|lock| *lock == event.target) {
                    held.remove(place);
                }
            }
            op if op.is_access() => {
                if let Some(slot) = Share::default().slot(event.target) {
                    wcp.variables.prefetch(slot);
                }
                for lock in held {
                    wcp.conflicts.prefetch(*lock, event.target);
                    let (lock, variable) = std::mem::replace(&mut self.asked[self.next], (*lock, event.target));
                    wcp.conflicts.prefetch_sections(lock, variable, &wcp.sections);
                    self.next = (self.next + 1) % NEAR;
                }
            }
            _ => {}
        }
    }
}

impl Default for Wcp {
    fn default() -> Self {
        Self {
            clocks: Clocks::new(Edges::ALL),
            known: Rows::default(),
            own: Vec::new(),
            open: Vec::new(),
            locks: Table::default(),
            kept: 0,
            sections: Vec::new(),
            rows: Rows::default(),
            conflicts: Conflicts::default(),
            lives: FxHashMap::default(),
            variables: Variables::default(),
            races: Races::default(),
            ahead: Ahead::default(),
        }
    }
}

/// The thread's P learns a row.
fn learn(known: &mut Rows, own: &mut [Time], thread: u16, from: &Row) {
    let thread = usize::from(thread);
    own[thread] = own[thread].max(if from[thread] == ALWAYS { 0 } else { from[thread] });
    join(known.row_mut(thread), from);
}

impl Wcp {
    /// Keeps every single race too.
    pub fn keeping_all(mut self) -> Self {
        self.races = Races::keeping_all();
        self
    }

    pub fn found(self) -> Races {
        self.races
    }

    /// Nothing but what was found.
    pub(crate) fn without_tables(self) -> Self {
        Self { races: self.races, ..Self::default() }
    }

    fn prepare(&mut self, events: &[Event]) {
        self.clocks.prepare(events);
        let threads = self.clocks.threads();
        if threads > self.known.count() {
            let width = width_for(threads as u16 - 1);
            self.known.widen(width);
            self.rows.widen(width);
            for lock in self.locks.iter_mut() {
                for row in lock.known.iter_mut().chain(&mut lock.known_shared) {
                    let mut wider = row.to_vec();
                    wider.resize(width, 0);
                    *row = wider.into();
                }
            }
            while self.known.count() < threads {
                let row = self.known.push();
                self.known.row_mut(row)[row] = ALWAYS;
            }
            self.own.resize(threads, 0);
            self.open.resize(threads, Vec::new());
        }
    }

    fn acquire(&mut self, event: &Event, now: Time) {
        self.clocks.receive(event, now);
        let shared = event.op == Op::AcquireShared;
        let lock = self.locks.at(event.target as usize);
        let rows = lock.known.iter().chain(lock.known_shared.iter().filter(|_| !shared));
        for row in rows {
            learn(&mut self.known, &mut self.own, event.thread, row);
        }
        let section = Section { acquired: now, released: 0, thread: event.thread, shared, row: NONE };
        self.open[usize::from(event.thread)].push((event.target, self.sections.len() as u32));
        push(&mut self.sections, section);
    }

    fn release(&mut self, event: &Event, now: Time) {
        let shared = event.op == Op::ReleaseShared;
        let thread = usize::from(event.thread);
        let sections = &self.sections;
        let is_it = |&(lock, section): &(u32, u32)| lock == event.target && sections[section as usize].shared == shared;
        // Releasing what is not held means nothing.
        let Some(place) = self.open[thread].iter().rposition(is_it) else { return };
        let (_, number) = self.open[thread].remove(place);
        self.order_releases(event, shared);
        let row = self.rows.push();
        let known = self.rows.row_mut(row);
        known.copy_from_slice(self.clocks.of(event.thread));
        known[thread] = now;
        let section = &mut self.sections[number as usize];
        (section.released, section.row) = (now, row as u32);
        let known = self.known.row(thread);
        let lock = self.locks.known_mut(event.target as usize);
        if shared {
            if lock.shared.len() <= thread {
                lock.shared.resize(thread + 1, Vec::new());
            }
            lock.shared[thread].push(number);
            self.kept += usize::from(lock.known_shared.is_none());
            let all = lock.known_shared.get_or_insert_with(|| vec![0; known.len()].into());
            join(all, known);
            all[thread] = self.own[thread];
        } else {
            lock.exclusive.push(number);
            self.kept += usize::from(lock.known.is_none());
            let latest = lock.known.get_or_insert_with(|| known.into());
            latest.copy_from_slice(known);
            latest[thread] = self.own[thread];
        }
        self.clocks.release(event, now);
    }

    /// Rule (b).
    fn order_releases(&mut self, event: &Event, shared: bool) {
        let thread = usize::from(event.thread);
        let lock = self.locks.known_mut(event.target as usize);
        if lock.passed.len() <= thread {
            lock.passed.resize(thread + 1, 0);
        }
        let passed = &mut lock.passed[thread];
        loop {
            let clock = self.known.row(thread);
            // Later releases know what earlier ones do: the last one stands for all.
            let mut last = NONE;
            for number in &lock.exclusive[*passed as usize..] {
                let section = &self.sections[*number as usize];
                if section.acquired > clock[usize::from(section.thread)] {
                    break;
                }
                *passed += 1;
                if section.thread != event.thread {
                    last = *number;
                }
            }
            let mut news: Vec<u32> = (last != NONE).then_some(last).into_iter().collect();
            if !shared {
                for (other, of_thread) in lock.shared.iter().enumerate().filter(|(other, _)| *other != thread) {
                    let behind = of_thread.partition_point(|number| self.sections[*number as usize].acquired <= clock[other]);
                    news.extend(behind.checked_sub(1).map(|place| of_thread[place]));
                }
            }
            let mut learnt = false;
            for number in news {
                let section = &self.sections[number as usize];
                if section.released > self.known.row(thread)[usize::from(section.thread)] {
                    learn(&mut self.known, &mut self.own, event.thread, self.rows.row(section.row as usize));
                    learnt = true;
                }
            }
            if !learnt {
                return;
            }
        }
    }

    /// Rule (a).
    fn order_behind_conflicts(&mut self, event: &Event) {
        let thread = event.thread;
        let life = if self.lives.is_empty() { 0 } else { self.lives.get(&event.target).copied().unwrap_or(0) };
        for &(lock, own) in &self.open[usize::from(thread)] {
            let place = self.conflicts.find(lock, event.target, life);
            let shared = self.sections[own as usize].shared;
            for number in self.conflicts.before(place, event.op.writes(), thread, shared, &self.sections) {
                let section = &self.sections[number as usize];
                if section.released > self.known.row(usize::from(thread))[usize::from(section.thread)] {
                    learn(&mut self.known, &mut self.own, thread, self.rows.row(section.row as usize));
                }
            }
            self.conflicts.add(place, own, event.op.reads(), event.op.writes(), &self.sections);
        }
    }

    #[inline]
    fn access(&mut self, event: &Event, now: Time) {
        if !self.open[usize::from(event.thread)].is_empty() {
            self.order_behind_conflicts(event);
        }
        let Some(slot) = Share::default().slot(event.target) else { return };
        let known = self.known.row(usize::from(event.thread));
        if self.variables.access(slot, event, now, known) {
            return;
        }
        let history = self.variables.history(slot);
        self.races.report(event, now, history.conflicts(event), known);
        self.variables.add_to_history(slot, event, now, known);
    }

    fn other(&mut self, event: &Event, now: Time) {
        let thread = usize::from(event.thread);
        if let Some((row, running)) = self.clocks.received_without_locks(event) {
            learn(&mut self.known, &mut self.own, event.thread, row);
            if let Some(other) = running {
                self.known.row_mut(thread)[usize::from(other)] = now;
            }
        }
        self.clocks.receive(event, now);
        match event.op {
            Op::Forget => {
                *self.lives.entry(event.target).or_insert(0) += 1;
                if let Some(slot) = Share::default().slot(event.target) {
                    self.variables.forget(slot);
                }
            }
            Op::Fork if usize::try_from(event.target).is_ok_and(|child| child != thread && child < self.own.len()) => {
                let child = event.target as u16;
                learn(&mut self.known, &mut self.own, child, self.clocks.of(event.thread));
                self.known.row_mut(usize::from(child))[thread] = now;
            }
            op if op.is_access() => self.access(event, now),
            _ => {}
        }
        self.clocks.release(event, now);
    }
}

impl Analysis for Wcp {
    fn block(&mut self, first: u64, events: &[Event]) {
        self.prepare(events);
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.begin(&self.open);
        for event in events.iter().take(AHEAD) {
            ahead.event(event, self);
        }
        for (place, event) in events.iter().enumerate() {
            if let Some(event) = events.get(place + AHEAD) {
                ahead.event(event, self);
            }
            let now = (first + place as u64 + 1) as Time;
            match event.op {
                Op::Read | Op::Write => self.access(event, now),
                Op::Acquire | Op::AcquireShared => self.acquire(event, now),
                Op::Release | Op::ReleaseShared => self.release(event, now),
                Op::Branch | Op::Nothing | Op::Begin | Op::End | Op::Request | Op::RequestShared => {}
                _ => self.other(event, now),
            }
        }
        self.ahead = ahead;
    }

    fn boundary(&mut self, first: u64) {
        self.clocks.order_all_before(first as Time);
        for thread in 0..self.known.count() {
            for time in self.known.row_mut(thread) {
                *time = (*time).max(first as Time);
            }
        }
    }

    fn expect(&mut self, space: Space, numbers: u32) {
        if space == Space::Variable {
            self.variables.expect(numbers as usize);
        }
    }

    fn bytes(&self) -> usize {
        self.clocks.bytes()
            + self.known.bytes()
            + self.rows.bytes()
            + self.locks.bytes()
            + self.kept * self.known.width() * size_of::<Time>()
            + self.sections.capacity() * (size_of::<Section>() + size_of::<u32>())
            + self.conflicts.bytes()
            + self.variables.bytes()
            + self.races.bytes()
    }
}
