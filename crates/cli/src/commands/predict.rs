//! `rashomon predict`: what a recording or somebody else's trace says of other schedules. Nothing is executed, but that with the
//! engine `causality` a recording of a store is replayed where values that it lacks may show more.

use super::trace::files::how_to_read;
use super::trust::add_trusted;
use super::{
    NOTHING_FORCED, Ui, check_binaries, conclude, declarations, end_all_on_interruption, end_children_on_interruption, engine_of,
    open_store, program_of, reporter, settings_of,
};
use crate::arguments::{ConfirmOptions, PredictEngine, Reading, ReportOptions, TrustOptions};
use crate::exit::Exit;
use crate::progress::Reporter;
use crate::terminal::show;
use crate::waiting::Waiting;
use anyhow::{Result, bail};
use rashomon_event::{Deadline, counted};
use rashomon_pipeline::analyse::Engine;
use rashomon_pipeline::analyse::agreement::Agreement;
use rashomon_pipeline::analyse::imported::predict_file;
use rashomon_pipeline::analyse::traces::each_trace;
use rashomon_pipeline::check::analyse_session;
use rashomon_pipeline::check::dependences::judge_dependences;
use rashomon_pipeline::engines::{self, predict::Predict};
use rashomon_pipeline::findings::declared::Declarations;
use rashomon_pipeline::shard::Shard;
use rashomon_pipeline::{Binaries, Case, Job, Observer as _, Origin, Progress, Settings, Tally};
use rashomon_report::RunSummary;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn predict(
    ui: Ui,
    trace: Option<PathBuf>,
    ((chosen, window), within, shard): ((Option<PredictEngine>, Option<u32>), Duration, Shard),
    correlated: Option<&Path>,
    reading: &Reading,
    trust: &TrustOptions,
    report: &ReportOptions,
) -> Result<Exit> {
    end_all_on_interruption();
    let declared = declarations(correlated)?;
    let exit = predict_by(ui, trace.clone(), (engine_of(chosen, window)?, within, shard), &declared, reading, trust, report)?;
    if chosen == Some(PredictEngine::All) {
        let path = trace
            .as_deref()
            .filter(|path| *path != Path::new("-"))
            .map_or_else(|| open_store(None).map(|store| store.path().to_path_buf()), |path| Ok(path.to_path_buf()))?;
        compare(ui, &path, within)?;
    }
    Ok(exit)
}

/// How far the engines agree, each asked alone.
fn compare(ui: Ui, path: &Path, within: Duration) -> Result<()> {
    let deadline = Deadline::within_if_any(within);
    let waiting = Waiting::new(ui.quiet, "asking each engine alone", deadline);
    let mut agreement = Agreement::default();
    each_trace(path, |trace| agreement.add(trace, deadline))?;
    drop(waiting);
    show(&agreement.text());
    Ok(())
}

fn predict_by(
    ui: Ui,
    trace: Option<PathBuf>,
    (engine, within, shard): (Engine, Duration, Shard),
    declared: &Declarations,
    reading: &Reading,
    trust: &TrustOptions,
    report: &ReportOptions,
) -> Result<Exit> {
    let session = trace.as_deref().filter(|path| path.join(rashomon_pipeline::trace::HEADER_FILE).is_file());
    let file = trace.as_deref().filter(|path| path.is_file() || *path == Path::new("-"));
    if let Some(path) = session.or(file).filter(|_| !shard.is_whole()) {
        bail!("{} is no store: --shard divides the recordings of a store", path.display());
    }
    if let Some(session) = session {
        return predict_session(ui, session, (engine, within), declared, trust, report);
    }
    if let Some(file) = file {
        return predict_imported(ui, file, (engine, within), reading, report);
    }
    let store = open_store(trace.as_deref())?;
    end_children_on_interruption();
    store.use_alone()?;
    let (mut run, origin) = store.run_and_origin()?;
    add_trusted(&store, (&mut run, &origin), trust)?;
    check_binaries(&store, &run)?;
    if !shard.is_whole() && run.recordings.len() < shard.of().1 {
        let recordings = counted(run.recordings.len() as u64, "recording");
        bail!("{} has {recordings}: there is nothing for some part of --shard {shard}", store.path().display());
    }
    let settings = Settings { engine, ..settings_of(&run, &ConfirmOptions { predict_within: Some(within), ..NOTHING_FORCED })? };
    let program = program_of(&run)?;
    let symbols = Binaries::trusting(&run.trusted_libraries);
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    reporter.progress(Progress::Until(Deadline::within_if_any(within)));
    let mut case = Case::new(&job, &mut run, &mut reporter);
    case.may_replay = matches!(engine, Engine::Causality | Engine::Windows(_)) && may_replay(&origin);
    engines::run(&mut Predict::of(shard), &mut case, Deadline::NEVER)?;
    job.tell_alike(&mut case.tally, case.observer)?;
    let mut tally = case.tally;
    let sessions: Vec<PathBuf> = (0..run.recordings.len() as u32)
        .filter(|number| shard.has_place(*number as usize))
        .map(|number| store.recording(number))
        .collect();
    let sessions: Vec<&Path> = sessions.iter().map(PathBuf::as_path).collect();
    let (suspected, notes) = judge_dependences(&sessions, &symbols, declared, Deadline::within_if_any(within))?;
    suspected.iter().try_for_each(|finding| store.write_finding(finding))?;
    tell(notes, &mut tally, &mut reporter);
    let summary = job.summary(&run, &tally);
    store.write_summary(&summary)?;
    reporter.finish();
    conclude(ui, &store.findings()?, &summary, report)
}

/// Values that a recording lacks are had by executing its program, which has to be this user's.
fn may_replay(origin: &Origin) -> bool {
    *origin == Origin::Own
}

fn tell(notes: Vec<String>, tally: &mut Tally, reporter: &mut Reporter) {
    for note in notes {
        reporter.progress(Progress::Note(&note));
        tally.notes.push(note);
    }
}

/// A recording outside a store: nothing is written, and nothing can be replayed.
fn predict_session(
    ui: Ui,
    session: &Path,
    within: (Engine, Duration),
    declared: &Declarations,
    trust: &TrustOptions,
    report: &ReportOptions,
) -> Result<Exit> {
    let mut tally = Tally::default();
    let mut reporter = reporter(ui, report);
    reporter.progress(Progress::Until(Deadline::within_if_any(within.1)));
    let symbols = Binaries::trusting(&trust.remembered());
    let mut findings = analyse_session(session, &symbols, within, &mut tally, &mut reporter)?;
    let (suspected, notes) = judge_dependences(&[session], &symbols, declared, Deadline::within_if_any(within.1))?;
    findings.extend(suspected);
    tell(notes, &mut tally, &mut reporter);
    reporter.finish();
    let summary = RunSummary {
        recordings: 1,
        events: tally.events,
        threads: tally.threads,
        unexamined: tally.unexamined(),
        store: session.display().to_string(),
        notes: tally.notes,
        ..RunSummary::without_run()
    };
    conclude(ui, &findings, &summary, report)
}

/// A trace that others recorded: nothing is written, and nothing can be forced.
fn predict_imported(
    ui: Ui,
    file: &Path,
    (engine, within): (Engine, Duration),
    reading: &Reading,
    report: &ReportOptions,
) -> Result<Exit> {
    let (options, checks) = how_to_read(reading);
    let waiting = Waiting::new(ui.quiet, "predicting", Deadline::within_if_any(within));
    let predicted = predict_file(file, (engine, within), &options, checks)?;
    drop(waiting);
    let summary = RunSummary {
        recordings: 1,
        events: predicted.events,
        threads: predicted.threads,
        notes: predicted.notes,
        ..RunSummary::without_run()
    };
    conclude(ui, &predicted.findings, &summary, report)
}
