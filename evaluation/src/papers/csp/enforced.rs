//! Orders of synchronisation enforced in parallel with the detector beside them (§2.3): `rashomon csp enforce` on a store.

use crate::common::races;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long one command of the tool may take. Those with a budget end long before; the others take seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// What came of the orders of one store.
#[derive(Debug, Default, Serialize)]
pub struct Enforced {
    /// Orders that were enforced; those under which the detector reported a race, or the program deadlocked; those under which
    /// nothing happened; those that could not be kept.
    pub orders: usize,
    pub confirmed: usize,
    pub nothing: usize,
    pub infeasible: usize,
    /// Pairs of source lines that were reported.
    pub places: usize,
    /// Of the confirmed ones.
    pub kinds: BTreeSet<String>,
    /// Of executing.
    pub seconds: f64,
}

/// Runs the tool, which reads nothing, and gives what it says on standard error. A time limit bounds it; how it ends does not
/// matter, as commands that find something end with a code of their own.
pub fn said_by(tool: &mut Command) -> Result<String> {
    let execution = races::execute(tool.stdin(Stdio::null()), LONGEST)?;
    let late = if execution.status.is_none() { format!("ended after {} s\n", LONGEST.as_secs()) } else { String::new() };
    Ok(late + &execution.said)
}

/// `budget`: seconds.
pub fn enforced(tool: &Path, store: &Path, budget: &str) -> Result<Enforced> {
    let file = store.with_extension("enforced");
    let mut enforce = Command::new(tool);
    enforce.args(["--quiet", "csp", "enforce", "--budget", budget, "--json"]).arg(&file).arg(store);
    let said = said_by(&mut enforce)?;
    let text = std::fs::read(&file).with_context(|| format!("enforcing left no report\n{said}"))?;
    let report: Value = serde_json::from_slice(&text).context("the report of enforcing")?;
    let mut all = Enforced { seconds: report["enforcing"].as_f64().unwrap_or(0.0), ..Enforced::default() };
    let mut places = BTreeSet::new();
    for one in report["counterexamples"].as_array().into_iter().flatten() {
        all.orders += 1;
        match one["outcome"].as_str() {
            Some(kind @ ("race" | "deadlock")) => {
                all.confirmed += 1;
                all.kinds.insert(String::from(if kind == "race" { "data-race" } else { kind }));
                if one["races"].as_u64() > Some(0) {
                    all.kinds.insert(String::from("data-race"));
                }
            }
            Some("infeasible") => all.infeasible += 1,
            _ => all.nothing += 1,
        }
        places.extend(one["places"].as_array().into_iter().flatten().map(Value::to_string));
    }
    all.places = places.len();
    Ok(all)
}
