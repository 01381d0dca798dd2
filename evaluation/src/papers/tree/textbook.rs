//! The thesis' own comparison, the second half of Table 5.1's: FastTrack as its paper prints it, with and without TREE in front.
//!
//! The thesis runs both inside Java programs, under RoadRunner. Here they run over a recording of every access: the same events,
//! one after the other, so that nothing but detector and filter is measured, and what the hooks of our own detector recognise
//! does not hide what the filter saves. FastTrack is Figure 5 of C. Flanagan, S. Freund, "FastTrack: Efficient and Precise
//! Dynamic Race Detection", PLDI 2009; clocks are those of `rashomon_order`; TREE is `rashomon_filter` with the relation for
//! happens-before.
//!
//! Deviations: (1) a variable is the address where an access begins; (2) all events have one thread, so that neither locks its
//! tables; (3) a race is noted, once for each variable, and the state goes on as if there were none.

use crate::common::compile::Built;
use crate::common::measure::{geometric_mean, median};
use crate::common::programs::BenchProgram;
use crate::common::table::Table;
use crate::common::trace_size::sessions_below;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{AccessClass, EventIndex, EventKind, ThreadId, Trace};
use rashomon_filter::{Options, Relation, Tree, Verdict};
use rashomon_order::clock::ThreadClock;
use rashomon_order::happens_before::{HappensBefore, Model, thread_count};
use rashomon_trace::Recording;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// c@t: a time of one thread. No thread's time is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Epoch {
    thread: ThreadId,
    time: u32,
}

impl Epoch {
    /// ⊥ₑ: before everything.
    const NEVER: Self = Self { thread: ThreadId(0), time: 0 };

    /// c@t ≤ C
    fn is_before(self, clock: &ThreadClock) -> bool {
        self.time <= clock.knows(self.thread)
    }
}

enum Reads {
    Last(Epoch),
    /// The last one of each thread.
    Shared(Vec<u32>),
}

struct Variable {
    written: Epoch,
    read: Reads,
}

#[derive(Default)]
struct FastTrack {
    variables: FxHashMap<u64, Variable>,
    racy: BTreeSet<u64>,
}

impl FastTrack {
    fn access(&mut self, thread: ThreadId, clock: &ThreadClock, threads: usize, address: u64, class: AccessClass) {
        let fresh = || Variable { written: Epoch::NEVER, read: Reads::Last(Epoch::NEVER) };
        let variable = self.variables.entry(address).or_insert_with(fresh);
        let now = Epoch { thread, time: clock.time() };
        let ordered = if class == AccessClass::Read { read(variable, now, clock, threads) } else { write(variable, now, clock) };
        if !ordered {
            self.racy.insert(address);
        }
    }
}

/// The rules for reads. False: a race.
fn read(variable: &mut Variable, now: Epoch, clock: &ThreadClock, threads: usize) -> bool {
    match &variable.read {
        // [FT READ SAME EPOCH]
        Reads::Last(last) if *last == now => return true,
        _ => {}
    }
    let ordered = variable.written.is_before(clock);
    match &mut variable.read {
        // [FT READ SHARED]
        Reads::Shared(times) => times[now.thread.index()] = now.time,
        // [FT READ EXCLUSIVE]
        Reads::Last(last) if last.is_before(clock) => *last = now,
        // [FT READ SHARE]
        Reads::Last(last) => {
            let mut times = vec![0; threads];
            times[last.thread.index()] = last.time;
            times[now.thread.index()] = now.time;
            variable.read = Reads::Shared(times);
        }
    }
    ordered
}

/// The rules for writes. False: a race.
fn write(variable: &mut Variable, now: Epoch, clock: &ThreadClock) -> bool {
    // [FT WRITE SAME EPOCH]
    if variable.written == now {
        return true;
    }
    let mut ordered = variable.written.is_before(clock);
    match &variable.read {
        // [FT WRITE EXCLUSIVE]
        Reads::Last(last) => ordered &= last.is_before(clock),
        // [FT WRITE SHARED]
        Reads::Shared(times) => {
            ordered &= times.iter().enumerate().all(|(thread, &time)| time <= clock.knows(ThreadId(thread as u32)));
            variable.read = Reads::Last(Epoch::NEVER);
        }
    }
    variable.written = now;
    ordered
}

struct Outcome {
    seconds: f64,
    variables: usize,
    racy: BTreeSet<u64>,
    filter: rashomon_filter::Statistics,
}

/// All events once, with the filter or without.
fn detect(trace: &Trace, filtered: bool) -> Outcome {
    let threads = thread_count(trace);
    let begin = Instant::now();
    let mut tree = filtered.then(|| Tree::new(threads, Options::new(Relation::HAPPENS_BEFORE)));
    let mut order = HappensBefore::new(trace, Model::CPP20);
    let mut detector = FastTrack::default();
    for (number, event) in trace.events.iter().enumerate() {
        let index = EventIndex(number as u32);
        order.receive(index, &event);
        let wanted = tree.as_mut().is_none_or(|tree| tree.step(&event) == Verdict::Kept);
        if let EventKind::Access(access) = event.kind
            && wanted
        {
            detector.access(event.thread, order.clock(event.thread), threads, access.address.0, access.class);
        }
        order.release(index, &event);
    }
    Outcome {
        seconds: begin.elapsed().as_secs_f64(),
        variables: detector.variables.len(),
        racy: detector.racy,
        filter: tree.map(|tree| tree.statistics()).unwrap_or_default(),
    }
}

/// A program's recording under FastTrack, alone and behind TREE.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub thesis: &'static str,
    events: u64,
    accesses: u64,
    skipped: u64,
    seconds: f64,
    filtered_seconds: f64,
    variables: usize,
    /// That the filter remembers at the end, of about a hundred bytes each.
    locations: u64,
    racy: usize,
    /// Variables with a race that is not found behind the filter.
    lost: usize,
}

impl Row {
    /// By how much the filter shortens the time.
    fn percent_faster(&self) -> f64 {
        100.0 * (1.0 - self.filtered_seconds / self.seconds.max(1e-6))
    }

    pub fn lost(&self) -> usize {
        self.lost
    }

    fn of(program: &BenchProgram, trace: &Trace, runs: u32) -> Self {
        let (mut alone, mut behind) = (Vec::new(), Vec::new());
        let (mut off, mut on) = (detect(trace, false), detect(trace, true));
        for _ in 1..runs {
            alone.push(off.seconds);
            behind.push(on.seconds);
            (off, on) = (detect(trace, false), detect(trace, true));
        }
        alone.push(off.seconds);
        behind.push(on.seconds);
        Self {
            name: program.name,
            thesis: program.thesis,
            events: trace.events.len() as u64,
            accesses: on.filter.accesses,
            skipped: on.filter.skipped(),
            seconds: median(alone),
            filtered_seconds: median(behind),
            variables: off.variables,
            locations: on.filter.locations,
            racy: off.racy.len(),
            lost: off.racy.difference(&on.racy).count(),
        }
    }
}

/// Records every access of a program with small inputs, and looks at it.
pub fn measure(program: &BenchProgram, built: &Built, tool: &Path, folder: &Path, runs: u32) -> Result<Row> {
    let store = folder.join("every-access");
    let mut command = Command::new(tool);
    command.args(["--quiet", "record", "--every-access", "--trace-limit", "0", "--timeout", "0", "--output"]).arg(&store);
    let output = command.arg("--").arg(&built.ours).args(program.small).output().context("cannot start the recording")?;
    if !output.status.success() {
        bail!("recording {} failed ({})\n{}", program.name, output.status, String::from_utf8_lossy(&output.stderr));
    }
    let sessions = sessions_below(&store)?;
    let [session] = sessions.as_slice() else { bail!("{} recordings of {} instead of one", sessions.len(), program.name) };
    let loaded = Recording::open(session)?.load().with_context(|| format!("cannot load {}", session.display()))?;
    let row = Row::of(program, &loaded.trace, runs);
    std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    Ok(row)
}

pub fn print(rows: &[Row]) {
    println!("\nFastTrack as printed, alone and behind the filter, over recordings of every access, small inputs");
    let titles = [
        "program",
        "as in Table 5.1",
        "events",
        "accesses",
        "% skipped",
        "alone s",
        "filtered s",
        "% faster",
        "variables",
        "locations",
        "racy",
        "lost",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        let mut cells = vec![row.name.to_owned(), row.thesis.to_owned(), row.events.to_string(), row.accesses.to_string()];
        cells.push(format!("{:.1}", 100.0 * row.skipped as f64 / row.accesses.max(1) as f64));
        cells.extend([row.seconds, row.filtered_seconds].map(|seconds| format!("{seconds:.3}")));
        cells.push(format!("{:+.1}", row.percent_faster()));
        cells.extend([row.variables as u64, row.locations, row.racy as u64, row.lost as u64].map(|number| number.to_string()));
        table.row(cells);
    }
    table.print();
    let ratio = geometric_mean(rows.iter().map(|row| row.filtered_seconds / row.seconds.max(1e-6)));
    println!("geometric mean: {:+.1} % faster with the filter", 100.0 * (1.0 - ratio));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_order::happens_before::unordered;
    use rashomon_testkit::{Features, Shape, random};

    /// The first race of each variable is found, no other variable is reported; behind the filter the same.
    #[test]
    fn it_finds_the_variables_that_have_a_race() {
        let mut racy = 0;
        for seed in 0..3000 {
            let features = Features { fork_join: seed % 2 == 0, shared_locks: seed % 3 == 0, ..Features::default() };
            let trace = random(seed, Shape { threads: 3, events: 16, variables: 3, locks: 2, features });
            let accesses: Vec<_> = trace
                .events
                .iter()
                .enumerate()
                .filter_map(|(number, event)| match event.kind {
                    EventKind::Access(access) => Some((EventIndex(number as u32), event.thread, access)),
                    _ => None,
                })
                .collect();
            let mut wanted = BTreeSet::new();
            for (at, (one, thread, access)) in accesses.iter().enumerate() {
                for (other, second, later) in &accesses[at + 1..] {
                    let conflict = thread != second && access.address == later.address;
                    let writes = access.class != AccessClass::Read || later.class != AccessClass::Read;
                    if conflict && writes && unordered(&trace, *one, *other, Model::CPP20) {
                        wanted.insert(access.address.0);
                    }
                }
            }
            racy += wanted.len();
            assert_eq!(detect(&trace, false).racy, wanted, "seed {seed}");
            assert_eq!(detect(&trace, true).racy, wanted, "seed {seed}, filtered");
        }
        assert!(racy > 1000, "{racy}");
    }
}
