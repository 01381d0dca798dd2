//! Random problems and encodings of random traces: the solver's answers beside those of Z3.

use super::claims::Claims;
use super::exact::{pairs, values_of};
use super::smt::Z3;
use anyhow::Result;
use rashomon_event::Deadline;
use rashomon_order::SharedMemory;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, Target, examine};
use rashomon_sat::{Answer, Literal, Node, Problem, Solver, Variable};
use rashomon_testkit::{Contents, Features, Shape, SplitMix, describe, random};
use std::time::Duration;

pub const AGREES: &str = "the solver and Z3 agree";

/// How long Z3 may take for one problem.
const WITHIN: Duration = Duration::from_secs(20);
const PROBLEMS: u64 = 2000;
const TRACES: u64 = 300;
/// Of the pairs of a trace so many are asked about.
const PAIRS: usize = 10;

/// Answers compared: with a solution, and without.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Agreement {
    pub problems: [u64; 2],
    pub encodings: [u64; 2],
    /// Z3 gave no answer in time.
    pub open: u64,
}

pub fn run(solver: &mut Z3, quick: bool, claims: &mut Claims) -> Result<Agreement> {
    eprintln!("exactness: beside {}", solver.version);
    let mut agreement = Agreement::default();
    for seed in 0..if quick { PROBLEMS / 10 } else { PROBLEMS } {
        let problem = problem(seed);
        let mut own = Solver::new(problem.clone());
        let found = matches!(own.solve(&[], rashomon_sat::Limits::NONE), Answer::Sat(_));
        let text = || format!("problem {seed}: a solution: {found}");
        if compare(solver, &problem, found, claims, &mut agreement.open, text)? {
            agreement.problems[usize::from(!found)] += 1;
        }
    }
    for seed in 0..if quick { TRACES / 10 } else { TRACES } {
        let features = Features { relaxed: false, once: false, ..Features::ALL };
        let features = if seed % 3 == 0 { Features::default() } else { features };
        let shape = Shape { threads: 3 + (seed % 4) as u32, events: 40, variables: 2, locks: 1 + seed % 3, features };
        let trace = random(500_000 + seed, shape);
        let (memory, contents) = (SharedMemory::new(&trace), Contents::random(&trace, seed, 8));
        let (index, values) = (Index::new(&trace, &memory), values_of(&contents));
        let facts = Facts::new(&index, &memory, (seed % 2 == 1).then_some(&values));
        let pairs = pairs(&trace);
        for &(first, second) in pairs.iter().step_by((pairs.len() / PAIRS).max(1)) {
            let examined = examine(&facts, Target::next(&[first, second]), &Limits::NONE, Deadline::NEVER);
            let (Some(problem), found) = (examined.problem, matches!(examined.decision, Decision::Witness(_))) else { continue };
            let text = || format!("{first:?} {second:?}: an order: {found}\n{}", describe(&trace));
            if compare(solver, &problem, found, claims, &mut agreement.open, text)? {
                agreement.encodings[usize::from(!found)] += 1;
            }
        }
    }
    Ok(agreement)
}

pub fn print(agreement: Option<Agreement>) {
    let Some(Agreement { problems, encodings, open }) = agreement else {
        return println!("Z3 cannot be had: its answers are not compared\n");
    };
    println!(
        "Beside Z3, with a solution and without: {} and {} random problems, {} and {} encodings of candidates in",
        problems[0], problems[1], encodings[0], encodings[1]
    );
    println!("random traces; {open} answers of Z3 took too long\n");
}

fn compare(
    solver: &mut Z3,
    problem: &Problem,
    found: bool,
    claims: &mut Claims,
    open: &mut u64,
    text: impl FnOnce() -> String,
) -> Result<bool> {
    let (answer, _) = solver.solve(problem, WITHIN)?;
    match answer {
        Some(answer) => claims.claim(AGREES, answer == found, text),
        None => *open += 1,
    }
    Ok(answer.is_some())
}

/// Between few clauses and many, so that both answers are frequent.
fn problem(seed: u64) -> Problem {
    let mut rng = SplitMix(seed);
    let (nodes, variables) = (4 + rng.below(12), 4 + rng.below(20));
    let mut problem = Problem::new();
    (0..variables).for_each(|_| _ = problem.variable());
    let chains: Vec<_> = (0..1 + rng.below(4)).map(|_| problem.chain()).collect();
    for _ in 0..nodes {
        let chain = chains[rng.below(chains.len() as u64) as usize];
        problem.node(chain);
    }
    let literal = |rng: &mut SplitMix| -> Literal { Variable(rng.below(variables) as u32).is(rng.below(2) == 1) };
    let node = |rng: &mut SplitMix| Node(rng.below(nodes) as u32);
    for _ in 0..rng.below(3 * variables) {
        let clause: Vec<Literal> = (0..2 + rng.below(2)).map(|_| literal(&mut rng)).collect();
        problem.clause(&clause);
    }
    for _ in 0..rng.below(3 * variables) {
        let (if_so, from, to) = (literal(&mut rng), node(&mut rng), node(&mut rng));
        if from != to {
            problem.edge_if(if_so, from, to);
        }
    }
    problem
}
