//! The CSP engine and the maximal-causality engine on the same windows of 10 000 events: what each decides, what it takes, and
//! what one finds that the other does not.
//!
//! What is fair. Both are asked about every pair that the hybrid filter leaves, one by one, with the limits that a prediction
//! gives them, and none but their own model of the window. An order of the CSP engine may let reads see other writes; the witness
//! checker says whether it does. If it never did, the maximal-causality engine would have to have it, too.

use crate::common::bar::Bar;
use crate::common::table::Table;
use rashomon_event::{CandidateKind, EventIndex, Witness, WitnessLevel};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_predict::Options as Prediction;
use rashomon_predict::deciders::{Decision, Question, named};
use rashomon_predict::index::Index;
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Limits, Window, find};
use rashomon_testkit::random::large;
use rashomon_witness::Checker;
use serde::Serialize;
use std::time::Instant;

/// Events of a window, as in the paper.
const EVENTS: usize = 10_000;
/// With --quick.
const QUICK: usize = 2_000;

/// What one engine says.
#[derive(Debug, Default, Serialize)]
struct Answers {
    found: usize,
    refuted: usize,
    undecided: usize,
    seconds: f64,
}

#[derive(Debug, Default, Serialize)]
pub struct Row {
    threads: u32,
    events: usize,
    candidates: usize,
    csp: Answers,
    /// States that the search of the CSP model saw.
    states: usize,
    maximal: Answers,
    /// Pairs that the CSP engine alone has an order for; those of them in whose order a read sees something else.
    only_csp: usize,
    other_values: usize,
    only_maximal: usize,
}

pub fn rows(quick: bool) -> Vec<Row> {
    let (threads, events): (&[u32], usize) = if quick { (&[4, 8], QUICK) } else { (&[2, 4, 8, 16], EVENTS) };
    threads.iter().map(|&threads| row(threads, events)).collect()
}

fn row(threads: u32, events: usize) -> Row {
    let trace = large(1, threads, u64::from(threads), events);
    let memory = SharedMemory::new(&trace);
    let (index, options) = (Index::new(&trace, &memory), Prediction::default());
    let question = Question::new(&index, &memory, &options);
    let checker = Checker::new(&trace);
    let model = Model::new(&trace, Atomics::Kept);
    let pairs: Vec<(EventIndex, EventIndex)> = hybrid(&trace, &memory, 4).iter().flat_map(|pair| pair.pairs.clone()).collect();
    let mut row = Row { threads, events, candidates: pairs.len(), ..Row::default() };
    for (first, second) in pairs {
        let goals = [first, second];
        row.states += find(&model, &goals, Window::whole(&model), &Limits::default()).states;
        let of_csp = row.csp.ask("csp-despite-atomics", &question, &goals);
        let of_maximal = row.maximal.ask("maximal", &question, &goals);
        match (of_csp, of_maximal) {
            (Decision::Witness(order), Decision::Refuted | Decision::Undecided | Decision::Ordered) => {
                let candidate = CandidateKind::Race { first, second };
                let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                row.only_csp += 1;
                row.other_values += usize::from(matches!(checker.check(&witness), Ok(WitnessLevel::Synchronisation)));
            }
            (Decision::Refuted | Decision::Undecided | Decision::Ordered, Decision::Witness(_)) => row.only_maximal += 1,
            _ => {}
        }
    }
    row
}

impl Answers {
    fn ask(&mut self, engine: &str, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        let begin = Instant::now();
        let decision = named(engine).map_or(Decision::Undecided, |decider| decider.decide(question, goals));
        self.seconds += begin.elapsed().as_secs_f64();
        match decision {
            Decision::Witness(_) => self.found += 1,
            Decision::Refuted | Decision::Ordered => self.refuted += 1,
            Decision::Undecided => self.undecided += 1,
        }
        decision
    }
}

pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let missed: usize = rows.iter().map(|row| row.only_maximal).sum();
    let (only, values) = rows.iter().fold((0, 0), |sum, row| (sum.0 + row.only_csp, sum.1 + row.other_values));
    let refuted: usize = rows.iter().map(|row| row.maximal.refuted).sum();
    vec![
        Bar::holds("windows: the maximal-causality engine finds nothing that CSP misses", missed == 0, format!("{missed} pairs")),
        Bar::holds(
            "windows: what CSP alone finds changes what a read sees, as the checker says",
            only == values,
            format!("{values} of {only} pairs; {refuted} are refuted with values"),
        ),
    ]
}

pub fn print(rows: &[Row]) {
    let titles = [
        "threads",
        "events",
        "candidates",
        "CSP",
        "no",
        "undecided",
        "states",
        "seconds",
        "maximal",
        "refuted",
        "undecided",
        "seconds",
        "CSP alone",
        "other values",
        "maximal alone",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        let (csp, maximal) = (&row.csp, &row.maximal);
        let mut cells = vec![row.threads.to_string()];
        cells.extend([row.events, row.candidates, csp.found, csp.refuted, csp.undecided, row.states].map(|n| n.to_string()));
        cells.push(format!("{:.2}", csp.seconds));
        cells.extend([maximal.found, maximal.refuted, maximal.undecided].map(|number| number.to_string()));
        cells.push(format!("{:.2}", maximal.seconds));
        cells.extend([row.only_csp, row.other_values, row.only_maximal].map(|number| number.to_string()));
        table.row(cells);
    }
    table.print();
    println!("(FDR in the paper: a couple of seconds to half an hour for each application, windows of 10 000 events)");
}
