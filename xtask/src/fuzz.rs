//! `cargo xtask fuzz`: coverage-guided fuzzing of every reader for a chosen time, with libFuzzer and the stable compiler.
//!
//! The targets are those of `cargo fuzz` (folder `fuzz/`), which runs them, too, and adds sanitizers that need a nightly
//! compiler. What this command needs of the compiler, coverage counters, is an option of the stable one. Corpus and finds stay in
//! `target/fuzz`, so that another run goes on from there.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rashomon_packed::{Format, Generator, Preset, Shape, WriteOptions, copy, create};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::workspace;

#[derive(Debug, Args)]
pub struct Options {
    /// Which target; without it all, one after the other.
    target: Option<String>,
    /// For each target.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

const TARGETS: [&str; 6] = ["std_text", "rapid_bin", "speedygo", "packed", "any", "recording"];
/// A reader that needs more for an input of at most this length has no bound.
const MEGABYTES: u32 = 1024;
const INPUT: u32 = 1 << 16;

/// What libFuzzer wants of the compiler.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Clink-dead-code",
];

fn triple() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Ok(host.to_owned())
}

/// The folder of the programs.
fn build(folder: &Path) -> Result<PathBuf> {
    let triple = triple()?;
    let status = workspace::cargo()
        .args(["build", "--release", "--bins", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple, "--target-dir"])
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the fuzz targets do not build");
    }
    Ok(folder.join(triple).join("release"))
}

/// Inputs to begin with: small good files, with the byte that says how to read them before.
fn seed(target: &str, corpus: &Path) -> Result<()> {
    std::fs::create_dir_all(corpus).with_context(|| corpus.display().to_string())?;
    let put = |name: &str, flag: u8, content: &[u8]| {
        let bytes: Vec<u8> = std::iter::once(flag).chain(content.iter().copied()).collect();
        let path = corpus.join(name);
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())
    };
    if target == "recording" {
        let golden = workspace::root().join("crates/trace/tests/golden/v2");
        for (number, name) in ["header", "modules", "thread-0000", "thread-0001"].into_iter().enumerate() {
            put(name, number as u8, &std::fs::read(golden.join(name))?)?;
        }
        return Ok(());
    }
    let formats: &[Format] = match target {
        "std_text" => &[Format::Std],
        "rapid_bin" => &[Format::RapidBin],
        "speedygo" => &[Format::SpeedyGo],
        "packed" => &[Format::Packed],
        _ => &Format::ALL,
    };
    let scratch = tempfile::tempdir()?;
    for &format in formats {
        let transactions = format != Format::SpeedyGo;
        let few = Shape {
            threads: 3,
            locks: 2,
            variables: 40,
            racy: 2,
            read_shared: 3,
            locations: 20,
            transactions,
            ..Preset::Flat.shape(120, 1)
        };
        let path = scratch.path().join("trace");
        let mut source = Generator::new(few).map_err(anyhow::Error::msg)?;
        let mut sink = create(&path, format, WriteOptions::default(), &source)?;
        copy(&mut source, &mut sink, |_| {})?;
        drop(sink);
        let bytes = std::fs::read(path)?;
        put(format.name(), 0, &bytes)?;
        put(&format!("{}-other-flags", format.name()), 0x83, &bytes)?;
        if target == "any" {
            put(&format!("{}-compressed", format.name()), 0, &zstd::encode_all(&bytes[..], 1)?)?;
        }
    }
    Ok(())
}

/// What libFuzzer says it has done.
fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(&format!("stat::{name}:")))?;
    line.trim().parse().ok()
}

pub fn run(options: &Options) -> Result<bool> {
    let targets: Vec<&str> = match &options.target {
        None => TARGETS.to_vec(),
        Some(wanted) => match TARGETS.into_iter().find(|target| target == wanted) {
            Some(target) => vec![target],
            None => bail!("no fuzz target is called {wanted}; there are {}", TARGETS.join(", ")),
        },
    };
    let folder = workspace::target()?.join("fuzz");
    let programs = build(&folder)?;
    let mut sound = true;
    for target in targets {
        let corpus = folder.join("corpus").join(target);
        let finds = folder.join("finds").join(target);
        seed(target, &corpus)?;
        std::fs::create_dir_all(&finds)?;
        let output = Command::new(programs.join(target))
            .arg(format!("-max_total_time={}", options.seconds))
            .arg(format!("-rss_limit_mb={MEGABYTES}"))
            .arg(format!("-max_len={INPUT}"))
            .arg(format!("-artifact_prefix={}/", finds.display()))
            .args(["-timeout=10", "-print_final_stats=1"])
            .arg(&corpus)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {target}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let (executions, megabytes) = (number(&said, "number_of_executed_units"), number(&said, "peak_rss_mb"));
        let word = if output.status.success() { "sound " } else { "FAILED" };
        println!(
            "{word}  {target}: {} executions in {} s, peak {} MB",
            executions.map_or("?".into(), |count| count.to_string()),
            options.seconds,
            megabytes.map_or("?".into(), |count| count.to_string()),
        );
        if !output.status.success() {
            sound = false;
            let last: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).rev().take(40).collect();
            last.iter().rev().for_each(|line| println!("  {line}"));
            println!("  again: {} {}/FILE", programs.join(target).display(), finds.display());
        }
    }
    Ok(sound)
}
