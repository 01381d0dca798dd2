//! Races under causal precedence (CP), within windows.
//!
//! Smaragdakis, Evans, Sadowski, Yi, Flanagan, "Sound Predictive Race Detection in Polynomial Time", POPL 2012, the definition of
//! CP. CP orders (a) the release of a critical section before the acquisition of a later one of the same lock, of another thread,
//! if accesses in them conflict; (b) the same if something in the former is ordered by CP before something in the latter; (c)
//! whatever follows by composition with happens-before on either side. An access races if an earlier conflicting one of another
//! thread is not ordered before it.
//!
//! Whether an acquisition is ordered depends on what comes behind it. So each window is gathered and then gone through until
//! nothing is added: a run keeps for every thread what is CP-ordered before its next event, as WCP does ([`crate::wcp`]), from
//! the orders found so far; at the end of a section it finds the sections that rule (b) orders it behind. Of exclusive sections
//! the latest one stands for all earlier ones.
//!
//! Deviations: (1) sections in shared mode count against exclusive ones only; (2) fork, join, objects, barriers and atomics that
//! synchronise are orders of CP too; (3) two atomic accesses conflict under rule (a), though they do not race.
//!
//! Guarantee: exact for every access within its window, the paper's whole relation there; pairs across windows are lost, and with
//! them orders that lead outside, of which no two events of one window need any. A trace's first CP race is a race or a deadlock
//! of some reordering; a pair is a candidate. Cost: runs over the window, at most as many as it has sections, usually two or
//! three; memory for the window.

use crate::analysis::Analysis;
use crate::clock::{ALWAYS, Row, Rows, Time, join, width_for};
use crate::race::Races;
use crate::sections::{Accessing, NONE, Section};
use crate::synchronisation::{Clocks, Edges};
use crate::variables::Variables;
use rashomon_packed::{Event, Op, Space};
use rustc_hash::FxHashMap;

/// Events of a window, if nothing else is asked for.
pub const WINDOW: usize = 10_000;

#[derive(Clone, Debug)]
pub struct Cp {
    size: usize,
    window: Vec<Event>,
    /// The number of its first event.
    first: u64,
    /// Sections that reach into the window, by thread: the event that opened them.
    open: Vec<Vec<Event>>,
    races: Races,
}

impl Default for Cp {
    fn default() -> Self {
        Self::new(WINDOW)
    }
}

impl Cp {
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), window: Vec::new(), first: 0, open: Vec::new(), races: Races::default() }
    }

    /// Keeps every single race too.
    pub fn keeping_all(mut self) -> Self {
        self.races = Races::keeping_all();
        self
    }

    pub fn found(mut self) -> Races {
        self.close();
        self.races
    }

    /// Nothing but what was found.
    pub(crate) fn without_tables(mut self) -> Self {
        self.close();
        Self { races: self.races, ..Self::default() }
    }

    /// The window is complete.
    fn close(&mut self) {
        if self.window.is_empty() {
            return;
        }
        let window = std::mem::take(&mut self.window);
        let mut orders = Orders::of(&window, &self.open);
        loop {
            let more = Run::new(&window, &self.open, &orders).further_orders();
            if more.is_empty() {
                break;
            }
            for (section, former) in more {
                orders.behind[section as usize].push(former);
            }
        }
        Run::new(&window, &self.open, &orders).report(self.first, &mut self.races);
        for event in &window {
            let thread = usize::from(event.thread);
            if self.open.len() <= thread {
                self.open.resize(thread + 1, Vec::new());
            }
            match event.op {
                Op::Acquire | Op::AcquireShared => self.open[thread].push(*event),
                Op::Release | Op::ReleaseShared => {
                    if let Some(place) = self.open[thread].iter().rposition(|open| closes(event, open)) {
                        self.open[thread].remove(place);
                    }
                }
                _ => {}
            }
        }
        self.first += window.len() as u64;
        self.window = window;
        self.window.clear();
    }
}

fn closes(release: &Event, acquire: &Event) -> bool {
    release.target == acquire.target && (release.op == Op::ReleaseShared) == (acquire.op == Op::AcquireShared)
}

/// Sections of a window, numbered by their acquisition, and which releases each is ordered behind.
struct Orders {
    sections: Vec<Section>,
    locks: Vec<u32>,
    behind: Vec<Vec<u32>>,
}

/// Follows the sections of threads through a window.
struct Follow {
    open: Vec<Vec<(u32, u32)>>,
    next: u32,
}

impl Follow {
    /// Sections that are open at the beginning come first.
    fn new(held: &[Vec<Event>]) -> Self {
        let mut follow = Self { open: Vec::new(), next: 0 };
        for event in held.iter().flatten() {
            follow.acquire(event);
        }
        follow
    }

    fn of(&mut self, thread: u16) -> &mut Vec<(u32, u32)> {
        let thread = usize::from(thread);
        if self.open.len() <= thread {
            self.open.resize(thread + 1, Vec::new());
        }
        &mut self.open[thread]
    }

    fn acquire(&mut self, event: &Event) -> u32 {
        let section = self.next;
        self.next += 1;
        self.of(event.thread).push((event.target, section));
        section
    }

    fn release(&mut self, event: &Event, sections: &[Section]) -> Option<u32> {
        let shared = event.op == Op::ReleaseShared;
        let open = self.of(event.thread);
        let place =
            open.iter().rposition(|(lock, section)| *lock == event.target && sections[*section as usize].shared == shared)?;
        Some(open.remove(place).1)
    }
}

impl Orders {
    /// By rule (a).
    fn of(window: &[Event], held: &[Vec<Event>]) -> Self {
        let mut orders = Self { sections: Vec::new(), locks: Vec::new(), behind: Vec::new() };
        for event in held.iter().flatten() {
            orders.section(event, 0);
        }
        let mut follow = Follow::new(held);
        let mut conflicts: FxHashMap<(u32, u32), [Accessing; 2]> = FxHashMap::default();
        for (event, now) in window.iter().zip(1..) {
            match event.op {
                Op::Acquire | Op::AcquireShared => {
                    follow.acquire(event);
                    orders.section(event, now);
                }
                Op::Release | Op::ReleaseShared => {
                    if let Some(section) = follow.release(event, &orders.sections) {
                        orders.sections[section as usize].released = now;
                    }
                }
                Op::Forget => conflicts.retain(|(_, variable), _| *variable != event.target),
                op if op.is_access() => {
                    for &(lock, own) in follow.of(event.thread).iter() {
                        let [reads, writes] = conflicts.entry((lock, event.target)).or_default();
                        let shared = orders.sections[own as usize].shared;
                        let behind = &mut orders.behind[own as usize];
                        behind.extend(writes.before(event.thread, shared, &orders.sections));
                        if op.writes() {
                            behind.extend(reads.before(event.thread, shared, &orders.sections));
                            writes.add(own, &orders.sections);
                        }
                        if op.reads() {
                            reads.add(own, &orders.sections);
                        }
                        behind.sort_unstable();
                        behind.dedup();
                    }
                }
                _ => {}
            }
        }
        orders
    }

    fn section(&mut self, event: &Event, now: Time) {
        let shared = event.op == Op::AcquireShared;
        self.sections.push(Section { acquired: now, released: 0, thread: event.thread, shared, row: NONE });
        self.locks.push(event.target);
        self.behind.push(Vec::new());
    }
}

/// One run over a window.
struct Run<'a> {
    window: &'a [Event],
    orders: &'a Orders,
    follow: Follow,
    clocks: Clocks,
    /// What is CP-ordered before each thread's next event; its own entry is always known, and is in `own`.
    known: Rows,
    own: Vec<Time>,
    /// What happened before each section's release.
    released: Vec<Option<Box<Row>>>,
    /// What was CP-ordered before the releases of each lock, exclusive and shared.
    passed_on: FxHashMap<(u32, bool), Box<Row>>,
    /// Sections of each lock that have ended.
    ended: FxHashMap<u32, Vec<u32>>,
}

impl<'a> Run<'a> {
    fn new(window: &'a [Event], held: &[Vec<Event>], orders: &'a Orders) -> Self {
        let mut clocks = Clocks::new(Edges::ALL);
        clocks.prepare(window);
        let mut known = Rows::default();
        known.widen(width_for(clocks.threads().max(1) as u16 - 1));
        for thread in 0..clocks.threads() {
            known.push();
            known.row_mut(thread)[thread] = ALWAYS;
        }
        Self {
            window,
            orders,
            follow: Follow::new(held),
            own: vec![0; clocks.threads()],
            clocks,
            known,
            released: vec![None; orders.sections.len()],
            passed_on: FxHashMap::default(),
            ended: FxHashMap::default(),
        }
    }

    fn learn(&mut self, thread: u16, from: &Row) {
        let thread = usize::from(thread);
        let of_itself = from[thread];
        if of_itself != ALWAYS {
            self.own[thread] = self.own[thread].max(of_itself);
        }
        join(self.known.row_mut(thread), from);
    }

    /// What an event that is no access does. Names the section that it ends.
    fn step(&mut self, event: &Event, now: Time) -> Option<u32> {
        let thread = usize::from(event.thread);
        if let Some((row, running)) = self.clocks.received_without_locks(event) {
            let row: Box<Row> = row.into();
            self.learn(event.thread, &row);
            if let Some(other) = running {
                self.known.row_mut(thread)[usize::from(other)] = now;
            }
        }
        self.clocks.receive(event, now);
        let mut ended = None;
        match event.op {
            Op::Acquire | Op::AcquireShared => {
                let modes: &[bool] = if event.op == Op::Acquire { &[false, true] } else { &[false] };
                for mode in modes {
                    if let Some(row) = self.passed_on.get(&(event.target, *mode)).cloned() {
                        self.learn(event.thread, &row);
                    }
                }
                let section = self.follow.acquire(event);
                for former in &self.orders.behind[section as usize] {
                    if let Some(row) = self.released[*former as usize].clone() {
                        self.learn(event.thread, &row);
                    }
                }
            }
            Op::Release | Op::ReleaseShared => {
                ended = self.follow.release(event, &self.orders.sections);
                let mut row: Box<Row> = self.clocks.of(event.thread).into();
                row[thread] = now;
                if let Some(section) = ended {
                    self.released[section as usize] = Some(row);
                }
                let known = self.known.row(thread);
                let all = self
                    .passed_on
                    .entry((event.target, event.op == Op::ReleaseShared))
                    .or_insert_with(|| vec![0; known.len()].into());
                join(all, known);
                all[thread] = self.own[thread];
            }
            Op::Fork if usize::try_from(event.target).is_ok_and(|child| child != thread && child < self.own.len()) => {
                let row: Box<Row> = self.clocks.of(event.thread).into();
                self.learn(event.target as u16, &row);
                self.known.row_mut(event.target as usize)[thread] = now;
            }
            _ => {}
        }
        if !event.op.is_access() {
            self.clocks.release(event, now);
        }
        ended
    }

    /// Rule (b), once for every section: what it adds, as pairs of a section and one that it is ordered behind.
    fn further_orders(mut self) -> Vec<(u32, u32)> {
        let mut more: Vec<(u32, u32)> = Vec::new();
        for (event, now) in self.window.iter().zip(1..) {
            if event.op.is_plain() {
                continue;
            }
            let ended = self.step(event, now);
            if event.op.is_access() {
                self.clocks.release(event, now);
            }
            if let Some(section) = ended {
                self.order_behind(section, &mut more);
                self.ended.entry(event.target).or_default().push(section);
            }
        }
        let open: Vec<u32> = self.follow.open.iter().flatten().map(|(_, section)| *section).collect();
        for section in open {
            self.order_behind(section, &mut more);
        }
        more
    }

    /// Sections that the one, whose thread has come to its end, is ordered behind.
    fn order_behind(&self, section: u32, more: &mut Vec<(u32, u32)>) {
        let later = &self.orders.sections[section as usize];
        let known = self.known.row(usize::from(later.thread));
        let lock = self.orders.locks[section as usize];
        for &former in self.ended.get(&lock).into_iter().flatten().rev() {
            let earlier = &self.orders.sections[former as usize];
            let apart = earlier.thread != later.thread && !(earlier.shared && later.shared) && earlier.released < later.acquired;
            if apart && earlier.acquired <= known[usize::from(earlier.thread)] {
                if !self.orders.behind[section as usize].contains(&former) {
                    more.push((section, former));
                }
                if !earlier.shared {
                    return;
                }
            }
        }
    }

    fn report(mut self, first: u64, races: &mut Races) {
        let mut variables = Variables::default();
        // A window has few variables, whatever their numbers are.
        let mut slots: FxHashMap<u32, usize> = FxHashMap::default();
        let mut next = 0;
        for (event, now) in self.window.iter().zip(1..) {
            if !event.op.is_plain() {
                self.step(event, now);
            }
            if event.op == Op::Forget {
                slots.remove(&event.target);
            }
            if !event.op.is_access() {
                continue;
            }
            let slot = *slots.entry(event.target).or_insert_with(|| {
                next += 1;
                next - 1
            });
            let known = self.known.row(usize::from(event.thread));
            if !variables.access(slot, event, now, known) {
                races.report_from(first, event, now, variables.history(slot).conflicts(event), known);
                variables.add_to_history(slot, event, now, known);
            }
            if !event.op.is_plain() {
                self.clocks.release(event, now);
            }
        }
    }
}

impl Analysis for Cp {
    fn block(&mut self, _first: u64, events: &[Event]) {
        let mut events = events;
        while !events.is_empty() {
            let (now, later) = events.split_at((self.size - self.window.len()).min(events.len()));
            self.window.extend_from_slice(now);
            if self.window.len() == self.size {
                self.close();
            }
            events = later;
        }
    }

    /// Has windows of its own.
    fn boundary(&mut self, _first: u64) {}

    fn expect(&mut self, _space: Space, _numbers: u32) {}

    fn bytes(&self) -> usize {
        self.window.capacity() * size_of::<Event>() + self.races.bytes()
    }
}
