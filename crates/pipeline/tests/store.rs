//! The store on disk.

use rashomon_event::{Evidence, Finding, FindingId, FindingKind, Verdict};
use rashomon_pipeline::store::run::{RUN_FORMAT, RUN_VERSION};
use rashomon_pipeline::{PipelineError, RunRecord, ShellText, Store};
use std::fs;
use std::path::Path;

fn run_record() -> RunRecord {
    RunRecord {
        format: RUN_FORMAT.into(),
        version: RUN_VERSION,
        executable: ShellText::Text("/bin/prog".into()),
        arguments: vec![ShellText::Text("a b".into()), ShellText::Bytes(vec![0xff])],
        directory: ShellText::Text("/".into()),
        randomise_addresses: true,
        environment: Vec::new(),
        surroundings: Default::default(),
        before_each: None,
        client: None,
        input: None,
        loads_runtime: true,
        quantum: 7,
        base_time_nanoseconds: 9,
        trace_limit: 0,
        processes: 0,
        trusted_libraries: vec!["libfoo.so.1".into()],
        limit_milliseconds: None,
        recordings: vec![],
        notes: vec![],
    }
}

fn finding(id: &str) -> Finding {
    Finding {
        id: FindingId::new(id).unwrap(),
        kind: FindingKind::DataRace,
        verdict: Verdict::Diverged { expected: "a".into(), actual: "b".into() },
        evidence: Evidence::Hybrid,
        witness_level: None,
        subject: "global y".into(),
        sides: vec![],
        steps: vec![],
        earlier_steps: 0,
        schedule: None,
        forced: None,
        provocation: None,
        harm: None,
        critical: None,
        reproduce: None,
        unseen: vec![],
        notes: vec![],
        occurrences: 1,
    }
}

#[test]
fn stores_are_numbered_and_the_last_one_is_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join(".rashomon");
    for expected in ["1-prog", "2-prog", "3-other_name"] {
        let name = expected.split_once('-').unwrap().1.replace('_', " ");
        let store = Store::create_in(&base, Path::new(&format!("/bin/{name}"))).unwrap();
        assert!(store.path().ends_with(expected), "{}", store.path().display());
        store.write_run(&run_record()).unwrap();
        for place in [folder.path(), base.as_path(), store.path()] {
            assert_eq!(Store::open(place).unwrap(), store, "{}", place.display());
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_at(&folder.path().join("out")).unwrap();
    store.write_run(&run_record()).unwrap();
    assert_eq!(store.run().unwrap(), run_record());
    let mut changed = finding("race-00000001");
    store.write_finding(&changed).unwrap();
    changed.verdict = Verdict::Predicted;
    store.write_finding(&changed).unwrap();
    store.write_finding(&finding("race-00000002")).unwrap();
    assert_eq!(store.findings().unwrap(), [changed, finding("race-00000002")]);
}

#[test]
fn findings_are_found_by_the_start_of_their_id() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_at(&folder.path().join("out")).unwrap();
    for id in ["race-12340000", "race-12350000", "deadlock-99990000"] {
        store.write_finding(&finding(id)).unwrap();
    }
    for prefix in ["race-1234", "1234", "race-12340000"] {
        assert_eq!(store.finding(prefix).unwrap().id, "race-12340000", "{prefix}");
    }
    assert_eq!(store.finding("deadlock").unwrap().id, "deadlock-99990000");
    assert!(matches!(store.finding("race-123"), Err(PipelineError::AmbiguousFinding { .. })));
    assert!(matches!(store.finding("7"), Err(PipelineError::NoSuchFinding { .. })));
    assert!(matches!(store.finding(""), Err(PipelineError::NoSuchFinding { .. })));
}

#[test]
fn nothing_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("precious"), "x").unwrap();
    assert!(matches!(Store::create_at(folder.path()), Err(PipelineError::OutputExists { .. })));
}

#[test]
fn files_of_other_versions_and_damaged_ones_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_at(&folder.path().join("out")).unwrap();
    assert!(matches!(Store::open(folder.path()), Err(PipelineError::NoStore { .. })));
    store.write_run(&RunRecord { version: 99, ..run_record() }).unwrap();
    assert!(store.run().unwrap_err().to_string().contains("version 99"));
    fs::write(store.path().join("run.json"), "{").unwrap();
    assert!(matches!(store.run(), Err(PipelineError::Malformed { .. })));
}
