//! Leaves out accesses that only repeat.
//!
//! Carril, Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", 2015, §3: within one segment of a thread,
//! the events between two of its synchronisation events, one access to a variable is enough, a write if there is one. Here a
//! plain read goes if the thread read or wrote the variable in the segment before, a plain write if it wrote it. What goes
//! becomes [`Op::Nothing`], so that events keep their numbers.
//!
//! Guarantee: exactly the same variables race under happens-before, and under the hybrid analysis. For let access b repeat a, and
//! c of another thread conflict with b; then c conflicts with a, and a and b hold the same locks. The thread receives nothing
//! between a and b, so c before a is ordered before b only if before a; it passes nothing on there either, so c behind b is
//! ordered behind a only if behind b, and c between them is not ordered behind a at all. Limits: (1) places are lost: of a
//! variable's racing accesses a repetition is not named; (2) nothing is promised for SHB, whose reads want their own write, nor
//! for Eraser, whose states forget a variable's first thread; (3) a thread remembers [`REMEMBERED`] variables, and so lets some
//! repetitions pass. Cost: one look-up an access.

use rashomon_packed::{Event, Op, Source, TraceError, delegate_to};

/// Variables of its segment that a thread remembers, at most.
pub const REMEMBERED: usize = 1 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    variable: u32,
    /// 0: nothing.
    segment: u32,
    written: bool,
}

#[derive(Clone, Debug)]
struct Thread {
    segment: u32,
    /// Nothing until it accesses.
    seen: Box<[Seen]>,
}

impl Thread {
    fn new() -> Self {
        Self { segment: 1, seen: Box::default() }
    }

    fn next_segment(&mut self) {
        self.segment = self.segment.checked_add(1).unwrap_or_else(|| {
            self.seen.fill(Seen::default());
            1
        });
    }

    /// Whether the access repeats one of the segment; remembers it otherwise.
    fn repeats(&mut self, variable: u32, writes: bool) -> bool {
        if self.seen.is_empty() {
            self.seen = vec![Seen::default(); REMEMBERED].into();
        }
        let seen = &mut self.seen[variable as usize % REMEMBERED];
        let known = seen.variable == variable && seen.segment == self.segment;
        if known && (seen.written || !writes) {
            return true;
        }
        *seen = Seen { variable, segment: self.segment, written: writes };
        false
    }
}

/// A source without repetitions.
pub struct Redundancy<S> {
    source: S,
    threads: Vec<Thread>,
    left_out: u64,
}

impl<S: Source> Redundancy<S> {
    pub fn new(source: S) -> Self {
        Self { source, threads: Vec::new(), left_out: 0 }
    }

    /// Accesses left out so far.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn is_redundant(&mut self, event: &Event) -> bool {
        let thread = usize::from(event.thread);
        while self.threads.len() <= thread {
            self.threads.push(Thread::new());
        }
        match event.op {
            Op::Read | Op::Write => return self.threads[thread].repeats(event.target, event.op == Op::Write),
            Op::Nothing | Op::Branch => {}
            // The variable that others accessed is another one from here on.
            Op::Forget => self.threads.iter_mut().for_each(Thread::next_segment),
            _ => self.threads[thread].next_segment(),
        }
        false
    }
}

impl<S: Source> Source for Redundancy<S> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        self.source.next(block)?;
        for event in block {
            if self.is_redundant(event) {
                self.left_out += 1;
                *event = Event::new(event.thread, Op::Nothing, 0, event.location);
            }
        }
        Ok(())
    }

    delegate_to!(self => self.source);
}
