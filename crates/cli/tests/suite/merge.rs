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

/// Of every other command that divides its work.
#[test]
fn parts_of_other_commands() {
    let place = Place::new();
    program(&place, "racy", "0", "0");
    for command in ["provoke", "explore", "witness"] {
        let options: &[&str] = match command {
            // The race is no failure that a schedule shows by itself.
            "explore" => &["--strategy", "preemptions", "--accesses", "all"],
            // What comes behind the last pair is a matter of time.
            "provoke" => &["--policy", "run-to-block", "--second-look", "0"],
            _ => &["--policy", "run-to-block"],
        };
        let run = |store: &str, share: &[&str]| {
            let common = [command, "--quiet", "--fail-on", "never", "--json", "own.json", "--output", store];
            place.rashomon(&[&common[..], options, share, &["--", "./racy"]].concat()).expect(0, &[]);
            let own = place.json("own.json");
            (ids(&own), own["run"]["executions"].as_u64().unwrap_or(0))
        };
        let (whole, executions) = run(&format!("{command}-whole"), &[]);
        let shares = ["1/3", "2/3", "3/3"];
        let parts = shares.map(|share| run(&format!("{command}-{}", &share[..1]), &["--shard", share]));
        let found: BTreeSet<String> = parts.iter().flat_map(|(found, _)| found.iter().cloned()).collect();
        assert_eq!(found, whole, "{command}");
        assert!(whole.is_empty() == (command == "explore"), "{command}: {whole:?}");
        // Pairs that are provoked together share executions.
        let fewer = parts.iter().all(|(_, of_part)| *of_part <= executions);
        assert!(fewer || command == "provoke", "{command}: {parts:?} of {executions}");
        let stores = ["1", "2", "3"].map(|number| format!("{command}-{number}"));
        let merge = ["merge", "--fail-on", "never", "--json", "merged.json", &stores[0], &stores[1], &stores[2]];
        place.rashomon(&merge).expect(0, &[]);
        assert_eq!(ids(&place.json("merged.json")), whole, "{command}");
    }
    let dpor = ["explore", "--strategy", "dpor", "--shard", "1/2", "--", "./racy"];
    place.rashomon(&dpor).expect(125, &["`preemptions` has"]);
}

#[test]
fn parts_of_recordings() {
    let place = Place::new();
    program(&place, "racy", "0", "0");
    let seeds = |store: &str, share: &[&str]| {
        let common = ["record", "--quiet", "--recordings", "5", "--output", store];
        place.rashomon(&[&common[..], share, &["--", "./racy"]].concat()).expect(0, &[]);
        let run = place.json(&format!("{store}/run.json"));
        let recorded = run["recordings"].as_array().into_iter().flatten();
        recorded.map(|one| (one["policy"].to_string(), one["seed"].to_string())).collect::<Vec<_>>()
    };
    let whole = seeds("whole", &[]);
    let (one, two) = (seeds("one", &["--shard", "1/2"]), seeds("two", &["--shard", "2/2"]));
    assert_eq!((whole.len(), one.len(), two.len()), (5, 3, 2));
    let dealt: BTreeSet<_> = one.into_iter().chain(two).collect();
    assert_eq!(dealt, whole.into_iter().collect());
    let few = ["record", "--recordings", "2", "--shard", "1/3", "--", "./racy"];
    place.rashomon(&few).expect(125, &["--recordings has to be 3 at least"]);
    // Recordings are what a prediction divides.
    let predict = |share: &[&str]| {
        place
            .rashomon(&[&["predict", "--quiet", "--fail-on", "never", "--json", "p.json"], share, &["whole"]].concat())
            .expect(0, &[]);
        let told = place.json("p.json");
        (ids(&told), told["run"]["events"].as_u64().unwrap_or(0))
    };
    let (one, two) = (predict(&["--shard", "1/2"]), predict(&["--shard", "2/2"]));
    let whole = predict(&[]);
    assert!(!whole.0.is_empty());
    assert!(one.1 > 0 && two.1 > 0 && one.1 + two.1 == whole.1, "{one:?} {two:?} {whole:?}");
    place.rashomon(&["predict", "--shard", "1/6", "whole"]).expect(125, &["5 recordings"]);
    place.rashomon(&["predict", "--shard", "1/2", "whole/recording-0"]).expect(125, &["is no store"]);
}
