//! Table 2: applications, some with a seeded race. What is recorded and what the model keeps of it, what it decides and how long
//! each phase takes, and how often clang's ThreadSanitizer reports a race.
//!
//! What is fair. Four recordings each, as in Table 1; numbers are of all four. The model is asked about all pairs that the hybrid
//! filter leaves, within the program's own limits; what the CSP engine predicts is forced, as in Table 1.

use super::enforced::{Enforced, enforced, said_by};
use super::scenarios::RECORDINGS;
use super::windows::Compared;
use crate::common::bar::{self, Bar};
use crate::common::compile::{Compilers, succeed};
use crate::common::races;
use crate::common::suite;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{Deadline, EventIndex, Trace};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::filter::suspicious;
use rashomon_refinement::model::Model;
use rashomon_refinement::objects::Objects;
use rashomon_refinement::search::{Answer, Limits, Window, find};
use rashomon_trace::{Recording, processes};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

/// Seconds for what is forced.
const BUDGET: &str = "30";
/// Executions under ThreadSanitizer, as in the paper, and with --quick.
const FREE: (u32, u32) = (100, 5);

/// How long all these may take together, and one of them.
const FREELY: Duration = Duration::from_secs(60);
const ONE_RUN: Duration = Duration::from_secs(10);

/// How long the model of one recording may be searched: what is left then is undecided.
const DECIDING: Duration = Duration::from_secs(60);

/// How long both engines may take for the pairs of one recording.
const COMPARING: Duration = Duration::from_secs(10);

/// Events. With fewer, the application did not run.
const LEAST: usize = 100;

/// The paper's row: captured, reduced and synchronisation events, candidates, feasible ones, locations that they show, locations
/// that ThreadSanitizer shows in 100 runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Published {
    name: &'static str,
    numbers: [u64; 7],
}

struct Application {
    name: &'static str,
    /// Below `tests`.
    source: &'static str,
    args: &'static [&'static str],
    /// The race is in it.
    seeded: bool,
    /// What it is in the manner of.
    paper: Option<Published>,
}

const fn own(name: &'static str, source: &'static str, seeded: bool) -> Application {
    Application { name, source, args: &[], seeded, paper: None }
}

const fn bench(name: &'static str, source: &'static str, args: &'static [&'static str]) -> Application {
    Application { name, source, args, seeded: false, paper: None }
}

impl Application {
    fn build(&self, compiler: &mut Command, source: &Path, output: &Path) -> Result<()> {
        let define: &[&str] = if self.seeded { &["-DSEEDED"] } else { &[] };
        compiler.args(["-std=gnu11", "-g", "-O1", "-w", "-pthread"]).args(define).arg(source).arg("-o").arg(output);
        succeed(compiler.arg("-lm"))
    }

    const fn like(self, name: &'static str, numbers: [u64; 7]) -> Self {
        Self { paper: Some(Published { name, numbers }), ..self }
    }
}

const APPLICATIONS: [Application; 20] = [
    own("download", "applications/download.c", false),
    own("download, seeded", "applications/download.c", true).like("aget", [1_792, 291, 80, 2, 2, 2, 3]),
    own("bounded buffer", "applications/buffer.c", false).like("boundedBuffer", [829, 326, 105, 0, 0, 0, 0]),
    own("bounded buffer, seeded", "applications/buffer.c", true),
    own("tracing library", "applications/tracing.c", false),
    own("tracing library, seeded", "applications/tracing.c", true).like("ctrace", [1_543, 275, 64, 4, 3, 3, 2]),
    own("quicksort", "applications/quicksort.c", false),
    own("quicksort, seeded", "applications/quicksort.c", true).like("qsort", [3_305, 195, 40, 2, 2, 6, 1]),
    bench("FFT", "bench/fft.c", &["8"]).like("fft", [40_440, 207, 18, 1, 0, 0, 0]),
    bench("LU, in place", "bench/lu.c", &["32"]).like("lu-non", [971_559, 490, 42, 0, 0, 0, 0]),
    own("LU, contiguous blocks", "applications/lu_blocks.c", false).like("lu", [59_857_037, 1_185, 138, 0, 0, 0, 0]),
    own("LU, contiguous blocks, seeded", "applications/lu_blocks.c", true),
    own("fmm", "applications/fmm.c", false),
    own("fmm, seeded", "applications/fmm.c", true).like("fmm", [1_078_923, 2_730, 1_470, 190, 180, 50, 36]),
    bench("n-body", "bench/nbody.c", &["40", "2"]),
    own("water", "applications/water.c", false).like("water-nsquared", [27_560_223, 9_220, 8_300, 0, 0, 0, 0]),
    own("water, seeded", "applications/water.c", true),
    bench("molecules", "bench/moldyn.c", &["5", "2"]),
    bench("options", "bench/options.c", &["200", "2"]).like("blackscholes", [1_568, 84, 4, 0, 0, 0, 0]),
    bench("cluster", "bench/cluster.c", &["200", "8"]).like("streamcluster", [388, 115, 6, 1, 1, 1, 1]),
];

#[derive(Debug, Default, Serialize)]
pub struct Row {
    application: &'static str,
    seeded: bool,
    paper: Option<Published>,
    /// Why it was not measured to the end.
    failed: Option<String>,
    /// Lines of its source.
    lines: usize,
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
    /// Free runs under ThreadSanitizer, those in which it reports a race, and the pairs of lines that it reports in all of them.
    free: u32,
    sanitizer: u32,
    sanitizer_places: usize,
    /// Recordings in whose model a pair has an order.
    recordings: u32,
    /// The CSP engine and the maximal-causality engine on the same pairs.
    compared: Compared,
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
        let Application { name, seeded, paper, .. } = *application;
        let mut row = Row { application: name, seeded, paper, ..Row::default() };
        let begin = Instant::now();
        if let Err(error) = row.measure(application, &tool, &compilers, &place, if quick { FREE.1 } else { FREE.0 }) {
            row.failed = Some(format!("{error:#}"));
        }
        // Stores are large, and no longer needed.
        std::fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        let failed = row.failed.as_ref().map_or("", |_| ", failed");
        eprintln!("{}: {:.1} s, {:.1} s of model checking{failed}", row.application, begin.elapsed().as_secs_f64(), row.checking);
        rows.push(row);
    }
    Ok(rows)
}

impl Row {
    fn measure(&mut self, application: &Application, tool: &Path, compilers: &Compilers, place: &Path, free: u32) -> Result<()> {
        let source = root().join("tests").join(application.source);
        let (binary, store) = (place.join("program"), place.join("store"));
        let text = std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
        self.lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        application.build(Command::new(tool).arg("cc"), &source, &binary)?;
        self.look(application, tool, &binary, &store)?;
        self.force(tool, &store)?;
        let sanitizer = place.join("sanitizer");
        application.build(Command::new(&compilers.c).arg("-fsanitize=thread"), &source, &sanitizer)?;
        self.run_freely(application, &source, &sanitizer, free)
    }

    /// Records, and decides what is recorded.
    fn look(&mut self, application: &Application, tool: &Path, binary: &Path, store: &Path) -> Result<()> {
        let begin = Instant::now();
        let mut record = Command::new(tool);
        record.args(["--quiet", "record", "--recordings", &RECORDINGS.to_string(), "--output"]).arg(store).arg("--").arg(binary);
        let recorded = said_by(record.args(application.args))?;
        self.recording = begin.elapsed().as_secs_f64();
        for number in 0..RECORDINGS {
            for process in processes(&store.join(format!("recording-{number}"))).context("reading the recording")? {
                let trace = Recording::open(&process.folder)?.load()?.trace;
                self.decide(&trace);
                self.compared.add(&trace, Deadline::within(COMPARING));
            }
        }
        if self.captured < LEAST {
            bail!("{} events were recorded\n{recorded}", self.captured);
        }
        Ok(())
    }

    /// Forces what has an order, serially and in parallel.
    fn force(&mut self, tool: &Path, store: &Path) -> Result<()> {
        let json = store.with_extension("json");
        let begin = Instant::now();
        let mut confirm = Command::new(tool);
        confirm.args(["--quiet", "confirm", "--engine", "csp", "--budget", BUDGET, "--json"]).arg(&json).arg(store);
        let confirmed = said_by(&mut confirm)?;
        self.enforcing = begin.elapsed().as_secs_f64();
        let text = std::fs::read(&json).with_context(|| format!("confirming left no report\n{confirmed}"))?;
        let report: Value = serde_json::from_slice(&text).context("the report")?;
        let findings = report["findings"].as_array().into_iter().flatten();
        self.found = findings.filter(|finding| finding["verdict"] == "proven").count();
        self.enforced = enforced(tool, store, BUDGET)?;
        Ok(())
    }

    /// Under ThreadSanitizer.
    fn run_freely(&mut self, application: &Application, source: &Path, binary: &Path, free: u32) -> Result<()> {
        self.free = free;
        let deadline = Deadline::within(FREELY);
        let runs = suite::in_parallel(&vec![(); free as usize], |()| {
            let left = deadline.left().unwrap_or(FREELY).min(ONE_RUN);
            races::execute(Command::new(binary).args(application.args), left)
        })?;
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        let places = |run: &races::Execution| races::parse(&run.said, &name).into_iter().filter_map(|warning| warning.accesses);
        self.sanitizer_places = runs.iter().flat_map(places).collect::<BTreeSet<_>>().len();
        self.sanitizer = runs.iter().filter(|run| run.said.contains("WARNING: ThreadSanitizer: data race")).count() as u32;
        Ok(())
    }

    /// Adds what the model says about a recording.
    fn decide(&mut self, trace: &Trace) {
        let begin = Instant::now();
        let memory = SharedMemory::new(trace);
        let model = Model::new(trace, Atomics::Kept);
        let pairs = hybrid(trace, &memory, 4);
        let candidates: Vec<(EventIndex, EventIndex)> = pairs.iter().flat_map(|pair| pair.pairs.iter().copied()).collect();
        let limits = Limits { deadline: Deadline::within(DECIDING), ..Limits::default() };
        let answer = |&(first, second): &(EventIndex, EventIndex)| {
            find(&model, &[first, second], Window::whole(&model), &limits).answer
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
        self.recordings += u32::from(answers.iter().any(|answer| matches!(answer, Answer::Order(_))));
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
    let failed: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("{}: {}", row.application, row.failed.as_ref()?))).collect();
    let mut bars = vec![
        Bar::holds("every application is measured", failed.is_empty(), bar::all_but(&failed, rows.len())),
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
    let contradictions: usize = rows.iter().map(|row| row.compared.contradictions).sum();
    let missed: usize = rows.iter().map(|row| row.compared.only_maximal).sum();
    bars.push(Bar::holds(
        "applications: the maximal-causality engine finds nothing that CSP misses, and refutes nothing that keeps all reads",
        missed + contradictions == 0,
        format!("{missed} missed, {contradictions} refuted"),
    ));
    bars
}

pub fn print(rows: &[Row]) {
    let titles = [
        "application",
        "lines",
        "captured",
        "reduced",
        "synchronisation",
        "objects",
        "candidates",
        "feasible",
        "in recordings",
        "undecided",
        "found",
        "orders",
        "infeasible",
        "confirmed",
        "places",
        "TSan",
        "its places",
        "recording s",
        "checking s",
        "enforcing s",
        "in parallel s",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        let Enforced { orders, infeasible, confirmed, places, .. } = row.enforced;
        let mut cells = vec![row.application.to_owned()];
        let numbers = [row.lines, row.captured, row.reduced, row.synchronisation, row.objects, row.candidates, row.feasible];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(format!("{} of {RECORDINGS}", row.recordings));
        cells.extend([row.undecided, row.found, orders, infeasible, confirmed, places].map(|number| number.to_string()));
        cells.push(format!("{} of {}", row.sanitizer, row.free));
        cells.push(row.sanitizer_places.to_string());
        cells.extend([row.recording, row.checking, row.enforcing, row.enforced.seconds].map(|seconds| format!("{seconds:.2}")));
        table.row(cells);
    }
    table.print();
    print_published(rows);
    let titles: Vec<&str> = ["application"].into_iter().chain(Compared::TITLES).collect();
    let mut table = Table::new(&titles);
    for row in rows {
        table.row([row.application.to_owned()].into_iter().chain(row.compared.cells()).collect());
    }
    table.print();
}

/// The paper's figures beside ours, of one recording in the mean.
fn print_published(rows: &[Row]) {
    let titles = [
        "paper's",
        "captured",
        "reduced",
        "synchronisation",
        "counterexamples",
        "feasible",
        "places",
        "TSan's",
        "ours",
        "captured",
        "reduced",
        "synchronisation",
        "counterexamples",
        "feasible",
        "places",
        "TSan's",
    ];
    let mut table = Table::new(&titles);
    for (row, paper) in rows.iter().filter_map(|row| Some((row, row.paper?))) {
        let mean = |number: usize| number / RECORDINGS as usize;
        let Enforced { orders, confirmed, places, .. } = row.enforced;
        let mut cells = vec![paper.name.to_owned()];
        cells.extend(paper.numbers.map(|number| number.to_string()));
        cells.push(row.application.to_owned());
        let ours = [mean(row.captured), mean(row.reduced), mean(row.synchronisation), orders, confirmed, places];
        cells.extend(ours.into_iter().chain([row.sanitizer_places]).map(|number| number.to_string()));
        table.row(cells);
    }
    table.print();
    println!(
        "(places: pairs of source lines; TSan's: of {} runs; FDR: a couple of seconds for aget, half an hour for lu)",
        FREE.0
    );
}
