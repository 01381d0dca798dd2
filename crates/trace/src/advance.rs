//! A thread's stream while it is merged: its accesses are placed where the merge has come to, up to the next record that has a
//! sequence number.

use crate::chunks::{Fault, FaultKind};
use crate::convert::class_of;
use crate::decoded::{Form, Source, Step};
use crate::error::TraceError;
use crate::load::{Loader, Sequenced};
use crate::loaded::{Flow, FlowRecord, FrameRecord, Shortcoming};
use crate::recording::{Recording, Stream};
use crate::space::LastHits;
use crate::stream::Record;
use rashomon_abi::record;
use rashomon_event::{Access, ContextId, Deadline, Event, EventIndex, EventKind, Events, Like, SiteId, ThreadId};
use std::path::PathBuf;

/// Events are numbered with 32 bits.
const MAX_EVENTS: u64 = u32::MAX as u64 - 1;
/// Events loaded between two looks at the clock.
const LOOK_EVERY: u64 = 1 << 16;
/// Bytes of one range access; what is said to lie behind them is left out.
const LONGEST_RANGE: u64 = 1 << 36;

/// What came after a thread's accesses.
pub(crate) enum Advance {
    /// A record with this sequence number.
    Next(u64),
    End,
    /// Noted; nothing behind it can be placed.
    Fault,
}

/// What is known of a form of accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Of the sites, when this was looked up.
    version: u32,
    site: SiteId,
    like: Like,
}

pub(crate) struct ThreadCursor<'a> {
    source: Source<'a, Option<Known>>,
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
    pub(crate) accesses: u64,
    pub(crate) executed: u64,
    pub(crate) next: Option<Sequenced>,
    /// Event of the last access, if values belong to it.
    last_access: Option<EventIndex>,
    /// Event of the last `CondWaitBegin`.
    pub(crate) wait_begin: Option<EventIndex>,
    pub(crate) ended: bool,
}

impl<'a> ThreadCursor<'a> {
    pub(crate) fn new(stream: &'a Stream, source: Source<'a, Option<Known>>) -> Self {
        Self {
            source,
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
        }
    }
}

impl Loader<'_> {
    /// Places accesses up to the stream's next record with a sequence number, which is kept.
    pub(crate) fn advance(&mut self, at: usize) -> Result<Advance, TraceError> {
        loop {
            let cursor = &mut self.cursors[at];
            let record = match cursor.source.step() {
                Step::Access(form, address) => {
                    self.access_of_form(at, form, address)?;
                    continue;
                }
                Step::Context(number) => Record::Context { number },
                Step::Other(record) => record,
                Step::End => return Ok(Advance::End),
                Step::Fault(fault) => return Ok(self.note_fault(at, fault)),
            };
            match record {
                Record::Access { class, size, address, site } => self.access(at, Form { class, size, site }, address)?,
                Record::Range { class, address, length, site } => {
                    // A larger number is damage that the checksum cannot see; it must not become millions of events.
                    let mut left = length.min(LONGEST_RANGE).min(record::LOW_MASK + 1 - address);
                    let mut from = address;
                    while left > 0 {
                        let size = left.min(u64::from(u32::MAX)) as u32;
                        self.access(at, Form { class, size, site }, from)?;
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
                        let offset = cursor.source.offset_of_other();
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
        let offset = self.cursors[at].source.offset_of_other();
        self.note_fault(at, Fault { offset, what: FaultKind::UndefinedContext(number) })
    }

    fn note_fault(&mut self, at: usize, fault: Fault) -> Advance {
        let path = self.cursors[at].path.clone();
        self.shortcomings.push(Shortcoming::Damaged { path, offset: fault.offset, what: fault.what });
        Advance::Fault
    }

    /// An access of a form of the block, of which something may be known.
    #[inline]
    fn access_of_form(&mut self, at: usize, number: usize, machine: u64) -> Result<(), TraceError> {
        let cursor = &mut self.cursors[at];
        let (form, known) = cursor.source.form(number);
        let version = self.sites.version();
        if known.is_some_and(|known| known.version != version) {
            *known = None;
        }
        let known = known.get_or_insert_with(|| Known { version, site: self.sites.intern(form.site), like: Like::default() });
        let address = self.space.translate(&mut cursor.hits, machine, u64::from(form.size));
        cursor.accesses += 1;
        let access = Access { address, size: form.size, class: class_of(form.class), atomic: false };
        let index = check_room(&self.events, self.deadline, self.recording)?;
        self.events.push_like(&mut known.like, (cursor.thread, cursor.context, cursor.ordinal), known.site, access);
        cursor.last_access = Some(index);
        Ok(())
    }

    fn access(&mut self, at: usize, Form { class, size, site }: Form, machine: u64) -> Result<(), TraceError> {
        let cursor = &mut self.cursors[at];
        let site = self.sites.intern(site);
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
}

/// The index of the next event, if there may be one more and there is time for it.
#[inline]
pub(crate) fn check_room(events: &Events, deadline: Deadline, recording: &Recording) -> Result<EventIndex, TraceError> {
    let index = events.len() as u64;
    if index >= MAX_EVENTS {
        let path = recording.directory.clone();
        return Err(TraceError::TooLarge { path, what: "events", limit: MAX_EVENTS });
    }
    if index % LOOK_EVERY == LOOK_EVERY - 1 && deadline.is_over() {
        return Err(TraceError::OutOfTime { path: recording.directory.clone() });
    }
    Ok(EventIndex(index as u32))
}
