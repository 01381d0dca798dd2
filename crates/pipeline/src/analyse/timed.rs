//! A trace that ends when the time does.

use rashomon_event::Deadline;
use rashomon_packed::{Event, Source, TraceError, delegate_to};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Not reached.
const NOWHERE: u64 = u64::MAX;

/// Where a trace ends that is too long for its time: the first pass finds out, and further ones end there, too.
pub struct End {
    deadline: Deadline,
    events: Arc<AtomicU64>,
}

impl End {
    pub fn new(deadline: Deadline) -> Self {
        Self { deadline, events: Arc::new(AtomicU64::new(NOWHERE)) }
    }

    /// A pass over the trace up to there.
    pub fn bound<'t>(&self, source: Box<dyn Source + Send + 't>) -> Box<dyn Source + Send + 't> {
        let first = !self.is_known();
        let deadline = if first { self.deadline } else { Deadline::NEVER };
        Box::new(Timed { source, deadline, end: Arc::clone(&self.events), seen: 0 })
    }

    fn is_known(&self) -> bool {
        self.events.load(Ordering::Relaxed) != NOWHERE
    }

    /// What to say of it, and of the option that bounds the time.
    pub fn words(&self, option: &str) -> Option<String> {
        let events = self.events.load(Ordering::Relaxed);
        self.is_known()
            .then(|| format!("the time was over after {events} events: what comes behind was not looked at; {option} gives more"))
    }
}

/// One pass.
struct Timed<'t> {
    source: Box<dyn Source + Send + 't>,
    deadline: Deadline,
    end: Arc<AtomicU64>,
    seen: u64,
}

impl Source for Timed<'_> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        if self.deadline.is_over() {
            self.end.fetch_min(self.seen, Ordering::Relaxed);
        }
        let left = self.end.load(Ordering::Relaxed).saturating_sub(self.seen);
        if left == 0 {
            block.clear();
            return Ok(());
        }
        match self.source.next(block) {
            // A pipe that sends nothing more.
            Err(TraceError::Io { source, .. }) if source.kind() == ErrorKind::TimedOut => {
                self.end.fetch_min(self.seen, Ordering::Relaxed);
                block.clear();
                return Ok(());
            }
            read => read?,
        }
        block.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.seen += block.len() as u64;
        Ok(())
    }

    delegate_to!(self => self.source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_packed::{Generator, Preset};
    use std::time::Instant;

    fn all(source: &mut dyn Source) -> u64 {
        let (mut block, mut events) = (Vec::new(), 0);
        loop {
            source.next(&mut block).unwrap();
            if block.is_empty() {
                return events;
            }
            events += block.len() as u64;
        }
    }

    fn trace() -> Box<dyn Source + Send> {
        Box::new(Generator::new(Preset::Regions.shape(5_000, 1)).unwrap())
    }

    #[test]
    fn every_pass_ends_where_the_first_did() {
        let end = End::new(Deadline::NEVER);
        let whole = all(&mut *end.bound(trace()));
        assert!(whole > 4_000 && end.words("--budget").is_none());
        end.events.store(3_000, Ordering::Relaxed);
        assert_eq!(all(&mut *end.bound(trace())), 3_000);
        assert!(end.words("--budget").unwrap().contains("after 3000 events"));
    }

    #[test]
    fn nothing_is_read_behind_the_deadline() {
        let end = End::new(Deadline::at(Instant::now()));
        assert_eq!(all(&mut *end.bound(trace())), 0);
        assert!(end.words("--budget").is_some());
    }
}
