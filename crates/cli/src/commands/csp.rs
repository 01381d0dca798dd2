//! `rashomon csp`: refinement of processes in scripts.

mod enforce;

use super::{Ui, open_store};
use crate::arguments::CspCommand;
use crate::exit::Exit;
use crate::terminal::{print, say};
use crate::waiting::Waiting;
use anyhow::{Context as _, Result, anyhow, bail};
use rashomon_csp::refine::{Limits, Verdict};
use rashomon_csp::script::Script;
use rashomon_event::Deadline;
use rashomon_files::Links;
use rashomon_pipeline::analyse::model::exported;
use rashomon_pipeline::analyse::traces::{each_trace, losses};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a script.
const LARGEST: u64 = 4 << 20;

pub fn csp(ui: Ui, command: CspCommand) -> Result<Exit> {
    match command {
        CspCommand::Export { trace, output, objects } => export(ui, trace.as_deref(), output.as_deref(), objects),
        CspCommand::Enforce { store, trust, counterexamples, budget, step_timeout, json } => {
            let asked = enforce::Asked { most: usize::from(counterexamples), budget, step_timeout, json };
            enforce::enforce(ui, store.as_deref(), trust, &asked)
        }
        CspCommand::Check { file, states, within, counterexamples } => {
            check(ui, &file, within, &Limits { states, counterexamples: usize::from(counterexamples), until: None })
        }
    }
}

fn export(ui: Ui, trace: Option<&Path>, output: Option<&Path>, objects: usize) -> Result<Exit> {
    let path = match trace {
        Some(path) => path.to_path_buf(),
        None => open_store(None)?.path().to_path_buf(),
    };
    let mut first = None;
    let waiting = Waiting::new(ui.quiet, "making a model of the recording", Deadline::NEVER);
    each_trace(&path, |trace| {
        first.get_or_insert_with(|| exported(trace, objects));
    })?;
    drop(waiting);
    tell_losses(&path)?;
    let Some(exported) = first else { bail!("{}: no recording", path.display()) };
    if exported.left_out > 0 {
        say!("{} of {} shared objects get no model: --objects {1} gives one to each", exported.left_out, exported.suspicious);
    }
    match output {
        Some(file) => std::fs::write(file, exported.text).with_context(|| format!("cannot write {}", file.display()))?,
        None => print(&exported.text)?,
    }
    Ok(Exit::Success)
}

/// A model of what was recorded says nothing of what was not.
fn tell_losses(path: &Path) -> Result<()> {
    for loss in losses(path)? {
        say!("not decided, as it was not recorded: {loss}");
    }
    Ok(())
}

fn check(ui: Ui, file: &Path, within: Duration, limits: &Limits) -> Result<Exit> {
    let bytes =
        rashomon_files::read(file, Links::Followed, LARGEST).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not text in UTF-8", file.display()))?;
    let script = Script::read(&text).with_context(|| file.display().to_string())?;
    let (mut fails, mut undecided) = (false, false);
    let count = script.assertions.len();
    for (number, assertion) in script.assertions.clone().into_iter().enumerate() {
        let limits = Limits { until: Instant::now().checked_add(within), ..*limits };
        let what = format!("assertion {} of {count}, {}", number + 1, script.claim(assertion.claim));
        let waiting = Waiting::new(ui.quiet, &what, Deadline::within(within));
        // Each starts with the terms of the script alone.
        let verdict = script.clone().check(assertion.claim, &limits);
        drop(waiting);
        let line = match &verdict {
            Verdict::Holds { states } => format!("holds ({states} states)"),
            Verdict::Fails { states, .. } => format!("fails ({states} states)"),
            Verdict::Undecided { states, why } => format!("undecided: {why} ({states} states)"),
        };
        print(&format!("{}:{}: {}: {line}\n", file.display(), assertion.line, script.claim(assertion.claim)))?;
        if let Verdict::Fails { counterexamples, .. } = &verdict {
            for found in counterexamples {
                print(&format!("    {}\n", script.counterexample(found)))?;
            }
        }
        fails |= matches!(verdict, Verdict::Fails { .. });
        undecided |= matches!(verdict, Verdict::Undecided { .. });
    }
    if script.assertions.is_empty() {
        print(&format!("{}: no assertions\n", file.display()))?;
    }
    Ok(match (fails, undecided) {
        (true, _) => Exit::Different,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Success,
    })
}
