//! Wait loops in which nobody waited (§3): a thread that found its predicate true is ordered behind the one that made it true, as
//! if it had waited for that one's signal.
//!
//! The paper's compiler pass marks such loops. Where the trace has such marks ([`Trace::loops`]), they say which sections entered
//! a loop and left it without a wait; what they read in it, and who signals its condition, says behind whom they are ordered.
//! Otherwise the trace is looked at: a section of a mutex reads what the last section that
//! wrote it, of another thread, left there, and that section signals a condition of the mutex. Where the trace has waits for the
//! condition, the reading section must have been entered where a waiting one was; where it has none, the signal must have been
//! made with the mutex held, and the reading section must not signal the condition itself.
//!
//! The latter is an approximation in both directions: code without a loop may look like this, another write may make the
//! predicate true, too, and a loop whose predicate was written outside a section is not seen. So it decides nothing: orders
//! that respect the loops are preferred, and others are told apart (`behind`).

use crate::facts::{Facts, Wait};
use rashomon_event::{
    Access, AccessClass, Address, ContextId, Event, EventIndex, EventKind, LockMode, LoopKind, LoopMark, SiteId, Trace,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Sections that one section may read from.
const READ: usize = 8;

/// A section that leaves a predicate true, and one that finds it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loop {
    /// The end of the section that signals.
    pub satisfied: EventIndex,
    /// The beginning of the section that would wait.
    pub entered: EventIndex,
    /// Whether the same place in the program was seen to wait for the condition.
    pub known: bool,
}

/// How wait loops are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The compiler's plugin has marked them.
    Marks,
    /// By what sections of a mutex read, write and signal.
    Sections,
}

impl Source {
    pub fn of(trace: &Trace) -> Self {
        if trace.loops.is_empty() { Self::Sections } else { Self::Marks }
    }
}

/// From an acquisition of a mutex to its release, or to a wait that releases it.
struct Section {
    thread: usize,
    mutex: Address,
    /// Where it was entered, and how that was called: the call that takes a lock may be in a function of its own.
    place: (SiteId, ContextId),
    begin: EventIndex,
    end: Option<EventIndex>,
    /// Conditions, and whether the mutex was held.
    signals: Vec<(Address, bool)>,
    waits: Vec<Address>,
    /// First bytes of what it wrote.
    written: FxHashSet<u64>,
    /// Sections of other threads that wrote what it reads; with marks, what it reads in a loop.
    reads: Vec<usize>,
    /// The marked loop that it entered last; `None` within: the condition is not known.
    entered: Option<Option<Address>>,
}

#[derive(Default)]
struct Sections {
    all: Vec<Section>,
    /// Per thread, those that are open, the innermost last.
    open: Vec<Vec<usize>>,
    /// Per thread, those that ended last.
    ended: Vec<Option<usize>>,
    marked: bool,
    /// Per thread, whether it is in a marked loop and has not waited there.
    looping: Vec<bool>,
    /// Per first byte, the section that wrote there last; none of a write outside sections.
    writers: FxHashMap<u64, usize>,
}

/// In the order of the trace, without duplicates.
pub fn loops(trace: &Trace) -> Vec<Loop> {
    let signals = trace.events.iter().any(|event| matches!(event.kind, EventKind::Signal { .. }));
    if !signals {
        return Vec::new();
    }
    let count = rashomon_order::happens_before::thread_count(trace);
    let mut sections = Sections {
        open: vec![Vec::new(); count],
        ended: vec![None; count],
        marked: Source::of(trace) == Source::Marks,
        looping: vec![false; count],
        ..Sections::default()
    };
    let mut marks = trace.loops.iter().filter(|mark| mark.kind == LoopKind::Condition).peekable();
    for index in trace.indices() {
        while let Some(mark) = marks.next_if(|mark| mark.before <= index) {
            sections.mark(mark);
        }
        sections.step(trace, index);
    }
    sections.loops()
}

/// The loops that an order of events does not respect: it enters them before their predicates are made true.
pub fn behind<'l>(loops: &'l [Loop], order: &[EventIndex]) -> Vec<&'l Loop> {
    let place: FxHashMap<EventIndex, usize> = order.iter().enumerate().map(|(place, &event)| (event, place)).collect();
    let respected = |one: &&Loop| match (place.get(&one.entered), place.get(&one.satisfied)) {
        (Some(entered), Some(satisfied)) => satisfied < entered,
        (Some(_), None) => false,
        (None, _) => true,
    };
    loops.iter().filter(|one| !respected(one)).collect()
}

/// Whether a thread that came to its wait after the signal would not wait there: before the wait, with the mutex held, it reads
/// what the signalling thread has written, with the mutex held, before the signal. An approximation as above.
pub fn is_guarded(trace: &Trace, facts: &Facts, wait: &Wait) -> bool {
    let Some(begin) = wait.begin else { return false };
    let EventKind::WaitBegin { mutex, .. } = trace.kind(begin) else { return false };
    let bytes = |until: EventIndex, counts: fn(AccessClass) -> bool| -> Option<FxHashSet<u64>> {
        let (thread, at) = facts.place(trace, until);
        let before = || facts.threads[thread][..at as usize].iter().rev().map(|&event| trace.event(event));
        let begins = |event: Event| match event.kind {
            EventKind::Acquire { lock, .. } => lock == mutex,
            EventKind::WaitEnd { mutex: taken, .. } => taken == mutex,
            _ => false,
        };
        before().any(begins).then_some(())?;
        let accesses = before().take_while(|event| !begins(*event)).filter_map(Event::access);
        let touched = accesses.filter(|access| counts(access.class));
        Some(touched.flat_map(|access| access.address.0..access.address.0.saturating_add(u64::from(access.size))).collect())
    };
    match (bytes(begin, AccessClass::reads), bytes(wait.signal, AccessClass::writes)) {
        (Some(read), Some(written)) => !read.is_disjoint(&written),
        _ => false,
    }
}

impl Sections {
    fn step(&mut self, trace: &Trace, index: EventIndex) {
        let event = trace.event(index);
        let thread = event.thread.index();
        match event.kind {
            EventKind::Acquire { lock, mode: LockMode::Exclusive, .. } => {
                self.open[thread].push(self.all.len());
                self.all.push(Section {
                    thread,
                    mutex: lock,
                    place: (event.site, event.context),
                    begin: index,
                    end: None,
                    signals: Vec::new(),
                    waits: Vec::new(),
                    written: FxHashSet::default(),
                    reads: Vec::new(),
                    entered: None,
                });
            }
            EventKind::Release { lock, mode: LockMode::Exclusive } => self.end(thread, lock, index),
            EventKind::WaitBegin { condition, mutex } => {
                self.looping[thread] = false;
                if let Some(&open) = self.open[thread].iter().rev().find(|&&open| self.all[open].mutex == mutex) {
                    self.all[open].waits.push(condition);
                }
                self.end(thread, mutex, index);
            }
            EventKind::Signal { condition, .. } => self.signal(thread, condition),
            EventKind::Access(access) | EventKind::Atomic { access, .. } => self.access(thread, &access),
            _ => {}
        }
    }

    fn mark(&mut self, mark: &LoopMark) {
        let Some(looping) = self.looping.get_mut(mark.thread.index()) else { return };
        *looping = mark.enters;
        if mark.enters
            && let Some(&open) = self.open[mark.thread.index()].last()
        {
            self.all[open].entered = Some(mark.condition);
        }
    }

    fn end(&mut self, thread: usize, mutex: Address, at: EventIndex) {
        if let Some(place) = self.open[thread].iter().rposition(|&open| self.all[open].mutex == mutex) {
            let section = self.open[thread].remove(place);
            self.all[section].end = Some(at);
            self.ended[thread] = Some(section);
        }
    }

    fn signal(&mut self, thread: usize, condition: Address) {
        for &open in &self.open[thread] {
            self.all[open].signals.push((condition, true));
        }
        // Often the mutex is released first.
        if self.open[thread].is_empty()
            && let Some(ended) = self.ended[thread]
        {
            self.all[ended].signals.push((condition, false));
        }
    }

    fn access(&mut self, thread: usize, access: &Access) {
        let byte = access.address.0;
        if access.class.reads()
            && (!self.marked || self.looping[thread])
            && let Some(&writer) = self.writers.get(&byte)
            && self.all[writer].thread != thread
            && let Some(&open) = self.open[thread].iter().find(|&&open| self.all[open].mutex == self.all[writer].mutex)
        {
            let section = &mut self.all[open];
            if !section.written.contains(&byte) && !section.reads.contains(&writer) && section.reads.len() < READ {
                section.reads.push(writer);
            }
        }
        if access.class.writes() {
            match self.open[thread].last() {
                Some(&open) => {
                    self.writers.insert(byte, open);
                    for &open in &self.open[thread] {
                        self.all[open].written.insert(byte);
                    }
                }
                None => _ = self.writers.remove(&byte),
            }
        }
    }

    fn loops(&self) -> Vec<Loop> {
        let mut waiting: FxHashMap<Address, FxHashSet<(SiteId, ContextId)>> = FxHashMap::default();
        let mut conditions: FxHashMap<Address, FxHashSet<Address>> = FxHashMap::default();
        for section in &self.all {
            for &condition in &section.waits {
                waiting.entry(condition).or_default().insert(section.place);
                conditions.entry(condition).or_default().insert(section.mutex);
            }
        }
        let mut found: Vec<Loop> = Vec::new();
        for section in self.all.iter().filter(|section| section.waits.is_empty()) {
            for &writer in &section.reads {
                let writer = &self.all[writer];
                let Some(satisfied) = writer.end else { continue };
                if self.marked {
                    let is_signalled = |condition: Option<Address>| match condition {
                        Some(condition) => writer.signals.iter().any(|(signalled, _)| *signalled == condition),
                        None => !writer.signals.is_empty(),
                    };
                    if section.entered.is_some_and(is_signalled) {
                        found.push(Loop { satisfied, entered: section.begin, known: true });
                    }
                    continue;
                }
                let seen = |condition: &Address| match waiting.get(condition) {
                    Some(places) => {
                        places.contains(&section.place)
                            && conditions.get(condition).is_some_and(|mutexes| mutexes.contains(&section.mutex))
                    }
                    None => false,
                };
                let possible = |&(condition, held): &(Address, bool)| {
                    held && !waiting.contains_key(&condition) && !section.signals.iter().any(|other| other.0 == condition)
                };
                let known = writer.signals.iter().any(|(condition, _)| seen(condition));
                if known || writer.signals.iter().any(possible) {
                    found.push(Loop { satisfied, entered: section.begin, known });
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
