//! The filter with the whole trace at hand: concurrential equivalence as the thesis defines it (§3.3, conditions 4 and 5), and
//! so the rule of two threads for detectors with an order.
//!
//! For an access e and another thread u, the accesses of u that are not ordered with e are a stretch: from the first that does
//! not precede e to the last that does not follow it. One access covers another, as far as order goes, if for each thread but the
//! two its own stretch contains the other's. The thesis asks for equal stretches; containment is enough (see [`crate::relation`])
//! and finds more: of threads forked one after the other, the first covers the later ones, though the parent has worked in
//! between.
//!
//! Stretches are counted in accesses. That makes messages canonical: forks without an access in between are the same.
//!
//! Two passes. Time: that of happens-before, and per access a binary search per thread and remembered visitor. Memory: two words
//! per change of a clock's component.

use crate::context::Contexts;
use crate::history::{History, Location, Visitor};
use crate::relation::Relation;
use crate::tree::{Statistics, Verdict};
use rashomon_event::{EventKind, ThreadId, Trace};
use rashomon_order::happens_before::{HappensBefore, thread_count};

/// A function of a rising number: (from here on, value).
type Steps = Vec<(u32, u32)>;

fn at(steps: &Steps, place: u32) -> Option<u32> {
    let behind = steps.partition_point(|&(from, _)| from <= place);
    behind.checked_sub(1).map(|index| steps[index].1)
}

#[derive(Clone, Default)]
struct Thread {
    accesses: u32,
    /// Per other thread: after so many of its own accesses, so much time of the other is known.
    knows: Vec<Steps>,
    /// So many accesses were made when the thread's time became this.
    accesses_at: Steps,
}

/// What orders which accesses in a trace.
pub struct Lookahead {
    threads: Vec<Thread>,
    /// Per access in its thread: the thread's time.
    times: Vec<Steps>,
}

impl Lookahead {
    /// Which events of a trace the detector must see. Relations that exempt the first thread are taken as if they did not.
    pub fn kept(trace: &Trace, relation: Relation) -> (Vec<bool>, Statistics) {
        let count = thread_count(trace);
        let ahead = relation.order.map(|model| Self::new(trace, HappensBefore::new(trace, model)));
        let mut contexts = Contexts::new(count, relation);
        let mut history = History::new(usize::MAX);
        let mut accesses = vec![0; count];
        let mut statistics = Statistics::default();
        let mut kept = vec![true; trace.events.len()];
        for (event, kept) in trace.events.iter().zip(&mut kept) {
            let place = accesses[event.thread.index()];
            accesses[event.thread.index()] += u32::from(event.access().is_some());
            let EventKind::Access(access) = event.kind else {
                contexts.step(&event);
                continue;
            };
            let location = Location::new(event.site, &access);
            let new = Visitor { thread: event.thread, outgoing: contexts.outgoing(event.thread), incoming: place };
            let mut other: Option<ThreadId> = None;
            let mut verdict = Verdict::Kept;
            history.any(location, contexts.locks(event.thread), |visitors| {
                for visitor in visitors.iter().filter(|visitor| ahead.as_ref().is_none_or(|ahead| ahead.covers(visitor, &new))) {
                    if visitor.thread == new.thread {
                        verdict = Verdict::SameThread;
                    } else if other.is_some_and(|other| other != visitor.thread) {
                        verdict = Verdict::TwoThreads;
                    } else {
                        other = Some(visitor.thread);
                    }
                    if verdict != Verdict::Kept {
                        return true;
                    }
                }
                false
            });
            if verdict == Verdict::Kept {
                history.note(location, contexts.locks(event.thread), new, |_| false);
            }
            statistics.count(verdict);
            *kept = verdict == Verdict::Kept;
        }
        statistics.locations = history.locations() as u64;
        (kept, statistics)
    }

    fn new(trace: &Trace, mut order: HappensBefore) -> Self {
        let count = order.threads();
        let mut threads = vec![Thread { knows: vec![Steps::new(); count], ..Thread::default() }; count];
        let mut times = vec![Steps::new(); count];
        let mut known = vec![vec![0; count]; count];
        for (index, event) in trace.indices().zip(&trace.events) {
            order.receive(index, &event);
            let me = event.thread.index();
            let clock = order.clock(event.thread);
            let (time, thread) = (clock.time(), &mut threads[me]);
            if thread.accesses_at.last().is_none_or(|&(last, _)| last < time) {
                thread.accesses_at.push((time, thread.accesses));
                times[me].push((thread.accesses, time));
            }
            if event.access().is_some() {
                for (other, known) in known[me].iter_mut().enumerate() {
                    let now = clock.knows(ThreadId(other as u32));
                    if *known < now {
                        *known = now;
                        thread.knows[other].push((thread.accesses, now));
                    }
                }
                thread.accesses += 1;
            }
            order.release(index, &event);
        }
        Self { threads, times }
    }

    /// The accesses of `other` that are not ordered with the `place`-th of `thread`: from, and to before.
    fn stretch(&self, thread: ThreadId, place: u32, other: usize) -> (u32, u32) {
        let theirs = &self.threads[other];
        let known = at(&self.threads[thread.index()].knows[other], place).unwrap_or(0);
        // The accesses of `other` whose time is at most `known`: those made before its time became more.
        let first_later = theirs.accesses_at.partition_point(|&(time, _)| time <= known);
        let from = theirs.accesses_at.get(first_later).map_or(theirs.accesses, |&(_, accesses)| accesses);
        let time = at(&self.times[thread.index()], place).unwrap_or(0);
        let knowers = &theirs.knows[thread.index()];
        let first_knower = knowers.partition_point(|&(_, known)| known < time);
        let to = knowers.get(first_knower).map_or(theirs.accesses, |&(accesses, _)| accesses);
        (from, to)
    }

    fn covers(&self, visitor: &Visitor, new: &Visitor) -> bool {
        (0..self.threads.len()).filter(|&other| other != visitor.thread.index() && other != new.thread.index()).all(|other| {
            let (from, to) = self.stretch(visitor.thread, visitor.incoming, other);
            let (new_from, new_to) = self.stretch(new.thread, new.incoming, other);
            new_from >= new_to || (from <= new_from && to >= new_to)
        })
    }
}
