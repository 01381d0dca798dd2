//! What a recording holds, counted record by record.

use crate::chunks::{Chunk, Fault};
use crate::error::TraceError;
use crate::header::{Origin, RunMode, RunOutcome, RunState};
use crate::modules::ModuleLine;
use crate::recording::Recording;
use crate::stream::Record;
use rashomon_abi::record::{AccessClass, Op};
use rashomon_event::harmless;
use std::collections::BTreeMap;
use std::io::Write;

/// Counts over all streams. Damaged streams are counted up to the damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub threads: u64,
    pub chunks: u64,
    pub unfinished_chunks: u64,
    pub compressed_chunks: u64,
    pub file_bytes: u64,
    /// Bytes of records in finished chunks, and up to the last record in unfinished ones.
    pub record_bytes: u64,
    /// What they take in the files, compressed as they are, headers of chunks apart.
    pub stored_bytes: u64,
    /// Accesses kept, by class.
    pub accesses: BTreeMap<AccessClass, u64>,
    /// Of those: ranges.
    pub ranges: u64,
    /// The program's accesses, kept or not, as far as it was written down.
    pub accesses_executed: u64,
    pub operations: BTreeMap<Op, u64>,
    pub turns: u64,
    /// Activations and segments of functions that the plugin has instrumented.
    pub flow: u64,
    /// Of plain accesses.
    pub values: u64,
    pub contexts: u64,
    /// File name and damage.
    pub faults: Vec<(String, Fault)>,
}

impl Statistics {
    pub fn accesses_kept(&self) -> u64 {
        self.accesses.values().sum()
    }
}

impl Recording {
    pub fn statistics(&self) -> Statistics {
        let mut total = Statistics { threads: self.streams.len() as u64, ..Statistics::default() };
        let mut executed_sum = 0;
        for stream in &self.streams {
            total.chunks += stream.chunks.list.len() as u64;
            total.compressed_chunks += stream.chunks.list.iter().filter(|chunk| chunk.compressed()).count() as u64;
            total.unfinished_chunks += u64::from(stream.chunks.is_unfinished());
            total.file_bytes += stream.file_bytes();
            let finished = stream.chunks.list.iter().filter(|chunk| chunk.finished);
            total.record_bytes += finished.clone().map(Chunk::record_bytes).sum::<u64>();
            total.stored_bytes += finished.map(Chunk::stored_bytes).sum::<u64>();
            let mut executed = 0;
            let mut reader = stream.reader();
            loop {
                match reader.next_record() {
                    Ok(Some(record)) => total.count(&record, &mut executed),
                    Ok(None) => break,
                    Err(fault) => {
                        let name = stream.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                        total.faults.push((name, fault));
                        break;
                    }
                }
            }
            if let Some(unfinished) = stream.chunks.list.last().filter(|chunk| !chunk.finished) {
                let written = reader.good_until().saturating_sub(unfinished.offset_of(0));
                total.record_bytes += written;
                total.stored_bytes += written;
            }
            executed_sum += executed;
        }
        total.accesses_executed = executed_sum.max(self.header.accesses_executed);
        total
    }

    /// Writes the statistics and what the header says, one fact a line.
    pub fn stat(&self, out: &mut dyn Write) -> Result<(), TraceError> {
        let total = self.statistics();
        let header = &self.header;
        let mode = match header.mode {
            RunMode::Off => "off",
            RunMode::Free => "free",
            RunMode::Serial => "serial",
        };
        let state = match header.state {
            RunState::Running => "incomplete: the program was killed, or still runs",
            RunState::Complete => "complete",
            RunState::Stopped => "stopped by the runtime: its outcome was decided",
            RunState::Crashed => "crashed: the program died of a signal",
        };
        let kept = total.accesses_kept();
        match header.origin {
            Origin::Initial => {}
            Origin::Forked => writeln!(out, "origin             forked at event {} of its parent", header.forked_at)?,
            Origin::Executed => writeln!(out, "origin             a program that another process started")?,
        }
        writeln!(out, "mode               {mode}")?;
        writeln!(out, "state              {state}")?;
        if header.outcome != RunOutcome::None {
            writeln!(out, "outcome            {:?} at turn {}", header.outcome, header.outcome_turn)?;
        }
        writeln!(out, "threads            {}", total.threads)?;
        writeln!(out, "switches           {} ({} forced)", header.switches, header.forced_handovers)?;
        writeln!(out, "chunks             {} ({} unfinished)", total.chunks, total.unfinished_chunks)?;
        writeln!(out, "bytes              {} ({} in files)", total.record_bytes, total.file_bytes)?;
        if total.compressed_chunks > 0 {
            let Statistics { compressed_chunks, stored_bytes, .. } = total;
            writeln!(out, "compressed         {compressed_chunks} chunks; all are stored as {stored_bytes} bytes")?;
        }
        writeln!(out, "accesses executed  {}", total.accesses_executed)?;
        writeln!(out, "accesses kept      {kept}")?;
        if header.notes.filtered() {
            writeln!(out, "accesses filtered  {}", header.accesses_redundant)?;
        }
        writeln!(
            out,
            "bytes per access   {} kept, {} executed",
            ratio(total.stored_bytes, kept),
            ratio(total.stored_bytes, total.accesses_executed)
        )?;
        for (class, count) in &total.accesses {
            writeln!(out, "  {:<20} {count}", format!("{class:?}"))?;
        }
        writeln!(out, "  {:<20} {}", "of these ranges", total.ranges)?;
        writeln!(out, "operations         {}", total.operations.values().sum::<u64>())?;
        for (op, count) in &total.operations {
            writeln!(out, "  {:<20} {count}", op.name())?;
        }
        writeln!(out, "turns              {}", total.turns)?;
        if total.flow > 0 {
            writeln!(out, "ways of control    {}", total.flow)?;
        }
        if total.values > 0 {
            writeln!(out, "values             {}", total.values)?;
        }
        writeln!(out, "call contexts      {}", total.contexts)?;
        self.stat_modules(out)?;
        if let Some(crash) = header.crash {
            writeln!(out, "crash              {crash}")?;
        }
        for loss in header.losses() {
            writeln!(out, "note: {loss}")?;
        }
        for phrase in header.phrases() {
            writeln!(out, "note: {phrase}")?;
        }
        if let Some(sequence) = header.not_reexecutable_from {
            writeln!(out, "note: a re-execution may differ from sequence number {sequence} on")?;
        }
        for (file, fault) in &total.faults {
            writeln!(out, "damaged: {file} at byte {}: {}", fault.offset, fault.what)?;
        }
        Ok(())
    }

    fn stat_modules(&self, out: &mut dyn Write) -> Result<(), TraceError> {
        let loaded = self.modules.lines.iter().filter_map(|line| match line {
            ModuleLine::Loaded { module, .. } => Some(module),
            ModuleLine::Unloaded { .. } => None,
        });
        writeln!(out, "modules            {}", loaded.clone().count())?;
        for module in loaded {
            writeln!(
                out,
                "  {:#014x} {} {}",
                module.base,
                harmless(module.build_id.as_deref().unwrap_or("-")),
                harmless(&module.path)
            )?;
        }
        Ok(())
    }
}

impl Statistics {
    fn count(&mut self, record: &Record, executed: &mut u64) {
        match record {
            Record::Access { class, .. } => *self.accesses.entry(*class).or_default() += 1,
            Record::Range { class, .. } => {
                *self.accesses.entry(*class).or_default() += 1;
                self.ranges += 1;
            }
            Record::Sync(sync) => *self.operations.entry(sync.op).or_default() += 1,
            Record::Turn { .. } => self.turns += 1,
            Record::Executed { count } => *executed = (*executed).max(*count),
            Record::Context { .. } | Record::Frame { .. } => {}
            Record::Activation { .. } | Record::Segment { .. } | Record::Resume { .. } => self.flow += 1,
            Record::Value { .. } => self.values += 1,
            Record::ContextDefinition { .. } => self.contexts += 1,
        }
    }
}

fn ratio(bytes: u64, accesses: u64) -> String {
    match accesses {
        0 => "-".to_owned(),
        _ => format!("{:.2}", bytes as f64 / accesses as f64),
    }
}
