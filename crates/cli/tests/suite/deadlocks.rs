//! A program that deadlocks ends in time wherever its threads run in parallel, and what it is is said.

use crate::support::place::{Place, statuses};
use std::time::{Duration, Instant};

/// Who holds what is forced by the semaphores.
const HEAD: &str = "#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <unistd.h>
static sem_t s1, s2, ever;
static _Atomic int stop;
#define MEET(mine, other) sem_post(&mine); sem_wait(&other)
#define TWO(KIND, INIT, HOLD, WANT) static KIND a INIT, b INIT; \\
    static void *one(void *p) { HOLD(&a); MEET(s1, s2); WANT(&b); return p; } \\
    static void *two(void *p) { HOLD(&b); MEET(s2, s1); WANT(&a); return p; }
#define RUN pthread_t x, y; pthread_create(&x, 0, one, 0); pthread_create(&y, 0, two, 0); \\
    pthread_join(x, 0); pthread_join(y, 0); stop = 1
static void *ticks(void *p) { while (!stop) usleep(1000); return p; }
";

#[track_caller]
fn ends_everywhere(body: &str, kind: &str, others_run: bool) {
    let place = Place::new();
    place.compile("program", &format!("{HEAD}{body}\n"));
    let begun = Instant::now();
    place.rashomon(&["record", "--policy", "free", "--output", "free", "--", "./program"]).expect(124, &[]);
    let provoke = ["provoke", "--budget", "20", "--json", "report.json", "--output", "provoked", "--", "./program"];
    place.rashomon(&provoke).expect(66, &[]);
    let found = statuses(&place.json("report.json"));
    assert!(found.iter().any(|(id, status)| id.starts_with(kind) && status == "proven"), "{found:?}");
    if !others_run {
        place.rashomon(&["detect", "--", "./program"]).expect(66, &[]);
    }
    assert!(begun.elapsed() < Duration::from_secs(80), "{:?}", begun.elapsed());
}

#[test]
fn of_mutexes() {
    let body = "TWO(pthread_mutex_t, = PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock, pthread_mutex_lock)
        int main(void) { RUN; return 0; }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn of_a_mutex_with_itself() {
    let body = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
        int main(void) { pthread_mutex_lock(&a); pthread_mutex_lock(&a); return 0; }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn through_holders_of_read_locks() {
    let body = "TWO(pthread_rwlock_t, = PTHREAD_RWLOCK_INITIALIZER, pthread_rwlock_rdlock, pthread_rwlock_wrlock)
        int main(void) { RUN; return 0; }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn of_spin_locks() {
    let body = "TWO(pthread_spinlock_t, , pthread_spin_lock, pthread_spin_lock)
        int main(void) { pthread_spin_init(&a, 0); pthread_spin_init(&b, 0); RUN; return 0; }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn of_c11_mutexes() {
    let body = "static mtx_t a, b;
        static int one(void *p) { mtx_lock(&a); MEET(s1, s2); mtx_lock(&b); return 0; }
        static int two(void *p) { mtx_lock(&b); MEET(s2, s1); mtx_lock(&a); return 0; }
        int main(void) {
            thrd_t x, y;
            mtx_init(&a, mtx_plain);
            mtx_init(&b, mtx_plain);
            thrd_create(&x, one, 0);
            thrd_create(&y, two, 0);
            thrd_join(x, 0);
            thrd_join(y, 0);
            return 0;
        }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn of_joins() {
    let body = "static pthread_t x, y;
        static void *one(void *p) { sem_wait(&s1); pthread_join(y, 0); return p; }
        static void *two(void *p) { sem_wait(&s1); pthread_join(x, 0); return p; }
        int main(void) {
            pthread_create(&x, 0, one, 0);
            pthread_create(&y, 0, two, 0);
            sem_post(&s1);
            sem_post(&s1);
            for (;;)
                sem_wait(&ever);
        }";
    ends_everywhere(body, "deadlock", false);
}

#[test]
fn of_a_condition_that_nobody_signals() {
    let body = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        int main(void) { pthread_mutex_lock(&a); for (;;) pthread_cond_wait(&c, &a); }";
    ends_everywhere(body, "stuck", false);
}

/// Nobody is going to break it; `detect` tells of it, and leaves the program alone.
#[test]
fn among_some_threads_while_others_run() {
    let body = "TWO(pthread_mutex_t, = PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock, pthread_mutex_lock)
        int main(void) { pthread_t z; pthread_create(&z, 0, ticks, 0); RUN; pthread_join(z, 0); return 0; }";
    ends_everywhere(body, "deadlock", true);
}

/// Who joins can be cancelled, and its handler gives the lock back: a cycle with such a wait is none while somebody is left to do
/// so. It is asked to last longer than those that are.
#[test]
fn not_of_a_join_that_is_cancelled() {
    let body = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
        static pthread_t x, y;
        static void give(void *p) { pthread_mutex_unlock(&a); }
        static void *two(void *p) { pthread_mutex_lock(&a); pthread_mutex_unlock(&a); return p; }
        static void *one(void *p) {
            pthread_mutex_lock(&a);
            pthread_cleanup_push(give, 0);
            pthread_create(&y, 0, two, 0);
            pthread_join(y, 0);
            pthread_cleanup_pop(1);
            return p;
        }
        int main(void) {
            pthread_create(&x, 0, one, 0);
            sleep(5);
            pthread_cancel(x);
            return pthread_join(x, 0) || pthread_join(y, 0);
        }";
    let place = Place::new();
    place.compile("program", &format!("{HEAD}{body}\n"));
    place.rashomon(&["record", "--policy", "free", "--output", "free", "--", "./program"]).expect(0, &[]);
    let ended = place.rashomon(&["detect", "--", "./program"]).expect(0, &[]);
    assert!(!ended.err.contains("deadlock"), "{ended}");
}

/// `asleep` looks at the kernel's account: the thread of that id sleeps in a futex call.
const ASLEEP: &str = "#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
static int asleep(long id) {
    char path[64], text[32] = {0};
    snprintf(path, sizeof path, \"/proc/self/task/%ld/syscall\", id);
    FILE *file = fopen(path, \"r\");
    if (file) { if (!fgets(text, sizeof text, file)) text[0] = 0; fclose(file); }
    return !strncmp(text, \"202 \", 4);
}
";

/// `looked` waits until the thread of the runtime that looks for deadlocks has slept so often, between two looks each time. It is
/// the one that appears when somebody waits.
const LOOKED: &str = "#include <dirent.h>
#include <stdlib.h>
static unsigned long sleeps_of_others(long one, long two) {
    unsigned long most = 0;
    DIR *tasks = opendir(\"/proc/self/task\");
    struct dirent *task;
    while (tasks && (task = readdir(tasks))) {
        long id = atol(task->d_name);
        char path[64], line[128];
        unsigned long sleeps;
        if (!id || id == one || id == two) continue;
        snprintf(path, sizeof path, \"/proc/self/task/%ld/status\", id);
        FILE *file = fopen(path, \"r\");
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, \"voluntary_ctxt_switches: %lu\", &sleeps) == 1 && sleeps > most) most = sleeps;
        if (file) fclose(file);
    }
    if (tasks) closedir(tasks);
    return most;
}
static void looked(unsigned long times, long waits) {
    long own = syscall(SYS_gettid);
    unsigned long first = sleeps_of_others(waits, own);
    while (sleeps_of_others(waits, own) < first + times) sched_yield();
}
";

/// Another thread may unlock a mutex that serves as a semaphore; it takes longer for that than two looks of the detector.
#[test]
fn not_of_a_mutex_that_another_thread_unlocks() {
    let body = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
        static long waits;
        static void *gives(void *p) {
            while (!asleep(waits)) sched_yield();
            looked(6, waits);
            pthread_mutex_unlock(&a);
            return p;
        }
        int main(void) {
            waits = syscall(SYS_gettid);
            pthread_mutex_lock(&a);
            pthread_t x;
            pthread_create(&x, 0, gives, 0);
            pthread_mutex_lock(&a);
            return pthread_join(x, 0);
        }";
    let place = Place::new();
    place.compile("program", &format!("{HEAD}{ASLEEP}{LOOKED}{body}\n"));
    let ended = place.rashomon(&["detect", "--", "./program"]);
    assert!(!ended.err.contains("deadlock"), "{ended}");
}

/// The process ends before the deadlock has lasted as long as it must while others run.
#[test]
fn that_the_end_of_the_process_finds() {
    let body = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
        static _Atomic long first, second;
        static void *one(void *p) {
            pthread_mutex_lock(&a);
            MEET(s1, s2);
            first = syscall(SYS_gettid);
            pthread_mutex_lock(&b);
            return p;
        }
        static void *two(void *p) {
            pthread_mutex_lock(&b);
            MEET(s2, s1);
            second = syscall(SYS_gettid);
            pthread_mutex_lock(&a);
            return p;
        }
        int main(void) {
            pthread_t x, y;
            pthread_create(&x, 0, one, 0);
            pthread_create(&y, 0, two, 0);
            while (!first || !second || !asleep(first) || !asleep(second)) sched_yield();
            return 0;
        }";
    let place = Place::new();
    place.compile("program", &format!("{HEAD}{ASLEEP}{body}\n"));
    let ended = place.rashomon(&["detect", "--", "./program"]).expect(66, &[]);
    assert!(ended.err.lines().any(|line| line.starts_with("deadlock")), "{ended}");
}
