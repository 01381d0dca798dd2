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

use crate::advance::{Advance, Known, ThreadCursor, check_room};
use crate::decoded::{self, Source};
use crate::error::TraceError;
use crate::freed;
use crate::gaps::Gaps;
use crate::header::{RunMode, RunState};
use crate::identity::Identities;
use crate::intern::{Contexts, Sites};
use crate::loaded::{
    BlockedRecord, FlowRecord, FrameRecord, GoalRecord, InputFile, InputRecord, LifeRecord, LoadedTrace, Shortcoming,
};
use crate::misuse::{Misuses, Moment};
use crate::recording::Recording;
use crate::space::Space;
use crate::stream::{SyncRecord, TurnKind};
use crate::threads::ThreadTable;
use crate::turns::HandoverLog;
use crate::values::{Values, drop_contradicted};
use rashomon_abi::record::{self, input};
use rashomon_event::{Address, Deadline, Event, EventIndex, Events, LoopMark, Mode, ModuleInfo, Trace};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::thread;

impl Recording {
    /// Merges the streams into one trace.
    pub fn load(&self) -> Result<LoadedTrace, TraceError> {
        self.load_until(Deadline::NEVER)
    }

    /// As [`Recording::load`], but [`TraceError::OutOfTime`] if it takes too long.
    pub fn load_until(&self, deadline: Deadline) -> Result<LoadedTrace, TraceError> {
        thread::scope(|scope| {
            let mut loader = Loader::new(self, decoded::sources(scope, &self.streams));
            loader.deadline = deadline;
            loader.merge()?;
            Ok(loader.finish())
        })
    }
}

/// A record with a sequence number, read but not yet placed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sequenced {
    Sync(SyncRecord),
    Turn { accesses: u64, what: TurnKind },
}

pub(crate) struct Loader<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) cursors: Vec<ThreadCursor<'a>>,
    pub(crate) events: Events,
    pub(crate) space: Space,
    pub(crate) sites: Sites,
    pub(crate) gaps: Gaps,
    pub(crate) contexts: Contexts,
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
    pub(crate) frames: Vec<FrameRecord>,
    pub(crate) loops: Vec<LoopMark>,
    pub(crate) flow: Vec<FlowRecord>,
    pub(crate) values: Values,
    pub(crate) deadline: Deadline,
}

impl<'a> Loader<'a> {
    fn new(recording: &'a Recording, sources: Vec<Source<'a, Option<Known>>>) -> Self {
        let cursors = recording.streams.iter().zip(sources).map(|(stream, source)| ThreadCursor::new(stream, source));
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

    pub(crate) fn push(&mut self, event: Event) -> Result<EventIndex, TraceError> {
        let index = check_room(&self.events, self.deadline, self.recording)?;
        self.events.push(event);
        Ok(index)
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
