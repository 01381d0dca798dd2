//! What a measurement has to reach.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Bar {
    pub name: String,
    pub required: String,
    pub found: String,
    pub met: bool,
}

impl Bar {
    pub fn at_most(name: &str, found: f64, limit: f64, unit: &str) -> Self {
        Self {
            name: name.into(), required: format!("≤ {limit}{unit}"), found: format!("{found:.2}{unit}"), met: found <= limit
        }
    }

    pub fn holds(name: &str, met: bool, found: String) -> Self {
        Self { name: name.into(), required: "yes".into(), found, met }
    }
}

/// One line a bar. Says whether all are met.
pub fn print(bars: &[Bar]) -> bool {
    for bar in bars {
        let verdict = if bar.met { "met   " } else { "missed" };
        println!("{verdict}  {}: {} (bar: {})", bar.name, bar.found, bar.required);
    }
    all_met(bars)
}

pub fn all_met(bars: &[Bar]) -> bool {
    bars.iter().all(|bar| bar.met)
}
