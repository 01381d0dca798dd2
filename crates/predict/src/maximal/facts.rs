//! What every question on one trace shares: who may have written what a read sees, and semaphores.

use super::Values;
use super::values::Source;
use crate::index::Index;
use rashomon_event::{Access, Address, Deadline, EventIndex, EventKind, ReadUse, SiteId};
use rashomon_order::{SharedMemory, initial_counts};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of a granule, one bit each.
pub type Bytes = u8;

/// Some bytes of a granule that an event reads, which one event, or none, had written.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub granule: u32,
    pub bytes: Bytes,
    pub writer: Option<EventIndex>,
}

#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub event: EventIndex,
    pub bytes: Bytes,
}

#[derive(Clone, Debug, Default)]
pub struct Semaphore {
    pub initial: u64,
    pub posts: Vec<EventIndex>,
    pub takes: Vec<EventIndex>,
}

/// The shared part of a granule.
#[derive(Clone, Debug, Default)]
pub struct Granule {
    /// Address of its first byte.
    address: u64,
    /// In the order of the trace.
    pub writes: Vec<Write>,
    /// Per byte, its value before the trace, where known.
    initial: [Option<u8>; 8],
}

pub struct Facts<'a, 't> {
    pub index: &'a Index<'t>,
    pub memory: &'a SharedMemory,
    values: Option<Source<'a>>,
    /// What the trace says of uses of reads counts.
    heeds_uses: bool,
    pub granules: Vec<Granule>,
    /// By event, its number among those that touch shared memory, or [`NONE`].
    numbers: Vec<u32>,
    /// By that number, where its reads and its writes begin; and where the last ones end.
    begins: Vec<(u32, u32)>,
    reads: Vec<Read>,
    writes: Vec<(u32, Bytes)>,
    /// By thread, the positions of its events of which a slice has to know more than the order.
    pub told: Vec<Vec<u32>>,
    pub semaphores: BTreeMap<Address, Semaphore>,
}

const NONE: u32 = u32::MAX;

pub fn each(bytes: Bytes) -> impl Iterator<Item = usize> {
    (0..8).filter(move |byte| bytes >> byte & 1 == 1)
}

impl<'a, 't> Facts<'a, 't> {
    pub fn new(index: &'a Index<'t>, memory: &'a SharedMemory, values: Option<&'a Values>) -> Self {
        Self::until(index, memory, values, Deadline::NEVER).expect("there is time")
    }

    /// `None`: the deadline passed, and what there is would be wrong.
    pub fn until(index: &'a Index<'t>, memory: &'a SharedMemory, values: Option<&'a Values>, deadline: Deadline) -> Option<Self> {
        Self::of(index, memory, values.map(Source::Table), deadline)
    }

    /// With the values and uses that the trace tells, if it tells any. `None`: as above.
    pub fn with_values(index: &'a Index<'t>, memory: &'a SharedMemory, deadline: Deadline) -> Option<Self> {
        let facts = Self::of(index, memory, Some(Source::Trace).filter(|_| index.trace.has_values()), deadline)?;
        Some(Self { heeds_uses: true, ..facts })
    }

    /// The same, and values that the trace does not tell may be any. What is refuted then no value can show. `None`: as above.
    pub fn with_any_values(index: &'a Index<'t>, memory: &'a SharedMemory, deadline: Deadline) -> Option<Self> {
        let facts = Self::of(index, memory, Some(Source::Unknown), deadline)?;
        Some(Self { heeds_uses: true, ..facts })
    }

    fn of(index: &'a Index<'t>, memory: &'a SharedMemory, values: Option<Source<'a>>, deadline: Deadline) -> Option<Self> {
        if deadline.is_over() {
            return None;
        }
        let mut facts = Self {
            index,
            memory,
            values,
            heeds_uses: false,
            granules: vec![Granule::default(); memory.len()],
            numbers: vec![NONE; index.trace.events.len()],
            begins: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            told: vec![Vec::new(); index.threads.len()],
            semaphores: BTreeMap::new(),
        };
        for (address, initial) in initial_counts(index.trace) {
            facts.semaphores.insert(address, Semaphore { initial, ..Semaphore::default() });
        }
        let mut last: Vec<[Option<EventIndex>; 8]> = vec![[None; 8]; memory.len()];
        let mut events = deadline.bound(index.trace.indices());
        for event in events.by_ref() {
            facts.event(event, &mut last);
        }
        facts.begins.push((facts.reads.len() as u32, facts.writes.len() as u32));
        (!events.was_cut()).then_some(facts)
    }

    fn event(&mut self, event: EventIndex, last: &mut [[Option<EventIndex>; 8]]) {
        let trace = self.index.trace;
        let begin = (self.reads.len() as u32, self.writes.len() as u32);
        let mut told = trace.use_of(event).is_some();
        match trace.event(event).kind {
            EventKind::Post { semaphore } => self.semaphores.entry(semaphore).or_default().posts.push(event),
            EventKind::Take { semaphore } => {
                self.semaphores.entry(semaphore).or_default().takes.push(event);
                told = true;
            }
            _ => {}
        }
        if let Some(access) = trace.event(event).access() {
            self.access(event, &access, last);
        }
        if begin != (self.reads.len() as u32, self.writes.len() as u32) {
            self.numbers[event.index()] = self.begins.len() as u32;
            self.begins.push(begin);
            told = true;
        }
        if told {
            let (thread, at) = self.index.place(event);
            self.told[thread as usize].push(at);
        }
    }

    fn access(&mut self, event: EventIndex, access: &Access, last: &mut [[Option<EventIndex>; 8]]) {
        let trace = self.index.trace;
        for (address, granule, bytes) in self.memory.placed_granules(access) {
            self.granules[granule].address = address;
            if access.class.reads() {
                let mut left = bytes;
                while left != 0 {
                    let writer = last[granule][left.trailing_zeros() as usize];
                    let same = each(left).filter(|&byte| last[granule][byte] == writer).fold(0, |mask, byte| mask | 1 << byte);
                    left &= !same;
                    self.reads.push(Read { granule: granule as u32, bytes: same, writer });
                    if writer.is_none() {
                        for byte in each(same) {
                            let value = self.values.and_then(|values| values.initial(trace, event, address + byte as u64));
                            let initial = &mut self.granules[granule].initial[byte];
                            *initial = initial.or(value);
                        }
                    }
                }
            }
            if access.class.writes() {
                self.found(event, granule, bytes, &last[granule]);
                self.granules[granule].writes.push(Write { event, bytes });
                self.writes.push((granule as u32, bytes));
                each(bytes).for_each(|byte| last[granule][byte] = Some(event));
            }
        }
    }

    /// What a write found that nobody had written before.
    fn found(&mut self, event: EventIndex, granule: usize, bytes: Bytes, last: &[Option<EventIndex>; 8]) {
        let address = self.granules[granule].address;
        for byte in each(bytes).filter(|&byte| last[byte].is_none()) {
            let value = self.values.and_then(|values| values.found(self.index.trace, event, address + byte as u64));
            let initial = &mut self.granules[granule].initial[byte];
            *initial = initial.or(value);
        }
    }

    /// Where the reads and the writes of an event begin and end.
    fn spans(&self, event: EventIndex) -> Option<[Range<usize>; 2]> {
        let number = self.numbers[event.index()];
        let [begin, end] = *self.begins.get(number as usize..)?.first_chunk()?;
        Some([begin.0 as usize..end.0 as usize, begin.1 as usize..end.1 as usize])
    }

    /// What an event reads of shared memory.
    pub fn reads(&self, event: EventIndex) -> &[Read] {
        self.spans(event).map_or(&[], |[reads, _]| &self.reads[reads])
    }

    /// The granules and bytes that it writes there.
    pub fn writes(&self, event: EventIndex) -> &[(u32, Bytes)] {
        self.spans(event).map_or(&[], |[_, writes]| &self.writes[writes])
    }

    /// Who wrote the bytes of a granule last before an event.
    pub fn writers_before(&self, granule: u32, event: EventIndex) -> [Option<EventIndex>; 8] {
        let writes = &self.granules[granule as usize].writes;
        let before = &writes[..writes.partition_point(|write| write.event < event)];
        let (mut writers, mut left) = ([None; 8], Bytes::MAX);
        for write in before.iter().rev() {
            each(write.bytes & left).for_each(|byte| writers[byte] = Some(write.event));
            left &= !write.bytes;
            if left == 0 {
                break;
            }
        }
        writers
    }

    pub fn is_shared(&self, event: EventIndex) -> bool {
        self.numbers[event.index()] != NONE
    }

    /// Whether a read sees what it saw if it sees these of its bytes from `writer`.
    pub fn may_see(&self, event: EventIndex, read: &Read, writer: Option<EventIndex>, bytes: Bytes) -> bool {
        if writer == read.writer {
            return true;
        }
        let Some(values) = self.values else { return false };
        let (trace, granule) = (self.index.trace, &self.granules[read.granule as usize]);
        each(bytes).all(|byte| {
            let address = granule.address + byte as u64;
            values.same(trace, (event, address), read.writer, (writer, granule.initial[byte]))
        })
    }

    /// Whether a read may see another write than it saw, as far as its own value goes: if that is not known, it may not.
    pub fn may_choose(&self, event: EventIndex, read: &Read) -> bool {
        let Some(values) = self.values else { return false };
        let address = self.granules[read.granule as usize].address;
        each(read.bytes).any(|byte| values.may_equal(self.index.trace, event, read.writer, address + byte as u64))
    }

    /// What is known to depend on a read, where that counts.
    pub fn use_of(&self, event: EventIndex) -> Option<&ReadUse> {
        if self.heeds_uses { self.index.trace.use_of(event) } else { None }
    }

    /// Where these granules are read and written.
    pub fn sites_of(&self, granules: &BTreeSet<u32>) -> BTreeSet<SiteId> {
        let reads =
            self.index.trace.indices().filter(|&event| self.reads(event).iter().any(|read| granules.contains(&read.granule)));
        let writes = granules.iter().flat_map(|&granule| &self.granules[granule as usize].writes);
        let events = reads.chain(writes.map(|write| write.event));
        events.map(|event| self.index.trace.event(event).site).collect()
    }
}
