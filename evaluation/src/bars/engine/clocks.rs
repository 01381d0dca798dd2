//! Clocks as rows against clocks as trees: the same events, by how many threads there are and who communicates with whom.

use super::processor_seconds;
use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::only::Only;
pub use crate::common::options::Measuring as Options;
use crate::common::table::Table;
use anyhow::Result;
use rashomon_engine::synchronisation::{Clocks, Edges, Flat, Tree, VectorClocks};
use rashomon_engine::{Analysis as _, Detector, Found, Wanted};
use rashomon_packed::{BLOCK, Event, Op};
use rashomon_testkit::SplitMix;
use serde::Serialize;

const THREADS: [u16; 4] = [16, 64, 256, 1024];

/// Who shares a lock with whom.
#[derive(Clone, Copy)]
enum Communication {
    /// As many locks as threads, each for all.
    All,
    /// Four locks for all.
    Few,
    /// One thread shares a lock with each of the others.
    Star,
    /// Two threads each.
    Pairs,
    /// Each thread with the next one.
    Ring,
}

impl Communication {
    const EACH: [(Self, &'static str); 5] =
        [(Self::All, "all"), (Self::Few, "few locks"), (Self::Star, "star"), (Self::Pairs, "pairs"), (Self::Ring, "ring")];

    /// A thread, and a lock that it may take.
    fn draw(self, random: &mut SplitMix, threads: u16) -> (u16, u32) {
        let count = u64::from(threads);
        let thread = random.below(count) as u16;
        let (number, coin) = (u32::from(thread), random.below(2) as u32);
        match self {
            Self::All => (thread, random.below(count) as u32),
            Self::Few => (thread, random.below(4) as u32),
            Self::Star if coin == 0 => (0, 1 + random.below(count - 1) as u32),
            Self::Star => (thread.max(1), number.max(1)),
            Self::Pairs => (thread, number / 2),
            Self::Ring => (thread, (number + coin) % u32::from(threads)),
        }
    }
}

/// Forks, and then critical sections of four events: a read and a write of what the lock protects.
fn trace(communication: Communication, threads: u16, events: usize) -> Vec<Event> {
    let mut random = SplitMix(1);
    let mut trace: Vec<Event> = (1..threads).map(|child| Event::new(0, Op::Fork, child.into(), 1)).collect();
    while trace.len() < events {
        let (thread, lock) = communication.draw(&mut random, threads);
        for (op, location) in [(Op::Acquire, 2), (Op::Read, 3), (Op::Write, 4), (Op::Release, 5)] {
            trace.push(Event::new(thread, op, lock, location));
        }
    }
    trace
}

/// The processor's time is told in steps of milliseconds: a run repeats what it measures for so many seconds.
const LONG: f64 = 0.1;

/// Of one run.
struct Measured {
    nanoseconds_an_event: f64,
    bytes: usize,
    found: Option<Found>,
}

fn clocks_alone<K: VectorClocks>(trace: &[Event]) -> (usize, Option<Found>) {
    let mut clocks = Clocks::<K>::new(Edges::ALL);
    let mut now = 0;
    for block in trace.chunks(BLOCK) {
        clocks.prepare(block);
        for event in block {
            now += 1;
            if !event.op.is_plain() {
                clocks.receive(event, now);
                clocks.release(event, now);
            }
        }
    }
    (clocks.bytes(), None)
}

fn detector<K: VectorClocks>(trace: &[Event], wanted: Wanted) -> (usize, Option<Found>) {
    let mut detector = Detector::<K>::with_clocks(wanted);
    for (number, block) in trace.chunks(BLOCK).enumerate() {
        detector.block((number * BLOCK) as u64, block);
    }
    (detector.bytes(), Some(detector.found()))
}

fn measure<K: VectorClocks>(trace: &[Event], analysis: &str, quick: bool) -> Result<Measured> {
    let before = processor_seconds()?;
    let mut repetitions = 0;
    loop {
        let (bytes, found) = match analysis {
            "clocks alone" => clocks_alone::<K>(trace),
            analysis => detector::<K>(trace, Wanted { shb: analysis == "hb+shb", lock_sets: false }),
        };
        repetitions += 1;
        let seconds = processor_seconds()? - before;
        if quick || seconds >= LONG {
            let events = f64::from(repetitions) * trace.len() as f64;
            return Ok(Measured { nanoseconds_an_event: seconds * 1e9 / events, bytes, found });
        }
    }
}

#[derive(Debug, Serialize)]
struct Row {
    communication: &'static str,
    threads: u16,
    analysis: &'static str,
    /// Nanoseconds an event.
    flat: f64,
    tree: f64,
    tree_to_flat: f64,
    flat_megabytes: f64,
    tree_megabytes: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    quick: bool,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn run(options: &Options) -> Result<bool> {
    let events = if options.quick { 20_000 } else { 200_000 };
    let runs = if options.quick { 1 } else { options.runs };
    let (mut rows, mut same) = (Vec::new(), true);
    let only = Only::of(options.only.as_deref());
    for (communication, name) in Communication::EACH {
        if !only.wants(name) {
            continue;
        }
        for threads in THREADS {
            eprintln!("{name}, {threads} threads");
            let trace = trace(communication, threads, events);
            for analysis in ["clocks alone", "hb", "hb+shb"] {
                let (mut flat, mut tree, mut bytes) = (Vec::new(), Vec::new(), [0, 0]);
                for _ in 0..runs {
                    let (one, other) =
                        (measure::<Flat>(&trace, analysis, options.quick)?, measure::<Tree>(&trace, analysis, options.quick)?);
                    same &= one.found == other.found;
                    bytes = [one.bytes, other.bytes];
                    flat.push(one.nanoseconds_an_event);
                    tree.push(other.nanoseconds_an_event);
                }
                let (flat, tree) = (median(flat), median(tree));
                let [flat_megabytes, tree_megabytes] = bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
                let tree_to_flat = tree / flat;
                rows.push(Row {
                    communication: name,
                    threads,
                    analysis,
                    flat,
                    tree,
                    tree_to_flat,
                    flat_megabytes,
                    tree_megabytes,
                });
            }
        }
    }
    only.check()?;
    let bars = vec![Bar::holds("both find the same", same, if same { "yes" } else { "no" }.into())];
    finish(Report { evaluation: "clocks", command: command_line(), quick: options.quick, rows, bars }, options)
}

fn finish(report: Report, options: &Options) -> Result<bool> {
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&report.bars));
    }
    println!("{}\n", report.command);
    let mut table =
        Table::new(&["communication", "threads", "analysis", "flat ns", "tree ns", "tree/flat", "flat MB", "tree MB"]);
    for row in &report.rows {
        table.row(vec![
            row.communication.to_owned(),
            row.threads.to_string(),
            row.analysis.to_owned(),
            format!("{:.1}", row.flat),
            format!("{:.1}", row.tree),
            format!("{:.2}", row.tree_to_flat),
            format!("{:.1}", row.flat_megabytes),
            format!("{:.1}", row.tree_megabytes),
        ]);
    }
    table.print();
    println!();
    Ok(bar::print(&report.bars))
}
