//! What a detector reports in ThreadSanitizer's text format, reduced to pairs of lines, and executions until it has been seen.

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of the program's own file, the smaller first; 0 for a side that has no frame there.
pub type Pair = (u32, u32);

/// One `WARNING: ThreadSanitizer: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// As the format calls it: `data race`, `lock-order-inversion (potential deadlock)`, …
    pub kind: String,
    /// The two accesses, if that is what it is about. Two reads are none: the lock set detector names them where a variable that
    /// somebody wrote lost its last lock at a read.
    pub accesses: Option<Pair>,
}

/// One warning as it was printed: what it is about, and the stacks of its accesses.
#[derive(Debug)]
pub struct Printed<'a> {
    pub kind: &'a str,
    pub sides: Vec<PrintedSide<'a>>,
}

#[derive(Debug)]
pub struct PrintedSide<'a> {
    pub writes: bool,
    /// Innermost first: `#0 function file:line:column (…)`.
    pub frames: Vec<&'a str>,
}

/// All warnings of an output, as they were printed.
pub fn printed(text: &str) -> Vec<Printed<'_>> {
    let mut warnings = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once("WARNING: ThreadSanitizer: ") else { continue };
        let kind = rest.split(" (pid=").next().unwrap_or(rest).trim();
        let mut sides: Vec<PrintedSide<'_>> = Vec::new();
        let mut inside_access = false;
        while let Some(line) =
            lines.next_if(|line| !line.starts_with("SUMMARY:") && !line.starts_with("====") && !line.contains("WARNING: "))
        {
            let body = line.trim_start();
            let is_frame = body.starts_with('#') && body[1..].starts_with(|c: char| c.is_ascii_digit());
            if is_frame && inside_access {
                if let Some(side) = sides.last_mut() {
                    side.frames.push(body);
                }
            } else if !is_frame && !body.is_empty() {
                inside_access = is_access(body);
                if inside_access {
                    let writes = body.to_ascii_lowercase().contains("write of size ");
                    sides.push(PrintedSide { writes, frames: Vec::new() });
                }
            }
        }
        warnings.push(Printed { kind, sides });
    }
    warnings
}

/// All warnings of an output. `file` is the name of the program's source, without folders.
pub fn parse(text: &str, file: &str) -> Vec<Warning> {
    let line_of = |side: &PrintedSide<'_>| side.frames.iter().find_map(|frame| line_in(frame, file)).unwrap_or(0);
    let warning = |printed: Printed<'_>| {
        let accesses = match printed.sides.as_slice() {
            [one, other, ..] if printed.sides.iter().any(|side| side.writes) => {
                let (one, other) = (line_of(one), line_of(other));
                Some((one.min(other), one.max(other)))
            }
            _ => None,
        };
        Warning { kind: printed.kind.to_owned(), accesses }
    };
    printed(text).into_iter().map(warning).collect()
}

/// `Previous atomic write of size 4 at …`
fn is_access(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let line = line.strip_prefix("previous ").unwrap_or(&line);
    let line = line.strip_prefix("atomic ").unwrap_or(line);
    let line = line.strip_prefix("[failed to restore the stack] ").unwrap_or(line);
    line.starts_with("read of size ") || line.starts_with("write of size ")
}

/// The line number of a frame that is in this file.
fn line_in(frame: &str, file: &str) -> Option<u32> {
    frame.match_indices(file).find_map(|(at, _)| {
        let begins = at == 0 || matches!(frame.as_bytes()[at - 1], b'/' | b' ');
        let rest = frame[at + file.len()..].strip_prefix(':')?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|_| begins)
    })
}

/// How one execution ended and what it said on standard error.
#[derive(Debug)]
pub struct Execution {
    /// `None`: killed when its time was over.
    pub status: Option<ExitStatus>,
    pub said: String,
}

/// Runs the command, in a process group of its own, for at most `timeout`; whatever is left of the group then is killed.
pub fn execute(command: &mut Command, timeout: Duration) -> Result<Execution> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("stderr");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    command.stdout(Stdio::null()).stderr(file).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let group = Pid::from_child(&child);
    let ended = ends_within(group, timeout);
    let status =
        if ended.context("cannot wait for a program")? { Some(child.wait().context("cannot wait for a program")?) } else { None };
    // Nothing to be done where all have ended.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    if status.is_none() {
        child.wait().context("cannot wait for a program")?;
    }
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Execution { status, said: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Whether a child ends in that time. It is not reaped.
fn ends_within(child: Pid, timeout: Duration) -> Result<bool> {
    let descriptor = pidfd_open(child, PidfdFlags::empty())?;
    let deadline = Instant::now() + timeout;
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))?;
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&left)) {
            // A signal came to us.
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// What several executions reported.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub runs: u32,
    /// Of those, in how many.
    pub pairs: BTreeMap<Pair, u32>,
    /// Warnings about something else than two accesses, by kind.
    pub others: BTreeMap<String, u32>,
    pub unfinished: u32,
}

impl Observed {
    pub fn add(&mut self, execution: &Execution, file: &str) {
        self.runs += 1;
        self.unfinished += u32::from(execution.status.is_none());
        let warnings = parse(&execution.said, file);
        let pairs: BTreeSet<Pair> = warnings.iter().filter_map(|warning| warning.accesses).collect();
        let others: BTreeSet<&str> =
            warnings.iter().filter(|warning| warning.accesses.is_none()).map(|warning| warning.kind.as_str()).collect();
        for pair in pairs {
            *self.pairs.entry(pair).or_default() += 1;
        }
        for kind in others {
            *self.others.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Pairs of the other with both sides in the program's file that are not here.
    pub fn lacks(&self, other: &Self) -> Vec<Pair> {
        other.pairs.keys().filter(|pair| pair.0 != 0 && !self.pairs.contains_key(pair)).copied().collect()
    }
}

/// Executions that do not end by themselves, after which a program is known to hang and is executed no more than needed.
const ENOUGH_UNFINISHED: u32 = 2;

/// Executes `runs` times; then on, up to `most` times in all, while pairs of `wanted` are lacking.
pub fn observe(
    runs: u32,
    most: u32,
    wanted: &Observed,
    file: &Path,
    mut once: impl FnMut() -> Result<Execution>,
) -> Result<Observed> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut observed = Observed::default();
    let hangs = |observed: &Observed| observed.unfinished >= ENOUGH_UNFINISHED;
    while observed.runs < runs && !hangs(&observed) || observed.runs < most && !observed.lacks(wanted).is_empty() {
        observed.add(&once()?, &name);
    }
    Ok(observed)
}

/// How often a pair has to be seen by the one, and never by the other, in executions in turns. Where both see it alike, chance
/// makes that once in 256 times.
const SIGHTINGS: u32 = 8;
/// Executions of each after which a pair that comes so seldom is left alone.
const MOST_TURNS: u32 = 1000;
/// Of these so many may not end by themselves.
const MOST_UNFINISHED: u32 = 16;

/// Pairs that one way of executing shows and another, so far, does not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    pub lost: Vec<Pair>,
    /// Too seldom to be compared.
    pub seldom: Vec<Pair>,
}

/// What `other` lacks of what `one` has seen: schedules differ from execution to execution, so both go on in turns while that may
/// be chance.
pub fn missing(
    one: &mut Observed,
    other: &mut Observed,
    file: &Path,
    mut once: impl FnMut(bool) -> Result<Execution>,
) -> Result<Missing> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let before = one.clone();
    let sightings = |now: &Observed, pair: &Pair| now.pairs[pair] - before.pairs.get(pair).copied().unwrap_or(0);
    for _ in 0..MOST_TURNS {
        let lacking = other.lacks(one);
        let hangs = one.unfinished.max(other.unfinished) >= MOST_UNFINISHED;
        if hangs || lacking.iter().all(|pair| sightings(one, pair) >= SIGHTINGS) {
            break;
        }
        one.add(&once(false)?, &name);
        other.add(&once(true)?, &name);
    }
    let (lost, seldom) = other.lacks(one).into_iter().partition(|pair| sightings(one, pair) >= SIGHTINGS);
    Ok(Missing { lost, seldom })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reads_are_no_pair() {
        let text = TEXT.replace("Write of size 4", "Read of size 4");
        assert_eq!(parse(&text, "x.c")[0], Warning { kind: "data race".into(), accesses: None });
        assert_eq!(parse(TEXT, "x.c")[0].accesses, Some((2, 3)));
    }

    const TEXT: &str = "noise
==================
WARNING: ThreadSanitizer: data race (pid=21)
  Write of size 4 at 0x55d0 by thread T1:
    #0 memset <null> (a.out+0x5)
    #1 task(int, char*) /some/where/x.c:3:33 (a.out+0xdd) (BuildId: 12)
    #2 other /some/where/x.c:9:1 (a.out+0xdd)

  Previous atomic read of size 4 at 0x55d0 by main thread (mutexes: write M0):
    #0 main x.c:2 (a.out+0x1)

  Location is global 'x' of size 4 at 0x55d0 (a.out+0x1)

  Thread T1 (tid=22, running) created by main thread at:
    #0 pthread_create <null> (a.out+0x5)
    #1 main /some/where/x.c:6:5 (a.out+0x5)

SUMMARY: ThreadSanitizer: data race /some/where/x.c:3:33 in task
==================
==================
WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=21)
  Cycle in lock order graph: M0 (0x1) => M1 (0x2) => M0

  Mutex M1 acquired here while holding mutex M0 in thread T1:
    #0 pthread_mutex_lock <null> (a.out+0x5)
    #1 task /some/where/x.c:8:5 (a.out+0x5)
==================
WARNING: ThreadSanitizer: data race on vptr (ctor/dtor vs virtual call) (pid=21)
  Write of size 8 at 0x1 by thread T1:
    #0 f /some/where/max.c:3:33 (a.out+0xdd)
  Previous write of size 8 at 0x1 by thread T2:
    [failed to restore the stack]
";

    #[test]
    fn warnings_are_kinds_and_lines() {
        let warnings = parse(TEXT, "x.c");
        assert_eq!(
            warnings,
            [
                Warning { kind: "data race".into(), accesses: Some((2, 3)) },
                Warning { kind: "lock-order-inversion (potential deadlock)".into(), accesses: None },
                Warning { kind: "data race on vptr (ctor/dtor vs virtual call)".into(), accesses: Some((0, 0)) },
            ]
        );
        assert!(parse("", "x.c").is_empty());
    }

    #[test]
    fn executions_go_on_until_all_is_seen() {
        let mut wanted = Observed::default();
        let saying = |said: &str| Execution { status: None, said: said.to_owned() };
        wanted.add(&saying(TEXT), "x.c");
        let mut count = 0;
        let silent_at_first = || {
            count += 1;
            Ok(saying(if count < 5 { "" } else { TEXT }))
        };
        let observed = observe(2, 10, &wanted, Path::new("a/x.c"), silent_at_first).unwrap();
        assert_eq!((observed.runs, observed.unfinished), (5, 5));
        let hanging = observe(20, 20, &Observed::default(), Path::new("a/x.c"), || Ok(saying(""))).unwrap();
        assert_eq!(hanging.runs, ENOUGH_UNFINISHED);
        assert!(observed.lacks(&wanted).is_empty());
        let observed = observe(2, 4, &wanted, Path::new("a/x.c"), || Ok(saying(""))).unwrap();
        assert_eq!((observed.runs, observed.lacks(&wanted)), (4, vec![(2, 3)]));
    }

    #[test]
    fn a_pair_is_missing_when_only_one_goes_on_seeing_it() {
        let seen_every = |number: u32| {
            let mut count = 0;
            move || {
                count += 1;
                let said = if count % number == 0 { TEXT } else { "" };
                Execution { status: Some(ExitStatus::default()), said: said.to_owned() }
            }
        };
        let compare = |one: u32, other: u32| {
            let (mut of_one, mut of_other) = (seen_every(one), seen_every(other));
            let (mut first, mut second) = (Observed::default(), Observed::default());
            first.add(&Execution { status: None, said: TEXT.to_owned() }, "x.c");
            let in_turn = |second| Ok(if second { of_other() } else { of_one() });
            let missing = missing(&mut first, &mut second, Path::new("a/x.c"), in_turn).unwrap();
            (missing, first.runs)
        };
        assert_eq!(compare(10, 35), (Missing::default(), 36));
        assert_eq!(compare(10, 2000), (Missing { lost: vec![(2, 3)], seldom: Vec::new() }, 81));
        assert_eq!(compare(500, 2000), (Missing { lost: Vec::new(), seldom: vec![(2, 3)] }, 1001));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo said >&2; sleep 1000 & wait"]);
        let execution = execute(&mut command, Duration::from_millis(300)).unwrap();
        assert!(execution.status.is_none());
        let execution = execute(Command::new("sh").args(["-c", "echo said >&2; exit 3"]), Duration::from_secs(60)).unwrap();
        assert_eq!((execution.status.unwrap().code(), execution.said.as_str()), (Some(3), "said\n"));
    }
}
