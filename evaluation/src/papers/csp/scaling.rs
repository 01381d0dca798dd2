//! What a model costs as it grows: time and states against synchronisation, threads, threads that do the same, and the window,
//! with all reductions and with one of them left out.

use crate::common::bar::Bar;
use crate::common::plot::{self, Panel};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use rashomon_csp as csp;
use rashomon_event::{Deadline, EventIndex, SiteId, Trace};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::Objects;
use rashomon_refinement::search::{Answer, Limits, Reductions, Window, find};
use rashomon_refinement::terms::{About, Form, script};
use rashomon_testkit::random::{alike, large};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// States after which a pair is left undecided: without reductions most end there.
const STATES: usize = 20_000;
/// How long the pairs of one size may take, with one set of reductions: what is left then is undecided.
const LONGEST: Duration = Duration::from_secs(30);
/// The quickest of so many times counts.
const TIMES: u32 = 3;
/// Pairs of each trace.
const PAIRS: usize = 20;
/// Of one lock for each thread, as for the large traces.
const SEEDS: u64 = 3;

/// Operations of one trace that synchronise, in the mean of all seeds: what grows with its length.
const STEPS: &str = "synchronisation operations";

impl Point {
    const fn new(against: &'static str, at: u32, reductions: &'static str) -> Self {
        Self {
            against,
            at,
            reductions,
            synchronisation: 0,
            pairs: 0,
            orders: 0,
            left_out: 0,
            missed: 0,
            undecided: 0,
            states: 0,
            tried: 0,
            seconds: 0.0,
        }
    }
}

/// The refinement of terms, by how many threads do the same. It counts no steps.
const TERMS: &str = "threads, as terms";
/// Of the reductions of terms.
const NEITHER: &str = "neither, of terms";
/// Pairs of states, and terms made, after which it is left undecided.
const OF_TERMS: usize = 1_000_000;

/// What is left out.
struct Variant {
    name: &'static str,
    reductions: Reductions,
    /// Each access is a step.
    accesses: bool,
    /// All pairs are asked that conflict, not those that the hybrid filter leaves.
    unfiltered: bool,
}

/// Of threads that do the same, all are asked anyway: to know that the one that the filter leaves out is none, all states have to
/// be seen.
const ALIKE: &str = "threads that do the same";

const ALL: Variant = Variant { name: "all", reductions: Reductions::ALL, accesses: false, unfiltered: false };

const fn without(name: &'static str, reductions: Reductions) -> Variant {
    Variant { name, reductions, ..ALL }
}

/// Where partial order and chains leave little to choose, memory has little to save: it is left out alone, and with them.
const VARIANTS: [Variant; 9] = [
    ALL,
    without("no relevance", Reductions { relevance: false, ..Reductions::ALL }),
    without("no partial order", Reductions { runs: false, ..Reductions::ALL }),
    without("no chains", Reductions { chains: false, ..Reductions::ALL }),
    without("no memory", Reductions { memory: false, ..Reductions::ALL }),
    without("none of these three", Reductions { runs: false, chains: false, memory: false, ..Reductions::ALL }),
    without("no symmetry", Reductions { symmetry: false, ..Reductions::ALL }),
    Variant { name: "accesses are steps", accesses: true, ..ALL },
    Variant { name: "no filter of pairs", unfiltered: true, ..ALL },
];

/// Pairs of each trace where they are not filtered, of each pair of places a few.
const UNFILTERED: usize = 200;
const OF_EACH: usize = 4;
/// Accesses of each thread and place that are remembered for these.
const REMEMBERED: usize = 4;

/// One size, with one set of reductions.
#[derive(Debug, Serialize)]
pub struct Point {
    against: &'static str,
    at: u32,
    reductions: &'static str,
    /// Events that synchronise.
    synchronisation: usize,
    pairs: usize,
    orders: usize,
    /// Pairs of places that the filter has left out, and those of them that have an order.
    left_out: usize,
    missed: usize,
    undecided: usize,
    states: usize,
    tried: usize,
    seconds: f64,
}

struct Size {
    threads: u32,
    events: usize,
    window: Option<usize>,
    /// All but two of the threads do the same.
    alike: bool,
}

impl Size {
    fn trace(&self, seed: u64) -> Trace {
        match self.alike {
            true => alike(seed, self.threads, SECTIONS),
            false => large(seed, self.threads, u64::from(self.threads), self.events),
        }
    }
}

/// Of each thread that does the same as others.
const SECTIONS: u64 = 3;

pub fn points(quick: bool) -> Vec<Point> {
    let events: &[u32] = if quick { &[1_000, 4_000] } else { &[1_000, 4_000, 16_000, 64_000] };
    let threads: &[u32] = if quick { &[2, 8] } else { &[2, 4, 8, 16] };
    let workers: &[u32] = if quick { &[2, 6] } else { &[2, 4, 8, 12] };
    let windows: &[u32] = if quick { &[500, 2_000] } else { &[500, 2_000, 8_000, 32_000] };
    let mut points = Vec::new();
    let mut measure = |against, ats: &[u32], size: fn(u32) -> Size| {
        for &at in ats {
            let size = size(at);
            let variants = VARIANTS.iter().filter(|variant| !(variant.unfiltered && size.alike));
            points.extend(variants.map(|variant| quickest(against, at, &size, variant)));
        }
    };
    measure(STEPS, events, |at| Size { threads: 4, events: at as usize, window: None, alike: false });
    measure("threads", threads, |at| Size { threads: at, events: 8_000, window: None, alike: false });
    measure(ALIKE, workers, |at| Size { threads: at, events: 0, window: None, alike: true });
    measure("window", windows, |at| Size { threads: 4, events: 32_000, window: Some(at as usize), alike: false });
    points.extend(of_terms(quick));
    points
}

/// Whether threads that do the same can deadlock, asked of the terms of small traces; their reductions are those of the algebra.
fn of_terms(quick: bool) -> Vec<Point> {
    const NAMES: [(&str, csp::reduce::Reductions); 4] = [
        ("all", csp::reduce::Reductions::ALL),
        ("no partial order", csp::reduce::Reductions { partial_order: false, symmetry: true }),
        ("no symmetry", csp::reduce::Reductions { partial_order: true, symmetry: false }),
        (NEITHER, csp::reduce::Reductions::NONE),
    ];
    let mut points = Vec::new();
    for at in if quick { 1..=2 } else { 1..=4 } {
        let trace = alike(u64::from(at), at, 1);
        let script = script(&trace, &Objects::new(&trace), &[About::Deadlock], &[Form::Hidden]);
        for (name, reductions) in NAMES {
            let begin = Instant::now();
            let until = Some(begin + LONGEST);
            let limits = csp::refine::Limits { states: OF_TERMS, reductions, until, ..csp::refine::Limits::default() };
            let verdict = script.clone().check(script.assertions[0].claim, &limits);
            let mut point = Point::new(TERMS, at, name);
            point.seconds = begin.elapsed().as_secs_f64();
            point.synchronisation = trace.events.iter().filter(|event| event.access().is_none()).count();
            point.pairs = 1;
            match verdict {
                csp::refine::Verdict::Holds { states } => point.states = states,
                csp::refine::Verdict::Fails { states, .. } => (point.orders, point.states) = (1, states),
                csp::refine::Verdict::Undecided { states, .. } => (point.undecided, point.states) = (1, states),
            }
            points.push(point);
        }
    }
    points
}

fn quickest(against: &'static str, at: u32, size: &Size, variant: &Variant) -> Point {
    let mut best = point(against, at, size, variant);
    for _ in 1..TIMES {
        best.seconds = best.seconds.min(point(against, at, size, variant).seconds);
    }
    best
}

fn point(against: &'static str, at: u32, size: &Size, variant: &Variant) -> Point {
    let mut point = Point::new(against, at, variant.name);
    let deadline = Deadline::within(LONGEST / TIMES);
    let limits = Limits { states: STATES, reductions: variant.reductions, deadline, ..Limits::default() };
    for seed in 1..=SEEDS {
        let trace = size.trace(seed);
        let begin = Instant::now();
        let model =
            if variant.accesses { Model::with_accesses(&trace, Atomics::Kept) } else { Model::new(&trace, Atomics::Kept) };
        point.seconds += begin.elapsed().as_secs_f64();
        point.synchronisation += trace.events.iter().filter(|event| event.access().is_none()).count();
        let filtered = pairs(&trace);
        let sites = |goals: &[EventIndex; 2]| {
            let [one, other] = goals.map(|goal| trace.event(goal).site);
            (one.min(other), one.max(other))
        };
        let left: BTreeSet<_> = filtered.iter().map(sites).collect();
        let is_unfiltered = variant.unfiltered || size.alike;
        let asked = if is_unfiltered { conflicting(&trace) } else { filtered.into_iter().take(PAIRS).collect() };
        for goals in asked {
            let window = match size.window {
                None => Some(Window::whole(&model)),
                Some(events) => Window::around(&model, &goals, events),
            };
            // A pair that no window holds is none of this size's.
            let Some(window) = window else { continue };
            let begin = Instant::now();
            let found = find(&model, &goals, window, &limits);
            point.seconds += begin.elapsed().as_secs_f64();
            point.pairs += 1;
            let has_order = matches!(found.answer, Answer::Order(_));
            point.orders += usize::from(has_order);
            let is_left_out = !left.contains(&sites(&goals));
            point.left_out += usize::from(is_left_out);
            point.missed += usize::from(has_order && is_left_out);
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
    all.iter().flat_map(|pair| pair.pairs.iter().map(|&(first, second)| [first, second])).collect()
}

/// Pairs of accesses that conflict, whatever orders or protects them.
fn conflicting(trace: &Trace) -> Vec<[EventIndex; 2]> {
    let mut seen: BTreeMap<u64, Vec<EventIndex>> = BTreeMap::new();
    let mut of_sites: BTreeMap<(SiteId, SiteId), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for second in trace.indices() {
        let event = trace.event(second);
        let Some(access) = event.access() else { continue };
        let known = seen.entry(access.address.0).or_default();
        for &first in known.iter() {
            let other = trace.event(first);
            if other.thread == event.thread || !other.access().is_some_and(|other| other.conflicts(&access)) {
                continue;
            }
            let count = of_sites.entry((other.site.min(event.site), other.site.max(event.site))).or_default();
            if *count < OF_EACH {
                *count += 1;
                found.push([first, second]);
            }
        }
        let alike = |&&first: &&EventIndex| {
            let other = trace.event(first);
            (other.thread, other.site) == (event.thread, event.site)
        };
        if known.iter().filter(alike).count() < REMEMBERED {
            known.push(second);
        }
        if found.len() >= UNFILTERED {
            found.truncate(UNFILTERED);
            break;
        }
    }
    found
}

pub fn bars(points: &[Point]) -> Vec<Bar> {
    let with_all = || points.iter().filter(|point| point.reductions == ALL.name);
    let same_pairs = |point: &&Point| VARIANTS.iter().any(|variant| variant.name == point.reductions && !variant.unfiltered);
    let undecided: usize = with_all().map(|point| point.undecided).sum();
    let pairs: usize = with_all().map(|point| point.pairs).sum();
    let disagree = with_all().flat_map(|all| {
        let here = points.iter().filter(same_pairs).filter(|one| (one.against, one.at) == (all.against, all.at));
        here.map(move |one| (all, one))
    });
    let disagree = disagree.filter(|(all, one)| one.orders > all.orders || one.orders + one.undecided < all.orders).count();
    let missed: usize = points.iter().map(|point| point.missed).sum();
    let left_out: usize = points.iter().map(|point| point.left_out).sum();
    vec![
        Bar::holds("with all reductions every pair is decided", undecided == 0, format!("{undecided} of {pairs} undecided")),
        Bar::holds("leaving a reduction out changes no decision", disagree == 0, format!("{disagree} of {}", points.len())),
        Bar::holds("pairs that the filter has left out have no order", missed == 0, format!("{missed} of {left_out}")),
    ]
}

pub fn print(points: &[Point]) {
    let titles =
        ["against", "at", "reductions", "synchronisation", "pairs", "orders", "undecided", "states", "steps tried", "seconds"];
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

/// Time in the first row, states and steps below; a column for each thing that grows.
pub fn draw(file: &Path, points: &[Point]) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let all = [STEPS, "threads", ALIKE, "window", TERMS];
    let row = |columns: &[&'static str], y: &'static str, value: fn(&Point) -> f64| {
        let of = |&against: &&'static str| {
            let here = || points.iter().filter(move |point| point.against == against);
            let of = |name: &str| here().filter(|point| point.reductions == name).map(value).collect();
            let names = VARIANTS.iter().map(|variant| variant.name).chain([NEITHER]);
            let lines = names.map(|name| (name.to_owned(), of(name))).collect();
            let ticks = here().filter(|point| point.reductions == ALL.name).map(|point| point.at).collect();
            Panel { x: against, y, ticks, lines }
        };
        columns.iter().map(of).collect::<Vec<_>>()
    };
    // Of values that span decades, the logarithms are drawn.
    let rows = [
        row(&all, "log10 ms per pair", |point| (1000.0 * per_pair(point, point.seconds)).max(1e-4).log10()),
        row(&all, "log10 states per pair", |point| (1.0 + per_pair(point, point.states as f64)).log10()),
        row(&all[..4], "log10 steps per pair", |point| (1.0 + per_pair(point, point.tried as f64)).log10()),
    ];
    plot::draw(file, "Cost of a model", &rows)
}

fn per_pair(point: &Point, value: f64) -> f64 {
    value / point.pairs.max(1) as f64
}
