//! What a model costs as it grows: time and states against synchronisation, threads and the window, with all reductions and with
//! one of them left out.

use crate::common::bar::Bar;
use crate::common::plot::{self, Panel};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_event::{EventIndex, Trace};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Reductions, Window, find};
use rashomon_testkit::random::large;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// States after which a pair is left undecided: without reductions most end there.
const STATES: usize = 20_000;
/// Pairs of each trace.
const PAIRS: usize = 20;
/// Of one lock for each thread, as for the large traces.
const SEEDS: u64 = 3;

/// Operations of one trace that synchronise, in the mean of all seeds: what grows with its length.
const STEPS: &str = "synchronisation operations";

/// Where runs leave little to choose, memory has little to save: it is left out alone, and together with them.
const VARIANTS: [(&str, Reductions); 5] = [
    ("all", Reductions::ALL),
    ("no relevance", Reductions { relevance: false, ..Reductions::ALL }),
    ("no runs", Reductions { runs: false, ..Reductions::ALL }),
    ("no memory", Reductions { memory: false, ..Reductions::ALL }),
    ("neither", Reductions { runs: false, memory: false, ..Reductions::ALL }),
];

/// One size, with one set of reductions.
#[derive(Debug, Serialize)]
pub struct Point {
    against: &'static str,
    at: u32,
    reductions: &'static str,
    /// Steps of the models.
    synchronisation: usize,
    pairs: usize,
    orders: usize,
    undecided: usize,
    states: usize,
    tried: usize,
    seconds: f64,
}

struct Size {
    threads: u32,
    events: usize,
    window: Option<usize>,
}

pub fn points(quick: bool) -> Vec<Point> {
    let events: &[u32] = if quick { &[1_000, 4_000] } else { &[1_000, 4_000, 16_000, 64_000] };
    let threads: &[u32] = if quick { &[2, 8] } else { &[2, 4, 8, 16] };
    let windows: &[u32] = if quick { &[500, 2_000] } else { &[500, 2_000, 8_000, 32_000] };
    let mut points = Vec::new();
    let mut measure = |against, ats: &[u32], size: fn(u32) -> Size| {
        for &at in ats {
            points.extend(VARIANTS.map(|variant| point(against, at, &size(at), variant)));
        }
    };
    measure(STEPS, events, |at| Size { threads: 4, events: at as usize, window: None });
    measure("threads", threads, |at| Size { threads: at, events: 8_000, window: None });
    measure("window", windows, |at| Size { threads: 4, events: 32_000, window: Some(at as usize) });
    points
}

fn point(against: &'static str, at: u32, size: &Size, (name, reductions): (&'static str, Reductions)) -> Point {
    let mut point = Point {
        against,
        at,
        reductions: name,
        synchronisation: 0,
        pairs: 0,
        orders: 0,
        undecided: 0,
        states: 0,
        tried: 0,
        seconds: 0.0,
    };
    for seed in 1..=SEEDS {
        let trace = large(seed, size.threads, u64::from(size.threads), size.events);
        let begin = Instant::now();
        let model = Model::new(&trace, Atomics::Kept);
        point.seconds += begin.elapsed().as_secs_f64();
        point.synchronisation += model.steps.iter().map(Vec::len).sum::<usize>();
        for goals in pairs(&trace) {
            let window = match size.window {
                None => Some(Window::whole(&model)),
                Some(events) => Window::around(&model, &goals, events),
            };
            // A pair that no window holds is none of this size's.
            let Some(window) = window else { continue };
            let begin = Instant::now();
            let found = find(&model, &goals, window, &Limits { states: STATES, reductions, ..Limits::default() });
            point.seconds += begin.elapsed().as_secs_f64();
            point.pairs += 1;
            point.orders += usize::from(matches!(found.answer, Answer::Order(_)));
            point.undecided += usize::from(found.answer == Answer::Undecided);
            point.states += found.states;
            point.tried += found.steps;
        }
    }
    if against == STEPS {
        point.at = u32::try_from(point.synchronisation as u64 / SEEDS).unwrap_or(u32::MAX);
    }
    point
}

/// Pairs for which locks matter: those that a lock of the same section does not exclude.
fn pairs(trace: &Trace) -> Vec<[EventIndex; 2]> {
    let memory = SharedMemory::new(trace);
    let all = hybrid(trace, &memory, 4);
    all.iter().flat_map(|pair| pair.pairs.iter().map(|&(first, second)| [first, second])).take(PAIRS).collect()
}

pub fn bars(points: &[Point]) -> Vec<Bar> {
    let with_all = || points.iter().filter(|point| point.reductions == VARIANTS[0].0);
    let undecided: usize = with_all().map(|point| point.undecided).sum();
    let pairs: usize = with_all().map(|point| point.pairs).sum();
    let disagree = with_all()
        .flat_map(|all| points.iter().filter(|one| (one.against, one.at) == (all.against, all.at)).map(move |one| (all, one)));
    let disagree = disagree.filter(|(all, one)| one.orders > all.orders || one.orders + one.undecided < all.orders).count();
    vec![
        Bar::holds("with all reductions every pair is decided", undecided == 0, format!("{undecided} of {pairs} undecided")),
        Bar::holds("leaving a reduction out changes no decision", disagree == 0, format!("{disagree} of {}", points.len())),
    ]
}

pub fn print(points: &[Point]) {
    let titles =
        ["against", "at", "reductions", "steps of models", "pairs", "orders", "undecided", "states", "steps tried", "seconds"];
    let mut table = Table::new(&titles);
    for point in points {
        let mut cells = vec![point.against.to_owned(), point.at.to_string(), point.reductions.to_owned()];
        let numbers = [point.synchronisation, point.pairs, point.orders, point.undecided, point.states, point.tried];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(format!("{:.3}", point.seconds));
        table.row(cells);
    }
    table.print();
}

/// Time in the first row, states in the second; a column for each thing that grows.
pub fn draw(file: &Path, points: &[Point]) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let row = |y: &'static str, value: fn(&Point) -> f64| {
        let of = |against: &'static str| {
            let here = || points.iter().filter(move |point| point.against == against);
            let of = |name: &str| here().filter(|point| point.reductions == name).map(value).collect();
            let lines = VARIANTS.map(|(name, _)| (name.to_owned(), of(name))).into();
            let ticks = here().filter(|point| point.reductions == VARIANTS[0].0).map(|point| point.at).collect();
            Panel { x: against, y, ticks, lines }
        };
        vec![of(STEPS), of("threads"), of("window")]
    };
    // Of values that span decades, the logarithms are drawn.
    let rows = [
        row("log10 ms per pair", |point| (1000.0 * point.seconds / point.pairs.max(1) as f64).max(1e-4).log10()),
        row("log10 states per pair", |point| (1.0 + point.states as f64 / point.pairs.max(1) as f64).log10()),
    ];
    plot::draw(file, "Cost of a model", &rows)
}
