//! Whether what a store says may be executed.
//!
//! A store that this user recorded on this machine runs what he ran then. Any other one is a program from somebody else: what it
//! would do is shown, and it needs a yes on the terminal or `--trust`. Both say what runs, so that nothing does unseen.

use super::Ui;
use crate::arguments::TrustOptions;
use crate::terminal::{error_is_terminal, say};
use anyhow::{Context as _, Result, bail};
use rashomon_pipeline::{Origin, RunRecord, Store};
use std::io::{BufRead as _, IsTerminal as _, Read as _};

/// What the store's commands execute; says it, and returns if they may.
pub fn run_that_may(ui: Ui, store: &Store, trust: bool) -> Result<(RunRecord, Origin)> {
    let (run, origin) = store.run_and_origin()?;
    may_run(ui, store, &run, &origin, trust)?;
    Ok((run, origin))
}

fn may_run(ui: Ui, store: &Store, run: &RunRecord, origin: &Origin, trust: bool) -> Result<()> {
    let reason = match origin {
        Origin::Own => None,
        Origin::Unknown(reason) => Some(reason),
    };
    if !ui.quiet || reason.is_some() && !trust {
        for deed in run.deeds() {
            say!("runs {deed}");
        }
    }
    let Some(reason) = reason.filter(|_| !trust) else { return Ok(()) };
    let path = store.path().display();
    say!("{path} was not recorded by you on this machine: {reason}");
    if !std::io::stdin().is_terminal() || !error_is_terminal() {
        bail!("nothing was executed; if all of the above may run, say so with --trust");
    }
    say!("may all of the above run? yes or no");
    let mut answer = String::new();
    std::io::stdin().lock().take(16).read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was executed"),
    }
}

/// The store remembers which libraries are trusted, and which calls count.
pub fn add_trusted(store: &Store, (run, origin): (&mut RunRecord, &Origin), trust: &TrustOptions) -> Result<()> {
    let known = run.trusted_libraries.len();
    for said in trust.remembered() {
        if !run.trusted_libraries.contains(&said) {
            run.trusted_libraries.push(said);
        }
    }
    if run.trusted_libraries.len() > known {
        store.write_run_of(run, origin)?;
    }
    Ok(())
}
