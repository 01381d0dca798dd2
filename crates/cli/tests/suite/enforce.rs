//! `rashomon csp enforce`: orders that are confirmed, discarded and infeasible.

use crate::support::place::{Ended, Place, program_text};
use serde_json::Value;
use std::collections::BTreeSet;

/// What came of the orders of a program.
fn enforced(source: &str, seed: &str) -> (Value, Ended) {
    let place = Place::new();
    place.compile("program", source);
    place.rashomon(&["record", "--policy", "run-to-block", "--seed", seed, "--output", "store", "--", "./program"]);
    let ended = place.rashomon(&["csp", "enforce", "--json", "orders.json", "store"]);
    let text = std::fs::read_to_string(place.path("orders.json")).unwrap_or_else(|error| panic!("{error}: {ended}"));
    (serde_json::from_str(&text).expect("JSON"), ended)
}

fn outcomes(report: &Value) -> Vec<&str> {
    let all = report["counterexamples"].as_array().into_iter().flatten();
    all.filter_map(|one| one["outcome"].as_str()).collect()
}

/// §2.2.1's schedule, of synchronisation alone; the detector, which the gate's order does not blind, names both source lines.
#[test]
fn listing_one_is_confirmed_in_parallel() {
    let (report, ended) = enforced(&program_text("measured/listing1.c"), "1");
    assert_eq!(ended.code, 66, "{ended}");
    assert_eq!(outcomes(&report), ["race"], "{report}");
    let one = &report["counterexamples"][0];
    assert_eq!(one["steps"], serde_json::json!(["fork_t1_t2", "lock_t2_m1", "unlock_t2_m1"]), "{report}");
    assert_eq!(one["places"], serde_json::json!([["program.c:16", "program.c:24"]]), "{report}");
    assert!(ended.out.contains("confirmed, data race"), "{ended}");
}

/// Time was virtual where the order comes from: an hour is over as soon as nobody else can go on. It is over at its turn here.
#[test]
fn a_wait_that_times_out_ends_with_its_turn() {
    let source = "#include <pthread.h>
#include <time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile int shared;
static void *waits(void *unused) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 3600;
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&never, &mutex, &time);
    pthread_mutex_unlock(&mutex);
    shared = 2;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    shared = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return pthread_join(thread, 0);
}
";
    let (report, ended) = enforced(source, "1");
    assert_eq!((outcomes(&report), ended.code), (vec!["race"], 66), "{report} {ended}");
    assert!(report["counterexamples"][0]["steps"].to_string().contains("wait_"), "{report}");
}

const LOCKS_CROSSED: &str = "#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *one(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, one, 0);
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return pthread_join(thread, 0);
}
";

#[test]
fn a_deadlock_is_told_from_an_order_that_cannot_be_kept() {
    let (report, ended) = enforced(LOCKS_CROSSED, "1");
    assert_eq!((outcomes(&report), ended.code), (vec!["deadlock"], 66), "{report} {ended}");
    let places = report["counterexamples"][0]["places"].to_string();
    assert!(places.contains("program.c:5") && places.contains("program.c:14"), "{report}");
}

/// The second thread's section depends on what the first one did: in the other order it is not there.
const LEAVES: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static int ready, x;
static void *task(void *unused) {
    pthread_mutex_lock(&m);
    int go = ready;
    pthread_mutex_unlock(&m);
    if (!go) return unused;
    pthread_mutex_lock(&n);
    pthread_mutex_unlock(&n);
    x++;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_mutex_unlock(&m);
    return pthread_join(thread, 0);
}
";

#[test]
fn an_order_that_the_program_leaves_is_infeasible() {
    let (report, ended) = enforced(LEAVES, "1");
    assert_eq!((outcomes(&report), ended.code), (vec!["infeasible"], 0), "{report} {ended}");
    let why = report["counterexamples"][0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("before lock_t2_m2"), "{report}");
}

/// The race comes after a wait, whose thread takes its mutex again when it is its turn.
const WAITS: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, x;
static void *signals(void *unused) {
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    x++;
    pthread_mutex_lock(&n);
    pthread_mutex_unlock(&n);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, signals, 0);
    pthread_mutex_lock(&m);
    while (!ready) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&n);
    pthread_mutex_unlock(&n);
    x++;
    return pthread_join(thread, 0);
}
";

#[test]
fn waits_have_their_turns() {
    let (report, ended) = enforced(WAITS, "1");
    assert_eq!((outcomes(&report), ended.code), (vec!["race"], 66), "{report} {ended}");
    assert_eq!(report["counterexamples"][0]["places"], serde_json::json!([["program.c:10", "program.c:23"]]), "{report}");
}

#[test]
fn nothing_is_confirmed_of_what_a_lock_protects() {
    let source = program_text("race_free/mutex_counter.c");
    let (report, ended) = enforced(&source, "1");
    assert_eq!((report["feasible"].as_u64(), outcomes(&report), ended.code), (Some(0), vec![], 0), "{report} {ended}");
}

/// Places of what is confirmed of Listing 1, and how it ended.
fn selected(options: &[&str], list: &str) -> (Vec<String>, Ended) {
    let place = Place::new();
    place.compile("program", &program_text("measured/listing1.c"));
    place.write("places.txt", list);
    place.rashomon(&["record", "--policy", "run-to-block", "--seed", "1", "--output", "store", "--", "./program"]);
    let fixed = ["csp", "enforce", "--json", "orders.json"];
    let arguments: Vec<&str> = fixed.iter().chain(options).chain(&["store"]).copied().collect();
    let ended = place.rashomon(&arguments);
    let report = std::fs::read(place.path("orders.json")).unwrap_or_default();
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let all = report["counterexamples"].as_array().into_iter().flatten();
    (all.map(|one| one["places"].to_string()).collect(), ended)
}

/// What is left out has no orders of its own; the synchronisation of the rest is whole.
#[test]
fn accesses_are_selected_by_function_file_and_list() {
    let none: [&str; 0] = [];
    let race = [r#"[["program.c:16","program.c:24"]]"#];
    for option in ["--exclude", "--include"] {
        let (found, ended) = selected(&[option, "^task$"], "");
        assert_eq!(found, none, "{ended}");
    }
    assert_eq!(selected(&["--include", "program.c"], "").0, race);
    let both = "# of a static analysis\nprogram.c:16\nfun:^main$\n";
    assert_eq!(selected(&["--static-list", "places.txt"], both).0, race);
    assert_eq!(selected(&["--static-list", "places.txt"], "program.c:16\n").0, none);
    let expected = ["places.txt", "line 2: expected `FILE:LINE`, `fun:PATTERN` or `src:PATTERN`, found `program.c`"];
    selected(&["--static-list", "places.txt"], "program.c:16\nprogram.c\n").1.expect(125, &expected);
}

/// The consumer finds the predicate true, and does not wait; it reads `data` behind the loop, `late` races.
const LOOP: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, data, late;
static void *task(void *unused) {
    data = 7;
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    late = 1;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    int seen = data + late;
    pthread_join(thread, 0);
    return seen < 7;
}
";

/// In this run the signal came before the loop. An order that enters the loop first is known as such, and infeasible: the program
/// waits there. The race behind the loop has an order that respects it.
#[test]
fn a_wait_loop_is_seen_where_nobody_waited() {
    let place = Place::new();
    place.compile("program", LOOP);
    for seed in 1..=20 {
        let store = format!("store{seed}");
        let seed = seed.to_string();
        place.rashomon(&["record", "--policy", "random", "--seed", &seed, "--output", &store, "--", "./program"]);
        let ended = place.rashomon(&["csp", "enforce", "--step-timeout", "2", "--json", "orders.json", &store]);
        let text = std::fs::read_to_string(place.path("orders.json")).unwrap_or_else(|error| panic!("{error}: {ended}"));
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let all: Vec<(bool, &str)> = report["counterexamples"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| Some((one["behind_wait_loop"].as_bool()?, one["outcome"].as_str()?)))
            .collect();
        assert!(all.contains(&(false, "race")), "{report} {ended}");
        if all.len() > 1 {
            assert_eq!(all, [(false, "race"), (true, "infeasible")], "{report} {ended}");
            assert!(ended.out.contains("(enters a wait loop before the signal)"), "{ended}");
            return;
        }
    }
    panic!("main waited in every run");
}

/// Which cell a thread works on depends on how many were handed out before. The shortest orders leave sections out that hand out
/// others, or change their order; most of them the program leaves, or does something else in.
#[test]
fn orders_close_to_the_trace_are_tried_where_shorter_ones_show_nothing() {
    let source = format!("#define SEEDED\n{}", include_str!("../../../../tests/applications/fmm.c"));
    let place = Place::new();
    place.compile("program", &source);
    place.rashomon(&["record", "--recordings", "4", "--output", "store", "--", "./program"]);
    let ended = place.rashomon(&["csp", "enforce", "--json", "orders.json", "store"]);
    let report = std::fs::read(place.path("orders.json")).unwrap_or_default();
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let all = outcomes(&report);
    let races = all.iter().filter(|outcome| **outcome == "race").count();
    assert!(races > 0 && 4 * races >= 3 * all.len(), "{report} {ended}");
}

/// Behind the last step an execution is free: that nothing happens in one says little. Here the first two executions behind the
/// recording leave the race out, as chance may; those after them do not.
const SELDOM: &str = "#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int x, number;
static void *task(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    if (number != 1 && number != 2) x++;
    return unused;
}
int main(void) {
    pthread_t thread;
    FILE *file = fopen(\"number\", \"r+\");
    if (!file || fscanf(file, \"%d\", &number) != 1) return 1;
    rewind(file);
    fprintf(file, \"%d\", number + 1);
    fclose(file);
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return pthread_join(thread, 0);
}
";

#[test]
fn what_shows_nothing_is_tried_again() {
    let place = Place::new();
    place.compile("program", SELDOM);
    let starts_with = |number: &str| std::fs::write(place.path("number"), number).expect("a file");
    starts_with("0");
    place.rashomon(&["record", "--policy", "run-to-block", "--seed", "1", "--output", "store", "--", "./program"]);
    // It needs a third execution, and the first one.
    for first in ["1", "3"] {
        starts_with(first);
        let ended = place.rashomon(&["csp", "enforce", "--json", "orders.json", "store"]);
        let text = std::fs::read_to_string(place.path("orders.json")).unwrap_or_else(|error| panic!("{error}: {ended}"));
        let report: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((outcomes(&report), ended.code), (vec!["race"], 66), "{report} {ended}");
        let executions = report["counterexamples"][0]["executions"].as_u64();
        assert_eq!(executions > Some(2), first == "1", "{report} {ended}");
    }
}

/// Kinds that are confirmed of four recordings of a program of `tests/programs`.
fn confirmed(program: &str, arguments: &[&str]) -> BTreeSet<String> {
    let place = Place::new();
    place.compile("program", &program_text(program));
    let record = ["record", "--recordings", "4", "--output", "store", "--", "./program"];
    place.rashomon(&record.iter().chain(arguments).copied().collect::<Vec<_>>());
    let ended = place.rashomon(&["csp", "enforce", "--json", "orders.json", "store"]);
    let text = std::fs::read_to_string(place.path("orders.json")).unwrap_or_else(|error| panic!("{error}: {ended}"));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let races = report["counterexamples"].as_array().into_iter().flatten().any(|one| one["races"].as_u64() > Some(0));
    let outcomes = outcomes(&report).into_iter().filter(|kind| ["race", "deadlock"].contains(kind));
    outcomes.chain(races.then_some("race")).map(str::to_owned).collect()
}

/// A forked child, and one of a program that another one started; all others run freely.
#[test]
fn an_order_is_kept_in_the_process_that_it_is_of() {
    assert_eq!(confirmed("racy/spawned_race.c", &[]), ["race".to_owned()].into());
    assert_eq!(confirmed("racy/forked_deadlock.c", &[]), ["deadlock".to_owned()].into());
}

#[test]
fn memory_that_is_unmapped_is_written() {
    assert_eq!(confirmed("racy/unmap_unordered.c", &[]), ["race".to_owned()].into());
    let source = program_text("racy/unmap_unordered.c").replace("memory_order_relaxed", "memory_order_seq_cst");
    let (report, ended) = enforced(&source, "1");
    assert!(!outcomes(&report).contains(&"race"), "{report} {ended}");
}

#[test]
fn no_end_of_the_process_comes_before_what_threads_do() {
    for end in ["quick", "under", "system call"] {
        assert_eq!(confirmed("racy/end_at_once.c", &[end]), ["race".to_owned()].into(), "{end}");
    }
}

/// For itself, for a mutex that a condition wait takes again, for a thread, for a semaphore.
#[test]
fn whoever_waits_for_ever_is_found() {
    for program in ["self_deadlock", "wait_holding_lock", "semaphore_cycle"] {
        assert_eq!(confirmed(&format!("racy/{program}.c"), &[]), ["deadlock".to_owned()].into(), "{program}");
    }
    // No order says whether the id is read before it is stored; only in the other case is there somebody to wait for.
    let both: BTreeSet<String> = ["deadlock".to_owned(), "race".to_owned()].into();
    assert!((0..10).any(|_| confirmed("racy/join_by_shared_id.c", &[]) == both));
}
