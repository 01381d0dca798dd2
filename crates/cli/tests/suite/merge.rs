//! Several checks, of programs or of parts that `--shard` made, are one report with one exit code.

use crate::support::place::Place;
use serde_json::Value;
use std::collections::BTreeSet;

const COUNTED: &str = "#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *task(void *p) {
    if (GUARDED) pthread_mutex_lock(&lock);
    counter++;
    if (GUARDED) pthread_mutex_unlock(&lock);
    return p;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    task(0);
    pthread_join(thread, 0);
    return EXIT;
}
";

/// Whatever the machine: one recording shows this race.
const QUICK: [&str; 6] = ["check", "--quiet", "--recordings", "1", "--engines", "force"];

fn program(place: &Place, name: &str, guarded: &str, exit: &str) {
    place.compile(name, &COUNTED.replace("GUARDED", guarded).replace("EXIT", exit));
}

fn check(place: &Place, name: &str, store: &str, options: &[&str]) {
    let program = format!("./{name}");
    place.rashomon(&[&QUICK[..], options, &["--output", store, "--", &program]].concat());
}

fn ids(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| Some(finding["id"].as_str()?.to_owned())).collect()
}

#[test]
fn one_gate_for_several_programs() {
    let place = Place::new();
    program(&place, "racy", "0", "0");
    program(&place, "mended", "1", "0");
    program(&place, "failing", "1", "3");
    for name in ["racy", "mended", "failing"] {
        check(&place, name, &format!("{name}-store"), &[]);
    }
    let merge = ["merge", "--json", "r.json", "--report", "junit=r.xml"];
    let ended = place.rashomon(&[&merge[..], &["racy-store", "mended-store", "racy-store"]].concat());
    let ended = ended.expect(66, &["PROVEN: 1 data race", "shown by the check of racy", "replay"]);
    let report = place.json("r.json");
    let cases = report["run"]["test_cases"].as_array().expect("a test case for each program");
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    assert_eq!(names, ["racy", "mended"], "what is given twice is there once");
    let found: Vec<usize> = cases.iter().map(|case| case["findings"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(found, [1, 0]);
    let told = std::fs::read_to_string(place.path("r.xml")).expect("a report of JUnit");
    assert!(told.contains("tests=\"2\" failures=\"1\""), "{told}");
    // What one check tried is told; of several each store tells it.
    let alone = place.rashomon(&["merge", "mended-store"]).expect(0, &["0 proven", "note: tried: "]);
    assert!(!alone.to_string().contains("the report of each store"), "{alone}");
    assert!(!ended.to_string().contains("tried: ") && ended.to_string().contains("the report of each store says"), "{ended}");
    place.rashomon(&["merge", "mended-store", "failing-store"]).expect(3, &["0 proven"]);
    // What is known is no reason to fail.
    place.rashomon(&["accept", "--all", "--store", "racy-store"]).expect(0, &["1 finding added"]);
    place.rashomon(&["merge", "--baseline", "rashomon.baseline", "racy-store", "mended-store"]).expect(0, &["0 proven"]);
    // Folders may be moved.
    std::fs::rename(place.path("racy-store"), place.path("elsewhere")).expect("a store is a folder");
    place.rashomon(&["merge", "elsewhere"]).expect(66, &["PROVEN: 1 data race"]);
}

#[test]
fn what_is_no_store_is_told_and_nothing_is_merged() {
    let place = Place::new();
    program(&place, "racy", "0", "0");
    check(&place, "racy", "store", &[]);
    std::fs::create_dir(place.path("empty")).expect("a new folder");
    place.rashomon(&["merge", "--json", "r.json", "store", "empty"]).expect(125, &["cannot merge empty"]);
    assert!(!place.path("r.json").exists());
    for share in ["3/2", "0/2", "half"] {
        place.rashomon(&["check", "--shard", share, "--", "./racy"]).expect(2, &["such as 2/5"]);
    }
}

#[test]
fn parts_of_a_check_are_one_report() {
    let place = Place::new();
    program(&place, "racy", "0", "0");
    check(&place, "racy", "whole", &[]);
    check(&place, "racy", "one", &["--shard", "1/2"]);
    check(&place, "racy", "two", &["--shard", "2/2"]);
    place.rashomon(&["merge", "--json", "whole.json", "whole"]).expect(66, &[]);
    place.rashomon(&["merge", "--json", "parts.json", "one", "two"]).expect(66, &["PROVEN: 1 data race"]);
    let (whole, parts) = (place.json("whole.json"), place.json("parts.json"));
    assert_eq!(ids(&whole), ids(&parts));
    assert_eq!(parts["run"]["recordings"], 2);
    assert_eq!(parts["run"]["test_cases"], whole["run"]["test_cases"], "parts are no programs of their own");
    assert!(!parts["findings"].to_string().contains("shown by the check"), "{parts}");
}
