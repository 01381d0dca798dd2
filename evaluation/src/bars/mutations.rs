//! Damaged files through every reader: no panic, no memory without bound, every refusal with a place.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Selecting as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_packed::file::reseal;
use rashomon_packed::{
    CheckOptions, Checked, Event, Format, Generator, Names, OpenOptions, Preset, Shape, Slice, Source, Space, TraceError,
    WriteOptions, copy, create, open,
};
use rashomon_testkit::mutate::{Mutator, peak_memory};
use rashomon_trace::{DumpOptions, Recording};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use xtask::workspace;

const FILES: u64 = 10_000;
const FEW: u64 = 300;
/// What reading files of some tens of kilobytes may need at most, with this program.
const MEGABYTES: f64 = 512.0;

#[derive(Debug, Default, Serialize)]
struct Outcome {
    reader: String,
    files: u64,
    read: u64,
    refused: u64,
    /// Errors that name no place in a file.
    without_place: u64,
    panics: u64,
    /// The first of either.
    example: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    command: String,
    outcomes: Vec<Outcome>,
    peak_megabytes: Option<f64>,
    bars: Vec<Bar>,
}

/// What is done to a damaged file before it is read.
type Prepare = fn(Vec<u8>) -> Vec<u8>;

enum End {
    Read,
    Refused,
    WithoutPlace(String),
}

fn drain(source: &mut impl Source) -> Result<u64, TraceError> {
    let (mut block, mut events) = (Vec::new(), 0);
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            return Ok(events);
        }
        events += block.len() as u64;
    }
}

/// A small trace with everything the format can say.
fn good(format: Format, seed: u64, folder: &Path) -> Result<Vec<u8>> {
    let shape = Preset::Regions.shape(1500, seed);
    let transactions = format != Format::SpeedyGo;
    let shape = Shape {
        threads: 5,
        locks: 6,
        variables: 300,
        racy: 3,
        read_shared: 20,
        locations: 60,
        nesting: 2,
        transactions,
        ..shape
    };
    let mut source = Generator::new(shape).map_err(anyhow::Error::msg)?;
    let (mut block, mut events): (Vec<Event>, Vec<Event>) = (Vec::new(), Vec::new());
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            break;
        }
        events.extend_from_slice(&block);
    }
    let mut names = Names::default();
    if format == Format::Packed {
        (0..300).for_each(|number| names.push(Space::Variable, &format!("variable {number}")));
    }
    let path = folder.join("good");
    let mut source = Slice::named(&events, names);
    let mut sink = create(&path, format, WriteOptions::default(), &source)?;
    copy(&mut source, &mut sink, |_| {})?;
    drop(sink);
    Ok(std::fs::read(path)?)
}

/// Runs a reader on one file after the other.
fn torment(reader: &str, files: u64, mut one: impl FnMut(u64) -> Result<End>) -> Result<Outcome> {
    eprintln!("{reader}: {files} files");
    let mut outcome = Outcome { reader: reader.to_owned(), files, ..Outcome::default() };
    for number in 0..files {
        match catch_unwind(AssertUnwindSafe(|| one(number))) {
            Ok(Ok(End::Read)) => outcome.read += 1,
            Ok(Ok(End::Refused)) => outcome.refused += 1,
            Ok(Ok(End::WithoutPlace(error))) => {
                outcome.without_place += 1;
                outcome.example.get_or_insert(format!("file {number}: {error}"));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                outcome.panics += 1;
                outcome.example.get_or_insert(format!("file {number}: panicked"));
            }
        }
    }
    Ok(outcome)
}

fn trace_file(name: &str, format: Format, files: u64, prepare: Prepare) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let (one, other) = (good(format, 1, folder.path())?, good(format, 2, folder.path())?);
    let path = folder.path().join("trace");
    let mut mutator = Mutator::new(name.bytes().map(u64::from).sum());
    torment(name, files, |number| {
        std::fs::write(&path, prepare(mutator.mutate(&one, &other)))?;
        let lenient = number % 2 == 1;
        let options = OpenOptions {
            format: (number % 8 != 0).then_some(format),
            bare_threads: number % 4 == 2,
            lenient,
            ..OpenOptions::default()
        };
        let checks = CheckOptions { lenient, reentrant: number % 8 == 4 };
        Ok(match open(&path, &options).and_then(|source| drain(&mut Checked::new(source, checks))) {
            Ok(_) => End::Read,
            Err(TraceError::Malformed { .. } | TraceError::IllFormed { place: Some(_), .. }) => End::Refused,
            Err(error) => End::WithoutPlace(error.to_string()),
        })
    })
}

/// A recording of the trace crate's tests, one of its files damaged at a time.
fn recording(files: u64) -> Result<Outcome> {
    let golden = workspace::root().join("crates/trace/tests/golden/v2");
    let mut all: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for entry in std::fs::read_dir(&golden).with_context(|| golden.display().to_string())? {
        let entry = entry?;
        all.push((entry.file_name().into(), std::fs::read(entry.path())?));
    }
    all.sort();
    let folder = tempfile::tempdir()?;
    for (name, bytes) in &all {
        std::fs::write(folder.path().join(name), bytes)?;
    }
    let mut mutator = Mutator::new(77);
    torment("recording", files, |_| {
        let (name, bytes) = &all[mutator.below(all.len())];
        let (_, donor) = &all[mutator.below(all.len())];
        let path = folder.path().join(name);
        std::fs::write(&path, mutator.mutate(bytes, donor))?;
        let looked = Recording::open(folder.path()).and_then(|recording| {
            recording.verify()?;
            recording.stat(&mut std::io::sink())?;
            recording.load()?.dump(&DumpOptions::default(), &mut std::io::sink())
        });
        std::fs::write(&path, bytes)?;
        // Errors of recordings name the file, and the offset where there is one inside a stream.
        Ok(match looked {
            Ok(()) => End::Read,
            Err(error) if error.to_string().contains(&*folder.path().to_string_lossy()) => End::Refused,
            Err(error) => End::WithoutPlace(error.to_string()),
        })
    })
}

/// A peak that the kernel does not tell is not below any limit.
fn memory_bar(peak: Option<f64>) -> Bar {
    match peak {
        Some(megabytes) => Bar::at_most("peak memory", megabytes, MEGABYTES, " MB"),
        None => Bar::holds("peak memory is known", false, "unknown".into()),
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let files = if options.quick { FEW } else { FILES };
    let resealed = |mut bytes: Vec<u8>| {
        reseal(&mut bytes);
        bytes
    };
    let streamed = |mut bytes: Vec<u8>| {
        reseal(&mut bytes);
        zstd::encode_all(&bytes[..], 1).unwrap_or_default()
    };
    let only = Only::of(options.only.as_deref());
    let wanted = |name: &str| only.wants(name);
    let mut outcomes = Vec::new();
    let kinds: [(&str, Format, Prepare); 6] = [
        ("std", Format::Std, |bytes| bytes),
        ("speedygo", Format::SpeedyGo, |bytes| bytes),
        ("rapidbin", Format::RapidBin, |bytes| bytes),
        ("packed", Format::Packed, |bytes| bytes),
        ("packed, checksums made right", Format::Packed, resealed),
        ("packed, as a compressed stream", Format::Packed, streamed),
    ];
    for (name, format, prepare) in kinds {
        if wanted(name) {
            outcomes.push(trace_file(name, format, files, prepare)?);
        }
    }
    if wanted("recording") {
        outcomes.push(recording(files)?);
    }
    only.check()?;
    let sum = |count: fn(&Outcome) -> u64| outcomes.iter().map(count).sum::<u64>();
    let (panics, without_place) = (sum(|outcome| outcome.panics), sum(|outcome| outcome.without_place));
    let peak_megabytes = peak_memory().map(|bytes| bytes as f64 / 1e6);
    let bars = vec![
        Bar::holds("no reader panics", panics == 0, format!("{panics} panics")),
        Bar::holds("every refusal names a place", without_place == 0, format!("{without_place} without")),
        memory_bar(peak_megabytes),
    ];
    let report = Report { command: command_line(), outcomes, peak_megabytes, bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}", report.command);
    let mut table = Table::new(&["reader", "files", "read", "refused", "no place", "panics"]);
    for outcome in &report.outcomes {
        let counts = [outcome.files, outcome.read, outcome.refused, outcome.without_place, outcome.panics];
        let cells = counts.iter().map(u64::to_string);
        table.row(std::iter::once(outcome.reader.clone()).chain(cells).collect());
    }
    table.print();
    for outcome in &report.outcomes {
        if let Some(example) = &outcome.example {
            println!("{}: {example}", outcome.reader);
        }
    }
    Ok(bar::print(&report.bars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peak_meets_no_bar() {
        assert!(!memory_bar(None).met && memory_bar(Some(1.0)).met && !memory_bar(Some(MEGABYTES + 1.0)).met);
    }
}
