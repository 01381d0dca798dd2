//! What must have run before an event, for any event at once: the closure of its past under program order and needs, as a vector
//! of counts.
//!
//! A thread's vector changes only where it needs something of another thread that nothing before needed (see
//! [`crate::dependences`]), so one row is kept for each such place, and a query is a search for the row. Cost: four bytes per row
//! and thread.

use crate::closure::Cut;
use crate::dependences::Dependences;
use crate::index::Index;
use rashomon_event::EventIndex;

pub struct Clocks {
    /// Per thread: where its rows begin to hold, and the rows.
    threads: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Clocks {
    pub fn new(index: &Index<'_>, needs: &Dependences) -> Self {
        let count = index.thread_count();
        let mut clocks = Self { threads: vec![(Vec::new(), Vec::new()); count] };
        // In the order of the trace, so that what is needed has its row already.
        let mut all: Vec<(EventIndex, u32, u32)> = Vec::new();
        for thread in 0..count {
            let places = needs.of(thread).iter().enumerate();
            all.extend(places.map(|(place, need)| (index.threads.at(thread, need.at), thread as u32, place as u32)));
        }
        all.sort_unstable();
        let mut row: Cut = vec![0; count];
        for (_, thread, place) in all {
            let need = needs.of(thread as usize)[place as usize];
            row.fill(0);
            clocks.join(thread as usize, need.at + 1, &mut row);
            clocks.join(need.thread as usize, need.count, &mut row);
            let (starts, rows) = &mut clocks.threads[thread as usize];
            if starts.last() == Some(&need.at) {
                rows.truncate(rows.len() - count);
                starts.pop();
            }
            // The row holds once the event itself is part of the past.
            starts.push(need.at);
            rows.extend_from_slice(&row);
        }
        clocks
    }

    /// Adds to a cut what the first `events` events of `thread` need, and them.
    pub fn join(&self, thread: usize, events: u32, cut: &mut Cut) {
        let (starts, rows) = &self.threads[thread];
        let held = starts.partition_point(|&start| start < events);
        if let Some(place) = held.checked_sub(1) {
            let width = cut.len();
            for (count, &needed) in cut.iter_mut().zip(&rows[place * width..]) {
                *count = (*count).max(needed);
            }
        }
        cut[thread] = cut[thread].max(events);
    }
}
