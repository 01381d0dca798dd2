//! Steering by inputs, in a model of the exploring scheduler: threads that read and write variables, each created by a step of
//! the first one. What is counted are executions until a failure shows, beside those of random priorities alone.

use rashomon_abi::exploration::{Operation, Wanted};
use rashomon_abi::numbers::SplitMix;
use rashomon_explore::file::End;
use rashomon_explore::reads_from::ReadsFrom;
use rashomon_explore::sampling::Samples;
use rashomon_explore::{Log, Pending, Plan, Sampling, Search, Step};
use rashomon_logic::wanted::{Effect, Standing, effect, ends};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
enum Do {
    Read(u64),
    /// Variable and value.
    Write(u64, i64),
}

/// Steps of one thread, each at a place of its own.
type Body = Vec<(u64, Do)>;

struct Program {
    threads: Vec<Body>,
    /// Of what the last thread read.
    fails: fn(&[i64]) -> bool,
}

fn standing((site, does): (u64, Do)) -> Standing {
    let (Do::Read(variable) | Do::Write(variable, _)) = does;
    let takes = matches!(does, Do::Read(_));
    Standing { site, object: 0x1_0000 + 4 * variable, takes, gives: !takes }
}

fn pending((site, does): (u64, Do)) -> Pending {
    let Standing { object, takes, .. } = standing((site, does));
    let operation = Operation { object, bytes: 4, class: if takes { 1 } else { 2 }, ..Operation::default() };
    Pending { operation, site, ..Pending::default() }
}

/// Thread 0 creates the others, one a step; then each is before its first step. Priorities as in POS.
fn execute(program: &Program, plan: &Plan) -> (Log, bool) {
    let mut random = SplitMix(plan.seed);
    let count = program.threads.len();
    let mut at = vec![0; count];
    let mut priority: Vec<u64> = (0..=count).map(|_| random.draw()).collect();
    let (mut created, mut wanted) = (0, plan.wanted.clone());
    let (mut last, mut memory): (HashMap<u64, u64>, HashMap<u64, i64>) = Default::default();
    let (mut log, mut read) = (Log::default(), Vec::new());
    loop {
        let next = |thread: usize, at: &[usize]| program.threads[thread].get(at[thread]).copied();
        let ready: Vec<usize> = (0..created).filter(|&thread| next(thread, &at).is_some()).collect();
        let effect_of = |thread: usize, wanted: &[Wanted]| {
            let step = standing(next(thread, &at).unwrap());
            let awaited = |one: &Wanted| {
                let stands = |&thread: &usize| standing(next(thread, &at).unwrap());
                ready.iter().map(stands).any(|other| other.takes && other.site == one.to && other.object == step.object)
            };
            let giver = last.get(&step.object).copied().unwrap_or(0);
            let effects: Vec<Effect> = wanted.iter().map(|one| effect(one, &step, giver, awaited(one))).collect();
            if effects.contains(&Effect::Spoils) { Effect::Spoils } else { effects.into_iter().max().unwrap_or(Effect::None) }
        };
        let creator = (created < count).then_some((Effect::None, priority[count], count));
        let choices = ready.iter().map(|&thread| (effect_of(thread, &wanted), priority[thread], thread));
        let Some((_, _, chosen)) = choices.chain(creator).max() else { break };
        if chosen == count {
            created += 1;
            priority[count] = random.draw();
            continue;
        }
        let does = next(chosen, &at).unwrap();
        let step = standing(does);
        wanted.retain(|one| !ends(one, &step, last.get(&step.object).copied().unwrap_or(0)));
        match does.1 {
            Do::Read(variable) if chosen + 1 == count => read.push(memory.get(&variable).copied().unwrap_or(0)),
            Do::Read(_) => {}
            Do::Write(variable, value) => {
                memory.insert(variable, value);
                last.insert(step.object, does.0);
            }
        }
        for other in ready {
            let depends = pending(does).operation.depends(&pending(next(other, &at).unwrap()).operation);
            if other == chosen || depends {
                priority[other] = random.draw();
            }
        }
        at[chosen] += 1;
        log.steps.push(Step { thread: chosen as u32, enabled: 0, asleep: 0, waiting: 0, does: pending(does), after: None });
    }
    (log, (program.fails)(&read))
}

/// The execution that fails, counted from 1.
fn executions(program: &Program, search: &mut dyn Search) -> u32 {
    const MOST: u32 = 20_000;
    for number in 1..MOST {
        let plan = search.next().expect("samples have no end");
        let (log, failed) = execute(program, &plan);
        if failed {
            return number;
        }
        search.learn(&plan, &log, End::None);
    }
    MOST
}

/// Over 20 seeds, in all: steered, and by random priorities alone.
fn compare(program: &Program) -> (u32, u32) {
    let steered = (0..20).map(|seed| executions(program, &mut ReadsFrom::new(seed))).sum();
    let sampled = (0..20).map(|seed| executions(program, &mut Samples::new(Sampling::Pos, seed))).sum();
    (steered, sampled)
}

/// One thread reads two variables after each other, between the two writes of one of many others.
fn between(writers: usize) -> Program {
    let writer = vec![(10, Do::Write(0, 1)), (20, Do::Write(1, 1))];
    let mut threads = vec![writer; writers];
    threads.push(vec![(30, Do::Read(0)), (40, Do::Read(1))]);
    Program { threads, fails: |read| read == [1, 0] }
}

#[test]
fn two_reads_that_have_to_fit() {
    let (steered, sampled) = compare(&between(10));
    assert!(steered * 10 < sampled, "{steered} against {sampled}");
    assert!(steered < 20 * 50, "{steered}");
}

/// Three variables, each seen from another thread, in an order that priorities hardly ever make.
#[test]
fn three_reads_that_have_to_fit() {
    let writers = |variable: u64| vec![(10 + variable, Do::Write(variable, 1)), (20 + variable, Do::Write(variable, 2))];
    let readers = vec![(30, Do::Read(0)), (31, Do::Read(1)), (32, Do::Read(2))];
    let program = Program { threads: vec![writers(0), writers(1), writers(2), readers], fails: |read| read == [1, 1, 1] };
    let (steered, sampled) = compare(&program);
    assert!(steered < sampled, "{steered} against {sampled}");
}

#[test]
fn the_same_seed_gives_the_same_plans() {
    let program = between(3);
    let mut searches = [ReadsFrom::new(7), ReadsFrom::new(7)];
    for _ in 0..100 {
        let [one, other] = searches.each_mut().map(|search| {
            let plan = search.next().unwrap();
            let (log, _) = execute(&program, &plan);
            search.learn(&plan, &log, End::None);
            plan
        });
        assert_eq!(one, other);
    }
}

#[test]
fn what_has_no_reads_is_sampled() {
    let program = Program { threads: vec![vec![(10, Do::Write(0, 1))]; 2], fails: |_| false };
    let mut search = ReadsFrom::new(1);
    for _ in 0..50 {
        let plan = search.next().unwrap();
        assert_eq!(plan.wanted, []);
        let (log, _) = execute(&program, &plan);
        search.learn(&plan, &log, End::None);
    }
}
