//! What the accesses of a tiny trace read and wrote, byte by byte, where that is known: values for the oracle.

use crate::oracle::Sight;
use crate::random::SplitMix;
use rashomon_event::{AccessClass, EventIndex, Trace};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Bytes by event, from its first address on. What is there before the trace is zero.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub read: BTreeMap<EventIndex, Vec<u8>>,
    pub written: BTreeMap<EventIndex, Vec<u8>>,
}

fn span(trace: &Trace, event: EventIndex) -> Option<Range<u64>> {
    trace.access(event).map(|access| access.address.0..access.address.0 + u64::from(access.size))
}

impl Contents {
    /// As the trace runs with these values for its writes (event, bytes). `is_known`: whether those of an access are told.
    pub fn of(trace: &Trace, mut write: impl FnMut(usize) -> Vec<u8>, mut is_known: impl FnMut() -> bool) -> Self {
        let mut contents = Self::default();
        let mut memory: HashMap<u64, u8> = HashMap::new();
        for event in trace.indices() {
            let (Some(access), Some(span)) = (trace.access(event), span(trace, event)) else { continue };
            if access.class.reads() && is_known() {
                let seen = span.clone().map(|byte| memory.get(&byte).copied().unwrap_or(0)).collect();
                contents.read.insert(event, seen);
            }
            if access.class.writes() {
                let new = write(access.size as usize);
                memory.extend(span.zip(new.iter().copied()));
                if access.class != AccessClass::End && is_known() {
                    contents.written.insert(event, new);
                }
            }
        }
        contents
    }

    /// A value for each write, of few, so that many are equal. Of eight accesses `known` are told.
    pub fn random(trace: &Trace, seed: u64, known: u64) -> Self {
        let mut values = SplitMix(seed);
        let mut told = SplitMix(!seed);
        let write = |bytes| {
            let (value, apart) = (values.below(2), values.below(6) == 0);
            (0..bytes).map(|_| if apart { values.below(2) } else { value } as u8).collect()
        };
        Self::of(trace, write, || told.below(8) < known)
    }

    /// The writes have the bits of a number as their values.
    pub fn numbered(trace: &Trace, mut number: u64) -> Self {
        let write = |bytes| {
            let value = (number & 1) as u8;
            number >>= 1;
            vec![value; bytes]
        };
        Self::of(trace, write, || true)
    }

    fn byte(table: &BTreeMap<EventIndex, Vec<u8>>, trace: &Trace, event: EventIndex, byte: u64) -> Option<u8> {
        let offset = byte.checked_sub(span(trace, event)?.start)?;
        table.get(&event)?.get(offset as usize).copied()
    }

    /// Of what is there before, a value is known if a read saw it.
    fn initial(&self, trace: &Trace, byte: u64) -> Option<u8> {
        let writes = |event: &EventIndex| {
            let touches = span(trace, *event).is_some_and(|span| span.contains(&byte));
            touches && trace.access(*event).is_some_and(|access| access.class.writes())
        };
        // A write that reads first saw it, too.
        let until = trace.indices().find(writes).map_or(trace.events.len(), |first| first.index() + 1);
        trace.indices().take(until).find_map(|event| Self::byte(&self.read, trace, event, byte))
    }

    /// Whether a read sees what it saw.
    pub fn may_see(&self, trace: &Trace, sight: Sight) -> bool {
        let offered = match sight.sees {
            Some(writer) => Self::byte(&self.written, trace, writer, sight.byte),
            None => self.initial(trace, sight.byte),
        };
        sight.sees == sight.saw || offered.is_some() && offered == Self::byte(&self.read, trace, sight.reader, sight.byte)
    }

    /// Whether every read of an order of the trace's events sees what it saw.
    pub fn hold(&self, trace: &Trace, order: &[EventIndex]) -> bool {
        let saw = last_writers(trace, trace.indices());
        let mut sees = last_writers(trace, order.iter().copied()).into_iter();
        sees.all(|((reader, byte), sees)| self.may_see(trace, Sight { reader, byte, saw: saw[&(reader, byte)], sees }))
    }
}

/// By read and byte, who wrote it last.
fn last_writers(trace: &Trace, order: impl Iterator<Item = EventIndex>) -> HashMap<(EventIndex, u64), Option<EventIndex>> {
    let mut last: HashMap<u64, EventIndex> = HashMap::new();
    let mut seen = HashMap::new();
    for event in order {
        let (Some(access), Some(span)) = (trace.access(event), span(trace, event)) else { continue };
        if access.class.reads() {
            seen.extend(span.clone().map(|byte| ((event, byte), last.get(&byte).copied())));
        }
        if access.class.writes() {
            last.extend(span.map(|byte| (byte, event)));
        }
    }
    seen
}
