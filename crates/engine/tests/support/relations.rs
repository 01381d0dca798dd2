//! The orders as their definitions have them: relations over the events of a tiny trace, by fixpoint.

use rashomon_packed::{Event, Op, order};

/// Events, as bits.
pub type Set = u64;

pub const fn bit(event: usize) -> Set {
    1 << event
}

fn acquires(event: &Event) -> bool {
    event.order & order::ACQUIRES != 0
}

fn releases(event: &Event) -> bool {
    event.order & order::RELEASES != 0
}

/// Whether the variable's life does not end between the two.
pub fn same_life(trace: &[Event], one: usize, other: usize) -> bool {
    !trace[one..other].iter().any(|event| event.op == Op::Forget && event.target == trace[other].target)
}

pub fn conflicting(trace: &[Event], one: usize, other: usize) -> bool {
    trace[one].conflicts(&trace[other]) && same_life(trace, one, other)
}

/// Direct edges into each event.
#[derive(Clone, Debug)]
pub struct Edges(pub Vec<Set>);

pub fn program_order(trace: &[Event]) -> Edges {
    let into = |at: usize| (0..at).filter(|before| trace[*before].thread == trace[at].thread).map(bit).sum();
    Edges((0..trace.len()).map(into).collect())
}

impl Edges {
    fn add(&mut self, trace: &[Event], edge: impl Fn(&Event, &Event) -> bool) {
        for at in 0..trace.len() {
            for before in (0..at).filter(|before| edge(&trace[*before], &trace[at])) {
                self.0[at] |= bit(before);
            }
        }
    }

    /// Threads, objects, barriers.
    pub fn with_hard(mut self, trace: &[Event]) -> Self {
        self.add(trace, |one, other| {
            (one.op == Op::Fork && one.target == u32::from(other.thread))
                || (other.op == Op::Join && other.target == u32::from(one.thread))
                // A thread that did nothing began and ended all the same.
                || (one.target == other.target
                    && matches!(
                        (one.op, other.op),
                        (Op::ReleaseObject, Op::AcquireObject) | (Op::Enter, Op::Exit) | (Op::Fork, Op::Join)
                    ))
        });
        self
    }

    pub fn with_locks(mut self, trace: &[Event]) -> Self {
        self.add(trace, |one, other| {
            one.target == other.target
                && matches!((one.op, other.op), (Op::Release, Op::Acquire | Op::AcquireShared) | (Op::ReleaseShared, Op::Acquire))
        });
        self
    }

    pub fn with_atomics(mut self, trace: &[Event]) -> Self {
        for at in 0..trace.len() {
            if !matches!(trace[at].op, Op::AtomicRead | Op::AtomicUpdate) {
                continue;
            }
            let mut sources = 0;
            // The release sequence that is read from, backwards.
            for write in (0..at).rev() {
                if trace[write].target != trace[at].target {
                    continue;
                }
                if trace[write].op == Op::Forget {
                    break;
                }
                if matches!(trace[write].op, Op::AtomicWrite | Op::AtomicUpdate) {
                    let fence = |before: &usize| {
                        trace[*before].thread == trace[write].thread
                            && trace[*before].op == Op::Fence
                            && releases(&trace[*before])
                    };
                    if releases(&trace[write]) {
                        sources |= bit(write);
                    } else if let Some(fence) = (0..write).rev().find(fence) {
                        sources |= bit(fence);
                    }
                    if trace[write].op == Op::AtomicWrite {
                        break;
                    }
                }
            }
            if acquires(&trace[at]) {
                self.0[at] |= sources;
            } else {
                let fences = |after: &usize| {
                    trace[*after].thread == trace[at].thread && trace[*after].op == Op::Fence && acquires(&trace[*after])
                };
                if let Some(fence) = (at..trace.len()).find(fences) {
                    self.0[fence] |= sources;
                }
            }
        }
        self
    }

    /// The last write that each read reads from.
    pub fn reads_from(trace: &[Event]) -> Self {
        let into = |at: usize| {
            if !trace[at].op.reads() {
                return 0;
            }
            let write = (0..at).rev().find(|before| trace[*before].target == trace[at].target && trace[*before].op.writes());
            write.filter(|write| same_life(trace, *write, at)).map_or(0, bit)
        };
        Self((0..trace.len()).map(into).collect())
    }

    /// All that is ordered strictly before each event. `late` edges count only from the event's thread's next one on.
    pub fn closure(&self, trace: &[Event], late: Option<&Self>) -> Vec<Set> {
        let mut strict: Vec<Set> = Vec::new();
        let mut passed_on: Vec<Set> = Vec::new();
        for at in 0..trace.len() {
            let gather = |edges: Set, passed_on: &[Set]| {
                (0..at).filter(|before| edges & bit(*before) != 0).fold(0, |all, before| all | bit(before) | passed_on[before])
            };
            let own = gather(self.0[at], &passed_on);
            let more = late.map_or(0, |late| gather(late.0[at], &passed_on));
            strict.push(own);
            passed_on.push(own | more);
        }
        strict
    }
}

pub fn happens_before(trace: &[Event]) -> Vec<Set> {
    program_order(trace).with_hard(trace).with_locks(trace).with_atomics(trace).closure(trace, None)
}

pub fn schedulable(trace: &[Event]) -> Vec<Set> {
    let edges = program_order(trace).with_hard(trace).with_locks(trace).with_atomics(trace);
    edges.closure(trace, Some(&Edges::reads_from(trace)))
}

/// Carril, Tichy: without locks and atomics.
pub fn weak(trace: &[Event]) -> Vec<Set> {
    program_order(trace).with_hard(trace).closure(trace, None)
}

/// Accesses that race with an earlier one under the order.
pub fn racing(trace: &[Event], before: &[Set]) -> Set {
    racing_within(trace, before, usize::MAX)
}

/// Only pairs in one window.
pub fn racing_within(trace: &[Event], before: &[Set], window: usize) -> Set {
    let races = |at: usize| {
        let first = at / window * window;
        (first..at).any(|earlier| conflicting(trace, earlier, at) && before[at] & bit(earlier) == 0)
    };
    (0..trace.len()).filter(|at| races(*at)).map(bit).sum()
}

/// What each event's thread holds there, with modes.
pub fn held(trace: &[Event]) -> Vec<Vec<(u32, Op)>> {
    let at = |at: usize| {
        let mut held = Vec::new();
        for event in trace[..at].iter().filter(|event| event.thread == trace[at].thread) {
            match event.op {
                Op::Acquire | Op::AcquireShared => held.push((event.target, event.op)),
                Op::Release | Op::ReleaseShared => {
                    let mode = if event.op == Op::Release { Op::Acquire } else { Op::AcquireShared };
                    let place = held.iter().rposition(|lock| *lock == (event.target, mode));
                    held.remove(place.expect("held"));
                }
                _ => {}
            }
        }
        held
    };
    (0..trace.len()).map(at).collect()
}

/// Whether two threads cannot be where these events are at once.
pub fn exclude(one: &[(u32, Op)], other: &[(u32, Op)]) -> bool {
    one.iter().any(|lock| other.iter().any(|same| lock.0 == same.0 && (lock.1 == Op::Acquire || same.1 == Op::Acquire)))
}

/// A critical section: its lock, mode and events, the acquisition and the release among them.
#[derive(Clone, Debug)]
pub struct Section {
    pub lock: u32,
    pub shared: bool,
    pub thread: u16,
    pub acquire: usize,
    /// None at the end of the trace.
    pub release: Option<usize>,
    pub events: Set,
}

pub fn sections(trace: &[Event]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (at, event) in trace.iter().enumerate() {
        for section in sections.iter_mut().filter(|section| section.release.is_none() && section.thread == event.thread) {
            section.events |= bit(at);
        }
        match event.op {
            Op::Acquire | Op::AcquireShared => sections.push(Section {
                lock: event.target,
                shared: event.op == Op::AcquireShared,
                thread: event.thread,
                acquire: at,
                release: None,
                events: bit(at),
            }),
            Op::Release | Op::ReleaseShared => {
                let shared = event.op == Op::ReleaseShared;
                let section = sections.iter_mut().rev().find(|section| {
                    section.release.is_none()
                        && (section.thread, section.lock, section.shared) == (event.thread, event.target, shared)
                });
                section.expect("held").release = Some(at);
            }
            _ => {}
        }
    }
    sections
}

pub fn events(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |event| set & bit(*event) != 0)
}

/// What is ordered before each event under weak causal precedence (Kini, Mathur, Viswanathan, PLDI 2017), without program order.
pub fn weak_causal_precedence(trace: &[Event]) -> Vec<Set> {
    let hb = happens_before(trace);
    let reflexive = |at: usize| hb[at] | bit(at);
    let sections = sections(trace);
    let access_conflict = |one: usize, other: usize| {
        let (a, b) = (&trace[one], &trace[other]);
        a.op.is_access()
            && b.op.is_access()
            && a.target == b.target
            && a.thread != b.thread
            && (a.op.writes() || b.op.writes())
            && same_life(trace, one, other)
    };
    let none = Edges(vec![0; trace.len()]);
    let mut base = none.with_hard(trace).with_atomics(trace).0;
    let apart = |one: &Section, other: &Section| {
        one.lock == other.lock
            && one.thread != other.thread
            && !(one.shared && other.shared)
            && one.release.is_some_and(|release| release < other.acquire)
    };
    for one in &sections {
        for other in sections.iter().filter(|other| apart(one, other)) {
            for late in events(other.events).filter(|late| events(one.events).any(|early| access_conflict(early, *late))) {
                base[late] |= bit(one.release.expect("apart"));
            }
        }
    }
    loop {
        // Rule (c).
        let sources = |at: usize| events(base[at]).fold(0, |all, source| all | reflexive(source));
        let wcp: Vec<Set> =
            (0..trace.len()).map(|at| events(reflexive(at)).fold(0, |all, before| all | sources(before))).collect();
        // Rule (b).
        let mut changed = false;
        for one in &sections {
            for other in sections.iter().filter(|other| apart(one, other)) {
                let (Some(first), Some(second)) = (one.release, other.release) else { continue };
                let ordered = events(other.events).any(|late| wcp[late] & one.events != 0);
                if ordered && base[second] & bit(first) == 0 {
                    base[second] |= bit(first);
                    changed = true;
                }
            }
        }
        if !changed {
            return wcp;
        }
    }
}

/// What is ordered before each event under causal precedence (Smaragdakis et al., POPL 2012), without program order.
pub fn causal_precedence(trace: &[Event]) -> Vec<Set> {
    let hb = happens_before(trace);
    let reflexive = |at: usize| hb[at] | bit(at);
    let sections = sections(trace);
    let conflict = |one: usize, other: usize| {
        let (a, b) = (&trace[one], &trace[other]);
        a.op.is_access()
            && b.op.is_access()
            && a.target == b.target
            && (a.op.writes() || b.op.writes())
            && same_life(trace, one, other)
    };
    let mut base = Edges(vec![0; trace.len()]).with_hard(trace).with_atomics(trace).0;
    loop {
        let sources = |at: usize| events(base[at]).fold(0, |all, source| all | reflexive(source));
        let cp: Vec<Set> =
            (0..trace.len()).map(|at| events(reflexive(at)).fold(0, |all, before| all | sources(before))).collect();
        let mut changed = false;
        for one in &sections {
            for other in &sections {
                let Some(release) = one.release.filter(|release| *release < other.acquire) else { continue };
                if one.lock != other.lock || one.thread == other.thread || (one.shared && other.shared) {
                    continue;
                }
                let ordered = events(other.events)
                    .any(|late| cp[late] & one.events != 0 || events(one.events).any(|early| conflict(early, late)));
                if ordered && base[other.acquire] & bit(release) == 0 {
                    base[other.acquire] |= bit(release);
                    changed = true;
                }
            }
        }
        if !changed {
            return cp;
        }
    }
}
