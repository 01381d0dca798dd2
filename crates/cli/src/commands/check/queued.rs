//! `rashomon check --queue`: the parts of a check are executed by workers, and the report is made here.

use super::super::merge::merged::{Merged, Of};
use super::super::prepare::{Prepared, prepare_inspected};
use super::super::report::summary_of;
use super::super::{Ui, end_children_on_interruption, present};
use super::from::CAME_FROM;
use crate::arguments::{ConfirmOptions, QueueOptions, ReportOptions, RunOptions, Target, separated};
use crate::bounds::of_recording;
use crate::exit::Exit;
use crate::live;
use crate::program;
use crate::settings;
use crate::terminal::say;
use crate::wrapper::Language;
use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command};
use rashomon_files::Links;
use rashomon_pipeline::store::DEFAULT_BASE;
use rashomon_pipeline::trace::Recording;
use rashomon_pipeline::{Origin, RunRecord, Store};
use rashomon_queue::{Coordinator, Hash, Nats, PROTOCOL, Progress, RECORDING, ShippedFile, Unit, archive};
use rashomon_report::{ProgramExit, RunSummary};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

const USUAL_UNITS: u32 = 16;
/// How long a server that is gone may take to come back.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// Workers' business, and the coordinator takes no units.
const LEASE: Duration = Duration::from_secs(60);
/// Bytes of a file that is shipped.
const LARGEST: u64 = 1 << 31;
/// Options of `check` that are not for units.
const KEPT_BACK: [&str; 2] = ["output", "shard"];
/// Options whose values are files that a unit needs.
const FILES: [&str; 2] = [INPUT, "correlated"];
const INPUT: &str = "stdin";
/// Options of `record` that the first recording does without: it is one, and its time is a part of the budget.
const NOT_OF_RECORDING: [&str; 2] = ["recordings", "timeout"];
/// Between two lines of progress.
const TOLD_EVERY: Duration = Duration::from_secs(1);

pub fn check_queued(
    ui: Ui,
    (run, confirm, report): (&RunOptions, &ConfirmOptions, &ReportOptions),
    queue: &QueueOptions,
    target: Target,
) -> Result<Exit> {
    end_children_on_interruption();
    report.json.as_deref().map(live::forget).transpose()?;
    let Some(access) = queue.access() else { bail!("--queue names no queue") };
    if target.file.as_deref().is_some_and(|file| Language::of(file).is_some()) {
        bail!("--queue takes a program that is built already: rashomon check --queue URL -- PROG ARGS");
    }
    let mut command: Vec<OsString> = target.file.map(PathBuf::into_os_string).into_iter().chain(target.command).collect();
    if command.is_empty() {
        bail!("nothing to run: write `rashomon check --queue URL -- PROG ARGS`");
    }
    let inspection = program::inspect(&command.remove(0), run.preload)?;
    let mut shipped = Shipped::default();
    let (recording, units) = units(&inspection.path, &command, queue, (&mut shipped, time_of_recording(run, confirm)))?;
    // Before there is a folder of nothing.
    let nats = Nats::connect(&access, LEASE)?;
    let path = inspection.path.clone();
    let group = Store::group_in(Path::new(DEFAULT_BASE), &path, run.output.as_deref())
        .context("no store in this folder; --output FOLDER names another one")?;
    let Prepared { store: group, run: own, .. } = prepare_inspected(run, group, inspection, command, Vec::new())?;
    let mut gathered = Gathered { group, own, all: Merged::default() };
    let mut told = Told { quiet: ui.quiet, last: None };
    let mut tell = |progress: Progress<'_>| told.tell(&progress);
    let mut coordinator = Coordinator { exchange: &nats, patience: PATIENCE, tell: &mut tell };
    let distributed = coordinator
        .distribute(Some(&recording), &units, &shipped.contents, &mut |number, bytes| {
            gathered.add(number, bytes).map_err(|error| format!("{error:#}"))
        })
        .with_context(|| format!("what came of the units so far is in {}", gathered.group.path().display()))?;
    if let Some(reason) = distributed.unrecorded {
        gathered.all.note(format!("each unit made its first recording itself, as there was none to begin with: {reason}"));
    }
    for (number, reason) in distributed.failed {
        gathered.all.fail(&format!("unit {number}"), reason);
    }
    gathered.report(ui, report)
}

/// What came of units.
struct Gathered {
    group: Store,
    /// What is executed here when a finding is replayed, whatever a worker says.
    own: RunRecord,
    all: Merged,
}

impl Gathered {
    fn add(&mut self, number: u32, bytes: &[u8]) -> Result<()> {
        if number == RECORDING {
            return self.look_at_recording(bytes);
        }
        let folder = self.group.path().join(format!("unit-{number:04}"));
        let added = self.unpack(&folder, bytes);
        if added.is_err() {
            // The next attempt needs the place.
            let _ = fs::remove_dir_all(&folder);
        }
        let (store, summary) = added?;
        self.all.add(&format!("unit {number}"), store.findings()?, summary);
        Ok(())
    }

    /// What all units are to begin with can be read. It is not kept: each unit's store has it.
    fn look_at_recording(&mut self, bytes: &[u8]) -> Result<()> {
        let folder = tempfile::tempdir_in(self.group.path()).context("cannot create a folder for the recording")?;
        archive::unpack(bytes, folder.path())?;
        let store = Store::open(folder.path())?;
        let run = store.run()?;
        let Some(first) = run.recordings.first() else { bail!("there is no recording in the store that came") };
        Recording::open(&store.recording(0))?;
        if first.exit == ProgramExit::TimedOut {
            let seconds = Duration::from_millis(first.milliseconds).as_secs_f64();
            self.all.note(format!(
                "the first recording was ended after {seconds:.1} s: what the program would have done later was not seen; a \
                 larger --budget or --timeout shows more of it"
            ));
        }
        Ok(())
    }

    fn unpack(&self, folder: &Path, bytes: &[u8]) -> Result<(Store, RunSummary)> {
        fs::create_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        archive::unpack(bytes, folder)?;
        let store = Store::open(folder)?;
        let theirs = store.run()?;
        // The recording came from a folder that is gone.
        let told = |notes: Vec<String>| notes.into_iter().filter(|note| !note.starts_with(CAME_FROM)).collect();
        let own = RunRecord {
            recordings: theirs.recordings,
            base_time_nanoseconds: theirs.base_time_nanoseconds,
            notes: told(theirs.notes),
            ..self.own.clone()
        };
        store.write_run_of(&own, &Origin::Own)?;
        store.findings()?;
        let summary = summary_of(&store)?;
        let summary = RunSummary { store: folder.display().to_string(), notes: told(summary.notes.clone()), ..summary };
        store.write_summary(&summary)?;
        Ok((store, summary))
    }

    fn report(self, ui: Ui, report: &ReportOptions) -> Result<Exit> {
        let exit = self.all.exit();
        let (findings, summary) = self.all.finish(Of::Shards, self.own.command(), self.group.path().display().to_string());
        self.group.write_summary(&summary)?;
        let met = present(ui, &findings, &summary, report)?;
        Ok(if met { Exit::Findings } else { exit })
    }
}

/// Says how far it is.
struct Told {
    quiet: bool,
    last: Option<Instant>,
}

impl Told {
    fn tell(&mut self, progress: &Progress<'_>) {
        let may = |last: &mut Option<Instant>| {
            let may = last.is_none_or(|last| last.elapsed() >= TOLD_EVERY);
            if may {
                *last = Some(Instant::now());
            }
            may
        };
        match progress {
            Progress::Failed { number, reason } => say!("unit {number}: {reason}"),
            Progress::Unrecorded { reason } => say!("no first recording is shipped, and each unit makes its own: {reason}"),
            _ if self.quiet => {}
            Progress::Recorded { worker } => say!("the first recording is in, from {worker}; all units begin with it"),
            Progress::Again { number: RECORDING, reason } => say!("the first recording is handed out again: {reason}"),
            Progress::Done { done, of, worker } => {
                if done == of || may(&mut self.last) {
                    say!("{done} of {of} units are in, the last one from {worker}");
                }
            }
            Progress::Again { number, reason } => say!("unit {number} is handed out again: {reason}"),
            Progress::Waiting(error) => {
                if may(&mut self.last) {
                    say!("{error}; waiting for it");
                }
            }
        }
    }
}

/// Files for workers.
#[derive(Default)]
struct Shipped {
    contents: BTreeMap<Hash, Vec<u8>>,
}

impl Shipped {
    fn file(&mut self, path: &Path, name: String) -> Result<ShippedFile> {
        let context = || format!("cannot ship {}", path.display());
        let file = rashomon_files::open(path, Links::Followed).with_context(context)?;
        let executable = file.metadata().with_context(context)?.permissions().mode() & 0o111 != 0;
        let bytes = rashomon_files::read_from(file, LARGEST).with_context(context)?;
        let hash = Hash::of(&bytes);
        let size = bytes.len() as u64;
        self.contents.insert(hash.clone(), bytes);
        Ok(ShippedFile { path: name, hash, size, executable })
    }
}

/// What the first recording may take, as that of a check on one machine.
fn time_of_recording(run: &RunOptions, confirm: &ConfirmOptions) -> Duration {
    let half = confirm.budget.filter(|budget| !budget.is_zero()).map(of_recording);
    half.filter(|half| run.timeout.is_zero() || *half < run.timeout).unwrap_or(run.timeout)
}

/// The unit that makes the first recording, and those that begin with it.
fn units(
    path: &Path,
    arguments: &[OsString],
    queue: &QueueOptions,
    (shipped, limit): (&mut Shipped, Duration),
) -> Result<(Unit, Vec<Unit>)> {
    let mut files = Vec::new();
    for path in &queue.ship {
        files.push(shipped.file(path, below_here(path)?)?);
    }
    let options = options_of_unit(shipped, &mut files)?;
    let recorded: BTreeSet<String> = names_of(&RunOptions::augment_args(Command::new("recording"))).map(str::to_owned).collect();
    let of_recording = options.iter().filter(|(name, _)| recorded.contains(name) && !NOT_OF_RECORDING.contains(&name.as_str()));
    let of_recording = of_recording.map(|(_, word)| word.clone()).chain([format!("--timeout={}", limit.as_secs_f64())]).collect();
    let options = options.into_iter().map(|(_, word)| word).collect();
    let name = text(path.file_name().unwrap_or_default())?;
    let program = shipped.file(path, name)?;
    let of = queue.units.unwrap_or(USUAL_UNITS);
    let job = rashomon_files::unforeseeable().context("cannot name the job")?;
    let unit = Unit {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        job,
        number: RECORDING,
        of,
        options: of_recording,
        program,
        program_path: text(path.as_os_str())?,
        arguments: arguments.iter().map(|word| text(word)).collect::<Result<_>>()?,
        files,
        recording: None,
    };
    let part = Unit { options, ..unit.clone() };
    Ok((unit, (1..=of).map(|number| Unit { number, ..part.clone() }).collect()))
}

/// Options that may be given to a unit.
fn names_of(command: &Command) -> impl Iterator<Item = &str> {
    command.get_arguments().filter_map(Arg::get_long).filter(|long| !KEPT_BACK.contains(long))
}

fn text(word: &std::ffi::OsStr) -> Result<String> {
    word.to_str()
        .map(str::to_owned)
        .with_context(|| format!("--queue takes names and arguments in UTF-8 only: {}", word.display()))
}

/// The path as it is seen from the working directory.
fn below_here(path: &Path) -> Result<String> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let inside = if path.is_absolute() { path.strip_prefix(&here).unwrap_or(path) } else { path };
    let mut parts = Vec::new();
    for part in inside.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => parts.push(text(name)?),
            _ => {
                bail!("{} is not below this folder: workers have what is shipped at the same place below theirs", path.display())
            }
        }
    }
    Ok(parts.join("/"))
}

/// What was said of recordings and proofs, on the command line, in the environment or in rashomon.toml: names, and words.
fn options_of_unit(shipped: &mut Shipped, files: &mut Vec<ShippedFile>) -> Result<Vec<(String, String)>> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let matches = match settings::matches_of(&separated(line)) {
        Ok(matches) => matches,
        Err(settings::Refused::Misunderstood(error)) => return Err(error.into()),
        Err(settings::Refused::Failed(error)) => return Err(error),
    };
    let (_, given) = matches.subcommand().context("no command")?;
    let of_unit = RunOptions::augment_args(ConfirmOptions::augment_args(Command::new("unit")));
    let mut words = Vec::new();
    for argument in of_unit.get_arguments() {
        let Some(long) = argument.get_long().filter(|long| !KEPT_BACK.contains(long)) else { continue };
        let mut values = said(argument, given);
        if values.is_empty() && long == INPUT {
            values.extend(rashomon_files::own_input().map(|path| Some(path.into())));
        }
        for value in values {
            let word = match value {
                None => format!("--{long}"),
                Some(value) if FILES.contains(&long) => {
                    let place = format!("shipped-{long}/{}", text(Path::new(&value).file_name().unwrap_or_default())?);
                    files.push(shipped.file(Path::new(&value), place.clone())?);
                    format!("--{long}={place}")
                }
                Some(value) => format!("--{long}={}", text(&value)?),
            };
            words.push((long.to_owned(), word));
        }
    }
    Ok(words)
}

/// The values that were said; `None`: the option alone.
fn said(argument: &Arg, given: &ArgMatches) -> Vec<Option<OsString>> {
    let id = argument.get_id().as_str();
    if !matches!(given.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
        return Vec::new();
    }
    if !argument.get_action().takes_values() {
        return if given.get_flag(id) { vec![None] } else { Vec::new() };
    }
    let raw = given.get_raw(id).into_iter().flatten();
    raw.map(|value| Some(value.to_owned())).collect()
}
