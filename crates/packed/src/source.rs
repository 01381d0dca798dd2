//! Where events come from: files of any format, generators, memory.

use crate::error::{Place, TraceError};
use crate::event::{Event, Space};
use crate::names::Names;

/// Events that are handed on together: few enough for the first-level cache, many enough to forget the price of a call.
pub const BLOCK: usize = 1 << 11;

/// Events in the order of the trace.
pub trait Source {
    /// Replaces what is in `block` by the next events, at most [`BLOCK`]; none are left once it stays empty.
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError>;

    /// How many numbers of the space there will be, where known beforehand: a hint for tables, which grow all the same.
    fn expected(&self, _space: Space) -> Option<u32> {
        None
    }

    /// How many events there will be, where known: for progress.
    fn events(&self) -> Option<u64> {
        None
    }

    /// What the numbers seen so far stand for.
    fn names(&self) -> &Names;

    /// Where event `index` of the last block stands, if it comes from a file.
    fn place(&self, _index: usize) -> Option<Place> {
        None
    }

    /// What was noticed so far and did not end the reading.
    fn notices(&self) -> &[String] {
        &[]
    }
}

/// All methods of a [`Source`] but `next`, those of the source that it is made from; or all but `next` and `notices`.
#[macro_export]
macro_rules! delegate_to {
    ($self:ident => $source:expr) => {
        $crate::delegate_to!($self => $source, but notices);

        fn notices(&$self) -> &[String] {
            $source.notices()
        }
    };
    ($self:ident => $source:expr, but notices) => {
        fn expected(&$self, space: $crate::Space) -> Option<u32> {
            $source.expected(space)
        }

        fn events(&$self) -> Option<u64> {
            $source.events()
        }

        fn names(&$self) -> &$crate::Names {
            $source.names()
        }

        fn place(&$self, index: usize) -> Option<$crate::Place> {
            $source.place(index)
        }
    };
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        (**self).next(block)
    }

    delegate_to!(self => (**self));
}

/// Events in memory.
#[derive(Clone, Debug, Default)]
pub struct Slice<'a> {
    events: &'a [Event],
    at: usize,
    names: Names,
}

impl<'a> Slice<'a> {
    pub fn new(events: &'a [Event]) -> Self {
        Self { events, at: 0, names: Names::default() }
    }

    pub fn named(events: &'a [Event], names: Names) -> Self {
        Self { events, at: 0, names }
    }
}

impl Source for Slice<'_> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        let end = (self.at + BLOCK).min(self.events.len());
        block.clear();
        block.extend_from_slice(&self.events[self.at..end]);
        self.at = end;
        Ok(())
    }

    fn events(&self) -> Option<u64> {
        Some(self.events.len() as u64)
    }

    fn names(&self) -> &Names {
        &self.names
    }
}
