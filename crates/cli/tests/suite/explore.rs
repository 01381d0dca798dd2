//! `rashomon explore` and `rashomon minimise`: what fails is found, stored at once, shortened, and replays; what cannot fail is
//! said to be exhausted.

use crate::support::place::{Ended, Place, RACE, wait_for};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/explore").join(name)
}

/// Compiles a program of `tests/explore` to `program`.
#[track_caller]
fn compile(place: &Place, name: &str) {
    let wrapper = if Path::new(name).extension().is_some_and(|extension| extension == "c") { "cc" } else { "c++" };
    let mut command = place.tool(&[wrapper, "-g", "-O1", "-pthread", "-o", "program"]);
    command.arg(source(name));
    place.run(command).expect(0, &[]);
}

/// Not quiet: what was covered is said on standard error.
fn explore(place: &Place, options: &[&str]) -> (Ended, Value) {
    let mut command = place.command(env!("CARGO_BIN_EXE_rashomon"), &["explore", "--output", "store", "--json", "report.json"]);
    command.args(options).args(["--", "./program"]);
    let ended = place.run(command);
    let report = place.json("report.json");
    (ended, report)
}

/// The only finding, proven: its id, grade and notes.
#[track_caller]
fn only(report: &Value) -> (String, String, Vec<String>) {
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let [finding] = findings.as_slice() else { panic!("not one finding: {report}") };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert_eq!(finding["verdict"], "proven", "{finding}");
    (text(&finding["id"]), text(&finding["grade"]), finding["notes"].as_array().into_iter().flatten().map(text).collect())
}

#[track_caller]
fn replays(place: &Place, id: &str) {
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
}

fn turns(place: &Place, id: &str) -> usize {
    let finding = place.json(&format!("store/findings/{id}.json"));
    finding["finding"]["schedule"]["turns"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_deadlock_is_found_shortened_and_replayed() {
    let place = Place::new();
    compile(&place, "bank.c");
    let (ended, report) = explore(&place, &["--strategy", "dpor"]);
    let ended = ended.expect(66, &["deadlock: schedule"]);
    let (id, grade, notes) = only(&report);
    assert_eq!(grade, "deadlocked", "{ended}");
    assert!(notes.iter().any(|note| note.contains("1 preemption (no schedule with fewer fails so)")), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("critical order: ")), "{notes:?}");
    replays(&place, &id);
}

/// Two loads and two exchanges in a row are no waiting: the other thread can do all of its work between a load and an exchange.
#[test]
fn a_thread_that_looks_several_times_is_not_taken_to_wait() {
    let place = Place::new();
    compile(&place, "stack.cpp");
    let (ended, report) = explore(&place, &["--strategy", "preemptions", "--preemptions", "1"]);
    let ended = ended.expect(66, &["aborted"]);
    let (id, grade, notes) = only(&report);
    assert_eq!(grade, "crashed", "{ended}");
    let critical = notes.iter().find(|note| note.starts_with("critical order: ")).unwrap_or_else(|| panic!("{notes:?}"));
    assert!(critical.contains("global top"), "{critical}");
    replays(&place, &id);
}

/// Fails only where the initial thread goes on before the one that it has created.
const EARLY: &str = "#include <assert.h>
#include <pthread.h>
static _Atomic int ready;
static void *task(void *p) { ready = 1; return p; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, task, 0); assert(ready); pthread_join(thread, 0); return 0; }
";

/// Without changes of priority one of two threads is first in half of the executions.
#[test]
fn the_initial_thread_has_a_priority_as_others_have() {
    let place = Place::new();
    place.compile("program", EARLY);
    let (ended, report) = explore(&place, &["--strategy", "pct", "--preemptions", "0", "--schedules", "64"]);
    ended.expect(66, &["aborted"]);
    replays(&place, &only(&report).0);
}

/// Transfers that lock in one order, and wait for each other in between: all schedules are covered, and said to be.
const RIGHT: &str = "#include <pthread.h>
#include <assert.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, sum;
static void *wait(void *p) {
    pthread_mutex_lock(&a);
    while (!ready) pthread_cond_wait(&c, &a);
    pthread_mutex_lock(&b);
    sum++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return p;
}
static void *wake(void *p) {
    pthread_mutex_lock(&a);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_lock(&b);
    sum++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return p;
}
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, wait, 0);
    pthread_create(&y, 0, wake, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    assert(sum == 2);
    return 0;
}
";

#[test]
fn exhaustion_is_reported_where_nothing_fails() {
    let place = Place::new();
    place.compile("program", RIGHT);
    let (ended, report) = explore(&place, &["--strategy", "dpor"]);
    ended.expect(0, &["nothing is left within the bounds"]);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
    std::fs::remove_dir_all(place.path("store")).unwrap();
    let (ended, _) = explore(&place, &["--strategy", "preemptions", "--preemptions", "1"]);
    ended.expect(0, &["with up to 1 preemption in", "nothing is left within the bounds"]);
    std::fs::remove_dir_all(place.path("store")).unwrap();
    let (ended, _) = explore(&place, &["--strategy", "dpor", "--schedules", "1"]);
    let ended = ended.expect(0, &["explored 1 schedule, "]);
    assert!(!ended.err.contains("nothing is left"), "{ended}");
}

/// What a forked child answers depends on the schedule. Each execution from the process that stands makes the same place anew.
const FORKS: &str = "#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static _Atomic int x;
static void *task(void *p) { x = 1; x = 2; return p; }
int main(void) {
    pthread_t thread;
    int status = 0;
    pthread_create(&thread, 0, task, 0);
    pid_t child = fork();
    if (child == 0) _exit(x);
    waitpid(child, &status, 0);
    pthread_join(thread, 0);
    assert(WEXITSTATUS(status) != WRONG);
    return 0;
}
";

#[test]
fn executions_that_make_processes_follow_each_other() {
    for (wrong, code) in [("1", 66), ("2", 66), ("3", 0)] {
        let place = Place::new();
        place.compile("program", &FORKS.replace("WRONG", wrong));
        let (ended, report) = explore(&place, &["--strategy", "random", "--schedules", "40"]);
        let ended = ended.expect(code, &[]);
        if code == 66 {
            replays(&place, &only(&report).0);
        } else {
            assert!(ended.err.contains("explored 40 random schedules"), "{ended}");
        }
    }
}

/// Plans are drawn while others are executed: which execution ends first is not to matter.
#[test]
fn the_same_seed_explores_the_same_schedules() {
    let place = Place::new();
    compile(&place, "ring.c");
    for strategy in ["orders", "reads-from", "pos"] {
        let explored = |output: &str| {
            let options = ["--strategy", strategy, "--seed", "3", "--jobs", "3", "--schedules", "60", "--all", "--no-minimise"];
            let place_and_program = ["--output", output, "--json", "report.json", "--", "./program"];
            place.rashomon(&[&["explore"], &options[..], &place_and_program].concat());
            let mut report = place.json("report.json");
            let findings = report["findings"].as_array_mut().map(std::mem::take).unwrap_or_default();
            findings.into_iter().map(|finding| (finding["id"].clone(), finding["notes"].clone())).collect::<Vec<_>>()
        };
        let (once, again) = (explored("once"), explored("again"));
        assert!(!once.is_empty(), "{strategy} finds nothing");
        assert_eq!(once, again, "{strategy}");
        std::fs::remove_dir_all(place.path("once")).expect("a store");
        std::fs::remove_dir_all(place.path("again")).expect("a store");
    }
}

#[test]
fn a_stored_failure_is_shortened_later() {
    let place = Place::new();
    compile(&place, "counter.c");
    let (ended, report) = explore(&place, &["--strategy", "random", "--seed", "7", "--no-minimise"]);
    ended.expect(66, &["aborted"]);
    let (id, ..) = only(&report);
    let before = turns(&place, &id);
    let ended = place.rashomon(&["minimise", "--store", "store", &id]).expect(0, &[]);
    assert!(ended.out.contains("critical order: ["), "{ended}");
    assert!(ended.out.contains("global counter"), "{ended}");
    assert!(turns(&place, &id) < before, "{before} turns before; {ended}");
    replays(&place, &id);
    // There is nothing left to take away.
    let shortest = turns(&place, &id);
    place.rashomon(&["minimise", "--store", "store", &id]).expect(0, &[]);
    assert_eq!(turns(&place, &id), shortest);
    // A budget of one execution shortens nothing, and loses nothing.
    place.rashomon(&["minimise", "--store", "store", "--executions", "1", &id]).expect(0, &[]);
    assert_eq!(turns(&place, &id), shortest);
    replays(&place, &id);
}

/// The goal of a predicted race is kept while turns before it go.
#[test]
fn the_schedule_of_a_proven_race_is_shortened() {
    let place = Place::new();
    place.compile("program", RACE);
    place.rashomon(&["check", "--output", "store", "--json", "report.json", "--", "./program"]).expect(66, &[]);
    let (id, grade, _) = only(&place.json("report.json"));
    assert_eq!(grade, "co-enabled");
    let before = turns(&place, &id);
    place.rashomon(&["minimise", "--store", "store", &id]).expect(0, &[]);
    assert!(turns(&place, &id) <= before);
    replays(&place, &id);
}

#[test]
fn what_has_no_schedule_is_not_shortened() {
    let place = Place::new();
    place.compile("program", RACE);
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &[]);
    place.rashomon(&["minimise", "--store", "store", "nothing"]).expect(125, &["no finding nothing"]);
    place.rashomon(&["minimise", "--store", "elsewhere", "nothing"]).expect(125, &["no store"]);
}

/// With --all the search goes on behind a failure; what was found is in the store before the tool is killed.
#[test]
fn killing_the_search_loses_no_failure() {
    let place = Place::new();
    compile(&place, "bank.c");
    let options =
        ["explore", "--output", "store", "--all", "--strategy", "random", "--schedules", "1000000000", "--budget", "1000000"];
    let mut started = {
        let mut command = place.tool(&options);
        command.args(["--", "./program"]);
        place.start(command)
    };
    let id = wait_for("a finding in the store", || {
        let entries = std::fs::read_dir(place.path("store/findings")).ok()?;
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.find_map(|name| name.strip_suffix(".json").map(str::to_owned))
    });
    started.child.kill().expect("it still searches");
    assert_eq!(started.finish().code, 128 + 9);
    let ended = place.rashomon(&["report", "--store", "store"]).expect(0, &[]);
    assert!(ended.out.contains(&id), "{ended}");
    replays(&place, &id);
    place.rashomon(&["minimise", "--store", "store", &id]).expect(0, &[]);
    replays(&place, &id);
}

/// Three threads that nobody waits for. The reader sees one store and not the other in one of the four orders.
fn left_running(condition: &str) -> String {
    format!(
        "#include <assert.h>
#include <pthread.h>
static _Atomic int x, y;
static void *one(void *p) {{ x = 1; return p; }}
static void *two(void *p) {{ y = 1; return p; }}
static void *look(void *p) {{ int a = x, b = y; assert({condition}); return p; }}
int main(void) {{
    pthread_t t;
    pthread_create(&t, 0, one, 0);
    pthread_create(&t, 0, two, 0);
    pthread_create(&t, 0, look, 0);
    return 0;
}}
"
    )
}

#[test]
fn threads_that_run_when_the_process_ends_are_explored_to_their_ends() {
    let place = Place::new();
    place.compile("program", &left_running("a < 2 && b < 2"));
    let (ended, _) = explore(&place, &["--strategy", "dpor"]);
    ended.expect(0, &["explored 4 schedules, 0 of them ended as redundant", "nothing is left within the bounds"]);
    std::fs::remove_dir_all(place.path("store")).unwrap();
    place.compile("program", &left_running("!(a == 1 && b == 0)"));
    let (ended, report) = explore(&place, &["--strategy", "dpor", "--all"]);
    ended.expect(66, &["aborted", "explored 4 schedules", "nothing is left within the bounds"]);
    replays(&place, &only(&report).0);
}

/// Two ends, each with an exit code of its own: the one that is wrong is found, whoever comes first.
#[test]
fn of_several_ends_of_the_process_each_is_tried() {
    const ENDS: &str = "#include <pthread.h>
#include <stdlib.h>
static void *leave(void *p) { exit(7); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, leave, 0); return 8; }
";
    let place = Place::new();
    place.compile("program", ENDS);
    for strategy in ["dpor", "preemptions"] {
        let (ended, report) = explore(&place, &["--strategy", strategy, "--exit-code", "8"]);
        ended.expect(66, &["exit code 7"]);
        replays(&place, &only(&report).0);
        std::fs::remove_dir_all(place.path("store")).unwrap();
        let (ended, report) = explore(&place, &["--strategy", strategy, "--exit-code", "7"]);
        ended.expect(66, &["exit code 8"]);
        replays(&place, &only(&report).0);
        std::fs::remove_dir_all(place.path("store")).unwrap();
    }
}

/// A thread that would go on for ever does not keep an execution from ending; nothing is claimed of what it would do.
#[test]
fn a_thread_that_repeats_itself_ends_with_the_process() {
    const DAEMON: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *p) { for (;;) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); return 0; }
";
    let place = Place::new();
    place.compile("program", DAEMON);
    let (ended, report) = explore(&place, &["--strategy", "dpor"]);
    let ended = ended.expect(0, &["explored"]);
    assert!(!ended.err.contains("nothing is left"), "{ended}");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
}

/// Seventy threads; and one that waits in a loop of which no access is a step.
#[test]
fn many_threads_and_loops_that_nobody_sees_are_no_obstacle() {
    const MANY: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int never;
static int x;
static void *work(void *p) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return p; }
static void *spin(void *p) { while (!never) { } return p; }
int main(void) {
    pthread_t t[70], s;
    pthread_create(&s, 0, spin, 0);
    for (int i = 0; i < 70; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 70; i++) pthread_join(t[i], 0);
    return x == 70 ? 0 : 1;
}
";
    let place = Place::new();
    place.compile("program", MANY);
    for strategy in ["pos", "random", "pct", "dpor", "preemptions"] {
        let (ended, report) = explore(&place, &["--strategy", strategy, "--schedules", "3"]);
        let ended = ended.expect(0, &["explored"]);
        assert!(!ended.err.contains("damaged") && !ended.err.contains("nothing is left"), "{ended}");
        assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
        std::fs::remove_dir_all(place.path("store")).unwrap();
    }
}

/// One execution is recorded; the sixth one is not begun.
#[test]
fn an_interruption_tells_what_was_explored() {
    let place = Place::new();
    place.compile("program", RIGHT);
    let sixth = "echo >> count; test $(wc -l < count) -ne 6 || { kill -INT $PPID; exec sleep 60; }";
    let ended = place.rashomon(&["explore", "--jobs", "1", "--before-each", sixth, "--", "./program"]);
    ended.expect(130, &["interrupted; explored: ", ", none failed; what was found so far is in the store"]);
}
