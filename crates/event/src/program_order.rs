//! Program order: of each thread its events, by position, and of each event its position.
//!
//! Consecutive events of one thread are a *run*; positions follow from where runs begin. Cost: 20 bytes a run, and a quarter byte
//! an event; where an event is takes at most [`DIRECTORY_STEP`] steps, which event is at a position a search among the thread's
//! runs.

use crate::events::{DIRECTORY_STEP, Events};
use crate::ids::{EventIndex, ThreadId};
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    thread: ThreadId,
    /// Of its first event.
    position: u32,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Position and number of the first event of each run.
    runs: Vec<(u32, u32)>,
    events: u32,
}

#[derive(Clone, Debug)]
pub struct ProgramOrder {
    runs: Vec<Run>,
    /// The run of every [`DIRECTORY_STEP`]th event.
    directory: Vec<u32>,
    threads: Vec<Thread>,
}

impl ProgramOrder {
    pub(crate) fn of(events: &Events) -> Self {
        let count = events.last_thread().map_or(0, |last| last.index() + 1);
        let mut order = Self { runs: Vec::new(), directory: Vec::new(), threads: vec![Thread::default(); count] };
        let mut begun: Option<Run> = None;
        for (EventIndex(first), thread) in events.runs() {
            if let Some(before) = begun {
                order.ends(before, first);
            }
            let position = order.threads[thread.index()].events;
            let run = Run { first, thread, position };
            order.threads[thread.index()].runs.push((position, first));
            order.runs.push(run);
            begun = Some(run);
        }
        if let Some(last) = begun {
            order.ends(last, events.len() as u32);
        }
        order
    }

    /// The run, which came last, ends before an event.
    fn ends(&mut self, run: Run, end: u32) {
        self.threads[run.thread.index()].events = run.position + (end - run.first);
        let number = self.runs.len() as u32 - 1;
        self.directory.resize((end as usize).div_ceil(DIRECTORY_STEP), number);
    }

    /// How many events a thread has.
    pub fn count(&self, thread: usize) -> u32 {
        self.threads.get(thread).map_or(0, |thread| thread.events)
    }

    /// The event of a thread that comes next behind one of its events.
    ///
    /// # Panics
    /// If the trace has not so many.
    pub fn next(&self, event: EventIndex) -> Option<EventIndex> {
        let (thread, at) = self.place(event);
        (at + 1 < self.count(thread as usize)).then(|| self.at(thread as usize, at + 1))
    }

    /// The last event of a thread.
    pub fn last(&self, thread: usize) -> Option<EventIndex> {
        self.count(thread).checked_sub(1).map(|last| self.at(thread, last))
    }

    /// Thread and position of an event.
    ///
    /// # Panics
    /// If the trace has not so many.
    #[inline]
    pub fn place(&self, event: EventIndex) -> (u32, u32) {
        let mut number = self.directory[event.index() / DIRECTORY_STEP] as usize;
        while self.runs.get(number + 1).is_some_and(|next| next.first <= event.0) {
            number += 1;
        }
        let run = self.runs[number];
        (run.thread.0, run.position + (event.0 - run.first))
    }

    /// The event of a thread at a position.
    ///
    /// # Panics
    /// If the thread has not so many.
    #[inline]
    pub fn at(&self, thread: usize, at: u32) -> EventIndex {
        let Thread { runs, events } = &self.threads[thread];
        assert!(at < *events, "thread {thread} has {events} events");
        let (position, first) = runs[runs.partition_point(|&(position, _)| position <= at) - 1];
        EventIndex(first + (at - position))
    }

    /// Events of a thread, by their positions.
    ///
    /// # Panics
    /// If the thread has not so many.
    pub fn range(&self, thread: usize, range: Range<u32>) -> impl DoubleEndedIterator<Item = EventIndex> + '_ {
        self.stretches(thread, range).flatten().map(EventIndex)
    }

    /// The same, as ranges of the trace.
    ///
    /// # Panics
    /// If the thread has not so many.
    pub fn stretches(&self, thread: usize, range: Range<u32>) -> impl DoubleEndedIterator<Item = Range<u32>> + '_ {
        let Range { start, end } = range;
        let (runs, events) = self.threads.get(thread).map_or((&[][..], &0), |thread| (&thread.runs, &thread.events));
        assert!(start >= end || end <= *events, "thread {thread} has {events} events");
        let of = if start < end {
            runs.partition_point(|&(position, _)| position <= start) - 1..runs.partition_point(|&(position, _)| position < end)
        } else {
            0..0
        };
        of.map(move |number| {
            let (position, first) = runs[number];
            let behind = runs.get(number + 1).map_or(*events, |&(next, _)| next);
            first + (start.max(position) - position)..first + (end.min(behind) - position)
        })
    }

    /// How many events of a thread come before an event, which may be behind the end of the trace, in the order of the trace.
    pub fn before(&self, thread: usize, event: EventIndex) -> u32 {
        let Some(Thread { runs, events }) = self.threads.get(thread) else { return 0 };
        let begun = runs.partition_point(|&(_, first)| first < event.0);
        let Some((position, first)) = begun.checked_sub(1).map(|last| runs[last]) else { return 0 };
        let behind = runs.get(begun).map_or(*events, |&(next, _)| next);
        behind.min(position + (event.0 - first))
    }
}
