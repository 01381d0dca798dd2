//! What every command that records does first: the program is compiled if need be, inspected, and gets a store.

use super::randomises;
use crate::arguments::{RunOptions, Target};
use crate::program::{self, Inspection, Instrumentation};
use crate::runtime;
use crate::terminal::{error_for_child, say};
use crate::wrapper::{self, Language};
use anyhow::{Context as _, Result, bail};
use rashomon_pipeline::program::Program;
use rashomon_pipeline::store::DEFAULT_BASE;
use rashomon_pipeline::store::run::{RUN_FORMAT, RUN_VERSION};
use rashomon_pipeline::store::seal;
use rashomon_pipeline::store::surroundings::Surroundings;
use rashomon_pipeline::{RunRecord, ShellText, Store, StoredClient};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Prepared {
    pub program: Program,
    pub store: Store,
    pub run: RunRecord,
}

/// The program, compiled if need be, and a store for it. `None`: the compiler refused, and said why.
pub fn prepare(options: &RunOptions, target: Target) -> Result<Option<Prepared>> {
    let Target { file, mut command } = target;
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
            let inspection = program::inspect(executable.as_os_str(), false)?;
            (store, inspection)
        }
        (None, file) => {
            if let Some(file) = file {
                command.insert(0, file.into());
            }
            if command.is_empty() {
                bail!("nothing to run: write `rashomon check FILE.c` or `rashomon check -- PROG ARGS`");
            }
            let inspection = program::inspect(&command.remove(0), options.preload)?;
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
    mut environment: Vec<(OsString, OsString)>,
) -> Result<Prepared> {
    let globals = &options.filter.library_globals;
    if !globals.is_empty() {
        environment.push((rashomon_abi::GLOBALS_VARIABLE.into(), globals.join(",").into()));
    }
    if options.preload && inspection.instrumentation != Instrumentation::Linked {
        environment.push(runtime::preloaded()?);
    }
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

pub fn new_store(options: &RunOptions, program: &Path) -> Result<Store> {
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
    let input = options.input()?;
    Ok(RunRecord {
        format: RUN_FORMAT.into(),
        version: RUN_VERSION,
        executable: ShellText::from(inspection.path.as_os_str()),
        arguments: arguments.iter().map(text).collect(),
        directory: ShellText::from(directory.as_os_str()),
        randomise_addresses: randomises(options.aslr),
        environment: environment.iter().map(|(name, value)| (text(name), text(value))).collect(),
        surroundings: Surroundings::now(),
        before_each: options.before_each.as_deref().map(ShellText::from),
        client: options.client.asked().as_ref().map(StoredClient::from),
        input: input.as_deref().map(|path| ShellText::from(path.as_os_str())),
        loads_runtime: inspection.instrumentation != Instrumentation::Linked,
        quantum: options.quantum,
        base_time_nanoseconds: u64::try_from(now.as_nanos()).unwrap_or(0),
        trace_limit: options.trace_limit.saturating_mul(1 << 20),
        processes: options.processes,
        trusted_libraries: options.trust.remembered(),
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
