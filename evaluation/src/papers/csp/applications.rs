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

/// How long one of them may take, and after which time no other one begins.
const FREELY: Duration = Duration::from_secs(45);
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

/// The correct one, and the one with a seeded race.
const fn clean(name: &'static str, source: &'static str, args: &'static [&'static str]) -> Application {
    Application { name, source, args, seeded: false, paper: None }
}

const fn seeded(name: &'static str, source: &'static str, args: &'static [&'static str]) -> Application {
    Application { seeded: true, ..clean(name, source, args) }
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

/// Sizes of those that are like one of the paper are such that they execute as many events, and synchronise as often.
const FMM: &[&str] = &["512", "2"];
const BLOCKS: &[&str] = &["18"];
const WATER: &[&str] = &["256", "6", "4"];

const APPLICATIONS: [Application; 20] = [
    clean("download", "applications/download.c", &[]),
    seeded("download, seeded", "applications/download.c", &[]).like("aget", [1_792, 291, 80, 2, 2, 2, 3]),
    clean("bounded buffer", "applications/buffer.c", &[]).like("boundedBuffer", [829, 326, 105, 0, 0, 0, 0]),
    seeded("bounded buffer, seeded", "applications/buffer.c", &[]),
    clean("tracing library", "applications/tracing.c", &[]),
    seeded("tracing library, seeded", "applications/tracing.c", &[]).like("ctrace", [1_543, 275, 64, 4, 3, 3, 2]),
    clean("quicksort", "applications/quicksort.c", &[]),
    seeded("quicksort, seeded", "applications/quicksort.c", &[]).like("qsort", [3_305, 195, 40, 2, 2, 6, 1]),
    clean("FFT", "bench/fft.c", &["9"]).like("fft", [40_440, 207, 18, 1, 0, 0, 0]),
    clean("LU, in place", "bench/lu.c", &["96"]).like("lu-non", [971_559, 490, 42, 0, 0, 0, 0]),
    clean("LU, contiguous blocks", "applications/lu_blocks.c", BLOCKS).like("lu", [59_857_037, 1_185, 138, 0, 0, 0, 0]),
    seeded("LU, contiguous blocks, seeded", "applications/lu_blocks.c", BLOCKS),
    clean("fmm", "applications/fmm.c", FMM),
    seeded("fmm, seeded", "applications/fmm.c", FMM).like("fmm", [1_078_923, 2_730, 1_470, 190, 180, 50, 36]),
    clean("n-body", "bench/nbody.c", &["40", "2"]),
    clean("water", "applications/water.c", WATER).like("water-nsquared", [27_560_223, 9_220, 8_300, 0, 0, 0, 0]),
    seeded("water, seeded", "applications/water.c", WATER),
    clean("molecules", "bench/moldyn.c", &["5", "2"]),
    clean("options", "bench/options.c", &["200", "2"]).like("blackscholes", [1_568, 84, 4, 0, 0, 0, 0]),
    clean("cluster", "bench/cluster.c", &["200", "8"]).like("streamcluster", [388, 115, 6, 1, 1, 1, 1]),
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
    /// Events that were executed; those that were recorded; those of the models; of these, those that synchronise.
    executed: usize,
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
                let recording = Recording::open(&process.folder)?;
                let trace = recording.load()?.trace;
                self.executed += usize::try_from(recording.header.accesses_executed).unwrap_or(usize::MAX);
                self.executed += trace.events.iter().filter(|event| event.access().is_none()).count();
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
        let deadline = Deadline::within(FREELY);
        let runs = suite::in_parallel(&vec![(); free as usize], |()| {
            if deadline.is_over() {
                return Ok(None);
            }
            races::execute(Command::new(binary).args(application.args), ONE_RUN).map(Some)
        })?;
        let runs: Vec<races::Execution> = runs.into_iter().flatten().collect();
        self.free = runs.len() as u32;
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
        let answer =
            |&(first, second): &(EventIndex, EventIndex)| find(&model, &[first, second], Window::whole(&model), &limits).answer;
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
        if let Some(access) = trace.access(event)
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
    // What the paper traces is what is executed: our recordings leave out accesses that are repeated in a segment.
    let is_smaller = |row: &&Row| {
        let Some(Published { numbers: [executed, _, synchronisation, ..], .. }) = row.paper else { return false };
        (mean(row.executed) as u64) < executed || (mean(row.synchronisation) as u64) < synchronisation
    };
    let smaller: Vec<String> = rows.iter().filter(is_smaller).map(|row| row.application.to_owned()).collect();
    let compared = rows.iter().filter(|row| row.paper.is_some()).count();
    let undecided: usize = rows.iter().map(|row| row.undecided).sum();
    let candidates: usize = rows.iter().map(|row| row.candidates).sum();
    let failed: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("{}: {}", row.application, row.failed.as_ref()?))).collect();
    let mut bars = vec![
        Bar::holds("every application is measured", failed.is_empty(), bar::all_but(&failed, rows.len())),
        Bar::holds("as many events and synchronisation as in Table 2", smaller.is_empty(), bar::all_but(&smaller, compared)),
        Bar::holds("every pair is decided", undecided == 0, format!("{undecided} of {candidates} undecided")),
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
        "executed",
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
        let numbers = [row.lines, row.executed, row.captured, row.reduced, row.synchronisation, row.objects];
        let numbers = numbers.into_iter().chain([row.candidates, row.feasible]);
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

/// Of one recording.
const fn mean(number: usize) -> usize {
    number / RECORDINGS as usize
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
        "executed",
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
        let Enforced { orders, confirmed, places, .. } = row.enforced;
        let mut cells = vec![paper.name.to_owned()];
        cells.extend(paper.numbers.map(|number| number.to_string()));
        cells.push(row.application.to_owned());
        let ours = [mean(row.executed), mean(row.captured), mean(row.reduced), mean(row.synchronisation)];
        let ours = ours.into_iter().chain([orders, confirmed, places]);
        cells.extend(ours.chain([row.sanitizer_places]).map(|number| number.to_string()));
        table.row(cells);
    }
    table.print();
    println!(
        "(places: pairs of source lines; TSan's: of {} runs; FDR: a couple of seconds for aget, half an hour for lu)",
        FREE.0
    );
}
