//! `rashomon analyse`: linear analyses over a trace from anywhere.

use super::trace::files::{is_file, open_checked};
use super::trace::loaded_until;
use super::{Ui, processors};
use crate::arguments::{AnalyseOptions, FailOnFound};
use crate::exit::Exit;
use crate::progress::Counter;
use crate::terminal::print;
use crate::terminal::say;
use crate::waiting::Waiting;
use anyhow::{Result, bail};
use rashomon_event::Deadline;
use rashomon_pipeline::analyse::filter::Filter;
use rashomon_pipeline::analyse::linear::analysis_of;
use rashomon_pipeline::analyse::linear::{Kind, LinearResults, Settings};
use rashomon_pipeline::analyse::sources::name_as_in_sources;
use rashomon_pipeline::trace::file::{Source, TraceError};
use rashomon_pipeline::{Binaries, Recorded, analyse::timed};
use rashomon_report::{Format, json::Json};
use std::io::Error;
use std::path::{Path, PathBuf};

pub fn analyse(ui: Ui, options: &AnalyseOptions) -> Result<Exit> {
    let settings = Settings {
        kinds: options.analysis.iter().map(|name| Kind::from(*name)).collect(),
        regions: options.regions.into(),
        window: options.window,
        workers: options.workers.unwrap_or_else(|| processors() as u32),
        memory: options.memory,
        spill_to: Some(options.spill_to.clone().unwrap_or_else(on_disk)),
    };
    let outcome = run(ui, options, &settings)?;
    for notice in &outcome.notices {
        say!("{notice}");
    }
    let name = options.trace.display().to_string();
    let format: &dyn Format = if options.json { &Json } else { options.report_format };
    let look = rashomon_report::Options { limit: options.limit, ..rashomon_report::Options::default() };
    print(&format.analysis(&analysis_of(&name, &outcome), &look))?;
    let met = match options.fail_on {
        FailOnFound::Never => false,
        FailOnFound::Any => outcome.reports.iter().any(|report| !report.findings.is_empty()),
        FailOnFound::Real => outcome.reports.iter().any(|report| report.kind.is_sound() && !report.findings.is_empty()),
    };
    Ok(if met { Exit::Findings } else { Exit::Success })
}

/// Where temporary files that are too large for memory usually go (hier(7)).
fn on_disk() -> PathBuf {
    let large = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && large.is_dir() { large.into() } else { std::env::temp_dir() }
}

fn run(ui: Ui, options: &AnalyseOptions, settings: &Settings) -> Result<LinearResults> {
    let trace = &options.trace;
    let mut shown: Option<(u32, Counter)> = None;
    let mut progress = |progress: rashomon_pipeline::analyse::linear::Progress| {
        let (_, counter) = match &mut shown {
            Some(shown) if shown.0 == progress.pass => shown,
            other => {
                if let Some((_, counter)) = other {
                    counter.finish();
                }
                other.insert((progress.pass, Counter::new(ui.quiet, "events", progress.total)))
            }
        };
        counter.reached(progress.events);
    };
    let deadline = options.budget.map_or(Deadline::NEVER, Deadline::within);
    let end = timed::End::new(deadline);
    let filter = options.filter.map(Filter::from);
    if filter.is_some_and(|filter| !settings.kinds.iter().all(|kind| filter.serves(*kind))) {
        bail!("with --filter only hb and hybrid find the same as without (--analysis hb,hybrid)");
    }
    let stream = |source| match filter {
        Some(filter) => filter.stream(source),
        None => source,
    };
    let mut left_out = filter.filter(|filter| *filter == Filter::Segment).map(|filter| filter.words(None));
    let outcome = if is_file(trace) {
        if left_out.is_none() && filter.is_some() {
            bail!("{} is a file: --filter tree and span are for recordings; --filter segment is for both", trace.display());
        }
        let mut opened = false;
        let mut open = || -> Result<Box<dyn Source + Send>, TraceError> {
            if std::mem::replace(&mut opened, true) && trace == Path::new("-") {
                let source = Error::other("it can be read only once; write it to a file, or allow more --memory");
                return Err(TraceError::Io { action: "read again", path: trace.clone(), source });
            }
            Ok(stream(end.bound(open_checked(trace, &options.reading)?)))
        };
        rashomon_pipeline::analyse::linear::analyse(&mut open, settings, &mut progress)
    } else {
        let waiting = Waiting::new(ui.quiet, "reading the recording", deadline);
        let loaded = loaded_until(trace, deadline)?;
        drop(waiting);
        if loaded.header.notes.filtered() && !settings.kinds.iter().all(|kind| Filter::Tree.serves(*kind)) {
            bail!(
                "{} was recorded with a filter: of the analyses only hb and hybrid say the same as without \
                 (--analysis hb,hybrid)",
                trace.display()
            );
        }
        let filtered = filter.and_then(|filter| Some((filter, filter.trace(&loaded.trace)?)));
        if let Some((filter, (_, statistics))) = &filtered {
            left_out = Some(filter.words(Some(statistics)));
        }
        let events = filtered.as_ref().map_or(&loaded.trace, |(_, (trace, _))| trace);
        let mut open =
            || -> Result<Box<dyn Source + Send + '_>, TraceError> { Ok(stream(end.bound(Box::new(Recorded::new(events)?)))) };
        let outcome = rashomon_pipeline::analyse::linear::analyse(&mut open, settings, &mut progress);
        outcome.map(|mut outcome| {
            name_as_in_sources(&mut outcome, &loaded, events, &Binaries::new());
            outcome
        })
    };
    if let Some((_, mut counter)) = shown {
        counter.finish();
    }
    let mut outcome = outcome?;
    outcome.notices.extend(end.words("--budget"));
    outcome.notices.extend(left_out);
    Ok(outcome)
}
