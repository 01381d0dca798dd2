//! Wrong uses of locks and condition variables that the recording does not show: predicted from one recording, in which the
//! threads ran one after the other, forced, and replayed. Their correct twins are silent.

use crate::support::place::{Place, statuses};
use serde_json::Value;

const BY_CHANCE: &str = include_str!("../../../../tests/programs/racy/mutex_destroyed_by_chance.c");
const BEHIND_A_COUNT: &str = include_str!("../../../../tests/programs/race_free/mutex_destroyed_behind_a_count.c");

/// The flag is set while the lock is held: who sees it may destroy the lock too early. Correct: behind the section.
const FLAG_WITHIN: &str = "#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int done;
static void *task(void *unused) {
    pthread_mutex_lock(&lock);
    if (WITHIN) atomic_store(&done, 1);
    pthread_mutex_unlock(&lock);
    if (!WITHIN) atomic_store(&done, 1);
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    while (!atomic_load(&done)) sched_yield();
    pthread_mutex_destroy(&lock);
    pthread_join(thread, 0);
    return 0;
}
";

/// A lock is initialised by a thread that another one runs behind only by chance.
const LATE: &str = "#include <pthread.h>
static pthread_mutex_t late, q = PTHREAD_MUTEX_INITIALIZER;
static void *starter(void *unused) {
    pthread_mutex_init(&late, 0);
    pthread_mutex_lock(&q);
    pthread_mutex_unlock(&q);
    return 0;
}
static void *user(void *unused) {
    pthread_mutex_lock(&q);
    pthread_mutex_unlock(&q);
    pthread_mutex_lock(&late);
    pthread_mutex_unlock(&late);
    return 0;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, starter, 0);
    pthread_create(&threads[1], 0, user, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

/// A block with a mutex in it is given back by who has taken the lock of a list; the other may still take the mutex.
const GIVEN_BACK: &str = "#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static struct item { char name[64]; pthread_mutex_t lock; } *item;
static void *user(void *unused) {
    pthread_mutex_lock(&item->lock);
    pthread_mutex_unlock(&item->lock);
    pthread_mutex_lock(&list);
    pthread_mutex_unlock(&list);
    return 0;
}
static void *owner(void *unused) {
    pthread_mutex_lock(&list);
    pthread_mutex_unlock(&list);
    free(item);
    return 0;
}
int main(void) {
    item = calloc(1, sizeof *item);
    pthread_mutex_init(&item->lock, 0);
    pthread_t threads[2];
    pthread_create(&threads[0], 0, user, 0);
    pthread_create(&threads[1], 0, owner, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

/// What is found in one recording of the program, whose threads run one after the other, and after it was forced.
fn found(place: &Place, program: &str) -> [Value; 2] {
    place.compile("program", program);
    let record = ["record", "--recordings", "1", "--policy", "run-to-block", "--output", "store", "--", "./program"];
    place.rashomon(&record).expect(0, &[]);
    let reports = ["predict", "confirm"].map(|command| {
        place.rashomon(&[command, "--json", "report.json", "store"]);
        place.json("report.json")
    });
    std::fs::remove_dir_all(place.path("store")).expect("the store is there");
    reports
}

/// It is predicted, and then proven with that grade.
#[track_caller]
fn is_proven(program: &str, (kind, grade): (&str, &str)) {
    let place = Place::new();
    let [predicted, confirmed] = found(&place, program);
    let finding = &predicted["findings"][0];
    assert_eq!((&finding["kind"], &finding["verdict"]), (&kind.into(), &"predicted".into()), "{predicted}");
    assert_eq!(finding["evidence"], "conflict", "{predicted}");
    let finding = &confirmed["findings"][0];
    let told = (&finding["kind"], &finding["verdict"], &finding["grade"]);
    assert_eq!(told, (&kind.into(), &"proven".into(), &grade.into()), "{confirmed}");
}

#[track_caller]
fn is_silent(program: &str) {
    let place = Place::new();
    let [predicted, confirmed] = found(&place, program);
    assert_eq!((statuses(&predicted), statuses(&confirmed)), (vec![], vec![]), "{predicted}");
}

#[test]
fn a_mutex_that_is_destroyed_behind_its_last_use_by_chance() {
    is_proven(BY_CHANCE, ("use-of-destroyed", "observed"));
    is_silent(BEHIND_A_COUNT);
}

#[test]
fn a_mutex_that_may_be_destroyed_while_it_is_held() {
    is_silent(&FLAG_WITHIN.replace("WITHIN", "0"));
    let place = Place::new();
    place.compile("program", &FLAG_WITHIN.replace("WITHIN", "1"));
    place.rashomon(&["check", "--json", "report.json", "--output", "store", "--", "./program"]).expect(66, &[]);
    let report = place.json("report.json");
    let finding = &report["findings"][0];
    assert_eq!((&finding["kind"], &finding["verdict"]), (&"destroy-locked".into(), &"proven".into()), "{report}");
    let id = finding["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "2"]).expect(0, &[]);
}

#[test]
fn a_mutex_that_may_not_be_initialised_yet() {
    is_proven(LATE, ("lifetime-race", "unordered"));
}

#[test]
fn a_mutex_whose_memory_may_be_given_back() {
    is_proven(GIVEN_BACK, ("use-of-destroyed", "observed"));
}

#[test]
fn windows_are_for_the_engine_that_has_them() {
    let place = Place::new();
    place.compile("program", BY_CHANCE);
    place.rashomon(&["record", "--recordings", "1", "--output", "store", "--", "./program"]).expect(0, &[]);
    place.rashomon(&["predict", "--engine", "causality", "--window", "store"]).expect(0, &[]);
    place.rashomon(&["predict", "--engine", "causality", "--window=20", "store"]).expect(0, &[]);
    place.rashomon(&["predict", "--engine", "exact", "--window=20", "store"]).expect(125, &["--engine causality"]);
    place.rashomon(&["predict", "--window=20", "store"]).expect(125, &["--engine causality"]);
}
