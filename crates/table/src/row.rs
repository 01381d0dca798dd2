//! One row, as it is given.

use crate::column::COLUMNS;

/// A text of the writer that made it, for one row: the next row may be in another group, which has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(pub(crate) u32);

/// An event, or an event's share in one variable: an access of several variables has a row for each.
///
/// Numbers name things: the same number is the same thread, variable, lock or object; names are for people, and two things may
/// have the same.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Counts from 0 in the order of the trace.
    pub event: u64,
    pub thread: u32,
    pub thread_name: Text,
    /// What happens.
    pub operation: Text,
    /// Only accesses have the next three.
    pub reads: Option<bool>,
    pub writes: Option<bool>,
    pub atomic: Option<bool>,
    pub variable: Option<u64>,
    pub variable_name: Option<Text>,
    /// Where the variable lay in the program.
    pub address: Option<u64>,
    /// Bytes of the variable.
    pub size: Option<u64>,
    /// Of the variable's bytes, the first one lowest.
    pub value_read: Option<u64>,
    pub value_written: Option<u64>,
    pub memory_order: Option<Text>,
    pub lock: Option<u64>,
    pub lock_name: Option<Text>,
    /// The thread holds the lock from here on, or no longer. None: inner ones of a recursive lock, requests.
    pub takes: Option<bool>,
    /// Locks that the thread holds right before the event, ascending.
    pub held: &'a [u64],
    /// What else orders threads: conditions, barriers, semaphores, …
    pub object: Option<u64>,
    pub object_name: Option<Text>,
    pub region: Option<Text>,
    /// The thread that is created or joined.
    pub child: Option<u32>,
    pub child_name: Option<Text>,
    /// The event that ended the wait.
    pub woken_by: Option<u64>,
    /// Where in the program, as the trace has it.
    pub location: Option<Text>,
    pub function: Option<Text>,
    pub file: Option<Text>,
    pub line: Option<u32>,
    /// How many synchronisation operations the thread has behind it.
    pub ordinal: Option<u32>,
}

impl Row<'_> {
    /// One of which nothing else is known.
    pub const fn new(event: u64, (thread, thread_name): (u32, Text), operation: Text) -> Self {
        Self {
            event,
            thread,
            thread_name,
            operation,
            reads: None,
            writes: None,
            atomic: None,
            variable: None,
            variable_name: None,
            address: None,
            size: None,
            value_read: None,
            value_written: None,
            memory_order: None,
            lock: None,
            lock_name: None,
            takes: None,
            held: &[],
            object: None,
            object_name: None,
            region: None,
            child: None,
            child_name: None,
            woken_by: None,
            location: None,
            function: None,
            file: None,
            line: None,
            ordinal: None,
        }
    }
}

/// What stands in one column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Number(Option<u64>),
    Text(Option<u32>),
    Flag(Option<bool>),
    List(&'a [u64]),
}

impl<'a> Row<'a> {
    /// In the order of [`COLUMNS`].
    pub(crate) fn cells(&self) -> [Cell<'a>; COLUMNS.len()] {
        let number = Cell::Number;
        let small = |value: Option<u32>| Cell::Number(value.map(u64::from));
        let text = |text: Option<Text>| Cell::Text(text.map(|Text(text)| text));
        let flag = Cell::Flag;
        [
            number(Some(self.event)),
            small(Some(self.thread)),
            text(Some(self.thread_name)),
            text(Some(self.operation)),
            flag(self.reads),
            flag(self.writes),
            flag(self.atomic),
            number(self.variable),
            text(self.variable_name),
            number(self.address),
            number(self.size),
            number(self.value_read),
            number(self.value_written),
            text(self.memory_order),
            number(self.lock),
            text(self.lock_name),
            flag(self.takes),
            Cell::List(self.held),
            number(self.object),
            text(self.object_name),
            text(self.region),
            small(self.child),
            text(self.child_name),
            number(self.woken_by),
            text(self.location),
            text(self.function),
            text(self.file),
            small(self.line),
            small(self.ordinal),
        ]
    }
}
