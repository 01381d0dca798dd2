//! Prediction from traces of other tools.

use rashomon_event::{FindingKind, Verdict, WitnessLevel};
use rashomon_packed::OpenOptions;
use rashomon_packed::checked::CheckOptions;
use rashomon_pipeline::analyse::Engine;
use rashomon_pipeline::analyse::imported::{Predicted, predict_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn figure(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpora/speedygo").join(name)
}

fn predicted(name: &str) -> Predicted {
    predict_file(&figure(name), (Engine::Cascade, Duration::ZERO), &OpenOptions::default(), CheckOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_race_and_a_deadlock_of_a_figure_are_predicted() {
    let predicted = predicted("Test9.log");
    assert_eq!((predicted.events, predicted.threads), (22, 3));
    let kinds: Vec<_> = predicted.findings.iter().map(|finding| (finding.kind, finding.verdict.clone())).collect();
    assert_eq!(kinds, [(FindingKind::DataRace, Verdict::Predicted), (FindingKind::Deadlock, Verdict::Predicted)]);
    let race = &predicted.findings[0];
    assert_eq!(race.witness_level, Some(WitnessLevel::Causal));
    assert_eq!(race.subject, "variable 1");
    let lines: Vec<_> = race.sides.iter().map(|side| (side.thread.as_str(), side.action.as_str(), side.stack[0].line)).collect();
    assert_eq!(lines, [("1", "reads 1", Some(1)), ("3", "writes 1", Some(2))]);
    assert_eq!(race.sides[0].held[0].name, "lock 1");
    // The second thread's section has to come first, which no sync-preserving reordering allows.
    assert_eq!(race.steps[0].thread, "2");
    assert_eq!(predicted.findings[1].subject, "locks 2, 3, 1");
}

#[test]
fn what_no_correct_reordering_shows_is_not_predicted() {
    for name in ["Test10.log", "Test20.log", "Test22.log", "Test26.log"] {
        let races = predicted(name).findings.into_iter().filter(|finding| finding.kind == FindingKind::DataRace);
        for race in races {
            assert_eq!(race.verdict, Verdict::Suspected, "{name}");
            assert_eq!(race.witness_level, Some(WitnessLevel::Synchronisation), "{name}");
            assert!(race.notes[0].contains("no reordering"), "{:?}", race.notes);
        }
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = folder.path().join("bad.std");
    std::fs::write(&path, "T0|w(V1)|1\nT0|rel(L1)|2\n").unwrap_or_else(|error| panic!("{error}"));
    let error = predict_file(&path, (Engine::Cascade, Duration::ZERO), &OpenOptions::default(), CheckOptions::default())
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("bad.std") && error.contains("line 2"), "{error}");
}
