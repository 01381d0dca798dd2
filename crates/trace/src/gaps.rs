//! Calls into code that is not seen: their begins and ends, and what they can reach, as the runtime wrote it down.

use crate::load::Loader;
use crate::stream::SyncRecord;
use rashomon_abi::record::{call_aux, reach};
use rashomon_event::{Address, EventIndex, Gap, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: usize,
    frame: u64,
    /// The frame is on the stack of its thread, where it can be compared with others.
    on_stack: bool,
}

/// What calls can reach, as `CallReaches` has it.
#[derive(Clone, Debug, Default)]
struct Set {
    ranges: Vec<(u64, u64)>,
    /// And what these lead to.
    places: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    range: (u64, u64),
    leads_to: Vec<u32>,
}

/// Calls in the order of their begins.
#[derive(Debug, Default)]
pub struct Gaps {
    list: Vec<Gap>,
    open: FxHashMap<ThreadId, Vec<Open>>,
    sets: FxHashMap<u64, Set>,
    /// Places by number, as they are at this time.
    places: FxHashMap<u32, Place>,
    /// Of calls that can reach everything.
    boundless: Vec<usize>,
}

impl Gaps {
    fn tells(&mut self, number: u64, what: u16, words: &[u64]) {
        let halves = |word: &u64| [*word as u32, (*word >> 32) as u32];
        let numbers = |words: &[u64]| words.iter().flat_map(halves).filter(|number| *number != 0).collect::<Vec<u32>>();
        match what {
            reach::PLACE => {
                let (range, others) = words.split_at(words.len().min(2));
                let &[first, bytes] = range else { return };
                self.places.insert(number as u32, Place { range: (first, bytes), leads_to: numbers(others) });
            }
            reach::FURTHER => {
                let Some(place) = self.places.get_mut(&(number as u32)) else { return };
                place.leads_to.extend(numbers(words));
            }
            reach::PLACES => self.sets.entry(number).or_default().places.extend(numbers(words)),
            _ => {
                let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
                self.sets.entry(number).or_default().ranges.extend(pairs);
            }
        }
    }

    /// What a set is at this time. `None`: that is not known, so that it can be anything.
    fn reached(&self, set: u64) -> Option<Vec<(u64, u64)>> {
        let set = self.sets.get(&set).filter(|_| set != reach::EVERYTHING)?;
        let mut ranges = set.ranges.clone();
        let mut seen: FxHashSet<u32> = set.places.iter().copied().collect();
        let mut work = set.places.clone();
        while let Some(number) = work.pop() {
            let place = self.places.get(&number)?;
            ranges.push(place.range);
            work.extend(place.leads_to.iter().copied().filter(|&other| seen.insert(other)));
        }
        Some(ranges)
    }

    fn open_of(&mut self, thread: ThreadId) -> &mut Vec<Open> {
        self.open.entry(thread).or_default()
    }

    fn begins(&mut self, gap: Gap, frame: u64, on_stack: bool) {
        let thread = gap.thread;
        self.leave(thread, (frame, on_stack), gap.begin);
        let number = self.list.len();
        self.list.push(gap);
        self.open_of(thread).push(Open { number, frame, on_stack });
    }

    fn ends(&mut self, thread: ThreadId, frame: u64, on_stack: bool, end: EventIndex) {
        let Some(place) = self.open_of(thread).iter().rposition(|open| open.frame == frame) else { return };
        // What the call had called in its turn is over as well.
        let inner = self.open_of(thread).split_off(place);
        for open in inner {
            self.list[open.number].end = Some(end);
        }
        self.leave(thread, (frame, on_stack), end);
    }

    /// Calls are over whose frames were left: the stack grows downwards, and stands above them.
    fn leave(&mut self, thread: ThreadId, (frame, on_stack): (u64, bool), at: EventIndex) {
        while let Some(last) = self.open_of(thread).pop_if(|open| on_stack && open.on_stack && open.frame <= frame) {
            self.list[last.number].end = Some(at);
        }
    }

    /// `threads`: how many there are.
    pub fn finish(mut self, threads: usize) -> Vec<Gap> {
        for number in self.boundless {
            self.list[number].threads = (0..threads as u32).map(ThreadId).collect();
        }
        self.list
    }
}

impl Loader<'_> {
    pub(crate) fn call_begins(&mut self, at: usize, sync: &SyncRecord, begin: EventIndex) {
        let thread = self.cursors[at].thread;
        let function = self.sites.intern(sync.object);
        let module = self.sites.list[function.index()].module;
        let mut gap = Gap { thread, begin, end: None, module, function: Some(function), reach: Vec::new(), threads: Vec::new() };
        let (frame, set) = (sync.arguments.get(0), sync.arguments.get(1));
        match self.gaps.reached(set) {
            Some(ranges) => {
                for (first, bytes) in ranges {
                    if bytes == reach::THREAD {
                        gap.threads.extend(self.threads.known(first));
                    } else {
                        let bytes = bytes.min(1 << 47);
                        let first = self.space.translate(&mut self.cursors[at].hits, first, bytes);
                        gap.reach.push((first, bytes));
                    }
                }
            }
            None => {
                gap.reach.push((Address(0), u64::MAX));
                self.gaps.boundless.push(self.gaps.list.len());
            }
        }
        self.gaps.begins(gap, frame, sync.aux & call_aux::ELSEWHERE == 0);
    }

    pub(crate) fn call_ends(&mut self, at: usize, sync: &SyncRecord, end: EventIndex) {
        let (thread, frame) = (self.cursors[at].thread, sync.arguments.get(0));
        self.gaps.ends(thread, frame, sync.aux & call_aux::ELSEWHERE == 0, end);
    }

    pub(crate) fn call_reaches(&mut self, sync: &SyncRecord) {
        let words: Vec<u64> = (0..sync.arguments.count()).map(|at| sync.arguments.get(at)).collect();
        self.gaps.tells(sync.object, sync.aux, &words);
    }
}
