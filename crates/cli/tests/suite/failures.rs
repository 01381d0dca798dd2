//! A wrong end is proven only where schedules that ended well do so again; and what one recording knows is not lost when another
//! one sees the same pair.

use crate::support::place::{Place, statuses};

/// Ends with the number of executions so far, by what they left behind; no schedule has anything to do with it.
const COUNTS: &str = "#include <pthread.h>
#include <stdio.h>
static void *task(void *p) { return p; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    FILE *file = fopen(\"count\", \"a\");
    fputc('x', file);
    long number = ftell(file);
    fclose(file);
    return number <= GOOD ? 0 : number <= GOOD + BAD ? 3 : 4;
}
";

/// Executions that end with 0, and with 3 behind them; all others end with 4.
fn counting(good: u32, bad: u32) -> Place {
    let place = Place::new();
    let source = COUNTS.replace("GOOD", &good.to_string()).replace("BAD", &bad.to_string());
    place.compile("program", &source);
    place
}

#[track_caller]
fn nothing_is_proven_by_check(place: &Place) {
    let check = [
        "check",
        "--recordings",
        "2",
        "--budget",
        "20",
        "--show",
        "suspicions",
        "--json",
        "report.json",
        "--output",
        "store",
        "--",
        "./program",
    ];
    place.rashomon(&check).expect(0, &[]);
    let found = statuses(&place.json("report.json"));
    assert!(!found.is_empty() && found.iter().all(|(_, status)| status == "suspected"), "{found:?}");
}

#[test]
fn what_ended_well_fails_alike() {
    // Two recordings, two replays of the failure, one of the good recording.
    nothing_is_proven_by_check(&counting(1, 100));
}

#[test]
fn what_ended_well_ends_in_a_third_way() {
    // The replays of the failure end with 3 again, the good recording's with 4.
    nothing_is_proven_by_check(&counting(1, 3));
}

#[test]
fn exploration_compares_too() {
    let place = counting(1, 100);
    place
        .rashomon(&[
            "explore",
            "--budget",
            "20",
            "--show",
            "suspicions",
            "--json",
            "report.json",
            "--output",
            "store",
            "--",
            "./program",
        ])
        .expect(0, &[]);
    let found = statuses(&place.json("report.json"));
    assert!(!found.is_empty() && found.iter().all(|(_, status)| status == "suspected"), "{found:?}");
}

/// `got = x` is in no order with `x = 1` where `second` runs first behind the store; another recording shows an order by the
/// lock, and a schedule.
const RELAXED: &str = "#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int x, got;
static atomic_int flag;
static void *first(void *p) {
    x = 1;
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return p;
}
static void *second(void *p) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    if (atomic_load_explicit(&flag, memory_order_relaxed))
        got = x;
    return p;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

#[test]
fn a_recording_with_a_schedule_does_not_hide_one_that_shows_the_pair_unordered() {
    let place = Place::new();
    place.compile("program", RELAXED);
    let proves = |recordings: &str, seed: u32| {
        let (seed, store) = (seed.to_string(), format!("{recordings}-{seed}"));
        let arguments = ["check", "--seed", &seed, "--policy", "random", "--budget", "20", "--json", "report.json"];
        place.rashomon(&[&arguments[..], &["--recordings", recordings, "--output", &store, "--", "./program"]].concat());
        statuses(&place.json("report.json")).iter().any(|(id, status)| id.starts_with("race") && status == "proven")
    };
    // Which seeds show it is the policy's affair.
    let shows: Vec<u32> = (2..30).filter(|&seed| proves("1", seed)).take(2).collect();
    assert!(!shows.is_empty());
    for seed in shows {
        assert!(proves("2", seed - 1), "seed {seed} alone proves it, and behind {} not", seed - 1);
    }
}

const NULL_BETWEEN: &str = include_str!("../../../../tests/loop/null_between.c");
const UNMAPPED_BETWEEN: &str = include_str!("../../../../tests/loop/unmapped_between.c");

/// The crash that `check` proves, and its notes.
#[track_caller]
fn crash(place: &Place, source: &str) -> (String, String) {
    place.compile("program", source);
    place
        .rashomon(&["check", "--recordings", "1", "--json", "report.json", "--output", "store", "--", "./program"])
        .expect(66, &[]);
    let report = place.json("report.json");
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let crash = findings.iter().find(|finding| finding["grade"] == "crashed").unwrap_or_else(|| panic!("{report}"));
    (crash["id"].as_str().unwrap_or_default().to_owned(), crash["notes"].to_string())
}

/// Natively these crash once in a long while.
#[test]
fn a_crash_of_another_schedule_has_the_story_of_its_address() {
    let place = Place::new();
    let (id, notes) = crash(&place, NULL_BETWEEN);
    assert!(
        notes.contains("the last pointer that the thread read before is global shared (8 bytes) at user (program.c:"),
        "{notes}"
    );
    assert!(notes.contains("the main thread at main (program.c:27) had written it last"), "{notes}");
    place.rashomon(&["replay", "--store", "store", &id, "--times", "20"]).expect(0, &[]);
    let place = Place::new();
    let (id, notes) = crash(&place, UNMAPPED_BETWEEN);
    assert!(notes.contains("at the address was mapping of 4096 bytes made at main (program.c:25)"), "{notes}");
    assert!(notes.contains("it was unmapped before by the main thread at main (program.c:29)"), "{notes}");
    place.rashomon(&["replay", "--store", "store", &id, "--times", "20"]).expect(0, &[]);
}

/// A thread follows a pointer that main sets, unless main comes later.
const NULL_LEFT: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int value;
static int *volatile pointer;
static void *task(void *p) {
    pthread_mutex_lock(&m);
    *pointer = 1;
    pthread_mutex_unlock(&m);
    return p;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_mutex_lock(&m);
    pointer = &value;
    pthread_mutex_unlock(&m);
    pthread_join(thread, 0);
    return value != 1;
}
";

/// The recording shows it, and nobody explores; the passing execution makes what the failing one came not to.
#[test]
fn the_order_that_a_recorded_failure_needs_is_told() {
    let place = Place::new();
    place.compile("program", NULL_LEFT);
    let check = ["check", "--engines", "force,critical", "--budget", "30", "--json", "report.json", "--", "./program"];
    let ended = place.rashomon(&check).expect(66, &["failure (proven, crashed)"]);
    let report = place.json("report.json");
    let notes = report["findings"][0]["notes"].to_string();
    assert!(notes.contains("critical order: [thread 0: acquires mutex m at task"), "{notes} {ended}");
    assert!(notes.contains("] before [the main thread: acquires mutex m at main"), "{notes}");
    assert!(!notes.contains("shortened: "), "the schedule is the one that proved it: {notes}");
}

/// Where the runtime does not stand in for it, it does not go with the time that the program sees.
#[test]
#[cfg(target_arch = "x86_64")]
fn whoever_asks_the_processor_for_its_counter_is_told() {
    let place = Place::new();
    let source = "#include <pthread.h>
static void *task(void *unused) { return unused; }
static unsigned counter(void) {
    unsigned low, high;
    __asm__ volatile(\".byte 0x0f, 0x31\" : \"=a\"(low), \"=d\"(high));
    return low | high;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    return counter() == 0;
}
";
    place.compile("counter", source);
    let told = ["time stamp counter", "in counter: main"];
    place.rashomon(&["check", "--budget", "10", "--", "./counter"]).expect(0, &told);
}

/// A nanosecond of virtual time is a tick, whichever compiler's instruction or assembly asks.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_counter_goes_with_the_clock() {
    let place = Place::new();
    let source = "#include <pthread.h>
#include <time.h>
#include <x86intrin.h>
static void *task(void *unused) { return unused; }
static unsigned long clock_now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (unsigned long)at.tv_sec * 1000000000ul + (unsigned long)at.tv_nsec;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    unsigned long before = clock_now(), ticks = __rdtsc(), after = clock_now();
    return ticks < before || ticks > after ? 3 : 0;
}
";
    place.write("counter.c", source);
    for more in [&["-O0"][..], &["-O2", "-masm=intel", "-pipe"], &["-O2", "-flto", "-fno-pie", "-no-pie", "-save-temps"]] {
        let call = [&["cc", "-pthread", "counter.c", "-o", "counter"], more].concat();
        place.rashomon(&call).expect(0, &[]);
        let checked = place.rashomon(&["check", "--budget", "10", "--", "./counter"]).expect(0, &[]);
        assert!(!checked.err.contains("time stamp counter"), "{checked}");
    }
    // An object does not need our runtime for its sake.
    place.rashomon(&["cc", "-pthread", "-c", "counter.c"]).expect(0, &[]);
    place.must("gcc", &["-fsanitize=thread", "-pthread", "counter.o", "-o", "alone"]);
}

/// It happened: whoever looks at nothing but what is sure is told, too.
#[test]
fn a_crash_that_no_replay_shows_again_is_shown() {
    let place = Place::new();
    let source = "#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *task(void *unused) {
    if (access(\"crashed\", F_OK) != 0 && system(\"touch crashed\") == 0) abort();
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    return 0;
}
";
    place.compile("once", source);
    let said = [
        "failure (suspected)",
        "aborted (a failed assertion",
        "an execution ended so",
        "1 failure seen that no replay has shown again",
    ];
    place.rashomon(&["check", "--", "./once"]).expect(134, &said);
}
