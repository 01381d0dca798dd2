//! From thread streams to one totally ordered trace.
//!
//! Streams are merged by sequence number: a record with one is followed by the accesses behind it in its own stream. In serial
//! mode that is the order in which everything happened; in free mode it agrees with synchronisation.
//!
//! A fault in any stream ends the merge: what other threads did later may depend on what is lost. The events up to there are a
//! prefix of the execution, and the trace is marked incomplete.
//!
//! Operations without a synchronisation ordinal make events only where analyses need them: requests, blocked threads, and
//! allocations (as [`EventKind::Other`], so that a block's call context is kept).

use crate::chunks::{Fault, FaultKind};
use crate::convert::class_of;
use crate::error::TraceError;
use crate::freed;
use crate::gaps::Gaps;
use crate::header::{RunMode, RunState};
use crate::identity::Identities;
use crate::intern::{Contexts, Sites};
use crate::loaded::{
    BlockedRecord, Flow, FlowRecord, FrameRecord, GoalRecord, InputFile, InputRecord, LifeRecord, LoadedTrace, Shortcoming,
};
use crate::misuse::{Misuses, Moment};
use crate::recording::Recording;
use crate::space::{LastHits, Space};
use crate::stream::{Reader, Record, SyncRecord, TurnKind};
use crate::threads::ThreadTable;
use crate::turns::HandoverLog;
use crate::values::{Values, drop_contradicted};
use rashomon_abi::record::{self, input};
use rashomon_event::{
    Access, Address, ContextId, Deadline, Event, EventIndex, EventKind, Events, LoopMark, Mode, ModuleInfo, ThreadId, Trace,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;

/// Events are numbered with 32 bits.
const MAX_EVENTS: u64 = u32::MAX as u64 - 1;
/// Events loaded between two looks at the clock.
const LOOK_EVERY: u64 = 1 << 16;
/// Bytes of one range access; what is said to lie behind them is left out.
const LONGEST_RANGE: u64 = 1 << 36;

impl Recording {
    /// Merges the streams into one trace.
    pub fn load(&self) -> Result<LoadedTrace, TraceError> {
        self.load_until(Deadline::NEVER)
    }

    /// As [`Recording::load`], but [`TraceError::OutOfTime`] if it takes too long.
    pub fn load_until(&self, deadline: Deadline) -> Result<LoadedTrace, TraceError> {
        let mut loader = Loader::new(self);
        loader.deadline = deadline;
        loader.merge()?;
        Ok(loader.finish())
    }
}

/// A record with a sequence number, read but not yet placed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sequenced {
    Sync(SyncRecord),
    Turn { accesses: u64, what: TurnKind },
}

/// What came after a thread's accesses.
enum Advance {
    /// A record with this sequence number.
    Next(u64),
    End,
    /// Noted; nothing behind it can be placed.
    Fault,
}

pub(crate) struct ThreadCursor<'a> {
    reader: Reader<'a>,
    pub(crate) thread: ThreadId,
    path: &'a PathBuf,
    /// Context numbers of this stream → contexts of the trace.
    contexts: Vec<Option<ContextId>>,
    max_contexts: usize,
    /// Defined by the record before.
    defined: Option<ContextId>,
    pub(crate) context: ContextId,
    pub(crate) ordinal: u32,
    pub(crate) hits: LastHits,
    /// Recorded accesses since the last operation with an ordinal.
    accesses: u64,
    executed: u64,
    next: Option<Sequenced>,
    /// Event of the last access, if values belong to it.
    last_access: Option<EventIndex>,
    /// Event of the last `CondWaitBegin`.
    pub(crate) wait_begin: Option<EventIndex>,
    pub(crate) ended: bool,
}

pub(crate) struct Loader<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) cursors: Vec<ThreadCursor<'a>>,
    pub(crate) events: Events,
    pub(crate) space: Space,
    pub(crate) sites: Sites,
    pub(crate) gaps: Gaps,
    contexts: Contexts,
    pub(crate) identities: Identities,
    /// Counts that semaphores were given.
    pub(crate) semaphores: BTreeMap<Address, u64>,
    /// Named semaphores, by machine address: how often each is open.
    pub(crate) named: FxHashMap<u64, u32>,
    pub(crate) threads: ThreadTable,
    handovers: HandoverLog,
    serial: bool,
    /// Serial: the cursor whose thread runs.
    running: Option<usize>,
    pub(crate) modules: Vec<ModuleInfo>,
    /// Handle of each module's data in `space`.
    pub(crate) module_objects: Vec<Option<u32>>,
    pub(crate) next_module_line: usize,
    pub(crate) next_module: u32,
    pub(crate) goals: Vec<GoalRecord>,
    pub(crate) blocked: Vec<BlockedRecord>,
    /// Sequence number of a signal → its event.
    pub(crate) signals: FxHashMap<u64, EventIndex>,
    /// Condition → the last signal on it, for free mode.
    pub(crate) last_signal: FxHashMap<u64, EventIndex>,
    pub(crate) shortcomings: Vec<Shortcoming>,
    misuses: Misuses,
    pub(crate) lives: Vec<LifeRecord>,
    not_reexecutable_from: Option<EventIndex>,
    input: Option<InputRecord>,
    frames: Vec<FrameRecord>,
    pub(crate) loops: Vec<LoopMark>,
    flow: Vec<FlowRecord>,
    values: Values,
    deadline: Deadline,
}

impl<'a> Loader<'a> {
    fn new(recording: &'a Recording) -> Self {
        let cursors = recording.streams.iter().map(|stream| ThreadCursor {
            reader: stream.reader(),
            thread: ThreadId(stream.thread),
            path: &stream.path,
            contexts: vec![Some(ContextId::ROOT)],
            max_contexts: (stream.record_bytes() / 16) as usize + 2,
            defined: None,
            context: ContextId::ROOT,
            ordinal: 0,
            hits: LastHits::default(),
            accesses: 0,
            executed: 0,
            next: None,
            last_access: None,
            wait_begin: None,
            ended: false,
        });
        let mut loader = Self {
            recording,
            cursors: cursors.collect(),
            events: Events::new(),
            space: Space::default(),
            sites: Sites::default(),
            gaps: Gaps::default(),
            contexts: Contexts::default(),
            identities: Identities::default(),
            semaphores: BTreeMap::new(),
            named: FxHashMap::default(),
            threads: ThreadTable::default(),
            handovers: HandoverLog::default(),
            serial: recording.header.mode == RunMode::Serial,
            running: None,
            modules: Vec::new(),
            module_objects: Vec::new(),
            next_module_line: 0,
            next_module: 0,
            goals: Vec::new(),
            blocked: Vec::new(),
            signals: FxHashMap::default(),
            last_signal: FxHashMap::default(),
            shortcomings: Vec::new(),
            misuses: Misuses::new(recording.header.mode == RunMode::Serial),
            lives: Vec::new(),
            not_reexecutable_from: None,
            input: None,
            frames: Vec::new(),
            loops: Vec::new(),
            flow: Vec::new(),
            values: Values::default(),
            deadline: Deadline::NEVER,
        };
        loader.place_modules();
        loader
    }

    fn merge(&mut self) -> Result<(), TraceError> {
        let mut heads = BinaryHeap::new();
        for at in 0..self.cursors.len() {
            match self.advance(at)? {
                Advance::Next(sequence) => heads.push(Reverse((sequence, at))),
                Advance::End => {}
                Advance::Fault => return Ok(()),
            }
        }
        let reexecutable_until = self.recording.header.not_reexecutable_from.unwrap_or(u64::MAX);
        let without_stream = self.recording.thread_without_stream();
        let is_unwritten = self.recording.header.notes.truncated() && self.recording.header.unwritten != 0;
        let mut expected = 1;
        while let Some(Reverse((mut sequence, at))) = heads.pop() {
            loop {
                if sequence != expected && (is_unwritten || without_stream.is_some()) {
                    self.shortcomings.push(match without_stream {
                        Some(thread) if !is_unwritten => Shortcoming::Lost { thread, sequence: expected },
                        _ => Shortcoming::Unwritten,
                    });
                    return Ok(());
                }
                expected = sequence.saturating_add(1);
                if sequence >= reexecutable_until {
                    self.note_external_input();
                }
                self.load_modules(sequence);
                self.apply(at)?;
                match self.advance(at)? {
                    Advance::Next(next) => sequence = next,
                    Advance::End => break,
                    Advance::Fault => return Ok(()),
                }
                if heads.peek().is_some_and(|&Reverse((other, _))| other < sequence) {
                    heads.push(Reverse((sequence, at)));
                    break;
                }
            }
        }
        self.shortcomings.extend(is_unwritten.then_some(Shortcoming::Unwritten));
        Ok(())
    }

    pub(crate) fn note_external_input(&mut self) {
        self.not_reexecutable_from.get_or_insert(EventIndex(self.events.len() as u32));
    }

    /// Places accesses up to the stream's next record with a sequence number, which is kept.
    fn advance(&mut self, at: usize) -> Result<Advance, TraceError> {
        loop {
            let cursor = &mut self.cursors[at];
            let record = match cursor.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(Advance::End),
                Err(fault) => return Ok(self.note_fault(at, fault)),
            };
            match record {
                Record::Access { class, size, address, site } => self.access(at, class, address, size, site)?,
                Record::Range { class, address, length, site } => {
                    // A larger number is damage that the checksum cannot see; it must not become millions of events.
                    let mut left = length.min(LONGEST_RANGE).min(record::LOW_MASK + 1 - address);
                    let mut from = address;
                    while left > 0 {
                        let size = left.min(u64::from(u32::MAX)) as u32;
                        self.access(at, class, from, size, site)?;
                        from += u64::from(size);
                        left -= u64::from(size);
                    }
                }
                Record::Sync(sync) => {
                    cursor.next = Some(Sequenced::Sync(sync));
                    return Ok(Advance::Next(sync.sequence));
                }
                Record::Turn { sequence, accesses, what } => {
                    cursor.next = Some(Sequenced::Turn { accesses, what });
                    return Ok(Advance::Next(sequence));
                }
                Record::Executed { count } => cursor.executed = cursor.executed.max(count),
                Record::Context { number } => match cursor.contexts.get(number as usize).copied().flatten() {
                    Some(context) => cursor.context = context,
                    None => return Ok(self.note_undefined(at, number)),
                },
                Record::ContextDefinition { number, parent, call } => {
                    let known = cursor.contexts.get(parent as usize).copied().flatten();
                    let (Some(parent), true) = (known, (number as usize) < cursor.max_contexts) else {
                        return Ok(self.note_undefined(at, if known.is_some() { number } else { parent }));
                    };
                    let call = self.sites.intern(call);
                    let context = self.contexts.intern(parent, call);
                    let table = &mut cursor.contexts;
                    if table.len() <= number as usize {
                        table.resize(number as usize + 1, None);
                    }
                    table[number as usize] = Some(context);
                    cursor.defined = Some(context);
                }
                Record::Frame { address, stack_pointer } => {
                    let (thread, defined) = (cursor.thread, cursor.defined.take());
                    self.frames.extend(defined.map(|context| FrameRecord { thread, context, address, stack_pointer }));
                }
                Record::Value { written, value } => {
                    let Some(event) = cursor.last_access else {
                        let offset = cursor.reader.record_offset();
                        return Ok(self.note_fault(at, Fault { offset, what: FaultKind::Value }));
                    };
                    self.values.note(event, written, value);
                }
                Record::Activation { process, table } => {
                    let table = self.sites.intern(table);
                    self.flow(at, Flow::Activation { process, table });
                }
                Record::Segment { segment } => self.flow(at, Flow::Segment { segment }),
                Record::Resume { activation, segment } => self.flow(at, Flow::Resume { activation, segment }),
            }
        }
    }

    pub(crate) fn flow(&mut self, at: usize, flow: Flow) {
        let before = EventIndex(self.events.len() as u32);
        self.flow.push(FlowRecord { before, thread: self.cursors[at].thread, flow });
    }

    fn note_undefined(&mut self, at: usize, number: u32) -> Advance {
        let offset = self.cursors[at].reader.record_offset();
        self.note_fault(at, Fault { offset, what: FaultKind::UndefinedContext(number) })
    }

    fn note_fault(&mut self, at: usize, fault: Fault) -> Advance {
        let path = self.cursors[at].path.clone();
        self.shortcomings.push(Shortcoming::Damaged { path, offset: fault.offset, what: fault.what });
        Advance::Fault
    }

    #[inline]
    fn access(&mut self, at: usize, class: record::AccessClass, address: u64, size: u32, site: u64) -> Result<(), TraceError> {
        let cursor = &mut self.cursors[at];
        let site = self.sites.intern(site);
        let machine = address;
        let address = self.space.translate(&mut cursor.hits, machine, u64::from(size));
        cursor.accesses += 1;
        if class == record::AccessClass::End {
            self.make_room(machine);
        }
        let cursor = &self.cursors[at];
        let kind = EventKind::Access(Access { address, size, class: class_of(class), atomic: false });
        let event = Event { thread: cursor.thread, site, context: cursor.context, ordinal: cursor.ordinal, kind };
        self.cursors[at].last_access = Some(self.push(event)?);
        Ok(())
    }

    #[inline]
    fn push(&mut self, event: Event) -> Result<EventIndex, TraceError> {
        let index = self.events.len() as u64;
        if index >= MAX_EVENTS {
            let path = self.recording.directory.clone();
            return Err(TraceError::TooLarge { path, what: "events", limit: MAX_EVENTS });
        }
        if index % LOOK_EVERY == LOOK_EVERY - 1 && self.deadline.is_over() {
            return Err(TraceError::OutOfTime { path: self.recording.directory.clone() });
        }
        self.events.push(event);
        Ok(EventIndex(index as u32))
    }

    /// The kept record of a cursor happens now.
    fn apply(&mut self, at: usize) -> Result<(), TraceError> {
        let Some(next) = self.cursors[at].next.take() else {
            return Ok(());
        };
        if let Sequenced::Turn { accesses, what: TurnKind::Stands } = next {
            self.handovers.stands(self.cursors[at].thread, accesses);
            return Ok(());
        }
        // Who stands at a goal did not run to say so.
        let runs = !matches!(&next, Sequenced::Sync(sync) if sync.op == record::Op::GoalReached);
        if self.serial && runs && self.running != Some(at) {
            if let Some(outgoing) = self.running.map(|running| &self.cursors[running]) {
                self.handovers.stops(outgoing.thread, outgoing.ordinal, outgoing.accesses);
            }
            self.running = Some(at);
        }
        match next {
            Sequenced::Turn { accesses, what: TurnKind::Waits } => {
                let cursor = &self.cursors[at];
                self.handovers.waits(cursor.thread, cursor.ordinal, accesses, cursor.accesses);
                Ok(())
            }
            Sequenced::Turn { accesses, what: TurnKind::Resumes | TurnKind::Stands } => {
                // In free mode nothing was handed over; the log stays empty.
                self.handovers.resumes(self.cursors[at].thread, accesses, self.cursors[at].accesses);
                Ok(())
            }
            Sequenced::Sync(sync) => self.apply_sync(at, &sync),
        }
    }

    fn apply_sync(&mut self, at: usize, sync: &SyncRecord) -> Result<(), TraceError> {
        let site = self.sites.intern(sync.site);
        let cursor = &self.cursors[at];
        let (thread, context, ordinal) = (cursor.thread, cursor.context, cursor.ordinal);
        if self.serial && sync.op.has_ordinal() {
            self.handovers.synchronises(thread, sync.op, cursor.accesses);
        } else if self.serial && sync.op == record::Op::SignalEnter {
            self.handovers.is_interrupted(thread);
        } else if self.serial && sync.op == record::Op::ExternalInput {
            let executed = if sync.arguments.count() > 0 { sync.arguments.get(0) } else { cursor.accesses };
            self.handovers.came_in(thread, ordinal, executed);
        }
        if sync.op == record::Op::ExternalInput {
            let (object, source, file) = (sync.object, sync.aux, input_file(sync));
            self.input.get_or_insert(InputRecord { thread, site, context, object, source, file });
        }
        let found = self.misuses.count();
        let before = EventIndex(self.events.len() as u32);
        let moment = Moment { thread, site, context, before };
        self.misuses.step(sync, moment);
        self.life(at, sync, moment);
        for record in self.misuses.since(found) {
            let data = self.space.translate(&mut self.cursors[at].hits, record.object.0, 1);
            record.object = self.identities.known(data);
        }
        if let Some(kind) = self.event_kind(at, sync, site) {
            let index = self.push(Event { thread, site, context, ordinal, kind })?;
            self.after_event(at, sync, site, index);
        }
        if sync.op.has_ordinal() {
            let cursor = &mut self.cursors[at];
            cursor.ordinal = cursor.ordinal.saturating_add(1);
            cursor.accesses = 0;
        }
        Ok(())
    }

    fn finish(mut self) -> LoadedTrace {
        let header = &self.recording.header;
        self.shortcomings.extend(self.recording.shortcomings_of_files());
        for cursor in &self.cursors {
            self.threads.exists(cursor.thread);
        }
        let mut accesses_executed = vec![0; self.threads.count()];
        for cursor in &self.cursors {
            accesses_executed[cursor.thread.index()] = cursor.executed;
            self.handovers.leaves(cursor.thread, cursor.ended, cursor.accesses);
        }
        // What was not recorded the schedule leaves to the policy.
        if let Some(last) = self.running.map(|running| &self.cursors[running])
            && !header.notes.repeats()
        {
            self.handovers.ends(last.thread, last.ordinal);
        }
        let (objects, ids) = self.space.into_objects();
        let mut trace = Trace {
            mode: if header.mode == RunMode::Serial { Mode::Serial } else { Mode::Free },
            threads: self.threads.into_threads(|handle| ids[handle as usize]),
            modules: self.modules,
            sites: self.sites.list,
            contexts: self.contexts.list,
            objects,
            events: self.events,
            semaphores: self.semaphores,
            complete: self.shortcomings.is_empty(),
            gaps: self.gaps.finish(accesses_executed.len()),
            kept: Vec::new(),
            loops: self.loops,
            atomic_values: true,
            plain_values: self.values.finish(),
            made_locks: BTreeMap::new(),
            uses: Vec::new(),
            not_reexecutable_from: self.not_reexecutable_from,
        };
        drop_contradicted(&mut trace);
        let freed_again = self.misuses.take_freed_again();
        let mut misuses = self.misuses.finish(header.state == RunState::Complete && !header.notes.repeats());
        misuses.extend(freed::uses_after_free(&trace, &freed_again, self.deadline));
        LoadedTrace {
            trace,
            header: header.clone(),
            goals: self.goals,
            blocked: self.blocked,
            misuses,
            lives: self.lives,
            sync_objects: self.identities.into_objects(),
            input: self.input,
            frames: self.frames,
            flow: self.flow,
            shortcomings: self.shortcomings,
            accesses_executed,
            handovers: self.handovers,
        }
    }
}

/// What the input was read from, where the record says so.
fn input_file(sync: &SyncRecord) -> Option<InputFile> {
    let first = sync.arguments.get(1);
    let descriptor = (first as u32).checked_sub(1)?;
    let mut name = [0; input::NAME_BYTES];
    for (number, bytes) in name.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&sync.arguments.get(2 + number).to_le_bytes());
    }
    Some(InputFile { descriptor, what: first >> 32, name })
}
