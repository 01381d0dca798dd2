//! Every check that a recording allows, without mercy: the first violation is an error with file and offset.
//!
//! Checked: chunks (see [`crate::stream`]), that every record decodes, that sequence numbers rise within a stream and occur once
//! over all, that call contexts are defined before they are used and once, that a stream begins with `ThreadStart` and has
//! nothing but bookkeeping behind `ThreadEnd`, and that the header's counts agree. A recording whose program was killed is not in
//! error; what it lacks is listed.

use crate::chunks::Fault;
use crate::error::TraceError;
use crate::header::RunState;
use crate::loaded::Shortcoming;
use crate::recording::{Recording, Stream};
use crate::stream::{Reader, Record};
use rashomon_abi::HEADER_FILE;
use rashomon_abi::header::field;
use rashomon_abi::record::Op;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;

/// What a verified recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    pub threads: u64,
    pub records: u64,
    pub sequenced: u64,
    pub shortcomings: Vec<Shortcoming>,
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} streams, {} records, {} of them in the global order: valid", self.threads, self.records, self.sequenced)?;
        self.shortcomings.iter().try_for_each(|shortcoming| writeln!(f, "incomplete: {shortcoming}"))
    }
}

/// Sequence numbers that no stream holds.
#[derive(Default)]
struct Missing {
    first: Option<u64>,
    count: u64,
}

impl Missing {
    fn between(&mut self, from: u64, to: u64) {
        if from < to {
            self.first.get_or_insert(from);
            self.count += to - from;
        }
    }
}

struct Checked<'a> {
    stream: &'a Stream,
    reader: Reader<'a>,
    contexts: BTreeSet<u32>,
    last_sequence: Option<u64>,
    started: bool,
    ended: bool,
    records: u64,
}

impl Recording {
    pub fn verify(&self) -> Result<Verification, TraceError> {
        let mut streams: Vec<Checked<'_>> = self.streams.iter().map(Checked::new).collect();
        let mut verification = Verification { threads: streams.len() as u64, ..Verification::default() };
        let mut heads = BinaryHeap::new();
        for (at, stream) in streams.iter_mut().enumerate() {
            heads.extend(stream.next_sequence()?.map(|(sequence, offset)| Reverse((sequence, at, offset))));
        }
        let mut last = None;
        let mut missing = Missing::default();
        while let Some(Reverse((sequence, at, offset))) = heads.pop() {
            verification.sequenced += 1;
            if last == Some(sequence) {
                return Err(streams[at].corrupt(offset, format!("sequence number {sequence} occurs twice")));
            }
            if self.header_is_final() && sequence >= self.header.sequence {
                let what =
                    format!("sequence number {sequence} was not given yet: the header says {} comes next", self.header.sequence);
                return Err(streams[at].corrupt(offset, what));
            }
            let expected = last.map_or(1, |last: u64| last.saturating_add(1));
            missing.between(expected, sequence);
            last = Some(sequence);
            heads.extend(streams[at].next_sequence()?.map(|(next, offset)| Reverse((next, at, offset))));
        }
        let end = last.map_or(1, |last| last.saturating_add(1));
        missing.between(end, self.header.sequence);
        // A thread whose process ends takes a number, and may not come to write what has it.
        let under_way = streams.iter().filter(|stream| !stream.ended).count() as u64;
        self.verify_threads(missing.first.filter(|_| missing.count > under_way))?;
        verification.records = streams.iter().map(|stream| stream.records).sum();
        verification.shortcomings = self.shortcomings_of_files();
        Ok(verification)
    }

    /// Counts in the header may lag behind while the program runs.
    fn header_is_final(&self) -> bool {
        self.header.state != RunState::Running
    }

    /// `lost`: the first sequence number that no stream holds, if they are more than threads may have left behind.
    fn verify_threads(&self, lost: Option<u64>) -> Result<(), TraceError> {
        if !self.header_is_final() {
            return Ok(());
        }
        let counted = self.header.threads;
        let what = match (self.thread_without_stream(), lost, self.streams.last()) {
            (_, _, Some(stream)) if u64::from(stream.thread) >= counted => {
                format!("the header counts {counted} threads, but there is {}", stream.path.display())
            }
            (Some(thread), Some(number), _) => {
                format!(
                    "the header counts {counted} threads, but thread {thread} has no stream, and event number {number} is missing"
                )
            }
            _ => return Ok(()),
        };
        Err(TraceError::Corrupt { path: self.directory.join(HEADER_FILE), offset: field::THREADS as u64 * 8, what })
    }
}

impl<'a> Checked<'a> {
    fn new(stream: &'a Stream) -> Self {
        Self {
            stream,
            reader: stream.reader(),
            contexts: BTreeSet::from([0]),
            last_sequence: None,
            started: false,
            ended: false,
            records: 0,
        }
    }

    fn corrupt(&self, offset: u64, what: String) -> TraceError {
        TraceError::Corrupt { path: self.stream.path.clone(), offset, what }
    }

    /// The next record with a sequence number: it and its offset. Everything up to it is checked.
    fn next_sequence(&mut self) -> Result<Option<(u64, u64)>, TraceError> {
        loop {
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(Fault { offset, what }) => return Err(self.corrupt(offset, what.to_string())),
            };
            let offset = self.reader.record_offset();
            self.records += u64::from(record != Record::Context { number: 0 });
            if let Some(what) = self.complaint(&record) {
                return Err(self.corrupt(offset, what));
            }
            let sequence = match record {
                Record::Sync(sync) => sync.sequence,
                Record::Turn { sequence, .. } => sequence,
                _ => continue,
            };
            if self.last_sequence.is_some_and(|last| sequence <= last) {
                return Err(self.corrupt(offset, format!("sequence number {sequence} does not rise")));
            }
            self.last_sequence = Some(sequence);
            return Ok(Some((sequence, offset)));
        }
    }

    fn complaint(&mut self, record: &Record) -> Option<String> {
        let is_event = matches!(record, Record::Access { .. } | Record::Range { .. } | Record::Turn { .. } | Record::Sync(_));
        let starts = matches!(record, Record::Sync(sync) if sync.op == Op::ThreadStart);
        if is_event && starts == self.started {
            return Some(
                if starts { "the thread starts twice" } else { "the thread has events before its ThreadStart" }.to_owned(),
            );
        }
        self.started |= starts;
        if is_event && self.ended {
            return Some("the thread has events behind its ThreadEnd".to_owned());
        }
        match record {
            Record::Sync(sync) => self.ended |= sync.op == Op::ThreadEnd,
            Record::Context { number } if !self.contexts.contains(number) => {
                return Some(format!("call context {number} is not defined"));
            }
            Record::ContextDefinition { parent, .. } if !self.contexts.contains(parent) => {
                return Some(format!("call context {parent} is a parent before it is defined"));
            }
            Record::ContextDefinition { number, .. } if !self.contexts.insert(*number) => {
                return Some(format!("call context {number} is defined twice"));
            }
            Record::Range { length: 0, .. } => return Some("a range of no bytes".to_owned()),
            _ => {}
        }
        None
    }
}
