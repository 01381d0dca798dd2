//! A deadlock that was recorded and does not come about again is no proof, also if another one does in its place.

mod support;

use support::place::{Place, statuses};

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
    let place = Place::new();
    place.compile("program", PROGRAM);
    place.write("first", first);
    place.write("next", next);
    let check = ["check", "--recordings", "1", "--budget", "20", "--json", "report.json", "--output", "store"];
    let arguments = [&check[..], &["--show", "suspicions", "--before-each", NEXT, "--", "./program"]].concat();
    place.rashomon(&arguments).expect(code, &[]);
    let found = statuses(&place.json("report.json"));
    let deadlocks = found.into_iter().filter(|(id, _)| id.starts_with("deadlock")).collect();
    (place, deadlocks)
}

#[test]
fn what_comes_about_again_is_proven() {
    let (_, found) = checked("a", "a", 66);
    assert!(matches!(found.as_slice(), [(_, status)] if status == "proven"), "{found:?}");
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
