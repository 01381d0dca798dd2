//! How fast the linear analyses are, and how much memory they take: generated traces in our packed format, one core, beside a
//! mere scan of the same file. `engine-large` analyses a thousand million events that are made up on the way.

pub mod clocks;
mod deadlocks;
pub mod memory;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Measuring as Options;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_engine::redundancy::Redundancy;
use rashomon_engine::serialisability::Regions;
use rashomon_engine::{Findings, Kind, Settings, analyse};
use rashomon_packed::{BLOCK, Generator, OpenOptions, PackedWriter, Preset, Shape, Source, TraceError, copy, open};
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Nanoseconds an event that RAPID's FastTrack takes on traces of these shapes: a published figure, not measured here.
const RAPID: f64 = 3000.0;
/// Bytes that a trace of a thousand million events may take, and the part of them for tables.
const LARGE: f64 = 4096.0;
const LARGE_TABLES: usize = 3 << 30;

/// What runs together in one pass.
struct Group {
    name: &'static str,
    kinds: &'static [Kind],
    /// Accesses that only repeat are left out before.
    thinned: bool,
    /// Million events a second: it must, and should, reach.
    bars: Option<(f64, f64)>,
}

const fn group(name: &'static str, kinds: &'static [Kind], bars: Option<(f64, f64)>) -> Group {
    Group { name, kinds, thinned: false, bars }
}

const GROUPS: [Group; 8] = [
    group("hb", &[Kind::Hb], None),
    group("hb+shb", &[Kind::Hb, Kind::Shb], None),
    group("hb+shb+lockset", &[Kind::Hb, Kind::Shb, Kind::LockSet], Some((15.0, 40.0))),
    Group { thinned: true, ..group("redundancy, hb", &[Kind::Hb], None) },
    group("hybrid", &[Kind::Hybrid], None),
    group("wcp", &[Kind::Wcp], Some((2.0, 5.0))),
    group("cp", &[Kind::Cp], None),
    group("serialisability", &[Kind::Serialisability], Some((10.0, 20.0))),
];

/// So many events take long enough for one run to count.
const LONG: u64 = 100_000_000;

#[derive(Debug, Serialize)]
struct Row {
    trace: String,
    events: u64,
    analysis: &'static str,
    /// Of the processor.
    seconds: f64,
    nanoseconds_an_event: f64,
    million_events_a_second: f64,
    /// Of the whole process.
    peak_megabytes: f64,
    table_megabytes: f64,
    found: u64,
    times_rapid: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

/// Seconds that this thread has been on a processor.
fn processor_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").context("cannot read the time of a thread")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse().context("the time of a thread is no number")?;
    Ok(nanoseconds / 1e9)
}

/// Megabytes of memory that this process had at most since it last asked.
fn peak_megabytes() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read the memory of this process")?;
    // From here on anew.
    std::fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of memory")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the kernel does not tell the peak of memory")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().context("the peak of memory is no number")?;
    Ok(kilobytes / 1024.0)
}

fn shapes(quick: bool) -> [(&'static str, Shape); 4] {
    let flat = Shape { threads: 16, transactions: true, ..Preset::Flat.shape(0, 1) };
    let nested = Shape { transactions: true, ..Preset::Nest.shape(0, 1) };
    // A table of 10^7 variables would be all that a short trace takes time for.
    let variables = if quick { 100_000 } else { Preset::Wide.shape(0, 1).variables };
    let wide = |shape: &Shape| Shape { variables, ..shape.clone() };
    [("flat", flat.clone()), ("nested", nested.clone()), ("flat, wide", wide(&flat)), ("nested, wide", wide(&nested))]
}

fn write(shape: &Shape, path: &Path) -> Result<()> {
    let mut source = generator(shape)?;
    let file = BufWriter::new(File::create(path).with_context(|| format!("cannot create {}", path.display()))?);
    let mut sink = PackedWriter::new(file, path, &source)?;
    copy(&mut source, &mut sink, |_| {})?;
    Ok(())
}

fn generator(shape: &Shape) -> Result<Generator> {
    match Generator::new(shape.clone()) {
        Ok(generator) => Ok(generator),
        Err(what) => bail!("a trace that cannot be generated: {what}"),
    }
}

/// Reads every event and adds something of each up, so that it must have been read.
fn scan(path: &Path, trace: &str) -> Result<Row> {
    peak_megabytes()?;
    let before = processor_seconds()?;
    let mut source = open(path, &OpenOptions::default())?;
    let mut block = Vec::with_capacity(BLOCK);
    let (mut events, mut sum) = (0, 0_u64);
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            break;
        }
        events += block.len() as u64;
        sum = block.iter().fold(sum, |sum, event| sum.wrapping_add(u64::from(event.target) ^ event.op as u64));
    }
    std::hint::black_box(sum);
    row(trace, "scan", events, processor_seconds()? - before, 0, 0)
}

/// Of so many runs the one with the least processor time: the others were disturbed, or the first to touch memory that the
/// machine had given away.
fn least(runs: u32, mut run: impl FnMut() -> Result<Row>) -> Result<Row> {
    let mut best = run()?;
    for _ in 1..runs {
        let row = run()?;
        if row.seconds < best.seconds {
            best = row;
        }
    }
    Ok(best)
}

fn row(trace: &str, analysis: &'static str, events: u64, seconds: f64, bytes: usize, found: u64) -> Result<Row> {
    let nanoseconds_an_event = seconds * 1e9 / events as f64;
    Ok(Row {
        trace: trace.to_owned(),
        events,
        analysis,
        seconds,
        nanoseconds_an_event,
        million_events_a_second: 1e3 / nanoseconds_an_event,
        peak_megabytes: peak_megabytes()?,
        table_megabytes: bytes as f64 / f64::from(1 << 20),
        found,
        times_rapid: RAPID / nanoseconds_an_event,
    })
}

fn measure(
    trace: &str,
    group: &Group,
    memory: Option<usize>,
    open: &mut dyn FnMut() -> Result<Box<dyn Source + Send>, TraceError>,
) -> Result<Row> {
    peak_megabytes()?;
    let before = processor_seconds()?;
    let settings =
        Settings { kinds: group.kinds.into(), regions: Regions::All, window: None, workers: 1, memory, spill_to: None };
    let outcome = analyse(open, &settings, &mut |_| {})?;
    let seconds = processor_seconds()? - before;
    let racing = outcome.reports.iter().map(|report| match &report.findings {
        Findings::Races(races) => races.events(),
        Findings::Violations(violations) => violations.violating(),
    });
    let racing = racing.max().unwrap_or(0);
    row(trace, group.name, outcome.events, seconds, outcome.bytes, racing)
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("trace.packed");
    let sizes: &[u64] = if options.quick { &[300_000] } else { &[10_000_000, 100_000_000] };
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    let only = Only::of(options.only.as_deref());
    for &events in sizes {
        for (name, shape) in shapes(options.quick) {
            let trace = format!("{name}, {} M", events as f64 / 1e6);
            if !only.wants(&trace) {
                continue;
            }
            eprintln!("{trace}");
            write(&Shape { events, ..shape }, &path)?;
            let runs = if options.quick || events >= LONG { 1 } else { options.runs };
            rows.push(least(runs, || scan(&path, &trace))?);
            for group in &GROUPS {
                let mut source = || -> Result<Box<dyn Source + Send>, TraceError> {
                    let source = open(&path, &OpenOptions::default())?;
                    Ok(if group.thinned { Box::new(Redundancy::new(source)) } else { source })
                };
                let row = least(runs, || measure(&trace, group, None, &mut source))?;
                if let Some((must, should)) = group.bars {
                    let name = format!("{}, {trace}: million events a second", group.name);
                    bars.push(at_least(&name, row.million_events_a_second, must));
                    bars.push(at_least(&name, row.million_events_a_second, should).stretch());
                    if group.kinds.contains(&Kind::Hb) {
                        let name = format!("{}, {trace}: times RAPID's published {RAPID} ns an event", group.name);
                        bars.push(at_least(&name, row.times_rapid, 30.0));
                        bars.push(at_least(&name, row.times_rapid, 150.0).stretch());
                    }
                }
                rows.push(row);
            }
        }
    }
    let events = if options.quick { 300_000 } else { 10_000_000 };
    for (name, shape) in deadlocks::shapes(events) {
        let trace = format!("{name}, {} M", events as f64 / 1e6);
        if !only.wants(&format!("{trace}, deadlocks")) {
            continue;
        }
        eprintln!("{trace}: deadlocks");
        let row = deadlocks::measure(&trace, &shape)?;
        bars.push(Bar::at_most(&format!("deadlocks, {trace}: seconds"), row.seconds, 2.0, "").stretch());
        rows.push(row);
    }
    only.check()?;
    finish(Report { evaluation: "engine", command: command_line(), quick: options.quick, rows, bars }, options.json)
}

#[derive(Debug, clap::Args)]
pub struct LargeOptions {
    /// A few million events: shows that it works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// A thousand million events, generated as they are analysed.
pub fn run_large(options: &LargeOptions) -> Result<bool> {
    let events = if options.quick { 3_000_000 } else { 1_000_000_000 };
    let shape = Shape { events, ..Preset::Wide.shape(events, 1) };
    let group = group("hb+lockset", &[Kind::Hb, Kind::LockSet], None);
    let trace = format!("wide, {} M, generated on the way", events / 1_000_000);
    generator(&shape)?;
    let mut open = || -> Result<Box<dyn Source + Send>, TraceError> {
        Ok(Box::new(Generator::new(shape.clone()).expect("possible a moment ago")))
    };
    let row = measure(&trace, &group, Some(LARGE_TABLES), &mut open)?;
    let bars = vec![
        Bar::holds("all events were analysed", row.events == events, row.events.to_string()),
        Bar::at_most("peak memory of the process", row.peak_megabytes, LARGE, " MB"),
    ];
    let command = command_line();
    finish(Report { evaluation: "engine-large", command, quick: options.quick, rows: vec![row], bars }, options.json)
}

fn at_least(name: &str, found: f64, limit: f64) -> Bar {
    Bar { name: name.into(), required: format!("≥ {limit}"), found: format!("{found:.1}"), met: found >= limit, stretch: false }
}

fn finish(report: Report, json: bool) -> Result<bool> {
    bar::finish(&report, &report.bars, json, || print(&report))
}

/// Title and value.
type Column = (&'static str, fn(&Row) -> String);

const COLUMNS: [Column; 9] = [
    ("trace", |row| row.trace.clone()),
    ("analysis", |row| row.analysis.to_owned()),
    ("CPU s", |row| format!("{:.2}", row.seconds)),
    ("ns/event", |row| format!("{:.1}", row.nanoseconds_an_event)),
    ("M events/s", |row| format!("{:.1}", row.million_events_a_second)),
    ("× published RAPID", |row| format!("{:.0}", row.times_rapid)),
    ("peak MB", |row| format!("{:.0}", row.peak_megabytes)),
    ("tables MB", |row| format!("{:.0}", row.table_megabytes)),
    ("found", |row| row.found.to_string()),
];

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&COLUMNS.map(|(title, _)| title));
    for row in &report.rows {
        table.row(COLUMNS.iter().map(|(_, value)| value(row)).collect());
    }
    table.print();
    println!();
}
