//! Threads by dense numbers, so that clocks are as wide as there are threads and not as their numbers are great.
//!
//! A thread has the number that it has in the trace as long as each one is named before greater ones; from there on it has the
//! next one that is free. So most traces need not be changed, and that is told a block at a time.

use crate::clock::greatest_thread;
use rashomon_packed::{Event, Op, Space};

/// Threads up to this one keep their numbers: a clock has room for so many.
const KEPT: u32 = 16;

/// Which dense number each thread has. The same for every pass over a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    /// By a thread's number in the trace; empty as long as every thread keeps its own.
    dense: Vec<Option<u16>>,
    /// And back; as long as every thread keeps its own, those that were named are the ones before `known`.
    traced: Vec<u16>,
    known: u32,
}

impl Threads {
    /// Replaces the threads' numbers.
    pub fn number(&mut self, events: &mut [Event]) {
        let Some(greatest) = greatest_thread(events) else { return };
        if self.dense.is_empty() && u32::from(greatest) < self.known.max(KEPT) {
            return;
        }
        for event in events {
            event.thread = self.of(event.thread);
            if matches!(event.op, Op::Fork | Op::Join) && event.target < Space::Thread.limit() {
                event.target = self.of(event.target as u16).into();
            }
        }
    }

    #[inline]
    fn of(&mut self, thread: u16) -> u16 {
        if self.dense.is_empty() {
            let known = self.known.max(KEPT);
            if u32::from(thread) <= known {
                self.known = known.max(u32::from(thread) + 1);
                return thread;
            }
            self.traced = (0..known as u16).collect();
            self.dense = vec![None; Space::Thread.limit() as usize];
            self.dense.iter_mut().zip(&self.traced).for_each(|(dense, thread)| *dense = Some(*thread));
        }
        *self.dense[usize::from(thread)].get_or_insert_with(|| {
            self.traced.push(thread);
            (self.traced.len() - 1) as u16
        })
    }

    /// A thread's number in the trace, by its dense one.
    pub fn traced(&self, dense: u16) -> u16 {
        self.traced.get(usize::from(dense)).copied().unwrap_or(dense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(threads: &mut Threads, trace: &[(u16, Op, u32)]) -> Vec<(u16, u32)> {
        let mut events: Vec<Event> = trace.iter().map(|&(thread, op, target)| Event::new(thread, op, target, 0)).collect();
        threads.number(&mut events);
        events.iter().map(|event| (event.thread, event.target)).collect()
    }

    #[test]
    fn few_or_dense_ones_stay() {
        let mut threads = Threads::default();
        assert_eq!(numbered(&mut threads, &[(15, Op::Read, 70_000), (3, Op::Fork, 7)]), [(15, 70_000), (3, 7)]);
        for thread in 16..2_000 {
            assert_eq!(numbered(&mut threads, &[(0, Op::Fork, thread), (thread as u16, Op::Read, 5)])[1].0, thread as u16);
        }
        assert!(threads.dense.is_empty() && threads.traced(1_999) == 1_999);
    }

    #[test]
    fn others_get_the_next_number() {
        let mut threads = Threads::default();
        let trace = [(40_000, Op::Fork, 16), (1, Op::Join, 65_535), (16, Op::Read, 9), (40_000, Op::Join, 70_000)];
        assert_eq!(numbered(&mut threads, &trace), [(16, 17), (1, 18), (17, 9), (16, 70_000)]);
        assert_eq!([1, 16, 17, 18].map(|dense| threads.traced(dense)), [1, 40_000, 16, 65_535]);
    }

    #[test]
    fn all_there_can_be() {
        let mut threads = Threads::default();
        let mut seen = vec![false; 1 << 16];
        for thread in (0..=u16::MAX).rev() {
            let dense = numbered(&mut threads, &[(thread, Op::Read, 0)])[0].0;
            assert!(!std::mem::replace(&mut seen[usize::from(dense)], true));
            assert_eq!(threads.traced(dense), thread);
        }
    }
}
