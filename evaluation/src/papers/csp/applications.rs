//! Table 2: applications, some with a seeded race. What is recorded and what the model keeps of it, what it decides and how long
//! each phase takes, and how often clang's ThreadSanitizer reports a race.
//!
//! What is fair. Four recordings each, as in Table 1; numbers are of all four. The model is asked about all pairs that the hybrid
//! filter leaves, within the program's own limits; what the CSP engine predicts is forced, as in Table 1.

use super::enforced::{Enforced, enforced};
use super::scenarios::RECORDINGS;
use crate::common::bar::Bar;
use crate::common::compile::{Compilers, succeed};
use crate::common::races;
use crate::common::suite;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{EventIndex, Trace};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::filter::suspicious;
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::Objects;
use rashomon_refinement::search::{Answer, Limits, Window, find};
use rashomon_trace::{Recording, processes};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

/// Seconds for what is forced.
const BUDGET: &str = "30";
/// Executions under ThreadSanitizer, as in the paper, and with --quick.
const FREE: (u32, u32) = (100, 5);

/// Events. With fewer, the application did not run.
const LEAST: usize = 100;

struct Application {
    name: &'static str,
    /// Below `tests`.
    source: &'static str,
    args: &'static [&'static str],
    /// The race is in it.
    seeded: bool,
}

const fn own(name: &'static str, source: &'static str, seeded: bool) -> Application {
    Application { name, source, args: &[], seeded }
}

const fn bench(name: &'static str, source: &'static str, args: &'static [&'static str]) -> Application {
    Application { name, source, args, seeded: false }
}

const APPLICATIONS: [Application; 20] = [
    own("download", "applications/download.c", false),
    own("download, seeded", "applications/download.c", true),
    own("bounded buffer", "applications/buffer.c", false),
    own("bounded buffer, seeded", "applications/buffer.c", true),
    own("tracing library", "applications/tracing.c", false),
    own("tracing library, seeded", "applications/tracing.c", true),
    own("quicksort", "applications/quicksort.c", false),
    own("quicksort, seeded", "applications/quicksort.c", true),
    bench("FFT", "bench/fft.c", &["8"]),
    bench("LU, in place", "bench/lu.c", &["32"]),
    own("LU, contiguous blocks", "applications/lu_blocks.c", false),
    own("LU, contiguous blocks, seeded", "applications/lu_blocks.c", true),
    own("fmm", "applications/fmm.c", false),
    own("fmm, seeded", "applications/fmm.c", true),
    bench("n-body", "bench/nbody.c", &["40", "2"]),
    own("water", "applications/water.c", false),
    own("water, seeded", "applications/water.c", true),
    bench("molecules", "bench/moldyn.c", &["5", "2"]),
    bench("options", "bench/options.c", &["200", "2"]),
    bench("cluster", "bench/cluster.c", &["200", "8"]),
];

#[derive(Debug, Default, Serialize)]
pub struct Row {
    application: &'static str,
    seeded: bool,
    /// Recorded events; those of the models; of these, those that synchronise.
    captured: usize,
    reduced: usize,
    synchronisation: usize,
    /// Shared objects that the filter leaves, pairs of accesses to them, and those that the model has an order for.
    objects: usize,
    candidates: usize,
    feasible: usize,
    undecided: usize,
    /// Races that are proven.
    found: usize,
    /// In parallel.
    enforced: Enforced,
    sanitizer: u32,
    free: u32,
    /// Seconds.
    recording: f64,
    checking: f64,
    enforcing: f64,
}

pub fn rows(only: Option<&str>, quick: bool) -> Result<Vec<Row>> {
    let compilers = Compilers::find()?;
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut rows = Vec::new();
    for (number, application) in APPLICATIONS.iter().enumerate() {
        if only.is_some_and(|part| !application.name.contains(part)) {
            continue;
        }
        let place = folder.path().join(number.to_string());
        std::fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let row = row(application, &tool, &compilers, &place, if quick { FREE.1 } else { FREE.0 })
            .with_context(|| application.name.to_owned())?;
        // Stores are large, and no longer needed.
        std::fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        eprintln!("{}: {:.1} s of model checking", row.application, row.checking);
        rows.push(row);
    }
    Ok(rows)
}

fn row(application: &Application, tool: &Path, compilers: &Compilers, place: &Path, free: u32) -> Result<Row> {
    let source = root().join("tests").join(application.source);
    let (binary, store, json) = (place.join("program"), place.join("store"), place.join("report.json"));
    let define: &[&str] = if application.seeded { &["-DSEEDED"] } else { &[] };
    let build = |command: &mut Command, output: &Path| {
        command.args(["-std=gnu11", "-g", "-O1", "-w", "-pthread"]).args(define).arg(&source).arg("-o").arg(output);
        succeed(command.arg("-lm"))
    };
    build(Command::new(tool).arg("cc"), &binary)?;
    let begin = Instant::now();
    let mut record = Command::new(tool);
    record.args(["--quiet", "record", "--recordings", &RECORDINGS.to_string(), "--output"]).arg(&store).arg("--").arg(&binary);
    let recorded = record.args(application.args).stdin(Stdio::null()).output().context("cannot start the tool")?;
    let recording = begin.elapsed().as_secs_f64();
    let mut row = Row { application: application.name, seeded: application.seeded, free, ..Row::default() };
    for number in 0..RECORDINGS {
        for process in processes(&store.join(format!("recording-{number}"))).context("reading the recording")? {
            row.decide(&Recording::open(&process.folder)?.load()?.trace);
        }
    }
    if row.captured < LEAST {
        bail!("{} events were recorded\n{}", row.captured, String::from_utf8_lossy(&recorded.stderr));
    }
    row.recording = recording;
    let begin = Instant::now();
    let mut confirm = Command::new(tool);
    confirm.args(["--quiet", "confirm", "--engine", "csp", "--budget", BUDGET, "--json"]).arg(&json).arg(&store);
    let confirmed = confirm.stdin(Stdio::null()).output().context("cannot start the tool")?;
    row.enforcing = begin.elapsed().as_secs_f64();
    let text = std::fs::read(&json)
        .with_context(|| format!("confirming left no report\n{}", String::from_utf8_lossy(&confirmed.stderr)))?;
    let report: Value = serde_json::from_slice(&text).context("the report")?;
    row.found = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven").count();
    row.enforced = enforced(tool, &store, BUDGET)?;
    let sanitizer = place.join("sanitizer");
    build(Command::new(&compilers.c).arg("-fsanitize=thread"), &sanitizer)?;
    let runs = suite::in_parallel(&vec![(); free as usize], |()| {
        races::execute(Command::new(&sanitizer).args(application.args), Duration::from_secs(10))
    })?;
    row.sanitizer = runs.iter().filter(|run| run.said.contains("WARNING: ThreadSanitizer: data race")).count() as u32;
    Ok(row)
}

impl Row {
    /// Adds what the model says about a recording.
    fn decide(&mut self, trace: &Trace) {
        let begin = Instant::now();
        let memory = SharedMemory::new(trace);
        let model = Model::new(trace, Atomics::Kept);
        let pairs = hybrid(trace, &memory, 4);
        let candidates: Vec<(EventIndex, EventIndex)> = pairs.iter().flat_map(|pair| pair.pairs.iter().copied()).collect();
        let answer = |&(first, second): &(EventIndex, EventIndex)| {
            find(&model, &[first, second], Window::whole(&model), &Limits::default()).answer
        };
        let answers: Vec<Answer> = candidates.iter().map(answer).collect();
        self.checking += begin.elapsed().as_secs_f64();
        let objects = Objects::new(trace);
        let synchronisation: usize = model.steps.iter().map(Vec::len).sum();
        self.captured += trace.events.len();
        self.reduced += synchronisation + accesses(trace, &model, &objects);
        self.synchronisation += synchronisation;
        self.objects += suspicious(trace, &objects).len();
        self.candidates += candidates.len();
        self.feasible += answers.iter().filter(|answer| matches!(answer, Answer::Order(_))).count();
        self.undecided += answers.iter().filter(|answer| **answer == Answer::Undecided).count();
    }
}

/// Accesses to shared objects; within a segment, equal ones are one.
fn accesses(trace: &Trace, model: &Model<'_>, objects: &Objects) -> usize {
    let mut kept = HashSet::new();
    for event in trace.indices() {
        if let Some(access) = trace.event(event).access()
            && objects.touched(&access).next().is_some()
        {
            let segment = (trace.event(event).thread, model.steps_before(event));
            kept.insert((segment, access.address, access.size, access.class.writes()));
        }
    }
    kept.len()
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let most = rows.iter().map(|row| row.checking).fold(0.0, f64::max);
    let seeded = rows.iter().filter(|row| row.seeded).count();
    let found = rows.iter().filter(|row| row.seeded && row.found > 0).count();
    let invented: usize = rows.iter().filter(|row| !row.seeded).map(|row| row.found).sum();
    let mut bars = vec![
        Bar::at_most("model checking of the dearest application (paper: up to half an hour)", most, 60.0, " s"),
        Bar::holds("applications without a seeded race: nothing is proven", invented == 0, format!("{invented} proven")),
    ];
    let wrong: usize = rows.iter().filter(|row| !row.seeded).map(|row| row.enforced.confirmed).sum();
    bars.push(Bar::holds(
        "enforced in parallel: nothing is confirmed without a seeded race",
        wrong == 0,
        format!("{wrong} orders"),
    ));
    if seeded > 0 {
        let confirmed = rows.iter().filter(|row| row.seeded && row.enforced.confirmed > 0).count();
        let name = "enforced in parallel: every seeded race is confirmed";
        bars.push(Bar::holds(name, confirmed == seeded, format!("{confirmed} of {seeded}")));
        bars.push(Bar::holds("every seeded race is proven", found == seeded, format!("{found} of {seeded}")));
    }
    bars
}

pub fn print(rows: &[Row]) {
    let titles = [
        "application",
        "captured",
        "reduced",
        "synchronisation",
        "objects",
        "candidates",
        "feasible",
        "undecided",
        "found",
        "orders",
        "infeasible",
        "confirmed",
        "places",
        "TSan",
        "recording s",
        "checking s",
        "enforcing s",
        "in parallel s",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        let numbers =
            [row.captured, row.reduced, row.synchronisation, row.objects, row.candidates, row.feasible, row.undecided, row.found];
        let Enforced { orders, infeasible, confirmed, places, .. } = row.enforced;
        let mut cells = vec![row.application.to_owned()];
        cells.extend(numbers.into_iter().chain([orders, infeasible, confirmed, places]).map(|number| number.to_string()));
        cells.push(format!("{} of {}", row.sanitizer, row.free));
        cells.extend([row.recording, row.checking, row.enforcing, row.enforced.seconds].map(|seconds| format!("{seconds:.2}")));
        table.row(cells);
    }
    table.print();
}
