//! A real server that nobody here wrote: memcached from Debian's source package, under a load over loopback. Built without
//! instrumentation, with clang's (or gcc's) ThreadSanitizer, and with `rashomon cc` for online detection and for recording in
//! parallel.

use crate::common::bar::{self, Bar};
use crate::common::compile::{Compilers, succeed};
use crate::common::debian::{self, starts};
use crate::common::load::Served;
use crate::common::load::memcached::Client;
use crate::common::load::store::{Store as _, load};
use crate::common::only::Only;
use crate::common::server::{self, Server};
use crate::common::table::Table;
use crate::common::trace_size;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::workspace;

const CONNECTIONS: u64 = 8;
const QUICK_SECONDS: u64 = 5;

/// One way to run the server.
struct Variant {
    name: &'static str,
    /// What stands before the server's own command line.
    before: Vec<std::ffi::OsString>,
    server: PathBuf,
    store: Option<PathBuf>,
}

struct Outcome {
    name: &'static str,
    served: Result<Served>,
    peak_megabytes: f64,
    /// Kind and places of each report → how often.
    races: BTreeMap<String, u64>,
    trace_bytes: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds of load on the server.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Only variants whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = workspace::build_tool()?;
    let compilers = Compilers::find()?;
    let folder = tempfile::Builder::new().prefix("rashomon-memcached-").tempdir().context("cannot create a temporary folder")?;
    let folder = folder.path();
    let seconds = if options.quick { QUICK_SECONDS } else { options.seconds };
    eprintln!("fetching the source package");
    let source = fetch_source(folder)?;
    eprintln!("building it three times");
    let native = build(&source, &folder.join("native"), &compilers.c, "", None)?;
    let sanitizer = build(&source, &folder.join("sanitizer"), &compilers.c, "-fsanitize=thread", None)?;
    let ours = build(&source, &folder.join("ours"), &format!("{} cc", tool.display()), "", Some(&compilers.c))?;
    let store = folder.join("store");
    let words = |words: &[&str]| words.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    let tool_with = |arguments: &[&str], folder: Option<&Path>| {
        let mut line = vec![tool.clone().into_os_string()];
        line.extend(words(arguments));
        line.extend(folder.map(|folder| folder.as_os_str().to_owned()));
        line.extend(words(&["--"]));
        line
    };
    let variants = [
        Variant { name: "native", before: Vec::new(), server: native, store: None },
        Variant { name: "ThreadSanitizer", before: Vec::new(), server: sanitizer, store: None },
        Variant {
            name: "ours, detect",
            before: tool_with(&["--quiet", "detect", "--format", "tsan"], None),
            server: ours.clone(),
            store: None,
        },
        Variant {
            name: "ours, record free",
            before: tool_with(&["--quiet", "record", "--policy", "free", "--timeout", "0", "--output"], Some(&store)),
            server: ours,
            store: Some(store),
        },
    ];
    let mut outcomes = Vec::new();
    let only = Only::of(options.only.as_deref());
    for variant in variants.iter().filter(|variant| only.wants(variant.name)) {
        eprintln!("{}: {seconds} s of load over {CONNECTIONS} connections", variant.name);
        outcomes.push(play(variant, folder, Duration::from_secs(seconds))?);
    }
    only.check()?;
    println!(
        "cargo xtask evaluate memcached --seconds {seconds} ({}, {CONNECTIONS} connections, 4 server threads)",
        compilers.version
    );
    Ok(report(&outcomes))
}

fn report(outcomes: &[Outcome]) -> bool {
    let mut table = Table::new(&["", "operations/s", "p50 ms", "p99 ms", "p99.9 ms", "peak MB", "trace MB", "reports"]);
    let mut bars = Vec::new();
    for outcome in outcomes {
        let name = format!("served correctly: {}", outcome.name);
        let reports: u64 = outcome.races.values().sum();
        let (found, correct) = match &outcome.served {
            Ok(served) => {
                let trace = outcome.trace_bytes.map_or("-".into(), |bytes| format!("{:.0}", bytes as f64 / 1e6));
                table.row(vec![
                    outcome.name.into(),
                    format!("{:.0}", served.a_second()),
                    format!("{:.2}", served.percentile(50.0)),
                    format!("{:.2}", served.percentile(99.0)),
                    format!("{:.2}", served.percentile(99.9)),
                    format!("{:.0}", outcome.peak_megabytes),
                    trace,
                    reports.to_string(),
                ]);
                let counted = format!("{} operations, {} of {} increments", served.operations, served.counter, served.increments);
                (counted, served.is_correct())
            }
            Err(error) => (format!("{error:#}"), false),
        };
        bars.push(Bar::holds(&name, correct, found));
    }
    table.print();
    for outcome in outcomes.iter().filter(|outcome| !outcome.races.is_empty()) {
        println!("reported by {}:", outcome.name);
        for (race, count) in &outcome.races {
            println!("  {count:>4} {race}");
        }
    }
    bar::print(&bars)
}

fn play(variant: &Variant, folder: &Path, length: Duration) -> Result<Outcome> {
    let address = server::free_address()?;
    let mut command = Command::new(variant.before.first().unwrap_or(&variant.server.clone().into_os_string()));
    if let Some(behind) = variant.before.get(1..) {
        command.args(behind).arg(&variant.server);
    }
    command
        .args(["-A", "-u", "root", "-l", "127.0.0.1", "-U", "0", "-t", "4", "-m", "256", "-p"])
        .arg(address.port().to_string());
    let server = Server::start(command.current_dir(folder), address, folder.join("said")).context(variant.name)?;
    let served = load::<Client>(address, CONNECTIONS, length);
    let peak_megabytes = server::peak_of(&variant.server);
    let said = server.end(|| Client::connect(address)?.shut_down()).context(variant.name)?;
    let trace_bytes = match &variant.store {
        Some(store) => Some(
            trace_size::sessions_below(store)?.iter().map(|session| Ok(trace_size::of(session)?.bytes)).sum::<Result<u64>>()?,
        ),
        None => None,
    };
    let mut races = BTreeMap::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("SUMMARY: ThreadSanitizer: ")) {
        *races.entry(line.replace(&*folder.to_string_lossy(), "")).or_default() += 1;
    }
    Ok(Outcome { name: variant.name, served, peak_megabytes, races, trace_bytes })
}

fn fetch_source(folder: &Path) -> Result<PathBuf> {
    let header = Path::new("/usr/include/event2/event.h").exists() || Path::new("/usr/include/event.h").exists();
    debian::provide(&[("libevent-dev", header), ("dpkg-dev", starts("dpkg-source")), ("make", starts("make"))])?;
    debian::download("memcached", debian::Part::Everything, folder)?;
    let description = debian::file_with_extension(folder, "dsc")?;
    let unpacked = folder.join("source");
    succeed(Command::new("dpkg-source").arg("-x").arg(&description).arg(&unpacked).current_dir(folder))?;
    Ok(unpacked)
}

/// Builds a copy of the source with its own configure script and Makefile. `behind`: the compiler that the wrapper calls.
fn build(source: &Path, folder: &Path, compiler: &str, flags: &str, behind: Option<&str>) -> Result<PathBuf> {
    succeed(Command::new("cp").arg("-a").arg(source).arg(folder))?;
    let mut configure = Command::new("./configure");
    configure.args(["--disable-docs", "--disable-dependency-tracking", "--disable-coverage"]).current_dir(folder);
    let mut make = Command::new("make");
    make.args(["-j2", "memcached"]).arg(format!("CFLAGS=-g -O2 -w -pthread {flags}")).current_dir(folder);
    for command in [&mut configure, &mut make] {
        command.env("CC", compiler);
        if let Some(behind) = behind {
            command.env("RASHOMON_CC", behind);
        }
    }
    succeed(&mut configure)?;
    succeed(&mut make)?;
    Ok(fs::canonicalize(folder.join("memcached"))?)
}
