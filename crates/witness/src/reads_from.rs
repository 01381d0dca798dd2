//! Reads-from, byte by byte: which event last wrote each byte that a read sees.

use rashomon_event::{Access, EventIndex, Trace};
use std::collections::HashMap;

const PAGE: u64 = 256;
/// No event wrote this byte before.
const INITIAL: u32 = u32::MAX;

/// The last writers of one page.
enum Page {
    /// One writer for all bytes, so that clearing a large block costs little.
    Whole(u32),
    Bytes(Box<[u32; PAGE as usize]>),
}

impl Page {
    fn writer(&self, byte: u64) -> u32 {
        match self {
            Self::Whole(writer) => *writer,
            Self::Bytes(bytes) => bytes[(byte % PAGE) as usize],
        }
    }
}

/// The last writer of every byte.
#[derive(Default)]
struct Memory {
    pages: HashMap<u64, Page>,
}

impl Memory {
    fn write(&mut self, access: &Access, writer: EventIndex) {
        let (mut address, end) = span(access);
        while address < end {
            let stop = end.min((address / PAGE + 1).saturating_mul(PAGE));
            let page = self.pages.entry(address / PAGE).or_insert(Page::Whole(INITIAL));
            if stop - address == PAGE {
                *page = Page::Whole(writer.0);
            } else {
                if let Page::Whole(old) = page {
                    *page = Page::Bytes(Box::new([*old; PAGE as usize]));
                }
                if let Page::Bytes(bytes) = page {
                    bytes[(address % PAGE) as usize..][..(stop - address) as usize].fill(writer.0);
                }
            }
            address = stop;
        }
    }

    /// Calls `see` with (writer, bytes) for each maximal run of bytes with one writer.
    fn read(&self, access: &Access, mut see: impl FnMut(u32, u32)) {
        let (start, end) = span(access);
        let (mut run_writer, mut run) = (INITIAL, 0u32);
        let mut address = start;
        while address < end {
            let stop = end.min((address / PAGE + 1).saturating_mul(PAGE));
            let page = self.pages.get(&(address / PAGE));
            for byte in address..stop {
                let writer = page.map_or(INITIAL, |page| page.writer(byte));
                if writer != run_writer && run > 0 {
                    see(run_writer, run);
                    run = 0;
                }
                run_writer = writer;
                run += 1;
            }
            address = stop;
        }
        if run > 0 {
            see(run_writer, run);
        }
    }
}

fn span(access: &Access) -> (u64, u64) {
    (access.address.0, access.address.0.saturating_add(u64::from(access.size)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    writer: u32,
    bytes: u32,
}

/// What each read of the trace saw.
pub(crate) struct ReadsFrom {
    /// `runs[first[e]..first[e + 1]]` is what event `e` saw.
    first: Vec<u32>,
    runs: Vec<Run>,
}

impl ReadsFrom {
    pub fn new(trace: &Trace) -> Self {
        let mut memory = Memory::default();
        let mut first = Vec::with_capacity(trace.events.len() + 1);
        let mut runs = Vec::new();
        for (index, event) in trace.indices().zip(&trace.events) {
            first.push(runs.len() as u32);
            if let Some(access) = event.access() {
                if access.class.reads() {
                    memory.read(&access, |writer, bytes| runs.push(Run { writer, bytes }));
                }
                if access.class.writes() {
                    memory.write(&access, index);
                }
            }
        }
        first.push(runs.len() as u32);
        Self { first, runs }
    }

    fn of(&self, event: EventIndex) -> &[Run] {
        &self.runs[self.first[event.index()] as usize..self.first[event.index() + 1] as usize]
    }

    /// Whether every read in `order` sees, byte by byte, the writer it saw in the trace.
    pub fn kept_by(&self, trace: &Trace, order: &[EventIndex]) -> bool {
        let mut memory = Memory::default();
        for &index in order {
            let Some(access) = trace.event(index).access() else {
                continue;
            };
            if access.class.reads() {
                let expected = self.of(index);
                let mut seen = 0;
                let mut same = true;
                memory.read(&access, |writer, bytes| {
                    same &= expected.get(seen) == Some(&Run { writer, bytes });
                    seen += 1;
                });
                if !same || seen != expected.len() {
                    return false;
                }
            }
            if access.class.writes() {
                memory.write(&access, index);
            }
        }
        true
    }
}
