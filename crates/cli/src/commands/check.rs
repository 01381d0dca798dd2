//! `rashomon check`: everything in a row, in one budget.

pub mod from;
pub mod per_case;
pub mod queued;

use self::from::prepare_from;
use super::prepare::{Prepared, prepare};
use super::{Ui, end_children_on_interruption, plan_of_check, present, processors, reporter, settings_for};
use crate::arguments::{CallsName, ConfirmOptions, FromOptions, ReportOptions, RunOptions, Target};
use crate::bounds::{Bounds, CONFIRM_BUDGET};
use crate::exit::Exit;
use crate::known;
use crate::live;
use crate::progress::Reporter;
use anyhow::{Result, bail};
use rashomon_event::Finding;
use rashomon_pipeline::engines::{Asked, of_check, run_portfolio};
use rashomon_pipeline::program::Output;
use rashomon_pipeline::{Binaries, Case, Job, PipelineError, Settings};
use rashomon_report::{Counts, RunSummary};

pub fn check(
    ui: Ui,
    (run, from): (&mut RunOptions, &FromOptions),
    confirm: &ConfirmOptions,
    report: &ReportOptions,
    target: Target,
) -> Result<Exit> {
    end_children_on_interruption();
    // What ends before there is a report leaves none: an older one is not this one's.
    report.json.as_deref().map(live::forget).transpose()?;
    let prepared = match &from.from {
        Some(path) => prepare_from(ui, run, (path, from), target)?,
        None => {
            let Some(prepared) = prepare(run, target)? else { return Ok(Exit::Failed) };
            prepared
        }
    };
    let checked = check_prepared(ui, run, confirm, report, prepared)?;
    Ok(if checked.met { Exit::Findings } else { checked.exit })
}

/// What came of checking one program.
pub struct Checked {
    /// Whether `--fail-on` is met.
    pub met: bool,
    /// The program's own.
    pub exit: Exit,
    pub counts: Counts,
}

pub fn check_prepared(
    ui: Ui,
    options: &RunOptions,
    confirm: &ConfirmOptions,
    report: &ReportOptions,
    prepared: Prepared,
) -> Result<Checked> {
    let executed = execute((options, confirm, report), reporter(ui, report), prepared)?;
    let Executed { findings, summary, stopped } = executed;
    let met = present(ui, &findings, &summary, report)?;
    // What was found counts more than what could not be tried.
    if let Some(error) = stopped.filter(|_| !met) {
        return Err(error.into());
    }
    Ok(Checked { met, exit: Exit::of_program(summary.exit), counts: Counts::of(&findings) })
}

/// What came of it before anything is told.
pub struct Executed {
    pub findings: Vec<Finding>,
    pub summary: RunSummary,
    /// Why it ended early.
    pub stopped: Option<PipelineError>,
}

/// With a report on standard output the program's own output goes elsewhere.
pub fn execute(
    (options, confirm, report): (&RunOptions, &ConfirmOptions, &ReportOptions),
    mut reporter: Reporter,
    prepared: Prepared,
) -> Result<Executed> {
    let output = if report.to_output() { Output::ToError } else { Output::Inherit };
    let bounds = Bounds::of(confirm.budget, CONFIRM_BUDGET);
    if matches!(options.filter.unseen_calls, Some(CallsName::Every | CallsName::Naive)) {
        bail!("--unseen-calls=every and =naive are for `rashomon record`: nothing can be forced from such recordings");
    }
    let settings = Settings {
        postponed: known::postponed(report.all_suppressions(), report.baseline.clone()),
        ..settings_for(options, Some(confirm), bounds, prepared.run.base_time_nanoseconds, output)?
    };
    let Prepared { program, store, mut run } = prepared;
    let symbols = Binaries::trusting(&run.trusted_libraries);
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut plan = plan_of_check(options, settings.shard);
    let mut asked = Asked {
        plan: Some(plan.as_mut()),
        stored: false,
        search: confirm.search,
        jobs: processors(),
        budget: settings.budget.total,
        engines: confirm.engines.clone(),
        feeds_back: options.recordings.is_none() && options.policy.is_none(),
    };
    let mut case = Case::new(&job, &mut run, &mut reporter);
    run_portfolio(of_check(&mut asked), &mut case)?;
    let Case { tally, stopped, .. } = case;
    let summary = RunSummary { interrupted: stopped.is_some(), ..job.summary(&run, &tally) };
    store.write_summary(&summary)?;
    reporter.finish();
    Ok(Executed { findings: store.findings()?, summary, stopped })
}
