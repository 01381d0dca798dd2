//! `rashomon witness`: lockset warnings become executions that show the race, or are told to be without one; each is stored as a
//! schedule that replays.

use crate::support::place::{Ended, Place};
use serde_json::Value;
use std::path::PathBuf;

/// Compiles a program of `tests/shacham`.
#[track_caller]
fn compile(place: &Place, name: &str) {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/shacham").join(format!("{name}.cpp"));
    let mut command = place.tool(&["c++", "-g", "-O1", "-pthread", "-o", name]);
    command.arg(source);
    place.run(command).expect(0, &[]);
}

#[track_caller]
fn witness(place: &Place, store: &str, options: &[&str], command: &[&str]) -> (Ended, Value) {
    let mut arguments = vec!["witness", "--output", store, "--json", "report.json"];
    arguments.extend(options.iter().chain(&["--"]).chain(command));
    let ended = place.rashomon(&arguments);
    let report = place.json("report.json");
    (ended, report)
}

fn proven(report: &Value) -> Vec<&Value> {
    report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven").collect()
}

/// Fig. 6: the locks are not the same everywhere, and yet nothing races.
#[test]
fn a_spurious_warning_has_no_witness() {
    let place = Place::new();
    compile(&place, "figure6");
    let (ended, report) = witness(&place, "store", &["--recordings", "5"], &["./figure6"]);
    assert_eq!(proven(&report).len(), 0, "{ended}");
    let ended = ended.expect(0, &["0 proven"]);
    assert!(ended.out.contains(" lockset warning") && !ended.out.contains("witness by"), "{ended}");
}

/// Fig. 7: the racing partner of the warning comes behind it.
#[test]
fn a_partner_behind_the_warning_is_found() {
    let place = Place::new();
    compile(&place, "figure7");
    let (ended, report) = witness(&place, "store", &["--recordings", "5", "--jobs", "2"], &["./figure7"]);
    let ended = ended.expect(66, &["global X (4 bytes)"]);
    for finding in proven(&report) {
        let id = finding["id"].as_str().unwrap();
        let replayed = place.rashomon(&["replay", "--store", "store", id, "--times", "3"]);
        assert_eq!(replayed.code, 0, "{replayed} {ended}");
    }
}

/// Fig. 4, told as in Fig. 9, in every combination of what the search is given.
#[test]
fn the_running_example_is_told_step_by_step() {
    let place = Place::new();
    compile(&place, "numDelItr");
    let all: [&[&str]; 4] = [&[], &["--no-hint"], &["--no-exclusion", "--no-hint"], &["--short-prefix"]];
    for (number, options) in all.into_iter().enumerate() {
        let store = format!("store-{number}");
        let (ended, report) = witness(&place, &store, options, &["./numDelItr", "2", "20"]);
        let ended = ended.expect(66, &["global numDelItr (4 bytes)", "schedule that shows it", "prefix of"]);
        let found = proven(&report);
        let [finding] = found.as_slice() else { panic!("{ended}") };
        let steps: Vec<(&str, &str)> = finding["schedule"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|step| (step["thread"].as_str().unwrap_or_default(), step["until"].as_str().unwrap_or_default()))
            .collect();
        let (reader, writer) = match steps.as_slice() {
            [.., (one, "stands right before its read"), (other, "stands right before its write")] => (*one, *other),
            [.., (one, "stands right before its write"), (other, "stands right before its read")] => (*other, *one),
            _ => panic!("{steps:?} {ended}"),
        };
        let at = |thread: &str, until: &str| steps.iter().rposition(|step| *step == (thread, until)).unwrap_or(usize::MAX);
        let (key, own, deletion) =
            (at(writer, "acquires mutex KeyLock"), at(reader, "acquires mutex KeyLock"), at(writer, "acquires mutex DelLock"));
        assert!(key < own && key < deletion && deletion < steps.len() && own < steps.len(), "{steps:?} {ended}");
        let id = finding["id"].as_str().unwrap();
        place.rashomon(&["replay", "--store", &store, id, "--times", "3"]).expect(0, &[]);
    }
}

#[test]
fn a_prefix_can_be_a_witness_by_itself() {
    let place = Place::new();
    compile(&place, "mtrt");
    let (ended, report) = witness(&place, "store", &[], &["./mtrt", "2", "20"]);
    assert!(ended.out.contains("witness by the prefix"), "{ended}");
    assert_eq!(proven(&report).len(), 1, "{ended}");
    ended.expect(66, &["global last_row (4 bytes)"]);
}

#[test]
fn limits_are_told_apart_from_exhaustion() {
    let place = Place::new();
    compile(&place, "numDelItr");
    for options in [["--budget", "0"], ["--schedules", "0"]] {
        let (ended, _) = witness(&place, options[0].trim_start_matches("--"), &options, &["./numDelItr", "2", "20"]);
        assert!(ended.out.contains("none before a limit was reached"), "{ended}");
        ended.expect(0, &["0 proven"]);
    }
}

/// What leaves schedules out finds what all of them show: the same races, and none where there are none.
#[test]
fn reductions_find_the_same() {
    let place = Place::new();
    for (name, arguments, race) in [
        ("numDelItr", &["2", "20"][..], Some("global numDelItr (4 bytes)")),
        ("figure7", &[], Some("global X (4 bytes)")),
        ("figure6", &[], None),
    ] {
        compile(&place, name);
        let program = format!("./{name}");
        let command: Vec<&str> = std::iter::once(program.as_str()).chain(arguments.iter().copied()).collect();
        let ways: [&[&str]; 4] = [&["--no-reduction"], &[], &["--strategy", "dpor"], &["--strategy", "dpor", "--no-hint"]];
        for (number, way) in ways.into_iter().enumerate() {
            // The extended prefix would be the witness, and nothing would be searched.
            let options = [&["--recordings", "3", "--short-prefix"], way].concat();
            let (ended, report) = witness(&place, &format!("{name}-{number}"), &options, &command);
            let subjects = proven(&report).into_iter().filter_map(|finding| finding["subject"].as_str());
            let met = race.is_some_and(|race| subjects.clone().any(|subject| subject.contains(race)));
            assert_eq!(met, race.is_some(), "{name} {way:?} {ended}");
            assert_eq!(ended.out.contains("witness by search"), race.is_some(), "{name} {way:?} {ended}");
            assert!(race.is_some() || subjects.count() == 0, "{name} {way:?} {ended}");
        }
    }
}

/// What no decider decided is searched as well, if `check` is asked to.
#[test]
fn check_hands_over_what_it_could_not_decide() {
    let place = Place::new();
    compile(&place, "numDelItr");
    let check = |store: &str, options: &[&str]| {
        let mut arguments = vec!["check", "--output", store];
        arguments.extend(options.iter().chain(&["--", "./numDelItr", "2", "20"]));
        place.rashomon(&arguments)
    };
    let without = check("without", &["--budget", "0"]);
    assert!(without.err.contains("0 proven"), "{without}");
    check("with", &["--budget", "0", "--search", "60"]).expect(66, &["1 proven", "witness by search"]);
}

/// Rows of a search without the times it took, and whatever is said of process snapshots.
fn searched(ended: &Ended) -> (Vec<String>, Vec<String>) {
    let rows = ended.out.lines().filter_map(|line| Some(line.rsplit_once(" schedules, ")?.0.to_owned()));
    let said = ended.out.lines().filter(|line| line.contains("process snapshot")).map(str::to_owned);
    (rows.collect(), said.collect())
}

/// Executions that go on from a process snapshot are those that begin at the beginning, and each thread in them has what it had.
#[test]
fn snapshots_change_nothing() {
    let place = Place::new();
    compile(&place, "handed_over");
    // With the first access's thread among those that go on, executions come to their ends.
    let bounds = ["--preemptions", "2", "--schedules", "60", "--no-exclusion"];
    for threads in ["2", "3"] {
        let command = ["./handed_over", threads];
        let (without, _) = witness(&place, &format!("without-{threads}"), &[&bounds[..], &["--no-snapshots"]].concat(), &command);
        let (expected, said) = searched(&without.expect(0, &[]));
        assert!(said.is_empty() && !expected.is_empty(), "{expected:?} {said:?}");
        for jobs in ["1", "2"] {
            let store = format!("with-{threads}-{jobs}");
            let (with, _) = witness(&place, &store, &[&bounds[..], &["--jobs", jobs]].concat(), &command);
            let (rows, said) = searched(&with.expect(0, &[]));
            if said.iter().any(|line| line.contains("the kernel does not tell what it takes")) {
                crate::support::place::skipped("this kernel was built without CONFIG_CHECKPOINT_RESTORE");
                return;
            }
            assert_eq!(rows, expected, "{threads} threads, {jobs} jobs");
            assert!(said.len() == 1 && said[0].contains("executions went on from a process snapshot"), "{said:?}");
        }
        assert!(!place.path("missing").exists(), "{}", std::fs::read_to_string(place.path("missing")).unwrap_or_default());
    }
}

/// What another execution would see, or what would be lost, is said and respected.
#[test]
fn no_snapshot_where_executions_would_meet() {
    let place = Place::new();
    compile(&place, "handed_over");
    for (extra, reason) in [
        ("pipe", "the program had more open than files that it reads"),
        ("writes", "the program had more open than files that it reads"),
        ("folder", "the program had made, changed or removed files"),
        ("closed", "the program had made, changed or removed files"),
        ("shared", "the program shared memory with other processes"),
        ("timer", "the program had set a timer"),
        ("child", "the program had started other processes"),
    ] {
        let bounds = ["--preemptions", "1", "--schedules", "20", "--processes", "1"];
        let (ended, _) = witness(&place, &format!("store-{extra}"), &bounds, &["./handed_over", "2", "10", extra]);
        let (_, said) = searched(&ended.expect(0, &[]));
        let expected = format!("executions began at the beginning where there could be no process snapshot: {reason}");
        assert_eq!(said, [expected]);
        assert!(!place.path("missing").exists(), "{}", std::fs::read_to_string(place.path("missing")).unwrap_or_default());
    }
}
