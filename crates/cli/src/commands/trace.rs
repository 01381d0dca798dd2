//! `rashomon trace`: looking into recordings.

use super::print;
use crate::arguments::TraceCommand;
use crate::exit::Exit;
use anyhow::{Context as _, Result};
use rashomon_pipeline::Store;
use rashomon_trace::{DumpOptions, LoadedTrace, Recording};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// A recording itself, or the first one of a store.
fn session_of(path: &Path) -> PathBuf {
    if path.join(rashomon_abi::HEADER_FILE).exists() {
        return path.to_path_buf();
    }
    match Store::open(path) {
        Ok(store) => store.recording(0),
        Err(_) => path.to_path_buf(),
    }
}

fn load(path: &Path) -> Result<LoadedTrace> {
    Ok(Recording::open(&session_of(path))?.load()?)
}

pub fn trace(command: TraceCommand) -> Result<Exit> {
    match command {
        TraceCommand::Stat { trace } => {
            let mut out = Vec::new();
            Recording::open(&session_of(&trace))?.stat(&mut out)?;
            print(&String::from_utf8_lossy(&out))?;
            Ok(Exit::Success)
        }
        TraceCommand::Dump { trace } => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let written = load(&trace)?.dump(&DumpOptions::default(), &mut out);
            match out.flush() {
                // A reader that went away has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Success),
                other => other.context("cannot write to standard output")?,
            }
            written?;
            Ok(Exit::Success)
        }
        TraceCommand::Verify { trace } => match Recording::open(&session_of(&trace)).and_then(|recording| recording.verify()) {
            Ok(verification) => {
                print(&format!("{verification}\n"))?;
                Ok(Exit::Success)
            }
            Err(error) => {
                eprintln!("rashomon: {error}");
                Ok(Exit::Different)
            }
        },
        TraceCommand::Diff { one, other } => diff(&load(&one)?, &load(&other)?),
    }
}

/// Lines shown before the first difference.
const CONTEXT_LINES: usize = 3;

fn diff(one: &LoadedTrace, other: &LoadedTrace) -> Result<Exit> {
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
