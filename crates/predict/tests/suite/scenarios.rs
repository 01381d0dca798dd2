//! Small programs with known answers.

use rashomon_event::{CandidateKind, Evidence, Mode, Trace, WitnessLevel};
use rashomon_order::{Model, SharedMemory, races, unordered};
use rashomon_predict::{Options, Prediction, predict, predict_each};
use rashomon_testkit::{Features, Labelled, Shape, describe, large, parse, random};
use rashomon_witness::{Checker, check};

fn trace(text: &str) -> Labelled {
    parse(text).expect("the test's trace is well-formed")
}

/// All predictions, their witnesses checked.
fn predictions(trace: &Trace) -> Vec<Prediction> {
    let findings = predict(trace, &Options::default()).findings;
    let checker = Checker::new(trace);
    for witness in findings.iter().filter_map(|finding| finding.witness.as_ref()) {
        assert_eq!(checker.check(witness).as_ref().map(|level| *level >= witness.level), Ok(true), "{witness:?}");
    }
    findings
}

fn level(finding: &Prediction) -> Option<WitnessLevel> {
    finding.witness.as_ref().map(|witness| witness.level)
}

fn only(text: &str) -> (Labelled, Prediction) {
    let of = trace(text);
    let mut findings = predictions(&of.trace);
    assert_eq!(findings.len(), 1, "{findings:?}");
    (of, findings.remove(0))
}

fn switches(of: &Labelled, finding: &Prediction) -> usize {
    let order = &finding.witness.as_ref().expect("has a witness").order;
    order.windows(2).filter(|pair| of.trace.event(pair[0]).thread != of.trace.event(pair[1]).thread).count()
}

const LISTING_1: &str = "
    main fork t; main w y #a; main lock m; main rw x; main unlock m
    t start; t lock m; t rw x; t unlock m; t w y #b; t end
    main join t
";

#[test]
fn listing_1_needs_an_optimistic_witness() {
    let (of, finding) = only(LISTING_1);
    assert_eq!(finding.candidate.kind, CandidateKind::Race { first: of.at("a"), second: of.at("b") });
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::Hybrid, Some(WitnessLevel::Synchronisation)));
    let witness = finding.witness.clone().expect("checked above");
    assert_eq!(check(&of.trace, &witness), Ok(WitnessLevel::Synchronisation));
    assert_eq!(witness.order.len(), 5, "only what is needed: fork, start, lock, rw, unlock");
    assert_eq!(switches(&of, &finding), 1);
}

#[test]
fn behind_the_deadline_suspicions_are_counted_and_races_told() {
    let late = Options { deadline: rashomon_event::Deadline::at(std::time::Instant::now()), ..Options::default() };
    let suspicion = predict(&trace(LISTING_1).trace, &late);
    assert!(suspicion.findings.is_empty());
    assert_eq!((suspicion.statistics.out_of_time, suspicion.statistics.not_looked_at), (1, 1));
    let race = predict(&trace("main fork t; main w y; t start; t w y; t end; main join t").trace, &late);
    assert_eq!(
        race.findings.iter().map(|finding| (finding.candidate.evidence, level(finding))).collect::<Vec<_>>(),
        [(Evidence::HappensBefore, None)]
    );
    assert_eq!(race.statistics.out_of_time, 1);
}

#[test]
fn a_race_hidden_by_an_unrelated_section_is_causal() {
    let (_, finding) =
        only("main fork t; main w y; main lock m; main unlock m; t start; t lock m; t unlock m; t w y; t end; main join t");
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::Hybrid, Some(WitnessLevel::Causal)));
}

#[test]
fn the_second_goal_of_a_relaxed_flag_has_no_witness() {
    let (of, finding) = only("main w y #a; t ld f relaxed; t ld f relaxed; main st f relaxed; t ld f relaxed; t r y #b");
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::HappensBefore, None));
    assert!(unordered(&of.trace, of.at("a"), of.at("b"), Model::CPP20));
}

#[test]
fn correct_flags_are_never_causal() {
    let released = trace("main w y; main st f release; t ld f acquire; t r y");
    let fenced = trace("main w y; main fence release; main st f relaxed; t ld f relaxed; t fence acquire; t r y");
    for of in [released, fenced] {
        for finding in predictions(&of.trace) {
            assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::Hybrid, Some(WitnessLevel::Synchronisation)));
        }
    }
}

#[test]
fn protected_and_ordered_accesses_are_silent() {
    for silent in [
        "main fork t; main lock m; main w x; main unlock m; t lock m; t w x; t unlock m; t end; main join t; main w x",
        "main w x; main fork t; t w x; t end; main join t; main w x",
        "main w x; main enter b; t enter b; main exit b; t exit b; t w x",
        "main w x; main post s; t take s; t w x",
        "t lock m; t wait c m; main w x; main lock m; main signal c #s; main unlock m; t woken c m s; t w x; t unlock m",
        "main begin o; main w x; main done o; t seen o; t r x",
        "main w x; main release p; t acquire p; t r x",
        "main r x; t r x",
        "main w x:4; t w x+4:4",
        "main rmw x relaxed; t rmw x relaxed",
        "main rlock m; main r x; main runlock m; t lock m; t w x; t unlock m",
    ] {
        assert_eq!(predictions(&trace(silent).trace), [], "{silent}");
    }
}

#[test]
fn a_writer_under_a_read_lock_races() {
    let (_, finding) = only("main rlock m; main w x; main runlock m; t rlock m; t w x; t runlock m");
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::HappensBefore, Some(WitnessLevel::Causal)));
}

#[test]
fn a_signal_may_come_before_its_waiter() {
    // The signal that woke t is lost if main runs first; what t does before it waits races with what main does afterwards.
    let of = trace(
        "t w x #b; t lock m; t wait c m; main lock m; main signal c #s; main unlock m; main w x #a; t woken c m s; t unlock m",
    );
    let findings = predictions(&of.trace);
    assert_eq!(findings.len(), 1);
    assert_eq!(level(&findings[0]), Some(WitnessLevel::Causal));
}

const CROSS: &str = "main lock m; main lock n #a; main unlock n; main unlock m; t lock n; t lock m #b; t unlock m; t unlock n";

#[test]
fn a_take_needs_as_many_posts_as_the_semaphore_did_not_begin_with() {
    let text = "main count s COUNT; main fork t; main fork u; t start; t w x #a; t post s; u start; u take s; u w x #b";
    let findings = |count: &str| predictions(&trace(&text.replace("COUNT", count)).trace);
    assert!(findings("0").is_empty(), "{:?}", findings("0"));
    let of = trace(&text.replace("COUNT", "1"));
    let found = findings("1");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].candidate.kind, CandidateKind::Race { first: of.at("a"), second: of.at("b") });
    assert_eq!((found[0].candidate.evidence, level(&found[0])), (Evidence::Hybrid, Some(WitnessLevel::Causal)));
    // A semaphore used as a lock; with two permits it excludes nobody.
    let permits = "main count s COUNT; t take s; t w x; t post s; u take s; u w x; u post s";
    assert!(predictions(&trace(&permits.replace("COUNT", "1")).trace).is_empty());
    assert_eq!(predictions(&trace(&permits.replace("COUNT", "2")).trace).len(), 1);
    // A post that the take can do without hides nothing: the first one suffices.
    assert_eq!(predictions(&trace("main count s 0; t post s; u w x; u post s; v take s; v w x").trace).len(), 1);
}

#[test]
fn crossed_locks_deadlock() {
    let (of, finding) = only(CROSS);
    let CandidateKind::Deadlock { waits, .. } = &finding.candidate.kind else { panic!("{finding:?}") };
    assert_eq!(waits, &[of.at("a"), of.at("b")]);
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::LockOrder, Some(WitnessLevel::Causal)));
}

#[test]
fn a_deadlock_behind_a_data_dependence_needs_an_optimistic_witness() {
    let text = "main lock k; main rw x; main unlock k; main lock m; main lock n; main unlock n; main unlock m; main lock k; \
        main w z; main unlock k; \
                t lock k; t r z; t unlock k; t lock n; t lock m; t unlock m; t unlock n";
    let of = trace(text);
    let deadlocks: Vec<_> = predictions(&of.trace)
        .into_iter()
        .filter(|finding| matches!(finding.candidate.kind, CandidateKind::Deadlock { .. }))
        .collect();
    assert_eq!(deadlocks.len(), 1);
    assert_eq!(level(&deadlocks[0]), Some(WitnessLevel::Synchronisation));
}

#[test]
fn gates_and_joins_forbid_deadlocks() {
    for silent in [
        "main lock g; main lock m; main lock n; main unlock n; main unlock m; main unlock g; \
         t lock g; t lock n; t lock m; t unlock m; t unlock n; t unlock g",
        "main fork t; t lock m; t lock n; t unlock n; t unlock m; t end; main join t; main lock n; main lock m; main unlock m; \
         main unlock n",
    ] {
        assert_eq!(predictions(&trace(silent).trace), [], "{silent}");
    }
}

#[test]
fn a_section_that_spans_threads_deadlocks() {
    let (of, finding) = only(
        "u lock m #g; u lock l #a; u unlock l; u unlock m; main lock l #h; main fork t #f; t lock m #b; t unlock m; t end; main \
         join t #j; main unlock l",
    );
    let CandidateKind::Deadlock { waits, locks } = &finding.candidate.kind else { panic!("{finding:?}") };
    assert_eq!(waits, &[of.at("a"), of.at("j"), of.at("b")]);
    assert_eq!(locks.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(level(&finding), Some(WitnessLevel::Causal));
}

/// What happens between the acquisition and the join is part of the witness: with another value the holder may not join at all.
#[test]
fn the_holder_must_get_to_where_it_waits() {
    let text = "main fork t; t lock l; t unlock l; t w x #w; t end; main r x #r; main lock l; main join t; main unlock l";
    assert_eq!(
        predictions(&trace(text).trace).iter().map(level).collect::<Vec<_>>(),
        [Some(WitnessLevel::Causal), Some(WitnessLevel::Synchronisation)]
    );
    let before = text
        .replace("t lock l; t unlock l; t w x #w;", "t w x #w; t lock l; t unlock l;")
        .replace("main r x #r; main lock l;", "main lock l; main r x #r;");
    assert_eq!(predictions(&trace(&before).trace).iter().map(level).collect::<Vec<_>>(), [Some(WitnessLevel::Causal); 2]);
}

#[test]
fn an_observed_deadlock_is_its_own_witness() {
    let (of, finding) = only("main lock m; t lock n; main request n; t request m; main blocked n; t blocked m");
    assert_eq!((finding.candidate.evidence, level(&finding)), (Evidence::Observed, Some(WitnessLevel::Causal)));
    assert_eq!(finding.witness.map(|witness| witness.order.len()), Some(2));
    assert_eq!(of.trace.events.len(), 6);
}

#[test]
fn a_free_running_trace_gives_no_witness() {
    let mut of = trace(LISTING_1);
    of.trace.mode = Mode::Free;
    let findings = predict(&of.trace, &Options::default()).findings;
    assert_eq!(findings.iter().map(level).collect::<Vec<_>>(), [None]);
}

#[test]
fn one_finding_per_pair_of_sites() {
    let (_, finding) = only("main w x @p; t w x @q; main w x @p; t w x @q");
    assert_eq!(finding.candidate.occurrences, 3, "p1-q1, q1-p2, p2-q2: only the newest access of a site is remembered");
}

#[test]
fn independent_events_are_grouped_by_thread() {
    let (of, finding) = only("main r a; t r b; main r a; t r b; main r a; t r b; main w x; t w x");
    assert_eq!(switches(&of, &finding), 1);
}

/// The first pair that happens-before leaves unordered is a race of a sync-preserving reordering, unless atomics are relaxed.
#[test]
fn the_first_happens_before_race_has_a_causal_witness() {
    let mut seen = 0;
    for seed in 0..3000 {
        let features = Features { relaxed: false, ..Features::ALL };
        let shape = Shape { threads: 3, events: 30, variables: 3, locks: 2, features };
        let trace = random(seed, shape);
        let unordered = races(&trace, &SharedMemory::new(&trace), Model::CPP20, 4);
        let Some(first) = unordered.iter().flat_map(|pair| &pair.pairs).map(|pair| pair.1).min() else {
            continue;
        };
        let findings = predictions(&trace);
        for &(one, other) in unordered.iter().flat_map(|pair| &pair.pairs).filter(|pair| pair.1 == first) {
            let kind = CandidateKind::Race { first: one, second: other };
            let finding = findings.iter().find(|finding| finding.candidate.kind == kind).expect("reported");
            assert_eq!(level(finding), Some(WitnessLevel::Causal), "{kind:?}\n{}", describe(&trace));
            seen += 1;
        }
    }
    assert!(seen > 1000, "{seen}");
}

#[test]
fn witnesses_of_a_larger_trace_pass_the_checker() {
    let trace = large(3, 6, 12, 20_000);
    let checker = Checker::new(&trace);
    let mut witnesses = 0;
    let statistics = predict_each(&trace, &Options::default(), |prediction| {
        if let Some(witness) = &prediction.witness {
            let checked = checker.check(witness);
            assert!(checked.as_ref().is_ok_and(|&level| level >= witness.level), "{checked:?}");
            witnesses += 1;
        }
    });
    assert_eq!(statistics.causal + statistics.synchronisation, witnesses);
    assert!(witnesses > 20, "{statistics:?}");
}

#[test]
fn pairs_that_only_ignoring_atomics_can_show_come_last() {
    let of = trace(
        "main w y; main st f release; t ld f acquire; t r y; main lock m; main lock n; main unlock n; main unlock m; t lock n; \
         t lock m",
    );
    let findings = predictions(&of.trace);
    assert!(matches!(findings[0].candidate.kind, CandidateKind::Deadlock { .. }));
    assert!(matches!(findings[1].candidate.kind, CandidateKind::Race { .. }));
    let without = predict(&of.trace, &Options { despite_atomics: false, ..Options::default() });
    assert_eq!(level(&without.findings[1]), None);
}
