//! Uses of locks and condition variables that nothing orders with where these end: found without that the use has to come too
//! late, replayed, and suspected only where something unseen may have ordered them.

use crate::support::place::{Place, statuses};
use serde_json::Value;

const SIGNALLED_LATE: &str = include_str!("../../../../tests/loop/signalled_late.c");
const CLOSED_TO_READERS: &str = include_str!("../../../../tests/loop/closed_to_readers.c");

/// Says that it is done without that anybody sees it.
const FLAG: &str = "
static volatile int is_done;
void set_done(void) { is_done = 1; }
int get_done(void) { return is_done; }
";

const BEHIND_A_FLAG: &str = "#include <pthread.h>
#include <sched.h>
void set_done(void);
int get_done(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *task(void *unused) { pthread_cond_signal(&changed); set_done(); return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    while (!get_done()) sched_yield();
    pthread_cond_destroy(&changed);
    pthread_join(thread, 0);
    return 0;
}
";

/// A block is handed over as it was allocated, by a pointer that is stored and loaded in the order named.
const HANDED_OVER: &str = "#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
static _Atomic(int *) given;
static void *task(void *unused) {
    int *mine;
    while (!(mine = atomic_load_explicit(&given, LOAD))) sched_yield();
    *mine = 42;
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    int *block = malloc(sizeof(int));
    atomic_store_explicit(&given, block, STORE);
    pthread_join(thread, 0);
    int is_wrong = *block != 42;
    free(block);
    return is_wrong;
}
";

fn check(place: &Place, code: i32) -> Value {
    let _ = std::fs::remove_dir_all(place.path("store"));
    place.rashomon(&["check", "--json", "report.json", "--output", "store", "--", "./program"]).expect(code, &[]);
    place.json("report.json")
}

fn kinds(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| finding["kind"].as_str()).map(str::to_owned).collect()
}

#[test]
fn a_signal_that_may_come_too_late() {
    let place = Place::new();
    place.compile("program", SIGNALLED_LATE);
    let report = check(&place, 66);
    let finding = &report["findings"][0];
    assert!(["lifetime-race", "use-of-destroyed"].contains(&kinds(&report)[0].as_str()), "{report}");
    assert_eq!(finding["sides"].as_array().map(Vec::len), Some(2), "{report}");
    let id = finding["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
    place.compile("program", &format!("#define FIXED\n{SIGNALLED_LATE}"));
    assert_eq!(statuses(&check(&place, 0)), []);
}

#[test]
fn a_lock_that_may_be_gone() {
    let place = Place::new();
    place.compile("program", CLOSED_TO_READERS);
    let report = check(&place, 66);
    assert_eq!(kinds(&report), ["lifetime-race"], "{report}");
    let finding = &report["findings"][0];
    assert_eq!((&finding["verdict"], &finding["grade"]), (&"proven".into(), &"unordered".into()), "{report}");
    assert_eq!(finding["subject"], "rwlock lock", "{report}");
    let actions: Vec<&str> =
        finding["sides"].as_array().into_iter().flatten().filter_map(|side| side["action"].as_str()).collect();
    assert_eq!(actions, ["acquires rwlock lock (shared)", "destroys it"]);
    place.compile("program", &format!("#define FIXED\n{CLOSED_TO_READERS}"));
    assert_eq!(statuses(&check(&place, 0)), []);
}

#[test]
fn what_is_not_seen_may_have_ordered_them() {
    let place = Place::new();
    place.write("flag.c", FLAG);
    place.must("gcc", &["-O1", "-shared", "-fPIC", "-Wl,-soname,flag.so", "-o", "flag.so", "flag.c"]);
    place.write("program.c", BEHIND_A_FLAG);
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "-o", "program", "program.c", "flag.so", &folder]).expect(0, &[]);
    let report = check(&place, 0);
    assert!(!statuses(&report).iter().any(|(_, status)| status == "proven"), "{report}");
}

#[test]
fn memory_whose_allocation_orders_nothing() {
    let place = Place::new();
    let program = |load: &str, store: &str| format!("#define LOAD {load}\n#define STORE {store}\n{HANDED_OVER}");
    place.compile("program", &program("memory_order_relaxed", "memory_order_relaxed"));
    let report = check(&place, 66);
    let finding = &report["findings"][0];
    assert_eq!(kinds(&report), ["lifetime-race"], "{report}");
    assert_eq!((&finding["verdict"], &finding["grade"]), (&"proven".into(), &"unordered".into()), "{report}");
    let actions: Vec<&str> =
        finding["sides"].as_array().into_iter().flatten().filter_map(|side| side["action"].as_str()).collect();
    assert_eq!(actions, ["write of 4 bytes", "allocates it"], "{report}");
    let id = finding["id"].as_str().unwrap_or_default();
    let again = place.must(env!("CARGO_BIN_EXE_rashomon"), &["replay", "--store", "store", id]);
    assert!(again.out.contains("again: both were executed, and nothing orders them"), "{again}");
    place.compile("program", &program("memory_order_acquire", "memory_order_release"));
    assert_eq!(statuses(&check(&place, 0)), []);
}
