//! `rashomon minimise`: a stored finding's schedule becomes a shorter one.

use super::trust::run_that_may;
use super::{NOTHING_FORCED, Ui, end_children_on_interruption, open_store, program_of, settings_of};
use crate::arguments::ConfirmOptions;
use crate::exit::Exit;
use crate::progress::Reporter;
use crate::terminal::print;
use anyhow::Result;
use rashomon_event::counted;
use rashomon_pipeline::{Binaries, Job};
use std::path::Path;
use std::time::Duration;

pub fn minimise(
    ui: Ui,
    finding: &str,
    store: Option<&Path>,
    (executions, budget): (u64, Duration),
    timeout: Option<Duration>,
    trust: bool,
) -> Result<Exit> {
    end_children_on_interruption();
    let store = open_store(store)?;
    let finding = store.finding(finding)?;
    store.use_alone()?;
    let (run, _) = run_that_may(ui, &store, trust)?;
    let program = program_of(&run)?;
    let options = ConfirmOptions { forced_timeout: timeout, ..NOTHING_FORCED };
    let settings = settings_of(&run, &options)?;
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() };
    let mut reporter = Reporter::new(ui.quiet);
    let shortened = job.minimise(&run, &finding, (executions, budget), &mut reporter)?;
    reporter.finish();
    let id = &shortened.finding.id;
    if !shortened.shown {
        print(&format!("{id}: not again: its schedule does not show it\n"))?;
        return Ok(Exit::Different);
    }
    let turns = shortened.finding.schedule.as_ref().map_or(0, |schedule| schedule.turns.len());
    let mut text = format!(
        "{id}: {} where there were {}, after {}\n",
        counted(turns as u64, "turn"),
        shortened.before,
        counted(shortened.executions, "execution")
    );
    for note in shortened.finding.notes.iter().filter(|note| note.starts_with("critical order")) {
        text.push_str(&format!("{note}\n"));
    }
    print(&text)?;
    Ok(Exit::Success)
}
