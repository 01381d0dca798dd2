//! Processes of a session that outlive the one we started, such as a daemon: they belong to the execution as long as they record
//! and do something.

use crate::execution::no_session;
use crate::{process, process_tree};
use rashomon_trace::{RunHeader, RunState, processes};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A child has its header before it has a number, which takes it no longer than to be scheduled.
const BIRTH: Duration = Duration::from_secs(1);
/// Nobody is left who would give work to one that has done nothing for as long.
const IDLE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until none of them records any more, or all are idle, or until `deadline`. Tells who still records.
pub(crate) fn wait(session: &Path, deadline: Option<Instant>) -> Vec<i32> {
    // Without the header of the first process there are no others: a program that nobody observes is none of ours.
    if session == no_session() || !session.join(rashomon_abi::HEADER_FILE).is_file() {
        return Vec::new();
    }
    let start = Instant::now();
    let (mut progress, mut last) = (BTreeMap::new(), start);
    loop {
        let (running, unborn) = look(session);
        let times: BTreeMap<i32, Option<u64>> = running.iter().map(|&id| (id, processor_time(id))).collect();
        if times != progress {
            (progress, last) = (times, Instant::now());
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let waiting = !running.is_empty() && last.elapsed() < IDLE || unborn && start.elapsed() < BIRTH;
        if !waiting || late {
            return running;
        }
        std::thread::sleep(PAUSE);
    }
}

/// What a process used of the processors so far, in clock ticks.
fn processor_time(id: i32) -> Option<u64> {
    let fields = process_tree::behind_name(Path::new(&format!("/proc/{id}/stat")))?;
    // User and system time are the twelfth and thirteenth fields behind the name.
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

/// Those that record now, without waiting.
pub(crate) fn running(session: &Path) -> Vec<i32> {
    if session == no_session() { Vec::new() } else { look(session).0 }
}

/// All that record now, the first one included.
pub(crate) fn recording(session: &Path) -> Vec<i32> {
    if session == no_session() {
        return Vec::new();
    }
    let mut all = running(session);
    let first = RunHeader::read(session).ok().and_then(|header| i32::try_from(header.process_id).ok());
    all.extend(first.filter(|&id| id > 1 && records_into(id, session)));
    all
}

/// How long the kernel may take to be done with a process that was ended.
const DEATH: Duration = Duration::from_secs(5);

/// Ends processes, and waits until they write no more: what they recorded will be read, and their folder may be used again.
pub(crate) fn end(processes: &[i32]) {
    processes.iter().for_each(|&id| process::kill(id));
    let start = Instant::now();
    while start.elapsed() < DEATH && processes.iter().any(|&id| process_tree::is_alive(id)) {
        std::thread::sleep(PAUSE / 5);
    }
}

/// Numbers of the descendants that record now; whether there is one that has no number yet.
fn look(session: &Path) -> (Vec<i32>, bool) {
    let (mut running, mut unborn) = (Vec::new(), false);
    for process in processes(session).unwrap_or_default().iter().skip(1) {
        match RunHeader::read(&process.folder) {
            Ok(header) if header.state != RunState::Running => {}
            Ok(RunHeader { process_id: 0, .. }) => unborn = true,
            Ok(header) => {
                let id = i32::try_from(header.process_id).ok().filter(|&id| id > 1 && records_into(id, &process.folder));
                running.extend(id);
            }
            // Its parent is writing it.
            Err(_) => unborn = true,
        }
    }
    (running, unborn)
}

/// Whether the process of that number is the one that has this folder's header mapped; its number may be somebody else's by now.
fn records_into(id: i32, folder: &Path) -> bool {
    let maps = std::fs::read(format!("/proc/{}/maps", process_tree::shown_as(id))).unwrap_or_default();
    let header = folder.join(rashomon_abi::HEADER_FILE);
    // The kernel writes a newline of a path so.
    let header = header.as_os_str().as_encoded_bytes().iter().flat_map(|byte| match byte {
        b'\n' => br"\012".as_slice(),
        byte => std::slice::from_ref(byte),
    });
    let header: Vec<u8> = header.copied().collect();
    maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(&header))
}
