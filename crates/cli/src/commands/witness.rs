//! `rashomon witness`: lockset warnings, and an execution for each that is no false alarm.

use super::prepare::{Prepared, prepare};
use super::{Ui, end_children_on_interruption, present, processors, record_all, refuse_filter, reporter, settings_for};
use crate::arguments::{ReportOptions, RunOptions, Target, WitnessOptions};
use crate::bounds::{Bounds, WITNESS_BUDGET};
use crate::exit::Exit;
use crate::terminal::print;
use anyhow::Result;
use rashomon_event::counted;
use rashomon_pipeline::engines::{self, witness::Witness};
use rashomon_pipeline::program::Output;
use rashomon_pipeline::witness::suffix::Suffix;
use rashomon_pipeline::witness::{LocksetStates, WitnessSettings, Witnessed};
use rashomon_pipeline::{Binaries, Case, Job, Tally, UnseenCalls};

pub fn witness(ui: Ui, run: &RunOptions, options: &WitnessOptions, report: &ReportOptions, target: Target) -> Result<Exit> {
    refuse_filter(&run.filter, "rashomon witness")?;
    end_children_on_interruption();
    let Some(Prepared { program, store, run: mut record }) = prepare(run, target)? else { return Ok(Exit::Failed) };
    let bounds = Bounds::of(options.budget, WITNESS_BUDGET);
    let mut settings = settings_for(run, None, bounds, record.base_time_nanoseconds, Output::Discard)?;
    settings.record.unseen_calls = UnseenCalls::Unrecorded;
    settings.forced_limit = options.timeout_of_one;
    settings.times = 2;
    let settings = settings.of_part(options.shard);
    let symbols = Binaries::new();
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    record_all(&job, &mut record, run, &mut reporter)?;
    let mut engine = Witness::new(WitnessSettings {
        states: if options.eraser { LocksetStates::Eraser } else { LocksetStates::None },
        exclude: !options.no_exclusion,
        hint: !options.no_hint,
        extend: !options.short_prefix,
        suffix: match options.strategy.as_str() {
            "dpor" => Suffix::Dpor,
            _ => Suffix::Preemptions { most: options.preemptions, remember: !options.no_reduction },
        },
        schedules: options.schedules,
        steps: options.steps,
        snapshots: !options.no_snapshots,
        jobs: options.jobs.map_or_else(processors, usize::from),
        undecided: false,
    });
    engines::run(&mut engine, &mut Case::new(&job, &mut record, &mut reporter), bounds.rest())?;
    let witnessed = engine.witnessed;
    reporter.finish();
    print(&format!("the recording executed {}\n", counted(witnessed.accesses, "access")))?;
    print(&format!(
        "{}, {} of which no second access by another thread was recorded\n",
        counted(witnessed.warnings as u64, "lockset warning"),
        witnessed.spurious
    ))?;
    for row in &witnessed.searched {
        print(&format!(
            "{}: {} | {}: {}, {:.3} s, behind {}\n",
            row.found.words(),
            row.sites[0],
            row.sites[1],
            counted(row.schedules, "schedule"),
            row.duration.as_secs_f64(),
            counted(row.prefix, "access")
        ))?;
    }
    if witnessed.from_snapshots > 0 {
        print(&format!("{} went on from a process snapshot\n", counted(witnessed.from_snapshots, "execution")))?;
    }
    if let Some(refused) = witnessed.refused {
        print(&format!("executions began at the beginning where there could be no process snapshot: {}\n", refused.words()))?;
    }
    let Witnessed { events, threads, executions, .. } = witnessed;
    let summary = job.summary(&record, &Tally { events, threads, executions, ..Tally::default() });
    store.write_summary(&summary)?;
    let met = present(ui, &store.findings()?, &summary, report)?;
    Ok(if met { Exit::Findings } else { Exit::Success })
}
