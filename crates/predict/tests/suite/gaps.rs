//! Calls into unseen code (BarrierPairs): the figures of Rajagopalan's thesis, 2016, §4.1-4.5, as traces. What the calls may have
//! ordered is silent; without the order that a caveat asks for, each is the false alarm that the thesis tells.

use rashomon_event::{
    AccessClass, Address, CandidateKind, EventIndex, EventKind, Gap, OtherOp, ThreadId, Trace, Witness, WitnessLevel,
};
use rashomon_predict::deciders::Decision;
use rashomon_predict::engines::opinions;
use rashomon_predict::{Options, predict};
use rashomon_testkit::{Features, Rules, Shape, TraceBuilder, add_gaps, describe, random, reachable};
use std::collections::BTreeSet;

/// What is raced for, and what unseen code reaches.
const DATA: Address = Address(0x1000);
const X: Address = Address(0x2000);
const Y: Address = Address(0x3000);

const T1: ThreadId = ThreadId(0);
const T2: ThreadId = ThreadId(1);
const T3: ThreadId = ThreadId(2);

/// A trace and its calls.
struct Figure {
    builder: TraceBuilder,
    gaps: Vec<Gap>,
}

impl Figure {
    fn new(threads: u32) -> Self {
        Self { builder: TraceBuilder::with_threads(threads), gaps: Vec::new() }
    }

    /// The number of the call.
    fn begin(&mut self, thread: ThreadId, reach: &[Address]) -> usize {
        let begin = self.builder.push(thread, EventKind::Other(OtherOp::CallsUnseen));
        let reach = reach.iter().map(|&address| (address, 8)).collect();
        self.gaps.push(Gap { thread, begin, end: None, module: None, function: None, reach, threads: Vec::new() });
        self.gaps.len() - 1
    }

    fn end(&mut self, gap: usize) -> EventIndex {
        let end = self.builder.push(self.gaps[gap].thread, EventKind::Other(OtherOp::ReturnsUnseen));
        self.gaps[gap].end = Some(end);
        end
    }

    fn call(&mut self, thread: ThreadId, reach: &[Address]) -> (EventIndex, EventIndex) {
        let gap = self.begin(thread, reach);
        let end = self.end(gap);
        (self.gaps[gap].begin, end)
    }

    fn write(&mut self, thread: ThreadId) -> EventIndex {
        self.builder.access(thread, AccessClass::Write, DATA, 8)
    }

    fn read(&mut self, thread: ThreadId) -> EventIndex {
        self.builder.access(thread, AccessClass::Read, DATA, 8)
    }

    fn build(self) -> Trace {
        let mut trace = self.builder.build();
        trace.kept = rashomon_order::kept(&trace, &self.gaps);
        trace.gaps = self.gaps;
        trace
    }
}

/// If any decider finds an order, at whatever level, in which the accesses of `DATA` are both next. The checker accepts each.
fn is_predicted(trace: &Trace) -> bool {
    let accepted = |witness: &Witness| {
        let level = rashomon_witness::check(trace, witness);
        assert!(level.as_ref().is_ok_and(|&level| level >= witness.level), "{level:?} {witness:?}");
    };
    let predictions = predict(trace, &Options::default()).findings;
    predictions.iter().filter_map(|prediction| prediction.witness.as_ref()).for_each(accepted);
    let _ = opinions(trace, &Options::default(), |candidate, opinions| {
        for opinion in opinions {
            if let Decision::Witness(order) = &opinion.decision {
                accepted(&Witness { candidate: candidate.clone(), order: order.clone(), level: opinion.level });
            }
        }
    });
    predictions.iter().any(|prediction| prediction.witness.is_some())
}

/// Silent as it is. The order that a caveat asks for is among those that are kept, and without it there is a false alarm.
fn silent_by(trace: &Trace, order: (EventIndex, EventIndex)) {
    assert!(!is_predicted(trace), "{:?}", trace.kept);
    assert!(trace.kept.contains(&order), "{order:?} is not in {:?}", trace.kept);
    let mut without = trace.clone();
    without.kept.retain(|&kept| kept != order);
    assert!(is_predicted(&without), "nothing depends on {order:?}");
    // The checker does not take the false alarm.
    for prediction in predict(&without, &Options::default()).findings {
        let accepts = |witness| rashomon_witness::check(trace, &witness).is_ok();
        assert!(!prediction.witness.is_some_and(accepts), "{:?}", prediction.candidate);
    }
}

/// Figure 4.1: `y` is set in one call and waited for in another one.
#[test]
fn calls_that_reach_the_same_keep_their_order() {
    let mut figure = Figure::new(2);
    figure.write(T1);
    let (_, set) = figure.call(T1, &[Y]);
    let (waited, _) = figure.call(T2, &[Y]);
    figure.read(T2);
    silent_by(&figure.build(), (set, waited));
}

/// The same, but they reach nothing common: Caveat 0, every call a barrier, would lose this race.
#[test]
fn calls_that_reach_nothing_common_order_nothing() {
    let mut figure = Figure::new(2);
    figure.write(T1);
    figure.call(T1, &[X]);
    figure.call(T2, &[Y]);
    figure.read(T2);
    let trace = figure.build();
    assert!(trace.kept.is_empty() && is_predicted(&trace));
}

/// Figure 4.3: a call cannot end before one that overlaps it has begun.
#[test]
fn caveat_1_calls_that_overlap_in_time() {
    let mut figure = Figure::new(2);
    let a = figure.begin(T1, &[X]);
    figure.write(T2);
    let d = figure.begin(T2, &[X]);
    let begun = figure.gaps[d].begin;
    let ended = figure.end(a);
    figure.read(T1);
    figure.end(d);
    silent_by(&figure.build(), (begun, ended));
}

/// Figure 4.4: what is observed between begin and end of calls, such as their callbacks.
#[test]
fn caveat_2_events_in_between() {
    let mut figure = Figure::new(2);
    let a = figure.begin(T1, &[X]);
    let d = figure.begin(T2, &[X]);
    let read = figure.read(T1);
    let written = figure.write(T2);
    figure.end(a);
    figure.end(d);
    silent_by(&figure.build(), (read, written));
}

/// Figure 4.4 with the loop over `x` in code that is seen.
#[test]
fn caveat_3_ordinary_events() {
    let mut figure = Figure::new(2);
    let a = figure.begin(T1, &[X]);
    let read = figure.read(T1);
    let looked = figure.builder.access(T2, AccessClass::Read, X, 8);
    figure.write(T2);
    figure.end(a);
    silent_by(&figure.build(), (read, looked));
}

/// Figure 4.5: `c` and `e` reach nothing common, but `f` what either of them does.
#[test]
fn caveat_4_orders_pass_on() {
    let mut figure = Figure::new(4);
    figure.write(T2);
    let (_, c) = figure.call(T2, &[Y]);
    let (f, passed) = figure.call(ThreadId(3), &[X, Y]);
    let (e, _) = figure.call(T3, &[X]);
    figure.read(T3);
    let trace = figure.build();
    silent_by(&trace, (c, f));
    silent_by(&trace, (passed, e));
}

/// A global variable that nobody passes belongs to what calls reach, if somebody says so.
#[test]
fn caveat_5_globals_that_are_named() {
    for named in [false, true] {
        let global: &[Address] = if named { &[X] } else { &[] };
        let mut figure = Figure::new(2);
        figure.write(T1);
        figure.call(T1, global);
        figure.call(T2, global);
        figure.read(T2);
        assert_eq!(is_predicted(&figure.build()), !named);
    }
}

/// Figure 4.6, Account: the end of a thread is an access of its handle, which `isAlive` reaches.
#[test]
fn whether_a_thread_lives_is_known_by_its_handle() {
    for passed in [false, true] {
        let mut figure = Figure::new(2);
        figure.write(T2);
        let end = figure.builder.push(T2, EventKind::End);
        let alive = figure.begin(T1, &[]);
        if passed {
            figure.gaps[alive].threads.push(T2);
        }
        figure.end(alive);
        let read = figure.read(T1);
        let trace = figure.build();
        assert_eq!(is_predicted(&trace), !passed);
        assert_eq!(rashomon_order::unordered(&trace, EventIndex(0), read, rashomon_order::Model::CPP20), !passed);
        assert_eq!(trace.kept.iter().any(|&(before, _)| before == end), passed);
    }
}

/// An access of what a call reaches, and the call of another thread, are next together in no order: the goals wait, too.
#[test]
fn a_goal_waits_for_what_comes_before_it() {
    let mut figure = Figure::new(2);
    let gap = figure.begin(T1, &[DATA]);
    let first = figure.write(T1);
    figure.end(gap);
    let second = figure.read(T2);
    let trace = figure.build();
    assert!(!is_predicted(&trace));
    let witness =
        |order| Witness { candidate: CandidateKind::Race { first, second }, order, level: WitnessLevel::Synchronisation };
    let alone = rashomon_witness::check(&trace, &witness(vec![EventIndex(0)]));
    assert!(matches!(alone, Err(rashomon_witness::Rejection::OrderedUnseen { .. })), "{alone:?}");
}

/// The races for which any search of `predict` has an order.
fn witnessed(trace: &Trace) -> BTreeSet<(EventIndex, EventIndex)> {
    let findings = predict(trace, &Options::default()).findings;
    let with_order = findings.into_iter().filter(|finding| finding.witness.is_some());
    let pairs = with_order.filter_map(|finding| match finding.candidate.kind {
        CandidateKind::Race { first, second } => Some((first.min(second), first.max(second))),
        _ => None,
    });
    pairs.collect()
}

/// Whatever the calls, no decider of any level proposes an order that the checker refuses, or that the definition does not have.
#[test]
fn no_decider_leaves_the_order_of_random_calls() {
    let (mut kept, mut found, mut silenced) = (0, 0, 0);
    for seed in 0..1500u64 {
        let features = if seed.is_multiple_of(2) { Features::default() } else { Features::ALL };
        let shape = Shape { threads: 2 + (seed % 3) as u32, events: 12, variables: 2, locks: 1 + seed % 2, features };
        let plain = random(120_000 + seed, shape);
        let mut trace = plain.clone();
        add_gaps(&mut trace, seed);
        trace.kept = rashomon_order::kept(&trace, &trace.gaps);
        kept += trace.kept.len();
        is_predicted(&trace);
        let (possible, races) = (reachable(&trace, Rules::SYNCHRONISATION).races, witnessed(&trace));
        assert!(races.is_subset(&possible), "{races:?} {possible:?}\n{}", describe(&trace));
        found += races.len();
        silenced += witnessed(&plain).difference(&possible).count();
    }
    assert!(kept > 1000 && found > 500 && silenced > 300, "{kept} {found} {silenced}");
}
