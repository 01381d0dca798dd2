//! A trace as text, one event a line.

use crate::error::TraceError;
use crate::loaded::LoadedTrace;
use crate::normalise::{Names, is_comparable};
use rashomon_event::{EventIndex, ThreadId};
use std::io::Write;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// Events of this thread only.
    pub thread: Option<ThreadId>,
    /// First event.
    pub from: u32,
    /// Most lines.
    pub limit: Option<u64>,
    /// Leave out machine addresses, event numbers and lock requests, so that recordings can be compared.
    pub comparable: bool,
}

impl LoadedTrace {
    /// Writes `number thread @ordinal site context event` lines.
    pub fn dump(&self, options: &DumpOptions, out: &mut dyn Write) -> Result<(), TraceError> {
        let names = if options.comparable { Names::comparable(self) } else { Names::exact(self) };
        let chosen = self
            .trace
            .indices()
            .skip(options.from as usize)
            .filter(|&index| options.thread.is_none_or(|thread| self.trace.event(index).thread == thread))
            .filter(|&index| !options.comparable || is_comparable(&self.trace.event(index)))
            .take(usize::try_from(options.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX));
        for index in chosen {
            let EventIndex(number) = index;
            let mut line = names.event(&self.trace.event(index));
            if let Some(value) = self.trace.plain_value(index).filter(|_| !options.comparable) {
                line += &value.read.map_or_else(String::new, |read| format!(" saw {read:#x}"));
                line += &value.written.map_or_else(String::new, |written| format!(" left {written:#x}"));
            }
            match options.comparable {
                true => writeln!(out, "{line}")?,
                false => writeln!(out, "{number:>8} {line}")?,
            }
        }
        Ok(())
    }
}
