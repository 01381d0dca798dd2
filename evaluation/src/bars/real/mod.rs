//! Real programs from Debian's sources: built as the README says, with `detect`, `check` and `record`, beside a native run and
//! clang's ThreadSanitizer.
//!
//! Each has to end in time, to do its work as natively, and to be told nothing false: every report is looked up in
//! `readings.toml`.

pub mod programs;
mod readings;

use crate::common::bar::{self, Bar};
use crate::common::compile::succeed;
use crate::common::debian;
use crate::common::only::Only;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use programs::{EVERYWHERE, Part, Real, programs_of};
use rashomon_confirm::{Client, Ending, Input, Output, Program, Time, execute, no_session};
use readings::{Reading, Report};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace;

/// Seconds that `check` is given for all its forced executions.
const BUDGET: f64 = 60.0;
/// What a run of ours may take: so many times the native one, and this.
const SLOWDOWN: f64 = 100.0;
const LEAST: f64 = 60.0;
/// Nothing takes longer: what would is ended.
const HANGS: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize)]
struct Ran {
    way: &'static str,
    seconds: f64,
    bound: Option<f64>,
    /// Empty: as natively.
    wrong: String,
    reports: Vec<String>,
    /// Those that nobody has read, or that are false.
    unexplained: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Outcome {
    program: String,
    runs: Vec<Ran>,
    error: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only programs whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let readings = readings::readings()?;
    provide_everywhere()?;
    let base = workspace::root().join("target/real");
    let mut outcomes = Vec::new();
    let only = Only::of(options.only.as_deref());
    for real in programs_of("real")?.into_iter().filter(|real| only.wants(&real.name)) {
        let folder = base.join(&real.name);
        let (runs, error) = match evaluate(&real, &folder, &tool, &readings) {
            Ok(runs) => (runs, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        outcomes.push(Outcome { program: real.name, runs, error });
    }
    only.check()?;
    let bars = bars(&outcomes);
    if options.json {
        let report = serde_json::json!({ "evaluation": "real", "programs": outcomes, "bars": bars });
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(bar::all_met(&bars));
    }
    println!("cargo xtask evaluate real");
    table(&outcomes);
    Ok(bar::print(&bars))
}

/// What every build needs.
pub fn provide_everywhere() -> Result<()> {
    debian::provide(&EVERYWHERE.map(|(package, file)| (package, Path::new(file).exists())))
}

fn table(outcomes: &[Outcome]) {
    let mut table = Table::new(&["seconds", "native", "libtsan", "detect", "record", "check"]);
    for outcome in outcomes {
        let of =
            |way: &str| outcome.runs.iter().find(|ran| ran.way == way).map_or("-".into(), |ran| format!("{:.1}", ran.seconds));
        let mut row = vec![outcome.program.clone()];
        row.extend(["native", "libtsan", "detect", "record", "check"].map(of));
        table.row(row);
    }
    table.print();
    for outcome in outcomes {
        for ran in &outcome.runs {
            for report in &ran.reports {
                println!("{}, {}: {report}", outcome.program, ran.way);
            }
        }
    }
}

fn bars(outcomes: &[Outcome]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for Outcome { program, runs, error } in outcomes {
        if let Some(error) = error {
            bars.push(Bar::holds(&format!("{program}: built and run"), false, error.clone()));
        }
        for ran in runs {
            if let Some(bound) = ran.bound {
                bars.push(Bar::at_most(&format!("{program}: {} ends in time", ran.way), ran.seconds, bound, " s"));
                let reports = if ran.unexplained.is_empty() {
                    format!("{} reports, all read", ran.reports.len())
                } else {
                    ran.unexplained.join("; ")
                };
                bars.push(Bar::holds(
                    &format!("{program}: {} tells nothing false", ran.way),
                    ran.unexplained.is_empty(),
                    reports,
                ));
            }
            let found = if ran.wrong.is_empty() { "as natively".into() } else { ran.wrong.clone() };
            bars.push(Bar::holds(&format!("{program}: {} works", ran.way), ran.wrong.is_empty(), found));
        }
    }
    bars
}

/// One program, on its way through all runs.
struct Bench<'a> {
    real: &'a Real,
    work: PathBuf,
    tool: &'a Path,
    readings: &'a [Reading],
    /// What a native run left.
    expected: String,
}

/// Folders: of each build, and where the program works.
pub struct Builds {
    pub native: PathBuf,
    pub sanitizer: PathBuf,
    pub ours: PathBuf,
    pub work: PathBuf,
}

/// Fetched and built by its recipe, with what it reads.
pub fn builds(real: &Real, folder: &Path, tool: &Path) -> Result<Builds> {
    let needs: Vec<(&str, bool)> = real.needs.iter().map(|(package, file)| (package.as_str(), file.exists())).collect();
    debian::provide(&needs)?;
    let source = fetch(real, folder)?;
    let compilers = |c: &str, cxx: &str| (c.to_owned(), cxx.to_owned());
    let clang = compilers("clang-19", "clang++-19");
    let native = kept(real, &folder.join("native"), |at| build(real, &source, at, &clang, ""))?;
    let sanitizer = kept(real, &folder.join("libtsan"), |at| build(real, &source, at, &clang, "-fsanitize=thread"))?;
    let links = wrappers(tool, folder)?;
    // Made afresh: the runtime in it may have changed.
    let ours = build(real, &source, &folder.join("ours"), &links, "")?;
    let work = folder.join("work");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    succeed(shell(&real.input, &work, &native).stdin(Stdio::null()))?;
    Ok(Builds { native, sanitizer, ours, work })
}

fn evaluate(real: &Real, folder: &Path, tool: &Path, readings: &[Reading]) -> Result<Vec<Ran>> {
    let Builds { native, sanitizer, ours, work } = builds(real, folder, tool)?;
    let mut bench = Bench { real, work, tool, readings, expected: String::new() };
    eprintln!("{}: native", real.name);
    let mut plain = bench.plain("native", &native, Vec::new())?;
    bench.expected = bench.outcome(&native)?;
    if bench.expected.is_empty() {
        plain.wrong = "it left nothing to compare".into();
    }
    let bound = plain.seconds * SLOWDOWN + LEAST;
    let mut runs = vec![plain];
    eprintln!("{}: libtsan", real.name);
    let options = format!("exitcode=0 log_path={}", bench.work.join("libtsan.log").display());
    let mut libtsan = bench.plain("libtsan", &sanitizer, vec![("TSAN_OPTIONS".into(), options.into())])?;
    libtsan.wrong = bench.difference(&sanitizer)?;
    runs.push(libtsan);
    for (way, bound) in [("detect", bound), ("record", bound), ("check", bound + BUDGET * 1.1 + 1.0)] {
        eprintln!("{}: {way}", real.name);
        runs.push(bench.ours(way, &ours, bound)?);
    }
    Ok(runs)
}

impl Bench<'_> {
    fn command_of(&self, build: &Path) -> (PathBuf, Vec<OsString>) {
        (build.join(&self.real.program), self.real.arguments.iter().map(OsString::from).collect())
    }

    fn client(&self, build: &Path) -> Option<String> {
        self.real.client.as_ref().map(|client| format!("B='{}'; {client}", build.display()))
    }

    fn restore(&self, build: &Path) -> Result<()> {
        succeed(shell(&self.real.before, &self.work, build).stdin(Stdio::null()))
    }

    /// Without us.
    fn plain(&self, way: &'static str, build: &Path, environment: Vec<(OsString, OsString)>) -> Result<Ran> {
        self.restore(build)?;
        let (executable, arguments) = self.command_of(build);
        let program = Program {
            executable,
            arguments,
            directory: self.work.clone(),
            library_path: None,
            randomise_addresses: true,
            environment,
            before_each: None,
            before_each_limit: None,
            client: self.client(build).map(|command| Client { command: command.into(), ready: None, grace: GRACE }),
        };
        let ran = execute(&program, no_session(), &Input::Empty, Output::Discard, Time::of(HANGS))?;
        if ran.ending != Ending::Code(0) {
            bail!("{way}: it ended with {:?}", ran.ending);
        }
        Ok(Ran {
            way,
            seconds: ran.duration.as_secs_f64(),
            bound: None,
            wrong: String::new(),
            reports: Vec::new(),
            unexplained: Vec::new(),
        })
    }

    fn ours(&self, way: &'static str, build: &Path, bound: f64) -> Result<Ran> {
        self.restore(build)?;
        let (store, report, log) =
            (self.work.join(format!("{way}.store")), self.work.join("report.json"), self.work.join("detect.log"));
        let _ = fs::remove_dir_all(&store);
        let _ = fs::remove_file(&report);
        remove_logs(&log)?;
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "--kill-after=30"]).arg(HANGS.as_secs().to_string()).arg(self.tool).arg("--quiet").arg(way);
        if let Some(client) = self.client(build) {
            command.arg("--with-client").arg(client).args(["--grace", &GRACE.as_secs().to_string()]);
        }
        match way {
            "detect" => {
                command.args(["--format", "json", "--exitcode", "0", "--log"]).arg(&log);
            }
            _ => {
                command.arg("--output").arg(&store);
                command.arg("--before-each").arg(&self.real.before);
            }
        }
        if way == "check" {
            command.args(["--fail-on", "never", "--budget", &BUDGET.to_string(), "--json"]).arg(&report);
        }
        let (executable, arguments) = self.command_of(build);
        command.arg("--").arg(executable).args(arguments).current_dir(&self.work).stdin(Stdio::null());
        let begin = Instant::now();
        let output = command.output().context("cannot start timeout(1)")?;
        let seconds = begin.elapsed().as_secs_f64();
        let wrong = match output.status.code() {
            // `check` leaves the world as its last execution does; what is compared is what the recorded program did, and at last
            // a whole unobserved run.
            Some(0) => self.difference(build)?,
            code => {
                let said = String::from_utf8_lossy(&output.stderr);
                let tail: Vec<&str> = said.lines().rev().take(5).collect();
                format!("exit code {code:?}: {}", tail.into_iter().rev().collect::<Vec<_>>().join(" / "))
            }
        };
        let reports: Vec<Report> = match way {
            "detect" => readings::of_detect(&logs(&log)?)?,
            "check" if report.exists() => {
                let report = serde_json::from_slice(&fs::read(&report)?).context("check's report")?;
                readings::of_check(&report).into_iter().map(|(report, _)| report).collect()
            }
            _ => Vec::new(),
        };
        // Recordings of ten programs fill disks.
        let _ = fs::remove_dir_all(&store);
        let known = |report: &&Report| {
            let mut of = self.readings.iter().filter(|reading| reading.is_of(&self.real.name, report)).peekable();
            of.peek().is_some() && of.all(|reading| reading.real)
        };
        let unexplained = reports.iter().filter(|report| !known(report)).map(ToString::to_string).collect();
        let reports = reports.iter().map(ToString::to_string).collect();
        Ok(Ran { way, seconds, bound: Some(bound), wrong, reports, unexplained })
    }

    fn outcome(&self, build: &Path) -> Result<String> {
        let output = shell(&self.real.outcome, &self.work, build).stdin(Stdio::null()).output().context("cannot start sh")?;
        Ok(if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() })
    }

    /// Nothing if it is what the native run left.
    fn difference(&self, build: &Path) -> Result<String> {
        let found = self.outcome(build)?;
        Ok(if found == self.expected {
            String::new()
        } else {
            format!("{:?} instead of {:?}", found.trim(), self.expected.trim())
        })
    }
}

pub fn shell(line: &str, folder: &Path, build: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder).env("B", build);
    command
}

/// `detect` writes one log a process: `detect.log.PID`.
fn log_files(log: &Path) -> Result<Vec<PathBuf>> {
    let (folder, name) = (log.parent().context("a log has a folder")?, log.file_name().context("a log has a name")?);
    let name = name.to_string_lossy().into_owned();
    let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(entries.filter(|path| path.file_name().is_some_and(|found| found.to_string_lossy().starts_with(&name))).collect())
}

fn remove_logs(log: &Path) -> Result<()> {
    Ok(log_files(log)?.iter().try_for_each(fs::remove_file)?)
}

fn logs(log: &Path) -> Result<String> {
    let texts = log_files(log)?.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.concat())
}

/// The unpacked source, fetched once.
fn fetch(real: &Real, folder: &Path) -> Result<PathBuf> {
    let unpacked = folder.join("source");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    eprintln!("{}: fetching the source package", real.name);
    fs::create_dir_all(folder)?;
    let part = match real.part {
        Part::Everything => debian::Part::Everything,
        Part::Upstream => debian::Part::Upstream,
    };
    debian::download(&real.package, part, folder)?;
    let fresh = folder.join("source.new");
    let _ = fs::remove_dir_all(&fresh);
    if part == debian::Part::Everything {
        let description = debian::file_with_extension(folder, "dsc")?;
        succeed(Command::new("dpkg-source").arg("-x").arg(&description).arg(&fresh).current_dir(folder))?;
    } else {
        fs::create_dir_all(&fresh)?;
        let archives = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        let archive = archives.into_iter().find(|path| path.to_string_lossy().contains(".orig.tar."));
        let archive = archive.context("apt left no upstream archive")?;
        succeed(Command::new("tar").arg("-xf").arg(archive).arg("--strip-components=1").arg("-C").arg(&fresh))?;
    }
    fs::rename(&fresh, &unpacked)?;
    Ok(unpacked)
}

/// `rashomon-cc` and `rashomon-c++`, which work with clang.
pub fn wrappers(tool: &Path, folder: &Path) -> Result<(String, String)> {
    let path = |name: &str| {
        let link = folder.join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(tool, &link)?;
        anyhow::Ok(link.display().to_string())
    };
    Ok((path("rashomon-cc")?, path("rashomon-c++")?))
}

/// A build that nothing of ours is in serves again for as long as its recipe is the same.
fn kept(real: &Real, folder: &Path, build: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<PathBuf> {
    let stamp = folder.join("built-by-this-recipe");
    let recipe = format!("{}\n{}", real.build, real.driver.as_ref().map_or(Ok(String::new()), |driver| driver.text())?);
    if fs::read_to_string(&stamp).is_ok_and(|of| of == recipe) {
        return Ok(folder.to_path_buf());
    }
    build(folder)?;
    fs::write(stamp, recipe)?;
    Ok(folder.to_path_buf())
}

fn build(real: &Real, source: &Path, folder: &Path, (c, cxx): &(String, String), flags: &str) -> Result<PathBuf> {
    eprintln!("{}: building {}", real.name, folder.display());
    let _ = fs::remove_dir_all(folder);
    succeed(Command::new("cp").arg("-a").arg(source).arg(folder))?;
    if let Some(driver) = &real.driver {
        fs::write(folder.join(&driver.name), driver.text()?)?;
    }
    let mut command = shell(&real.build, folder, folder);
    command.env("CC", c).env("CXX", cxx).env("FLAGS", flags);
    succeed(command.env("RASHOMON_CC", "clang-19").env("RASHOMON_CXX", "clang++-19"))?;
    Ok(folder.to_path_buf())
}
