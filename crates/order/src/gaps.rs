//! What calls into unseen code may have ordered.
//!
//! Computed: the constraints that BarrierPairs put on reorderings (Rajagopalan, "Fast and Precise On-the-Fly Data Race
//! Detection", thesis, 2016, §4.3, and Algorithms 5 and 6 of §4.4.4): if two calls reach common memory, all events of both
//! (begins, ends and what was observed of their threads in between) keep the order of the trace; and so do the events of a
//! call and each ordinary access of what it reaches. Caveats: calls that overlap in time (1) and events in between (2) take
//! part as events like others; ordinary accesses (3); orders pass on from event to event, since whoever heeds them closes
//! under them (4); memory that code reaches though nobody passes it is in [`Gap::reach`] as well, if the caller knows of it
//! (5). The start and the end of a thread are accesses of its handle.
//!
//! Of each event and each other thread only the latest event that has to come before it is told, and not that if an earlier event
//! of the same thread had to wait for it already: program order implies the rest. Cost: begins and ends times what they reach,
//! events times the threads. Memory: pieces of what is reached, times threads.

use rashomon_event::{Access, Address, EventIndex, EventKind, Gap, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What one thread did last to a piece of memory.
#[derive(Clone, Copy, Default)]
struct Last {
    /// An ordinary access, or one inside a call; 1 + its index.
    access: u32,
    /// The end of a call that reaches it; 1 + its index.
    call: u32,
    /// Calls that reach it and have not ended.
    open: u32,
}

/// Memory cut into pieces that no call reaches in part, and one piece for each thread's handle.
struct Pieces {
    /// Where pieces begin; sorted.
    starts: Vec<Address>,
    threads: usize,
    /// Per piece, the threads that have anything to do with it.
    last: Vec<Vec<(u32, Last)>>,
}

impl Pieces {
    fn new(gaps: &[Gap], threads: usize) -> Self {
        let ends = |&(start, bytes): &(Address, u64)| [start, Address(start.0.saturating_add(bytes))];
        let mut starts: Vec<Address> = gaps.iter().flat_map(|gap| gap.reach.iter().flat_map(ends)).collect();
        starts.sort_unstable();
        starts.dedup();
        let last = vec![Vec::new(); starts.len() + threads];
        Self { starts, threads, last }
    }

    fn between(&self, start: Address, end: u64) -> Range<usize> {
        let first = self.starts.partition_point(|&at| at <= start).saturating_sub(1);
        first..self.starts.partition_point(|at| at.0 < end).max(first)
    }

    fn touched(&self, access: &Access) -> Range<usize> {
        self.between(access.address, access.address.0.saturating_add(u64::from(access.size)))
    }

    fn handle(&self, thread: ThreadId) -> Option<usize> {
        (thread.index() < self.threads).then(|| self.starts.len() + thread.index())
    }

    /// The pieces that a call reaches, each once.
    fn reached(&self, gap: &Gap) -> Vec<u32> {
        let ranges = gap.reach.iter().filter(|(_, bytes)| *bytes > 0);
        let memory = ranges.flat_map(|&(start, bytes)| self.between(start, start.0.saturating_add(bytes)));
        let handles = gap.threads.iter().filter_map(|&thread| self.handle(thread));
        let mut pieces: Vec<u32> = memory.chain(handles).map(|piece| piece as u32).collect();
        pieces.sort_unstable();
        pieces.dedup();
        pieces
    }

    fn of(&mut self, piece: usize, thread: u32) -> &mut Last {
        let all = &mut self.last[piece];
        let place = all.iter().position(|entry| entry.0 == thread).unwrap_or_else(|| {
            all.push((thread, Last::default()));
            all.len() - 1
        });
        &mut all[place].1
    }
}

/// The orders to keep, as [`Trace::kept`] has them, if these are the calls. Gaps that name events the trace does not have are
/// left out.
pub fn kept(trace: &Trace, gaps: &[Gap]) -> Vec<(EventIndex, EventIndex)> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let count = crate::happens_before::thread_count(trace);
    let mut sweep = Sweep {
        pieces: Pieces::new(gaps, count),
        open: (0..count).map(|_| Vec::new()).collect(),
        latest: vec![0; count],
        waited: vec![vec![0; count]; count],
        wanted: vec![0; count],
        kept: Vec::new(),
    };
    let valid = |gap: &&Gap| gap.begin.index() < trace.events.len() && trace.event(gap.begin).thread == gap.thread;
    let mut begins: FxHashMap<EventIndex, Vec<&Gap>> = FxHashMap::default();
    for gap in gaps.iter().filter(valid) {
        begins.entry(gap.begin).or_default().push(gap);
    }
    for index in trace.indices() {
        let thread = trace.event(index).thread.index();
        for gap in begins.get(&index).into_iter().flatten() {
            sweep.begin(gap);
        }
        let own = trace.access(index).map(|access| sweep.pieces.touched(&access));
        let handle = match trace.kind(index) {
            EventKind::Start | EventKind::End => sweep.pieces.handle(trace.event(index).thread),
            _ => None,
        };
        let own: Vec<usize> = own.into_iter().flatten().chain(handle).collect();
        sweep.wait(thread as u32, &own);
        sweep.tell(index, thread);
        for &piece in &own {
            sweep.pieces.of(piece, thread as u32).access = index.0 + 1;
        }
        sweep.latest[thread] = index.0 + 1;
        sweep.end(index, thread);
    }
    sweep.kept
}

struct Open {
    end: Option<EventIndex>,
    pieces: Vec<u32>,
}

struct Sweep {
    pieces: Pieces,
    /// Per thread, its calls that have not ended.
    open: Vec<Vec<Open>>,
    /// Per thread, 1 + its latest event.
    latest: Vec<u32>,
    /// Per thread, 1 + the latest event of each other one that it has waited for.
    waited: Vec<Vec<u32>>,
    /// The same of the present event.
    wanted: Vec<u32>,
    kept: Vec<(EventIndex, EventIndex)>,
}

impl Sweep {
    fn begin(&mut self, gap: &Gap) {
        let pieces = self.pieces.reached(gap);
        for &piece in &pieces {
            self.pieces.of(piece as usize, gap.thread.0).open += 1;
        }
        self.open[gap.thread.index()].push(Open { end: gap.end, pieces });
    }

    fn end(&mut self, index: EventIndex, thread: usize) {
        while let Some(place) = self.open[thread].iter().rposition(|open| open.end == Some(index)) {
            let open = self.open[thread].remove(place);
            for piece in open.pieces {
                let last = self.pieces.of(piece as usize, thread as u32);
                last.open -= 1;
                last.call = index.0 + 1;
            }
        }
    }

    /// What the present event of a thread comes behind: of the pieces that it accesses the calls, of those that its open calls
    /// reach the calls and the accesses.
    fn wait(&mut self, thread: u32, own: &[usize]) {
        let reached = self.open[thread as usize].iter().flat_map(|open| open.pieces.iter().map(|&piece| (piece as usize, true)));
        for (piece, is_call) in own.iter().map(|&piece| (piece, false)).chain(reached) {
            for &(other, last) in self.pieces.last[piece].iter().filter(|entry| entry.0 != thread) {
                let calls = if last.open > 0 { self.latest[other as usize] } else { last.call };
                let before = if is_call { calls.max(last.access) } else { calls };
                let wanted = &mut self.wanted[other as usize];
                *wanted = before.max(*wanted);
            }
        }
    }

    fn tell(&mut self, index: EventIndex, thread: usize) {
        for (other, wanted) in self.wanted.iter_mut().enumerate() {
            let wanted = std::mem::take(wanted);
            let waited = &mut self.waited[thread][other];
            if wanted > *waited {
                *waited = wanted;
                self.kept.push((EventIndex(wanted - 1), index));
            }
        }
    }
}
