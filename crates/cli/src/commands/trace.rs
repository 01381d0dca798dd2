//! `rashomon trace`: looking into recordings and trace files, and from one format to another.

pub mod files;
mod table;
mod viewers;

use super::Ui;
use crate::arguments::{Exporter, FileFormat, TraceCommand};
use crate::exit::Exit;
use crate::terminal::say;
use crate::terminal::{output, print};
use crate::waiting::Waiting;
use anyhow::{Context as _, Result, bail};
use rashomon_event::Deadline;
use rashomon_pipeline::trace::file::WriteOptions;
use rashomon_pipeline::trace::{DumpOptions, LoadedTrace, ProcessFolder, Recording, processes};
use rashomon_pipeline::{PipelineError, Store};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A recording itself, or the first one of a store.
fn session_of(path: &Path) -> Result<PathBuf> {
    if path.join(rashomon_pipeline::trace::HEADER_FILE).exists() {
        return Ok(path.to_path_buf());
    }
    match Store::open(path) {
        Ok(store) => Ok(store.recording(0)),
        Err(PipelineError::NoStore { .. }) => Ok(path.to_path_buf()),
        Err(error) => Err(error.into()),
    }
}

fn load(folder: &Path) -> Result<LoadedTrace> {
    Ok(Recording::open(folder)?.load()?)
}

/// The one recording of a session, or of a store's first.
pub fn loaded(path: &Path) -> Result<LoadedTrace> {
    loaded_until(path, Deadline::NEVER)
}

/// The same, if it takes no longer.
pub fn loaded_until(path: &Path, deadline: Deadline) -> Result<LoadedTrace> {
    let all = processes(&session_of(path)?)?;
    let [process] = &all[..] else {
        bail!("{} has recordings of {} processes; name the folder of one of them", path.display(), all.len());
    };
    Ok(Recording::open(&process.folder)?.load_until(deadline)?)
}

/// The recordings of a session, each with a heading if there are several.
fn all_of(path: &Path) -> Result<Vec<(String, ProcessFolder)>> {
    let all = processes(&session_of(path)?)?;
    let heading = |process: &ProcessFolder| if all.len() > 1 { format!("process {}\n", process.path) } else { String::new() };
    Ok(all.iter().map(|process| (heading(process), process.clone())).collect())
}

pub fn trace(ui: Ui, command: TraceCommand) -> Result<Exit> {
    match command {
        TraceCommand::Import { trace, reading, output } => {
            files::export(ui, &trace, &reading, &output, FileFormat::Packed, WriteOptions::default())
        }
        TraceCommand::Export { trace, reading, to, lossy, numbers, output } => match to.exporter() {
            Exporter::File(to) => files::export(ui, &trace, &reading, &output, to, WriteOptions { lossy, numbers }),
            Exporter::Perfetto => viewers::perfetto(ui, &trace, &output),
            Exporter::Parquet => table::parquet(ui, &trace, &reading, &output),
        },
        TraceCommand::Gen { shape, to, output } => files::generate(ui, &shape, &output, to),
        TraceCommand::Stat { trace, reading } if files::is_file(&trace) => files::stat(ui, &trace, &reading),
        TraceCommand::Dump { trace, reading } if files::is_file(&trace) => files::dump(&trace, &reading),
        TraceCommand::Verify { trace, reading } if files::is_file(&trace) => files::verify(ui, &trace, &reading),
        TraceCommand::Stat { trace, .. } => {
            let mut out = Vec::new();
            for (heading, process) in all_of(&trace)? {
                out.extend_from_slice(heading.as_bytes());
                Recording::open(&process.folder)?.stat(&mut out)?;
            }
            print(&String::from_utf8_lossy(&out))?;
            Ok(Exit::Success)
        }
        TraceCommand::Dump { trace, .. } => {
            let mut out = output();
            let mut written = Ok(());
            for (heading, process) in all_of(&trace)? {
                written = out.write_all(heading.as_bytes()).map_err(anyhow::Error::from);
                if written.is_ok() {
                    written = load(&process.folder)?.dump(&DumpOptions::default(), &mut out).map_err(Into::into);
                }
                if written.is_err() {
                    break;
                }
            }
            match out.flush() {
                // A reader that went away has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Success),
                other => other.context("cannot write to standard output")?,
            }
            written?;
            Ok(Exit::Success)
        }
        TraceCommand::Verify { trace, .. } => {
            let _waiting = Waiting::new(ui.quiet, "verifying", Deadline::NEVER);
            verify(&trace)
        }
        TraceCommand::Diff { one, other } => {
            let _waiting = Waiting::new(ui.quiet, "comparing", Deadline::NEVER);
            diff(&session_of(&one)?, &session_of(&other)?)
        }
    }
}

fn verify(trace: &Path) -> Result<Exit> {
    let mut exit = Exit::Success;
    for (heading, process) in all_of(trace)? {
        match Recording::open(&process.folder).and_then(|recording| recording.verify()) {
            Ok(verification) => print(&format!("{heading}{verification}\n"))?,
            Err(error) => {
                say!("{error}");
                exit = Exit::Different;
            }
        }
    }
    Ok(exit)
}

/// Process by process.
fn diff(one: &Path, other: &Path) -> Result<Exit> {
    let (ours, theirs) = (processes(one)?, processes(other)?);
    let paths = |all: &[ProcessFolder]| all.iter().map(|process| process.path.to_string()).collect::<Vec<_>>().join(", ");
    if paths(&ours) != paths(&theirs) {
        print(&format!("not the same processes\n- {}\n+ {}\n", paths(&ours), paths(&theirs)))?;
        return Ok(Exit::Different);
    }
    for (left, right) in ours.iter().zip(&theirs) {
        if ours.len() > 1 {
            print(&format!("process {}: ", left.path))?;
        }
        if diff_one(&load(&left.folder)?, &load(&right.folder)?)? == Exit::Different {
            return Ok(Exit::Different);
        }
    }
    Ok(Exit::Success)
}

/// Lines shown before the first difference.
const CONTEXT_LINES: usize = 3;

fn diff_one(one: &LoadedTrace, other: &LoadedTrace) -> Result<Exit> {
    let (mut left, mut right) = (one.normalised(), other.normalised());
    let mut before: Vec<String> = Vec::new();
    let mut number = 0_u64;
    loop {
        match (left.next(), right.next()) {
            (None, None) => {
                print(&format!("the same {number} events\n"))?;
                return Ok(Exit::Success);
            }
            (a, b) if a == b => {
                if before.len() == CONTEXT_LINES {
                    before.remove(0);
                }
                before.extend(a);
                number += 1;
            }
            (a, b) => {
                let mut text = format!("event {number} differs\n");
                for line in &before {
                    text.push_str(&format!("  {line}\n"));
                }
                text.push_str(&format!("- {}\n", a.as_deref().unwrap_or("(end)")));
                text.push_str(&format!("+ {}\n", b.as_deref().unwrap_or("(end)")));
                print(&text)?;
                return Ok(Exit::Different);
            }
        }
    }
}
