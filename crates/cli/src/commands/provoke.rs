//! `rashomon provoke`: races proven without a schedule.

use super::prepare::{Prepared, prepare};
use super::trust::run_that_may;
use super::{
    NOTHING_FORCED, Ui, end_children_on_interruption, open_store, present, processors, program_of, record_all, refuse_filter,
    reporter, settings_for, settings_of,
};
use crate::arguments::{Holding, ProvokeOptions, ReportOptions, RunOptions, Switch};
use crate::bounds::{Bounds, PROVOKE_BUDGET};
use crate::exit::Exit;
use anyhow::{Result, bail};
use rashomon_event::counted;
use rashomon_pipeline::engines::{self, provoke::Provoke};
use rashomon_pipeline::program::Output;
use rashomon_pipeline::provoke::Strategy;
use rashomon_pipeline::replay::check_recording;
use rashomon_pipeline::trace::RunHeader;
use rashomon_pipeline::{Binaries, Case, Job, ProvokeSettings, ProvokeTally, Tally, UnseenCalls};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where nothing is recorded first.
pub struct Stored {
    pub store: Option<PathBuf>,
    pub trust: bool,
}

fn provoking(options: &ProvokeOptions) -> ProvokeSettings {
    ProvokeSettings {
        executions: options.runs,
        hold: options.hold,
        jobs: options.jobs.map_or_else(processors, usize::from),
        orders: options.orders == Switch::On,
        stop: !options.to_end,
        strategy: match options.strategy {
            Holding::Targets => Strategy::Targets,
            Holding::Statements => Strategy::Statements,
            Holding::Random => Strategy::Random,
        },
        with_ordered: options.with_ordered,
        whole_budget: options.whole_budget,
        second_look: if options.strategy == Holding::Targets { options.second_look } else { Duration::ZERO },
        library: true,
    }
}

pub fn provoke(
    ui: Ui,
    run: &RunOptions,
    options: &ProvokeOptions,
    report: &ReportOptions,
    stored: Stored,
    command: Vec<OsString>,
) -> Result<Exit> {
    refuse_filter(&run.filter, "rashomon provoke")?;
    end_children_on_interruption();
    let records = !command.is_empty();
    let bounds = Bounds::of(options.budget, PROVOKE_BUDGET);
    let (prepared, settings) = if records {
        let Some(prepared) = prepare(run, command.into())? else { return Ok(Exit::Failed) };
        let output = if report.to_output() { Output::ToError } else { Output::Inherit };
        let mut settings = settings_for(run, None, bounds, prepared.run.base_time_nanoseconds, output)?;
        settings.record.unseen_calls = UnseenCalls::Unrecorded;
        (prepared, settings)
    } else {
        let store = open_store(stored.store.as_deref())?;
        store.use_alone()?;
        let (run, _) = run_that_may(ui, &store, stored.trust)?;
        let program = program_of(&run)?;
        check_recording(&store.recording(0))?;
        if RunHeader::read(&store.recording(0))?.notes.filtered() {
            bail!("{} was recorded with a filter: how often accesses happened is not in it", store.path().display());
        }
        let settings = settings_of(&run, &NOTHING_FORCED)?;
        (Prepared { program, store, run }, settings)
    };
    let settings = settings.of_part(options.shard);
    let Prepared { program, store, run: mut record } = prepared;
    let symbols = Binaries::new();
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    if records {
        record_all(&job, &mut record, run, &mut reporter)?;
    }
    let mut engine = Provoke::new(provoking(options));
    engines::run(&mut engine, &mut Case::new(&job, &mut record, &mut reporter), bounds.rest())?;
    let told = engine.told;
    reporter.finish();
    let header = RunHeader::read(&store.recording(0))?;
    let tally = Tally {
        threads: header.threads,
        executions: told.executions,
        untried: told.open,
        notes: [words(&told)]
            .into_iter()
            .chain((told.recordings + told.varied > 0).then(|| more_words(&told)))
            .chain(told.notes.iter().cloned())
            .collect(),
        ..Tally::default()
    };
    let summary = job.summary(&record, &tally);
    // The numbers of what was checked before say more than those of a campaign.
    if records {
        store.write_summary(&summary)?;
    }
    let met = present(ui, &store.findings()?, &summary, report)?;
    Ok(match (met, records) {
        (true, _) => Exit::Findings,
        (false, true) => Exit::of_program(summary.exit),
        (false, false) => Exit::Success,
    })
}

/// The numbers of a provocation in a line.
fn words(told: &ProvokeTally) -> String {
    format!(
        "provocation: {} of conflicting accesses: {} proven, {} not provoked, {} not reached, {} undecided; \
         {} with {}, decided in {:.3} s; pairs at the same places were merged, before that {}",
        counted(told.targets, "pair"),
        told.proven,
        told.not_provoked,
        told.not_reached,
        told.open,
        counted(told.executions, "execution"),
        counted(told.holds, "hold"),
        told.deciding.as_secs_f64(),
        told.merged
    )
}

/// What followed when all pairs were decided.
fn more_words(told: &ProvokeTally) -> String {
    format!(
        "when they were decided: {}, {}",
        counted(told.recordings, "further recording"),
        counted(told.varied, "varied execution")
    )
}
