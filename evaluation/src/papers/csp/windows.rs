//! The CSP engine and the maximal-causality engine on the same windows of 10 000 events: what each decides, what it takes, and
//! what one finds that the other does not.
//!
//! What is fair. Both are asked about every pair that the hybrid filter leaves, one by one, with the limits that a prediction
//! gives them, and none but their own model of the window. An order of the CSP engine may let reads see other writes; the witness
//! checker says whether it does. If it never did, the maximal-causality engine would have to have it, too.

use crate::common::bar::Bar;
use crate::common::table::Table;
use rashomon_event::{CandidateKind, Deadline, EventIndex, Trace, Witness, WitnessLevel};
use rashomon_order::{SharedMemory, hybrid};
use rashomon_predict::Options as Prediction;
use rashomon_predict::deciders::{Decision, Question, named};
use rashomon_predict::index::Index;
use rashomon_testkit::random::large;
use rashomon_witness::Checker;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Events of a window, as in the paper.
const EVENTS: usize = 10_000;
/// How long both engines may take for one: what is left then is undecided.
const DECIDING: Duration = Duration::from_secs(120);
/// With --quick.
const QUICK: usize = 2_000;

/// What one engine says.
#[derive(Debug, Default, Serialize)]
pub struct Answers {
    pub found: usize,
    pub refuted: usize,
    pub undecided: usize,
    pub seconds: f64,
}

/// The same pairs, decided by both.
#[derive(Debug, Default, Serialize)]
pub struct Compared {
    pub candidates: usize,
    pub csp: Answers,
    /// States that the search of the CSP model saw.
    pub states: usize,
    pub maximal: Answers,
    /// Pairs that the CSP engine alone has an order for; those of them in whose order a read sees something else.
    pub only_csp: usize,
    pub other_values: usize,
    pub only_maximal: usize,
    /// Pairs that the maximal-causality engine refutes although the checker finds that every read in the CSP engine's order sees
    /// what it saw.
    pub contradictions: usize,
}

#[derive(Debug, Serialize)]
pub struct Row {
    threads: u32,
    events: usize,
    #[serde(flatten)]
    compared: Compared,
}

pub fn rows(quick: bool) -> Vec<Row> {
    let (threads, events): (&[u32], usize) = if quick { (&[4, 8], QUICK) } else { (&[2, 4, 8, 16], EVENTS) };
    let row = |&threads: &u32| {
        let mut compared = Compared::default();
        compared.add(&large(1, threads, u64::from(threads), events), Deadline::within(DECIDING));
        Row { threads, events, compared }
    };
    threads.iter().map(row).collect()
}

impl Compared {
    /// Asks both about the pairs of one more trace. Behind the deadline they leave them undecided.
    pub fn add(&mut self, trace: &Trace, deadline: Deadline) {
        let memory = SharedMemory::new(trace);
        let (index, options) = (Index::new(trace, &memory), Prediction { deadline, ..Prediction::default() });
        let question = Question::new(&index, &memory, &options);
        let mut checker = None;
        let pairs: Vec<(EventIndex, EventIndex)> = hybrid(trace, &memory, 4).iter().flat_map(|pair| pair.pairs.clone()).collect();
        self.candidates += pairs.len();
        for (first, second) in pairs {
            let goals = [first, second];
            let of_csp = self.csp.ask("csp-despite-atomics", &question, &goals);
            let of_maximal = self.maximal.ask("maximal", &question, &goals);
            match (of_csp, of_maximal) {
                (Decision::Witness(order), no @ (Decision::Refuted | Decision::Undecided | Decision::Ordered)) => {
                    let candidate = CandidateKind::Race { first, second };
                    let witness = Witness { candidate, order, level: WitnessLevel::Synchronisation };
                    let checked = checker.get_or_insert_with(|| Checker::new(trace)).check(&witness);
                    let values = matches!(checked, Ok(WitnessLevel::Synchronisation));
                    self.only_csp += 1;
                    self.other_values += usize::from(values);
                    self.contradictions += usize::from(no != Decision::Undecided && !values);
                }
                (Decision::Refuted | Decision::Undecided | Decision::Ordered, Decision::Witness(_)) => self.only_maximal += 1,
                _ => {}
            }
        }
        self.states += question.states();
    }

    /// Titles of [`Self::cells`].
    pub const TITLES: [&str; 13] = [
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

    pub fn cells(&self) -> Vec<String> {
        let (csp, maximal) = (&self.csp, &self.maximal);
        let mut cells: Vec<String> =
            [self.candidates, csp.found, csp.refuted, csp.undecided, self.states].map(|number| number.to_string()).into();
        cells.push(format!("{:.2}", csp.seconds));
        cells.extend([maximal.found, maximal.refuted, maximal.undecided].map(|number| number.to_string()));
        cells.push(format!("{:.2}", maximal.seconds));
        cells.extend([self.only_csp, self.other_values, self.only_maximal].map(|number| number.to_string()));
        cells
    }
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
    let missed: usize = rows.iter().map(|row| row.compared.only_maximal).sum();
    let (only, values) = rows.iter().fold((0, 0), |sum, row| (sum.0 + row.compared.only_csp, sum.1 + row.compared.other_values));
    let refuted: usize = rows.iter().map(|row| row.compared.maximal.refuted).sum();
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
    let titles: Vec<&str> = ["threads", "events"].into_iter().chain(Compared::TITLES).collect();
    let mut table = Table::new(&titles);
    for row in rows {
        let mut cells = vec![row.threads.to_string(), row.events.to_string()];
        cells.extend(row.compared.cells());
        table.row(cells);
    }
    table.print();
    println!("(FDR in the paper: a couple of seconds to half an hour for each application, windows of 10 000 events)");
}
