//! Programs beside libraries that nobody sees: true and false races of each technique.
//!
//! What is fair. All techniques see the same recordings, under the same seeds, and what one reports of any of them counts.
//! Ground truth is in the sources of `tests/programs/unseen` and `tests/programs/installed`: marked places, which pairs of them
//! race (`// race:`), and which the library orders (`// ordered:`). *HB* and *CP* are the linear analyses. *MC* is prediction as
//! if the calls ordered nothing, *Caveat 0* as if each reached everything, *RDIT* with what was recorded of them.

use super::caveats;
use super::overhead::flags;
use crate::common::bar::Bar;
use crate::common::compile::succeed;
use crate::common::debian;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_event::{Address, CandidateKind, SiteId, Trace};
use rashomon_trace::Recording;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::workspace;

const TECHNIQUES: [&str; 5] = ["HB", "CP", "MC", "Caveat 0", "RDIT"];
const RDIT: usize = 4;
/// The name of the library that is built with a program of `unseen`.
const LIBRARY: &str = "libpart.so";
/// Of programs of `installed`: the name for pkg-config, Debian's package, the library.
const PACKAGES: [(&str, &str, &str); 2] =
    [("glib-2.0", "libglib2.0-dev", "libglib-2.0.so.0"), ("libuv", "libuv1-dev", "libuv.so.1")];
/// The program in which plain techniques have to raise the published false alarms.
const ACCOUNT: &str = "account";

/// Two marked places.
type Pair = (u32, u32);

#[derive(Debug, Serialize)]
pub struct Row {
    pub program: String,
    /// Pairs that race.
    races: usize,
    /// By technique, in the order of [`TECHNIQUES`].
    reported: Vec<Reported>,
    /// Of the races, those that `check` proves; and what it proves besides.
    proven: usize,
    proven_false: usize,
    /// By caveat that is left out, pairs that are reported though the library orders them.
    pub alarms: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Reported {
    true_races: usize,
    false_races: usize,
}

/// The sources whose names contain this, sorted.
pub fn sources(only: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for folder in ["tests/programs/unseen", "tests/programs/installed"] {
        let sources = workspace::root().join(folder);
        let files = std::fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?;
        names.extend(files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?);
    }
    names.retain(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        only.is_none_or(|part| name.contains(part))
    });
    names.sort_unstable();
    Ok(names)
}

/// A program and its library, built in a folder.
pub struct Subject {
    folder: tempfile::TempDir,
    source: PathBuf,
    /// Marked places by line.
    marks: BTreeMap<u64, u32>,
    races: BTreeSet<Pair>,
    /// Pairs that the library orders.
    pub ordered: BTreeSet<Pair>,
    library: String,
}

impl Subject {
    fn build(tool: &Path, source: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir()?;
        let text = std::fs::read_to_string(source)?;
        let at = |name: &str| folder.path().join(name);
        let mut compile = Command::new(tool);
        compile.args(["cc", "-g", "-O1", "-w", "-pthread", "-o"]).arg(at("program")).arg(source);
        let library = if let Some(package) = text.lines().find_map(|line| line.strip_prefix("// package: ")) {
            let (_, debian, library) = PACKAGES.into_iter().find(|it| it.0 == package).context("no such package is known")?;
            debian::provide(&[(debian, flags(package).is_ok())])?;
            compile.args(flags(package)?);
            library
        } else {
            let options = ["-O1", "-w", "-DLIBRARY", "-shared", "-fPIC", "-pthread", "-Wl,-soname,libpart.so", "-o"];
            succeed(Command::new("gcc").args(options).arg(at(LIBRARY)).arg(source))?;
            compile.arg(at(LIBRARY)).arg(format!("-Wl,-rpath,{}", folder.path().display()));
            LIBRARY
        };
        succeed(&mut compile)?;
        let mark = |line: &str| line.rsplit_once("// @")?.1.parse().ok();
        let marks = (1..).zip(text.lines()).filter_map(|(number, line)| Some((number, mark(line)?))).collect();
        let pair = |line: &str, kind: &str| {
            let (one, other) = line.strip_prefix(kind)?.split_once(' ')?;
            Some(sorted(one.parse().ok()?, other.parse().ok()?))
        };
        let [races, ordered] = ["// race: ", "// ordered: "].map(|kind| text.lines().filter_map(|it| pair(it, kind)).collect());
        Ok(Self { folder, source: source.to_path_buf(), marks, races, ordered, library: library.to_owned() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The marked place at each offset into the program behind an instruction, 0 where none is.
    fn places(&self, offsets: &[u64]) -> Result<Vec<u32>> {
        if offsets.is_empty() {
            return Ok(Vec::new());
        }
        let inside = offsets.iter().map(|offset| format!("{:#x}", offset.saturating_sub(1)));
        let output = Command::new("addr2line").arg("-e").arg(self.path("program")).args(inside).output();
        let output = output.context("cannot start addr2line, which is part of binutils")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let name = self.source.file_name().unwrap_or_default().to_string_lossy();
        let place = |line: &str| {
            let (file, rest) = line.rsplit_once(':')?;
            let number = rest.split(' ').next()?.parse().ok()?;
            self.marks.get(&number).copied().filter(|_| file.ends_with(name.as_ref()))
        };
        let places: Vec<u32> = text.lines().map(|line| place(line).unwrap_or(0)).collect();
        if places.len() != offsets.len() {
            bail!("addr2line answered {} of {} questions", places.len(), offsets.len());
        }
        Ok(places)
    }

    fn pairs_of_offsets(&self, offsets: &[u64]) -> Result<BTreeSet<Pair>> {
        Ok(self.places(offsets)?.chunks_exact(2).map(|pair| sorted(pair[0], pair[1])).collect())
    }

    /// The pairs of the analyses of a recording. A place is `function file:line:column`.
    fn pairs_of_analysis(&self, report: &Value) -> Result<BTreeSet<Pair>> {
        let name = self.source.file_name().unwrap_or_default().to_string_lossy();
        let place = |side: &Value| {
            let (before, _column) = side["location"].as_str()?.rsplit_once(':')?;
            let (file, line) = before.rsplit_once(':')?;
            self.marks.get(&line.parse().ok()?).copied().filter(|_| file.ends_with(name.as_ref()))
        };
        let analyses = report["analyses"].as_array().context("no analyses in the report")?;
        let pairs = analyses.iter().flat_map(|analysis| analysis["pairs"].as_array().into_iter().flatten());
        let of = |pair: &Value| sorted(place(&pair["earlier"]).unwrap_or(0), place(&pair["later"]).unwrap_or(0));
        Ok(pairs.map(of).collect())
    }

    /// The pairs of findings with one of these verdicts.
    fn pairs_of_report(&self, report: &Path, verdicts: &[&str]) -> Result<BTreeSet<Pair>> {
        let report: Value = serde_json::from_slice(&std::fs::read(report)?)?;
        let name = self.source.file_name().unwrap_or_default().to_string_lossy();
        let place = |side: &Value| {
            let mut frames = side["stack"].as_array().into_iter().flatten();
            let own = frames.find(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with(name.as_ref())));
            own.and_then(|frame| self.marks.get(&frame["line"].as_u64()?)).copied().unwrap_or(0)
        };
        let findings = report["findings"].as_array().into_iter().flatten();
        let races = findings.filter(|finding| finding["kind"] == "data-race");
        let wanted = races.filter(|finding| finding["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict)));
        Ok(wanted.map(|finding| sorted(place(&finding["sides"][0]), place(&finding["sides"][1]))).collect())
    }
}

fn sorted(one: u32, other: u32) -> Pair {
    (one.min(other), one.max(other))
}

pub fn row(tool: &Path, source: &Path, recordings: u32) -> Result<Row> {
    let subject = Subject::build(tool, source)?;
    let mut found = vec![BTreeSet::new(); TECHNIQUES.len()];
    let mut without = vec![BTreeSet::new(); caveats::NAMES.len()];
    for seed in 1..=recordings {
        let store = subject.path(&format!("store-{seed}"));
        let seed = seed.to_string();
        let mut record = Command::new(tool);
        record.args(["--quiet", "record", "--seed", &seed, "--output"]).arg(&store).arg("--");
        record.arg(subject.path("program"));
        // The program's exit code is the command's: account fails where its race loses a deposit.
        record.output().with_context(|| format!("cannot start {}", tool.display()))?;
        let offsets = caveats::predicted(&store.join("recording-0"), &[])?;
        for (without, offsets) in without.iter_mut().zip(offsets) {
            without.extend(subject.pairs_of_offsets(&offsets)?);
        }
        for (technique, pairs) in found.iter_mut().zip(reports(tool, &subject, &store)?) {
            technique.extend(pairs);
        }
        if let Some(last) = without.last_mut() {
            last.extend(without_static_data(tool, &subject, &seed)?);
        }
    }
    let report = subject.path("check.json");
    let mut check = Command::new(tool);
    check.args(["--quiet", "check", "--engines", "force", "--budget", "30", "--json"]).arg(&report);
    check.arg("--output").arg(subject.path("check")).arg("--").arg(subject.path("program"));
    check.output().with_context(|| format!("cannot start {}", tool.display()))?;
    let proven = subject.pairs_of_report(&report, &["proven"])?;
    let count = |pairs: &BTreeSet<Pair>| Reported {
        true_races: pairs.intersection(&subject.races).count(),
        false_races: pairs.difference(&subject.races).count(),
    };
    let of_check = count(&proven);
    let program = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    eprintln!("{program}: {} of {} proven", of_check.true_races, subject.races.len());
    Ok(Row {
        program,
        races: subject.races.len(),
        reported: found.iter().map(count).collect(),
        proven: of_check.true_races,
        proven_false: of_check.false_races,
        alarms: caveats::false_alarms(&subject, &without),
    })
}

/// What is predicted of a recording for which nothing of the library's static data counts.
fn without_static_data(tool: &Path, subject: &Subject, seed: &str) -> Result<BTreeSet<Pair>> {
    let store = subject.path(&format!("store-without-{seed}"));
    let mut record = Command::new(tool);
    record.args(["--quiet", "record", "--seed", seed, "--library-global", &format!("{}:", subject.library), "--output"]);
    record.arg(&store).arg("--").arg(subject.path("program"));
    record.output().with_context(|| format!("cannot start {}", tool.display()))?;
    predicted(tool, subject, &store, &[])
}

fn predicted(tool: &Path, subject: &Subject, store: &Path, further: &[&str]) -> Result<BTreeSet<Pair>> {
    let report = subject.path("predict.json");
    let mut command = Command::new(tool);
    command.args(["--quiet", "predict"]).args(further).arg("--json").arg(&report).arg(store);
    succeed(&mut command)?;
    subject.pairs_of_report(&report, &["predicted", "proven"])
}

/// What each technique reports of a recording.
fn reports(tool: &Path, subject: &Subject, store: &Path) -> Result<Vec<BTreeSet<Pair>>> {
    let linear = |analysis: &str| -> Result<BTreeSet<Pair>> {
        let mut command = Command::new(tool);
        let output = command.args(["--quiet", "analyse", "--json", "--analysis", analysis]).arg(store).output()?;
        subject.pairs_of_analysis(&serde_json::from_slice(&output.stdout)?)
    };
    let (hb, cp, rdit) = (linear("hb")?, linear("cp")?, predicted(tool, subject, store, &[])?);
    let barriers = subject.pairs_of_offsets(&under_barriers(&store.join("recording-0"))?)?;
    // The last one: the store remembers whom it trusts.
    let plain = predicted(tool, subject, store, &["--trust-library", &subject.library])?;
    Ok(vec![hb, cp, plain, barriers, rdit])
}

/// The races that a recording predicts if every call may have ordered everything: two offsets each.
fn under_barriers(recording: &Path) -> Result<Vec<u64>> {
    let mut loaded = Recording::open(recording)?.load()?;
    let trace = &mut loaded.trace;
    let mut gaps = trace.gaps.clone();
    for gap in &mut gaps {
        gap.reach = vec![(Address(0), u64::MAX)];
    }
    trace.kept = rashomon_order::kept(trace, &gaps);
    let mut offsets = Vec::new();
    for prediction in rashomon_predict::predict(trace, &rashomon_predict::Options::default()).findings {
        let CandidateKind::Race { first, second } = prediction.candidate.kind else { continue };
        let accepted = prediction.witness.is_some_and(|witness| rashomon_witness::check(trace, &witness).is_ok());
        if accepted {
            offsets.extend([first, second].map(|event| offset_of(trace, trace.event(event).site)));
        }
    }
    Ok(offsets)
}

/// Into the program; the library has no events.
pub fn offset_of(trace: &Trace, site: SiteId) -> u64 {
    trace.site(site).offset
}

/// `all`: no program was left out.
pub fn bars(rows: &[Row], all: bool) -> Vec<Bar> {
    if rows.is_empty() {
        return Vec::new();
    }
    let total = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    let races = total(&|row| row.races);
    let found = total(&|row| row.reported[RDIT].true_races);
    let wrong = total(&|row| row.reported[RDIT].false_races);
    let (proven, proven_wrong) = (total(&|row| row.proven), total(&|row| row.proven_false));
    let mut bars = vec![
        Bar::holds("RDIT reports no false race", wrong == 0, wrong.to_string()),
        Bar::holds("RDIT reports 90 % of the true ones", 10 * found >= 9 * races, format!("{found} of {races}")),
        Bar::holds(
            "check proves what RDIT reports, and nothing else",
            proven >= found && proven_wrong == 0,
            format!("{proven} and {proven_wrong}"),
        ),
    ];
    let without = |caveat: usize| total(&|row| row.alarms[caveat]);
    let loud = (1..caveats::NAMES.len()).filter(|&caveat| without(caveat) > 0).count();
    // One program shows one or two of them.
    if all {
        bars.push(Bar::holds(
            "each caveat left out raises a false alarm, none left out raises none",
            without(0) == 0 && loud + 1 == caveats::NAMES.len(),
            format!("{loud} and {}", without(0)),
        ));
    }
    if let Some(account) = rows.iter().find(|row| row.program == ACCOUNT) {
        let loud = account.reported[..3].iter().all(|reported| reported.false_races > 0);
        let exact = account.reported[RDIT].true_races == 1 && account.reported[RDIT].false_races == 0;
        let name = "Account: HB, CP and MC report false races, RDIT the true one alone";
        bars.push(Bar::holds(name, loud && exact, if loud && exact { "yes" } else { "no" }.into()));
    }
    bars
}

pub fn print(rows: &[Row], recordings: u32) {
    println!("{recordings} recordings of each program; true and false races\n");
    let mut titles = vec!["program", "races"];
    titles.extend(TECHNIQUES);
    titles.push("proven");
    let mut table = Table::new(&titles);
    let cell = |reported: &Reported| format!("{} {}", reported.true_races, reported.false_races);
    let mut sums = vec![Reported::default(); TECHNIQUES.len()];
    for row in rows {
        for (sum, reported) in sums.iter_mut().zip(&row.reported) {
            sum.true_races += reported.true_races;
            sum.false_races += reported.false_races;
        }
        let cells = row.reported.iter().map(cell);
        let ends = format!("{} {}", row.proven, row.proven_false);
        table.row([row.program.clone(), row.races.to_string()].into_iter().chain(cells).chain([ends]).collect());
    }
    let total = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    let ends = format!("{} {}", total(&|row| row.proven), total(&|row| row.proven_false));
    let all = ["total".to_owned(), total(&|row| row.races).to_string()];
    table.row(all.into_iter().chain(sums.iter().map(cell)).chain([ends]).collect());
    table.print();
    println!();
    caveats::print(&rows.iter().map(|row| (row.program.as_str(), row.alarms.as_slice())).collect::<Vec<_>>());
}
