//! Times the solver on random problems of growing size, each of whose answers is checked.
//!
//! *sections*: sections of a few locks in threads, with random demands on their order: large, and mostly decided by what the
//! order implies. *between*: nodes without any order, and of random triples one node is to lie between the other two: small, and
//! hard where demands are about as many as can be met (NP-complete: Opatrny, "Total Ordering Problem", SIAM Journal on Computing
//! 8(1), 1979). `cargo run --release -p rashomon-sat --example orders -- 1000 5000` names numbers of nodes of the first kind.

use rashomon_sat::{Answer, Limits, Literal, Node, Problem, Solver, model, proof};
use std::time::{Duration, Instant};

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % bound as u64) as usize
    }
}

const THREADS: usize = 8;
const PROBLEMS: u64 = 20;
/// Nodes to a demand: many, and few.
const DEMAND: [usize; 2] = [20, 4];
/// Sections of other threads that a section excludes.
const NEAR: usize = 12;

/// Sections exclude each other. Of each demand, three pairs of nodes, at least one is reversed.
fn random(seed: u64, nodes: usize, demand: usize) -> (Problem, Vec<Literal>) {
    let mut random = Random(seed);
    let mut problem = Problem::new();
    let mut preferred = Vec::new();
    let threads: Vec<_> = (0..THREADS).map(|_| problem.chain()).collect();
    let locks = 2 + nodes / 500;
    let mut sections: Vec<Vec<(usize, Node, Node)>> = vec![Vec::new(); locks];
    for _ in 0..nodes / 2 {
        let thread = random.below(THREADS);
        let (begin, end) = (problem.node(threads[thread]), problem.node(threads[thread]));
        let list = &mut sections[random.below(locks)];
        for &(_, earlier, earlier_end) in list.iter().rev().filter(|section| section.0 != thread).take(NEAR) {
            let observed = problem.variable().positive();
            problem.edge_if(observed, earlier_end, begin);
            problem.edge_if(!observed, end, earlier);
            preferred.push(observed);
        }
        list.push((thread, begin, end));
    }
    let nodes = problem.nodes();
    for _ in 0..nodes / demand {
        let mut pair = || {
            let one = random.below(nodes);
            let other = (one + 1 + random.below(NEAR)).min(nodes - 1);
            problem.before(Node(other as u32), Node(one as u32))
        };
        let clause = [pair(), pair(), pair()];
        problem.clause(&clause);
    }
    (problem, preferred)
}

/// Of each demand the second node lies between the others.
fn between(seed: u64, nodes: usize, demands: usize) -> Problem {
    let mut random = Random(seed);
    let mut problem = Problem::new();
    let chains: Vec<_> = (0..nodes).map(|_| problem.chain()).collect();
    let nodes: Vec<Node> = chains.into_iter().map(|chain| problem.node(chain)).collect();
    for _ in 0..demands {
        let mut pick = nodes.clone();
        let [a, b, c] = [(); 3].map(|()| pick.swap_remove(random.below(pick.len())));
        let forward = problem.variable().positive();
        for (literal, first, last) in [(forward, a, c), (!forward, c, a)] {
            problem.edge_if(literal, first, b);
            problem.edge_if(literal, b, last);
        }
    }
    problem
}

#[derive(Default)]
struct Row {
    variables: usize,
    times: Vec<Duration>,
    solved: usize,
    refuted: usize,
    checked: Duration,
    conflicts: u64,
    decisions: u64,
}

/// A problem for each seed, with the values to try first.
fn measure(problem: impl Fn(u64) -> (Problem, Vec<Literal>)) -> Row {
    let mut row = Row::default();
    for seed in 0..PROBLEMS {
        let (problem, preferred) = problem(seed);
        row.variables = problem.variables();
        let mut solver = Solver::new(problem);
        preferred.into_iter().for_each(|literal| solver.prefer(literal));
        let start = Instant::now();
        let over = || start.elapsed() > Duration::from_secs(20);
        let answer = solver.solve(&[], Limits { conflicts: u64::MAX, is_over: &over });
        row.times.push(start.elapsed());
        let start = Instant::now();
        match answer {
            Answer::Sat(found) => {
                model::check(solver.problem(), &[], &found).expect("a model");
                row.solved += 1;
            }
            Answer::Unsat(core) => {
                proof::check(solver.problem(), &core, solver.proof().expect("it is written")).expect("a proof");
                row.refuted += 1;
            }
            Answer::Unknown => {}
        }
        row.checked += start.elapsed();
        row.conflicts += solver.statistics().conflicts;
        row.decisions += solver.statistics().decisions;
    }
    row.times.sort_unstable();
    row
}

fn print(kind: &str, nodes: usize, demands: usize, row: &Row) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{kind:8} {nodes:6} {demands:7} {:9} {:6} {:7} {:8.2} {:8.2} {:8.2} {:9} {:9}",
        row.variables,
        row.solved,
        row.refuted,
        ms(row.times[row.times.len() / 2]),
        ms(row.times[row.times.len() - 1]),
        ms(row.checked) / PROBLEMS as f64,
        row.conflicts / PROBLEMS,
        row.decisions / PROBLEMS
    );
}

fn main() {
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).filter(|&size| size >= 4).collect();
    if sizes.is_empty() {
        sizes = vec![100, 300, 1000, 3000, 5000];
    }
    println!("{PROBLEMS} problems a row; times in ms, checking, conflicts and decisions a problem");
    println!("kind      nodes demands variables solved refuted   median      max checking conflicts decisions");
    for (nodes, demand) in sizes.into_iter().flat_map(|nodes| DEMAND.map(|demand| (nodes, demand))) {
        print("sections", nodes, nodes / demand, &measure(|seed| random(seed, nodes, demand)));
    }
    for (nodes, demands) in [(20, 24), (40, 52), (80, 110), (80, 130), (160, 220), (160, 260)] {
        print("between", nodes, demands, &measure(|seed| (between(seed, nodes, demands), Vec::new())));
    }
}
