//! Programs that are large: one with ten million accesses that a recorder cannot leave out, one with 64 threads. Whether plain
//! `rashomon check` keeps to its budget and to bounded memory, says what it is at, and proves the race in a small corner of each.
//!
//! What is fair. Nothing is given but the program and the budget. Time is that of the whole command. Memory is what the kernel
//! calls `VmHWM`, looked up every few milliseconds, of any one process: the tool's own, and those of the program under test, each
//! of which has the recorder in it. Pages of a recording that are mapped count where they are resident.

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::compile::succeed;
use crate::common::options::Selecting;
use crate::common::table::Table;
use crate::common::trace_size::{self, TraceSize};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use xtask::workspace::{self, root};

/// What a program has that makes it large, and the functions of its race.
struct Subject {
    name: &'static str,
    least_accesses: u64,
    threads: u64,
    sides: [&'static str; 2],
}

const SUBJECTS: [Subject; 2] = [
    Subject { name: "events", least_accesses: 10_000_000, threads: 5, sides: ["announce", "last_announced"] },
    Subject { name: "crowd", least_accesses: 0, threads: 65, sides: ["leave", "still_there"] },
];

/// Seconds: the usual budget, and one that cuts everything short.
const BUDGETS: [u32; 2] = [60, 10];
const QUICK: [u32; 1] = [10];
/// What a command may take beyond its budget.
const SHARE: f64 = 0.1;
/// Seconds between two lines of progress.
const SILENCE: f64 = 5.0;
/// Bytes that the tool may hold for each event of the recording that it looks at, and besides; `docs/evaluation.md` says why.
const BYTES_PER_EVENT: f64 = 192.0;
const MEGABYTES_OF_TOOL: f64 = 512.0;
/// Megabytes that recording may add to a process: for each of its threads, and besides.
const MEGABYTES_PER_THREAD: f64 = 4.0;
const MEGABYTES_OF_RUNTIME: f64 = 64.0;
/// Between two looks at the processes.
const LOOKED: Duration = Duration::from_millis(5);

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    selecting: Selecting,
    /// Seconds, instead of the usual two budgets.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    budget: Option<u32>,
}

/// One check.
#[derive(Debug, Serialize)]
struct Checked {
    program: &'static str,
    budget: u32,
    seconds: f64,
    /// Of one whole recording of the program: what it executed under observation, and what is kept as an event.
    accesses: u64,
    events: u64,
    threads: u64,
    tool_megabytes: f64,
    program_megabytes: f64,
    /// Lines on standard error while it worked, without numbers.
    messages: BTreeSet<String>,
    longest_silence: f64,
    proven: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    checks: Vec<Checked>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let only = options.selecting.only.as_deref();
    let budgets = match options.budget {
        Some(budget) => vec![budget],
        None if options.selecting.quick => QUICK.to_vec(),
        None => BUDGETS.to_vec(),
    };
    let (mut checks, mut bars) = (Vec::new(), Vec::new());
    for subject in SUBJECTS.iter().filter(|subject| only.is_none_or(|part| subject.name.contains(part))) {
        let binary = folder.path().join(subject.name);
        let source = root().join("tests/scale").join(subject.name).with_extension("c");
        succeed(Command::new(&tool).args(["cc", "-g", "-O1", "-pthread"]).arg(&source).arg("-o").arg(&binary))?;
        let size = size_of(&tool, &binary)?;
        for &budget in &budgets {
            let checked = check(subject, &tool, &binary, budget, size)?;
            eprintln!("{} within {budget} s: {:.1} s", subject.name, checked.seconds);
            bars.extend(bars_of(subject, &checked));
            checks.push(checked);
        }
    }
    if checks.is_empty() {
        bail!("no program's name contains that; they are events and crowd");
    }
    let report = Report { evaluation: "scale", command: command_line(), checks, bars };
    bar::finish(&report, &report.bars, options.selecting.json, || print(&report))
}

/// Of one whole recording of the program.
fn size_of(tool: &Path, binary: &Path) -> Result<TraceSize> {
    let store = binary.with_extension("recorded");
    succeed(Command::new(tool).args(["record", "--output"]).arg(&store).arg("--").arg(binary))?;
    let sessions = trace_size::sessions_below(&store)?;
    let [session] = sessions.as_slice() else { bail!("{} holds {} recordings, not one", store.display(), sessions.len()) };
    let size = trace_size::of(session)?;
    fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    Ok(size)
}

fn check(subject: &Subject, tool: &Path, binary: &Path, budget: u32, size: TraceSize) -> Result<Checked> {
    let store = binary.with_extension(format!("store-{budget}"));
    let report = binary.with_extension("json");
    let mut command = Command::new(tool);
    command.args(["check", "--fail-on", "never", "--budget", &budget.to_string(), "--json"]).arg(&report);
    command.arg("--output").arg(&store).arg("--").arg(binary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().context("cannot start the tool")?;
    let (heard, peaks) = watch(&mut child, tool, begin)?;
    let status = child.wait().context("cannot wait for the tool")?;
    let seconds = begin.elapsed().as_secs_f64();
    if !status.success() {
        bail!("check of {} failed ({status})\n{}", subject.name, heard.lines.join("\n"));
    }
    let text = fs::read(&report).with_context(|| format!("there is no report on {}", subject.name))?;
    let told: Value = serde_json::from_slice(&text).with_context(|| format!("the report on {}", subject.name))?;
    // Recordings of long executions are large.
    fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    Ok(Checked {
        program: subject.name,
        budget,
        seconds,
        accesses: size.accesses_executed,
        events: size.accesses_kept + size.synchronisation_events,
        threads: told["run"]["threads"].as_u64().unwrap_or(0),
        tool_megabytes: peaks.tool,
        program_megabytes: peaks.program,
        messages: heard.lines.iter().map(|line| without_numbers(line)).collect(),
        longest_silence: heard.longest.max(seconds - heard.last),
        proven: told["findings"].as_array().is_some_and(|findings| findings.iter().any(|one| is_planted(one, subject))),
    })
}

/// What stood on standard error.
#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    /// Seconds from the start to the last line, and between two lines at most.
    last: f64,
    longest: f64,
}

/// In megabytes.
#[derive(Clone, Copy, Default)]
struct Peaks {
    tool: f64,
    program: f64,
}

/// Listens until standard error is closed, and looks at the processes meanwhile.
fn watch(child: &mut Child, tool: &Path, begin: Instant) -> Result<(Heard, Peaks)> {
    let output = child.stderr.take().context("standard error of the tool is no pipe")?;
    let (root, ended) = (child.id(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut peaks = Peaks::default();
            while !ended.load(Ordering::Relaxed) {
                look(root, tool, &mut peaks);
                std::thread::sleep(LOOKED);
            }
            peaks
        });
        let mut heard = Heard::default();
        let mut failure = None;
        for line in BufReader::new(output).lines() {
            match line {
                Ok(line) => heard.lines.push(line),
                Err(error) => failure = Some(error),
            }
            let now = begin.elapsed().as_secs_f64();
            heard.longest = heard.longest.max(now - heard.last);
            heard.last = now;
        }
        ended.store(true, Ordering::Relaxed);
        let Ok(peaks) = looking.join() else { bail!("whoever looked at the processes failed") };
        if peaks.tool == 0.0 || peaks.program == 0.0 {
            bail!("/proc tells no peak of memory of the tool or of the program");
        }
        match failure {
            Some(error) => Err(error).context("cannot read what the tool says"),
            None => Ok((heard, peaks)),
        }
    })
}

/// A process and its descendants. Those that have just ended have no file, and no memory.
///
/// Until a child of the tool begins the program it has the tool's memory. A peak is therefore counted only when the process was
/// the same program before and after the peak was read: otherwise the tool's memory would be taken for that of the program.
fn look(process: u32, tool: &Path, peaks: &mut Peaks) {
    let folder = Path::new("/proc").join(process.to_string());
    let before = fs::read_link(folder.join("exe")).ok();
    let text = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: f64 = line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
    if let (Some(before), Ok(after)) = (before, fs::read_link(folder.join("exe")))
        && before == after
    {
        let peak = if after == tool { &mut peaks.tool } else { &mut peaks.program };
        *peak = peak.max(kilobytes / 1024.0);
    }
    for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for below in children.split_whitespace().filter_map(|number| number.parse().ok()) {
            look(below, tool, peaks);
        }
    }
}

/// A line that tells how far something has come is the same one later.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for one in line.trim_start_matches("rashomon: ").chars() {
        match (one.is_ascii_digit(), out.ends_with('#')) {
            (false, _) => out.push(one),
            (true, false) => out.push('#'),
            (true, true) => {}
        }
    }
    out
}

/// Whether the finding is the proof of the program's race: each of its functions is where one of the two accesses is.
fn is_planted(finding: &Value, subject: &Subject) -> bool {
    let sides = finding["sides"].as_array().map_or(&[][..], Vec::as_slice);
    let at = |name: &str| sides.iter().any(|side| side["stack"][0]["function"] == name);
    finding["verdict"] == "proven" && finding["kind"] == "data-race" && subject.sides.iter().all(|name| at(name))
}

fn bars_of(subject: &Subject, checked: &Checked) -> Vec<Bar> {
    let of = |what: &str| format!("{} within {} s: {what}", checked.program, checked.budget);
    let large = checked.accesses >= subject.least_accesses && checked.threads >= subject.threads;
    let budget = f64::from(checked.budget);
    let tool = MEGABYTES_OF_TOOL + checked.events as f64 * BYTES_PER_EVENT / f64::from(1 << 20);
    let program = MEGABYTES_OF_RUNTIME + checked.threads as f64 * MEGABYTES_PER_THREAD;
    let word = if checked.proven { "proven" } else { "not proven" };
    let proven = Bar::holds(&of("its race is proven"), checked.proven, word.into());
    vec![
        Bar::holds(&of("it is large"), large, format!("{} accesses, {} threads", checked.accesses, checked.threads)),
        Bar::at_most(&of("the whole command"), checked.seconds, budget * (1.0 + SHARE), " s"),
        Bar::at_most(&of("peak memory of the tool"), checked.tool_megabytes, tool.round(), " MB"),
        Bar::at_most(&of("peak memory of the program"), checked.program_megabytes, program.round(), " MB"),
        Bar::at_most(&of("longest silence"), checked.longest_silence, SILENCE, " s"),
        if checked.budget < BUDGETS[0] { proven.stretch() } else { proven },
    ]
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let columns =
        ["program", "budget s", "took s", "accesses", "threads", "tool MB", "program MB", "messages", "silence s", "race"];
    let mut table = Table::new(&columns);
    for one in &report.checks {
        table.row(vec![
            one.program.into(),
            one.budget.to_string(),
            format!("{:.1}", one.seconds),
            one.accesses.to_string(),
            one.threads.to_string(),
            format!("{:.0}", one.tool_megabytes),
            format!("{:.0}", one.program_megabytes),
            one.messages.len().to_string(),
            format!("{:.1}", one.longest_silence),
            if one.proven { "proven" } else { "-" }.into(),
        ]);
    }
    table.print();
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked() -> Checked {
        Checked {
            program: "crowd",
            budget: 10,
            seconds: 10.9,
            accesses: 1,
            events: 1 << 20,
            threads: 65,
            tool_megabytes: 64.0,
            program_megabytes: 300.0,
            messages: BTreeSet::new(),
            longest_silence: 4.5,
            proven: true,
        }
    }

    #[test]
    fn whatever_is_beyond_its_bounds_misses() {
        let met = |checked: &Checked| bar::all_met(&bars_of(&SUBJECTS[1], checked));
        assert!(met(&checked()));
        assert!(!met(&Checked { seconds: 11.1, ..checked() }));
        assert!(!met(&Checked { threads: 64, ..checked() }));
        assert!(!met(&Checked { tool_megabytes: 1000.0, ..checked() }));
        assert!(!met(&Checked { program_megabytes: 1000.0, ..checked() }));
        assert!(!met(&Checked { longest_silence: 5.5, ..checked() }));
        assert!(met(&Checked { proven: false, ..checked() }));
        assert!(!met(&Checked { budget: 60, proven: false, ..checked() }));
    }

    #[test]
    fn only_a_proof_of_the_planted_race_counts() {
        let finding = |verdict: &str, one: &str, two: &str| {
            let side = |name: &str| json!({"stack": [{"function": name}, {"function": "work"}]});
            json!({"verdict": verdict, "kind": "data-race", "sides": [side(one), side(two)]})
        };
        assert!(is_planted(&finding("proven", "leave", "still_there"), &SUBJECTS[1]));
        assert!(is_planted(&finding("proven", "still_there", "leave"), &SUBJECTS[1]));
        assert!(!is_planted(&finding("predicted", "leave", "still_there"), &SUBJECTS[1]));
        assert!(!is_planted(&finding("proven", "leave", "work"), &SUBJECTS[1]));
    }

    #[test]
    fn lines_that_differ_in_numbers_are_one_message() {
        assert_eq!(without_numbers("rashomon: forcing race-1 (2 of 30)"), without_numbers("rashomon: forcing race-77 (3 of 30)"));
        assert_ne!(without_numbers("rashomon: analysing: 4 s"), without_numbers("rashomon: recording: 4 s"));
    }
}
