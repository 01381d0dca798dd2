//! Servers under load, and two databases that load themselves: what online detection and recording in parallel leave of their
//! operations a second, beside clang's ThreadSanitizer.
//!
//! What is fair. The server is built from the same source by the same compiler; the load is the same, for as long, from the same
//! machine, and checks every answer. One after the other all ways serve, then all once more: a ratio is that of one round, and
//! the median over rounds counts. Reports of races are printed by both.

mod profile;
mod subject;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::load::Served;
use crate::common::measure::median;
use crate::common::only::Only;
use crate::common::table::Table;
use anyhow::Result;
use profile::{Profile, Purpose};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use subject::{Built, Subject};
use xtask::workspace;

const QUICK_SECONDS: u64 = 2;
/// Of ThreadSanitizer's peak.
const MEMORY: f64 = 0.7;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds of load on each server, each way, each round.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Rounds, of which the medians are taken.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// At the end, sample each server under `detect` and `record` once more with perf (Debian: linux-perf), and print where its
    /// processor time goes.
    #[arg(long)]
    pub profile: bool,
    /// Only servers whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// One short round: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Native,
    ThreadSanitizer,
    Detect,
    Record,
}

impl Way {
    const ALL: [Self; 4] = [Self::Native, Self::ThreadSanitizer, Self::Detect, Self::Record];

    const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::ThreadSanitizer => "ThreadSanitizer",
            Self::Detect => "detect",
            Self::Record => "record",
        }
    }

    fn executable(self, built: &Built) -> &Path {
        match self {
            Self::Native => &built.native,
            Self::ThreadSanitizer => &built.sanitizer,
            Self::Detect | Self::Record => &built.ours,
        }
    }

    /// What stands before the program.
    fn before(self, tool: &Path, store: &Path) -> Vec<OsString> {
        let words: &[&str] = match self {
            Self::Native | Self::ThreadSanitizer => return Vec::new(),
            Self::Detect => &["--quiet", "detect", "--format", "tsan", "--exitcode", "0", "--"],
            Self::Record => &["--quiet", "record", "--policy", "free", "--timeout", "0", "--output"],
        };
        let mut line = vec![tool.into()];
        line.extend(words.iter().map(OsString::from));
        if self == Self::Record {
            line.extend([store.into(), "--".into()]);
        }
        line
    }
}

/// One way in one round.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Figures {
    operations_a_second: f64,
    p99_milliseconds: f64,
    peak_megabytes: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    server: &'static str,
    rounds: BTreeMap<Way, Vec<Figures>>,
    profiles: BTreeMap<Way, Profile>,
    /// What went wrong, by way.
    wrong: Vec<String>,
}

impl Row {
    fn median(&self, way: Way, quantity: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.get(&way).into_iter().flatten().map(quantity).collect())
    }

    /// Beside ThreadSanitizer in the same round.
    fn ratio(&self, way: Way, quantity: fn(&Figures) -> f64) -> Option<f64> {
        let (ours, theirs) = (self.rounds.get(&way)?, self.rounds.get(&Way::ThreadSanitizer)?);
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| quantity(ours) / quantity(theirs)).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    evaluation: &'static str,
    command: String,
    servers: Vec<Row>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let (rounds, seconds) = if options.quick { (1, QUICK_SECONDS) } else { (options.runs, options.seconds) };
    let only = Only::of(options.only.as_deref());
    let mut servers = Vec::new();
    for subject in subject::all()?.into_iter().filter(|subject| only.wants(subject.name)) {
        let of_one = Rounds { subject: &subject, tool: &tool, length: Duration::from_secs(seconds) };
        servers.push(of_one.measure(rounds, options.profile));
    }
    only.check()?;
    let bars = servers.iter().flat_map(bars_of).collect();
    let report = Report { evaluation: "servers", command: command_line(), servers, bars };
    bar::finish(&report, &report.bars, options.json, || print(&report))
}

/// One server, and how it is loaded.
struct Rounds<'a> {
    subject: &'a Subject,
    tool: &'a Path,
    length: Duration,
}

impl Rounds<'_> {
    fn measure(&self, rounds: u32, with_profile: bool) -> Row {
        let name = self.subject.name;
        let mut row = Row { server: name, rounds: BTreeMap::new(), profiles: BTreeMap::new(), wrong: Vec::new() };
        let built = match self.subject.build(self.tool) {
            Ok(built) => built,
            Err(error) => {
                row.wrong.push(format!("{error:#}"));
                return row;
            }
        };
        for round in 1..=rounds {
            for way in Way::ALL {
                eprintln!("{name}, round {round}: {}", way.name());
                match self.serve(&built, way, Vec::new()) {
                    Ok(figures) => row.rounds.entry(way).or_default().push(figures),
                    Err(error) => row.wrong.push(format!("{}: {error:#}", way.name())),
                }
            }
        }
        for way in [Way::Detect, Way::Record].into_iter().filter(|_| with_profile) {
            eprintln!("{name}, sampled: {}", way.name());
            match self.sample(&built, way) {
                Ok(profile) => drop(row.profiles.insert(way, profile)),
                Err(error) => row.wrong.push(format!("{}, sampled: {error:#}", way.name())),
            }
        }
        row
    }

    fn serve(&self, built: &Built, way: Way, mut line: Vec<OsString>) -> Result<Figures> {
        let store: PathBuf = built.work.join("store");
        let executable = way.executable(built);
        line.extend(way.before(self.tool, &store));
        line.push(executable.into());
        let outcome = self.subject.serve(&line, executable, built, self.length);
        // Recordings of servers fill disks.
        if store.exists() {
            std::fs::remove_dir_all(&store)?;
        }
        let (served, peak_megabytes) = outcome?;
        correct(&served)?;
        Ok(Figures { operations_a_second: served.a_second(), p99_milliseconds: served.percentile(99.0), peak_megabytes })
    }

    fn sample(&self, built: &Built, way: Way) -> Result<Profile> {
        let data = built.work.join("samples");
        self.serve(built, way, profile::sampling(&data))?;
        Profile::read(&data, way.executable(built))
    }
}

fn correct(served: &Served) -> Result<()> {
    let Served { operations, counter, increments, .. } = served;
    anyhow::ensure!(served.is_correct(), "{operations} operations, {counter} of {increments} increments");
    Ok(())
}

fn bars_of(row: &Row) -> Vec<Bar> {
    let name = row.server;
    let said = if row.wrong.is_empty() { "every answer is right".into() } else { row.wrong.join("; ") };
    let mut bars = vec![Bar::holds(&format!("{name}: served correctly"), row.wrong.is_empty(), said)];
    for way in [Way::Detect, Way::Record] {
        let named = |what: &str| format!("{name}, {}: {what} beside ThreadSanitizer's", way.name());
        let of = |quantity: fn(&Figures) -> f64| row.ratio(way, quantity);
        if let Some(ratio) = of(|figures| figures.operations_a_second) {
            bars.push(Bar::at_least(&named("operations a second"), ratio, 1.0, " ×"));
        }
        if let Some(ratio) = of(|figures| figures.p99_milliseconds) {
            bars.push(Bar::at_most(&named("99th percentile"), ratio, 1.0, " ×"));
        }
        if let Some(ratio) = of(|figures| figures.peak_megabytes) {
            bars.push(Bar::at_most(&named("peak memory"), ratio, MEMORY, " ×"));
        }
    }
    bars
}

fn print(report: &Report) {
    println!("{}\n", report.command);
    let mut table = Table::new(&["server", "", "operations/s", "of native", "p99 ms", "peak MB"]);
    for row in &report.servers {
        let native = row.median(Way::Native, |figures| figures.operations_a_second);
        for way in Way::ALL.into_iter().filter(|way| row.rounds.contains_key(way)) {
            let operations = row.median(way, |figures| figures.operations_a_second);
            table.row(vec![
                row.server.into(),
                way.name().into(),
                format!("{operations:.0}"),
                format!("{:.2}", operations / native.max(f64::EPSILON)),
                format!("{:.2}", row.median(way, |figures| figures.p99_milliseconds)),
                format!("{:.0}", row.median(way, |figures| figures.peak_megabytes)),
            ]);
        }
    }
    table.print();
    println!();
    print_profiles(&report.servers);
}

fn print_profiles(servers: &[Row]) {
    if servers.iter().all(|row| row.profiles.is_empty()) {
        return;
    }
    println!("of a hundred samples of processor time:");
    let names = Purpose::ALL.map(Purpose::name);
    let mut table = Table::new(&[["server", ""].as_slice(), &names].concat());
    for row in servers {
        for (way, profile) in &row.profiles {
            let shares = Purpose::ALL.map(|purpose| format!("{:.0}", 100.0 * profile.share(purpose)));
            table.row([row.server.into(), way.name().into()].into_iter().chain(shares).collect());
        }
    }
    table.print();
    println!();
}
