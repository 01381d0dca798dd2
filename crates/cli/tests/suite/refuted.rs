//! What no correct reordering of the recording shows is refuted: counted, not listed, and forced when nothing else is left.

use crate::support::place::{Place, statuses};

const CHECK: [&str; 10] =
    ["check", "--policy", "run-to-block", "--recordings", "1", "--budget", "20", "--engines", "force", "--json"];

fn checked(program: &str, code: i32) -> (Place, Vec<String>) {
    let place = Place::new();
    place.compile("program", program);
    place.rashomon(&[&CHECK[..], &["report.json", "--show", "everything", "--", "./program"]].concat()).expect(code, &[]);
    let found = statuses(&place.json("report.json"));
    (place, found.into_iter().map(|(_, status)| status).collect())
}

/// A recursive lock of the program's own: whose turn it is says a count under a mutex, not the mutex itself.
const RECURSIVE: &str = "#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static pthread_t owner;
static int depth, total;
static void take(void) {
    pthread_mutex_lock(&mutex);
    if (depth && !pthread_equal(owner, pthread_self()))
        while (depth)
            pthread_cond_wait(&freed, &mutex);
    owner = pthread_self();
    depth++;
    pthread_mutex_unlock(&mutex);
}
static void give(void) {
    pthread_mutex_lock(&mutex);
    if (!--depth)
        pthread_cond_signal(&freed);
    pthread_mutex_unlock(&mutex);
}
static void *work(void *p) {
    take();
    take();
    total++;
    give();
    total++;
    give();
    return p;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return total != 4;
}
";

#[test]
fn a_lock_of_the_programs_own_keeps_accesses_apart() {
    let (place, found) = checked(RECURSIVE, 0);
    assert!(!found.is_empty() && found.iter().all(|status| status == "refuted"), "{found:?}");
    let ended = place.rashomon(&["check", "--recordings", "1", "--budget", "20", "--", "./program"]);
    let ended = ended.expect(0, &["0 proven, 0 predicted, 0 suspected, 0 diverged", "note: refuted: "]);
    assert!(!ended.err.contains("data race"), "{}", ended.err);
}

/// The second thread reads the first one's number and does not look at it: with another number the same happens.
const UNUSED: &str = "#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int number, message;
static void *first(void *p) {
    message = 1;
    pthread_mutex_lock(&mutex);
    number = 1;
    pthread_mutex_unlock(&mutex);
    return p;
}
static void *second(void *p) {
    pthread_mutex_lock(&mutex);
    volatile int unused = number;
    pthread_mutex_unlock(&mutex);
    (void)unused;
    message = 2;
    return p;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, first, 0);
    pthread_create(&two, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return message < 0;
}
";

#[test]
fn what_other_values_show_is_proven_all_the_same() {
    let (_, found) = checked(UNUSED, 66);
    assert_eq!(found, ["proven"]);
}
