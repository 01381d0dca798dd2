//! What a recording showed stays so when the budget ends before it is shown again, and nothing is executed behind it.

use crate::support::place::{Place, statuses};

/// Says in a file that it was executed, and does what its argument names; if it was executed before, it does not end.
const PROGRAM: &str = "#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *unused) { pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b); return 0; }
static void *two(void *unused) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return 0; }
static void *unlocks(void *unused) { pthread_mutex_unlock(&a); return 0; }
int main(int count, char **arguments) {
    int log = open(\"executions\", O_CREAT | O_APPEND | O_WRONLY, 0600);
    pthread_t threads[2];
    if (write(log, \"x\", 1) != 1)
        return 1;
    if (lseek(log, 0, SEEK_END) > 1)
        pause();
    pthread_barrier_init(&both, 0, 2);
    if (arguments[1][0] == 'd') {
        pthread_create(&threads[0], 0, one, 0);
        pthread_create(&threads[1], 0, two, 0);
        pthread_join(threads[1], 0);
    } else {
        pthread_mutex_lock(&a);
        pthread_create(&threads[0], 0, unlocks, 0);
    }
    pthread_join(threads[0], 0);
    return 0;
}
";

/// Checks with a budget that ends while the recording is replayed. Forcing has all of it: no time is kept for what comes last.
#[track_caller]
fn stays_proven(kind: &str, argument: &str) {
    let place = Place::new();
    place.compile("program", PROGRAM);
    let alone = ["check", "--engines", "force", "--recordings", "1", "--budget", "2", "--json", "report.json"];
    let line = [&alone[..], &["--", "./program", argument]].concat();
    let ended = place.rashomon(&line).expect(66, &["the budget was over before its recorded schedule was replayed"]);
    let report = place.json("report.json");
    let found = statuses(&report);
    assert!(matches!(found.as_slice(), [(id, status)] if id.starts_with(kind) && status == "proven"), "{found:?}; {ended}");
    // The recording and the replay that was ended: none is begun behind it.
    let executions = std::fs::read(place.path("executions")).expect("it was executed");
    assert_eq!(executions.len(), 2, "{ended}");
    std::fs::remove_file(place.path("executions")).expect("it is there");
    place.rashomon(&["replay", kind]).expect(0, &[]);
}

#[test]
fn a_deadlock_that_happened_stays_proven() {
    stays_proven("deadlock", "deadlock");
}

#[test]
fn a_misuse_that_happened_stays_proven() {
    stays_proven("unlock", "unlock");
}

/// More events than are loaded between two looks at the clock.
#[test]
fn a_search_that_has_no_time_ends_with_the_report() {
    let place = Place::new();
    place.compile(
        "long",
        "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int x, y;
static void *task(void *unused) {
    for (int i = 0; i < 40000; i++) { pthread_mutex_lock(&m); y++; pthread_mutex_unlock(&m); }
    x = 1;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, task, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
",
    );
    let line = ["check", "--search", "0.000001", "--budget", "10", "--fail-on", "never", "--json", "report.json", "--", "./long"];
    place.rashomon(&line).expect(0, &[]);
    assert!(place.json("report.json")["findings"].is_array());
}

#[test]
fn a_report_of_an_earlier_command_does_not_stay() {
    let place = Place::new();
    place.write("report.json", "{\"old\": true}");
    let ended = place.rashomon(&["check", "--json", "report.json", "--", "./nosuch"]);
    assert_ne!(ended.code, 0);
    assert_eq!(std::fs::read_to_string(place.path("report.json")).expect("it is there"), "", "{ended}");
}

/// A trace that never comes ends with the time for it.
#[test]
fn a_pipe_that_sends_nothing_is_not_waited_for() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    let mut command = place.tool(&["predict", "-", "--predict-within", "0.5"]);
    command.stdin(reader);
    place.run(command).expect(125, &["nothing came in time"]);
    drop(writer);
}

/// A budget that is over before the recording is read ends the search, and is no error.
#[test]
fn a_search_without_time_ends_in_order() {
    let place = Place::new();
    place.compile("program", crate::support::place::RACE);
    for command in ["provoke", "explore", "witness"] {
        let ended = place.rashomon(&[command, "--budget", "0.000001", "-o", command, "--", "./program"]);
        assert!(![124, 125].contains(&ended.code), "{command}: {ended}");
        place.rashomon(&["report", "--store", command]).expect(0, &[]);
    }
}

/// A program without an end, which never repeats itself.
#[test]
fn a_budget_that_is_given_bounds_the_first_recording() {
    let place = Place::new();
    place.compile(
        "endless",
        "#include <pthread.h>
#include <unistd.h>
static volatile int x;
static volatile unsigned long counts[2];
static void *task(void *count) {
    for (x = 1;; ++*(volatile unsigned long *)count) usleep(100);
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, task, (void *)&counts[i]);
    pthread_join(threads[0], 0);
    return 0;
}
",
    );
    let line = ["check", "--budget", "8", "--json", "report.json", "--", "./endless"];
    let ended = place.rashomon(&line).expect(66, &["half of the budget"]);
    let report = place.json("report.json");
    let found = statuses(&report);
    assert!(found.iter().any(|(id, status)| id.starts_with("race") && status == "proven"), "{found:?}; {ended}");
    let line = ["explore", "--budget", "2", "--", "./endless"];
    place.rashomon(&line).expect(0, &["half of the budget"]);
}

/// A recording of tens of millions of events, whose analysis takes longer than there is time, hides no race that the first
/// moments show.
#[test]
fn a_recording_that_is_too_large_for_the_budget_waits_for_excerpts() {
    let place = Place::new();
    place.compile(
        "hot",
        "#include <pthread.h>
#include <unistd.h>
enum { WORDS = 100000 };
static volatile int words[WORDS];
static void *task(void *rounds) {
    for (;; ++*(volatile unsigned long *)rounds) {
        usleep(1);
        for (int i = 0; i < WORDS; i++) words[i]++;
    }
    return 0;
}
static unsigned long rounds[2];
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, task, (void *)&rounds[i]);
    pthread_join(threads[0], 0);
    return 0;
}
",
    );
    let line = ["check", "--budget", "20", "--json", "report.json", "--", "./hot"];
    let ended = place.rashomon(&line).expect(66, &["half of the budget"]);
    let found = statuses(&place.json("report.json"));
    assert!(found.iter().any(|(id, status)| id.starts_with("race") && status == "proven"), "{found:?}; {ended}");
}

/// However little time there is to read its recording, and to replay it.
#[test]
fn a_crash_at_the_end_of_a_large_recording_is_told() {
    let place = Place::new();
    place.compile(
        "slow",
        "#include <pthread.h>
#include <stdlib.h>
enum { WORDS = 100000, ROUNDS = 20 };
static volatile int words[2][WORDS];
static void *task(void *own) {
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WORDS; i++) ((volatile int *)own)[i]++;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, task, (void *)words[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    abort();
}
",
    );
    for budget in ["1", "6"] {
        let ended = place.rashomon(&["check", "--budget", budget, "--json", "report.json", "--", "./slow"]);
        let found = statuses(&place.json("report.json"));
        assert!(found.iter().any(|(id, _)| id.starts_with("failure")), "{found:?}; {ended}");
        assert!(!ended.err.contains("no bug"), "{ended}");
    }
}

/// Excerpts lack what they are meant to lack, and nobody is told that a trace is damaged.
#[test]
fn excerpts_of_a_large_recording_are_whole_for_what_they_are() {
    let place = Place::new();
    place.compile("events", include_str!("../../../../tests/scale/events.c"));
    let line = ["check", "--budget", "20", "--fail-on", "never", "--json", "report.json", "--", "./events"];
    let ended = place.rashomon(&line).expect(0, &["recordings analysed"]);
    let report = place.json("report.json");
    assert!(report["run"]["recordings"].as_u64().is_some_and(|recordings| recordings > 1), "{ended}");
    assert!(!ended.err.contains("the trace is not complete"), "{ended}");
}

#[test]
fn a_failure_whose_replay_the_end_of_the_time_cuts_short_ends_no_check() {
    let place = Place::new();
    place.compile("failing", include_str!("../../../../tests/budgets/failing.c"));
    // Some end within the replay of what an exploration found.
    for milliseconds in (300..800).step_by(25) {
        let (budget, seed) = (format!("0.{milliseconds}"), milliseconds.to_string());
        let line =
            ["check", "--fail-on", "never", "--budget", &budget, "--seed", &seed, "--json", "report.json", "--", "./failing"];
        let ended = place.rashomon(&line);
        assert_ne!(ended.code, 125, "budget {budget}; {ended}");
        statuses(&place.json("report.json"));
    }
}
