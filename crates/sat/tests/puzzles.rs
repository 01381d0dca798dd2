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
    for (number, one) in place.iter().enumerate() {
        for (&here, &there) in place[..number].iter().flat_map(|other| one.iter().zip(other)) {
            problem.clause(&[!here, !there]);
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

/// Of random triples one node lies between the other two, about as often as is possible: both answers come with conflicts.
#[test]
fn nodes_between_others() {
    let (mut answers, mut conflicts, mut seed) = ([0, 0], 0, 1u64);
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % bound as u64) as usize
    };
    for demands in [70, 80, 90].repeat(6) {
        let mut problem = Problem::new();
        let nodes = apart(&mut problem, 60);
        for _ in 0..demands {
            let mut pick = nodes.clone();
            let [a, b, c] = [(); 3].map(|()| pick.swap_remove(below(pick.len())));
            let forward = problem.variable().positive();
            for (literal, first, last) in [(forward, a, c), (!forward, c, a)] {
                problem.edge_if(literal, first, b);
                problem.edge_if(literal, b, last);
            }
        }
        let mut solver = Solver::new(problem);
        answers[usize::from(refuted(&mut solver))] += 1;
        conflicts += solver.statistics().cycles;
    }
    assert!(answers[0] > 2 && answers[1] > 2 && conflicts > 100, "{answers:?} {conflicts}");
}
