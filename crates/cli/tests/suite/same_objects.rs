//! What is proven is what was predicted: the same locks, the same block, and not only the same code.

use crate::support::place::{Place, statuses};
use serde_json::Value;

const PAIR: &str = "#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
static void pair(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t first, second;
    pthread_create(&first, 0, one, 0);
    pthread_create(&second, 0, other, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
}
";

/// What is proven of this kind.
fn proven<'r>(report: &'r Value, kind: &str) -> Vec<&'r Value> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let is_proven =
        |finding: &&Value| finding["verdict"] == "proven" && finding["id"].as_str().is_some_and(|id| id.starts_with(kind));
    findings.filter(is_proven).collect()
}

fn subjects(report: &Value, kind: &str) -> Vec<String> {
    let subject = |finding: &&Value| finding["subject"].as_str().unwrap_or_default().to_owned();
    let mut subjects: Vec<String> = proven(report, kind).iter().map(subject).collect();
    subjects.sort();
    subjects
}

#[track_caller]
fn checked(program: &str, options: &[&str]) -> (Place, Value) {
    let place = Place::new();
    place.compile("program", &format!("{PAIR}{program}"));
    let check = ["check", "--json", "report.json", "--show", "suspicions", "--output", "store"];
    place.rashomon(&[&check[..], options, &["--", "./program"]].concat()).expect(66, &[]);
    let report = place.json("report.json");
    (place, report)
}

/// Two helpers take all locks: those of globals, and of blocks that one function makes for two others.
#[test]
fn each_deadlock_of_a_helper_is_one_of_its_own() {
    let program = "static pthread_mutex_t A = PTHREAD_MUTEX_INITIALIZER, B = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t C = PTHREAD_MUTEX_INITIALIZER, D = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *e, *f, *g, *h;
static void both(pthread_mutex_t *a, pthread_mutex_t *b) {
    pthread_mutex_lock(a);
    pthread_mutex_lock(b);
    pthread_mutex_unlock(b);
    pthread_mutex_unlock(a);
}
static void *ab(void *p) { both(&A, &B); return p; }
static void *ba(void *p) { both(&B, &A); return p; }
static void *cd(void *p) { both(&C, &D); return p; }
static void *dc(void *p) { both(&D, &C); return p; }
static void *ef(void *p) { both(e, f); return p; }
static void *fe(void *p) { both(f, e); return p; }
static void *gh(void *p) { both(g, h); return p; }
static void *hg(void *p) { both(h, g); return p; }
__attribute__((noinline)) static pthread_mutex_t *make(void) {
    pthread_mutex_t *made = malloc(sizeof *made);
    pthread_mutex_init(made, 0);
    return made;
}
int main(void) {
    e = make();
    f = make();
    g = make();
    h = make();
    pair(ab, ba);
    pair(cd, dc);
    pair(ef, fe);
    pair(gh, hg);
    return 0;
}
";
    let (place, report) = checked(program, &[]);
    let found = subjects(&report, "deadlock");
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[..2], ["mutex A, mutex B", "mutex C, mutex D"], "{report:#}");
    for (id, _) in statuses(&report) {
        place.rashomon(&["replay", "--store", "store", &id]).expect(0, &[]);
    }
}

/// `forth` takes the second lock of the array only where `back` is done: their cycle cannot be. It waits for the third one
/// otherwise, for ever.
#[test]
fn a_thread_that_waits_for_another_lock_is_not_in_the_cycle() {
    let program =
        "static pthread_mutex_t L[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int done;
static sem_t forward;
static void *back(void *p) {
    pthread_mutex_lock(&L[1]);
    pthread_mutex_lock(&L[0]);
    pthread_mutex_unlock(&L[0]);
    pthread_mutex_unlock(&L[1]);
    atomic_store(&done, 1);
    return p;
}
static void *forth(void *p) {
    pthread_mutex_lock(&L[0]);
    int k = atomic_load(&done) ? 1 : 2;
    pthread_mutex_lock(&L[k]);
    pthread_mutex_unlock(&L[k]);
    pthread_mutex_unlock(&L[0]);
    sem_post(&forward);
    return p;
}
int main(void) {
    pthread_t first, second;
    sem_init(&forward, 0, 0);
    pthread_mutex_lock(&L[2]);
    pthread_create(&first, 0, back, 0);
    pthread_create(&second, 0, forth, 0);
    sem_wait(&forward);
    pthread_mutex_unlock(&L[2]);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return 0;
}
";
    let (_, report) = checked(program, &[]);
    assert_eq!(subjects(&report, "deadlock"), Vec::<String>::new(), "{report:#}");
    assert!(!proven(&report, "stuck").is_empty(), "{report:#}");
}

/// As in `other_deadlocks`, but one function takes all locks.
#[test]
fn a_deadlock_of_other_locks_at_the_same_calls_is_another_one() {
    let program =
        "static pthread_mutex_t L[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int done, third;
__attribute__((noinline)) static void take(pthread_mutex_t *lock) { pthread_mutex_lock(lock); __asm__ volatile(\"\"); }
__attribute__((noinline)) static void give(pthread_mutex_t *lock) { pthread_mutex_unlock(lock); __asm__ volatile(\"\"); }
static void *back(void *p) {
    take(&L[1]);
    take(&L[0]);
    give(&L[0]);
    give(&L[1]);
    atomic_store(&done, 1);
    return p;
}
static void *forth(void *p) {
    take(&L[0]);
    int k = atomic_load(&done) ? 1 : 2;
    if (k == 2)
        atomic_store(&third, 1);
    take(&L[k]);
    give(&L[k]);
    give(&L[0]);
    return p;
}
static void *three(void *p) { take(&c); pthread_barrier_wait(&barrier); take(&d); return p; }
static void *four(void *p) { take(&d); pthread_barrier_wait(&barrier); take(&c); return p; }
int main(void) {
    pthread_barrier_init(&barrier, 0, 2);
    pair(back, forth);
    if (third)
        pair(three, four);
    return 0;
}
";
    let (_, report) = checked(program, &["--recordings", "1", "--budget", "10"]);
    assert_eq!(subjects(&report, "deadlock"), ["mutex c, mutex d"], "{report:#}");
    for side in proven(&report, "deadlock")[0]["sides"].as_array().expect("it has sides") {
        let action = side["action"].as_str().unwrap_or_default();
        assert!(["waits for mutex c,", "waits for mutex d,"].iter().any(|words| action.starts_with(words)), "{report:#}");
    }
}

/// Both functions work on the block that they are given. On the first one they are ordered in every execution.
#[test]
fn accesses_to_another_block_are_another_race() {
    let program = "static int *first, *second, *chosen;
static int done;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static int *make_first(void) { int *p = malloc(4); *p = 0; return p; }
__attribute__((noinline)) static int *make_second(void) { int *p = malloc(64); *p = 0; return p; }
__attribute__((noinline)) static void add(int *p) { *p += 1; __asm__ volatile(\"\"); }
__attribute__((noinline)) static void double_it(int *p) { *p += 2; __asm__ volatile(\"\"); }
static void *one(void *p) {
    pthread_mutex_lock(&n);
    int *mine = chosen;
    pthread_mutex_unlock(&n);
    add(mine);
    pthread_mutex_lock(&m);
    done = 1;
    pthread_mutex_unlock(&m);
    return p;
}
static void *two(void *p) {
    pthread_mutex_lock(&m);
    int is_done = done;
    pthread_mutex_unlock(&m);
    double_it(is_done ? first : second);
    return p;
}
static void *three(void *p) {
    pthread_mutex_lock(&n);
    chosen = first;
    pthread_mutex_unlock(&n);
    return p;
}
int main(void) {
    pthread_t a, b, c;
    first = make_first();
    second = make_second();
    chosen = second;
    pthread_create(&c, 0, three, 0);
    pthread_create(&a, 0, one, 0);
    pthread_create(&b, 0, two, 0);
    pthread_join(c, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
";
    let (_, report) = checked(program, &["--policy", "run-to-block", "--recordings", "1"]);
    let found = subjects(&report, "race");
    assert!(!found.is_empty() && found.iter().all(|subject| subject.contains("make_second")), "{found:?}");
}
