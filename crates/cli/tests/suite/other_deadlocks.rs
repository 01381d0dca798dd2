//! A deadlock is proven by its own threads alone.

use crate::support::place::Place;

/// The locks of `L` are taken in two orders, but the second one only where the first is done: no execution blocks there. Two
/// others always do.
const PROGRAM: &str = "#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t L[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int done;
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
    return p;
}
static void *third(void *p) {
    pthread_mutex_lock(&c);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&d);
    return p;
}
static void *fourth(void *p) {
    pthread_mutex_lock(&d);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&c);
    return p;
}
static void both(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t first, second;
    pthread_create(&first, 0, one, 0);
    pthread_create(&second, 0, other, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
}
int main(void) {
    pthread_barrier_init(&barrier, 0, 2);
    both(back, forth);
    both(third, fourth);
    return 0;
}
";

#[test]
fn another_deadlock_does_not_prove_a_predicted_one() {
    let place = Place::new();
    place.compile("program", PROGRAM);
    let check =
        ["check", "--budget", "20", "--json", "report.json", "--show", "suspicions", "--output", "store", "--", "./program"];
    place.rashomon(&check).expect(66, &[]);
    let report = place.json("report.json");
    let found = report["findings"].as_array().into_iter().flatten();
    let proven = found.filter(|finding| finding["kind"] == "deadlock" && finding["verdict"] == "proven");
    let subjects: Vec<_> = proven.map(|finding| finding["subject"].as_str().unwrap_or_default()).collect();
    assert_eq!(subjects, ["mutex c, mutex d"], "{report:#}");
}
