//! A trace file, event by event.

use super::held::Held;
use super::{ExportError, Exported, kind, order_words};
use rashomon_packed::{BLOCK, Event, Names, Op, Source, Space, memory_order};
use rashomon_table::{Row, TableWriter, Text};
use rustc_hash::FxHashMap;
use std::io::Write;

/// Writes everything that `source` has. `progress` is told how many events went over so far. Returns the stream, too.
pub fn of_file<W: Write + Send>(
    source: &mut (impl Source + ?Sized),
    out: W,
    mut progress: impl FnMut(u64),
) -> Result<(Exported, W), ExportError> {
    let mut exporter = Exporter { table: TableWriter::new(out)?, held: Held::default(), lives: FxHashMap::default(), events: 0 };
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            let events = exporter.events;
            return Ok((Exported { events, rows: events }, exporter.table.finish()?));
        }
        for event in &block {
            exporter.event(event, source.names())?;
        }
        progress(exporter.events);
    }
}

struct Exporter<W: Write + Send> {
    table: TableWriter<W>,
    held: Held,
    /// How often the number of a variable began to stand for another one.
    lives: FxHashMap<u32, u32>,
    events: u64,
}

impl<W: Write + Send> Exporter<W> {
    fn event(&mut self, event: &Event, names: &Names) -> Result<(), ExportError> {
        let thread = u32::from(event.thread);
        let table = &mut self.table;
        let mut named = |space: Space, number: u32| {
            let kind = match space {
                Space::Thread => kind::THREAD,
                Space::Variable => kind::VARIABLE,
                Space::Lock => kind::LOCK,
                Space::Region => kind::REGION,
                Space::Object => kind::OBJECT,
                Space::Location => kind::LOCATION,
            };
            table.text(kind, number.into(), || names.get(space, number).into_owned())
        };
        let (thread_name, location) = (named(Space::Thread, thread), event.location);
        let location = (location != 0).then(|| named(Space::Location, location));
        let target = event.op.space().map(|space| (space, named(space, event.target)));
        let mut row = Row::new(self.events, (thread, thread_name), table.word(event.op.name()));
        row.location = location;
        if event.op.is_access() {
            row.reads = Some(event.op.reads());
            row.writes = Some(event.op.writes());
            row.atomic = Some(!event.op.is_plain());
        }
        if event.op == Op::Fence || event.op.is_access() && !event.op.is_plain() {
            row.memory_order = Some(table.word(order_words(memory_order(event.order))));
        }
        if let Some((space, name)) = target {
            self.target(&mut row, event, space, name);
        }
        row.takes = match (event.op, row.lock) {
            (Op::Acquire | Op::AcquireShared, Some(_)) => Some(true),
            (Op::Release | Op::ReleaseShared, Some(_)) => Some(false),
            _ => None,
        };
        row.held = self.held.of(thread);
        self.table.write(&row)?;
        match (row.takes, row.lock) {
            (Some(true), Some(lock)) => _ = self.held.take(thread, lock),
            (Some(false), Some(lock)) => _ = self.held.give_back(thread, lock),
            _ => {}
        }
        self.events += 1;
        Ok(())
    }

    fn target(&mut self, row: &mut Row<'_>, event: &Event, space: Space, name: Text) {
        let number = u64::from(event.target);
        match space {
            Space::Variable => {
                let life = self.lives.get(&event.target).copied().unwrap_or(0);
                row.variable = Some(u64::from(life) << 32 | number);
                row.variable_name = Some(name);
                if event.op == Op::Forget {
                    // 31 bits, so that numbers stay positive.
                    self.lives.insert(event.target, (life + 1) & (u32::MAX >> 1));
                }
            }
            Space::Lock => (row.lock, row.lock_name) = (Some(number), Some(name)),
            Space::Object => (row.object, row.object_name) = (Some(number), Some(name)),
            Space::Thread => (row.child, row.child_name) = (Some(event.target), Some(name)),
            Space::Region => row.region = Some(name),
            Space::Location => {}
        }
    }
}
