//! Every way to install the tool: the package is made, installed where nothing of it was before, and has to show the README's
//! first proof with nothing but what was installed.
//!
//! The Debian package goes into a fresh system, made by debootstrap once and copied for each run; it has gcc, as the package
//! recommends, and nothing of this workspace. Where that cannot be had (no root, no debootstrap, `--quick`), the package is
//! unpacked into a folder. The wheel goes into a fresh virtual environment. The crates are built from their packages alone. The
//! archive is unpacked, and its programs must need no library.

mod place;

use crate::common::bar::{self, Bar};
use crate::common::command_line;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use place::Place;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::release::{self, emptied, must};
use xtask::workspace::{root, target};

/// A race that a check of it proves.
const PROGRAM: &str = "examples/listing1.c";
const FINDINGS: i32 = 66;
/// What `rashomon doctor` says of an installation, and what is at the end of the path that it names.
const DOCUMENTS: [(&str, &str); 4] = [
    ("manual pages", "share/man/man1/rashomon.1"),
    ("completions", "share/bash-completion/completions/rashomon"),
    ("CMake module", "share/cmake/Rashomon/RashomonConfig.cmake"),
    ("pkg-config", "share/pkgconfig/rashomon.pc"),
];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only routes whose name contains this: wheel, deb, crates, archive.
    #[arg(long)]
    pub only: Option<String>,
    /// Build no crates, no archive, and no system for the Debian package.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    route: &'static str,
    /// Where it was installed.
    place: String,
    /// Bytes of all packages of the route.
    bytes: u64,
    /// What `rashomon --version` says.
    version: String,
    proof: Shown,
    replay: Shown,
    wrappers: Shown,
    documents: Shown,
}

/// Whether something was shown, and what was seen.
#[derive(Debug, Serialize)]
struct Shown {
    shown: bool,
    seen: String,
}

#[derive(Debug, Serialize)]
struct Report {
    command: String,
    rows: Vec<Row>,
    bars: Vec<Bar>,
}

pub fn run(options: &Options) -> Result<bool> {
    let folder = target()?.join("evaluate/packages");
    release::made(&folder)?;
    let chosen = |route: &str| options.only.as_deref().is_none_or(|part| route.contains(part));
    let mut rows = Vec::new();
    if chosen("wheel") {
        rows.push(wheel(&folder)?);
    }
    if chosen("deb") {
        rows.push(deb(&folder, options.quick)?);
    }
    if chosen("crates") && !options.quick {
        rows.push(crates(&folder)?);
    }
    let mut needed = None;
    if chosen("archive") && !options.quick {
        let (row, libraries) = archive(&folder)?;
        rows.push(row);
        needed = Some(libraries);
    }
    if rows.is_empty() {
        bail!("no route is called so; there are wheel, deb, crates and archive (the last two not with --quick)");
    }
    let mut bars: Vec<Bar> = rows.iter().flat_map(bars_of).collect();
    bars.extend(needed.map(|needed| {
        Bar::holds(
            "archive: its programs need no library",
            needed.is_empty(),
            if needed.is_empty() { "none".into() } else { needed },
        )
    }));
    let report = Report { command: command_line(), rows, bars };
    bar::finish(&report, &report.bars, options.json, || {
        println!("{}", report.command);
        let mut table = Table::new(&["route", "installed into", "MB", "proof", "replay", "wrappers", "documents"]);
        let yes = |what: &Shown| if what.shown { "yes" } else { "no" }.to_owned();
        for row in &report.rows {
            let size = format!("{:.1}", row.bytes as f64 / 1e6);
            let shown = [&row.proof, &row.replay, &row.wrappers, &row.documents].map(yes);
            table.row([vec![row.route.to_owned(), row.place.clone(), size], shown.to_vec()].concat());
        }
        table.print();
    })
}

fn bars_of(row: &Row) -> Vec<Bar> {
    let installed = row.version == format!("rashomon {}", release::VERSION);
    let mut bars = vec![Bar::holds(&format!("{}: installs", row.route), installed, row.version.clone())];
    for (what, shown) in [
        ("the first proof is shown", &row.proof),
        ("it is replayed", &row.replay),
        ("rashomon-cc, rashomon-cxx and cargo-rashomon work", &row.wrappers),
        ("manual pages, completions and modules are where doctor says", &row.documents),
    ] {
        bars.push(Bar::holds(&format!("{}: {what}", row.route), shown.shown, shown.seen.clone()));
    }
    bars
}

fn wheel(folder: &Path) -> Result<Row> {
    let package = release::wheel::make()?;
    let scratch = emptied(folder.join("wheel"))?;
    let prefix = scratch.join("environment");
    must(Command::new("python3").args(["-m", "venv"]).arg(&prefix))?;
    let mut pip = Command::new(prefix.join("bin/pip"));
    // Nothing of PyPI is needed.
    must(pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"]).arg(&package))?;
    let place = Place::prefix(prefix, &scratch)?;
    tried("wheel", "a virtual environment", &place, &[package], true)
}

fn deb(folder: &Path, quick: bool) -> Result<Row> {
    let package = release::debian::make()?;
    let scratch = emptied(folder.join("deb"))?;
    match if quick { Err("--quick".into()) } else { place::system(folder, &scratch) } {
        Ok(system) => {
            fs::copy(&package, system.join("rashomon.deb"))?;
            let place = Place::system(system)?;
            must(place.command("dpkg").args(["--install", "/rashomon.deb"]))?;
            tried("deb", "a fresh Debian 12", &place, &[package], true)
        }
        Err(why) => {
            eprintln!("notice: the package is unpacked only, not installed into a system of its own: {why}");
            let unpacked = scratch.join("unpacked");
            must(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unpacked))?;
            let place = Place::prefix(unpacked.join("usr"), &scratch)?;
            tried("deb", "a folder", &place, &[package], true)
        }
    }
}

/// Unpacked; and what the loader would have to find for its tool.
fn archive(folder: &Path) -> Result<(Row, String)> {
    let package = release::archive::make()?;
    let scratch = emptied(folder.join("archive"))?;
    let prefix = scratch.join("prefix");
    release::made(&prefix)?;
    must(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(&package).arg("-C").arg(&prefix))?;
    let headers = release::output_of(Command::new("readelf").args(["-dl", "-W"]).arg(prefix.join("bin/rashomon")))?;
    let headers = String::from_utf8_lossy(&headers).into_owned();
    let needed = headers.lines().filter(|line| line.contains("(NEEDED)") || line.contains("program interpreter"));
    let needed = needed.map(str::trim).collect::<Vec<_>>().join("; ");
    let place = Place::prefix(prefix, &scratch)?;
    Ok((tried("archive", "a folder", &place, &[package], true)?, needed))
}

/// Built in a folder that is kept, as it takes minutes.
fn crates(folder: &Path) -> Result<Row> {
    let packages = release::crates::make()?;
    let scratch = folder.join("crates");
    release::made(&scratch)?;
    let prefix = emptied(scratch.join("prefix"))?;
    release::crates::install(&packages, &scratch, &prefix)?;
    let place = Place::prefix(prefix, &scratch)?;
    tried("crates", "a folder", &place, &packages, false)
}

/// `promised`: whether documents come with the packages. Where they do not, doctor has to say what to do instead.
fn tried(route: &'static str, name: &str, place: &Place, packages: &[PathBuf], promised: bool) -> Result<Row> {
    let sizes = packages.iter().map(|path| Ok(fs::metadata(path)?.len())).collect::<Result<Vec<u64>>>()?;
    fs::copy(root().join(PROGRAM), place.work.join("listing1.c")).with_context(|| format!("cannot copy {PROGRAM}"))?;
    let (_, version) = place.said("rashomon", &["--version"])?;
    let (code, said) = place.said("rashomon", &["check", "listing1.c"])?;
    let id = said.split_once("proven, co-enabled) [").and_then(|(_, rest)| rest.split_once(']')).map(|(id, _)| id.to_owned());
    let proof = Shown { shown: code == FINDINGS && id.is_some(), seen: id.clone().unwrap_or_else(|| end_of(code, &said)) };
    let replay = match &id {
        Some(id) => {
            let (code, said) = place.said("rashomon", &["replay", id])?;
            Shown { shown: code == 0, seen: if code == 0 { "yes".into() } else { end_of(code, &said) } }
        }
        None => Shown { shown: false, seen: "there is no finding".into() },
    };
    Ok(Row {
        route,
        place: name.to_owned(),
        bytes: sizes.iter().sum(),
        version: version.trim().to_owned(),
        proof,
        replay,
        wrappers: wrappers(place)?,
        documents: documents(place, promised)?,
    })
}

fn end_of(code: i32, said: &str) -> String {
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    format!("exit code {code}: {}", last.chars().take(100).collect::<String>())
}

fn wrappers(place: &Place) -> Result<Shown> {
    let mut seen = Vec::new();
    for (program, arguments) in [
        ("rashomon-cc", &["-g", "-O1", "-pthread", "-o", "linked", "listing1.c"][..]),
        ("rashomon-cxx", &["--version"]),
        ("cargo-rashomon", &["rashomon", "--help"]),
    ] {
        let (code, said) = place.said(program, arguments)?;
        // A system without a C++ compiler says that it has none.
        let has_none = program == "rashomon-cxx" && said.contains("cannot execute the compiler c++");
        if code != 0 && !has_none {
            seen.push(format!("{program}: {}", end_of(code, &said)));
        }
    }
    Ok(Shown { shown: seen.is_empty(), seen: if seen.is_empty() { "yes".into() } else { seen.join("; ") } })
}

fn documents(place: &Place, promised: bool) -> Result<Shown> {
    let (_, said) = place.said("rashomon", &["doctor"])?;
    let (_, runtime) = place.said("rashomon", &["runtime-path"])?;
    let mut wrong = Vec::new();
    for (what, path) in DOCUMENTS {
        let line = said.lines().find(|line| line.starts_with(what)).unwrap_or_default();
        let file = line.split_whitespace().find(|word| word.starts_with('/') && word.contains(path));
        let found = file.is_some_and(|file| place.seen(file).is_file());
        if promised != found || (!promised && !line.contains("instead: ")) {
            wrong.push(format!("`{line}`"));
        }
    }
    // This one is inside the tool, too.
    if !place.seen(runtime.trim()).join("RashomonConfig.cmake").is_file() {
        wrong.push(format!("no module of CMake in {}", runtime.trim()));
    }
    let seen = match (wrong.is_empty(), promised) {
        (true, true) => "all there".into(),
        (true, false) => "none, and doctor says what to do".into(),
        (false, _) => wrong.join("; "),
    };
    Ok(Shown { shown: wrong.is_empty(), seen })
}
