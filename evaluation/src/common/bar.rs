//! What a measurement has to reach.

use anyhow::Result;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Bar {
    pub name: String,
    pub required: String,
    pub found: String,
    pub met: bool,
    /// Where it must go, in contrast to what it must be: shown, but not part of the exit code.
    pub stretch: bool,
}

impl Bar {
    pub fn at_most(name: &str, found: f64, limit: f64, unit: &str) -> Self {
        Self {
            name: name.into(),
            required: format!("≤ {limit}{unit}"),
            found: format!("{found:.2}{unit}"),
            met: found <= limit,
            stretch: false,
        }
    }

    pub fn at_least(name: &str, found: f64, limit: f64, unit: &str) -> Self {
        let met = found >= limit;
        Self { required: format!("≥ {limit}{unit}"), met, ..Self::at_most(name, found, limit, unit) }
    }

    pub fn holds(name: &str, met: bool, found: String) -> Self {
        Self { name: name.into(), required: "yes".into(), found, met, stretch: false }
    }

    pub fn stretch(self) -> Self {
        Self { stretch: true, ..self }
    }
}

/// One line a bar. Says whether all are met, stretches apart.
pub fn print(bars: &[Bar]) -> bool {
    for bar in bars {
        let verdict = if bar.met { "met   " } else { "missed" };
        let word = if bar.stretch { "stretch" } else { "bar" };
        println!("{verdict}  {}: {} ({word}: {})", bar.name, bar.found, bar.required);
    }
    all_met(bars)
}

/// The report as JSON, or as text with a line a bar. Says whether all are met.
pub fn finish(report: &impl Serialize, bars: &[Bar], json: bool, print_text: impl FnOnce()) -> Result<bool> {
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
        return Ok(all_met(bars));
    }
    print_text();
    Ok(print(bars))
}

/// How many of all are there, and what is said of each that is not.
pub fn all_but(failed: &[String], all: usize) -> String {
    let said: String = failed.iter().map(|one| format!("; {one}")).collect();
    format!("{} of {all}{said}", all - failed.len())
}

pub fn all_met(bars: &[Bar]) -> bool {
    bars.iter().all(|bar| bar.met || bar.stretch)
}
