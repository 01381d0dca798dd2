//! `rashomon report`.

use super::{Ui, look_of, open_store, shown};
use crate::arguments::{LookOptions, Show};
use crate::excerpts::with_sources;
use crate::exit::Exit;
use crate::terminal::{output_is_terminal, output_width, print};
use crate::timelines::with_timelines;
use anyhow::Result;
use rashomon_pipeline::Store;
use rashomon_report::{Format, Options, ProgramExit, Report, RunSummary};
use std::path::PathBuf;

pub fn report(ui: Ui, store: Option<PathBuf>, format: &dyn Format, show: Show, look: LookOptions) -> Result<Exit> {
    let store = open_store(store.as_deref())?;
    let findings = store.findings()?;
    let summary = summary_of(&store)?;
    let colour = ui.colours(output_is_terminal());
    let look = Options { colour, width: output_width(), ..look_of(ui, shown(show), look) };
    let report = Report { findings: &findings, run: &summary };
    let look = with_timelines(format, report, with_sources(format, &findings, look));
    print(&format.report(report, &look))?;
    Ok(Exit::Success)
}

/// The numbers of a run, as far as they are known.
pub fn summary_of(store: &Store) -> Result<RunSummary> {
    if let Some(summary) = store.summary()? {
        return Ok(summary);
    }
    // It was interrupted before it could count.
    let run = store.run()?;
    Ok(RunSummary {
        command: run.command(),
        exit: run.recordings.first().map_or(ProgramExit::Unknown, |recording| recording.exit),
        recordings: run.recordings.len() as u32,
        store: store.path().display().to_string(),
        notes: vec!["the numbers are missing".into()],
        interrupted: true,
        ..RunSummary::without_run()
    })
}
