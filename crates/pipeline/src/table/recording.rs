//! A recording, event by event.

use super::held::Held;
use super::{ExportError, Exported, kind, order_words};
use crate::findings::describe::Describer;
use crate::findings::symbols::Symbols;
use crate::record::packed::{Pieces, location};
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, ContextId, Event, EventIndex, EventKind, Frame, LockMode, SiteId, ThreadId, Trace,
};
use rashomon_report::text::names::function as short_function;
use rashomon_table::{Row, TableWriter};
use rashomon_trace::LoadedTrace;
use rustc_hash::FxHashMap;
use std::io::Write;

/// Events between two reports of progress.
const STEP: u64 = 1 << 11;

/// Writes a recording. `progress` is told how many events went over so far. Returns the stream, too.
pub fn of_recording<S: Symbols + ?Sized, W: Write + Send>(
    loaded: &LoadedTrace,
    symbols: &S,
    out: W,
    mut progress: impl FnMut(u64),
) -> Result<(Exported, W), ExportError> {
    let trace = &loaded.trace;
    let mut exporter = Exporter {
        trace,
        describer: Describer::new(trace, &loaded.sync_objects, symbols).with_frames(&loaded.frames).with_ends(loaded),
        pieces: Pieces::of(trace),
        table: TableWriter::new(out)?,
        held: Held::default(),
        locks: Numbers::new(),
        objects: Numbers::new(),
        variables: FxHashMap::default(),
        places: FxHashMap::default(),
        rows: 0,
    };
    for index in trace.indices() {
        exporter.event(index)?;
        if u64::from(index.0) % STEP == 0 {
            progress(u64::from(index.0));
        }
    }
    let done = Exported { events: trace.events.len() as u64, rows: exporter.rows };
    progress(done.events);
    Ok((done, exporter.table.finish()?))
}

/// Small numbers for what has addresses, and names.
#[derive(Debug)]
struct Numbers<K> {
    known: FxHashMap<K, u64>,
    names: Vec<String>,
}

impl<K: std::hash::Hash + Eq> Numbers<K> {
    fn new() -> Self {
        Self { known: FxHashMap::default(), names: Vec::new() }
    }

    fn number(&mut self, key: K, name: impl FnOnce() -> String) -> u64 {
        *self.known.entry(key).or_insert_with(|| {
            self.names.push(name());
            self.names.len() as u64 - 1
        })
    }
}

/// Where a thread was, in the program's own code if that is known.
#[derive(Clone, Debug)]
struct Place {
    number: u64,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

struct Exporter<'a, S: ?Sized, W: Write + Send> {
    trace: &'a Trace,
    describer: Describer<'a, S>,
    pieces: Pieces,
    table: TableWriter<W>,
    held: Held,
    locks: Numbers<Address>,
    /// A barrier is another one in each generation.
    objects: Numbers<(Address, u32)>,
    variables: FxHashMap<u32, String>,
    places: FxHashMap<(SiteId, ContextId), Place>,
    rows: u64,
}

/// What an event names besides memory.
#[derive(Default)]
struct Named {
    lock: Option<Address>,
    object: Option<(Address, u32)>,
    child: Option<ThreadId>,
    woken_by: Option<EventIndex>,
    takes: Option<bool>,
}

impl<S: Symbols + ?Sized, W: Write + Send> Exporter<'_, S, W> {
    fn event(&mut self, index: EventIndex) -> Result<(), ExportError> {
        let event = self.trace.event(index);
        let thread = event.thread.0;
        let mut row = self.row(index, &event);
        let named = named(&event.kind);
        let describer = &self.describer;
        let lock = named.lock.map(|lock| self.locks.number(lock, || describer.lock(lock)));
        if let Some(lock) = lock {
            row.lock = Some(lock);
            row.lock_name = Some(self.table.text(kind::LOCK, lock, || self.locks.names[lock as usize].clone()));
        }
        if let Some(key) = named.object {
            let object = self.objects.number(key, || describer.lock(key.0));
            row.object = Some(object);
            row.object_name = Some(self.table.text(kind::OBJECT, object, || self.objects.names[object as usize].clone()));
        }
        if let Some(child) = named.child {
            row.child = Some(child.0);
            row.child_name = Some(self.thread_name(child));
        }
        row.woken_by = named.woken_by.map(|signal| u64::from(signal.0));
        let held = std::mem::take(&mut self.held);
        row.held = held.of(thread);
        // Known before the row is written, as inner acquisitions take nothing.
        row.takes = match (named.takes, lock) {
            (Some(true), Some(lock)) => (!row.held.contains(&lock)).then_some(true),
            (Some(false), Some(lock)) => row.held.contains(&lock).then_some(false),
            _ => None,
        };
        let written = match event.access() {
            Some(access) => self.access(index, &event, &access, row),
            None => self.write(&row),
        };
        self.held = held;
        match (named.takes, lock) {
            (Some(true), Some(lock)) => _ = self.held.take(thread, lock),
            (Some(false), Some(lock)) => _ = self.held.give_back(thread, lock),
            _ => {}
        }
        written
    }

    fn write(&mut self, row: &Row<'_>) -> Result<(), ExportError> {
        self.rows += 1;
        Ok(self.table.write(row)?)
    }

    /// Who, what and where.
    fn row<'h>(&mut self, index: EventIndex, event: &Event) -> Row<'h> {
        let thread_name = self.thread_name(event.thread);
        let operation = self.table.word(operation(&event.kind));
        let mut row = Row::new(u64::from(index.0), (event.thread.0, thread_name), operation);
        row.ordinal = Some(event.ordinal);
        if let EventKind::Atomic { order, .. } | EventKind::Fence { order } = event.kind {
            row.memory_order = Some(self.table.word(order_words(order)));
        }
        let trace = self.trace;
        let Some(site) = trace.sites.get(event.site.index()) else { return row };
        row.location = Some(self.table.text(kind::LOCATION, event.site.0.into(), || location(trace, site)));
        let (describer, next) = (&self.describer, self.places.len() as u64);
        let place = self.places.entry((event.site, event.context)).or_insert_with(|| {
            let stack = describer.stack(event.site, event.context);
            Place::of(next, Frame::best_known(&stack))
        });
        row.line = place.line;
        row.function = place.function.as_ref().map(|name| self.table.text(kind::FUNCTION, place.number, || name.clone()));
        row.file = place.file.as_ref().map(|name| self.table.text(kind::FILE, place.number, || name.clone()));
        row
    }

    fn thread_name(&mut self, thread: ThreadId) -> rashomon_table::Text {
        let trace = self.trace;
        self.table.text(kind::THREAD, thread.0.into(), || trace.thread(thread).path.to_string())
    }

    /// A row for each variable.
    fn access(&mut self, index: EventIndex, event: &Event, access: &Access, row: Row<'_>) -> Result<(), ExportError> {
        let pieces = std::mem::take(&mut self.pieces);
        let (read, written) = values(self.trace, index, event);
        let mut result = Ok(());
        // Texts are good for one row.
        let mut texts_of = Some(row);
        for (variable, begin, size) in pieces.with_bytes(*access) {
            let mut row = match texts_of.take() {
                Some(row) => row,
                None => Row { held: row.held, takes: row.takes, ..self.row(index, event) },
            };
            let (trace, describer) = (self.trace, &self.describer);
            let object = trace.object_at(begin).map(|object| &trace.objects[object.index()]);
            row.address = Some(object.map_or(begin.0, |object| object.machine_base.wrapping_add(begin.0 - object.base.0)));
            let name = self.variables.entry(variable).or_insert_with(|| {
                let unknown =
                    || format!("{:#x}", object.map_or(begin.0, |object| object.machine_base + (begin.0 - object.base.0)));
                describer.at(begin).unwrap_or_else(unknown)
            });
            row.variable_name = Some(self.table.text(kind::VARIABLE, variable.into(), || name.clone()));
            row.variable = Some(variable.into());
            row.size = Some(size);
            row.reads = Some(access.class.reads() && access.class != AccessClass::End);
            row.writes = Some(access.class.writes());
            row.atomic = Some(access.atomic);
            let into = begin.0 - access.address.0;
            row.value_read = read.and_then(|value| part(value, into, size));
            row.value_written = written.and_then(|value| part(value, into, size));
            result = self.write(&row);
            if result.is_err() {
                break;
            }
        }
        self.pieces = pieces;
        result
    }
}

impl Place {
    fn of(number: u64, frame: Option<&Frame>) -> Self {
        let function = frame.and_then(|frame| frame.function.as_deref().map(short_function));
        let file = frame.and_then(|frame| frame.file.clone());
        Self { number, function, file, line: frame.and_then(|frame| frame.line) }
    }
}

/// Of the low eight bytes that an access read or wrote, those of one variable in it. `None`: it has others.
const fn part(value: u64, into: u64, size: u64) -> Option<u64> {
    if into + size > 8 {
        return None;
    }
    let value = value >> (8 * into);
    Some(if size == 8 { value } else { value & ((1 << (8 * size)) - 1) })
}

/// What an access read and wrote, where that was recorded.
fn values(trace: &Trace, index: EventIndex, event: &Event) -> (Option<u64>, Option<u64>) {
    match event.kind {
        EventKind::Atomic { op, value, .. } if trace.atomic_values => match op {
            AtomicOp::Load | AtomicOp::CasFailed => (Some(value), None),
            AtomicOp::Store | AtomicOp::Rmw => (None, Some(value)),
        },
        EventKind::Access(_) => trace.plain_value(index).map_or((None, None), |value| (value.read, value.written)),
        _ => (None, None),
    }
}

fn named(kind: &EventKind) -> Named {
    let of_lock = |lock: Address, takes: Option<bool>| Named { lock: Some(lock), takes, ..Named::default() };
    let of_object = |object: Address| Named { object: Some((object, 0)), ..Named::default() };
    match *kind {
        EventKind::Fork { child } | EventKind::Join { child, .. } => Named { child: Some(child), ..Named::default() },
        EventKind::Acquire { lock, .. } => of_lock(lock, Some(true)),
        EventKind::Release { lock, .. } => of_lock(lock, Some(false)),
        EventKind::Request { lock, .. } => of_lock(lock, None),
        EventKind::WaitBegin { condition, mutex } => Named { object: Some((condition, 0)), ..of_lock(mutex, Some(false)) },
        EventKind::WaitEnd { condition, mutex, woken_by, .. } => {
            Named { object: Some((condition, 0)), woken_by, ..of_lock(mutex, Some(true)) }
        }
        EventKind::BarrierEnter { barrier, generation } | EventKind::BarrierExit { barrier, generation } => {
            Named { object: Some((barrier, generation)), ..Named::default() }
        }
        EventKind::Signal { condition: object, .. }
        | EventKind::Post { semaphore: object }
        | EventKind::Take { semaphore: object }
        | EventKind::OnceBegin { once: object }
        | EventKind::OnceDone { once: object }
        | EventKind::OnceSeen { once: object }
        | EventKind::ReleaseObject { object }
        | EventKind::AcquireObject { object }
        | EventKind::Blocked { on: object } => of_object(object),
        EventKind::Access(_)
        | EventKind::Atomic { .. }
        | EventKind::Fence { .. }
        | EventKind::Start
        | EventKind::End
        | EventKind::Other(_) => Named::default(),
    }
}

/// The word of packed traces ([`rashomon_packed::Op`]) where they have one.
fn operation(kind: &EventKind) -> &'static str {
    let by_mode = |mode: LockMode, exclusive: &'static str, shared: &'static str| match mode {
        LockMode::Exclusive => exclusive,
        LockMode::Shared => shared,
    };
    match *kind {
        EventKind::Access(access) => match access.class {
            AccessClass::Read => "read",
            AccessClass::Write => "write",
            AccessClass::ReadWrite => "read and write",
            AccessClass::End => "free",
        },
        EventKind::Atomic { op, .. } => match op {
            AtomicOp::Load | AtomicOp::CasFailed => "atomic read",
            AtomicOp::Store => "atomic write",
            AtomicOp::Rmw => "atomic update",
        },
        EventKind::Fence { .. } => "fence",
        EventKind::Start => "start",
        EventKind::End => "end",
        EventKind::Fork { .. } => "fork",
        EventKind::Join { .. } => "join",
        EventKind::Acquire { mode, .. } => by_mode(mode, "acquire", "acquire shared"),
        EventKind::Release { mode, .. } => by_mode(mode, "release", "release shared"),
        EventKind::Request { mode, .. } => by_mode(mode, "request", "request shared"),
        EventKind::WaitBegin { .. } => "wait begin",
        EventKind::WaitEnd { timed_out: false, .. } => "wait end",
        EventKind::WaitEnd { timed_out: true, .. } => "wait timed out",
        EventKind::Signal { broadcast: false, .. } => "signal",
        EventKind::Signal { broadcast: true, .. } => "broadcast",
        EventKind::BarrierEnter { .. } => "enter",
        EventKind::BarrierExit { .. } => "exit",
        EventKind::Post { .. } => "post",
        EventKind::Take { .. } => "take",
        EventKind::OnceBegin { .. } => "once begin",
        EventKind::OnceDone { .. } => "once done",
        EventKind::OnceSeen { .. } => "once seen",
        EventKind::ReleaseObject { .. } => "release object",
        EventKind::AcquireObject { .. } => "acquire object",
        EventKind::Blocked { .. } => "blocked",
        EventKind::Other(op) => op.words(),
    }
}
