//! Vector clocks as rows of one dense array.
//!
//! A *time* is an event's number in the trace, from 1; 0 is before everything. So an epoch, a pair of thread and time, names its
//! event, and every event has a time of its own: no clock is ever incremented, and what another thread learns at a release is
//! exactly what had happened by then. An event of thread u at time n is ordered before whoever's clock holds n or more for u
//! (Fidge 1988, Mattern 1989).

use crate::hints::use_large_pages;
use rashomon_packed::Event;

/// An event's number in the trace, from 1.
pub type Time = u32;

/// Later than every event.
pub const ALWAYS: Time = Time::MAX;

/// How many events a trace can have.
pub const MAX_EVENTS: u64 = Time::MAX as u64 - 1;

pub type Row = [Time];

/// Threads in a row, to begin with. A multiple of what one vector instruction takes.
const WIDTH: usize = 16;

/// Clocks of equal width, by number.
#[derive(Clone, Debug)]
pub struct Rows {
    width: usize,
    times: Vec<Time>,
}

impl Default for Rows {
    fn default() -> Self {
        Self { width: WIDTH, times: Vec::new() }
    }
}

impl Rows {
    pub fn count(&self) -> usize {
        self.times.len() / self.width
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// A new row, before everything.
    pub fn push(&mut self) -> usize {
        let row = self.count();
        if self.times.len() + self.width > self.times.capacity() {
            self.times.reserve(self.width);
            use_large_pages(&mut self.times);
        }
        self.times.resize(self.times.len() + self.width, 0);
        row
    }

    /// Makes room for more threads.
    pub fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let mut times = vec![0; self.count() * width];
        for (new, old) in times.chunks_exact_mut(width).zip(self.times.chunks_exact(self.width)) {
            new[..self.width].copy_from_slice(old);
        }
        (self.width, self.times) = (width, times);
    }

    #[inline]
    pub fn row(&self, row: usize) -> &Row {
        &self.times[row * self.width..][..self.width]
    }

    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut Row {
        &mut self.times[row * self.width..][..self.width]
    }

    /// One row to write, another to read.
    pub fn pair(&mut self, write: usize, read: usize) -> (&mut Row, &Row) {
        let width = self.width;
        if write < read {
            let (low, high) = self.times.split_at_mut(read * width);
            (&mut low[write * width..][..width], &high[..width])
        } else {
            let (low, high) = self.times.split_at_mut(write * width);
            (&mut high[..width], &low[read * width..][..width])
        }
    }

    pub fn bytes(&self) -> usize {
        self.times.capacity() * size_of::<Time>()
    }
}

/// The width for threads up to this one.
pub fn width_for(thread: u16) -> usize {
    (usize::from(thread) + 1).next_power_of_two().max(WIDTH)
}

/// The least clock that knows what both know.
#[inline]
pub fn join(into: &mut Row, from: &Row) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

/// The greatest thread that the events name, as a thread that acts, starts or ends.
pub fn greatest_thread(events: &[Event]) -> Option<u16> {
    use rashomon_packed::Op;
    if events.is_empty() {
        return None;
    }
    let names_another = |event: &Event| matches!(event.op, Op::Fork | Op::Join);
    // Mostly none does, and without a branch several events are looked at together.
    let look = |(greatest, others), event: &Event| (event.thread.max(greatest), names_another(event) | others);
    let (greatest, others) = events.iter().fold((0, false), look);
    if !others {
        return Some(greatest);
    }
    let named = events.iter().filter(|event| names_another(event)).map(|event| event.target.min(u16::MAX.into()) as u16);
    named.max().max(Some(greatest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_keeps_what_is_known() {
        let mut rows = Rows::default();
        rows.push();
        rows.push();
        rows.row_mut(1)[3] = 7;
        rows.widen(width_for(16));
        assert_eq!((rows.count(), rows.width()), (2, 32));
        assert_eq!(rows.row(1)[3], 7);
        assert_eq!(rows.row(1).iter().sum::<Time>(), 7);
        assert_eq!(rows.row(0).iter().sum::<Time>(), 0);
    }

    #[test]
    fn both_orders_of_a_pair() {
        let mut rows = Rows::default();
        for row in 0..3 {
            rows.push();
            rows.row_mut(row)[0] = row as Time;
        }
        assert_eq!((rows.pair(0, 2).0[0], rows.pair(0, 2).1[0]), (0, 2));
        assert_eq!((rows.pair(2, 1).0[0], rows.pair(2, 1).1[0]), (2, 1));
    }
}
