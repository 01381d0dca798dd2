use super::*;
use crate::log::{Pending, Step};
use rashomon_abi::exploration::Operation;
use rashomon_abi::record::AccessClass;

const DATA: u64 = 0x3000;
const OTHER: u64 = 0x4000;

/// Each thread writes both, in the order of these threads.
fn log(order: &[u32]) -> Log {
    let step = |thread: u32, object: u64| {
        let operation = Operation { object, bytes: 4, class: AccessClass::Write as u64, ..Operation::default() };
        let does = Pending { operation, site: u64::from(thread) + 1, ..Pending::default() };
        Step { thread, enabled: u64::MAX, asleep: 0, waiting: 0, does, after: None }
    };
    let steps = order.iter().flat_map(|&thread| [step(thread, DATA), step(thread, OTHER)]).collect();
    Log { steps, ..Log::default() }
}

/// The steps of a log as a plan orders them, the first that may be next.
fn obeyed(log: &Log, plan: &Plan) -> Log {
    let id = |nth: usize| {
        let (step, of) = (&log.steps[nth], |step: &Step| (step.thread, step.does.operation.object));
        let number = log.steps[..nth].iter().filter(|earlier| of(earlier) == of(step)).count() as u64;
        StepId { thread: step.thread, place: step.does.operation.object, number }
    };
    let mut open: Vec<usize> = (0..log.steps.len()).collect();
    let mut made: Vec<usize> = Vec::new();
    while !open.is_empty() {
        let may = |&nth: &usize| {
            let first_of_thread = open.iter().all(|&other| other >= nth || log.steps[other].thread != log.steps[nth].thread);
            let done = |step: &StepId| made.iter().any(|&done| id(done) == *step);
            first_of_thread && plan.orders.iter().all(|order| order.then != id(nth) || done(&order.first))
        };
        let next = *open.iter().find(|nth| may(nth)).expect("the orders of a plan contradict nothing");
        made.push(next);
        open.retain(|&other| other != next);
    }
    Log { steps: made.into_iter().map(|nth| log.steps[nth].clone()).collect(), ..Log::default() }
}

#[test]
fn the_first_execution_orders_nothing() {
    let mut search = Orders::new(0);
    assert!(search.next().is_some_and(|plan| plan.orders.is_empty() && plan.sampling == Sampling::Ordered { pos: true }));
}

/// An order that is known is not drawn again; but that of a failure is what one wants to see.
#[test]
fn a_recording_that_failed_is_repeated_first() {
    let recorded = log(&[2, 0, 3, 1]);
    for failed in [true, false] {
        let mut repeated = 0;
        for seed in 0..10 {
            let mut search = Orders::new(seed);
            search.recorded(&recorded, failed);
            let plan = search.next().expect("it has no end");
            let steps = obeyed(&log(&[0, 1, 2, 3]), &plan).steps;
            let of = |object| {
                let steps = steps.iter().filter(move |step| step.does.operation.object == object);
                steps.map(|step| step.thread).collect::<Vec<u32>>()
            };
            repeated += u32::from([DATA, OTHER].map(of) == [[2, 0, 3, 1], [2, 0, 3, 1]]);
        }
        assert!(if failed { repeated == 10 } else { repeated < 5 }, "{failed}: {repeated} of 10");
    }
}

#[test]
fn all_orders_of_an_object_come_and_none_contradicts_another() {
    let mut search = Orders::new(0);
    let first = log(&[0, 1, 2, 3]);
    let plan = search.next().expect("it has no end");
    search.learn(&plan, &first, End::None);
    for _ in 0..60 {
        let plan = search.next().expect("it has no end");
        search.learn(&plan, &obeyed(&first, &plan), End::None);
    }
    assert_eq!(search.objects[&DATA].seen.len(), 24, "all orders of four threads");
    assert_eq!(search.objects[&OTHER].seen.len(), 24);
    assert!(search.vain.is_empty());
}

#[test]
fn what_never_comes_is_not_asked_for_again() {
    let mut search = Orders::new(0);
    let always = log(&[0, 1]);
    for _ in 0..100 {
        let plan = search.next().expect("it has no end");
        search.learn(&plan, &always, End::None);
    }
    let late: Vec<Plan> = (0..20).filter_map(|_| search.next()).collect();
    assert!(late.iter().flat_map(|plan| &plan.orders).all(|order| order.first.thread == 0), "{late:?}");
}

#[test]
fn where_nothing_is_shared_it_ends() {
    let mut search = Orders::new(0);
    let mut given = 0;
    while let Some(plan) = search.next() {
        search.learn(&plan, &log(&[0]), End::None);
        given += 1;
        assert!(given < 1_000);
    }
    assert_eq!(given, UNORDERED_AT_MOST);
}

#[test]
fn where_threads_meet_too_often_to_be_ordered_it_goes_on() {
    let often: Vec<u32> = (0..4_000).map(|nth| nth % 2).collect();
    let alone = vec![0; 4_000];
    let goes_on = |mut search: Orders, order: &[u32]| {
        let log = log(order);
        for _ in 0..UNORDERED_AT_MOST {
            let plan = search.next().expect("so many there always are");
            search.learn(&plan, &log, End::None);
        }
        search.next().is_some()
    };
    assert!(goes_on(Orders::new(0), &often) && !goes_on(Orders::new(0), &alone) && !goes_on(Orders::of_long(0), &often));
}
