//! What each subcommand does, and what they share.

pub mod accept;
pub mod analyse;
pub mod check;
pub mod completions;
pub mod config;
pub mod confirm;
pub mod csp;
pub mod detect;
pub mod doctor;
pub mod env;
pub mod explore;
pub mod man;
pub mod merge;
pub mod minimise;
pub mod predict;
pub mod prepare;
pub mod provoke;
pub mod record;
pub mod reference;
pub mod replay;
pub mod report;
pub mod runtime_path;
pub mod schema;
pub mod trace;
pub mod trust;
pub mod witness;
pub mod worker;

use crate::arguments::{
    CallsName, Colour, ConfirmOptions, FailOn, Filter, FilterOptions, LookOptions, PredictEngine, ReportFile, ReportOptions,
    RunOptions, Show, Switch,
};
use crate::bounds::{Bounds, CONFIRM_BUDGET};
use crate::excerpts::with_sources;
use crate::exit::Exit;
use crate::known;
use crate::live::{self, Live};
use crate::progress::Reporter;
use crate::runtime;
use crate::terminal::{self, error_is_terminal, print, say};
use crate::timelines::with_timelines;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{Deadline, Finding};
use rashomon_files::Links;
use rashomon_pipeline::analyse::Engine;
use rashomon_pipeline::check::plan::{Dealt, Fixed, Next, Plan, UntilNothingNew};
use rashomon_pipeline::check::postponed::Postponed;
use rashomon_pipeline::engines::{self, record::Record};
use rashomon_pipeline::findings::declared::Declarations;
use rashomon_pipeline::program::{Client, Input, Output, Program};
use rashomon_pipeline::replay::check_recording;
use rashomon_pipeline::shard::Shard;
use rashomon_pipeline::trace::Policy;
use rashomon_pipeline::{
    Accesses, Binaries, Budget, Case, Job, RecordSettings, RunRecord, Scheduling, Settings, Store, UnseenCalls,
};
use rashomon_report::{Counts, Format as _, Report, RunSummary, Shown, json::Json, text::Text};
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time a call into the kernel may take before the runtime gives up on it.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const MEGABYTE: u64 = 1 << 20;
/// Of a file of variables that belong together.
const MOST_DECLARED: u64 = MEGABYTE;
/// Of recordings.
const USUAL_POLICY: Scheduling = Scheduling::Serial(Policy::Random);

#[derive(Clone, Copy, Debug)]
pub struct Ui {
    pub colour: Colour,
    pub quiet: bool,
}

impl Ui {
    /// Whether there are colours on a stream that is a terminal or not.
    fn colours(self, is_terminal: bool) -> bool {
        match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

pub const fn shown(show: Show) -> Shown {
    match show {
        Show::Claims => Shown::Claims,
        Show::Suspicions => Shown::Suspicions,
        Show::Everything => Shown::Everything,
    }
}

/// Whether what is found is kept in a store.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// An interruption ends the program under test, which nobody would see otherwise, and then us.
pub fn end_children_on_interruption() {
    KEEPS.store(true, Ordering::SeqCst);
    end_all_on_interruption();
}

/// The same where there is no store.
pub fn end_all_on_interruption() {
    rashomon_pipeline::program::quit_terminates();
    // A second handler in one process is refused; the first does the same.
    let _ = ctrlc::set_handler(|| {
        rashomon_pipeline::program::kill_running();
        live::interrupted();
        let kept =
            if KEEPS.load(Ordering::SeqCst) { "; what was found so far is in the store: see `rashomon report`" } else { "" };
        let explored = crate::progress::explored().map_or_else(String::new, |words| format!("; explored: {words}"));
        say!("interrupted{explored}{kept}");
        std::process::exit(130);
    });
}

/// Who tells what goes on, in words and in the JSON report.
pub fn reporter(ui: Ui, options: &ReportOptions) -> Reporter {
    let live = options.json.as_deref().map(|path| Live::begin(path, shown(options.show)));
    Reporter::telling(ui.quiet, live)
}

/// The store named, or the latest one below the working directory.
pub fn open_store(path: Option<&Path>) -> Result<Store> {
    Ok(Store::open(path.unwrap_or(Path::new(".")))?)
}

/// The program of a store, to be executed again.
pub fn program_of(run: &RunRecord) -> Result<Program> {
    let executable = run.executable.to_path();
    crate::program::find(executable.as_os_str())?;
    let variable =
        |(name, value): &(rashomon_pipeline::ShellText, rashomon_pipeline::ShellText)| -> Result<(OsString, OsString)> {
            let (name, value) = (OsString::from(name), OsString::from(value));
            let value = if name == runtime::PRELOAD { runtime::preloaded_again(&value)? } else { value };
            Ok((name, value))
        };
    Ok(Program {
        executable,
        arguments: run.arguments.iter().map(OsString::from).collect(),
        directory: run.directory.to_path(),
        library_path: if run.loads_runtime { Some(runtime::folder()?) } else { None },
        randomise_addresses: run.randomise_addresses,
        environment: run.environment.iter().map(variable).collect::<Result<_>>()?,
        before_each: run.before_each.as_ref().map(OsString::from),
        before_each_limit: run.limit_milliseconds.map(Duration::from_millis),
        client: run.client.as_ref().map(Client::from),
    })
}

/// Of commands that only look, or force one schedule once.
const NOTHING_FORCED: ConfirmOptions = ConfirmOptions {
    budget: Some(Duration::ZERO),
    expect_exit: None,
    forced_timeout: None,
    proofs: 1,
    keep: false,
    correlated: None,
    predict_within: Some(Duration::ZERO),
    engines: Vec::new(),
    search: Duration::ZERO,
    shard: None,
};

/// The deciders that were asked for, in windows of so many events if that was.
pub fn engine_of(chosen: Option<PredictEngine>, window: Option<u32>) -> Result<Engine> {
    if let Some(events) = window {
        return match chosen {
            Some(PredictEngine::Causality) => Ok(Engine::Windows(events)),
            _ => bail!("--window is for --engine causality: no other engine decides in windows that can be chosen here"),
        };
    }
    Ok(match chosen {
        None | Some(PredictEngine::All) => Engine::Cascade,
        Some(PredictEngine::Sync) => Engine::Sync,
        Some(PredictEngine::Exact) => Engine::Exact,
        Some(PredictEngine::Causality) => Engine::Causality,
        Some(PredictEngine::Optimistic) => Engine::Optimistic,
        Some(PredictEngine::Csp) => Engine::Csp,
    })
}

/// Settings for what is forced from a store: the recording's, with the confirmation's.
pub fn settings_of(run: &RunRecord, confirm: &ConfirmOptions) -> Result<Settings> {
    Ok(Settings {
        record: RecordSettings {
            scheduling: Scheduling::Serial(Policy::RunToBlock),
            seed: 0,
            quantum: run.quantum,
            input: run.input.as_ref().map_or(Input::Empty, |path| Input::File(path.to_path())),
            output: Output::Discard,
            limit: None,
            until: Deadline::NEVER,
            trace_limit: run.trace_limit,
            processes: run.processes,
            call_timeout: CALL_TIMEOUT,
            base_time_nanoseconds: run.base_time_nanoseconds,
            accesses: Accesses::Distinct,
            unseen_calls: UnseenCalls::Unrecorded,
            dependences: false,
            kept: Vec::new(),
            values: false,
        },
        expected_exit: confirm.expect_exit,
        engine: Engine::Cascade,
        budget: confirm.budget(Bounds::of(confirm.budget, CONFIRM_BUDGET)),
        forced_limit: confirm.forced_timeout,
        times: confirm.proofs,
        shard: Shard::WHOLE,
        postponed: Postponed::default(),
        correlated: Declarations::default(),
        keep: confirm.keep,
        tool: tool()?,
    }
    .of_part(confirm.shard))
}

/// Settings of a new run.
pub fn settings_for(
    run: &RunOptions,
    confirm: Option<&ConfirmOptions>,
    bounds: Bounds,
    base_time_nanoseconds: u64,
    output: Output,
) -> Result<Settings> {
    let input = run.input()?.map_or(Input::Inherit, Input::File);
    Ok(Settings {
        record: RecordSettings {
            scheduling: run.policy.unwrap_or(USUAL_POLICY),
            seed: run.seed,
            quantum: run.quantum,
            input,
            output,
            limit: Some(run.timeout).filter(|limit| !limit.is_zero()),
            until: bounds.recording,
            trace_limit: run.trace_limit.saturating_mul(MEGABYTE),
            processes: run.processes,
            call_timeout: CALL_TIMEOUT,
            base_time_nanoseconds,
            accesses: accesses(&run.filter),
            unseen_calls: calls(&run.filter),
            dependences: run.filter.dependences,
            kept: Vec::new(),
            values: run.filter.values,
        },
        expected_exit: confirm.and_then(|confirm| confirm.expect_exit),
        engine: Engine::Cascade,
        budget: confirm.map_or(Budget::NONE, |confirm| confirm.budget(bounds)),
        forced_limit: confirm.and_then(|confirm| confirm.forced_timeout),
        times: confirm.map_or(1, |confirm| confirm.proofs),
        shard: Shard::WHOLE,
        postponed: Postponed::default(),
        correlated: declarations(confirm.and_then(|confirm| confirm.correlated.as_deref()))?,
        keep: confirm.is_some_and(|confirm| confirm.keep),
        tool: tool()?,
    }
    .of_part(confirm.and_then(|confirm| confirm.shard)))
}

/// What the file declares to belong together.
pub fn declarations(file: Option<&Path>) -> Result<Declarations> {
    let Some(path) = file else { return Ok(Declarations::default()) };
    let text =
        rashomon_files::read(path, Links::Followed, MOST_DECLARED).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Declarations::of(&path.to_string_lossy(), &String::from_utf8_lossy(&text)))
}

/// Records as often as is asked for, or once, and looks at nothing.
pub fn record_all(job: &Job<'_, Binaries>, run: &mut RunRecord, options: &RunOptions, reporter: &mut Reporter) -> Result<()> {
    let mut plan = fixed_plan(options, Shard::WHOLE);
    Ok(engines::run(&mut Record::only(&mut plan), &mut Case::new(job, run, reporter), Deadline::NEVER)?)
}

/// How many threads may run at the same time.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Of the recordings that are asked for, or of one, those that a part makes.
pub fn plan_of_part(options: &RunOptions, shard: Shard) -> Result<Dealt> {
    let number = options.recordings.unwrap_or(1);
    if shard.of().1 > number as usize {
        bail!("there is nothing for some part of --shard {shard}: --recordings has to be {} at least", shard.of().1);
    }
    Ok(Dealt { first: first_recording(options), number, shard })
}

/// As many recordings as are asked for; else one.
fn fixed_plan(options: &RunOptions, shard: Shard) -> Fixed {
    Fixed { first: first_recording(options), number: options.recordings.unwrap_or(1), seeds: shard.seeds() }
}

/// As many recordings as are asked for; else until they show nothing new.
pub fn plan_of_check(options: &RunOptions, shard: Shard) -> Box<dyn Plan> {
    match options.recordings {
        Some(_) => Box::new(fixed_plan(options, shard)),
        None => {
            let alike = options.policy.is_some();
            Box::new(UntilNothingNew { first: first_recording(options), alike, seeds: shard.seeds() })
        }
    }
}

fn first_recording(options: &RunOptions) -> Next {
    Next { scheduling: options.policy.unwrap_or(USUAL_POLICY), seed: options.seed }
}

const fn accesses(options: &FilterOptions) -> Accesses {
    match options.filter {
        Filter::Tree => Accesses::Needed { locations: options.filter_locations },
        Filter::None if options.every_access => Accesses::All,
        Filter::None => Accesses::Distinct,
    }
}

/// Unless somebody asks, those that predictions need: from a filtered recording nothing is predicted.
fn calls(options: &FilterOptions) -> UnseenCalls {
    match options.unseen_calls {
        Some(which) => which.into(),
        None if options.filter == Filter::Tree => UnseenCalls::Unrecorded,
        None => UnseenCalls::Needed,
    }
}

/// For what needs to know how often accesses happened, and what they saw.
pub fn refuse_filter(options: &FilterOptions, command: &str) -> Result<()> {
    if options.filter != Filter::None {
        bail!(
            "`{command}` needs a recording of all accesses: --filter (or RASHOMON_FILTER) is for `rashomon check` and \
             `rashomon record`"
        );
    }
    if options.unseen_calls.is_some_and(|which| which != CallsName::Off) {
        bail!("--unseen-calls is for `rashomon check` and `rashomon record`, not for `{command}`");
    }
    if !options.library_globals.is_empty() {
        bail!("--library-global is for `rashomon check` and `rashomon record`, not for `{command}`");
    }
    Ok(())
}

pub const fn randomises(switch: Switch) -> bool {
    matches!(switch, Switch::On)
}

/// This very program, so that a pasted command finds it.
fn tool() -> Result<OsString> {
    Ok(std::env::current_exe().context("cannot tell where this program is")?.into())
}

/// Writes the reports of `check`, `predict` and `confirm`, and says whether `--fail-on` is met.
pub fn present(ui: Ui, findings: &[Finding], summary: &RunSummary, options: &ReportOptions) -> Result<bool> {
    let shown = shown(options.show);
    let sifted = known::sift(findings, &options.all_suppressions(), options.baseline.as_ref());
    let findings = &sifted.findings[..];
    let mut summary = summary.clone();
    summary.known += sifted.known;
    summary.notes.extend(sifted.notes);
    let report = Report { findings, run: &summary };
    let look = look_of(ui, shown, options.look);
    terminal::show(&Text.report(report, &look));
    match options.json.as_deref() {
        None => {}
        Some(path) if path == Path::new("-") => {
            live::no_more();
            print(&Json.report(report, &look))?;
        }
        Some(path) => live::write_last(path, &Json.report(report, &look))?,
    }
    for asked in &options.reports {
        write_report(asked, report, &look)?;
    }
    let counts = Counts::of(findings);
    let is_stale = options.strict && sifted.is_stale;
    Ok(match options.fail_on {
        FailOn::Proven => counts.proven > 0 || is_stale,
        FailOn::Predicted => counts.proven + counts.predicted > 0 || is_stale,
        FailOn::Never => false,
    })
}

/// Reports in files alone, of what is neither suppressed nor accepted.
pub fn write_reports(findings: &[Finding], mut summary: RunSummary, files: &[ReportFile], options: &ReportOptions) -> Result<()> {
    let sifted = known::sift(findings, &options.all_suppressions(), options.baseline.as_ref());
    summary.known += sifted.known;
    summary.notes.extend(sifted.notes);
    let report = Report { findings: &sifted.findings, run: &summary };
    let look = rashomon_report::Options { shown: shown(options.show), ..rashomon_report::Options::default() };
    files.iter().try_for_each(|asked| write_report(asked, report, &look))
}

/// A report beside the one for people: nothing of the terminal is in it.
fn write_report(asked: &ReportFile, report: Report<'_>, look: &rashomon_report::Options) -> Result<()> {
    let look = rashomon_report::Options { colour: false, width: usize::MAX, ..look.clone() };
    let look = with_timelines(asked.format, report, with_sources(asked.format, report.findings, look));
    let text = asked.format.report(report, &look);
    if asked.file == Path::new("-") {
        return print(&text);
    }
    std::fs::write(&asked.file, text).with_context(|| format!("cannot write {}", asked.file.display()))
}

/// How the report for people looks on standard error.
fn look_of(ui: Ui, shown: Shown, asked: LookOptions) -> rashomon_report::Options {
    rashomon_report::Options {
        shown,
        colour: ui.colours(error_is_terminal()),
        width: terminal::error_width(),
        folder: std::env::current_dir().ok().and_then(|folder| folder.to_str().map(str::to_owned)).unwrap_or_default(),
        full_stacks: asked.full_stacks,
        full_schedule: asked.full_schedule,
        ungrouped: asked.ungrouped,
        ..rashomon_report::Options::default()
    }
}

/// Places named after another binary would be wrong, and schedules for it lead nowhere.
pub fn check_binaries(store: &Store, run: &RunRecord) -> Result<()> {
    (0..run.recordings.len() as u32).try_for_each(|number| Ok(check_recording(&store.recording(number))?))
}

/// The reports, as the exit code of a command that executes nothing or has its program's in them.
pub fn conclude(ui: Ui, findings: &[Finding], summary: &RunSummary, report: &ReportOptions) -> Result<Exit> {
    let met = present(ui, findings, summary, report)?;
    Ok(if met { Exit::Findings } else { Exit::Success })
}
