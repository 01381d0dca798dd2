//! For what each read matters: the first event of its thread that need not happen as it did if the read sees another value, and
//! the writes whose values are computed from it.
//!
//! Values are followed through registers, and through memory that their thread itself writes and reads. A read matters as soon
//! as a branch, an address, or an argument of code without tables depends on it; all that comes behind does then. What passes the
//! value on by a write to shared memory matters only to who reads that. Reads of which this is not known matter at once, and
//! have no entry: those of code without tables, copies, and atomic read-modify-writes.
//!
//! Where the walk does not fit, where a function is left by an exception, and where it is not known which function is called,
//! everything that the thread read before matters. Limits: arithmetic is taken not to trap; a value that is computed from more
//! than [`MOST`] reads makes them all matter.

use crate::feed::feed;
use crate::table::Tables;
use rashomon_event::{AtomicOp, Deadline, EventIndex, EventKind, ReadUse, Trace};
use rashomon_trace::LoadedTrace;
use rashomon_units::{Bytes, Register, Step, Thread};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::BTreeSet;

/// Reads that a value is computed from.
const MOST: usize = 64;
const WORD: u64 = 8;
/// Of an access whose words are looked at one by one.
const MOST_BYTES: u32 = 1 << 16;

/// Reads, by their places in [`Follow::reads`].
type Label = BTreeSet<u32>;

/// A read, and from which position among its thread's events on it matters.
struct Read {
    event: EventIndex,
    from: Option<usize>,
    written: Vec<EventIndex>,
}

#[derive(Default)]
struct Way {
    /// The thread's events.
    events: Vec<EventIndex>,
    /// Registers of its activations, innermost last; the first is what is below all of them.
    frames: Vec<FxHashMap<Register, Label>>,
    /// Reads that do not matter yet.
    open: Label,
}

struct Follow<'t> {
    trace: &'t Trace,
    /// Per word, the only thread that touches it; `None`: several do.
    owners: FxHashMap<u64, Option<Thread>>,
    ways: Vec<Way>,
    reads: Vec<Read>,
    /// Per word, who wrote it last, and what that was computed from.
    memory: FxHashMap<u64, (Thread, Label)>,
    /// The event at hand, whether its access was told, and whether that is one of code without tables.
    now: EventIndex,
    told: bool,
    outside: bool,
}

fn words(bytes: Bytes) -> impl Iterator<Item = u64> {
    bytes.start / WORD..=bytes.end().saturating_sub(1) / WORD
}

/// Of a recording that has ways of control; sorted by read. `None`: there was no time for all of it.
pub fn uses(loaded: &LoadedTrace, deadline: Deadline) -> Option<Vec<ReadUse>> {
    let trace = &loaded.trace;
    let mut ways: Vec<Way> = trace.threads.iter().map(|_| Way { frames: vec![FxHashMap::default()], ..Way::default() }).collect();
    let mut owners: FxHashMap<u64, Option<Thread>> = FxHashMap::default();
    for index in trace.indices() {
        let event = trace.event(index);
        ways.get_mut(event.thread.index())?.events.push(index);
        let of = Some(Thread(event.thread.0));
        let access = event.access().filter(|access| access.size <= MOST_BYTES);
        for word in access.into_iter().flat_map(|access| words(Bytes::new(access.address.0, access.size))) {
            let owner = owners.entry(word).or_insert(of);
            *owner = owner.filter(|_| *owner == of);
        }
    }
    let (reads, memory, now) = (Vec::new(), FxHashMap::default(), EventIndex(0));
    let mut follow = Follow { trace, owners, ways, reads, memory, now, told: false, outside: false };
    let at = Cell::new(EventIndex(0));
    feed(loaded, &mut Tables::default(), deadline, &at, &mut |thread, _, step| follow.step(at.get(), thread, step))?;
    Some(follow.finish())
}

impl Follow<'_> {
    fn finish(self) -> Vec<ReadUse> {
        let Self { trace, ways, reads, .. } = self;
        let uses = reads.into_iter().map(|read| {
            let events = &ways[trace.event(read.event).thread.index()].events;
            ReadUse { read: read.event, first: read.from.and_then(|from| events.get(from).copied()), written: read.written }
        });
        let mut uses: Vec<ReadUse> = uses.collect();
        uses.sort_unstable_by_key(|one| one.read);
        uses
    }

    /// What the thread does now comes right before its event of this position.
    fn position(&self, thread: Thread) -> usize {
        let way = &self.ways[thread.0 as usize];
        let done = way.events.partition_point(|&event| event < self.now);
        done + usize::from(self.told && way.events.get(done) == Some(&self.now))
    }

    /// What is computed from these reads decides what the thread does from now on.
    fn matter(&mut self, thread: Thread, label: &Label) {
        let at = self.position(thread);
        for &read in label {
            if self.ways[thread.0 as usize].open.remove(&read) {
                self.reads[read as usize].from = Some(at);
            }
        }
    }

    fn all_matter(&mut self, thread: Thread) {
        let all = std::mem::take(&mut self.ways[thread.0 as usize].open);
        let at = self.position(thread);
        all.into_iter().for_each(|read| self.reads[read as usize].from = Some(at));
    }

    /// What a value is computed from. A read that matters already need not be followed.
    fn of(&mut self, thread: Thread, registers: &[Register]) -> Label {
        let way = &self.ways[thread.0 as usize];
        let Some(frame) = way.frames.last() else { return Label::new() };
        let all: Label = registers.iter().filter_map(|register| frame.get(register)).flatten().copied().collect();
        let label: Label = all.intersection(&way.open).copied().collect();
        if label.len() <= MOST {
            return label;
        }
        self.matter(thread, &label);
        Label::new()
    }

    fn set(&mut self, thread: Thread, register: Register, label: Label) {
        if let Some(frame) = self.ways[thread.0 as usize].frames.last_mut() {
            frame.insert(register, label);
        }
    }

    /// What its own writes have left there.
    fn left(&self, thread: Thread, bytes: Bytes) -> Label {
        let own = |word| self.memory.get(&word).filter(|(writer, _)| *writer == thread).map(|(_, label)| label);
        words(bytes).filter_map(own).flatten().copied().collect()
    }

    fn is_shared(&self, bytes: Bytes) -> bool {
        words(bytes).any(|word| self.owners.get(&word).is_none_or(Option::is_none))
    }

    fn write(&mut self, thread: Thread, bytes: Bytes, label: &Label) {
        let is_whole = |word: u64| bytes.start <= word * WORD && bytes.end() >= (word + 1) * WORD;
        for word in words(bytes) {
            let left = self.memory.entry(word).or_insert_with(|| (thread, Label::new()));
            if left.0 != thread || is_whole(word) {
                *left = (thread, Label::new());
            }
            left.1.extend(label);
        }
        if self.is_shared(bytes) {
            label.iter().for_each(|&read| self.reads[read as usize].written.push(self.now));
        }
    }

    fn step(&mut self, at: EventIndex, thread: Thread, step: Step<'_>) {
        if at != self.now {
            (self.now, self.told, self.outside) = (at, false, false);
        }
        if thread.0 as usize >= self.ways.len() {
            return;
        }
        match step {
            Step::Enter { arguments } => {
                let labels: Vec<Label> = arguments.iter().map(|roots| self.of(thread, roots)).collect();
                let frame = (0..).map(Register).zip(labels).collect();
                self.ways[thread.0 as usize].frames.push(frame);
            }
            Step::Exit { result, into } => {
                let label = self.of(thread, result);
                let frames = &mut self.ways[thread.0 as usize].frames;
                if frames.len() > 1 {
                    frames.pop();
                }
                if frames.len() == 1 {
                    // Whoever called that has no table.
                    self.matter(thread, &label);
                }
                into.into_iter().for_each(|into| self.set(thread, into, label.clone()));
            }
            Step::Compute { into, from } => {
                let label = self.of(thread, from);
                self.set(thread, into, label);
            }
            Step::Branch { on: from, .. } | Step::Outside { from, .. } => {
                let label = self.of(thread, from);
                self.matter(thread, &label);
                self.outside = matches!(step, Step::Outside { accesses: true, .. });
            }
            Step::Lost => self.all_matter(thread),
            Step::Load { bytes, address, into } => self.load(thread, bytes, address, into),
            Step::Store { bytes, address, from } => {
                let address = self.of(thread, address);
                self.matter(thread, &address);
                let mut label = self.of(thread, from);
                if self.is_modified() {
                    self.matter(thread, &label);
                    label.clear();
                }
                self.write(thread, bytes, &label);
                self.told = true;
            }
            Step::Fill { bytes, from } => {
                let label = self.of(thread, from);
                if bytes.len > MOST_BYTES {
                    self.matter(thread, &label);
                } else {
                    self.write(thread, bytes, &label);
                }
                self.told = true;
            }
            Step::Copy { from, to, len } => {
                let label = if len > MOST_BYTES { Label::new() } else { self.left(thread, Bytes::new(from, len)) };
                let open = &self.ways[thread.0 as usize].open;
                let label: Label = label.intersection(open).copied().collect();
                if len > MOST_BYTES {
                    self.all_matter(thread);
                } else {
                    self.write(thread, Bytes::new(to, len), &label);
                }
                self.told = true;
            }
            _ => {}
        }
    }

    /// Whether the event at hand reads and writes in one.
    fn is_modified(&self) -> bool {
        let kind = self.trace.kind(self.now);
        matches!(kind, EventKind::Atomic { op: AtomicOp::Rmw | AtomicOp::CasFailed, .. })
    }

    fn load(&mut self, thread: Thread, bytes: Bytes, address: &[Register], into: Register) {
        let address = self.of(thread, address);
        self.matter(thread, &address);
        let mut label = self.left(thread, bytes);
        if std::mem::take(&mut self.outside) {
            self.matter(thread, &label);
            self.told = true;
            return;
        }
        let open = &self.ways[thread.0 as usize].open;
        label = label.intersection(open).copied().collect();
        if self.is_modified() {
            self.matter(thread, &label);
            label.clear();
        } else if self.is_shared(bytes) {
            let read = self.reads.len() as u32;
            self.reads.push(Read { event: self.now, from: None, written: Vec::new() });
            self.ways[thread.0 as usize].open.insert(read);
            label.insert(read);
        }
        self.set(thread, into, label);
        self.told = !self.is_modified();
    }
}
