//! The TREE filter loses no race: threads take turns in a fixed order, with the filter off and on, under every detector.
//!
//! The turn is a relaxed atomic, which orders nothing.

use crate::support::place::Place;
use std::collections::BTreeSet;

/// The first thread works under its lock in a loop, so that its contexts come back and its accesses become redundant; then the
/// second does what races with some of it.
fn program(first: &str, second: &str, again: &str) -> String {
    format!(
        "#include <pthread.h>
#include <stdatomic.h>
static atomic_int turn;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static int x, y, z;
static void until(int wanted) {{ while (atomic_load_explicit(&turn, memory_order_relaxed) != wanted) ; }}
static void pass(int next) {{ atomic_store_explicit(&turn, next, memory_order_relaxed); }}
static void work(int i) {{ {first} }}
static void *other(void *unused) {{
    until(1);
    {second};
    pass(2);
    until(3);
    {again};
    return 0;
}}
int main(void) {{
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    for (int i = 0; i < 50; i++)
        work(i);
    pass(1);
    until(2);
    for (int i = 0; i < 50; i++)
        work(i);
    pass(3);
    pthread_join(thread, 0);
    return x + y + z > 1000000;
}}
"
    )
}

/// For each race the lines of its two accesses.
fn races(place: &Place, detector: &str, filter: &str) -> BTreeSet<Vec<String>> {
    let ended = place.rashomon(&["detect", "--format", "tsan", "--detector", detector, "--filter", filter, "--", "./race"]);
    let reports = ended.err.split("WARNING: ThreadSanitizer: data race").skip(1);
    let line = |frame: &str| frame.split("race.c:").nth(1).map(|rest| rest.split([':', ' ']).next().unwrap_or("").to_owned());
    reports
        .map(|report| {
            let mut lines: Vec<String> =
                report.lines().filter(|frame| frame.trim().starts_with("#0 ")).take(2).filter_map(line).collect();
            lines.sort();
            lines
        })
        .collect()
}

/// How many races each detector reports: happens-before, lock sets, hybrid.
#[track_caller]
fn none_lost(first: &str, second: &str, again: &str) -> [usize; 3] {
    let place = Place::new();
    place.compile("race", &program(first, second, again));
    ["hb", "lockset", "hybrid"].map(|detector| {
        let without = races(&place, detector, "none");
        let with = races(&place, detector, "tree");
        // Cells that nobody rewrites remember more: with the filter there may be more.
        assert!(without.is_subset(&with), "{detector}: {without:?} {with:?}: {first} / {second} / {again}");
        with.len()
    })
}

const LOCKED: &str = "pthread_mutex_lock(&m);\n x++;\n pthread_mutex_unlock(&m);";

#[test]
fn an_access_without_the_lock() {
    let found = none_lost(LOCKED, "x = 1", "x = 2");
    assert!(found.iter().all(|&races| races > 0), "{found:?}");
}

#[test]
fn another_lock() {
    let under_other = "pthread_mutex_lock(&n);\n x = 1;\n pthread_mutex_unlock(&n)";
    let found = none_lost(LOCKED, under_other, under_other);
    assert!(found.iter().all(|&races| races > 0), "{found:?}");
}

#[test]
fn a_lock_taken_in_between_orders_the_earlier_accesses_only() {
    // What was done outside before the lock was handed over is ordered; what is done outside after that is not.
    let outside = "x = i;\n pthread_mutex_lock(&m);\n y++;\n pthread_mutex_unlock(&m);\n x = i + 1;";
    let take = "pthread_mutex_lock(&m);\n pthread_mutex_unlock(&m);\n";
    let [hb, ..] = none_lost(outside, take, "z = x");
    assert!(hb > 0);
}

#[test]
fn nothing_where_a_lock_protects_all() {
    // Lock sets know no join: the last line reads without the lock.
    let [hb, _, hybrid] = none_lost(LOCKED, LOCKED, LOCKED);
    assert_eq!([hb, hybrid], [0, 0]);
}
