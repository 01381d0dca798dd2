//! Calls into code that is not seen: their begins and ends, and what they can reach, as the runtime wrote it down.

use crate::load::Loader;
use crate::stream::SyncRecord;
use rashomon_abi::record::{call_aux, reach};
use rashomon_event::{Address, EventIndex, Gap, ThreadId};
use rustc_hash::FxHashMap;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: usize,
    frame: u64,
    /// The frame is on the stack of its thread, where it can be compared with others.
    on_stack: bool,
}

/// Calls in the order of their begins.
#[derive(Debug, Default)]
pub struct Gaps {
    list: Vec<Gap>,
    open: FxHashMap<ThreadId, Vec<Open>>,
    /// What can be reached, as pairs of `CallReaches`.
    sets: FxHashMap<u64, Vec<(u64, u64)>>,
    /// Of calls that can reach everything.
    boundless: Vec<usize>,
}

impl Gaps {
    pub fn add_to_set(&mut self, number: u64, pairs: impl Iterator<Item = (u64, u64)>) {
        self.sets.entry(number).or_default().extend(pairs);
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
    pub(crate) fn call_begins(&mut self, at: usize, sync: &SyncRecord<'_>, begin: EventIndex) {
        let thread = self.cursors[at].thread;
        let function = self.sites.intern(sync.object);
        let module = self.sites.list[function.index()].module;
        let mut gap = Gap { thread, begin, end: None, module, reach: Vec::new(), threads: Vec::new() };
        let (frame, set) = (sync.arguments.get(0), sync.arguments.get(1));
        match self.gaps.sets.get(&set).filter(|_| set != reach::EVERYTHING) {
            Some(pairs) => {
                for &(first, bytes) in pairs {
                    if bytes == reach::THREAD {
                        gap.threads.extend(self.threads.known(first));
                    } else {
                        let bytes = bytes.min(1 << 47);
                        let first = self.space.translate(&mut self.cursors[at].hits, first, bytes);
                        gap.reach.push((first, bytes));
                    }
                }
            }
            // A set that is not there can be anything.
            None => {
                gap.reach.push((Address(0), u64::MAX));
                self.gaps.boundless.push(self.gaps.list.len());
            }
        }
        self.gaps.begins(gap, frame, sync.aux & call_aux::ELSEWHERE == 0);
    }

    pub(crate) fn call_ends(&mut self, at: usize, sync: &SyncRecord<'_>, end: EventIndex) {
        let (thread, frame) = (self.cursors[at].thread, sync.arguments.get(0));
        self.gaps.ends(thread, frame, sync.aux & call_aux::ELSEWHERE == 0, end);
    }

    pub(crate) fn call_reaches(&mut self, sync: &SyncRecord<'_>) {
        let pair = |pair: usize| (sync.arguments.get(2 * pair), sync.arguments.get(2 * pair + 1));
        self.gaps.add_to_set(sync.object, (0..sync.arguments.count() / 2).map(pair));
    }
}
