//! What a semaphore began with decides whether a wait needs the post that came before it in the recording.

use crate::support::place::Place;

/// Recorded with the writer first, whose post the reader's wait then takes.
const PROGRAM: &str = "#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
static sem_t own, *semaphore = &own;
static int message;
static void *write_it(void *p) { message = 1; sem_post(semaphore); return p; }
static void *read_it(void *p) { sem_wait(semaphore); message = 2; return p; }
int main(void) {
    pthread_t one, two;
    char name[40];
    snprintf(name, sizeof name, \"/rashomon-count-%010d\", (int)getpid());
    BEGINS
    pthread_create(&one, 0, write_it, 0);
    pthread_create(&two, 0, read_it, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return message < 0;
}
";

/// Whether one recording leads to a proof that both write at once.
#[track_caller]
fn races(begins: &str) -> bool {
    let place = Place::new();
    place.compile("program", &PROGRAM.replace("BEGINS", begins));
    let check = ["check", "--policy", "run-to-block", "--recordings", "1", "--budget", "20", "--", "./program"];
    let ended = place.rashomon(&check);
    let proven = ended.err.contains("1 proven, 0 predicted") || ended.out.contains("1 proven, 0 predicted");
    ended.expect(if proven { 66 } else { 0 }, &[]);
    proven
}

#[test]
fn by_initialisation() {
    assert!(races("sem_init(&own, 0, 1);"));
    assert!(!races("sem_init(&own, 0, 0);"));
}

#[test]
fn initialised_again_it_begins_anew() {
    let first = "sem_init(&own, 0, 2); sem_wait(&own); sem_destroy(&own);";
    assert!(!races(&format!("{first} sem_init(&own, 0, 0);")));
    assert!(races(&format!("{first} sem_init(&own, 0, 1);")));
    assert!(!races("sem_init(&own, 0, 0); sem_init(&own, 0, 1u << 31);"), "an initialisation that fails changes nothing");
}

#[test]
fn by_name() {
    let open = "semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, COUNT); sem_unlink(name);";
    assert!(races(&open.replace("COUNT", "1")));
    assert!(!races(&open.replace("COUNT", "0")));
}

#[test]
fn an_existing_one_has_the_count_that_it_has() {
    let open = "semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0); sem_post(semaphore); sem_post(semaphore);";
    let again = "sem_close(semaphore); semaphore = sem_open(name, O_CREAT, 0600, 0); sem_unlink(name);";
    assert!(races(&format!("{open} sem_wait(semaphore); {again}")), "one is left");
    assert!(!races(&format!("{open} sem_wait(semaphore); sem_wait(semaphore); {again}")));
    assert!(!races(&format!("{open} {again} sem_wait(semaphore); sem_wait(semaphore);")));
}

#[test]
fn opened_twice_it_is_one() {
    let open = "semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, COUNT); sem_wait(semaphore);
        if (sem_open(name, O_CREAT, 0600, 5) != semaphore) return 9; sem_close(semaphore); sem_unlink(name);";
    assert!(races(&open.replace("COUNT", "2")));
    assert!(!races(&open.replace("COUNT", "1")));
}

/// One recording, in which the first thread's section comes before the second's. What lies outside of them races in the other
/// order alone.
const USED_AS_LOCK: &str = "#include <pthread.h>
#include <semaphore.h>
static sem_t lock;
static int outside, inside;
static void *one(void *p) { outside = 1; sem_wait(&lock); inside++; sem_post(&lock); return p; }
static void *other(void *p) { sem_wait(&lock); inside++; sem_post(&lock); outside = 2; return p; }
int main(void) {
    pthread_t first, second;
    sem_init(&lock, 0, 1);
    pthread_create(&first, 0, one, 0);
    pthread_create(&second, 0, other, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return outside < 0;
}
";

#[test]
fn used_as_a_lock_it_is_one() {
    let place = Place::new();
    let check = ["check", "--policy", "run-to-block", "--recordings", "1", "--engines", "force", "--", "./program"];
    place.compile("program", USED_AS_LOCK);
    let ended = place.rashomon(&check).expect(66, &["data race (proven, co-enabled)", "global outside (4 bytes)"]);
    assert!(!ended.err.contains("inside"), "{}", ended.err);
    // Who has to be told does not take it first.
    let handed_over = USED_AS_LOCK.replace("sem_init(&lock, 0, 1)", "sem_init(&lock, 0, 0)");
    let handed_over = handed_over.replacen("sem_wait(&lock); inside++;", "inside++;", 1);
    place.compile("program", &handed_over);
    place.rashomon(&check).expect(0, &[]);
}
