//! Happens-before races, schedulable races and Eraser's warnings, in one pass over shared state.
//!
//! **HB.** Flanagan, Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009, §3, with the edges of
//! [`crate::synchronisation`]. An access races if an earlier conflicting one of another thread is not ordered before it.
//! Deviations: (1) epochs name events ([`crate::clock`]), so there is no rule for the same epoch; (2) after a race nothing is
//! given up ([`crate::history`]): the answer is exact for every access, not only up to a variable's first race; (3) atomic
//! accesses do not race among each other.
//!
//! **SHB.** Mathur, Kini, Viswanathan, "What Happens-After the First Race?", OOPSLA 2018, Algorithm 1. One more edge, from the
//! last write of a variable to each read of it, which counts only after the read itself was checked. Every pair that is unordered
//! then can be scheduled next to each other. Since that order contains happens-before, (4) only accesses that race under HB are
//! looked at, (5) nothing is joined at a read whose write is known already, and (6) there are no clocks beside those of HB until
//! the first read that races. (7) Clocks of last writes are not kept per variable but found among the thread's versions
//! ([`crate::versions`]).
//!
//! **Lock sets.** Savage, Burrows, Nelson, Sobalvarro, Anderson, "Eraser", ACM TOCS 15(4), 1997, §2.2 and §2.3 with its states
//! and modes of locks. One warning a variable. Deviations: (8) atomic accesses hold one more lock among each other; (9) the other
//! side of a warning is the latest conflicting access that HB keeps, if there is one.
//!
//! Guarantees: HB and SHB exact for the second access of a race; SHB's are real in a reordering of the trace, HB's first one is.
//! Eraser: what is protected by a lock all along is silent; neither sound nor complete otherwise. Cost: O(1) for an access while
//! the variable is free of races and not read by several threads, else O(threads); 32 bytes a variable.

use crate::analysis::Analysis;
use crate::clock::Time;
use crate::eraser::Eraser;
use crate::history::Entry;
use crate::race::Races;
use crate::synchronisation::{Clocks, Edges, Flat, VectorClocks};
use crate::variables::{Share, Variables};
use crate::versions::Versions;
use rashomon_packed::{Event, Op, Space};

/// How many events before its turn a variable is asked for.
const AHEAD: usize = 16;

/// Which reports are wanted beside HB's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub shb: bool,
    pub lock_sets: bool,
}

/// What of SHB is different from HB.
#[derive(Clone, Debug)]
struct Schedulable<K> {
    /// Those of HB, until there is a difference.
    clocks: Option<Clocks<K>>,
    versions: Versions,
    races: Races,
}

impl<K> Default for Schedulable<K> {
    fn default() -> Self {
        Self { clocks: None, versions: Versions::default(), races: Races::default() }
    }
}

#[derive(Clone, Debug)]
pub struct Detector<K = Flat> {
    share: Share,
    clocks: Clocks<K>,
    variables: Variables,
    races: Races,
    schedulable: Option<Schedulable<K>>,
    eraser: Option<Eraser>,
    /// Accesses until then are of an earlier window.
    floor: Time,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub hb: Races,
    pub shb: Option<Races>,
    pub lock_sets: Option<Races>,
}

impl Detector {
    pub fn new(wanted: Wanted) -> Self {
        Self::of_share(wanted, Share::default())
    }

    /// Looks after some of the variables. SHB cannot: its clocks depend on accesses of all.
    pub fn of_share(wanted: Wanted, share: Share) -> Self {
        Self::start(wanted, share)
    }
}

impl<K: VectorClocks> Detector<K> {
    /// With clocks of any shape.
    pub fn with_clocks(wanted: Wanted) -> Self {
        Self::start(wanted, Share::default())
    }

    fn start(wanted: Wanted, share: Share) -> Self {
        assert!(!wanted.shb || share == Share::default(), "SHB needs all variables");
        Self {
            share,
            clocks: Clocks::new(Edges::ALL),
            variables: Variables::default(),
            races: Races::default(),
            schedulable: wanted.shb.then(Schedulable::default),
            eraser: wanted.lock_sets.then(Eraser::default),
            floor: 0,
        }
    }

    /// Keeps every single race too.
    pub fn keeping_all(mut self) -> Self {
        self.races = Races::keeping_all();
        if let Some(schedulable) = &mut self.schedulable {
            schedulable.races = Races::keeping_all();
        }
        if let Some(eraser) = &mut self.eraser {
            eraser.warnings = Races::keeping_all();
        }
        self
    }

    pub fn found(self) -> Found {
        Found {
            hb: self.races,
            shb: self.schedulable.map(|schedulable| schedulable.races),
            lock_sets: self.eraser.map(|eraser| eraser.warnings),
        }
    }

    /// Nothing but what was found.
    pub(crate) fn without_tables(self) -> Self {
        let wanted = Wanted { shb: self.schedulable.is_some(), lock_sets: self.eraser.is_some() };
        let found = self.found();
        let mut empty = Self::with_clocks(wanted);
        empty.races = found.hb;
        if let (Some(schedulable), Some(races)) = (&mut empty.schedulable, found.shb) {
            schedulable.races = races;
        }
        if let (Some(eraser), Some(warnings)) = (&mut empty.eraser, found.lock_sets) {
            eraser.warnings = warnings;
        }
        empty
    }

    #[inline]
    fn plain(&mut self, event: &Event, now: Time) {
        let Some(slot) = self.share.slot(event.target) else { return };
        if let Some(eraser) = &mut self.eraser {
            eraser.access(&mut self.variables, slot, event, now, self.floor);
        }
        if !self.variables.access(slot, event, now, self.clocks.of(event.thread)) {
            self.with_history(slot, event, now);
        }
    }

    /// The access with the variable's history, which it gets if it has none.
    #[inline(never)]
    fn with_history(&mut self, slot: usize, event: &Event, now: Time) {
        let history = self.variables.history(slot);
        self.races.report(event, now, history.conflicts(event), self.clocks.of(event.thread));
        if let Some(schedulable) = &mut self.schedulable {
            let clocks = schedulable.clocks.as_ref().unwrap_or(&self.clocks);
            schedulable.races.report(event, now, history.conflicts(event), clocks.of(event.thread));
            if event.op.reads()
                && let Some(write) = history.last_write()
                && !write.is_before(clocks.of(event.thread))
            {
                schedulable.reads_from(write, event.thread, now, &self.clocks);
            }
        }
        self.variables.add_to_history(slot, event, now, self.clocks.of(event.thread));
    }

    fn other(&mut self, event: &Event, now: Time) {
        if matches!(event.op, Op::Branch | Op::Nothing | Op::Begin | Op::End | Op::Request | Op::RequestShared) {
            return;
        }
        let received = self.clocks.receive(event, now);
        if let Some(schedulable) = &mut self.schedulable {
            let received = schedulable.clocks.as_mut().map_or(received, |clocks| clocks.receive(event, now));
            if received {
                schedulable.log(event.thread, now, &self.clocks);
            }
        }
        if event.op.is_access() {
            if let Some(slot) = self.share.slot(event.target) {
                if let Some(eraser) = &mut self.eraser {
                    eraser.access(&mut self.variables, slot, event, now, self.floor);
                }
                self.with_history(slot, event, now);
            }
        } else if event.op == Op::Forget
            && let Some(slot) = self.share.slot(event.target)
        {
            self.variables.forget(slot);
        }
        let taught = self.clocks.release(event, now);
        if let Some(schedulable) = &mut self.schedulable {
            let taught = schedulable.clocks.as_mut().map_or(taught, |clocks| clocks.release(event, now));
            if let Some(child) = taught {
                schedulable.log(child, now, &self.clocks);
            }
        }
        if let Some(eraser) = &mut self.eraser
            && event.op.space() == Some(Space::Lock)
        {
            eraser.lock(event);
        }
    }

    fn prepare(&mut self, events: &[Event]) {
        self.clocks.prepare(events);
        let threads = self.clocks.threads();
        if let Some(schedulable) = &mut self.schedulable {
            schedulable.versions.prepare(threads);
            if let Some(clocks) = &mut schedulable.clocks {
                clocks.prepare(events);
            }
            if schedulable.versions.is_crowded() {
                schedulable.versions.sweep(self.variables.last_writes(), self.variables.count());
            }
        }
        if let Some(eraser) = &mut self.eraser {
            eraser.prepare(threads);
        }
    }
}

impl<K: VectorClocks> Analysis for Detector<K> {
    fn block(&mut self, first: u64, events: &[Event]) {
        self.prepare(events);
        for (place, event) in events.iter().enumerate() {
            if let Some(ahead) = events.get(place + AHEAD)
                && ahead.op.is_access()
                && let Some(slot) = self.share.slot(ahead.target)
            {
                self.variables.prefetch(slot);
            }
            let now = (first + place as u64 + 1) as Time;
            if event.op.is_plain() { self.plain(event, now) } else { self.other(event, now) }
        }
    }

    fn boundary(&mut self, first: u64) {
        self.floor = first as Time;
        self.clocks.order_all_before(self.floor);
        if let Some(clocks) = self.schedulable.as_mut().and_then(|schedulable| schedulable.clocks.as_mut()) {
            clocks.order_all_before(self.floor);
        }
    }

    fn expect(&mut self, space: Space, numbers: u32) {
        if space == Space::Variable {
            self.variables.expect(self.share.slots(numbers));
        }
    }

    fn bytes(&self) -> usize {
        let schedulable = self.schedulable.as_ref().map_or(0, |schedulable| {
            schedulable.clocks.as_ref().map_or(0, Clocks::bytes) + schedulable.versions.bytes() + schedulable.races.bytes()
        });
        let eraser = self.eraser.as_ref().map_or(0, Eraser::bytes);
        self.clocks.bytes() + self.variables.bytes() + self.races.bytes() + schedulable + eraser
    }

    fn slots(&self) -> usize {
        self.variables.end()
    }
}

impl<K: VectorClocks> Schedulable<K> {
    /// The thread reads what the write wrote, and learns what the writer knew.
    fn reads_from(&mut self, write: &Entry, reader: u16, now: Time, hb: &Clocks<K>) {
        let clocks = self.clocks.get_or_insert_with(|| hb.clone());
        clocks.learn(reader, write.thread, write.time, self.versions.at(write.thread, write.time), now);
        self.versions.log(reader, now, clocks.of(reader));
    }

    fn log(&mut self, thread: u16, now: Time, hb: &Clocks<K>) {
        let clocks = self.clocks.as_ref().unwrap_or(hb);
        self.versions.log(thread, now, clocks.of(thread));
    }
}
