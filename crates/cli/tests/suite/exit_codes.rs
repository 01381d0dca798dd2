//! Exit codes and what goes with them, as `rashomon --help` documents them.

use crate::support::place::{Place, RACE, statuses};
use serde_json::Value;

fn race() -> Place {
    let place = Place::new();
    place.compile("race", RACE);
    place
}

/// Two race-free threads; ends as its argument says.
const ENDS: &str = "#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *task(void *unused) { return 0; }
int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    if (!strcmp(arguments[1], \"abort\")) abort();
    if (!strcmp(arguments[1], \"term\")) kill(getpid(), SIGTERM);
    if (!strcmp(arguments[1], \"wait\")) for (;;) pause();
    return atoi(arguments[1]);
}
";

#[test]
fn what_fails_is_chosen() {
    let place = race();
    let check = |options: &[&str]| {
        let arguments: Vec<&str> = ["check"].iter().chain(options).chain(&["--", "./race"]).copied().collect();
        place.rashomon(&arguments)
    };
    check(&[]).expect(66, &["1 proven"]);
    check(&["--fail-on", "proven"]).expect(66, &["1 proven"]);
    check(&["--fail-on", "predicted"]).expect(66, &["1 proven"]);
    check(&["--fail-on", "never"]).expect(0, &["1 proven"]);
    // Nothing is forced without a budget; the prediction stays.
    check(&["--budget", "0"]).expect(0, &["0 proven, 1 predicted", "untried"]);
    check(&["--budget", "0", "--fail-on", "predicted"]).expect(66, &["0 proven, 1 predicted"]);
    check(&["--budget", "0", "--fail-on", "never"]).expect(0, &["0 proven, 1 predicted"]);
    check(&["--fail-on", "sometimes"]).expect(2, &["sometimes"]);
}

#[test]
fn the_program_s_own_end_is_ours() {
    let place = Place::new();
    place.compile("ends", ENDS);
    // What a program brings upon itself is a finding.
    place.rashomon(&["check", "--", "./ends", "abort"]).expect(66, &["1 proven"]);
    for (how, code) in [("0", 0), ("7", 7), ("255", 255), ("abort", 134), ("term", 143)] {
        place.rashomon(&["check", "--fail-on", "never", "--", "./ends", how]).expect(code, &[]);
        place.rashomon(&["record", "--", "./ends", how]).expect(code, &[]);
    }
    place.rashomon(&["check", "--timeout", "0.5", "--", "./ends", "wait"]).expect(124, &["ended"]);
}

#[test]
fn findings_outweigh_the_program_s_own_code() {
    let place = Place::new();
    place.compile("race", &RACE.replace("return 0;\n}\n", "return 7;\n}\n"));
    place.rashomon(&["check", "--", "./race"]).expect(66, &["1 proven", "exit code 7"]);
    place.rashomon(&["check", "--fail-on", "never", "--", "./race"]).expect(7, &["1 proven"]);
    place.rashomon(&["record", "--", "./race"]).expect(7, &[]);
}

#[test]
fn a_deadlock_is_an_end_of_its_own() {
    let place = Place::new();
    place.compile("deadlock", &crate::support::place::program_text("measured/deadlock.c"));
    place.rashomon(&["check", "--", "./deadlock"]).expect(66, &["1 proven", "every thread was blocked"]);
    place.rashomon(&["check", "--fail-on", "never", "--", "./deadlock"]).expect(124, &["1 proven"]);
    place.rashomon(&["record", "--", "./deadlock"]).expect(124, &[]);
}

#[test]
fn programs_that_cannot_be_run() {
    let place = Place::new();
    place.write("text", "no program");
    for command in ["check", "record"] {
        place.rashomon(&[command, "--", "./absent"]).expect(127, &["./absent: no such program"]);
        place.rashomon(&[command, "--", "./text"]).expect(126, &["not an executable file"]);
        place.rashomon(&[command, "--", "true"]).expect(125, &["not instrumented", "rashomon cc"]);
    }
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    let lines =
        ["chek", "check", "check --", "check --no-such-option -- true", "check --timeout soon -- true", "record", "replay"];
    for line in lines {
        place.rashomon(&line.split(' ').collect::<Vec<_>>()).expect(2, &["--help"]);
    }
    place.rashomon(&["report"]).expect(125, &["no store", "rashomon check"]);
    place.rashomon(&["replay", "race-1"]).expect(125, &["no store"]);
}

#[test]
fn json_keeps_status_and_exit_apart() {
    let place = race();
    let report = |arguments: &[&str], code: i32| {
        let ended = place.rashomon(arguments).expect(code, &[]);
        serde_json::from_str::<Value>(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended}"))
    };
    let proven = report(&["check", "--json", "-", "--", "./race"], 66);
    assert_eq!(proven["status"], "proven");
    assert_eq!(proven["run"]["exit"], serde_json::json!({ "kind": "code", "code": 0 }));
    assert_eq!(proven["counts"]["proven"], 1);
    let predicted = report(&["check", "--budget", "0", "--json", "-", "--", "./race"], 0);
    assert_eq!(predicted["status"], "predicted");
    assert_eq!(predicted["run"]["untried"], 1);
    place.compile("ends", ENDS);
    let clean = report(&["check", "--json", "-", "--", "./ends", "term"], 143);
    assert_eq!(clean["status"], "clean");
    assert_eq!(clean["run"]["exit"], serde_json::json!({ "kind": "signal", "signal": 15 }));
    assert_eq!(clean["findings"], serde_json::json!([]));
}

#[test]
fn several_recordings_are_merged() {
    let place = race();
    place
        .rashomon(&["check", "--recordings", "3", "--json", "report.json", "--", "./race"])
        .expect(66, &["1 proven", "3 recordings"]);
    let report = place.json("report.json");
    assert_eq!(report["run"]["recordings"], 3);
    assert_eq!(statuses(&report).len(), 1);
    for number in 0..3 {
        let folder = format!(".rashomon/latest/recording-{number}");
        place.rashomon(&["trace", "verify", &folder]).expect(0, &[]);
    }
    assert!(!place.path(".rashomon/latest/recording-3").exists());
    let policies = place.json(".rashomon/latest/run.json")["recordings"].clone();
    let seeds: Vec<u64> = policies.as_array().into_iter().flatten().filter_map(|one| one["seed"].as_u64()).collect();
    assert_eq!(seeds, [1, 2, 3]);
}

#[test]
fn the_world_is_restored_before_every_execution() {
    let place = Place::new();
    // Ends with 3 unless its world is as it was at first.
    let source = RACE
        .replace("#include <pthread.h>", "#include <fcntl.h>\n#include <pthread.h>")
        .replace("pthread_t thread;", "if (open(\"world\", O_CREAT | O_EXCL, 0600) < 0) return 3; pthread_t thread;");
    place.compile("race", &source);
    let restore = "rm -f world; echo >> executions";
    place.rashomon(&["check", "--before-each", restore, "--json", "report.json", "--", "./race"]).expect(66, &["1 proven"]);
    let executions = || std::fs::read_to_string(place.path("executions")).unwrap_or_default().lines().count() as u64;
    let report = place.json("report.json");
    assert_eq!(report["run"]["exit"]["code"], 0);
    let forced = report["run"]["executions"].as_u64().expect("a number");
    assert!(forced >= 2, "proven means twice: {forced}");
    // Each recorded one, and a whole one at the end.
    let recorded = report["run"]["recordings"].as_u64().expect("a number");
    assert!(recorded > 1);
    assert_eq!(executions(), recorded + forced + 1);
    assert!(place.path("world").exists(), "the last execution ran to its end");
    let id = statuses(&report).remove(0).0;
    place.rashomon(&["replay", &id]).expect(0, &[]);
    assert_eq!(executions(), recorded + forced + 2);
    place.rashomon(&["confirm"]).expect(66, &["1 proven"]);
    assert!(executions() >= recorded + forced + 5);
}

#[test]
fn a_world_that_cannot_be_restored_ends_the_run() {
    let place = race();
    place.rashomon(&["check", "--before-each", "exit 9", "--", "./race"]).expect(125, &["before each execution", "exit code 9"]);
}

#[test]
fn the_store_reports_what_check_reported() {
    let place = race();
    let ended = place.rashomon(&["check", "--json", "report.json", "--", "./race"]).expect(66, &[]);
    let text = place.rashomon(&["report"]).expect(0, &[]);
    assert_eq!(text.out, ended.err);
    assert_eq!(place.rashomon(&["report", "--format", "text"]).expect(0, &[]).out, ended.err);
    let json = place.rashomon(&["report", "--format", "json"]).expect(0, &[]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json, place.json("report.json"));
    assert_eq!(json["format"], "rashomon-report");
}

#[test]
fn separate_steps_find_what_check_finds() {
    let place = Place::new();
    for name in ["measured/listing1.c", "measured/potential_deadlock.c"] {
        place.compile("program", &crate::support::place::program_text(name));
        let checked = format!("{}-checked", name.replace('/', "-"));
        let stepped = format!("{}-stepped", name.replace('/', "-"));
        place.rashomon(&["check", "-o", &checked, "--json", "checked.json", "--", "./program"]).expect(66, &[]);
        place.rashomon(&["record", "-o", &stepped, "--", "./program"]).expect(0, &[]);
        place.rashomon(&["predict", &stepped, "--json", "predicted.json"]).expect(0, &["0 proven"]);
        place.rashomon(&["confirm", &stepped, "--json", "confirmed.json"]).expect(66, &[]);
        let (checked, predicted, confirmed) =
            (place.json("checked.json"), place.json("predicted.json"), place.json("confirmed.json"));
        assert_eq!(statuses(&checked), statuses(&confirmed));
        assert_eq!(checked["status"], "proven");
        // What was only suspected may not be shown, but nothing new is.
        let known: Vec<String> = statuses(&checked).into_iter().map(|(id, _)| id).collect();
        assert!(statuses(&predicted).iter().all(|(id, status)| known.contains(id) && status != "proven"));
    }
}
