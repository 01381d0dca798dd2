//! What a recording had no room for: the online detector says where to look, and a recording of these places alone shows it.

use crate::support::place::Place;

/// Touches more locations than one megabyte of recording takes; the race comes behind.
const PROGRAM: &str = "#include <pthread.h>
static long table[1 << 20];
static int late;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void work(unsigned seed) {
    for (int step = 0; step < 1 << 18; step++) {
        seed = seed * 1103515245u + 12345u;
        table[seed >> 12] += step;
    }
}
static void touch(void) {
#ifdef LOCKED
    pthread_mutex_lock(&mutex);
#endif
    late++;
#ifdef LOCKED
    pthread_mutex_unlock(&mutex);
#endif
}
static void *task(void *unused) { touch(); return unused; }
int main(void) {
    pthread_t thread;
    work(1);
    pthread_create(&thread, 0, task, 0);
    touch();
    pthread_join(thread, 0);
    return late != 2;
}
";

fn check(source: &str, engines: &str) -> (Place, crate::support::place::Ended) {
    let place = Place::new();
    place.compile("program", source);
    let arguments = ["check", "--trace-limit", "1", "--budget", "60", "--engines", engines, "--", "./program"];
    let ended = place.rashomon(&arguments);
    (place, ended)
}

const LOST: &str = "--trace-limit was reached";

#[test]
fn a_race_behind_the_end_of_the_recording_is_proven_and_replays() {
    let (place, ended) = check(PROGRAM, "detect,force");
    let said = ["data race (proven, unordered)", "global late (4 bytes)", LOST, "of racing places seen by the online detector"];
    let ended = ended.expect(66, &said);
    let id = ended.err.split(&['[', ']']).find(|word| word.starts_with("race-")).expect("an id").to_owned();
    place.rashomon(&["replay", &id]).expect(0, &[]);
}

#[test]
fn without_the_detector_nobody_sees_it() {
    let (_, ended) = check(PROGRAM, "force");
    ended.expect(0, &["0 proven", LOST]);
}

#[test]
fn what_a_lock_orders_is_no_race_however_little_is_kept() {
    let (_, ended) = check(&format!("#define LOCKED\n{PROGRAM}"), "detect,force");
    ended.expect(0, &["0 proven, 0 predicted, 0 suspected", LOST]);
}
