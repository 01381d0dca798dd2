//! `rashomon worker`: executes units that `check --queue` hands out.

use super::check::queued::PATIENCE;
use super::{Ui, end_all_on_interruption};
use crate::arguments::WorkerOptions;
use crate::exit::Exit;
use crate::terminal::say;
use anyhow::{Context as _, Result, bail};
use rashomon_files::Links;
use rashomon_queue::{Deed, Execute, Nats, QueueError, Task, Unmade, Worker, archive};
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a check says in vain is told so far, from its end.
const MOST_SAID: usize = 2000;
const LARGEST_SAID: u64 = 1 << 26;

pub fn worker(ui: Ui, options: &WorkerOptions) -> Result<Exit> {
    end_all_on_interruption();
    if !options.trust {
        bail!(
            "a worker executes programs and shell commands of whoever may write to {}, as you; --trust says that this may be",
            options.queue
        );
    }
    let cache = cache_folder(options.cache.as_deref())?;
    let nats = Nats::connect(&options.access(), options.lease)?;
    let tool = std::env::current_exe().context("cannot tell where this program is")?;
    let name = name();
    let executed = AtomicU64::new(0);
    let tell = |deed: Deed<'_>| {
        if matches!(deed, Deed::Finished(_)) {
            executed.fetch_add(1, Ordering::Relaxed);
        }
        told(ui, &deed);
    };
    let worker = Worker {
        exchange: &nats,
        version: env!("CARGO_PKG_VERSION"),
        name: &name,
        cache: &cache,
        lease: options.lease,
        patience: PATIENCE,
        tell: &tell,
    };
    if !ui.quiet {
        say!("{name} waits for units of {}", options.queue);
    }
    let checking = Checking { tool };
    let ended: Vec<Result<(), QueueError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.jobs).map(|_| scope.spawn(|| worker.run(&checking, options.once))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    ended.into_iter().collect::<Result<(), QueueError>>()?;
    if !ui.quiet {
        say!("executed {} units, and there are no more", executed.into_inner());
    }
    Ok(Exit::Success)
}

fn told(ui: Ui, deed: &Deed<'_>) {
    match deed {
        Deed::GivenBack(reason) => say!("given back: {reason}"),
        Deed::Waiting(_) | Deed::Began(_) | Deed::Over(_) | Deed::Second(_) | Deed::Finished(_) if ui.quiet => {}
        Deed::Waiting(error) => say!("{error}; waiting for it"),
        Deed::Began(unit) => say!("{} begins", unit.words()),
        Deed::Finished(unit) => say!("{} is done", unit.words()),
        Deed::Second(unit) => say!("{}: another worker was faster", unit.words()),
        Deed::Over(unit) => say!("{}: its job is over", unit.words()),
    }
}

/// The machine and the process, for people.
fn name() -> String {
    let host = rashomon_files::read("/proc/sys/kernel/hostname".as_ref(), Links::Followed, 1 << 10).unwrap_or_default();
    format!("{}:{}", String::from_utf8_lossy(&host).trim(), std::process::id())
}

fn cache_folder(asked: Option<&Path>) -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("rashomon"));
    let folder = asked.map(Path::to_path_buf).or_else(usual);
    let folder = folder.context("neither HOME nor XDG_CACHE_HOME names a folder; --cache FOLDER does")?;
    let folder = std::path::absolute(&folder).with_context(|| format!("cannot find {}", folder.display()))?;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.with_context(|| format!("cannot create {}; --cache FOLDER names another one", folder.display()))?;
    // As recordings name it: a store is to tell the coordinator's program from the copy in the cache.
    fs::canonicalize(&folder).with_context(|| format!("cannot find {}", folder.display()))
}

/// Units are executed by this very program.
struct Checking {
    tool: PathBuf,
}

impl Execute for Checking {
    fn execute(&self, task: &Task<'_>) -> Result<Vec<u8>, Unmade> {
        let log = task.store.with_extension("log");
        self.run(task, &log).map_err(|error| Unmade::Failed(format!("it cannot be executed: {error}")))?;
        if !task.store.join("summary.json").is_file() {
            let said = rashomon_files::read(&log, Links::Refused, LARGEST_SAID).unwrap_or_default();
            let said = String::from_utf8_lossy(&said[said.len().saturating_sub(MOST_SAID)..]).trim().replace('\n', "; ");
            let command = if task.unit.is_recording() { "record" } else { "check" };
            return Err(Unmade::Failed(format!("`rashomon {command}` left no store: {said}")));
        }
        let (here, there) = (task.program.to_string_lossy(), &task.unit.program_path);
        Ok(archive::pack(&task.store, &|name, bytes| named_there(name, bytes, &here, there))?)
    }
}

impl Checking {
    /// The recording, or a part of the check, which begins with it if there is one.
    fn run(&self, task: &Task<'_>, log: &Path) -> std::io::Result<()> {
        let mut command = Command::new(&self.tool);
        command.arg("--quiet");
        if task.unit.is_recording() {
            command.args(["record", "--no-config"]);
        } else {
            command.args(["check", "--no-config", "--fail-on", "never", "--shard"]);
            command.arg(format!("{}/{}", task.unit.number, task.unit.of));
        }
        if let Some(recording) = &task.recording {
            command.arg("--from").arg(recording);
        }
        command.arg("--output").arg(&task.store).args(&task.unit.options).arg("--").arg(&task.program).args(&task.unit.arguments);
        command.current_dir(&task.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?);
        // Its exit code is the program's.
        command.status().map(drop)
    }
}

/// A store names its program by its path: here that is a place in the cache, and to the coordinator it is its own.
fn named_there(name: &str, bytes: Vec<u8>, here: &str, there: &str) -> Vec<u8> {
    let ends = if name.ends_with(".json") {
        let quoted = |path: &str| serde_json::to_string(path).unwrap_or_default();
        (quoted(here), quoted(there))
    } else if name == "modules" || name.ends_with("/modules") {
        (format!("\t{here}\n"), format!("\t{there}\n"))
    } else {
        return bytes;
    };
    if here == there {
        return bytes;
    }
    match String::from_utf8(bytes) {
        Ok(text) => text.replace(&ends.0, &ends.1).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}
