//! Small random problems: the solver's answer is what an enumeration of all values says, and both checkers do their work.

use proptest::prelude::*;
use rashomon_sat::proof::{self, Hop, Step, Why};
use rashomon_sat::{Answer, Limits, Literal, Node, Problem, Proof, Solver, Variable, model};

const NODES: u32 = 7;
const VARIABLES: u32 = 6;

/// A problem, piece by piece, so that pieces can be left out.
#[derive(Clone, Debug)]
struct Small {
    /// Per node, its chain.
    nodes: Vec<u32>,
    clauses: Vec<Vec<Literal>>,
    fixed: Vec<(u32, u32)>,
    conditional: Vec<(Literal, u32, u32)>,
    assumptions: Vec<Literal>,
}

impl Small {
    fn problem(&self) -> Problem {
        let mut problem = Problem::new();
        self.begin(&mut problem);
        self.add_to(&mut problem, 0, usize::MAX);
        problem
    }

    /// Adds variables and nodes.
    fn begin(&self, problem: &mut Problem) {
        for _ in 0..VARIABLES {
            problem.variable();
        }
        let chains: Vec<_> = (0..NODES).map(|_| problem.chain()).collect();
        for &chain in &self.nodes {
            problem.node(chains[chain as usize]);
        }
    }

    /// Adds a part of the clauses and edges.
    fn add_to(&self, problem: &mut Problem, from: usize, count: usize) {
        let node = |number: u32| Node(number % self.nodes.len() as u32);
        self.clauses.iter().skip(from).take(count).for_each(|clause| problem.clause(clause));
        self.fixed.iter().skip(from).take(count).for_each(|&(one, other)| problem.edge(node(one), node(other)));
        for &(literal, one, other) in self.conditional.iter().skip(from).take(count) {
            problem.edge_if(literal, node(one), node(other));
        }
    }
}

fn literal() -> impl Strategy<Value = Literal> {
    (0..VARIABLES, any::<bool>()).prop_map(|(variable, sign)| Variable(variable).is(sign))
}

/// `density` bounds the clauses; `apart`: every node has its own chain.
fn small(density: usize, chains: u32) -> impl Strategy<Value = Small> {
    let nodes = proptest::collection::vec(0..chains, 1..=NODES as usize);
    let clauses = proptest::collection::vec(proptest::collection::vec(literal(), 1..=3), 0..=density);
    let fixed = proptest::collection::vec((0..NODES, 0..NODES), 0..=2);
    let conditional = proptest::collection::vec((literal(), 0..NODES, 0..NODES), 0..=14);
    let assumptions = proptest::collection::vec(literal(), 0..=3);
    (nodes, clauses, fixed, conditional, assumptions).prop_map(|(nodes, clauses, fixed, conditional, assumptions)| Small {
        nodes,
        clauses,
        fixed,
        conditional,
        assumptions,
    })
}

fn any_small() -> impl Strategy<Value = Small> {
    prop_oneof![small(4, 3), small(9, 3), small(6, NODES), small(16, 2)]
}

/// Whether some values do, tried one after another.
fn enumerated(problem: &Problem, assumptions: &[Literal]) -> bool {
    (0..1u32 << problem.variables()).any(|bits| {
        let holds = |literal: Literal| (bits >> literal.variable().0 & 1 == 1) == literal.sign();
        let clauses = problem.clauses().iter().all(|clause| clause.iter().any(|&literal| holds(literal)));
        clauses && assumptions.iter().all(|&literal| holds(literal)) && acyclic(problem, holds)
    })
}

/// By the transitive closure of a matrix.
fn acyclic(problem: &Problem, holds: impl Fn(Literal) -> bool) -> bool {
    let nodes = problem.nodes();
    let mut before = vec![vec![false; nodes]; nodes];
    for pair in problem.chains().iter().flat_map(|chain| chain.windows(2)) {
        before[pair[0].index()][pair[1].index()] = true;
    }
    problem.fixed().iter().for_each(|edge| before[edge.from.index()][edge.to.index()] = true);
    for (_, edge) in problem.conditional().iter().filter(|(literal, _)| holds(*literal)) {
        before[edge.from.index()][edge.to.index()] = true;
    }
    for middle in 0..nodes {
        for one in 0..nodes {
            for other in 0..nodes {
                before[one][other] |= before[one][middle] && before[middle][other];
            }
        }
    }
    (0..nodes).all(|node| !before[node][node])
}

/// The answer is right, and accepted. Whether there is a solution.
fn answers_rightly(solver: &mut Solver, assumptions: &[Literal]) -> bool {
    let expected = enumerated(solver.problem(), assumptions);
    match solver.solve(assumptions, Limits::NONE) {
        Answer::Sat(found) => {
            assert!(expected, "there is no solution");
            assert_eq!(model::check(solver.problem(), assumptions, &found), Ok(()));
            true
        }
        Answer::Unsat(core) => {
            assert!(!expected, "there is a solution");
            assert!(core.iter().all(|literal| assumptions.contains(literal)), "{core:?} of {assumptions:?}");
            assert!(!enumerated(solver.problem(), &core), "the core {core:?} is not one");
            assert_eq!(proof::check(solver.problem(), &core, solver.proof().unwrap()), Ok(()));
            false
        }
        Answer::Unknown => panic!("there is no limit"),
    }
}

/// Edits of a proof that make it say something else.
fn mutations(proof: &Proof) -> Vec<Proof> {
    let mut all = Vec::new();
    let mut edit = |edit: &dyn Fn(&mut Proof)| {
        let mut mutated = proof.clone();
        edit(&mut mutated);
        if mutated != *proof {
            all.push(mutated);
        }
    };
    for (place, step) in proof.steps.iter().enumerate() {
        edit(&|proof| drop(proof.steps.remove(place)));
        let Step::Derive { clause, cycles } = step else { continue };
        for literal in 0..clause.len() {
            edit(&|proof| derivation(proof, place, |clause, _| _ = clause.remove(literal)));
            edit(&|proof| derivation(proof, place, |clause, _| clause[literal] = !clause[literal]));
        }
        for cycle in 0..cycles.len() {
            edit(&|proof| derivation(proof, place, |_, cycles| drop(cycles.remove(cycle))));
            for hop in 0..cycles[cycle].len() {
                edit(&|proof| derivation(proof, place, |_, cycles| _ = cycles[cycle].remove(hop)));
                edit(&|proof| derivation(proof, place, |_, cycles| cycles[cycle][hop].why = Why::Fixed));
            }
        }
    }
    all
}

fn derivation(proof: &mut Proof, place: usize, edit: impl Fn(&mut Vec<Literal>, &mut Vec<Vec<Hop>>)) {
    if let Step::Derive { clause, cycles } = &mut proof.steps[place] {
        edit(clause, cycles);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_enumeration(small in any_small()) {
        let mut solver = Solver::new(small.problem());
        answers_rightly(&mut solver, &small.assumptions);
        // And again, with what was learnt.
        answers_rightly(&mut solver, &[]);
        answers_rightly(&mut solver, &small.assumptions);
    }

    #[test]
    fn equals_enumeration_as_the_problem_grows(small in any_small(), size in 1usize..4) {
        let mut solver = Solver::default();
        small.begin(solver.problem_mut());
        for from in (0..16).step_by(size) {
            small.add_to(solver.problem_mut(), from, size);
            answers_rightly(&mut solver, &small.assumptions);
        }
    }

    /// A proof for one problem proves nothing about another one that has a solution.
    #[test]
    fn a_proof_needs_all_that_it_uses(small in any_small()) {
        let mut solver = Solver::new(small.problem());
        let Answer::Unsat(core) = solver.solve(&small.assumptions, Limits::NONE) else { return Ok(()) };
        let proof = solver.proof().unwrap();
        let mut weaker = Vec::new();
        for place in 0..small.clauses.len() {
            weaker.push(small.clone());
            weaker.last_mut().unwrap().clauses.remove(place);
        }
        for place in 0..small.fixed.len() {
            weaker.push(small.clone());
            weaker.last_mut().unwrap().fixed.remove(place);
        }
        for place in 0..small.conditional.len() {
            weaker.push(small.clone());
            weaker.last_mut().unwrap().conditional.remove(place);
        }
        for small in weaker {
            let problem = small.problem();
            if enumerated(&problem, &core) {
                prop_assert!(proof::check(&problem, &core, proof).is_err(), "{proof:?} of {small:?}");
            }
        }
        for place in 0..core.len() {
            let mut fewer = core.clone();
            fewer.remove(place);
            if enumerated(solver.problem(), &fewer) {
                prop_assert!(proof::check(solver.problem(), &fewer, proof).is_err());
            }
        }
    }

    /// A mutated proof may be one still, but each of its steps follows.
    #[test]
    fn an_accepted_mutation_is_a_proof(small in any_small()) {
        let mut solver = Solver::new(small.problem());
        let Answer::Unsat(core) = solver.solve(&small.assumptions, Limits::NONE) else { return Ok(()) };
        for mutated in mutations(solver.proof().unwrap()) {
            if proof::check(solver.problem(), &core, &mutated).is_ok() {
                for step in &mutated.steps {
                    let Step::Derive { clause, .. } = step else { continue };
                    let denied: Vec<Literal> = clause.iter().map(|&literal| !literal).collect();
                    prop_assert!(!enumerated(solver.problem(), &denied), "{clause:?} does not follow: {mutated:?}");
                }
            }
        }
    }
}

/// Hops that are broken are refused, whatever else stands.
#[test]
fn mutated_cycles_are_refused() {
    let mut problem = Problem::new();
    let chains = [problem.chain(), problem.chain()];
    let nodes: Vec<Node> = (0..4).map(|number| problem.node(chains[number / 2])).collect();
    let forth = problem.variable().positive();
    let back = problem.variable().positive();
    problem.edge_if(forth, nodes[1], nodes[2]);
    problem.edge_if(back, nodes[3], nodes[0]);
    problem.clause(&[forth]);
    problem.clause(&[back]);
    let mut solver = Solver::new(problem.clone());
    assert_eq!(solver.solve(&[], Limits::NONE), Answer::Unsat(Vec::new()));
    let proof = solver.proof().unwrap();
    assert_eq!(proof::check(&problem, &[], proof), Ok(()));
    let mut refused = 0;
    let first = proof.steps.iter().position(|step| matches!(step, Step::Derive { cycles, .. } if !cycles.is_empty())).unwrap();
    let Step::Derive { cycles, .. } = &proof.steps[first] else { unreachable!() };
    for hop in 0..cycles[0].len() {
        for edit in 0..5 {
            let mut mutated = proof.clone();
            derivation(&mut mutated, first, |_, cycles| {
                let hop = &mut cycles[0][hop];
                match edit {
                    0 => std::mem::swap(&mut hop.from, &mut hop.to),
                    1 => hop.why = Why::Fixed,
                    2 => hop.to = Node(9),
                    3 => hop.why = Why::If(if hop.why == Why::If(forth) { back } else { !forth }),
                    _ => hop.from = hop.to,
                }
            });
            assert!(proof::check(&problem, &[], &mutated).is_err(), "{mutated:?}");
            refused += 1;
        }
    }
    assert!(refused >= 15);
    let mut forgetful = proof.clone();
    forgetful.steps.insert(0, Step::Forget(0));
    assert!(proof::check(&problem, &[], &forgetful).is_err());
    assert_eq!(proof::check(&problem, &[], &Proof::default()), Err(proof::Refusal::NoConclusion));
}

#[test]
fn mutated_models_are_refused() {
    let mut problem = Problem::new();
    let chain = problem.chain();
    let (a, b) = (problem.node(chain), problem.node(chain));
    let apart = problem.chain();
    let c = problem.node(apart);
    problem.edge(a, c);
    let before = problem.before(c, b);
    let other = problem.variable().positive();
    problem.clause(&[before, other]);
    problem.clause(&[!other, before]);
    let mut solver = Solver::new(problem.clone());
    let Answer::Sat(found) = solver.solve(&[], Limits::NONE) else { panic!("it has a solution") };
    assert_eq!(found.order, [a, c, b]);
    for order in [vec![a, b, c], vec![b, a, c], vec![c, a, b], vec![a, c], vec![a, c, b, b], vec![a, c, c], vec![a, c, Node(7)]] {
        let mutated = model::Model { order, ..found.clone() };
        assert!(model::check(&problem, &[], &mutated).is_err(), "{mutated:?}");
    }
    let mutated = model::Model { values: vec![false; 2], ..found.clone() };
    assert!(model::check(&problem, &[], &mutated).is_err());
    assert!(model::check(&problem, &[!before], &found).is_err());
    let mutated = model::Model { values: vec![true; 3], ..found };
    assert!(model::check(&problem, &[], &mutated).is_err());
}
