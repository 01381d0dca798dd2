//! Reads-from, byte by byte: which event last wrote each byte that a read sees.
//!
//! Only pages that somebody writes and that more than one thread touches are looked at: what a read of another page sees depends
//! on program order alone, which the checker has seen to. A read may see another writer than it saw, if the trace says that both
//! wrote the same value, or that nothing which happens in the order depends on the read; what was computed from it is another
//! value then.

use crate::values::{self, Initial};
use rashomon_event::{Access, EventIndex, EventKind, ReadUse, Stand, ThreadId, Trace};
use std::collections::{HashMap, HashSet};

const PAGE: u64 = 256;
/// No event wrote this byte before.
const INITIAL: u32 = u32::MAX;
/// Of an event: it touches no shared page, or more than one page.
const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Who touches a page.
struct Use {
    thread: ThreadId,
    several: bool,
    written: bool,
}

/// The last writers of one page.
#[derive(Clone)]
enum Page {
    /// One writer for all bytes, so that clearing a large block costs little.
    Whole(u32),
    Bytes(Box<[u32; PAGE as usize]>),
}

impl Page {
    fn write(&mut self, from: usize, to: usize, writer: u32) {
        if to - from == PAGE as usize {
            *self = Self::Whole(writer);
            return;
        }
        if let Self::Whole(old) = self {
            *self = Self::Bytes(Box::new([*old; PAGE as usize]));
        }
        if let Self::Bytes(bytes) = self {
            bytes[from..to].fill(writer);
        }
    }

    fn read(&self, from: usize, to: usize, seen: &mut Seen<impl FnMut(Run)>) {
        match self {
            Self::Whole(writer) => seen.add(Run { writer: *writer, bytes: (to - from) as u32 }),
            Self::Bytes(bytes) => bytes[from..to].iter().for_each(|&writer| seen.add(Run { writer, bytes: 1 })),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    writer: u32,
    bytes: u32,
}

/// Joins what comes in pieces: each maximal run of bytes with one writer.
struct Seen<F> {
    run: Run,
    told: F,
}

impl<F: FnMut(Run)> Seen<F> {
    fn new(told: F) -> Self {
        Self { run: Run { writer: INITIAL, bytes: 0 }, told }
    }

    fn add(&mut self, piece: Run) {
        if piece.writer == self.run.writer {
            self.run.bytes += piece.bytes;
        } else {
            self.end();
            self.run = piece;
        }
    }

    fn end(&mut self) {
        if self.run.bytes > 0 {
            (self.told)(self.run);
        }
    }
}

fn span(access: &Access) -> (u64, u64) {
    (access.address.0, access.address.0.saturating_add(u64::from(access.size)))
}

/// Calls `visit` with each page of an access, and which of its bytes.
fn each_page(access: &Access, mut visit: impl FnMut(u64, usize, usize)) {
    let (mut address, end) = span(access);
    while address < end {
        let from = address % PAGE;
        let to = (end - address).saturating_add(from).min(PAGE);
        visit(address / PAGE, from as usize, to as usize);
        address = address.saturating_add(to - from);
    }
}

/// What each read of the trace saw.
pub(crate) struct ReadsFrom {
    /// The shared pages, numbered.
    pages: HashMap<u64, u32>,
    /// Per event, the number of the only page that it touches, [`NONE`] or [`SEVERAL`].
    page_of: Vec<u32>,
    /// `runs[first[e]..first[e + 1]]` is what event `e` saw of shared pages.
    first: Vec<u32>,
    runs: Vec<Run>,
    /// What reads saw that nobody had written.
    initial: Initial,
}

impl ReadsFrom {
    pub fn new(trace: &Trace) -> Self {
        let pages = shared_pages(trace);
        let page_of = trace.events.iter().map(|event| event.access().map_or(NONE, |access| page_of(&pages, &access))).collect();
        let mut reads_from = Self { pages, page_of, first: Vec::new(), runs: Vec::new(), initial: Initial::new() };
        let mut memory = reads_from.initial();
        let mut initial = Initial::new();
        let (mut first, mut runs) = (Vec::with_capacity(trace.events.len() + 1), Vec::new());
        for index in trace.indices() {
            first.push(runs.len() as u32);
            if trace.plain_value(index).is_some() {
                for address in reads_from.unwritten(trace, index, &memory) {
                    initial.extend(values::seen(trace, index, address).map(|value| (address, value)));
                }
            }
            reads_from.step(trace, index, &mut memory, |run| runs.push(run));
        }
        first.push(runs.len() as u32);
        (reads_from.first, reads_from.runs) = (first, runs);
        for event in trace.indices().filter(|_| trace.has_values()) {
            for (address, _) in reads_from.bytes(trace, event).filter(|&(_, writer)| writer == INITIAL) {
                if let Some(value) = values::seen(trace, event, address) {
                    initial.entry(address).or_insert(value);
                }
            }
        }
        Self { initial, ..reads_from }
    }

    /// Of a plain access that touches one page, the bytes that nobody has written before it.
    fn unwritten(&self, trace: &Trace, event: EventIndex, memory: &[Page]) -> Vec<u64> {
        let page = self.page_of[event.index()];
        let EventKind::Access(access) = trace.event(event).kind else { return Vec::new() };
        let mut all = Vec::new();
        if page != NONE && page != SEVERAL {
            each_page(&access, |_, from, to| {
                let mut writers = Vec::new();
                let mut seen = Seen::new(|run: Run| writers.extend(std::iter::repeat_n(run.writer, run.bytes as usize)));
                memory[page as usize].read(from, to, &mut seen);
                seen.end();
                let bytes = (access.address.0..).zip(writers);
                all.extend(bytes.filter(|&(_, writer)| writer == INITIAL).map(|(address, _)| address));
            });
        }
        all
    }

    fn initial(&self) -> Vec<Page> {
        vec![Page::Whole(INITIAL); self.pages.len()]
    }

    /// Calls `see` with each maximal run of bytes with one writer that the event reads; then it writes.
    fn step(&self, trace: &Trace, index: EventIndex, memory: &mut [Page], see: impl FnMut(Run)) {
        let page = self.page_of[index.index()];
        let Some(access) = trace.event(index).access().filter(|_| page != NONE) else { return };
        let visit = |visit: &mut dyn FnMut(usize, usize, usize)| match page {
            SEVERAL => each_page(&access, |page, from, to| {
                if let Some(&number) = self.pages.get(&page) {
                    visit(number as usize, from, to);
                }
            }),
            number => each_page(&access, |_, from, to| visit(number as usize, from, to)),
        };
        if access.class.reads() {
            let mut seen = Seen::new(see);
            visit(&mut |number, from, to| memory[number].read(from, to, &mut seen));
            seen.end();
        }
        if access.class.writes() {
            visit(&mut |number, from, to| memory[number].write(from, to, index.0));
        }
    }

    fn of(&self, event: EventIndex) -> &[Run] {
        &self.runs[self.first[event.index()] as usize..self.first[event.index() + 1] as usize]
    }

    /// Of an event whose values may be known and that touches one page, each byte that it read, and who had written that.
    fn bytes<'a>(&'a self, trace: &Trace, event: EventIndex) -> Box<dyn Iterator<Item = (u64, u32)> + 'a> {
        let access = match trace.event(event).kind {
            EventKind::Atomic { access, .. } => Some(access),
            EventKind::Access(access) => trace.plain_value(event).map(|_| access),
            _ => None,
        };
        let Some(access) = access.filter(|_| self.page_of[event.index()] != SEVERAL) else {
            return Box::new(std::iter::empty());
        };
        let writers = self.of(event).iter().flat_map(|run| std::iter::repeat_n(run.writer, run.bytes as usize));
        Box::new((access.address.0..).zip(writers))
    }

    /// Whether an event that sees other writers than in the trace sees the value that it saw. What an atomic read-modify-write
    /// saw is what its writer wrote.
    fn same_value(&self, trace: &Trace, event: EventIndex, seen: &[Run]) -> bool {
        let value = |writer: u32, address: u64| match writer {
            INITIAL => self.initial.get(&address).copied(),
            writer => values::written(trace, EventIndex(writer), address),
        };
        let is_atomic = matches!(trace.event(event).kind, EventKind::Atomic { .. });
        let mut count = 0;
        let now = seen.iter().flat_map(|run| std::iter::repeat_n(run.writer, run.bytes as usize));
        let same = self.bytes(trace, event).zip(now).all(|((address, before), now)| {
            count += 1;
            let saw = values::seen(trace, event, address).or_else(|| value(before, address).filter(|_| is_atomic));
            before == now || saw.is_some() && saw == value(now, address)
        });
        same && count > 0
    }

    /// Whether every read in `order`, which respects program order, sees, byte by byte, the writer it saw in the trace, or, where
    /// that is known, the value; unless nothing that happens, or is next, depends on it. `stands`: what the threads do there may
    /// depend on all that they read.
    pub fn kept_by(&self, trace: &Trace, order: &[EventIndex], goals: &[EventIndex], stands: &[Stand]) -> bool {
        let (mut memory, has_values, has_uses) = (self.initial(), trace.has_values(), !trace.uses.is_empty());
        let mut ran = vec![false; if has_uses { trace.events.len() } else { 0 }];
        order.iter().filter(|_| has_uses).for_each(|index| ran[index.index()] = true);
        // Writes that need not write what they wrote.
        let mut others_values: HashSet<u32> = HashSet::new();
        let mut others = Vec::new();
        order.iter().filter(|index| self.page_of[index.index()] != NONE).all(|&index| {
            let expected = self.of(index);
            let (mut seen, mut same) = (0, true);
            others.clear();
            self.step(trace, index, &mut memory, |run| {
                same &= expected.get(seen) == Some(&run);
                seen += 1;
                if has_values || has_uses {
                    others.push(run);
                }
            });
            same &= seen == expected.len();
            let is_kept = !others.iter().any(|run| others_values.contains(&run.writer))
                && (same || has_values && self.same_value(trace, index, &others));
            let thread = trace.event(index).thread;
            let is_free = |one: &&ReadUse| {
                let is_late = |first: EventIndex| goals.iter().any(|&goal| trace.event(goal).thread == thread && goal >= first);
                let is_needed = stands.iter().any(|stand| stand.has_begun() && stand.thread == thread);
                !is_needed && !one.first.is_some_and(|first| ran.get(first.index()).is_some_and(|ran| *ran) || is_late(first))
            };
            let free = if is_kept { None } else { trace.use_of(index).filter(is_free) };
            others_values.extend(free.iter().flat_map(|one| one.written.iter().map(|write| write.0)));
            is_kept || free.is_some()
        })
    }
}

/// Numbers the pages that somebody writes and that more than one thread touches.
fn shared_pages(trace: &Trace) -> HashMap<u64, u32> {
    let mut uses: HashMap<u64, Use> = HashMap::new();
    for event in &trace.events {
        let Some(access) = event.access() else { continue };
        each_page(&access, |page, _, _| {
            let used = uses.entry(page).or_insert(Use { thread: event.thread, several: false, written: false });
            used.several |= used.thread != event.thread;
            used.written |= access.class.writes();
        });
    }
    let shared = uses.into_iter().filter(|(_, used)| used.several && used.written);
    shared.zip(0..).map(|((page, _), number)| (page, number)).collect()
}

fn page_of(pages: &HashMap<u64, u32>, access: &Access) -> u32 {
    let (mut count, mut shared) = (0, NONE);
    each_page(access, |page, _, _| {
        count += 1;
        shared = pages.get(&page).copied().unwrap_or(shared);
    });
    if shared == NONE || count == 1 { shared } else { SEVERAL }
}
