//! The same answers from any number of workers, and within any bound of memory.

use rashomon_engine::serialisability::Regions;
use rashomon_engine::{EngineError, Findings, Kind, LinearResults, Report, Settings, analyse};
use rashomon_packed::{BLOCK, Event, Generator, Names, Op, Shape, Source, TraceError};

fn shape() -> Shape {
    Shape {
        events: 300_000,
        threads: 20,
        locks: 30,
        nesting: 3,
        variables: 60_000,
        racy: 500,
        read_shared: 300,
        locations: 400,
        locked: 0.4,
        race_rate: 0.05,
        reads: 0.6,
        ordered: true,
        requests: true,
        transactions: true,
        seed: 7,
    }
}

fn run(settings: &Settings) -> LinearResults {
    let mut open = || -> Result<Box<dyn Source + Send>, TraceError> {
        Ok(Box::new(Generator::new(shape()).expect("a shape that is possible")))
    };
    let mut latest = (0, 0);
    let outcome = analyse(&mut open, settings, &mut |progress| {
        assert!((progress.pass, progress.events) > latest, "progress goes on");
        latest = (progress.pass, progress.events);
    });
    let outcome = outcome.expect("an answer");
    assert_eq!((outcome.events, outcome.passes), (latest.1, latest.0));
    assert!(outcome.events == 300_000 || outcome.reports.iter().all(|report| report.until.is_some()));
    outcome
}

fn all(workers: u32) -> Settings {
    Settings { kinds: Kind::ALL.into(), regions: Regions::Marked, window: None, workers, memory: None, spill_to: None }
}

/// Events, or regions, and pairs of places.
fn size(findings: &Findings) -> (u64, usize) {
    match findings {
        Findings::Races(races) => (races.events(), races.pairs().len()),
        Findings::Violations(violations) => (violations.violating(), violations.pairs().len()),
    }
}

#[test]
fn any_number_of_workers() {
    let alone = run(&all(1));
    assert_eq!(alone.reports.iter().map(|report| report.kind).collect::<Vec<_>>(), Kind::ALL);
    for report in &alone.reports {
        let (events, pairs) = size(&report.findings);
        assert!(events > 100 && pairs > 50, "{:?} has something to report", report.kind);
    }
    for workers in [2, 3, 8] {
        assert_eq!(run(&all(workers)).reports, alone.reports, "{workers} workers");
        let shared = Settings { kinds: vec![Kind::Hb, Kind::LockSet, Kind::Hybrid], ..all(workers) };
        let expected: Vec<_> = alone.reports.iter().filter(|report| shared.kinds.contains(&report.kind)).cloned().collect();
        assert_eq!(run(&shared).reports, expected, "{workers} workers that share everything");
    }
}

#[test]
fn windows_and_workers() {
    let windows = |workers, window| run(&Settings { window: Some(window), ..all(workers) }).reports;
    let alone = windows(1, 10_000);
    for workers in [2, 5] {
        assert_eq!(windows(workers, 10_000), alone);
    }
    let whole = run(&all(1)).reports;
    for (within, whole) in alone.iter().zip(&whole) {
        let unaffected = matches!(within.kind, Kind::LockSet | Kind::Cp | Kind::Serialisability);
        assert!(size(&within.findings).0 < size(&whole.findings).0 || unaffected, "{:?}", within.kind);
    }
    // CP has windows of its own, if no other size is asked for.
    let but_cp = |reports: Vec<Report>| reports.into_iter().filter(|report| report.kind != Kind::Cp).collect::<Vec<_>>();
    assert_eq!(but_cp(windows(1, 300_000)), but_cp(whole));
}

#[test]
fn little_memory_costs_passes_and_changes_nothing() {
    for workers in [1, 3] {
        let kinds = vec![Kind::Hb, Kind::LockSet, Kind::Hybrid];
        let plenty = run(&Settings { kinds: kinds.clone(), ..all(workers) });
        let memory = plenty.bytes / 3;
        let little = run(&Settings { kinds, memory: Some(memory), ..all(workers) });
        assert!(little.passes > plenty.passes && little.reports == plenty.reports, "{} passes", little.passes);
    }
}

#[test]
fn what_needs_all_variables_ends_where_memory_does() {
    for kinds in [vec![Kind::Hb, Kind::Shb, Kind::LockSet], vec![Kind::Wcp]] {
        let plenty = run(&Settings { kinds: kinds.clone(), ..all(1) });
        let little = run(&Settings { kinds, memory: Some(plenty.bytes / 2), ..all(1) });
        for (little, plenty) in little.reports.iter().zip(&plenty.reports) {
            if matches!(little.kind, Kind::Shb | Kind::Wcp) {
                assert!(little.until.is_some_and(|until| 0 < until && until < 300_000), "{:?} {:?}", little.kind, little.until);
                assert!(size(&little.findings).0 <= size(&plenty.findings).0);
            } else {
                assert_eq!(little, plenty);
            }
        }
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let mut open = || -> Result<Box<dyn Source + Send>, TraceError> { Ok(Box::new(Generator::new(shape()).expect("possible"))) };
    let settings = Settings { kinds: vec![Kind::Hb], memory: Some(1000), ..all(2) };
    assert!(matches!(analyse(&mut open, &settings, &mut |_| {}), Err(EngineError::TooLittleMemory { allowed: 1000 })));
}

/// A trace without end of one thread's events.
struct Endless(Names);

impl Source for Endless {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        block.clear();
        block.resize(BLOCK, Event::new(0, Op::Nothing, 0, 0));
        Ok(())
    }

    fn names(&self) -> &Names {
        &self.0
    }
}

#[test]
#[ignore = "counts to 2^32, which takes minutes"]
fn a_trace_can_be_too_long() {
    let mut open = || -> Result<Box<dyn Source + Send>, TraceError> { Ok(Box::new(Endless(Names::default()))) };
    let settings = Settings { kinds: vec![Kind::Hb], ..all(1) };
    assert!(matches!(analyse(&mut open, &settings, &mut |_| {}), Err(EngineError::TooLong)));
}
