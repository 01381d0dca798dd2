//! Where events go to: files of any format.

use crate::error::TraceError;
use crate::event::Event;
use crate::names::Names;
use crate::source::Source;

/// Takes the events of a trace in their order.
pub trait Sink {
    /// `names` are those known so far; they only ever grow.
    fn write(&mut self, block: &[Event], names: &Names) -> Result<(), TraceError>;

    /// After the last event. What is not finished is not whole.
    fn finish(&mut self, names: &Names) -> Result<(), TraceError>;

    /// Events that the format cannot say and that were left out, as asked for.
    fn left_out(&self) -> u64 {
        0
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, block: &[Event], names: &Names) -> Result<(), TraceError> {
        (**self).write(block, names)
    }

    fn finish(&mut self, names: &Names) -> Result<(), TraceError> {
        (**self).finish(names)
    }

    fn left_out(&self) -> u64 {
        (**self).left_out()
    }
}

/// Everything from `source` into `sink`. `progress` is told how many events went over so far. Returns how many there were.
pub fn copy(
    source: &mut (impl Source + ?Sized),
    sink: &mut (impl Sink + ?Sized),
    mut progress: impl FnMut(u64),
) -> Result<u64, TraceError> {
    let mut block = Vec::with_capacity(crate::source::BLOCK);
    let mut events = 0;
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            sink.finish(source.names())?;
            return Ok(events);
        }
        sink.write(&block, source.names())?;
        events += block.len() as u64;
        progress(events);
    }
}
