//! Pairs of accesses, gathered by their two source sites.

use rashomon_event::{EventIndex, SiteId, Trace};
use rustc_hash::FxHashMap;

/// All pairs found with the same two sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePair {
    /// Smaller site first.
    pub sites: (SiteId, SiteId),
    /// Representatives, earlier event of the trace first; different threads, contexts and objects are preferred.
    pub pairs: Vec<(EventIndex, EventIndex)>,
    /// Others, spread over the trace; at most [`OTHERS`].
    pub others: Vec<(EventIndex, EventIndex)>,
    /// Pairs seen: one per access and remembered conflicting access.
    pub occurrences: u64,
}

/// Pairs of two sites that are kept beside the representatives, to ask whether any of them can happen.
pub const OTHERS: usize = 60;

struct Entry {
    pair: (EventIndex, EventIndex),
    /// Another entry has the same threads, contexts and address.
    spare: bool,
}

struct Gathered {
    entries: Vec<Entry>,
    last: (EventIndex, EventIndex),
    occurrences: u64,
    /// One pair of every `stride`.
    others: Vec<(EventIndex, EventIndex)>,
    stride: u64,
}

impl Gathered {
    fn spread(&mut self, pair: (EventIndex, EventIndex)) {
        if !self.occurrences.is_multiple_of(self.stride) {
            return;
        }
        if self.others.len() == OTHERS {
            let mut number = 0;
            self.others.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.stride *= 2;
            if !self.occurrences.is_multiple_of(self.stride) {
                return;
            }
        }
        self.others.push(pair);
    }
}

pub(crate) struct Pairs<'t> {
    trace: &'t Trace,
    representatives: usize,
    has_others: bool,
    by_site: FxHashMap<(u32, u32), Gathered>,
}

impl<'t> Pairs<'t> {
    pub fn new(trace: &'t Trace, representatives: usize) -> Self {
        Self { trace, representatives: representatives.max(1), has_others: false, by_site: FxHashMap::default() }
    }

    pub fn with_others(self) -> Self {
        Self { has_others: true, ..self }
    }

    pub fn add(&mut self, first: EventIndex, second: EventIndex) {
        let (one, other) = (self.trace.event(first).site, self.trace.event(second).site);
        let pair = (first, second);
        let gathered = self.by_site.entry((one.min(other).0, one.max(other).0)).or_insert_with(|| Gathered {
            entries: Vec::new(),
            last: (EventIndex(u32::MAX), EventIndex(u32::MAX)),
            occurrences: 0,
            others: Vec::new(),
            stride: 1,
        });
        // A long access meets the same other one in several granules.
        if gathered.last == pair {
            return;
        }
        gathered.last = pair;
        gathered.occurrences += 1;
        if self.has_others {
            gathered.spread(pair);
        }
        let full = gathered.entries.len() >= self.representatives;
        if full && !gathered.entries.iter().any(|entry| entry.spare) {
            return;
        }
        let alike = |entry: &Entry| {
            let key = |(first, second): (EventIndex, EventIndex)| {
                let of = |index: EventIndex| {
                    let event = self.trace.event(index);
                    (event.thread, event.context, event.access().map(|access| access.address))
                };
                (of(first), of(second))
            };
            key(entry.pair) == key(pair)
        };
        let spare = gathered.entries.iter().any(alike);
        if !full {
            gathered.entries.push(Entry { pair, spare });
        } else if !spare && let Some(entry) = gathered.entries.iter_mut().rev().find(|entry| entry.spare) {
            *entry = Entry { pair, spare };
        }
    }

    /// In the order of the earliest second event.
    pub fn finish(self) -> Vec<SitePair> {
        let mut all: Vec<SitePair> = self
            .by_site
            .into_iter()
            .map(|((one, other), gathered)| {
                let mut pairs: Vec<_> = gathered.entries.into_iter().map(|entry| entry.pair).collect();
                pairs.sort_unstable_by_key(|&(first, second)| (second, first));
                let others = gathered.others.into_iter().filter(|other| !pairs.contains(other)).collect();
                SitePair { sites: (SiteId(one), SiteId(other)), pairs, others, occurrences: gathered.occurrences }
            })
            .collect();
        all.sort_unstable_by_key(|pair| (pair.pairs[0].1, pair.pairs[0].0, pair.sites));
        all
    }
}
