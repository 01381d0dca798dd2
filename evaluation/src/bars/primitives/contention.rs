//! What primitives cost where many threads do them at once: the cache lines that two threads pass to each other for an operation,
//! counted instruction by instruction, and from these what 64 threads would wait for, by a model.
//!
//! The model is a closed queueing network, solved exactly (mean value analysis: M. Reiser, S. Lavenberg, "Mean-Value Analysis of
//! Closed Multichain Queuing Networks", JACM 27(2), 1980). A thread works for as long as the operation takes one thread alone,
//! and fetches each line that it has to share as often as was counted; a line goes to one thread at a time, which takes
//! [`TRANSFER`]. **Limits**: what a lock makes threads wait for besides its lines, and what the kernel does, is not in it.

use super::{Measured, printed};
use crate::common::detector::{Configuration, Detector, Filter};
use crate::common::measure::{geometric_mean, median};
use crate::common::stepping::{Touched, follow};
use crate::common::table::Table;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// Nanoseconds until a line that another processor has written is here.
const TRANSFER: f64 = 60.0;
const OPERATIONS: u64 = 32;
const THREADS: usize = 2;
const MANY: u32 = 64;
pub const WAYS: [&str; 4] = ["native", "tsan", "detect", "record"];

#[derive(Debug, Serialize)]
pub struct Row {
    primitive: String,
    bytes: u32,
    /// One thread alone, ns an operation, by [`WAYS`].
    alone: [f64; 4],
    /// Lines that an operation takes from the other thread.
    passed: [f64; 4],
    /// What an operation of each of [`MANY`] threads takes by the model, ns.
    many: [f64; 4],
}

/// What an operation takes each of so many threads.
fn modelled(alone: f64, visits: &[f64], threads: u32) -> f64 {
    let mut waiting = vec![0.0; visits.len()];
    let mut taken = alone;
    for present in 1..=threads {
        let stays: Vec<f64> = visits.iter().zip(&waiting).map(|(visits, waiting)| visits * TRANSFER * (1.0 + waiting)).collect();
        taken = alone + stays.iter().sum::<f64>();
        let rate = f64::from(present) / taken;
        waiting = stays.iter().map(|stays| rate * stays).collect();
    }
    taken
}

/// Visits of an operation to each line that is passed.
fn visits(touched: &Touched) -> Vec<f64> {
    let operations = OPERATIONS * THREADS as u64;
    // What is passed less than once in four operations is the begin's or the end's.
    touched.passed.values().map(|&passed| passed as f64 / operations as f64).filter(|&visits| visits >= 0.25).collect()
}

fn traced(mut command: Command) -> Result<Touched> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let (mut input, output) = (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).context("cannot read what the program prints")?;
    let process = line.trim().parse().with_context(|| format!("{command:?} printed {line:?} instead of its process id"))?;
    let touched = follow(process, THREADS, || Ok(input.write_all(b"go\n")?))?;
    // It may have been waited for already.
    let _ = child.wait();
    Ok(touched)
}

/// Of a primitive: two threads traced, and one alone measured, in each way.
pub fn measure(measured: &mut Measured<'_>, runs: u32, nanoseconds: &'static str) -> Result<Row> {
    let (name, bytes) = (measured.line[0], measured.line[1]);
    let operations = OPERATIONS.to_string();
    let threads = THREADS.to_string();
    let line = [name, bytes, threads.as_str(), operations.as_str(), "traced"];
    let plain = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.args(line).env_remove("TSAN_OPTIONS");
        command
    };
    let mut detecting = plain(&measured.built.ours);
    Configuration { detector: Detector::Hb, filter: Filter::None }.apply(&mut detecting, "");
    let store = measured.folder.join("store");
    let mut recording = Command::new(measured.tool);
    recording.args(["--quiet", "record", "--trace-limit", "0", "--timeout", "0", "--policy", "free", "--output"]);
    recording.arg(&store).arg("--").arg(&measured.built.ours).args(line).current_dir(measured.folder);
    let commands = [plain(&measured.built.native), plain(&measured.built.sanitizer), detecting, recording];
    let mut lines: [Vec<f64>; 4] = Default::default();
    for (lines, command) in lines.iter_mut().zip(commands) {
        *lines = visits(&traced(command)?);
    }
    std::fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    measured.line = vec![name, bytes, "1", nanoseconds];
    let mut alone: [Vec<f64>; 4] = Default::default();
    for _ in 0..runs {
        let once = [measured.native()?, measured.sanitizer()?, measured.detect()?, measured.record()?];
        alone.iter_mut().zip(once).for_each(|(all, once)| all.push(once));
    }
    let alone = alone.map(median);
    Ok(Row {
        primitive: name.into(),
        bytes: bytes.parse().context("bytes are a number")?,
        alone,
        passed: std::array::from_fn(|way| lines[way].iter().fold(0.0, |sum, lines| sum + lines)),
        many: std::array::from_fn(|way| modelled(alone[way], &lines[way], MANY)),
    })
}

/// The primitives, each with the fewest bytes.
pub fn names(program: &std::path::Path) -> Result<Vec<(String, String)>> {
    let mut names: Vec<(String, String)> = Vec::new();
    for line in printed(&mut Command::new(program))?.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let (Some(name), Some(bytes)) = (words.next(), words.next()) else { continue };
        if names.last().is_none_or(|(last, _)| *last != name) {
            names.push((name, bytes));
        }
    }
    Ok(names)
}

/// Of detection and of recording beside ThreadSanitizer, by the model.
pub fn ratios(rows: &[Row]) -> [f64; 2] {
    [2, 3].map(|way| geometric_mean(rows.iter().map(|row| row.many[way] / row.many[1].max(0.001))))
}

pub fn print(rows: &[Row]) {
    println!(
        "\ncache lines that an operation takes from another thread, two threads; and ns an operation of each of {MANY}, modelled"
    );
    let mut titles = vec!["primitive".to_owned(), "bytes".to_owned()];
    titles.extend(WAYS.map(|way| format!("{way}: lines")));
    titles.extend(WAYS.map(|way| format!("{way}: ns")));
    titles.extend(["detect/tsan".to_owned(), "record/tsan".to_owned()]);
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        let mut cells = vec![row.primitive.clone(), row.bytes.to_string()];
        cells.extend(row.passed.map(|lines| format!("{lines:.1}")));
        cells.extend(row.many.map(|taken| format!("{taken:.0}")));
        cells.extend([2, 3].map(|way| format!("{:.2}", row.many[way] / row.many[1].max(0.001))));
        table.row(cells);
    }
    table.print();
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wait_for_a_line_as_soon_as_there_are_more_than_it_serves() {
        assert_eq!(modelled(100.0, &[], 64), 100.0);
        assert_eq!(modelled(100.0, &[1.0], 1), 100.0 + TRANSFER);
        // One line serves one thread at a time.
        let many = modelled(100.0, &[1.0], 64);
        assert!((many - 64.0 * TRANSFER).abs() < 0.01 * many, "{many}");
        assert!(modelled(100.0, &[1.0, 1.0], 64) >= many && modelled(100.0, &[0.5], 64) < many);
    }
}
