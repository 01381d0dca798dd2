//! All schedules of a small program, with every access visible: how they ended where the program could not tell it itself.
//!
//! `outcomes SEARCH FOLDER PROGRAM ARGUMENT…`, where a search is `dpor` or `preemptions`, without a bound. Each line of the
//! output is a word and its values: `left` with the paths of the threads that nobody let go on, `failed` with what else went
//! wrong, and at the end `searched`, with the number of schedules, of those from snapshots, milliseconds, and whether nothing is
//! left.
//! `cargo xtask evaluate complete` compares that with brute force.

use rashomon_confirm::{Forcing, Input, Output, execution};
use rashomon_event::schedule::SCHEDULE_VERSION;
use rashomon_event::{Deadline, Goal, Schedule};
use rashomon_explore::dpor::Dpor;
use rashomon_explore::explorer::{Go, Limits};
use rashomon_explore::preemptions::{PreemptionBounding, UNBOUNDED};
use rashomon_explore::schedule::paths;
use rashomon_explore::{Expected, Explorer, Failure, Log, Search, VisibleAccesses};
use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// No program for which this is meant has so many schedules up to independent steps, or states.
const MOST_SCHEDULES: u64 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(name), Some(folder), Some(executable)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: outcomes SEARCH FOLDER PROGRAM ARGUMENT…".into());
    };
    let mut search: Box<dyn Search> = match name.to_str() {
        Some("dpor") => Box::new(Dpor::new()),
        Some("preemptions") => Box::new(PreemptionBounding::remembering(UNBOUNDED)),
        _ => return Err("a search is dpor or preemptions".into()),
    };
    let program = program(executable.into(), folder.into(), arguments.collect());
    let explorer = Explorer {
        program: &program,
        forcing: forcing(),
        base: nothing(),
        folder: program.directory.clone(),
        accesses: VisibleAccesses::All,
        races: false,
        hold: None,
        prefer: None,
        last: 0,
        steps: 100_000,
        expected: Expected::AnyCode,
        jobs: 1,
        snapshots: true,
    };
    let mut lines = BTreeSet::new();
    let limits = Limits::new(MOST_SCHEDULES, Deadline::NEVER);
    let summary = explorer.search(search.as_mut(), limits, |_, observation| {
        lines.extend(observation.failure.map(|failure| line(failure, &observation.log)));
        Go::On
    })?;
    for line in lines {
        println!("{line}");
    }
    let milliseconds = summary.duration.as_secs_f64() * 1_000.0;
    println!("searched {} {} {milliseconds} {}", summary.schedules, summary.from_snapshots, summary.exhausted);
    Ok(())
}

fn line(failure: Failure, log: &Log) -> String {
    if !matches!(failure, Failure::Deadlock | Failure::Stuck) {
        return format!("failed {failure}");
    }
    let paths = paths(log);
    let path = |(thread, _): &(u32, _)| Some(paths.get(*thread as usize)?.to_string());
    let left: BTreeSet<String> = log.left.iter().filter_map(path).collect();
    format!("left {}", left.into_iter().collect::<Vec<_>>().join(" "))
}

fn program(executable: PathBuf, directory: PathBuf, arguments: Vec<OsString>) -> execution::Program {
    execution::Program {
        executable,
        arguments,
        directory,
        library_path: None,
        randomise_addresses: false,
        environment: Vec::new(),
        before_each: None,
        before_each_limit: None,
        client: None,
    }
}

/// From the beginning of the program on everything is explored.
fn nothing() -> Schedule {
    Schedule {
        version: SCHEDULE_VERSION,
        modules: Vec::new(),
        threads: Vec::new(),
        turns: Vec::new(),
        goal: Goal::None,
        quantum: 0,
        unseen_calls: false,
        surroundings: None,
        kept: Vec::new(),
    }
}

fn forcing() -> Forcing {
    Forcing {
        limit: Duration::from_secs(10),
        deadline: Deadline::NEVER,
        call_timeout: Duration::from_secs(2),
        input: Input::Empty,
        output: Output::Discard,
        base_time_nanoseconds: 0,
        trace_limit: 0,
        processes: 0,
        times: 1,
    }
}
