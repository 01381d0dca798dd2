//! One execution and what it took, as the kernel accounts for it.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;
use wait4::Wait4 as _;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    pub wall_seconds: f64,
    /// User and system time of the process and of those it waited for.
    pub cpu_seconds: f64,
    /// Largest resident set of any one of these processes. The kernel lets it begin with that of the parent, so a few megabytes
    /// of ours are its floor.
    pub peak_megabytes: f64,
}

/// Runs the command with its output thrown away. A failure is an error: a program that fails was not measured.
pub fn run(command: &mut Command) -> Result<Usage> {
    let begin = Instant::now();
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let ended = child.wait4().with_context(|| format!("cannot wait for {name}"))?;
    let wall_seconds = begin.elapsed().as_secs_f64();
    if !ended.status.success() {
        let line: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        bail!("{name} {} failed ({})", line.join(" "), ended.status);
    }
    let resources = ended.rusage;
    Ok(Usage {
        wall_seconds,
        cpu_seconds: (resources.utime + resources.stime).as_secs_f64(),
        peak_megabytes: resources.maxrss as f64 / (1 << 20) as f64,
    })
}

/// Quantity by quantity.
pub fn medians(runs: &[Usage]) -> Usage {
    let of = |quantity: fn(&Usage) -> f64| median(runs.iter().map(quantity).collect());
    Usage {
        wall_seconds: of(|usage| usage.wall_seconds),
        cpu_seconds: of(|usage| usage.cpu_seconds),
        peak_megabytes: of(|usage| usage.peak_megabytes),
    }
}

/// Of no values: 0.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// Of no values: 1.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    if count == 0 { 1.0 } else { (sum / f64::from(count)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean([4.0, 0.25]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean([2.0, 8.0]) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn usage_is_that_of_the_command() {
        let usage = run(Command::new("sh").args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])).unwrap();
        assert!(usage.cpu_seconds > 0.0 && usage.wall_seconds > 0.0 && usage.peak_megabytes > 0.1);
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
    }
}
