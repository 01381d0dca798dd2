//! Listing 1 with the schedule of §2.2.1: recorded with main first, exported, refined, enforced in parallel.

use super::enforced::{Enforced, enforced, said_by};
use crate::common::bar::Bar;
use crate::common::compile::succeed;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::workspace::root;

/// Below `tests/programs`.
const SOURCE: &str = "measured/listing1.c";
/// As the paper prints it, with underscores.
const SCHEDULE: [&str; 4] = ["fork_t1_t2", "start_t2", "lock_t2_m1", "unlock_t2_m1"];
/// Seconds for what is refined, and for what is enforced.
const BUDGET: &str = "30";

#[derive(Debug, Serialize)]
pub struct Listing {
    /// Synchronisation of the shortest counterexample about the race.
    schedule: Vec<String>,
    deadlock_free: bool,
    enforced: Enforced,
}

pub fn listing(tool: &Path) -> Result<Listing> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let [binary, store, model] = ["program", "store", "model.csp"].map(|name| folder.path().join(name));
    let source = root().join("tests/programs").join(SOURCE);
    succeed(Command::new(tool).args(["cc", "-std=gnu11", "-g", "-O1", "-pthread"]).arg(source).arg("-o").arg(&binary))?;
    said_by(Command::new(tool).args(["--quiet", "record", "--output"]).arg(&store).arg("--").arg(&binary))?;
    said_by(Command::new(tool).args(["--quiet", "csp", "export"]).arg(&store).arg("--output").arg(&model))?;
    let checked = printed(Command::new(tool).args(["--quiet", "csp", "check", "--within", BUDGET]).arg(&model))?;
    let Some(race) = checked.lines().find(|line| line.ends_with(", race")) else { bail!("no race is refined:\n{checked}") };
    let synchronises = |name: &&str| !name.starts_with("read_") && !name.starts_with("write_") && *name != "race";
    Ok(Listing {
        schedule: race.trim().split(", ").filter(synchronises).map(str::to_owned).collect(),
        deadlock_free: checked.contains("PROGRAM :[deadlock free]: holds"),
        enforced: enforced(tool, &store, BUDGET)?,
    })
}

/// What it prints on standard output. How it ends says whether there are findings.
fn printed(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().context("cannot start the tool")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Listing {
    pub fn bars(&self) -> Vec<Bar> {
        let is_printed = self.schedule == SCHEDULE;
        vec![
            Bar::holds("Listing 1: the shortest counterexample is the schedule of §2.2.1", is_printed, self.schedule.join(", ")),
            Bar::holds(
                "Listing 1: no deadlock is refined",
                self.deadlock_free,
                String::from(if self.deadlock_free { "none" } else { "one" }),
            ),
            Bar::holds(
                "Listing 1: enforced in parallel, the race is confirmed at one pair of lines",
                self.enforced.confirmed > 0 && self.enforced.places == 1,
                format!("{} orders confirmed, {} places", self.enforced.confirmed, self.enforced.places),
            ),
        ]
    }

    pub fn print(&self) {
        println!("Listing 1: {}", self.schedule.join(", "));
    }
}
