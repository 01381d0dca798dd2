//! ThreadSanitizer's options that bound memory: the shadow is given up while the program runs, and races with what comes later
//! are still found.

use crate::support::place::Place;

/// Touches 64 MiB, which takes twice as much shadow, and waits until that is gone. Then there are races.
const PROGRAM: &str = "#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int x, turn;
static void pass(int to) { __atomic_store_n(&turn, to, __ATOMIC_RELAXED); }
static void until(int wanted) { while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != wanted) sched_yield(); }
static long megabytes(void) {
    long size, resident = 0;
    FILE *file = fopen(\"/proc/self/statm\", \"r\");
    if (fscanf(file, \"%ld %ld\", &size, &resident) != 2) exit(3);
    fclose(file);
    return resident / 256;
}
/* In turns, so that some two accesses have no flush in between. */
static void *task(void *unused) {
    for (int i = 0; i < 50; i++) { until(1); x++; pass(0); }
    return 0;
}
int main(int count, char **arguments) {
    pthread_t thread;
    if (count > 1) pthread_create(&thread, 0, task, 0);
    volatile long *bytes = malloc(64 << 20);
    for (long at = 0; at < 8 << 20; at++) bytes[at] = at;
    while (megabytes() > 130) sched_yield();
    if (count > 1) {
        for (int i = 0; i < 50; i++) { until(0); x++; pass(1); }
        pthread_join(thread, 0);
    }
    return 0;
}
";

fn detect(options: &[&str], threads: bool) -> crate::support::place::Ended {
    let place = Place::new();
    place.compile("program", PROGRAM);
    let options: Vec<&str> = options.iter().flat_map(|option| ["-O", option]).collect();
    let program: &[&str] = if threads { &["--", "./program", "threads"] } else { &["--", "./program"] };
    place.rashomon(&[&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0"], options.as_slice(), program].concat())
}

const RACE: &str = "WARNING: ThreadSanitizer: data race";

#[test]
fn above_a_limit() {
    detect(&["memory_limit_mb=150"], true).expect(66, &[RACE]);
}

#[test]
fn every_so_often() {
    for detector in ["hb", "lockset", "hybrid"] {
        detect(&["flush_memory_ms=50", &format!("detector={detector}")], true).expect(66, &[RACE]);
    }
}

#[test]
fn before_the_first_thread() {
    detect(&["memory_limit_mb=150", "force_background_thread=1"], false).expect(0, &[]);
}
