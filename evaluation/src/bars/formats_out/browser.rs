//! The HTML report in headless Chromium: reports of real checks, opened from disk without a network.
//!
//! The large ones are made of real ones: thousands of findings are copies of three under other ids, in a store that the tool then
//! reports; the long timeline is the recording of a program that takes and gives back a lock half a million times.

use super::{Bench, FINDINGS, must};
use crate::common::bar::Bar;
use crate::common::debian::{provide, starts};
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::workspace::root;

const CHROMIUM: &str = "chromium-headless-shell";
/// The font of the golden images.
const FONT: (&str, &str) = ("fonts-dejavu-core", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf");
const FROM_NPM: [&str; 3] = ["puppeteer-core@24.43.1", "axe-core@4.14.1", "pngjs@7.0.0"];
const SCRIPTS: [(&str, &str); 5] = [
    ("check.mjs", include_str!("browser/check.mjs")),
    ("accessible.mjs", include_str!("browser/accessible.mjs")),
    ("golden.mjs", include_str!("browser/golden.mjs")),
    ("large.mjs", include_str!("browser/large.mjs")),
    ("reading.mjs", include_str!("browser/reading.mjs")),
];
const LONG: &str = include_str!("browser/long.c");
/// Programs whose checks prove a finding of each kind.
const PROGRAMS: [(&str, &str); 3] = [
    ("race", "examples/listing1.c"),
    ("deadlock", "tests/programs/measured/potential_deadlock.c"),
    ("atomicity", "tests/loop/torn_pair.c"),
];
const MANY: u32 = 10_000;
const GOLDENS: &str = "evaluation/src/bars/formats_out/browser/goldens";
/// What all golden images may take, in bytes.
const LARGEST_GOLDENS: u64 = 100_000;

#[derive(Serialize)]
struct Configuration<'a> {
    chromium: &'a str,
    goldens: PathBuf,
    results: &'a Path,
    renew: bool,
    pages: Vec<Page>,
}

#[derive(Serialize)]
struct Page {
    name: String,
    kind: &'static str,
    file: PathBuf,
}

/// A bar as the script found it.
#[derive(Deserialize)]
struct Told {
    name: String,
    met: bool,
    found: String,
}

/// One bar a question; where the browser or what drives it cannot be had, one that is missed.
pub fn bars(bench: &Bench, renew: bool) -> Result<Vec<Bar>> {
    let folder = bench.folder.join("browser");
    if let Err(error) = readers(&folder) {
        return Ok(vec![Bar::holds("report.html in headless Chromium", false, format!("not looked at: {error:#}"))]);
    }
    let pages = pages(bench, &folder)?;
    let configuration = Configuration {
        chromium: &format!("/usr/bin/{CHROMIUM}"),
        goldens: root().join(GOLDENS),
        results: &folder,
        renew,
        pages,
    };
    fs::create_dir_all(&configuration.goldens)?;
    let file = folder.join("configuration.json");
    fs::write(&file, serde_json::to_string(&configuration)?)?;
    let output = Command::new("node").arg(folder.join("check.mjs")).arg(&file).output().context("cannot start node")?;
    if !output.status.success() {
        bail!("the browser's script failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let told: Vec<Told> = serde_json::from_slice(&output.stdout).context("the browser's script prints no list of bars")?;
    let mut bars: Vec<Bar> =
        told.into_iter().map(|one| Bar::holds(&format!("report.html, {}", one.name), one.met, one.found)).collect();
    for page in configuration.pages.iter().filter(|page| page.kind == "finding") {
        let (met, said) =
            bench.python(&["printed"], &folder.join(format!("{}.pdf", page.name)), &[&format!("browser/{}.txt", page.name)])?;
        bars.push(Bar::holds(&format!("report.html, {}: pypdf reads on paper what a finding says", page.name), met, said));
    }
    let size = fs::read_dir(&configuration.goldens)?.map(|entry| Ok(entry?.metadata()?.len())).sum::<Result<u64>>()?;
    bars.push(Bar::at_most("report.html, golden images", size as f64, LARGEST_GOLDENS as f64, " bytes"));
    Ok(bars)
}

fn readers(folder: &Path) -> Result<()> {
    provide(&[(CHROMIUM, starts(CHROMIUM)), (FONT.0, Path::new(FONT.1).exists()), ("npm", starts("npm"))])?;
    fs::create_dir_all(folder)?;
    if !folder.join("node_modules/pngjs").exists() {
        must(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(folder).args(FROM_NPM))?;
    }
    for (name, text) in SCRIPTS {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn pages(bench: &Bench, folder: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut findings = Vec::new();
    for (name, program) in PROGRAMS {
        let store = checked(bench, folder, name, &root().join(program), FINDINGS)?;
        let all = findings_of(&store)?;
        fs::write(folder.join(format!("{name}.txt")), wanted(&all))?;
        findings.extend(all);
        pages.push(Page { name: name.into(), kind: "finding", file: reported(bench, folder, name, &store)? });
    }
    let many = multiplied(folder, &folder.join("stores/race"), &findings)?;
    pages.push(Page { name: format!("{MANY} findings"), kind: "many", file: reported(bench, folder, "many", &many)? });
    let source = folder.join("long.c");
    fs::write(&source, LONG)?;
    let long = checked(bench, folder, "long", &source, FINDINGS)?;
    pages.push(Page { name: "a million events".into(), kind: "long", file: reported(bench, folder, "long", &long)? });
    Ok(pages)
}

/// The store of a check that ends with this code.
fn checked(bench: &Bench, folder: &Path, name: &str, program: &Path, code: i32) -> Result<PathBuf> {
    let store = folder.join("stores").join(name);
    if store.exists() {
        fs::remove_dir_all(&store)?;
    }
    let mut check = Command::new(&bench.tool);
    check.args(["--quiet", "--no-config", "check", "--budget", "60", "--output"]).arg(&store).arg(program);
    let output = check.output().context("cannot start the tool")?;
    if output.status.code() != Some(code) {
        bail!("{} was not proven to be wrong: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(store)
}

/// The store's report, in which folders are called the same wherever it is made: golden images show them.
fn reported(bench: &Bench, folder: &Path, name: &str, store: &Path) -> Result<PathBuf> {
    let mut report = Command::new(&bench.tool);
    report.args(["--quiet", "--no-config", "report", "--format", "html", "--store"]).arg(store);
    let output = report.output().context("cannot start the tool")?;
    if !output.status.success() {
        bail!("no report of {}: {}", store.display(), String::from_utf8_lossy(&output.stderr));
    }
    let mut text = String::from_utf8(output.stdout).context("the report is no text")?;
    for (path, instead) in [(folder, "/home/user/stores"), (root(), "/home/user/rashomon")] {
        text = text.replace(&path.display().to_string(), instead);
    }
    let file = folder.join(format!("{name}.html"));
    fs::write(&file, text)?;
    Ok(file)
}

/// Files of findings, as values.
fn findings_of(store: &Path) -> Result<Vec<Value>> {
    let read = |entry: std::io::Result<fs::DirEntry>| Ok(serde_json::from_slice(&fs::read(entry?.path())?)?);
    fs::read_dir(store.join("findings"))?.map(read).collect()
}

/// What has to stand on paper: a line each.
fn wanted(findings: &[Value]) -> String {
    let proven = |file: &&Value| file["finding"]["verdict"]["status"] == "proven";
    let mut lines = Vec::new();
    for file in findings.iter().filter(proven) {
        let finding = &file["finding"];
        lines.extend(finding["id"].as_str().map(str::to_owned));
        lines.extend(finding["subject"].as_str().map(str::to_owned));
        for side in finding["sides"].as_array().into_iter().flatten() {
            lines.extend(side["action"].as_str().map(str::to_owned));
        }
        lines.push(" execution, which shows it".into());
    }
    lines.extend(["Recorded execution", "Why it is sure", "Make it happen again", "rashomon replay --store"].map(str::to_owned));
    lines.join("\n")
}

/// A store of many findings, each a copy of one of these under an id of its own.
fn multiplied(folder: &Path, like: &Path, findings: &[Value]) -> Result<PathBuf> {
    let store = folder.join("stores/many");
    if store.exists() {
        fs::remove_dir_all(&store)?;
    }
    fs::create_dir_all(store.join("findings"))?;
    for name in ["run.json", "summary.json"] {
        fs::copy(like.join(name), store.join(name)).with_context(|| format!("cannot copy {name} of {}", like.display()))?;
    }
    for number in 0..MANY {
        let mut file = findings.get(number as usize % findings.len()).context("no finding to copy")?.clone();
        let finding = &mut file["finding"];
        let kind = finding["id"].as_str().and_then(|id| id.rsplit_once('-')).context("an id without a number")?.0.to_owned();
        let id = format!("{kind}-{number:08x}");
        finding["id"] = id.clone().into();
        fs::write(store.join("findings").join(format!("{id}.json")), serde_json::to_vec(&file)?)?;
    }
    Ok(store)
}
