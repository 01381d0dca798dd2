//! `rashomon explore`: schedules are tried until one fails.

use super::prepare::{Prepared, prepare};
use super::{Ui, end_children_on_interruption, present, processors, record_all, refuse_filter, reporter, settings_for};
use crate::arguments::{Accesses, ExploreOptions, ReportOptions, RunOptions, Target};
use crate::bounds::{Bounds, EXPLORE_BUDGET};
use crate::exit::Exit;
use crate::terminal::say;
use anyhow::{Result, bail};
use rashomon_pipeline::engines::{self, explore::Explore};
use rashomon_pipeline::explore::{ExpectedExit, ExploreSettings, Stops};
use rashomon_pipeline::program::Output;
use rashomon_pipeline::shard::Shard;
use rashomon_pipeline::{Binaries, Case, Job, Strategy, Tally, UnseenCalls};

pub fn explore(ui: Ui, run: &RunOptions, options: &ExploreOptions, report: &ReportOptions, target: Target) -> Result<Exit> {
    refuse_filter(&run.filter, "rashomon explore")?;
    if options.shard.is_some_and(|shard| !shard.is_whole()) && options.strategy == Strategy::Dpor {
        bail!("--shard: what `dpor` tries next follows from all that it has tried: it has no parts, `preemptions` has");
    }
    end_children_on_interruption();
    let Some(Prepared { mut program, store, run: mut record }) = prepare(run, target)? else { return Ok(Exit::Failed) };
    // As in the executions that are explored, so that what the recording shows is known of them.
    program.randomise_addresses = false;
    let bounds = Bounds::of(options.budget, EXPLORE_BUDGET);
    let mut settings = settings_for(run, None, bounds, record.base_time_nanoseconds, Output::Discard)?;
    settings.record.unseen_calls = UnseenCalls::Unrecorded;
    settings.forced_limit = options.timeout_of_one;
    let settings = settings.of_part(options.shard);
    let symbols = Binaries::new();
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    record_all(&job, &mut record, run, &mut reporter)?;
    let mut engine = Explore::new(ExploreSettings {
        strategy: options.strategy,
        schedules: options.schedules,
        preemptions: options.preemptions,
        seed: settings.record.seed,
        shard: settings.shard,
        steps: options.steps,
        stops: match options.accesses {
            Accesses::Racing => Stops::Racing,
            Accesses::None => Stops::None,
            Accesses::All => Stops::All,
        },
        expected: if options.any_exit { ExpectedExit::AnyCode } else { ExpectedExit::Code(options.exit_code) },
        minimise: if options.no_minimise { 0 } else { options.minimise_schedules },
        all: options.all,
        jobs: options.jobs.map_or_else(processors, usize::from),
        check: false,
    });
    engines::run(&mut engine, &mut Case::new(&job, &mut record, &mut reporter), bounds.rest())?;
    let explored = engine.explored;
    reporter.finish();
    if !ui.quiet {
        let seconds = explored.summary.duration.as_secs_f64();
        let end = match settings.shard {
            _ if !explored.summary.exhausted => "",
            Shard::WHOLE => "; nothing is left within the bounds",
            _ => "; nothing of this part is left within the bounds",
        };
        say!("explored {} in {seconds:.1} s{end}", explored.covered);
        for (failure, after) in &explored.found {
            say!("{failure}: schedule {after}");
        }
    }
    let tally = Tally { executions: explored.executions, ..Tally::default() };
    let summary = job.summary(&record, &tally);
    store.write_summary(&summary)?;
    let met = present(ui, &store.findings()?, &summary, report)?;
    Ok(if met { Exit::Findings } else { Exit::Success })
}
