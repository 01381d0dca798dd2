//! Critical sections that belong together and are interleaved: proven by what comes of it, and by nothing else.

use crate::support::place::{Place, statuses};
use serde_json::Value;

const LOST_DEPOSIT: &str = include_str!("../../../../tests/loop/lost_deposit.c");
const LOST_HIT: &str = include_str!("../../../../tests/loop/lost_hit.cpp");
const TORN_PAIR: &str = include_str!("../../../../tests/loop/torn_pair.c");
const LOG_ROTATION: &str = include_str!("../../../../tests/correlated/log_rotation.cpp");
const PLAYLIST: &str = include_str!("../../../../tests/correlated/playlist.cpp");
const BANK_TOTAL: &str = include_str!("../../../../tests/correlated/bank_total.cpp");
const TWO_HALVES: &str = include_str!("../../../../tests/correlated/two_halves.c");
const OVER_THE_LIMIT: &str = include_str!("../../../../tests/loop/over_the_limit.c");
const STALE_MAXIMUM: &str = include_str!("../../../../tests/loop/stale_maximum.c");

/// A stale write that nothing depends on: what is printed is the same in every order.
const HARMLESS: &str = "#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int warned;
static void *task(void *p) {
    pthread_mutex_lock(&lock);
    int before = warned;
    pthread_mutex_unlock(&lock);
    if (!before) {
        pthread_mutex_lock(&lock);
        warned = 1;
        pthread_mutex_unlock(&lock);
    }
    return p;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, task, 0);
    pthread_create(&other, 0, task, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    printf(\"warned %d\\n\", warned);
    return 0;
}
";

/// Asks whether there is work under the lock, and again before it takes it: as it should.
const ASKS_AGAIN: &str = "#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int left = 1;
static int has_work(void) {
    pthread_mutex_lock(&lock);
    int has = left > 0;
    pthread_mutex_unlock(&lock);
    return has;
}
static void *worker(void *p) {
    if (!has_work()) return p;
    pthread_mutex_lock(&lock);
    if (left > 0) left--;
    if (left < 0) abort();
    pthread_mutex_unlock(&lock);
    return p;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, worker, 0);
    pthread_create(&other, 0, worker, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return left;
}
";

/// Two counters are printed between their updates: a view that no serial order shows, and that is meant.
const PROGRESS: &str = "#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int started, ended;
static void *task(void *p) {
    pthread_mutex_lock(&lock);
    started++;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    ended++;
    pthread_mutex_unlock(&lock);
    return p;
}
static void *monitor(void *p) {
    pthread_mutex_lock(&lock);
    printf(\"%d of %d\\n\", ended, started);
    pthread_mutex_unlock(&lock);
    return p;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, task, 0);
    pthread_create(&other, 0, monitor, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
";

/// Prints something else each time, whatever the order.
const WAYWARD: &str = "    printf(\"%d\\n\", (int)getpid());\n    return 0;";

fn mended(source: &str) -> String {
    format!("#define FIXED\n{source}")
}

fn check(place: &Place, options: &[&str], code: i32) -> Value {
    let _ = std::fs::remove_dir_all(place.path("store"));
    let arguments = [&["check", "--json", "report.json", "--output", "store"], options, &["--", "./program"]].concat();
    place.rashomon(&arguments).expect(code, &[]);
    place.json("report.json")
}

fn only(report: &Value) -> &Value {
    let all = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(all.len(), 1, "{report}");
    &all[0]
}

/// Proven, told with its three sides, and replayed; with `FIXED` nothing is.
#[track_caller]
fn is_proven(place: &Place, compile: &dyn Fn(&str), source: &str, options: &[&str], outcome: &str) {
    compile(source);
    let report = check(place, options, 66);
    let finding = only(&report);
    let word = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    assert_eq!((word("kind"), word("grade")), ("atomicity-violation".into(), "violated".into()), "{finding}");
    let actions: Vec<&str> =
        finding["sides"].as_array().into_iter().flatten().filter_map(|side| side["action"].as_str()).collect();
    assert!(actions.len() >= 3 && actions.iter().any(|action| action.contains("write of")), "{actions:?}");
    let threads: Vec<&Value> = finding["sides"].as_array().into_iter().flatten().map(|side| &side["thread"]).collect();
    let (local, remote) = (threads[0], threads[1]);
    assert!(local != remote && threads.last() == Some(&local), "{threads:?}");
    assert!(threads[1..threads.len() - 1].iter().all(|thread| *thread == remote), "{threads:?}");
    let notes = finding["notes"].to_string();
    assert!(notes.contains(outcome), "{notes}");
    place.rashomon(&["replay", "--store", "store", &word("id"), "--times", "3"]).expect(0, &[]);
    compile(&mended(source));
    assert_eq!(statuses(&check(place, options, 0)), []);
}

#[test]
fn a_deposit_under_the_lock_is_lost() {
    let place = Place::new();
    let compile = |source: &str| place.compile("program", source);
    let outcome = "interleaved so the program prints `balance 1";
    is_proven(&place, &compile, LOST_DEPOSIT, &["--engines", "atomicity"], outcome);
    is_proven(&place, &compile, LOST_DEPOSIT, &[], outcome);
}

#[test]
fn atomic_accesses_are_units_of_their_own() {
    let place = Place::new();
    let compile = |source: &str| place.compile_cxx("program", source);
    let outcome = "interleaved so the program prints `1 hits`; one after the other it prints `2 hits`";
    is_proven(&place, &compile, LOST_HIT, &["--engines", "atomicity"], outcome);
}

#[test]
fn a_look_under_the_read_lock_is_stale_under_the_write_lock() {
    let place = Place::new();
    let compile = |source: &str| place.compile("program", source);
    let outcome = "interleaved so the program prints `maximum 5`; one after the other it prints `maximum 7`";
    is_proven(&place, &compile, STALE_MAXIMUM, &["--engines", "atomicity"], outcome);
}

#[test]
fn what_one_thread_treats_together_another_one_tears_apart() {
    let place = Place::new();
    let compile = |source: &str| place.compile("program", source);
    let outcome = "interleaved so the program ends with exit code 1; one after the other it ends with exit code 0";
    is_proven(&place, &compile, TORN_PAIR, &["--engines", "atomicity"], outcome);
}

/// Whether harm is done depends on which tasks meet. What else is interleaved when it is, in the queue and the counters, is not
/// blamed.
#[test]
fn of_what_is_interleaved_in_a_pool_the_cause_is_told() {
    let place = Place::new();
    place.compile("program", OVER_THE_LIMIT);
    let report = check(&place, &[], 66);
    let all = || report["findings"].as_array().into_iter().flatten();
    let blamed: Vec<&Value> = all().filter(|finding| finding["kind"] == "atomicity-violation").collect();
    assert_eq!(blamed.len(), 1, "{report}");
    assert!(blamed[0]["subject"].as_str().is_some_and(|subject| subject.contains("limit.used")), "{}", blamed[0]);
    assert!(blamed[0]["notes"].to_string().contains("ends with exit code 1; one after the other it ends with exit code 0"));
    let id = blamed[0]["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
    // The exit code is a finding, too, and says where it comes from.
    let explained = |finding: &Value| finding["notes"].to_string().contains(&format!("a cause: {id}"));
    assert!(all().any(|finding| finding["kind"] == "failure" && explained(finding)), "{report}");
    place.compile("program", &mended(OVER_THE_LIMIT));
    assert_eq!(statuses(&check(&place, &[], 0)), []);
}

/// The other cases that no serial order has, and outcomes that end the program before the last access.
#[test]
fn every_case_of_two_sections_and_one_between() {
    let place = Place::new();
    let ends = |how: &str| format!("interleaved so the program {how}; one after the other it ends with exit code 0");
    let in_cxx = |source: &str| place.compile_cxx("program", source);
    // Written twice and read between; read twice and written between; read in one section while moved in two.
    is_proven(&place, &in_cxx, LOG_ROTATION, &["--engines", "atomicity"], &ends("ends with exit code 1"));
    is_proven(&place, &in_cxx, PLAYLIST, &["--engines", "atomicity"], &ends("is ended by signal 6"));
    is_proven(&place, &in_cxx, BANK_TOTAL, &["--engines", "atomicity"], &ends("is ended by signal 6"));
    let in_c = |source: &str| place.compile("program", source);
    is_proven(&place, &in_c, TWO_HALVES, &["--engines", "atomicity"], &ends("ends with exit code 1"));
}

#[test]
fn what_comes_of_it_decides() {
    let place = Place::new();
    place.compile("program", HARMLESS);
    let report = check(&place, &["--engines", "atomicity"], 0);
    assert_eq!(statuses(&report), []);
    assert!(report["run"]["notes"].to_string().contains("of critical sections interleaved"), "{report}");
    // What differs between executions anyway says nothing about the order.
    let wayward =
        LOST_DEPOSIT.replace("    return 0;", WAYWARD).replace("#include <stdio.h>", "#include <stdio.h>\n#include <unistd.h>");
    assert!(wayward.contains("getpid"));
    place.compile("program", &wayward);
    assert_eq!(statuses(&check(&place, &["--engines", "atomicity"], 0)), []);
}

#[test]
fn what_is_meant_is_no_violation() {
    let place = Place::new();
    for meant in [PROGRESS, ASKS_AGAIN] {
        place.compile("program", meant);
        assert_eq!(statuses(&check(&place, &["--engines", "atomicity"], 0)), []);
    }
}

/// Who checks for it needs the schedule: a stored finding is replayed by it.
#[test]
fn an_exit_code_is_an_outcome() {
    let place = Place::new();
    place.compile("program", &LOST_DEPOSIT.replace("return 0;", "return balance == 130 ? 0 : 3;"));
    let report = check(&place, &["--engines", "atomicity"], 66);
    let notes = only(&report)["notes"].to_string();
    assert!(notes.contains("ends with exit code 3; one after the other it ends with exit code 0"), "{notes}");
}
