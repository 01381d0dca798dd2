//! How many errors that need one order of an object's accesses a search of long executions shows, by a model of the exploring
//! scheduler with priorities of threads.

use rashomon_abi::exploration::Operation;
use rashomon_abi::numbers::SplitMix;
use rashomon_abi::record::{AccessClass, Op};
use rashomon_explore::file::End;
use rashomon_explore::order_table::StepId;
use rashomon_explore::orders::Orders;
use rashomon_explore::{Log, Pending, Plan, Search, Step};
use std::collections::{BTreeSet, HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Do {
    Lock(u64),
    Unlock(u64),
    Read(u64),
    Write(u64),
}

const ERRORS: u64 = 20;
const THREADS: usize = 8;
const ROUNDS: usize = 150;
/// Objects of errors, the lock of each, and what all threads take.
const DATA: u64 = 0x10_000;
const LOCKS: u64 = 0x20_000;
const COMMON: u64 = 0x30_000;

/// Threads that work, and touch objects in some of their rounds.
struct Program {
    threads: Vec<Vec<Do>>,
    /// Of each error, its threads in the order that shows it.
    errors: Vec<Vec<usize>>,
}

/// `common`: all under one lock; else each object has its own.
fn program(seed: u64, common: bool) -> Program {
    let mut random = SplitMix(SplitMix::mixed(seed));
    let mut errors = Vec::new();
    let mut touched: HashMap<(usize, usize), Vec<u64>> = HashMap::new();
    for error in 0..ERRORS {
        let mut order: Vec<usize> = (0..THREADS).collect();
        for at in 0..THREADS {
            order.swap(at, at + random.below((THREADS - at) as u64) as usize);
        }
        order.truncate(3 + error as usize % 4);
        for &thread in &order {
            touched.entry((thread, random.below(ROUNDS as u64) as usize)).or_default().push(error);
        }
        errors.push(order);
    }
    let work = |thread: usize| {
        let mut steps = Vec::new();
        for round in 0..ROUNDS {
            let objects = touched.get(&(thread, round)).cloned().unwrap_or_default();
            let touches = |object: u64| [Do::Read(DATA + 8 * object), Do::Write(DATA + 8 * object)];
            steps.push(Do::Lock(COMMON));
            if common {
                steps.extend(objects.iter().flat_map(|&object| touches(object)));
            }
            steps.push(Do::Unlock(COMMON));
            for &object in objects.iter().filter(|_| !common) {
                steps.push(Do::Lock(LOCKS + 64 * object));
                steps.extend(touches(object));
                steps.push(Do::Unlock(LOCKS + 64 * object));
            }
        }
        steps
    };
    Program { threads: (0..THREADS).map(work).collect(), errors }
}

fn operation(does: Do) -> Operation {
    let access = |object, class| Operation { object, bytes: 4, class, ..Operation::default() };
    match does {
        Do::Lock(object) => Operation { op: Op::Lock as u64, object, ..Operation::default() },
        Do::Unlock(object) => Operation { op: Op::Unlock as u64, object, ..Operation::default() },
        Do::Read(object) => access(object, AccessClass::Read as u64),
        Do::Write(object) => access(object, AccessClass::Write as u64),
    }
}

/// What an execution of the plan does, and the error that it shows.
fn execute(program: &Program, plan: &Plan) -> (Log, Option<usize>) {
    let mut random = SplitMix(plan.seed);
    let priorities: Vec<u64> = program.threads.iter().map(|_| random.draw()).collect();
    let mut at = vec![0; program.threads.len()];
    let mut counts: HashMap<(u32, u64), u64> = HashMap::new();
    let mut made: HashSet<StepId> = HashSet::new();
    let mut taken: HashMap<u64, usize> = HashMap::new();
    let mut came: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut before: HashMap<StepId, Vec<StepId>> = HashMap::new();
    plan.orders.iter().for_each(|order| before.entry(order.then).or_default().push(order.first));
    let mut in_vain: HashSet<(StepId, StepId)> = HashSet::new();
    let mut log = Log::default();
    loop {
        let id = |thread: usize, at: &[usize]| {
            let place = operation(*program.threads[thread].get(at[thread])?).counted_at();
            let number = counts.get(&(thread as u32, place)).copied().unwrap_or(0);
            Some(StepId { thread: thread as u32, place, number })
        };
        let is_free = |thread: &usize| match program.threads[*thread].get(at[*thread]) {
            Some(Do::Lock(lock)) => !taken.contains_key(lock),
            step => step.is_some(),
        };
        let waits = |thread: usize| {
            id(thread, &at).is_some_and(|step| {
                let holds = |first: &StepId| !made.contains(first) && !in_vain.contains(&(*first, step));
                before.get(&step).is_some_and(|firsts| firsts.iter().any(holds))
            })
        };
        let next = (0..at.len()).filter(is_free).max_by_key(|&thread| (!waits(thread), priorities[thread]));
        let Some(thread) = next else { return (log, None) };
        let step = id(thread, &at).expect("it has a step");
        // Orders that it waited for in vain are over.
        in_vain.extend(before.get(&step).into_iter().flatten().map(|first| (*first, step)));
        made.insert(step);
        *counts.entry((thread as u32, step.place)).or_default() += 1;
        let does = program.threads[thread][at[thread]];
        at[thread] += 1;
        let does_now = Pending { operation: operation(does), site: at[thread] as u64, ..Pending::default() };
        log.steps.push(Step { thread: thread as u32, enabled: 0, asleep: 0, waiting: 0, does: does_now, after: None });
        match does {
            Do::Lock(lock) => drop(taken.insert(lock, thread)),
            Do::Unlock(lock) => drop(taken.remove(&lock)),
            Do::Read(_) => {}
            Do::Write(object) => {
                let order = came.entry(object).or_default();
                order.push(thread);
                let error = ((object - DATA) / 8) as usize;
                if *order == program.errors[error] {
                    log.left = vec![(thread as u32, does_now)];
                    log.is_cut = true;
                    return (log, Some(error));
                }
            }
        }
    }
}

/// The errors that so many executions show.
fn shown(program: &Program, seed: u64, executions: usize) -> BTreeSet<usize> {
    let mut search = Orders::of_long(seed);
    let mut shown = BTreeSet::new();
    for _ in 0..executions {
        let plan = search.next().expect("there is always another order");
        let (log, error) = execute(program, &plan);
        shown.extend(error);
        search.learn(&plan, &log, End::None);
    }
    shown
}

#[test]
fn errors_under_one_lock() {
    for seed in 0..3 {
        let shown = shown(&program(seed, true), seed, EXECUTIONS);
        assert!(shown.len() >= ENOUGH, "seed {seed}: {shown:?}");
    }
}

#[test]
fn errors_each_under_a_lock_of_its_own() {
    for seed in 0..3 {
        let shown = shown(&program(seed, false), seed, EXECUTIONS);
        assert!(shown.len() >= ENOUGH, "seed {seed}: {shown:?}");
    }
}

const EXECUTIONS: usize = 100;
const ENOUGH: usize = 12;
