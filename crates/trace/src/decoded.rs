//! The records of a stream in blocks, decoded by other threads ahead of the one that merges streams.
//!
//! Most records are accesses. Of one a block keeps eight bytes, its address and the number of its *form*: class, size and site,
//! which few instructions share among many accesses. What belongs to a form is looked up once for a block. All other records are
//! kept as they are.
//!
//! Memory: of each stream the block that is merged and the next one, at most [`BLOCKS_BYTES`] in all blocks of accesses.

use crate::chunks::Fault;
use crate::recording::Stream;
use crate::stream::{Reader, Record};
use rashomon_abi::record::{AccessClass, LOW_BITS, LOW_MASK};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

/// Bytes of steps.
const BLOCKS_BYTES: usize = 1 << 27;
/// Steps of a block.
const MOST_STEPS: usize = 1 << 14;
const LEAST_STEPS: usize = 1 << 7;
/// In the place of a form: the step is another record.
const OTHER: u16 = u16::MAX;
/// The same: it is a [`Record::Context`].
const CONTEXT: u16 = OTHER - 1;
/// Slots of a block's forms that came last.
const RECENT: usize = 256;
/// Decoding an access takes about as long as placing it: more threads would wait for the one that places.
const MOST_DECODERS: usize = 4;
/// Bytes of records of a recording that is decoded where it is merged, as starting threads would take longer.
const SMALL: u64 = 1 << 20;

/// What accesses have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub class: AccessClass,
    /// Bytes.
    pub size: u32,
    pub site: u64,
}

/// Consecutive records of a stream.
#[derive(Debug, Default)]
struct Block {
    /// Below, an address or a number of `others` or `contexts`; above, a number of `forms`, [`OTHER`] or [`CONTEXT`].
    steps: Vec<u64>,
    forms: Vec<Form>,
    /// With the byte of the file where each begins.
    others: Vec<(Record, u64)>,
    /// The same of contexts that are gone on in, of which there are many.
    contexts: Vec<(u32, u64)>,
    /// The stream ends behind it.
    is_last: bool,
    fault: Option<Fault>,
}

impl Block {
    fn clear(&mut self) {
        self.steps.clear();
        self.forms.clear();
        self.others.clear();
        self.contexts.clear();
    }

    fn other(&mut self, record: Record, offset: u64) {
        self.steps.push(u64::from(OTHER) << LOW_BITS | self.others.len() as u64);
        self.others.push((record, offset));
    }
}

#[derive(Debug)]
struct Decoder<'a> {
    reader: Reader<'a>,
    /// Steps of a block.
    steps: usize,
}

impl Decoder<'_> {
    fn fill(&mut self, block: &mut Block) {
        block.clear();
        let mut recent = [None; RECENT];
        // A record that is no access takes some fifteen times the room of a step.
        let others = (self.steps / 8).max(1);
        while block.steps.len() < self.steps && block.forms.len() < usize::from(CONTEXT) && block.others.len() < others {
            match self.reader.next_record() {
                Ok(Some(Record::Access { class, size, address, site })) if address <= LOW_MASK => {
                    let form = number(Form { class, size, site }, &mut block.forms, &mut recent);
                    block.steps.push(u64::from(form) << LOW_BITS | address);
                }
                Ok(Some(Record::Context { number })) => {
                    block.steps.push(u64::from(CONTEXT) << LOW_BITS | block.contexts.len() as u64);
                    block.contexts.push((number, self.reader.record_offset()));
                }
                Ok(Some(record)) => block.other(record, self.reader.record_offset()),
                Ok(None) => {
                    block.is_last = true;
                    return;
                }
                Err(fault) => {
                    (block.is_last, block.fault) = (true, Some(fault));
                    return;
                }
            }
        }
    }
}

/// The number of a form: two of them, maybe, if another form took its slot in between.
#[inline]
fn number(form: Form, forms: &mut Vec<Form>, recent: &mut [Option<(Form, u16)>; RECENT]) -> u16 {
    let slot = &mut recent[(form.site ^ u64::from(form.size) << 3 ^ (form.class as u64) << 6) as usize % RECENT];
    if let Some((known, number)) = *slot
        && known == form
    {
        return number;
    }
    let number = forms.len() as u16;
    forms.push(form);
    *slot = Some((form, number));
    number
}

/// A block to be filled, or filled, and where it is waited for.
struct Job<'a> {
    decoder: Decoder<'a>,
    block: Block,
    done: Sender<Job<'a>>,
}

/// Where a stream's next block comes from.
enum Blocks<'a> {
    /// It is decoded when it is asked for.
    Here(Decoder<'a>),
    /// It was asked for when this one was taken.
    Ahead { jobs: Sender<Job<'a>>, done: Receiver<Job<'a>> },
}

/// What a stream tells next.
pub(crate) enum Step {
    /// The number of its form, and its address.
    Access(usize, u64),
    Context(u32),
    Other(Record),
    End,
    Fault(Fault),
}

/// A stream as who merges it sees it, with something of the merger's for each form of the block.
pub(crate) struct Source<'a, T> {
    block: Block,
    next: usize,
    known: Vec<T>,
    blocks: Blocks<'a>,
}

impl<T: Clone + Default> Source<'_, T> {
    #[inline]
    pub fn step(&mut self) -> Step {
        loop {
            if let Some(&step) = self.block.steps.get(self.next) {
                self.next += 1;
                let (form, low) = ((step >> LOW_BITS) as u16, step & LOW_MASK);
                return match form {
                    OTHER => Step::Other(self.block.others[low as usize].0),
                    CONTEXT => Step::Context(self.block.contexts[low as usize].0),
                    form => Step::Access(form.into(), low),
                };
            }
            if self.block.is_last {
                return self.block.fault.take().map_or(Step::End, Step::Fault);
            }
            self.enter_next_block();
        }
    }

    /// A form of the block, and what is known of it.
    #[inline]
    pub fn form(&mut self, number: usize) -> (Form, &mut T) {
        (self.block.forms[number], &mut self.known[number])
    }

    /// Byte of the file where the record begins that was told last, which is no access; in a compressed chunk, the chunk.
    pub fn offset_of_other(&self) -> u64 {
        let told = self.next.checked_sub(1).and_then(|last| self.block.steps.get(last));
        let offset = told.and_then(|step| {
            let number = (step & LOW_MASK) as usize;
            match (step >> LOW_BITS) as u16 {
                CONTEXT => self.block.contexts.get(number).map(|context| context.1),
                _ => self.block.others.get(number).map(|other| other.1),
            }
        });
        offset.unwrap_or(0)
    }

    #[cold]
    fn enter_next_block(&mut self) {
        match &mut self.blocks {
            Blocks::Here(decoder) => decoder.fill(&mut self.block),
            Blocks::Ahead { jobs, done } => match done.recv() {
                Ok(mut job) => {
                    std::mem::swap(&mut self.block, &mut job.block);
                    if !self.block.is_last {
                        // Where nobody takes jobs any more, nothing will come, and the stream ends there.
                        let _ = jobs.send(job);
                    }
                }
                // Who decoded it has panicked, which the scope of its thread tells.
                Err(_) => self.block.is_last = true,
            },
        }
        self.next = 0;
        self.known.clear();
        self.known.resize(self.block.forms.len(), T::default());
    }
}

/// The sources of streams, which threads of the scope decode as long as there are sources.
pub(crate) fn sources<'scope, 'a: 'scope, T>(scope: &'scope Scope<'scope, '_>, streams: &'a [Stream]) -> Vec<Source<'a, T>> {
    let steps = (BLOCKS_BYTES / 16 / streams.len().max(1)).clamp(LEAST_STEPS, MOST_STEPS);
    let decoders = streams.iter().map(|stream| Decoder { reader: stream.reader(), steps });
    let of = |blocks| Source { block: Block::default(), next: 0, known: Vec::new(), blocks };
    let Some(jobs) = start(scope, streams) else { return decoders.map(Blocks::Here).map(of).collect() };
    let ahead = decoders.map(|decoder| {
        let (sender, done) = channel();
        let jobs = jobs.clone();
        let _ = jobs.send(Job { decoder, block: Block::default(), done: sender });
        Blocks::Ahead { jobs, done }
    });
    ahead.map(of).collect()
}

/// Threads that do what is sent, if there are processors for them and they are worth it.
fn start<'scope, 'a: 'scope>(scope: &'scope Scope<'scope, '_>, streams: &[Stream]) -> Option<Sender<Job<'a>>> {
    let others = thread::available_parallelism().map_or(1, NonZeroUsize::get) - 1;
    if streams.iter().map(Stream::record_bytes).sum::<u64>() < SMALL {
        return None;
    }
    let (jobs, queue) = channel::<Job<'a>>();
    let queue = Arc::new(Mutex::new(queue));
    let started = (0..others.min(streams.len()).min(MOST_DECODERS)).filter(|_| {
        let queue = Arc::clone(&queue);
        let decode = move || {
            while let Some(mut job) = next_job(&queue) {
                job.decoder.fill(&mut job.block);
                let done = job.done.clone();
                // The merge may have ended before this.
                let _ = done.send(job);
            }
        };
        thread::Builder::new().name("decode".into()).spawn_scoped(scope, decode).is_ok()
    });
    (started.count() > 0).then_some(jobs)
}

/// `None`: there will be no more.
fn next_job<'a>(queue: &Mutex<Receiver<Job<'a>>>) -> Option<Job<'a>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recording, RunHeader, SessionWriter};
    use rashomon_abi::record::Op;

    /// Accesses of more forms than are kept in mind, among records of other kinds.
    fn write(session: &mut SessionWriter, thread: u32, accesses: u64) {
        session.sync(thread, Op::ThreadStart, 0, 0, 1, &[]);
        session.stream(thread).define_context(1, 0, 0x5000);
        for number in 0..accesses {
            let stream = session.stream(thread);
            let class = [AccessClass::Read, AccessClass::Write, AccessClass::ReadWrite][(number / 7 % 3) as usize];
            let site = 0x1000 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 600 * u64::from(thread + 1);
            stream.access(class, (number * 24) & LOW_MASK, 1 << (number % 5), site);
            match number % 97 {
                0 => stream.value(false, number),
                1 => stream.set_context((number / 97 % 2) as u32),
                2 => stream.access(AccessClass::End, number, 100, 0x77),
                3 => stream.segment(number),
                _ => {}
            }
        }
        session.sync(thread, Op::ThreadEnd, 0, 0, 2, &[]);
    }

    /// What the source tells, and the offsets of what is no access.
    fn told(mut source: Source<'_, Option<Form>>) -> Vec<(Record, Option<u64>)> {
        let mut told = Vec::new();
        loop {
            match source.step() {
                Step::Access(number, address) => {
                    let (form, known) = source.form(number);
                    assert_eq!(*known.get_or_insert(form), form, "what is known of a form is of that form");
                    told.push((Record::Access { class: form.class, size: form.size, address, site: form.site }, None));
                }
                Step::Context(number) => told.push((Record::Context { number }, Some(source.offset_of_other()))),
                Step::Other(record) => told.push((record, Some(source.offset_of_other()))),
                Step::End => break,
                Step::Fault(fault) => panic!("{fault:?}"),
            }
        }
        assert!(matches!(source.step(), Step::End), "behind its end a stream stays there");
        told
    }

    /// The same of a reader, which nothing runs ahead of.
    fn read(stream: &Stream) -> Vec<(Record, Option<u64>)> {
        let mut reader = stream.reader();
        let mut read = Vec::new();
        while let Some(record) = reader.next_record().expect("no fault") {
            let offset = (!matches!(record, Record::Access { .. })).then(|| reader.record_offset());
            read.push((record, offset));
        }
        read
    }

    fn tells_what_is_read(lengths: &[u64]) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = SessionWriter::new(RunHeader::default());
        for (thread, &accesses) in (0..).zip(lengths) {
            write(&mut session, thread, accesses);
        }
        session.write(folder.path()).expect("a session is written");
        let recording = Recording::open(folder.path()).expect("a session opens");
        let expected: Vec<_> = recording.streams.iter().map(read).collect();
        thread::scope(|scope| {
            let sources = sources(scope, &recording.streams);
            let all: Vec<_> = sources.into_iter().map(told).collect();
            assert!(all == expected, "a block lacks something, or has it at another place");
        });
    }

    #[test]
    fn blocks_hold_what_a_small_recording_does() {
        tells_what_is_read(&[100, 0, 3]);
    }

    #[test]
    fn blocks_that_others_decode_hold_what_a_recording_does() {
        tells_what_is_read(&[150_000, 20_000, 0, 16_384]);
    }

    #[test]
    fn a_merge_may_end_before_all_is_decoded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut session = SessionWriter::new(RunHeader::default());
        write(&mut session, 0, 150_000);
        session.write(folder.path()).expect("a session is written");
        let recording = Recording::open(folder.path()).expect("a session opens");
        let first = thread::scope(|scope| {
            let mut sources: Vec<Source<'_, Option<Form>>> = sources(scope, &recording.streams);
            matches!(sources[0].step(), Step::Context(0))
        });
        assert!(first);
    }
}
