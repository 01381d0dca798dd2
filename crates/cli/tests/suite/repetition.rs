//! What only repeats itself is not recorded for ever, while the program goes on; and a parallel run waits at its end for the
//! threads that still run, but for no others.

use crate::support::place::Place;
use std::path::Path;
use std::time::{Duration, Instant};

/// More than two million operations at the same places, and something new behind them.
const LONG: &str = "#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *work(void *p) {
    for (int i = 0; i < 1200000; i++) { pthread_mutex_lock(&m); sum++; pthread_mutex_unlock(&m); }
    return p;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    work(0);
    pthread_join(t, 0);
    printf(\"%ld\\n\", sum);
    return 0;
}
";

fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| if entry.path().is_dir() { bytes_of(&entry.path()) } else { entry.metadata().map_or(0, |data| data.len()) })
        .sum()
}

#[test]
fn a_recording_is_a_beginning_of_what_repeats_itself() {
    let place = Place::new();
    place.compile("program", LONG);
    // Not quiet: what was left out is told.
    let tool = env!("CARGO_BIN_EXE_rashomon");
    let ended = place.run(place.command(tool, &["record", "--output", "store", "--", "./program"]));
    let ended = ended.expect(0, &["nothing was recorded any more"]);
    assert_eq!(ended.out, "2400000\n", "{ended}");
    let bytes = bytes_of(&place.path("store"));
    assert!(bytes < 128 << 20, "{bytes} bytes");
    place.rashomon(&["replay", "--recording", "store", "--output", "again"]).expect(0, &[]);
}

/// One thread is blocked for ever: the end of the process does not wait for it.
const BLOCKED: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *block(void *p) { pthread_mutex_lock(&m); return p; }
int main(void) {
    pthread_t t;
    pthread_mutex_lock(&m);
    pthread_create(&t, 0, block, 0);
    return 0;
}
";

#[test]
fn nobody_waits_for_a_thread_that_is_blocked() {
    let place = Place::new();
    place.compile("program", BLOCKED);
    let begin = Instant::now();
    // Far more than this test may take.
    place.rashomon(&["detect", "-O", "atexit_sleep_ms=600000", "--", "./program"]).expect(0, &[]);
    assert!(begin.elapsed() < Duration::from_secs(60));
}

/// The race comes about while the process ends: the last handler of `exit` lets both threads go.
const LATE: &str = "#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
static int x;
static sem_t ends;
static void *late(void *p) { sem_wait(&ends); x++; return p; }
static void release(void) { sem_post(&ends); sem_post(&ends); }
int main(void) {
    pthread_t t;
    atexit(release);
    pthread_create(&t, 0, late, 0);
    pthread_create(&t, 0, late, 0);
    return 0;
}
";

#[test]
fn a_parallel_run_waits_for_threads_that_run() {
    let place = Place::new();
    place.compile("program", LATE);
    place.rashomon(&["detect", "-O", "report_thread_leaks=0", "--", "./program"]).expect(66, &["data race"]);
}

/// A table of locks, of which one is used, and a race behind it.
fn table(locks: u32) -> String {
    format!(
        "#include <pthread.h>
#include <stdlib.h>
static int x;
static pthread_spinlock_t *table;
static void *task(void *p) {{
    pthread_spin_lock(table);
    pthread_spin_unlock(table);
    x++;
    return p;
}}
int main(void) {{
    pthread_t t;
    table = malloc({locks} * sizeof *table);
    for (int i = 0; i < {locks}; i++) pthread_spin_init(table + i, 0);
    pthread_create(&t, 0, task, 0);
    x++;
    pthread_join(t, 0);
    return 0;
}}
"
    )
}

#[test]
fn a_table_of_locks_is_no_repetition() {
    let place = Place::new();
    place.compile("program", &table(2_500_000));
    place.rashomon(&["check", "--budget", "20", "--output", "store", "--", "./program"]).expect(66, &["global x"]);
    let bytes = bytes_of(&place.path("store"));
    assert!(bytes < 128 << 20, "{bytes} bytes");
}

#[test]
fn the_detector_holds_tables_of_locks() {
    let place = Place::new();
    place.compile("program", &table(17_000_000));
    place.rashomon(&["detect", "--", "./program"]).expect(66, &["data race"]);
}
