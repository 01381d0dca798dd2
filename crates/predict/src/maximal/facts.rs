//! What every question on one trace shares: who may have written what a read sees, and semaphores.

use super::Values;
use super::values::Source;
use crate::index::Index;
use rashomon_event::{Access, Address, Deadline, EventIndex, EventKind, EventSet, ReadUse, SiteId};
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
    /// The events that write it, by the bytes that they write; those of the same bytes in the order of the trace.
    writes: Vec<(Bytes, Vec<EventIndex>)>,
    /// Per byte, its value before the trace, where known.
    initial: [Option<u8>; 8],
}

impl Granule {
    /// Who writes it.
    pub fn writes(&self) -> impl Iterator<Item = Write> + '_ {
        self.writes.iter().flat_map(|&(bytes, ref events)| events.iter().map(move |&event| Write { event, bytes }))
    }

    /// How many write it.
    pub fn count(&self) -> usize {
        self.writes.iter().map(|(_, events)| events.len()).sum()
    }

    fn is_written(&mut self, event: EventIndex, bytes: Bytes) {
        match self.writes.iter_mut().find(|(known, _)| *known == bytes) {
            Some((_, events)) => events.push(event),
            None => self.writes.push((bytes, vec![event])),
        }
    }
}

pub struct Facts<'a, 't> {
    pub index: &'a Index<'t>,
    pub memory: &'a SharedMemory,
    values: Option<Source<'a>>,
    /// What the trace says of uses of reads counts.
    heeds_uses: bool,
    pub granules: Vec<Granule>,
    /// The events of which a slice has to know more than the order.
    telling: EventSet,
    pub semaphores: BTreeMap<Address, Semaphore>,
}

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
            telling: EventSet::with_room(index.trace.events.len()),
            semaphores: BTreeMap::new(),
        };
        for (address, initial) in initial_counts(index.trace) {
            facts.semaphores.insert(address, Semaphore { initial, ..Semaphore::default() });
        }
        let mut last: Vec<[Option<EventIndex>; 8]> = vec![[None; 8]; memory.len()];
        let used: EventSet = index.trace.uses.iter().map(|one| one.read).collect();
        let all = EventSet::union([index.trace.events.besides_accesses(), memory.sharing(), &used]);
        let mut events = deadline.bound(all);
        for event in events.by_ref() {
            facts.event(event, &mut last);
        }
        (!events.was_cut()).then_some(facts)
    }

    fn event(&mut self, event: EventIndex, last: &mut [[Option<EventIndex>; 8]]) {
        let trace = self.index.trace;
        let mut told = trace.use_of(event).is_some();
        match trace.kind(event) {
            EventKind::Post { semaphore } => self.semaphores.entry(semaphore).or_default().posts.push(event),
            EventKind::Take { semaphore } => {
                self.semaphores.entry(semaphore).or_default().takes.push(event);
                told = true;
            }
            _ => {}
        }
        if let Some(access) = trace.access(event)
            && self.access(event, &access, last)
        {
            told = true;
        }
        if told {
            self.telling.insert(event);
        }
    }

    /// Whether it touches shared memory.
    fn access(&mut self, event: EventIndex, access: &Access, last: &mut [[Option<EventIndex>; 8]]) -> bool {
        let trace = self.index.trace;
        let mut is_sharing = false;
        for (address, granule, bytes) in self.memory.placed_granules(access) {
            self.granules[granule].address = address;
            is_sharing = true;
            if access.class.reads() {
                for byte in each(bytes).filter(|&byte| last[granule][byte].is_none()) {
                    let value = self.values.and_then(|values| values.initial(trace, event, address + byte as u64));
                    let initial = &mut self.granules[granule].initial[byte];
                    *initial = initial.or(value);
                }
            }
            if access.class.writes() {
                self.found(event, granule, bytes, &last[granule]);
                self.granules[granule].is_written(event, bytes);
                each(bytes).for_each(|byte| last[granule][byte] = Some(event));
            }
        }
        is_sharing
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

    /// What an event reads of shared memory: of each granule, the bytes with one writer together.
    pub fn reads(&self, event: EventIndex) -> impl Iterator<Item = Read> + use<'_, 'a, 't> {
        let access = self.access_of(event).filter(|access| access.class.reads());
        let granules = access.into_iter().flat_map(|access| self.memory.granules(&access).collect::<Vec<_>>());
        granules.flat_map(move |(granule, bytes)| {
            let writers = self.writers_before(granule as u32, event);
            let mut left = bytes;
            std::iter::from_fn(move || {
                let writer = writers[each(left).next()?];
                let same = each(left).filter(|&byte| writers[byte] == writer).fold(0, |mask, byte| mask | 1 << byte);
                left &= !same;
                Some(Read { granule: granule as u32, bytes: same, writer })
            })
        })
    }

    /// The granules and bytes that it writes there.
    pub fn writes(&self, event: EventIndex) -> impl Iterator<Item = (u32, Bytes)> + use<'_, 'a, 't> {
        let access = self.access_of(event).filter(|access| access.class.writes());
        let granules = access.into_iter().flat_map(|access| self.memory.granules(&access).collect::<Vec<_>>());
        granules.map(|(granule, bytes)| (granule as u32, bytes))
    }

    fn access_of(&self, event: EventIndex) -> Option<Access> {
        self.index.trace.access(event).filter(|_| self.is_shared(event))
    }

    /// The events of a thread of which a slice has to know more than the order, by their positions.
    pub fn telling(&self, thread: usize, range: Range<u32>) -> impl Iterator<Item = EventIndex> + use<'_, 'a, 't> {
        self.index.threads.stretches(thread, range).flat_map(|stretch| self.telling.within(stretch))
    }

    /// Who wrote the bytes of a granule last before an event.
    pub fn writers_before(&self, granule: u32, event: EventIndex) -> [Option<EventIndex>; 8] {
        let mut writers = [None; 8];
        for (bytes, events) in &self.granules[granule as usize].writes {
            let before = events.partition_point(|write| *write < event);
            let last = before.checked_sub(1).map(|last| events[last]);
            each(*bytes).for_each(|byte| writers[byte] = writers[byte].max(last));
        }
        writers
    }

    pub fn is_shared(&self, event: EventIndex) -> bool {
        self.memory.sharing().contains(event)
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
        let reads = self.index.trace.indices().filter(|&event| self.reads(event).any(|read| granules.contains(&read.granule)));
        let writes = granules.iter().flat_map(|&granule| self.granules[granule as usize].writes());
        let events = reads.chain(writes.map(|write| write.event));
        events.map(|event| self.index.trace.event(event).site).collect()
    }
}
