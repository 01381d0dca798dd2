//! Problems whose answers are known.

use rashomon_sat::{Answer, Chain, Limits, Literal, Node, Problem, Solver, model, proof};
use std::cell::Cell;

fn refuted(solver: &mut Solver) -> bool {
    match solver.solve(&[], Limits::NONE) {
        Answer::Sat(found) => {
            assert_eq!(model::check(solver.problem(), &[], &found), Ok(()));
            false
        }
        Answer::Unsat(core) => {
            assert_eq!(proof::check(solver.problem(), &core, solver.proof().unwrap()), Ok(()));
            true
        }
        Answer::Unknown => panic!("there is no limit"),
    }
}

fn pigeons(pigeons: usize, holes: usize) -> Problem {
    let mut problem = Problem::new();
    let place: Vec<Vec<Literal>> = (0..pigeons).map(|_| (0..holes).map(|_| problem.variable().positive()).collect()).collect();
    place.iter().for_each(|holes| problem.clause(holes));
    for hole in 0..holes {
        for one in 0..pigeons {
            (0..one).for_each(|other| problem.clause(&[!place[one][hole], !place[other][hole]]));
        }
    }
    problem
}

#[test]
fn pigeons_need_as_many_holes() {
    for holes in 1..=7 {
        assert!(refuted(&mut Solver::new(pigeons(holes + 1, holes))), "{holes}");
        assert!(!refuted(&mut Solver::new(pigeons(holes, holes))), "{holes}");
    }
}

fn apart(problem: &mut Problem, count: usize) -> Vec<Node> {
    let chains: Vec<Chain> = (0..count).map(|_| problem.chain()).collect();
    chains.into_iter().map(|chain| problem.node(chain)).collect()
}

/// Something that each comes before another of the same is nowhere first.
#[test]
fn someone_is_first() {
    for count in 2..=9 {
        let mut problem = Problem::new();
        let nodes = apart(&mut problem, count);
        for &node in &nodes {
            let others = nodes.iter().filter(|&&other| other != node);
            let clause: Vec<Literal> = others.map(|&other| problem.before(other, node)).collect();
            problem.clause(&clause);
        }
        assert!(refuted(&mut Solver::new(problem)), "{count}");
    }
}

/// Sections of one lock, each thread in program order: whatever the order, they exclude each other.
#[test]
fn sections_exclude_each_other() {
    let mut problem = Problem::new();
    let threads: Vec<Chain> = (0..4).map(|_| problem.chain()).collect();
    let sections: Vec<Vec<(Node, Node)>> =
        threads.iter().map(|&thread| (0..5).map(|_| (problem.node(thread), problem.node(thread))).collect()).collect();
    for (place, one) in sections.iter().enumerate() {
        for other in &sections[..place] {
            for &(begin, end) in one {
                for &(other_begin, other_end) in other {
                    let first = problem.variable().positive();
                    problem.edge_if(first, end, other_begin);
                    problem.edge_if(!first, other_end, begin);
                }
            }
        }
    }
    let mut solver = Solver::new(problem);
    assert!(!refuted(&mut solver));
    // The last section of each thread before the first one of the next thread, all around.
    for thread in 0..4 {
        let (last, first) = (sections[thread][4].0, sections[(thread + 1) % 4][0].1);
        solver.problem_mut().edge(last, first);
    }
    assert!(refuted(&mut solver));
}

/// The order told is the one made, where the edges allow it, and values are those preferred.
#[test]
fn what_is_free_stays_as_it_was() {
    let mut problem = Problem::new();
    let nodes = apart(&mut problem, 20);
    let mut literals = Vec::new();
    for place in 1..20 {
        literals.push(problem.before(nodes[place - 1], nodes[place]));
    }
    let mut solver = Solver::new(problem);
    let Answer::Sat(found) = solver.solve(&[], Limits::NONE) else { panic!("it has a solution") };
    assert_eq!(found.order, nodes);
    let mut solver = Solver::new(solver.problem().clone());
    literals.iter().for_each(|&literal| solver.prefer(!literal));
    let Answer::Sat(found) = solver.solve(&[], Limits::NONE) else { panic!("it has a solution") };
    assert_eq!(found.order, nodes.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn a_cycle_of_edges_that_always_hold_refutes() {
    let mut problem = Problem::new();
    let nodes = apart(&mut problem, 3);
    (0..3).for_each(|place| problem.edge(nodes[place], nodes[(place + 1) % 3]));
    assert!(refuted(&mut Solver::new(problem)));
    let mut problem = Problem::new();
    let nodes = apart(&mut problem, 1);
    problem.edge(nodes[0], nodes[0]);
    assert!(refuted(&mut Solver::new(problem)));
    let mut problem = Problem::new();
    problem.clause(&[]);
    assert!(refuted(&mut Solver::new(problem)));
    assert!(!refuted(&mut Solver::default()));
}

#[test]
fn limits_end_a_search_which_then_goes_on() {
    let mut solver = Solver::new(pigeons(8, 7));
    assert_eq!(solver.solve(&[], Limits { conflicts: 10, ..Limits::NONE }), Answer::Unknown);
    assert_eq!(solver.statistics().conflicts, 10);
    let asked = Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    assert_eq!(solver.solve(&[], Limits { conflicts: u64::MAX, is_over: &is_over }), Answer::Unknown);
    assert!(refuted(&mut solver));
}

/// Enough conflicts that clauses are forgotten; the proof says which.
#[test]
fn a_long_proof_is_accepted() {
    let mut solver = Solver::new(pigeons(9, 8));
    assert!(refuted(&mut solver));
    let forgotten = solver.proof().unwrap().steps.iter().filter(|step| matches!(step, proof::Step::Forget(_))).count();
    assert!(forgotten > 1000, "{forgotten} of {:?}", solver.statistics());
    let mut solver = Solver::new(pigeons(8, 7)).without_proof();
    assert_eq!(solver.solve(&[], Limits::NONE), Answer::Unsat(Vec::new()));
    assert!(solver.proof().is_none());
}
