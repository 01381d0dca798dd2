//! `rashomon csp enforce`: counterexamples of the model, each enforced in parallel under the online detector.

use super::{tell_losses, tell_selection};
use crate::commands::trust::run_that_may;
use crate::commands::{
    NOTHING_FORCED, Ui, check_binaries, end_children_on_interruption, open_store, program_of, settings_of, tool,
};
use crate::exit::Exit;
use crate::terminal::{print, say};
use crate::waiting::Waiting;
use anyhow::{Context as _, Result};
use rashomon_event::{Deadline, counted};
use rashomon_pipeline::analyse::selection::Selection;
use rashomon_pipeline::analyse::traces::each_process;
use rashomon_pipeline::enforce::{Counterexample, Enforced, Enforcement, Outcome};
use rashomon_pipeline::{Binaries, Job};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Asked {
    pub most: usize,
    pub window: usize,
    pub budget: Duration,
    pub step_timeout: Duration,
    pub json: Option<PathBuf>,
    pub selection: Selection,
}

pub fn enforce(ui: Ui, store: Option<&Path>, trust: bool, asked: &Asked) -> Result<Exit> {
    end_children_on_interruption();
    let store = open_store(store)?;
    store.use_alone()?;
    let (run, _) = run_that_may(ui, &store, trust)?;
    let program = program_of(&run)?;
    check_binaries(&store, &run)?;
    let settings = settings_of(&run, &NOTHING_FORCED)?;
    let symbols = Binaries::trusting(&run.trusted_libraries);
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    let forcing = job.forcing(&run);
    let enforcement = Enforcement {
        program: &program,
        input: &forcing.input,
        symbols: &symbols,
        reporter: tool()?,
        folder: std::path::absolute(store.scratch("enforce"))?,
        most: asked.most,
        window: asked.window,
        step_timeout: asked.step_timeout,
        limit: forcing.limit,
        deadline: Deadline::within(asked.budget),
    };
    tell_losses(store.path())?;
    let mut enforced = Enforced::default();
    let quiet_output = asked.json.as_deref() == Some(Path::new("-"));
    let (mut failed, mut left_out) = (None, 0);
    let waiting = Waiting::new(ui.quiet, "enforcing orders", enforcement.deadline);
    each_process(store.path(), |process, trace| {
        if failed.is_some() {
            return;
        }
        let (trace, accesses) = asked.selection.of(trace, &symbols);
        left_out += accesses;
        let mut unwritten = None;
        let added = enforced.add((process, &trace), &enforcement, printing(quiet_output, &mut unwritten)).err();
        failed = added.map(anyhow::Error::from).or(unwritten);
    })?;
    if failed.is_none() {
        let mut unwritten = None;
        let finished = enforced.finish(&enforcement, printing(quiet_output, &mut unwritten)).err();
        failed = finished.map(anyhow::Error::from).or(unwritten);
    }
    drop(waiting);
    if let Some(error) = failed {
        return Err(error);
    }
    store.clear_scratch("enforce")?;
    if !ui.quiet {
        tell_selection(left_out);
        say!("{}", summary(&enforced));
    }
    let open = open(&enforced);
    if let Some(open) = &open {
        say!("{open}");
    }
    if let Some(path) = &asked.json {
        let text = format!("{}\n", serde_json::to_string_pretty(&enforced)?);
        match quiet_output {
            true => print(&text)?,
            false => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?,
        }
    }
    let confirmed = enforced.count(Outcome::Race) + enforced.count(Outcome::Deadlock);
    Ok(match (confirmed > 0, open.is_some()) {
        (true, _) => Exit::Findings,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Success,
    })
}

/// Prints what came of each order; keeps why that failed.
fn printing(quiet: bool, unwritten: &mut Option<anyhow::Error>) -> impl FnMut(&Counterexample) {
    move |found| {
        if !quiet && unwritten.is_none() {
            *unwritten = print(&line(found)).err();
        }
    }
}

/// Steps of an order that are printed at its beginning, and at its end: nobody reads hundreds.
const FIRST: usize = 12;
const LAST: usize = 12;

fn steps(steps: &[String]) -> String {
    match steps.len() {
        0 => String::from("at once"),
        all if all <= FIRST + LAST + 1 => steps.join(", "),
        all => format!(
            "{}, … {} steps (--json has all) …, {}",
            steps[..FIRST].join(", "),
            all - FIRST - LAST,
            steps[all - LAST..].join(", ")
        ),
    }
}

fn line(found: &Counterexample) -> String {
    let steps = steps(&found.steps);
    let what = match found.outcome {
        Outcome::Race if found.elsewhere => "confirmed, data race at other places than it was to lead to",
        Outcome::Race => "confirmed, data race",
        Outcome::Deadlock if found.races > 0 => "confirmed, deadlock and data race",
        Outcome::Deadlock => "confirmed, deadlock",
        Outcome::Nothing if found.executions == 1 => "discarded, nothing was reported",
        Outcome::Nothing => &format!("discarded, nothing was reported in {} executions", found.executions),
        Outcome::Infeasible => "infeasible",
    };
    let why = found.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let behind = if found.behind_wait_loop { "  (enters a wait loop before the signal)\n" } else { "" };
    let places: String = found.places.iter().map(|lines| format!("    {}\n", lines.join(" and "))).collect();
    let about = found.object.as_deref().map_or_else(|| found.about.clone(), |object| format!("{object}, {}", found.about));
    format!("{about}: {what}{why}\n  {steps}\n{behind}{places}")
}

/// What was not decided, however quiet the command is to be: silence would look like a verdict.
fn open(enforced: &Enforced) -> Option<String> {
    let limits = (enforced.undecided > 0).then(|| format!("{} reached a limit", counted(enforced.undecided as u64, "candidate")));
    let time = enforced.cut_short.then(|| String::from("there was no time for more (--budget)"));
    let parallel = (enforced.parallel > 0).then(|| {
        format!("recordings of threads that ran in parallel have no model, {} (--policy records others)", enforced.parallel)
    });
    let open: Vec<String> = limits.into_iter().chain(time).chain(parallel).collect();
    (!open.is_empty()).then(|| format!("undecided: {} ({} states seen)", open.join("; "), enforced.states))
}

fn summary(enforced: &Enforced) -> String {
    let mut text = format!(
        "{}, {} with an order ({} undecided, {} seen); {} enforced: a race came of {}, a deadlock of {}, nothing of {}; \
         infeasible: {}; {}",
        counted(enforced.candidates as u64, "candidate"),
        enforced.feasible,
        enforced.undecided,
        counted(enforced.states as u64, "state"),
        counted(enforced.counterexamples.len() as u64, "order"),
        enforced.races(),
        enforced.count(Outcome::Deadlock),
        enforced.count(Outcome::Nothing),
        enforced.count(Outcome::Infeasible),
        counted(enforced.places().len() as u64, "place"),
    );
    text.push_str("; wait loops: ");
    text.push_str(enforced.wait_loops.words());
    text
}
