//! Runs analyses over a source: several over each block while it is in the cache, on as many threads as wanted, within a bound of
//! memory.
//!
//! **Workers.** Whatever can be shared out by variables is: every worker sees all events, keeps all clocks, which change at one
//! event in ten, and looks only at its own variables' accesses. The others are tasks of one worker each. Since an access's answer
//! depends on clocks and its variable alone, and [`crate::Races::merge`] on no order, results are the same for any number of
//! workers.
//!
//! **Memory.** What can be shared out is also done in several passes over the trace, each over a range of variables, when its
//! tables would exceed the bound; a pass that turns out too large is begun again with half of its range. The answer is the same,
//! and takes as many times longer as there are passes. What cannot be shared out has a quarter of the bound for its large tables,
//! and what exceeds that on disk ([`rashomon_spill`]), of which another quarter may be in memory at a time, and counts. Only
//! without a folder for that, or when even small blocks exceed the bound or the disk is full, it ends there: its report is the
//! one of that prefix of the trace, and says so.

use crate::analysis::Analysis as _;
use crate::clock::MAX_EVENTS;
use crate::meter::{Board, Meter, quarter};
use crate::running::{Findings, Kind, Running, Task};
use crate::serialisability::Regions;
use crate::threads::Threads;
use crate::variables::{MAX_WORKERS, Share};
use rashomon_packed::{BLOCK, Event, Names, Source, Space, TraceError};
use rashomon_spill::{Room, Spilling};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use thiserror::Error;

/// Events that are handed to workers together.
const CHUNK: usize = 32 * BLOCK;
/// Events between two looks at the memory that tables on disk take.
const FROM_DISK: usize = 128;
/// Chunks that may wait for a worker.
const WAITING: usize = 4;

#[derive(Clone, Debug)]
pub struct Settings {
    pub kinds: Vec<Kind>,
    /// For serialisability.
    pub regions: Regions,
    /// Only pairs within so many events count; all if there is none.
    pub window: Option<u64>,
    pub workers: u32,
    /// Bytes for tables, about.
    pub memory: Option<usize>,
    /// Where tables go beyond that, those that cannot be shared out. Has an effect if [`rashomon_spill::Allocator`] is the
    /// program's.
    pub spill_to: Option<PathBuf>,
}

#[derive(Debug, Error)]
pub enum EngineError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("the trace has more than {MAX_EVENTS} events, which is how far clocks count: cut it in parts")]
    TooLong,
    #[error("tables of one group of variables exceed the memory allowed: allow more than {allowed} bytes")]
    TooLittleMemory { allowed: usize },
    #[error("cannot put tables on disk, in {folder}: {source}; name another folder, or allow as much memory as it takes")]
    Spill { folder: PathBuf, source: std::io::Error },
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub pass: u32,
    pub events: u64,
    /// Of each pass, where known.
    pub total: Option<u64>,
}

/// Of one analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub kind: Kind,
    pub findings: Findings,
    /// The analysis ended before this event because of the bound of memory.
    pub until: Option<u64>,
}

#[derive(Debug)]
pub struct LinearResults {
    pub events: u64,
    /// Over the trace, for lack of memory more than one.
    pub passes: u32,
    /// In the order of [`Kind::ALL`], those asked for.
    pub reports: Vec<Report>,
    /// Of all tables together, the most there was in memory.
    pub bytes: usize,
    /// And on disk.
    pub bytes_on_disk: usize,
    pub names: Names,
    pub notices: Vec<String>,
}

/// Opens the trace, once a pass.
pub type Open<'a, 't> = dyn FnMut() -> Result<Box<dyn Source + Send + 't>, TraceError> + 'a;

/// A task over a range of variables.
#[derive(Clone, Copy, Debug)]
struct Job {
    task: Task,
    low: u32,
    high: u32,
}

pub fn analyse(
    open: &mut Open<'_, '_>,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<LinearResults, EngineError> {
    let workers = Workers {
        workers: settings.workers.clamp(1, MAX_WORKERS),
        window: settings.window,
        memory: settings.memory.unwrap_or(usize::MAX),
    };
    let spilling = spill(settings)?;
    let mut jobs: Vec<Job> = Task::of(&settings.kinds, settings.regions, settings.window)
        .into_iter()
        .map(|task| Job { task, low: 0, high: u32::MAX })
        .collect();
    let mut found: BTreeMap<Kind, Report> = BTreeMap::new();
    let (mut bytes, mut bytes_on_disk, mut number) = (0, 0, 0);
    let mut threads = Threads::default();
    loop {
        number += 1;
        let mut source = open()?;
        let pass = workers
            .pass(&jobs, &mut *source, &mut threads, &mut |events, total| progress(Progress { pass: number, events, total }))?;
        bytes = bytes.max(pass.bytes);
        bytes_on_disk = bytes_on_disk.max(pass.bytes_on_disk);
        let mut next = Vec::new();
        for (job, end) in jobs.into_iter().zip(pass.ends) {
            match end {
                End::Done(parts) => {
                    gather(&mut found, parts, None);
                    // As many variables as fitted this time.
                    if let Some(low) = job.high.checked_add(1).filter(|low| *low <= pass.highest) {
                        next.push(Job { low, high: low.saturating_add(job.high - job.low), ..job });
                    }
                }
                End::Stopped(parts, until) => {
                    let only_shb = matches!(job.task, Task::DetectSchedulable { .. });
                    let parts = parts.into_iter().filter(|(kind, _)| !only_shb || *kind == Kind::Shb).collect();
                    gather(&mut found, parts, Some(until));
                    if let Task::DetectSchedulable { lock_sets } = job.task {
                        next.push(Job { task: Task::Detect { lock_sets }, ..job });
                    }
                }
                End::Unfit { slots, bytes } => {
                    let span = job.high - job.low;
                    if span <= SMALLEST {
                        return Err(EngineError::TooLittleMemory { allowed: workers.memory });
                    }
                    // What it was in the company of may be gone by then.
                    let fit = slots as u128 * workers.memory as u128 / bytes.max(1) as u128 / 2;
                    let fewer = fit.try_into().unwrap_or(u32::MAX).min(span / 2).max(SMALLEST);
                    next.push(Job { high: job.low.saturating_add(fewer), ..job });
                }
            }
        }
        if next.is_empty() {
            let wanted = found.into_values().filter(|report| settings.kinds.contains(&report.kind));
            let traced = |mut report: Report| {
                report.findings.rename_threads(|thread| threads.traced(thread));
                report
            };
            let reports = wanted.map(traced).collect();
            let (names, mut notices) = (source.names().clone(), source.notices().to_vec());
            if let Some(error) = spilling.as_ref().and_then(Spilling::refused) {
                notices.push(format!("not all tables that were to go to disk could: {error}"));
            }
            return Ok(LinearResults { events: pass.events, passes: number, reports, bytes, bytes_on_disk, names, notices });
        }
        jobs = next;
    }
}

/// A bound of memory for what cannot be shared out.
fn spill(settings: &Settings) -> Result<Option<Spilling>, EngineError> {
    let (Some(memory), Some(folder)) = (settings.memory, &settings.spill_to) else { return Ok(None) };
    match rashomon_spill::begin(Room { blocks: quarter(memory), window: quarter(memory) }, folder) {
        Ok(spilling) => Ok(Some(spilling)),
        // Then everything is in memory, and ends with it.
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(source) => Err(EngineError::Spill { folder: folder.clone(), source }),
    }
}

/// Variables in a pass, at least.
const SMALLEST: u32 = 1 << 10;

fn gather(found: &mut BTreeMap<Kind, Report>, parts: Vec<(Kind, Findings)>, until: Option<u64>) {
    for (kind, findings) in parts {
        match found.get_mut(&kind) {
            Some(report) => report.findings.merge(findings),
            None => drop(found.insert(kind, Report { kind, findings, until })),
        }
    }
}

/// How a job ended.
enum End {
    Done(Vec<(Kind, Findings)>),
    /// Before that event, for lack of memory.
    Stopped(Vec<(Kind, Findings)>, u64),
    /// Its tables, of so many bytes for so many variables, were too large.
    Unfit {
        slots: usize,
        bytes: usize,
    },
}

struct Pass {
    ends: Vec<End>,
    events: u64,
    bytes: usize,
    bytes_on_disk: usize,
    /// The greatest variable, if a job has not all of them.
    highest: u32,
}

/// One worker's part of one job.
struct Part {
    job: usize,
    running: Running,
    /// Its tables may go to disk.
    spills: bool,
}

impl Part {
    fn block(&mut self, first: u64, events: &[Event]) {
        if self.spills {
            rashomon_spill::allowing(|| self.running.block(first, events));
        } else {
            self.running.block(first, events);
        }
    }
}

/// What is left of a part.
struct Remains {
    job: usize,
    running: Running,
    stopped: Option<u64>,
}

struct Worker<'a> {
    number: usize,
    window: Option<u64>,
    meter: &'a Meter,
    parts: Vec<Part>,
    remains: Vec<Remains>,
}

impl Worker<'_> {
    /// Some events; the first of them is number `first`.
    fn chunk(&mut self, first: u64, events: &[Event]) {
        let (mut place, mut rest) = (first, events);
        while !rest.is_empty() {
            // What an event brings into memory from disk may be many pages.
            let length = if rashomon_spill::on_disk() > 0 { FROM_DISK } else { BLOCK };
            let (block, later) = rest.split_at(length.min(rest.len()));
            self.block(place, block);
            (place, rest) = (place + block.len() as u64, later);
        }
        for part in &self.parts {
            self.meter.boards[part.job].bytes[self.number].store(part.running.bytes(), Ordering::Relaxed);
        }
        self.meter.look();
        let mut place = 0;
        while place < self.parts.len() {
            let part = &self.parts[place];
            let board = &self.meter.boards[part.job];
            if board.is_stopped() {
                board.slots.fetch_add(part.running.slots(), Ordering::Relaxed);
                board.bytes[self.number].store(0, Ordering::Relaxed);
                let Part { job, running, .. } = self.parts.remove(place);
                // What can be shared out will be done again.
                let stopped = Some(first + events.len() as u64);
                self.remains.push(Remains { job, running: running.without_tables(), stopped });
            } else {
                place += 1;
            }
        }
    }

    fn block(&mut self, first: u64, events: &[Event]) {
        let (mut first, mut rest) = (first, events);
        while !rest.is_empty() {
            let mut length = rest.len();
            if let Some(window) = self.window {
                if first > 0 && first.is_multiple_of(window) {
                    self.parts.iter_mut().for_each(|part| part.running.boundary(first));
                }
                length = length.min((window - first % window).try_into().unwrap_or(usize::MAX));
            }
            let (now, later) = rest.split_at(length);
            self.parts.iter_mut().for_each(|part| part.block(first, now));
            (first, rest) = (first + length as u64, later);
        }
        rashomon_spill::trim();
    }

    fn finish(mut self) -> Vec<Remains> {
        self.remains.extend(self.parts.into_iter().map(|Part { job, running, .. }| Remains { job, running, stopped: None }));
        self.remains
    }
}

struct Workers {
    workers: u32,
    window: Option<u64>,
    memory: usize,
}

impl Workers {
    fn pass(
        &self,
        jobs: &[Job],
        source: &mut (dyn Source + Send + '_),
        threads: &mut Threads,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Pass, EngineError> {
        let count = self.workers as usize;
        let bytes = || (0..count).map(|_| AtomicUsize::new(0)).collect();
        let board = |job: &Job| Board { shares: job.task.can_be_shared(), bytes: bytes(), ..Board::default() };
        let meter = Meter {
            boards: jobs.iter().map(board).collect(),
            allowed: self.memory,
            most: AtomicUsize::new(0),
            most_on_disk: AtomicUsize::new(0),
            deciding: Mutex::new(()),
        };
        let mut workers: Vec<Worker<'_>> = (0..count).map(|number| self.worker(number, &meter)).collect();
        for (number, job) in jobs.iter().enumerate() {
            let shares = if job.task.can_be_shared() { self.workers } else { 1 };
            for share in 0..shares {
                let mut running = job.task.start(Share::new(share, shares, job.low, job.high));
                for space in Space::ALL {
                    if let Some(numbers) = source.expected(space) {
                        running.expect(space, numbers);
                    }
                }
                // Tasks of one worker go to the last ones first: the first ones have the odd shares.
                let worker = if shares == 1 { count - 1 - number % count } else { share as usize };
                meter.boards[number].bytes[worker].fetch_add(running.bytes(), Ordering::Relaxed);
                workers[worker].parts.push(Part { job: number, running, spills: !job.task.can_be_shared() });
            }
        }
        let mut reader = Reader { source, threads, wanted: jobs.iter().any(|job| job.high != u32::MAX), highest: 0 };
        let (events, remains) = match workers.len() {
            1 => alone(workers.pop().expect("one"), &mut reader, &meter, progress)?,
            _ => together(workers, &mut reader, &meter, progress)?,
        };
        let mut ends: Vec<End> = jobs.iter().map(|_| End::Done(Vec::new())).collect();
        for Remains { job, running, stopped } in remains {
            match (&mut ends[job], stopped) {
                (End::Unfit { .. }, _) => {}
                (end, Some(_)) if jobs[job].task.can_be_shared() => {
                    let board = &meter.boards[job];
                    let [slots, bytes] = [&board.slots, &board.bytes_then].map(|number| number.load(Ordering::Relaxed));
                    *end = End::Unfit { slots, bytes };
                }
                (end, Some(until)) => *end = End::Stopped(running.found(), until),
                (End::Done(parts) | End::Stopped(parts, _), None) => parts.extend(running.found()),
            }
        }
        let (bytes, bytes_on_disk) = (meter.most.into_inner(), meter.most_on_disk.into_inner());
        Ok(Pass { ends, events, bytes, bytes_on_disk, highest: reader.highest })
    }

    fn worker<'a>(&self, number: usize, meter: &'a Meter) -> Worker<'a> {
        Worker { number, window: self.window, meter, parts: Vec::new(), remains: Vec::new() }
    }
}

/// Hands on events as analyses want them.
struct Reader<'a, 's> {
    source: &'a mut (dyn Source + Send + 's),
    threads: &'a mut Threads,
    /// The greatest variable, if a job has not all of them.
    wanted: bool,
    highest: u32,
}

impl Reader<'_, '_> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), EngineError> {
        self.source.next(block)?;
        self.threads.number(block);
        if self.wanted {
            let accessed = block.iter().filter(|event| event.op.is_access()).map(|event| event.target);
            self.highest = self.highest.max(accessed.max().unwrap_or(0));
        }
        Ok(())
    }
}

/// A number of events that clocks can count.
fn count(first: u64, events: &[Event]) -> Result<u64, EngineError> {
    let next = first + events.len() as u64;
    if next > MAX_EVENTS { Err(EngineError::TooLong) } else { Ok(next) }
}

fn alone(
    mut worker: Worker<'_>,
    reader: &mut Reader<'_, '_>,
    meter: &Meter,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<(u64, Vec<Remains>), EngineError> {
    let mut block = Vec::with_capacity(BLOCK);
    let mut first = 0;
    loop {
        reader.next(&mut block)?;
        let next = count(first, &block)?;
        if block.is_empty() || !meter.is_busy() {
            break;
        }
        worker.chunk(first, &block);
        first = next;
        progress(first, reader.source.events());
    }
    Ok((first, worker.finish()))
}

fn together(
    workers: Vec<Worker<'_>>,
    reader: &mut Reader<'_, '_>,
    meter: &Meter,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<(u64, Vec<Remains>), EngineError> {
    std::thread::scope(|scope| {
        let (mut ends, mut threads) = (Vec::new(), Vec::new());
        for mut worker in workers {
            let (end, chunks) = mpsc::sync_channel::<(u64, Arc<Vec<Event>>)>(WAITING);
            ends.push(end);
            threads.push(scope.spawn(move || {
                for (first, events) in chunks {
                    worker.chunk(first, &events);
                }
                worker.finish()
            }));
        }
        let mut block = Vec::with_capacity(BLOCK);
        let mut first = 0;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            while chunk.len() + BLOCK <= CHUNK {
                reader.next(&mut block)?;
                if block.is_empty() {
                    break;
                }
                chunk.extend_from_slice(&block);
            }
            let next = count(first, &chunk)?;
            if chunk.is_empty() || !meter.is_busy() {
                break;
            }
            let chunk = Arc::new(chunk);
            for end in &ends {
                // A worker that is gone has panicked, which joining it will show.
                let _ = end.send((first, Arc::clone(&chunk)));
            }
            first = next;
            progress(first, reader.source.events());
        }
        drop(ends);
        let remains = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(remains) => remains,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok((first, remains.collect()))
    })
}
