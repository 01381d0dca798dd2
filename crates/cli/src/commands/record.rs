//! `rashomon record`: one or more executions, and nothing else.

use super::prepare::{Prepared, prepare};
use super::{Ui, end_children_on_interruption, plan_of_part, settings_for};
use crate::arguments::{Filter, RunOptions};
use crate::bounds::Bounds;
use crate::exit::Exit;
use crate::progress::Reporter;
use crate::terminal::say;
use anyhow::Result;
use rashomon_event::Deadline;
use rashomon_pipeline::engines::{self, record::Record};
use rashomon_pipeline::program::Output;
use rashomon_pipeline::shard::Shard;
use rashomon_pipeline::trace::{Recording, Stream, processes};
use rashomon_pipeline::{Binaries, Case, Job, Settings, Tally};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

pub fn record(ui: Ui, run: &RunOptions, shard: Option<Shard>, command: Vec<OsString>) -> Result<Exit> {
    end_children_on_interruption();
    let mut plan = plan_of_part(run, shard.unwrap_or_default())?;
    let Some(Prepared { program, store, run: mut record }) = prepare(run, command.into())? else { return Ok(Exit::Failed) };
    let settings: Settings = settings_for(run, None, Bounds::NONE, record.base_time_nanoseconds, Output::Inherit)?;
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() };
    let mut reporter = Reporter::new(ui.quiet);
    engines::run(&mut Record::only(&mut plan), &mut Case::new(&job, &mut record, &mut reporter), Deadline::NEVER)?;
    reporter.finish();
    let summary = job.summary(&record, &Tally::default());
    store.write_summary(&summary)?;
    if !ui.quiet {
        say!("recorded in {}", store.path().display());
        for number in (0..record.recordings.len() as u32).filter(|_| run.filter.filter == Filter::Tree) {
            say!("{}", Saving::of(&store.recording(number))?);
        }
    }
    Ok(Exit::of_program(summary.exit))
}

/// What the filter spared a recording, over all its processes.
struct Saving {
    executed: u64,
    redundant: u64,
    bytes: u64,
}

impl Saving {
    fn of(recording: &Path) -> Result<Self> {
        let mut saving = Self { executed: 0, redundant: 0, bytes: 0 };
        for process in processes(recording)? {
            let recording = Recording::open(&process.folder)?;
            saving.executed += recording.header.accesses_executed;
            saving.redundant += recording.header.accesses_redundant;
            saving.bytes += recording.streams.iter().map(Stream::record_bytes).sum::<u64>();
        }
        Ok(saving)
    }
}

impl fmt::Display for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RECORD_BYTES: u64 = 8;
        let Self { executed, redundant, bytes } = self;
        let spared = redundant * RECORD_BYTES;
        let share = 100.0 * spared as f64 / ((bytes + spared) as f64).max(1.0);
        write!(
            f,
            "of {executed} accesses {redundant} were redundant and are not recorded: {bytes} \
                bytes, {spared} spared ({share:.0} %)"
        )
    }
}
