//! The algebra of terms: scripts whose verdicts are known, by the model of the assertion, and the terms of small traces against
//! brute force.
//!
//! What is fair. Scripts are those of `crates/csp/tests/suite`; behind each assertion stands what the literature says of it, with
//! the first counterexample where that is known. A counterexample that the interpreter of terms, which shares no code with the
//! search, does not accept makes a verdict undecided.

use crate::common::bar::Bar;
use crate::common::table::Table;
use anyhow::{Context as _, Result, bail};
use rashomon_csp::refine::{Limits, Model, Verdict, Why};
use rashomon_csp::script::{Claim, Script};
use rashomon_event::{Access, AccessClass, Address, EventKind, LockMode, Trace};
use rashomon_refinement::objects::Objects;
use rashomon_refinement::terms::{About, Form, script};
use rashomon_testkit::{Features, Rules, Shape, enumerate, random, reachable};
use serde::Serialize;
use std::time::Instant;
use xtask::workspace::root;

/// States of an assertion.
const STATES: usize = 3_000_000;
/// Traces of random events, and with --quick.
const RANDOM: (u64, u64) = (800, 200);
/// Events of the enumerated ones, at most, and with --quick.
const LENGTH: (usize, usize) = (5, 4);

/// Assertions in one model of the algebra.
#[derive(Debug, Default, Serialize)]
pub struct Verdicts {
    model: &'static str,
    assertions: usize,
    /// As the literature has it.
    right: usize,
    /// Counterexamples, each accepted by the interpreter.
    counterexamples: usize,
    states: usize,
    seconds: f64,
}

/// Terms of small traces.
#[derive(Debug, Default, Serialize)]
pub struct Traces {
    traces: usize,
    /// Objects that may be raced for, and deadlocks.
    questions: usize,
    /// With a counterexample.
    found: usize,
    /// Questions of which refinement and brute force say different things.
    differ: usize,
    /// Counterexamples that the interpreter does not accept, and what a limit left open.
    rejected: usize,
    undecided: usize,
    states: usize,
    seconds: f64,
}

#[derive(Debug, Serialize)]
pub struct Algebra {
    scripts: usize,
    verdicts: Vec<Verdicts>,
    traces: Traces,
}

pub fn algebra(quick: bool) -> Result<Algebra> {
    let names = ["traces", "stable failures", "failures-divergences"];
    let mut verdicts: Vec<Verdicts> = names.map(|model| Verdicts { model, ..Verdicts::default() }).into();
    let scripts = scripts(&mut verdicts)?;
    let mut traces = Traces::default();
    let lock = |lock| EventKind::Acquire { lock: Address(lock), mode: LockMode::Exclusive, may_wait: true };
    let unlock = |lock| EventKind::Release { lock: Address(lock), mode: LockMode::Exclusive };
    let write = Access { address: Address(0x300), size: 4, class: AccessClass::Write, atomic: false };
    let alphabet = [EventKind::Access(write), lock(8), unlock(8), lock(16), unlock(16)];
    for length in 2..=if quick { LENGTH.1 } else { LENGTH.0 } {
        enumerate(2, length, &alphabet, &mut |trace| traces.add(&trace));
    }
    let waiting = Features { conditions: true, semaphores: true, barriers: true, ..Features::default() };
    for seed in 0..if quick { RANDOM.1 } else { RANDOM.0 } {
        let features = if seed % 2 == 0 { Features::ALL } else { waiting };
        let shape =
            Shape { threads: 2 + (seed / 2 % 2) as u32, events: 12, variables: 1 + seed % 3 / 2, locks: 1 + seed % 2, features };
        traces.add(&random(seed, shape));
    }
    Ok(Algebra { scripts, verdicts, traces })
}

/// In which model a claim is decided.
const fn model_of(claim: &Claim) -> usize {
    match claim {
        Claim::Refines(Model::Traces, ..) => 0,
        Claim::Refines(Model::StableFailures, ..) | Claim::DeadlockFree(_) | Claim::Deterministic(false, _) => 1,
        Claim::Refines(Model::FailuresDivergences, ..) => 2,
        Claim::DivergenceFree(_) | Claim::Free(_) | Claim::Deterministic(true, _) => 2,
    }
}

/// How many there are.
fn scripts(verdicts: &mut [Verdicts]) -> Result<usize> {
    let folder = root().join("crates/csp/tests/suite");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut count = 0;
    for path in entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()? {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let script = Script::read(&text).with_context(|| path.display().to_string())?;
        count += 1;
        for assertion in &script.assertions {
            let expected =
                text.lines().nth(assertion.line - 1).and_then(|line| line.rsplit_once("-- ")).map(|known| known.1.trim());
            let Some(expected) = expected else { bail!("{}:{}: no known verdict", path.display(), assertion.line) };
            let begin = Instant::now();
            let mut explored = script.clone();
            let verdict = explored.check(assertion.claim, &Limits { states: STATES, ..Limits::default() });
            let row = &mut verdicts[model_of(&assertion.claim)];
            row.seconds += begin.elapsed().as_secs_f64();
            row.assertions += 1;
            let counterexample = match &verdict {
                Verdict::Fails { states, counterexamples } => {
                    row.states += states;
                    row.counterexamples += counterexamples.len();
                    counterexamples.first().map(|first| explored.counterexample(first))
                }
                Verdict::Holds { states } | Verdict::Undecided { states, .. } => {
                    row.states += states;
                    None
                }
            };
            let holds = assertion.holds(&verdict);
            row.right += usize::from(match expected.split_once(": ") {
                Some(("fails", known)) => holds == Some(false) && counterexample.as_deref() == Some(known),
                _ => matches!((expected, holds), ("holds", Some(true)) | ("fails", Some(false))),
            });
        }
    }
    Ok(count)
}

impl Traces {
    fn add(&mut self, trace: &Trace) {
        self.traces += 1;
        let objects = Objects::new(trace);
        let expected = reachable(trace, Rules::SYNCHRONISATION);
        let questions: Vec<About> = (0..objects.all.len()).map(About::Race).chain([About::Deadlock]).collect();
        let script = script(trace, &objects, &questions, &[Form::Schedule]);
        for (assertion, question) in script.assertions.iter().zip(&questions) {
            let begin = Instant::now();
            let verdict = script.clone().check(assertion.claim, &Limits::default());
            self.seconds += begin.elapsed().as_secs_f64();
            self.questions += 1;
            let found = match verdict {
                Verdict::Holds { states } => {
                    self.states += states;
                    false
                }
                Verdict::Fails { states, .. } => {
                    self.states += states;
                    true
                }
                Verdict::Undecided { states, why } => {
                    self.states += states;
                    self.rejected += usize::from(why == Why::Rejected);
                    self.undecided += usize::from(why != Why::Rejected);
                    continue;
                }
            };
            self.found += usize::from(found);
            self.differ += usize::from(match question {
                About::Race(object) => {
                    found != objects.conflicts(trace, *object).iter().any(|pair| expected.races.contains(pair))
                }
                // Brute force knows cycles of waits alone. Terms also know who waits for a signal, a post or an end that never
                // comes.
                About::Deadlock => {
                    let cycle = !expected.deadlocks.is_empty();
                    (cycle && !found) || (found && !cycle && only_locks(trace))
                }
            });
        }
    }
}

/// And all of them released: who is stuck then is so in a cycle.
fn only_locks(trace: &Trace) -> bool {
    let mut open = 0_i32;
    let known = trace.events.iter().all(|event| {
        match event.kind {
            EventKind::Acquire { .. } => open += 1,
            EventKind::Release { .. } => open -= 1,
            EventKind::Access(_) | EventKind::Atomic { .. } => {}
            _ => return false,
        }
        true
    });
    known && open == 0
}

impl Algebra {
    pub fn bars(&self) -> Vec<Bar> {
        let sum = |of: fn(&Verdicts) -> usize| self.verdicts.iter().map(of).sum::<usize>();
        let (right, all) = (sum(|row| row.right), sum(|row| row.assertions));
        let Traces { questions, found, differ, rejected, undecided, .. } = self.traces;
        let none = |name: &str, count: usize, of: usize| Bar::holds(name, count == 0, format!("{count} of {of}"));
        vec![
            Bar::holds("scripts: every verdict is the known one", right == all && all > 0, format!("{right} of {all}")),
            none("terms and brute force say different things", differ, questions),
            none("counterexamples that the interpreter of terms rejects", rejected, found + rejected),
            none("questions that terms leave undecided", undecided, questions),
        ]
    }

    pub fn print(&self) {
        let mut table = Table::new(&["model", "assertions", "right", "counterexamples", "states", "seconds"]);
        for row in &self.verdicts {
            let mut cells = vec![row.model.to_owned()];
            cells.extend([row.assertions, row.right, row.counterexamples, row.states].map(|number| number.to_string()));
            cells.push(format!("{:.2}", row.seconds));
            table.row(cells);
        }
        println!("{} scripts", self.scripts);
        table.print();
        let Traces { traces, questions, found, states, seconds, .. } = self.traces;
        println!(
            "terms of {traces} small traces: {questions} questions, {found} counterexamples, {states} states, {seconds:.2} s"
        );
    }
}
