//! `rashomon confirm`: what is recorded is analysed again, and what is found is forced.

use super::trust::{add_trusted, run_that_may};
use super::{
    Ui, check_binaries, conclude, end_children_on_interruption, engine_of, open_store, processors, program_of, reporter,
    settings_of,
};
use crate::arguments::{ConfirmOptions, PredictEngine, ReportOptions, TrustOptions};
use crate::exit::Exit;
use crate::known;
use anyhow::Result;
use rashomon_pipeline::engines::{Asked, of_check, run_portfolio};
use rashomon_pipeline::{Binaries, Case, Job, Settings};
use rashomon_report::RunSummary;
use std::path::PathBuf;
use std::time::Duration;

pub fn confirm(
    ui: Ui,
    trace: Option<PathBuf>,
    (trust, may): (&TrustOptions, bool),
    ((engine, window), confirm): ((Option<PredictEngine>, Option<u32>), &ConfirmOptions),
    report: &ReportOptions,
) -> Result<Exit> {
    end_children_on_interruption();
    let store = open_store(trace.as_deref())?;
    store.use_alone()?;
    let (mut run, origin) = run_that_may(ui, &store, may)?;
    add_trusted(&store, (&mut run, &origin), trust)?;
    let program = program_of(&run)?;
    check_binaries(&store, &run)?;
    let postponed = known::postponed(report.all_suppressions(), report.baseline.clone());
    let settings = Settings { engine: engine_of(engine, window)?, postponed, ..settings_of(&run, confirm)? };
    let symbols = Binaries::trusting(&run.trusted_libraries);
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    let mut case = Case::new(&job, &mut run, &mut reporter);
    let mut asked = Asked {
        plan: None,
        stored: true,
        search: Duration::ZERO,
        jobs: processors(),
        budget: settings.budget.total,
        engines: Vec::new(),
        feeds_back: false,
    };
    run_portfolio(of_check(&mut asked), &mut case)?;
    let Case { tally, stopped, .. } = case;
    let summary = RunSummary { interrupted: stopped.is_some(), ..job.summary(&run, &tally) };
    store.write_summary(&summary)?;
    reporter.finish();
    let exit = conclude(ui, &store.findings()?, &summary, report)?;
    match stopped {
        Some(error) if exit != Exit::Findings => Err(error.into()),
        _ => Ok(exit),
    }
}
