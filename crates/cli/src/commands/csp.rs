//! `rashomon csp`: refinement of processes in scripts.

mod enforce;

use super::{Ui, open_store};
use crate::arguments::{CspCommand, SelectionOptions};
use crate::exit::Exit;
use crate::terminal::{print, say};
use crate::waiting::Waiting;
use anyhow::{Context as _, Result, anyhow, bail};
use rashomon_csp::refine::{Limits, Verdict, Why};
use rashomon_csp::script::Script;
use rashomon_csp::transitions::StepError;
use rashomon_event::Deadline;
use rashomon_files::Links;
use rashomon_pipeline::Binaries;
use rashomon_pipeline::analyse::model::exported;
use rashomon_pipeline::analyse::selection::{Listed, Selection};
use rashomon_pipeline::analyse::traces::{each_trace, losses};
use std::path::{Component, Path};
use std::time::{Duration, Instant};

/// Bytes of a script, and of a list of places.
const LARGEST: u64 = 4 << 20;
const LARGEST_LIST: u64 = 64 << 20;

pub fn csp(ui: Ui, command: CspCommand) -> Result<Exit> {
    match command {
        CspCommand::Export { trace, output, objects, selection } => {
            export(ui, trace.as_deref(), output.as_deref(), objects, &selected(selection)?)
        }
        CspCommand::Enforce { store, trust, counterexamples, window, budget, step_timeout, json, selection } => {
            let most = usize::from(counterexamples);
            let asked = enforce::Asked { most, window, budget, step_timeout, json, selection: selected(selection)? };
            enforce::enforce(ui, store.as_deref(), trust, &asked)
        }
        CspCommand::Check { file, states, within, counterexamples } => {
            check(ui, &file, within, &Limits { states, counterexamples: usize::from(counterexamples), ..Limits::default() })
        }
    }
}

fn selected(options: SelectionOptions) -> Result<Selection> {
    let listed = |path: &Path| -> Result<Listed> {
        let bytes = rashomon_files::read(path, Links::Followed, LARGEST_LIST)?;
        Ok(Listed::read(&String::from_utf8(bytes).map_err(|_| anyhow!("it is not text in UTF-8"))?)?)
    };
    let listed = options.static_list.map(|path| listed(&path).with_context(|| path.display().to_string())).transpose()?;
    Ok(Selection { include: options.include, exclude: options.exclude, listed })
}

fn export(ui: Ui, trace: Option<&Path>, output: Option<&Path>, objects: usize, selection: &Selection) -> Result<Exit> {
    let path = match trace {
        Some(path) => path.to_path_buf(),
        None => open_store(None)?.path().to_path_buf(),
    };
    let mut first = None;
    let waiting = Waiting::new(ui.quiet, "making a model of the recording", Deadline::NEVER);
    each_trace(&path, |trace| {
        first.get_or_insert_with(|| {
            let (trace, left_out) = selection.of(trace, &Binaries::new());
            (exported(&trace, objects), left_out)
        });
    })?;
    drop(waiting);
    tell_losses(&path)?;
    let Some((exported, accesses)) = first else { bail!("{}: no recording", path.display()) };
    tell_selection(accesses);
    if exported.left_out > 0 {
        say!("{} of {} shared objects get no model: --objects {1} gives one to each", exported.left_out, exported.suspicious);
    }
    if exported.text.len() as u64 > LARGEST {
        say!(
            "csp check reads no script of more than {} MiB: --objects, --include and --exclude make this one smaller",
            LARGEST >> 20
        );
    }
    match output {
        Some(file) => std::fs::write(file, exported.text).with_context(|| format!("cannot write {}", file.display()))?,
        None => print(&exported.text)?,
    }
    Ok(Exit::Success)
}

fn tell_selection(left_out: usize) {
    if left_out > 0 {
        say!("{left_out} accesses are not looked at (--include, --exclude, --static-list)");
    }
}

/// A model of what was recorded says nothing of what was not.
fn tell_losses(path: &Path) -> Result<()> {
    for loss in losses(path)? {
        say!("not decided, as it was not recorded: {loss}");
    }
    Ok(())
}

/// A script that another one includes: a file of the same folder or below it, by its name there.
fn included(folder: &Path, name: &str) -> Result<String, String> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(String::from("a path that leaves the folder of the script"));
    }
    let path = folder.join(name);
    let bytes = rashomon_files::read(&path, Links::Refused, LARGEST).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| String::from("text that is not UTF-8"))
}

fn check(ui: Ui, file: &Path, within: Duration, limits: &Limits) -> Result<Exit> {
    let bytes =
        rashomon_files::read(file, Links::Followed, LARGEST).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not text in UTF-8", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let script = Script::read_with(&text, &mut |name| included(folder, name)).with_context(|| file.display().to_string())?;
    let (mut fails, mut undecided) = (false, false);
    let count = script.assertions.len();
    for (number, assertion) in script.assertions.iter().enumerate() {
        let limits = Limits { until: Instant::now().checked_add(within), ..*limits };
        let what = format!("assertion {} of {count}, {}", number + 1, script.says(assertion));
        let waiting = Waiting::new(ui.quiet, &what, Deadline::within(within));
        // Each starts with the terms of the script alone. What it unfolds has names that only it knows.
        let mut explored = script.clone();
        let verdict = explored.check(assertion.claim, &limits);
        drop(waiting);
        let says = match (assertion.holds(&verdict), &verdict) {
            (_, Verdict::Undecided { why: Why::Step(StepError::Script(error)), .. }) => {
                return Err(anyhow!(error.clone()).context(file.display().to_string()));
            }
            (_, Verdict::Undecided { states, why }) => format!("undecided: {why} ({states} states)"),
            (holds, Verdict::Holds { states } | Verdict::Fails { states, .. }) => {
                format!("{} ({states} states)", if holds == Some(true) { "holds" } else { "fails" })
            }
        };
        print(&format!("{}:{}: {}: {says}\n", file.display(), assertion.line, script.says(assertion)))?;
        if let Verdict::Fails { counterexamples, .. } = &verdict {
            for found in counterexamples {
                print(&format!("    {}\n", explored.counterexample(found)))?;
            }
        }
        fails |= assertion.holds(&verdict) == Some(false);
        undecided |= assertion.holds(&verdict).is_none();
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
