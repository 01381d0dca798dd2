//! An execution that repeats the same state for ever ends at once and says so; one that only looks like it goes on.

use crate::support::place::Place;

const HEAD: &str = "#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <x86intrin.h>
static atomic_int go, come;
static volatile int plain;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
";

/// What `record` makes of it: its exit code. No program here takes long; the limit is for those that are to reach it.
#[track_caller]
fn recorded(body: &str, policy: &str, code: i32) {
    for level in ["-O0", "-O2"] {
        let place = Place::new();
        place.write("program.c", format!("{HEAD}{body}\n"));
        place.rashomon(&["cc", "-g", "-w", level, "-o", "program", "program.c", "-lpthread"]).expect(0, &[]);
        place.rashomon(&["record", "--policy", policy, "--timeout", "20", "-o", "store", "--", "./program"]).expect(code, &[]);
        let said = place.rashomon(&["trace", "stat", "store"]);
        assert_eq!(said.out.contains("Endless"), code == 124, "{policy} {level}: {said}");
    }
}

/// That the execution is endless, is said with who does what, and comes about again.
#[track_caller]
fn endless(body: &str, said: &[&str]) {
    let place = Place::new();
    place.compile("program", &format!("{HEAD}{body}\n"));
    let ended = place.rashomon(&["check", "--recordings", "1", "--budget", "20", "--json", "report.json", "--", "./program"]);
    ended.expect(66, said);
    let report = place.json("report.json");
    let finding = &report["findings"][0];
    assert_eq!((finding["kind"].as_str(), finding["grade"].as_str()), (Some("endless"), Some("endless")), "{report:#}");
    let id = finding["id"].as_str().unwrap_or_default().to_owned();
    place.rashomon(&["replay", &id]).expect(0, &[]);
}

#[test]
fn a_flag_that_nobody_sets() {
    let body = "static void *spin(void *p) { while (!atomic_load(&go)) ; return p; }
        int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0); pthread_join(t, 0); return 0; }";
    endless(body, &["repeats spin (program.c:", "blocked: the main thread at main"]);
}

#[test]
fn of_two_threads_side_by_side() {
    let body = "static void *spin(void *p) { while (!atomic_load(&go)) sched_yield(); return p; }
        int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0); while (!atomic_load(&come)) ; return 0; }";
    endless(body, &["the main thread repeats main", "thread 0 repeats spin"]);
}

#[test]
fn under_every_policy_and_of_every_kind() {
    for policy in ["run-to-block", "random", "round-robin", "pct"] {
        // Plain reads; polling under a mutex, and with sleeps.
        recorded("int main(void) { while (!plain) ; return 0; }", policy, 124);
    }
    recorded(
        "int main(void) { for (;;) { pthread_mutex_lock(&m); int p = plain; pthread_mutex_unlock(&m); \
            if (p) break; sched_yield(); } return 0; }",
        "random",
        124,
    );
    recorded("int main(void) { while (!atomic_load(&go)) usleep(1000); return 0; }", "random", 124);
}

/// What ends a loop in time makes it end here.
#[test]
fn what_ends_is_not_called_endless() {
    let ends = [
        // Rounds counted in a register, in memory, in thread-local storage.
        "int main(void) { for (long i = 0; i < 300000 && !atomic_load(&go); i++) sched_yield(); return 3; }",
        "static long rounds; int main(void) { while (!atomic_load(&go) && rounds++ < 300000) ; return 3; }",
        "static __thread int rounds; int main(void) { while (!atomic_load(&go) && rounds++ < 300000) ; return 3; }",
        // Clocks, the processor's too.
        "int main(void) { struct timespec t; do { clock_gettime(CLOCK_MONOTONIC, &t); \
            } while (!atomic_load(&go) && t.tv_sec < 100005); return 3; }",
        "int main(void) { unsigned long end = __rdtsc() + 1000000000ul; \
            while (!atomic_load(&go) && __rdtsc() < end) ; return 3; }",
        "static unsigned long now(void) { unsigned low, high; __asm__ volatile(\".byte 0x0f, 0x31\" \
            : \"=a\"(low), \"=d\"(high)); return (unsigned long)high << 32 | low; }
         int main(void) { unsigned long end = now() + 1000000000ul; while (!atomic_load(&go) && now() < end) ; return 3; }",
        // A timer's signal, and one that a child sends.
        "static void ring(int s) { atomic_store(&go, 1); }
         int main(void) { struct itimerval t = { { 0, 0 }, { 0, 300000 } }; signal(SIGALRM, ring); setitimer(ITIMER_REAL, &t, \
         0); while (!atomic_load(&go)) ; return 3; }",
        "static void ring(int s) { atomic_store(&go, 1); }
         int main(void) { signal(SIGUSR1, ring); pid_t us = getpid(); if (!fork()) { usleep(300000); kill(us, SIGUSR1); \
         _exit(0); } while (!atomic_load(&go)) ; wait(0); return 3; }",
        // Memory shared with a child.
        "int main(void) { atomic_int *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
         if (!fork()) { usleep(300000); atomic_store(shared, 1); _exit(0); } while (!atomic_load(shared)) ; wait(0); return 3; }",
        // Input.
        "int main(void) { int p[2]; pipe2(p, O_NONBLOCK); char c; if (!fork()) { usleep(300000); write(p[1], \"x\", 1); \
         _exit(0); }
         while (!atomic_load(&go) && read(p[0], &c, 1) != 1) ; wait(0); return 3; }",
        // Another thread that takes long before it acts, and one that waits with a time-out.
        "static void *late(void *p) { for (long i = 0; i < 30000000; i++) plain = plain + 1; atomic_store(&go, 1); return p; }
         int main(void) { pthread_t t; pthread_create(&t, 0, late, 0); while (!atomic_load(&go)) ; return 3; }",
        "static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
         static void *late(void *p) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += 5; \
         pthread_mutex_lock(&m); pthread_cond_timedwait(&c, &m, &t); atomic_store(&go, 1); pthread_mutex_unlock(&m); return p; }
         int main(void) { pthread_t t; pthread_create(&t, 0, late, 0); while (!atomic_load(&go)) ; pthread_join(t, 0); \
         return 3; }",
        // One that gives a lock back in its loop, for which another waits that sets the flag.
        "static void *set(void *p) { pthread_mutex_lock(&m); atomic_store(&go, 1); pthread_mutex_unlock(&m); return p; }
         int main(void) { pthread_t t; pthread_mutex_lock(&m); pthread_create(&t, 0, set, 0); while (!atomic_load(&go)) { \
         for (int i = 0; i < 100; i++) sched_yield(); pthread_mutex_unlock(&m); pthread_mutex_lock(&m); } \
         pthread_mutex_unlock(&m); pthread_join(t, 0); return 3; }",
        // A store that is taken back, which another thread may see in between.
        "static void *look(void *p) { while (!atomic_load(&come)) ; atomic_store(&go, 1); return p; }
         int main(void) { pthread_t t; pthread_create(&t, 0, look, 0); while (!atomic_load(&go)) { atomic_store(&come, 1); \
         sched_yield(); atomic_store(&come, 0); sched_yield(); } pthread_join(t, 0); return 3; }",
    ];
    for body in ends {
        recorded(body, "random", 3);
    }
}

/// The kernel may move the thread at any time: whether it does is not for the test to say, but endless it is not.
#[test]
fn to_wait_for_another_processor_is_not_called_endless() {
    let place = Place::new();
    let body = "int main(void) { int here = sched_getcpu(); while (sched_getcpu() == here) sched_yield(); return 0; }";
    place.write("program.c", format!("#define _GNU_SOURCE\n{HEAD}{body}\n"));
    place.rashomon(&["cc", "-g", "-w", "-o", "program", "program.c", "-lpthread"]).expect(0, &[]);
    let ended = place.rashomon(&["check", "--recordings", "1", "--timeout", "2", "--budget", "5", "--", "./program"]);
    assert!(!format!("{}{}", ended.out, ended.err).contains("endless ("), "{ended}");
}

/// A main thread may well leave everything to others, and to signals.
#[test]
fn to_sleep_for_ever_is_not_called_endless() {
    let place = Place::new();
    place.compile("program", &format!("{HEAD}int main(void) {{ for (;;) sleep(1); }}\n"));
    place.rashomon(&["record", "--timeout", "2", "-o", "store", "--", "./program"]).expect(124, &[]);
    let said = place.rashomon(&["trace", "stat", "store"]);
    assert!(!said.out.contains("Endless"), "{said}");
}
