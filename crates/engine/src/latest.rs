//! The latest transactions of a variable, for [`crate::serialisability`]: which one wrote last, and which ones have read since.

use crate::transactions::{NONE, NodeId};

/// The latest transactions of a variable. Eight bytes, so that none lies in two cache lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub write: NodeId,
    /// The only one that read since the write, or none, or [`MANY_READERS`] and the number of a list of all that read since.
    pub read: NodeId,
}

pub(crate) const MANY_READERS: u32 = 1 << 31;

pub(crate) const UNTOUCHED: Record = Record { write: NONE, read: NONE };

impl Default for Record {
    fn default() -> Self {
        UNTOUCHED
    }
}

impl Record {
    /// The number of the list of its readers, if there is one.
    #[inline]
    pub fn list(self) -> Option<u32> {
        (self.read & MANY_READERS != 0 && self.read != NONE).then_some(self.read & !MANY_READERS)
    }
}

/// Threads that read since the write, and in which transaction each did last. A cache line, unless there are many.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Readers {
    few: [NodeId; FEW],
    threads: [u16; FEW],
    pub count: u32,
    pub more: Vec<(u16, NodeId)>,
}

/// Of the readers in the same cache line.
const FEW: usize = 6;
const _: () = assert!(size_of::<Readers>() == 64);

impl Readers {
    pub fn all(&self) -> impl Iterator<Item = (u16, NodeId)> {
        let few = self.threads.into_iter().zip(self.few).take(self.count as usize);
        few.chain(self.more.iter().copied())
    }

    /// Says how many more there are beside the cache line.
    pub fn put(&mut self, thread: u16, node: NodeId) -> usize {
        let count = self.count as usize;
        if let Some(place) = self.threads[..count].iter().position(|known| *known == thread) {
            self.few[place] = node;
        } else if let Some(known) = self.more.iter_mut().find(|(known, _)| *known == thread) {
            known.1 = node;
        } else if count < FEW {
            (self.few[count], self.threads[count]) = (node, thread);
            self.count += 1;
        } else {
            self.more.push((thread, node));
            return 1;
        }
        0
    }

    /// Says how many fewer there are beside the cache line.
    pub fn retain(&mut self, mut keeps: impl FnMut(NodeId) -> bool) -> usize {
        let (more, old) = (self.more.len(), std::mem::take(self));
        old.all().filter(|(_, node)| keeps(*node)).for_each(|(thread, node)| {
            self.put(thread, node);
        });
        more - self.more.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_that_are_not_kept_are_gone() {
        let mut readers = Readers::default();
        let beside: usize = (0..10).map(|thread| readers.put(thread, 100 + NodeId::from(thread))).sum();
        assert_eq!((beside, readers.put(9, 200), readers.all().count()), (4, 0, 10));
        let fewer = readers.retain(|node| node % 2 == 0);
        assert_eq!((fewer, readers.more.len()), (4, 0));
        let kept: Vec<_> = readers.all().collect();
        assert_eq!(kept, [(0, 100), (2, 102), (4, 104), (6, 106), (8, 108), (9, 200)]);
        assert_eq!((readers.retain(|_| false), readers.count), (0, 0));
    }
}
