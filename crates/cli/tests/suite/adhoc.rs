//! A plain flag hands data over: the race on it is told as the cause of those on the data.

use crate::support::place::Place;
use serde_json::Value;

const HANDED_OVER: &str = "#include <pthread.h>
#include <sched.h>
#include <stdio.h>
static int first, second, third;
static FLAG ready;
static void *task(void *p) {
    first = 1;
    second = 2;
    third = 3;
    ready = 1;
    return p;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    while (!ready)
        sched_yield();
    int sum = first;
    sum += second;
    sum += third;
    pthread_join(thread, 0);
    printf(\"%d\\n\", sum);
    return 0;
}
";

const COUNTED: &str = "#include <pthread.h>
static int first, second, third;
static void *task(void *p) {
    for (int i = 0; i < 10; i++) {
        first++;
        second++;
        third++;
    }
    return p;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    task(0);
    return pthread_join(thread, 0);
}
";

/// What is proven, with the notes on the order of races.
fn check(source: &str) -> Vec<(String, String)> {
    let place = Place::new();
    place.compile("program", source);
    let arguments = ["check", "--recordings", "2", "--engines", "force,adhoc", "--json", "report.json", "--output", "store"];
    place.rashomon(&[&arguments[..], &["--", "./program"]].concat());
    let report: Value = place.json("report.json");
    let told = |finding: &Value| {
        let notes = finding["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let told = notes.filter(|note| note.contains(" race: ")).collect::<Vec<_>>().join("; ");
        (finding["subject"].as_str().unwrap_or_default().to_owned(), told)
    };
    let proven = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven");
    let mut all: Vec<_> = proven.map(told).collect();
    all.sort();
    all
}

#[test]
fn the_race_on_a_flag_orders_those_on_what_it_hands_over() {
    let told = check(&HANDED_OVER.replace("FLAG", "volatile int"));
    assert_eq!(told.len(), 4, "{told:?}");
    for (subject, note) in &told {
        if subject.contains("ready") {
            assert_eq!(note, "synchronisation race: if its accesses were atomic, 3 other proven races of 3 would be ordered");
        } else {
            assert!(note.starts_with("apparent race: ordered if the accesses of race-"), "{subject}: {note}");
            assert!(note.contains("(global ready (4 bytes)) were atomic"), "{subject}: {note}");
        }
    }
}

#[test]
fn where_the_flag_is_atomic_there_is_no_race() {
    assert_eq!(check(&HANDED_OVER.replace("FLAG", "_Atomic int")), []);
}

#[test]
fn of_races_that_order_nothing_nothing_is_told() {
    let told = check(COUNTED);
    assert!(told.len() >= 3, "{told:?}");
    assert!(told.iter().all(|(_, note)| note.is_empty()), "{told:?}");
}
