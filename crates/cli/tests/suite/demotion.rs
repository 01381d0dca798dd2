//! A deadlock that was recorded and does not come about again is no proof, also if another one does in its place.

use crate::support::place::{Place, statuses};

/// The thread locks again what it holds, where a file's first character says. Whoever executes it counts.
const PROGRAM: &str = "#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int where;
static void *task(void *p) {
    int which = *(int *)p;
    pthread_mutex_lock(&lock);
    if (which == 'a') {
        pthread_mutex_lock(&lock);
        where = 1;
    }
    if (which == 'b') {
        pthread_mutex_lock(&lock);
        where = 2;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}
int main(void) {
    pthread_t thread;
    FILE *file = fopen(\"state\", \"r\");
    int which = file ? fgetc(file) : 'c';
    if (file)
        fclose(file);
    pthread_create(&thread, 0, task, &which);
    pthread_join(thread, 0);
    return 0;
}
";
/// The first execution finds what `first` says, all others what `next` says.
const NEXT: &str = "if [ -e begun ]; then cp next state; else cp first state; touch begun; fi";

/// Id and status of the deadlocks of one recording.
#[track_caller]
fn checked(first: &str, next: &str, code: i32) -> (Place, Vec<(String, String)>) {
    checked_within("20", NEXT, first, next, code)
}

#[track_caller]
fn checked_within(budget: &str, before: &str, first: &str, next: &str, code: i32) -> (Place, Vec<(String, String)>) {
    let place = Place::new();
    place.compile("program", PROGRAM);
    place.write("first", first);
    place.write("next", next);
    let check =
        ["check", "--recordings", "1", "--budget", budget, "--json", "report.json", "--output", "store", "--engines", "force"];
    let arguments = [&check[..], &["--show", "suspicions", "--before-each", before, "--", "./program"]].concat();
    place.rashomon(&arguments).expect(code, &[]);
    let found = statuses(&place.json("report.json"));
    let deadlocks = found.into_iter().filter(|(id, _)| id.starts_with("deadlock")).collect();
    (place, deadlocks)
}

#[test]
fn what_comes_about_again_is_proven() {
    let (place, found) = checked("a", "a", 66);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "proven"), "{found:?}");
    assert_eq!(replays(&place), [(1, 1)]);
}

/// Of the deadlocks in the report.
fn replays(place: &Place) -> Vec<(u64, u64)> {
    let report = place.json("report.json");
    let deadlocks = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["kind"] == "deadlock");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    deadlocks.map(|finding| &finding["replays"]).map(|replays| (number(&replays["shown"]), number(&replays["of"]))).collect()
}

#[test]
fn a_replay_that_fails_is_tried_again() {
    // The second execution, which is the first replay, goes another way.
    let before = "if [ -e begun ] && [ ! -e tried ]; then cp next state; touch tried; else cp first state; touch begun; fi";
    let (place, found) = checked_within("20", before, "a", "c", 66);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "proven"), "{found:?}");
    assert_eq!(replays(&place), [(1, 2)]);
}

#[test]
fn what_there_was_no_time_to_replay_says_so() {
    let (place, found) = checked_within("0", NEXT, "a", "c", 66);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "proven"), "{found:?}");
    assert_eq!(replays(&place), [(0, 0)]);
    let report = place.rashomon(&["report", "--store", "store"]).expect(0, &[]);
    assert!(report.out.contains("seen in one execution, and not replayed"), "{report}");
}

#[test]
fn what_does_not_is_demoted() {
    let (_, found) = checked("a", "c", 124);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "diverged"), "{found:?}");
}

#[test]
fn another_one_in_its_place_does_not_prove_it() {
    let (_, found) = checked("a", "b", 124);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "diverged"), "{found:?}");
}

#[test]
fn a_replay_that_ends_in_another_one_is_not_the_same_again() {
    let (place, found) = checked("a", "a", 66);
    let replay = |next: &str, code: i32| {
        place.write("next", next);
        place.rashomon(&["replay", "--store", "store", &found[0].0]).expect(code, &[]);
    };
    replay("a", 0);
    replay("b", 1);
    replay("c", 1);
    replay("a", 0);
}
