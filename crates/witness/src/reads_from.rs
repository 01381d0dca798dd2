//! Reads-from, byte by byte: which event last wrote each byte that a read sees.
//!
//! Only pages that somebody writes and that more than one thread touches are looked at: what a read of another page sees depends
//! on program order alone, which the checker has seen to. A read may see another writer than it saw, if the trace says that both
//! wrote the same value, or that nothing which happens in the order depends on the read; what was computed from it is another
//! value then.

use crate::values::{self, Initial};
use rashomon_event::{Access, EventIndex, EventKind, EventSet, NumberedEvents, ReadUse, Stand, ThreadId, Trace};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

const PAGE: u64 = 256;
/// No event wrote this byte before.
const INITIAL: u32 = u32::MAX;
/// What an event reads has several writers, or lies in shared pages in part.
const PIECES: u32 = u32::MAX - 1;

/// The shared pages that an event touches.
enum Touched {
    None,
    /// It touches one page, which is shared and has this number.
    One(u32),
    /// It touches several pages, of which some are shared.
    Several,
}

/// By page.
type Pages<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;

/// Numbers of pages are looked up at each access: a multiplication is enough to spread them.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

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

/// What one event saw.
enum Runs<'a> {
    One([Run; 1]),
    Several(&'a [Run]),
}

impl<'a> Runs<'a> {
    fn as_slice(&self) -> &[Run] {
        match self {
            Self::One(run) => run,
            Self::Several(runs) => runs,
        }
    }

    fn into_iter(self) -> impl Iterator<Item = Run> + use<'a> {
        let (one, several) = match self {
            Self::One([run]) => (Some(run), &[][..]),
            Self::Several(runs) => (None, runs),
        };
        one.into_iter().chain(several.iter().copied())
    }
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
    pages: Pages<u32>,
    /// The events that touch a shared page.
    touching: EventSet,
    /// Those that read one.
    reading: NumberedEvents,
    /// By their numbers: who wrote all the bytes that the event reads, or [`PIECES`].
    writers: Vec<u32>,
    /// What the others saw of shared pages.
    pieces: HashMap<EventIndex, Vec<Run>>,
    /// What reads saw that nobody had written.
    initial: Initial,
}

impl ReadsFrom {
    pub fn new(trace: &Trace) -> Self {
        let (touching, reading) = (EventSet::with_room(trace.events.len()), NumberedEvents::default());
        let (writers, pieces) = (Vec::new(), HashMap::new());
        let pages = shared_pages(trace);
        let mut reads_from = Self { pages, touching, reading, writers, pieces, initial: Initial::new() };
        let mut reading = EventSet::with_room(trace.events.len());
        let mut memory = reads_from.initial();
        let mut initial = Initial::new();
        let mut runs = Vec::new();
        for index in trace.indices() {
            let Some(access) = trace.access(index) else { continue };
            let touched = reads_from.touched(&access);
            if matches!(touched, Touched::None) {
                continue;
            }
            reads_from.touching.insert(index);
            if trace.plain_value(index).is_some() {
                for address in unwritten(trace, index, &touched, &memory) {
                    initial.extend(values::seen(trace, index, address).map(|value| (address, value)));
                }
            }
            runs.clear();
            reads_from.step(index, &access, &touched, &mut memory, |run| runs.push(run));
            if access.class.reads() {
                reading.insert(index);
                reads_from.saw(index, &access, &runs);
            }
        }
        reads_from.reading = reading.into();
        for event in trace.indices().filter(|_| trace.has_values()) {
            for (address, _) in reads_from.bytes(trace, event).filter(|&(_, writer)| writer == INITIAL) {
                if let Some(value) = values::seen(trace, event, address) {
                    initial.entry(address).or_insert(value);
                }
            }
        }
        Self { initial, ..reads_from }
    }

    /// Notes what the next event saw that reads a shared page.
    fn saw(&mut self, event: EventIndex, access: &Access, runs: &[Run]) {
        match runs {
            [run] if run.bytes == access.size => self.writers.push(run.writer),
            runs => {
                self.writers.push(PIECES);
                self.pieces.insert(event, runs.to_vec());
            }
        }
    }

    fn touched(&self, access: &Access) -> Touched {
        let (mut count, mut shared) = (0, None);
        each_page(access, |page, _, _| {
            count += 1;
            shared = self.pages.get(&page).copied().or(shared);
        });
        match shared {
            None => Touched::None,
            Some(number) if count == 1 => Touched::One(number),
            Some(_) => Touched::Several,
        }
    }

    fn initial(&self) -> Vec<Page> {
        vec![Page::Whole(INITIAL); self.pages.len()]
    }

    /// Calls `see` with each maximal run of bytes with one writer that the event reads; then it writes.
    fn step(&self, index: EventIndex, access: &Access, touched: &Touched, memory: &mut [Page], see: impl FnMut(Run)) {
        let visit = |visit: &mut dyn FnMut(usize, usize, usize)| match touched {
            Touched::None => {}
            Touched::One(number) => each_page(access, |_, from, to| visit(*number as usize, from, to)),
            Touched::Several => each_page(access, |page, from, to| {
                if let Some(&number) = self.pages.get(&page) {
                    visit(number as usize, from, to);
                }
            }),
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

    /// What an event saw of shared pages.
    fn of(&self, trace: &Trace, event: EventIndex) -> Runs<'_> {
        let writer = self.reading.number(event).map(|number| self.writers[number]);
        match (writer, trace.access(event)) {
            (Some(PIECES), _) => Runs::Several(self.pieces.get(&event).map_or(&[], Vec::as_slice)),
            (Some(writer), Some(access)) => Runs::One([Run { writer, bytes: access.size }]),
            _ => Runs::Several(&[]),
        }
    }

    /// Of an event whose values may be known and that touches one page, each byte that it read, and who had written that.
    fn bytes<'a>(&'a self, trace: &Trace, event: EventIndex) -> Box<dyn Iterator<Item = (u64, u32)> + 'a> {
        let access = match trace.kind(event) {
            EventKind::Atomic { access, .. } => Some(access),
            EventKind::Access(access) => trace.plain_value(event).map(|_| access),
            _ => None,
        };
        let Some(access) = access.filter(|access| !matches!(self.touched(access), Touched::Several)) else {
            return Box::new(std::iter::empty());
        };
        let writers = self.of(trace, event).into_iter().flat_map(|run| std::iter::repeat_n(run.writer, run.bytes as usize));
        Box::new((access.address.0..).zip(writers))
    }

    /// Whether an event that sees other writers than in the trace sees the value that it saw. What an atomic read-modify-write
    /// saw is what its writer wrote.
    fn same_value(&self, trace: &Trace, event: EventIndex, seen: &[Run]) -> bool {
        let value = |writer: u32, address: u64| match writer {
            INITIAL => self.initial.get(&address).copied(),
            writer => values::written(trace, EventIndex(writer), address),
        };
        let is_atomic = matches!(trace.kind(event), EventKind::Atomic { .. });
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
        order.iter().filter(|index| self.touching.contains(**index)).all(|&index| {
            let Some(access) = trace.access(index) else { return true };
            let (runs, touched) = (self.of(trace, index), self.touched(&access));
            let expected = runs.as_slice();
            let (mut seen, mut same) = (0, true);
            others.clear();
            self.step(index, &access, &touched, &mut memory, |run| {
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
fn shared_pages(trace: &Trace) -> Pages<u32> {
    let mut uses: Pages<Use> = Pages::default();
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

/// Of a plain access that touches one page, the bytes that nobody has written before it.
fn unwritten(trace: &Trace, event: EventIndex, touched: &Touched, memory: &[Page]) -> Vec<u64> {
    let EventKind::Access(access) = trace.kind(event) else { return Vec::new() };
    let mut all = Vec::new();
    if let Touched::One(page) = touched {
        each_page(&access, |_, from, to| {
            let mut writers = Vec::new();
            let mut seen = Seen::new(|run: Run| writers.extend(std::iter::repeat_n(run.writer, run.bytes as usize)));
            memory[*page as usize].read(from, to, &mut seen);
            seen.end();
            let bytes = (access.address.0..).zip(writers);
            all.extend(bytes.filter(|&(_, writer)| writer == INITIAL).map(|(address, _)| address));
        });
    }
    all
}
