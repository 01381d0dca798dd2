//! The filter as events go by (thesis, Algorithms 1 and 2, with the deviations of [`crate::relation`]).
//!
//! Only plain accesses are filtered: atomic ones are synchronisation. For every event, [`Tree::step`] says whether the detector
//! must see it.
//!
//! Guarantee: the detector reports the same unique races with and without it. Limit: what a bounded history has forgotten is kept
//! again.

use crate::context::Contexts;
use crate::history::{History, Location, Visitor};
use crate::relation::Relation;
use rashomon_event::{Access, AccessClass, Event, EventKind, OtherOp, ThreadId, Trace};
use rashomon_order::happens_before::thread_count;
use rustc_hash::FxHashMap;

/// What must not get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Pairs of code locations that race.
    SitePairs,
    /// Which addresses have a race; an access to bytes that the thread has accessed in the same context at another code location
    /// is dropped too (thesis, §3.6).
    Addresses,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub relation: Relation,
    pub guarantee: Guarantee,
    /// How many locations are remembered at most.
    pub locations: usize,
}

impl Options {
    pub const fn new(relation: Relation) -> Self {
        Self { relation, guarantee: Guarantee::SitePairs, locations: DEFAULT_LOCATIONS }
    }
}

/// More than the programs of the test suite touch in their loops; a location takes about a hundred bytes.
pub const DEFAULT_LOCATIONS: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Kept,
    /// An access of the same thread covers it.
    SameThread,
    /// Accesses of two other threads do.
    TwoThreads,
    /// One of the same thread at another code location does.
    Span,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub accesses: u64,
    pub same_thread: u64,
    pub two_threads: u64,
    pub span: u64,
    /// Remembered at the end.
    pub locations: u64,
    /// Locations that the bound made it forget.
    pub forgotten: u64,
}

impl Statistics {
    pub(crate) fn count(&mut self, verdict: Verdict) {
        self.accesses += 1;
        match verdict {
            Verdict::Kept => {}
            Verdict::SameThread => self.same_thread += 1,
            Verdict::TwoThreads => self.two_threads += 1,
            Verdict::Span => self.span += 1,
        }
    }

    pub fn skipped(&self) -> u64 {
        self.same_thread + self.two_threads + self.span
    }
}

pub struct Tree {
    options: Options,
    contexts: Contexts,
    history: History,
    /// The only thread that has used a byte so far; `None` once there are more.
    first: FxHashMap<u64, Option<ThreadId>>,
    statistics: Statistics,
}

impl Tree {
    pub fn new(threads: usize, options: Options) -> Self {
        Self {
            options,
            contexts: Contexts::new(threads, options.relation),
            history: History::new(options.locations),
            first: FxHashMap::default(),
            statistics: Statistics::default(),
        }
    }

    /// Which events of a trace the detector must see.
    pub fn kept(trace: &Trace, options: Options) -> (Vec<bool>, Statistics) {
        let mut tree = Self::new(thread_count(trace), options);
        let kept = trace.events.iter().map(|event| tree.step(&event) == Verdict::Kept).collect();
        (kept, tree.statistics())
    }

    pub fn statistics(&self) -> Statistics {
        Statistics { locations: self.history.locations() as u64, forgotten: self.history.forgotten, ..self.statistics }
    }

    pub fn step(&mut self, event: &Event) -> Verdict {
        let EventKind::Access(access) = event.kind else {
            if let Some(access) = event.access() {
                self.leaves_first(event.thread, &access);
            }
            self.contexts.step(event);
            return Verdict::Kept;
        };
        let verdict = if self.leaves_first(event.thread, &access) { self.access(event, &access) } else { Verdict::Kept };
        self.statistics.count(verdict);
        verdict
    }

    /// Whether every byte was used by another thread too, by this access at the latest. Always so where that does not matter.
    ///
    /// Bytes, although detectors look at larger pieces: a byte has a second user no sooner than the piece around it has.
    fn leaves_first(&mut self, thread: ThreadId, access: &Access) -> bool {
        /// Longer accesses are not filtered and do not make a second user of a byte.
        const LONGEST: u32 = 256;
        if !self.options.relation.first_thread_exempt {
            return true;
        }
        if access.size > LONGEST {
            return false;
        }
        let mut left = true;
        for byte in access.address.0..access.address.0.saturating_add(u64::from(access.size)) {
            let first = self.first.entry(byte).or_insert(Some(thread));
            if *first == Some(thread) {
                left = false;
            } else {
                *first = None;
            }
        }
        left
    }

    /// Algorithm 2.
    fn access(&mut self, event: &Event, access: &Access) -> Verdict {
        let verdict = self.decide(event.thread, Location::new(event.site, access));
        if verdict != Verdict::Kept || self.options.guarantee == Guarantee::SitePairs {
            return verdict;
        }
        // What conflicts with a read conflicts with a write of the same bytes.
        let covering: &[AccessClass] = match access.class {
            AccessClass::Read => &[AccessClass::Read, AccessClass::Write],
            AccessClass::Write | AccessClass::ReadWrite | AccessClass::End => &[AccessClass::Write],
        };
        let class = if access.class.writes() { AccessClass::Write } else { AccessClass::Read };
        if covering.iter().any(|&class| self.covered(event.thread, Location::span(access, class)) != Verdict::Kept) {
            return Verdict::Span;
        }
        self.note(event.thread, Location::span(access, class));
        Verdict::Kept
    }

    fn decide(&mut self, thread: ThreadId, location: Location) -> Verdict {
        let verdict = self.covered(thread, location);
        if verdict == Verdict::Kept {
            self.note(thread, location);
        }
        verdict
    }

    fn covered(&mut self, thread: ThreadId, location: Location) -> Verdict {
        let ordered = self.options.relation.order.is_some();
        let alive = self.contexts.alive(thread);
        let mut others: Option<ThreadId> = None;
        let mut verdict = Verdict::Kept;
        self.history.any(location, self.contexts.locks(thread), |visitors| {
            for visitor in visitors {
                if visitor.thread == thread {
                    if !ordered || visitor.outgoing >= alive {
                        verdict = Verdict::SameThread;
                    }
                } else if !ordered && others.is_some_and(|other| other != visitor.thread) {
                    verdict = Verdict::TwoThreads;
                } else {
                    others = Some(visitor.thread);
                }
                if verdict != Verdict::Kept {
                    return true;
                }
            }
            false
        });
        verdict
    }

    fn note(&mut self, thread: ThreadId, location: Location) {
        let new = Visitor { thread, outgoing: self.contexts.outgoing(thread), incoming: 0 };
        self.history.note(location, self.contexts.locks(thread), new, |visitor| visitor.thread == thread);
    }
}

/// The trace without what is not kept: those accesses become events that order nothing, so that indices stay what they are.
pub fn without(trace: &Trace, kept: &[bool]) -> Trace {
    let mut filtered = trace.clone();
    for (place, _) in kept.iter().enumerate().filter(|(_, kept)| !**kept) {
        filtered.events.set_kind(place, EventKind::Other(OtherOp::Unknown));
    }
    filtered
}
