//! `rashomon check` and `rashomon record`.

use super::{Ui, end_children_on_interruption, fixed_plan, plan_of_check, present, randomises, reporter, settings_for};
use crate::arguments::{ConfirmOptions, Filter, ReportOptions, RunOptions};
use crate::exit::Exit;
use crate::live;
use crate::program::{self, Inspection, Instrumentation};
use crate::progress::Reporter;
use crate::runtime;
use crate::terminal::{error_for_child, say};
use crate::wrapper::{self, Language};
use anyhow::{Context as _, Result, bail};
use rashomon_confirm::{Output, Program};
use rashomon_pipeline::store::DEFAULT_BASE;
use rashomon_pipeline::store::run::{RUN_FORMAT, RUN_VERSION};
use rashomon_pipeline::store::seal;
use rashomon_pipeline::witness::WitnessSettings;
use rashomon_pipeline::{Binaries, Job, RunRecord, Scheduling, Settings, ShellText, Store, StoredClient, Tally};
use rashomon_report::{Counts, RunSummary};
use rashomon_trace::{Recording, Stream, processes};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn check(
    ui: Ui,
    run: &RunOptions,
    confirm: &ConfirmOptions,
    report: &ReportOptions,
    file: Option<PathBuf>,
    command: Vec<OsString>,
) -> Result<Exit> {
    end_children_on_interruption();
    // What ends before there is a report leaves none: an older one is not this one's.
    report.json.as_deref().map(live::forget).transpose()?;
    let Some(prepared) = prepare(run, file, command)? else { return Ok(Exit::Failed) };
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
    let json_to_output = report.json.as_deref() == Some(Path::new("-"));
    let output = if json_to_output { Output::ToError } else { Output::Inherit };
    let settings = settings_for(options, Some(confirm), prepared.run.base_time_nanoseconds, output)?;
    let Prepared { program, store, mut run } = prepared;
    let symbols = Binaries::trusting(&run.trusted_libraries);
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let mut reporter = reporter(ui, report);
    let mut tally = Tally::default();
    let gathered = job.gather(&mut run, plan_of_check(options).as_mut(), &mut tally, &mut reporter)?;
    let total = gathered.deadlines.total;
    let stopped = job.confirm_all(&run, gathered, &mut tally, &mut reporter)?;
    let search = total.limit(confirm.search);
    if stopped.is_none()
        && !search.is_zero()
        && run.recordings.iter().all(|recording| recording.policy != Scheduling::Free.name())
    {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let witnessed = job.find_witnesses(&run, &WitnessSettings::of_check(search, jobs), &mut reporter)?;
        tally.executions += witnessed.executions;
    }
    let summary = RunSummary { interrupted: stopped.is_some(), ..job.summary(&run, &tally) };
    store.write_summary(&summary)?;
    reporter.finish();
    let findings = store.findings()?;
    let met = present(ui, &findings, &summary, report)?;
    // What was found counts more than what could not be tried.
    if let Some(error) = stopped.filter(|_| !met) {
        return Err(error.into());
    }
    Ok(Checked { met, exit: Exit::of_program(summary.exit), counts: Counts::of(&findings) })
}

pub fn record(ui: Ui, run: &RunOptions, command: Vec<OsString>) -> Result<Exit> {
    end_children_on_interruption();
    let Some(Prepared { program, store, run: mut record }) = prepare(run, None, command)? else { return Ok(Exit::Failed) };
    let settings: Settings = settings_for(run, None, record.base_time_nanoseconds, Output::Inherit)?;
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &Binaries::new() };
    let mut reporter = Reporter::new(ui.quiet);
    job.record_all(&mut record, &mut fixed_plan(run), &mut reporter)?;
    reporter.finish();
    let summary = job.summary(&record, &Tally::default());
    store.write_summary(&summary)?;
    if !ui.quiet {
        say!("recorded in {}", store.path().display());
        for number in (0..record.recordings.len() as u32).filter(|_| run.filter.filter == Filter::Tree) {
            say!("{}", Saving::of(&store.recording(number))?);
        }
    }
    Ok(Exit::of_program(summary.exit))
}

/// What the filter spared a recording, over all its processes.
struct Saving {
    executed: u64,
    redundant: u64,
    bytes: u64,
}

impl Saving {
    fn of(recording: &Path) -> Result<Self> {
        let mut saving = Self { executed: 0, redundant: 0, bytes: 0 };
        for process in processes(recording)? {
            let recording = Recording::open(&process.folder)?;
            saving.executed += recording.header.accesses_executed;
            saving.redundant += recording.header.accesses_redundant;
            saving.bytes += recording.streams.iter().map(Stream::file_bytes).sum::<u64>();
        }
        Ok(saving)
    }
}

impl fmt::Display for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RECORD_BYTES: u64 = 8;
        let Self { executed, redundant, bytes } = self;
        let spared = redundant * RECORD_BYTES;
        let share = 100.0 * spared as f64 / ((bytes + spared) as f64).max(1.0);
        write!(
            f,
            "of {executed} accesses {redundant} were redundant and are not recorded: {bytes} bytes, {spared} spared ({share:.0} %)"
        )
    }
}

pub struct Prepared {
    pub program: Program,
    pub store: Store,
    pub run: RunRecord,
}

/// The program, compiled if need be, and a store for it. `None`: the compiler refused, and said why.
pub fn prepare(options: &RunOptions, file: Option<PathBuf>, mut command: Vec<OsString>) -> Result<Option<Prepared>> {
    if let Some(path) = &options.stdin {
        // Before there is a store of nothing.
        rashomon_files::open_input(path).with_context(|| format!("cannot read --stdin {}", path.display()))?;
    }
    let source = file.as_deref().and_then(|file| Language::of(file).map(|language| (file.to_path_buf(), language)));
    let (store, inspection) = match (source, file) {
        (Some((file, language)), _) => {
            if !file.is_file() {
                bail!(program::Unfit::NotFound(format!("{}: no such file", file.display())));
            }
            let store = new_store(options, Path::new(file.file_stem().unwrap_or(file.as_os_str())))?;
            let Some(executable) = compile(&store, &file, language)? else { return Ok(None) };
            let inspection = program::inspect(executable.as_os_str())?;
            (store, inspection)
        }
        (None, file) => {
            if let Some(file) = file {
                command.insert(0, file.into());
            }
            if command.is_empty() {
                bail!("nothing to run: write `rashomon check FILE.c` or `rashomon check -- PROG ARGS`");
            }
            let inspection = program::inspect(&command.remove(0))?;
            (new_store(options, &inspection.path)?, inspection)
        }
    };
    prepare_inspected(options, store, inspection, command, Vec::new()).map(Some)
}

/// `environment`: what every execution has to find in its own, now and when a finding is replayed.
pub fn prepare_inspected(
    options: &RunOptions,
    store: Store,
    inspection: Inspection,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
) -> Result<Prepared> {
    for note in &inspection.notes {
        say!("{note}");
    }
    store.use_alone()?;
    if let Err(error) = seal::key() {
        say!("the store cannot be sealed as yours ({error}); commands that run it again will want --trust");
    }
    let run = run_record(options, &inspection, &arguments, &environment)?;
    let program = Program {
        executable: inspection.path,
        arguments,
        directory: run.directory.to_path(),
        library_path: if run.loads_runtime { Some(runtime::folder()?) } else { None },
        randomise_addresses: run.randomise_addresses,
        environment,
        before_each: options.before_each.clone(),
        before_each_limit: Some(options.timeout).filter(|limit| !limit.is_zero()),
        client: options.client.asked(),
    };
    Ok(Prepared { program, store, run })
}

fn new_store(options: &RunOptions, program: &Path) -> Result<Store> {
    Ok(match &options.output {
        Some(folder) => Store::create_at(folder)?,
        None => Store::create_in(Path::new(DEFAULT_BASE), program)
            .context("no store in this folder; --output FOLDER names another one")?,
    })
}

fn run_record(
    options: &RunOptions,
    inspection: &Inspection,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<RunRecord> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let directory = std::env::current_dir().context("cannot tell the working directory")?;
    let text = |text: &OsString| ShellText::from(text.as_os_str());
    let input = options.stdin.as_deref().map(std::path::absolute).transpose()?;
    Ok(RunRecord {
        format: RUN_FORMAT.into(),
        version: RUN_VERSION,
        executable: ShellText::from(inspection.path.as_os_str()),
        arguments: arguments.iter().map(text).collect(),
        directory: ShellText::from(directory.as_os_str()),
        randomise_addresses: randomises(options.aslr),
        environment: environment.iter().map(|(name, value)| (text(name), text(value))).collect(),
        before_each: options.before_each.as_deref().map(ShellText::from),
        client: options.client.asked().as_ref().map(StoredClient::from),
        input: input.as_deref().map(|path| ShellText::from(path.as_os_str())),
        loads_runtime: inspection.instrumentation != Instrumentation::Linked,
        quantum: options.quantum,
        base_time_nanoseconds: u64::try_from(now.as_nanos()).unwrap_or(0),
        trace_limit: options.trace_limit.saturating_mul(1 << 20),
        processes: options.processes,
        trusted_libraries: options.trust.libraries.clone(),
        limit_milliseconds: u64::try_from(options.timeout.as_millis()).ok().filter(|limit| *limit > 0),
        recordings: Vec::new(),
        notes: inspection.notes.clone(),
    })
}

/// What the compiler says is shown as it is.
fn compile(store: &Store, file: &Path, language: Language) -> Result<Option<PathBuf>> {
    let folder = store.build_folder();
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let executable = folder.join(file.file_stem().unwrap_or(file.as_os_str()));
    let compiler = language.compiler(true);
    let mut arguments: Vec<OsString> = ["-g", "-O1", "-pthread"].map(OsString::from).into();
    // The full path, so that reports can be read from anywhere.
    arguments.push(std::path::absolute(file)?.into());
    arguments.extend(["-o".into(), executable.clone().into_os_string()]);
    let mut command = wrapper::command(&compiler, &arguments)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(error_for_child())
        .status()
        .with_context(|| format!("cannot execute the compiler {}; set CC or CXX", compiler.to_string_lossy()))?;
    if !status.success() {
        say!("{} was not compiled", file.display());
        return Ok(None);
    }
    Ok(Some(executable))
}
