//! How fast traces come from files of each format, and from the generator.
//!
//! Everything is done by one thread, several times, and the run that took least processor time counts: time that other processes
//! take on a busy machine is nobody's speed. Files lie in the page cache.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_packed::{
    CheckOptions, Checked, Event, Format, Generator, Names, OpenOptions, Preset, Shape, Sink, Source, TraceError, WriteOptions,
    copy, create, open,
};
use rashomon_testkit::mutate::peak_memory;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

const EVENTS: u64 = 20_000_000;
const FEW: u64 = 200_000;
const MILLION: f64 = 1e6;

#[derive(Debug, Serialize)]
struct Speed {
    what: &'static str,
    shape: &'static str,
    million_events_per_second: f64,
    bytes_per_event: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    command: String,
    events: u64,
    speeds: Vec<Speed>,
    /// Most memory there was, once the shape `flat` was through; `wide` needs names for 10^7 variables.
    peak_megabytes_flat: Option<f64>,
    peak_megabytes: Option<f64>,
    bars: Vec<Bar>,
}

/// Processor time of this thread, or time where the system does not say.
struct Stopwatch {
    began: Instant,
    busy: Option<u64>,
}

fn busy_nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

impl Stopwatch {
    fn start() -> Self {
        Self { began: Instant::now(), busy: busy_nanoseconds() }
    }

    fn seconds(&self) -> f64 {
        match (self.busy, busy_nanoseconds()) {
            (Some(before), Some(after)) if after > before => (after - before) as f64 / 1e9,
            _ => self.began.elapsed().as_secs_f64(),
        }
    }
}

/// Looks at every event, so that none can be left out by the compiler: the price of a scan.
struct Scan(u64);

impl Sink for Scan {
    fn write(&mut self, block: &[Event], _: &Names) -> Result<(), TraceError> {
        for event in block {
            self.0 = self
                .0
                .wrapping_add(u64::from(event.target) ^ u64::from(event.thread) ^ u64::from(event.location) ^ event.op as u64);
        }
        Ok(())
    }

    fn finish(&mut self, _: &Names) -> Result<(), TraceError> {
        Ok(())
    }
}

fn fastest(runs: u32, mut act: impl FnMut() -> Result<u64>) -> Result<f64> {
    let mut best = 0.0_f64;
    for _ in 0..runs {
        let watch = Stopwatch::start();
        let events = act()?;
        best = best.max(events as f64 / watch.seconds() / MILLION);
    }
    Ok(best)
}

fn scan(mut source: impl Source) -> Result<u64> {
    let mut sink = Scan(0);
    let events = copy(&mut source, &mut sink, |_| {})?;
    std::hint::black_box(sink.0);
    Ok(events)
}

struct Bench<'a> {
    folder: &'a Path,
    runs: u32,
    speeds: Vec<Speed>,
}

impl Bench<'_> {
    fn add(
        &mut self,
        what: &'static str,
        shape: &'static str,
        bytes: Option<f64>,
        act: impl FnMut() -> Result<u64>,
    ) -> Result<()> {
        eprintln!("{shape}: {what}");
        let million_events_per_second = fastest(self.runs, act)?;
        self.speeds.push(Speed { what, shape, million_events_per_second, bytes_per_event: bytes });
        Ok(())
    }

    fn shape(&mut self, name: &'static str, shape: &Shape) -> Result<()> {
        let generator = || Generator::new(shape.clone()).map_err(anyhow::Error::msg);
        self.add("generate", name, None, || scan(generator()?))?;
        let memory: Vec<Event> = {
            let (mut source, mut block, mut all) = (generator()?, Vec::new(), Vec::new());
            while all.len() < 4 << 20 {
                source.next(&mut block)?;
                if block.is_empty() {
                    break;
                }
                all.extend_from_slice(&block);
            }
            all
        };
        self.add("scan memory", name, Some(12.0), || scan(rashomon_packed::Slice::new(&memory)))?;
        drop(memory);
        for (format, read, write) in [
            (Format::Packed, "read packed, mapped", "write packed"),
            (Format::Std, "read std", "write std"),
            (Format::RapidBin, "read rapidbin", "write rapidbin"),
            (Format::SpeedyGo, "read speedygo", "write speedygo"),
        ] {
            let path = self.folder.join(format.name());
            self.add(write, name, None, || {
                let mut source = generator()?;
                let mut sink = create(&path, format, WriteOptions::default(), &source)?;
                Ok(copy(&mut source, &mut sink, |_| {})?)
            })?;
            let bytes = std::fs::metadata(&path).with_context(|| path.display().to_string())?.len();
            let per_event = Some(bytes as f64 / shape.events as f64);
            self.add(read, name, per_event, || scan(open(&path, &OpenOptions::default())?))?;
            if format == Format::Packed {
                self.add("read packed, as a stream", name, per_event, || {
                    let file = Box::new(std::fs::File::open(&path)?);
                    scan(rashomon_packed::read(file, &path, &OpenOptions::default())?)
                })?;
                self.add("read packed, checked", name, per_event, || {
                    scan(Checked::new(open(&path, &OpenOptions::default())?, CheckOptions::default()))
                })?;
            }
            std::fs::remove_file(&path)?;
        }
        Ok(())
    }
}

fn megabytes() -> Option<f64> {
    peak_memory().map(|bytes| bytes as f64 / MILLION)
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Runs of each configuration, of which the medians are taken.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let (events, runs) = if options.quick { (FEW, 1) } else { (EVENTS, options.runs) };
    let mut bench = Bench { folder: folder.path(), runs, speeds: Vec::new() };
    bench.shape("flat", &Preset::Flat.shape(events, 1))?;
    let peak_megabytes_flat = megabytes();
    bench.shape("wide", &Preset::Wide.shape(events, 1))?;
    let speeds = bench.speeds;
    let speed = |what: &str| {
        let found = speeds.iter().find(|speed| speed.what == what && speed.shape == "flat");
        found.map_or(0.0, |speed| speed.million_events_per_second)
    };
    let at_least = |name: &str, what: &str, limit: f64| {
        let found = speed(what);
        let met = found >= limit;
        Bar { name: name.into(), required: format!("≥ {limit} M/s"), found: format!("{found:.0} M/s"), met, stretch: false }
    };
    let bars = vec![
        at_least("packed traces decode near the speed of a scan", "read packed, mapped", 150.0),
        at_least("packed traces decode near the speed of a scan", "read packed, mapped", 300.0).stretch(),
        at_least("STD text is parsed", "read std", 20.0),
        at_least("traces are made up", "generate", 100.0),
        Bar::at_most("memory, all formats of the shape flat", peak_megabytes_flat.unwrap_or(0.0), 256.0, " MB"),
    ];
    let command = command_line();
    let report = Report { command, events, speeds, peak_megabytes_flat, peak_megabytes: megabytes(), bars };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(options.quick || bar::all_met(&report.bars));
    }
    println!("{}: {} events of each shape, the best of {runs}", report.command, report.events);
    let mut table = Table::new(&["", "flat M/s", "wide M/s", "bytes/event"]);
    for flat in report.speeds.iter().filter(|speed| speed.shape == "flat") {
        let wide = report.speeds.iter().find(|speed| speed.shape == "wide" && speed.what == flat.what);
        table.row(vec![
            flat.what.to_owned(),
            format!("{:.1}", flat.million_events_per_second),
            wide.map_or(String::new(), |wide| format!("{:.1}", wide.million_events_per_second)),
            flat.bytes_per_event.map_or(String::new(), |bytes| format!("{bytes:.1}")),
        ]);
    }
    table.print();
    println!("writing includes making up what is written");
    if let (Some(flat), Some(all)) = (report.peak_megabytes_flat, report.peak_megabytes) {
        println!("peak memory: {flat:.0} MB with flat, {all:.0} MB with wide, whose text has names of 10^7 variables");
    }
    Ok(bar::print(&report.bars) || options.quick)
}
