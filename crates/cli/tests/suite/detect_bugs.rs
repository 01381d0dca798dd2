//! `rashomon detect`: what is a bug without a race. Every order that matters is forced by joins, or there is only one thread.

use crate::support::place::{Ended, Place};

/// Declarations that every program here may need, on one line: line numbers stay those of the program.
const PRELUDE: &str = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <errno.h>\n#include <signal.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include <ucontext.h>\n#include <unistd.h>
void AnnotateRWLockCreate(char *, int, void *); void AnnotateRWLockAcquired(char *, int, void *, long); \
    void AnnotateRWLockReleased(char *, int, void *, long);
void AnnotateIgnoreWritesBegin(char *, int); void AnnotateIgnoreWritesEnd(char *, int); void AnnotateIgnoreSyncBegin(char *, \
    int); void AnnotateIgnoreSyncEnd(char *, int);
void AnnotateBenignRaceSized(char *, int, void *, long, char *); void AnnotateHappensBefore(char *, int, void *); \
    void AnnotateHappensAfter(char *, int, void *);
void *__tsan_get_current_fiber(void); void *__tsan_create_fiber(unsigned); void __tsan_destroy_fiber(void *); \
    void __tsan_switch_to_fiber(void *, unsigned);
void __tsan_mutex_create(void *, unsigned); void __tsan_mutex_destroy(void *, unsigned); void __tsan_mutex_pre_lock(void *, \
    unsigned); void __tsan_mutex_post_lock(void *, unsigned, int);
int __tsan_mutex_pre_unlock(void *, unsigned); void __tsan_mutex_post_unlock(void *, unsigned); \
    void __tsan_check_no_mutexes_held(void);
void *__tsan_external_register_tag(const char *); void __tsan_external_write(void *, void *, void *);
void __tsan_java_init(unsigned long, unsigned long); int __tsan_java_fini(void); void __tsan_java_alloc(unsigned long, unsigned \
    long); void __tsan_java_free(unsigned long, unsigned long);
void __tsan_java_move(unsigned long, unsigned long, unsigned long); void __tsan_java_mutex_lock(unsigned long); \
    void __tsan_java_mutex_unlock(unsigned long);
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER; \
    static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static void alone(void *(*task)(void *)) { pthread_t thread; pthread_create(&thread, 0, task, 0); pthread_join(thread, 0); }
static void both(void *(*one)(void *), void *(*other)(void *)) { pthread_t a, b; pthread_create(&a, 0, one, 0); \
    pthread_create(&b, 0, other, 0); pthread_join(a, 0); pthread_join(b, 0); }
int x;
";

#[track_caller]
fn run(body: &str, options: &[&str]) -> Ended {
    let place = Place::new();
    place.compile("bug", &format!("{PRELUDE}{body}"));
    place.rashomon(&[&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0"], options, &["--", "./bug"]].concat())
}

/// The program is reported for this, and each of the functions named is in a report.
#[track_caller]
fn reported(body: &str, kind: &str, said: &[&str]) -> Ended {
    let ended = run(body, &[]).expect(66, &[&[format!("WARNING: ThreadSanitizer: {kind} (pid=").as_str()], said].concat());
    assert!(!ended.err.contains("rashomon_runtime::"), "a frame of our own: {ended}");
    ended
}

#[track_caller]
fn silent(body: &str, options: &[&str]) {
    let ended = run(body, options).expect(0, &[]);
    assert!(!ended.err.contains("ThreadSanitizer"), "{ended}");
}

const BAD_UNLOCK: &str = "unlock of an unlocked mutex (or by a wrong thread)";

#[test]
fn unlock_of_what_is_not_held() {
    let said = &["    #0 pthread_mutex_unlock ", "    #1 main "];
    reported("int main(void) { pthread_mutex_unlock(&m); return 0; }", BAD_UNLOCK, said);
    let by_another = "static void *task(void *p) { pthread_mutex_unlock(&m); return 0; \
        } int main(void) { pthread_mutex_lock(&m); alone(task); return 0; }";
    reported(by_another, BAD_UNLOCK, &["    #0 pthread_mutex_unlock ", "    #1 task "]);
    let spin = "static pthread_spinlock_t s; static void *task(void *p) { pthread_spin_unlock(&s); return 0; }
        int main(void) { pthread_spin_init(&s, 0); pthread_spin_lock(&s); alone(task); return 0; }";
    reported(spin, BAD_UNLOCK, &["    #0 pthread_spin_unlock ", "    #0 pthread_spin_init "]);
    let shared = "static void *task(void *p) { pthread_rwlock_unlock(&rw); return 0; \
        } int main(void) { pthread_rwlock_wrlock(&rw); alone(task); return 0; }";
    reported(shared, BAD_UNLOCK, &["    #0 pthread_rwlock_unlock ", "    #1 task "]);
    silent(
        "static void *task(void *p) { pthread_rwlock_unlock(&rw); return 0; } int main(void) { pthread_rwlock_rdlock(&rw); \
            pthread_rwlock_rdlock(&rw); alone(task); pthread_rwlock_unlock(&rw); return 0; }",
        &[],
    );
}

#[test]
fn locks_of_the_programs_own() {
    let twice = "static void *task(void *p) { AnnotateRWLockAcquired(0, 0, &x, 1); return 0; \
        } int main(void) { AnnotateRWLockAcquired(0, 0, &x, 1); alone(task); return 0; }";
    reported(twice, "double lock of a mutex", &["    #0 AnnotateRWLockAcquired ", "    #1 task ", "    #1 main "]);
    let read = "int main(void) { AnnotateRWLockAcquired(0, 0, &x, 1); AnnotateRWLockAcquired(0, 0, &x, 0); return 0; }";
    reported(read, "read lock of a write locked mutex", &["    #0 AnnotateRWLockAcquired "]);
    let unread = "int main(void) { AnnotateRWLockAcquired(0, 0, &x, 1); AnnotateRWLockReleased(0, 0, &x, 0); return 0; }";
    reported(unread, "read unlock of a write locked mutex", &["    #0 AnnotateRWLockReleased "]);
    let lives = |create: u32, destroy: u32| {
        format!(
            "int main(void) {{ __tsan_mutex_create(&x, {create}); __tsan_mutex_pre_lock(&x, 0); \
                __tsan_mutex_post_lock(&x, 0, 0); __tsan_mutex_destroy(&x, {destroy}); return 0; }}"
        )
    };
    reported(
        &lives(0, 0),
        "destroy of a locked mutex",
        &["    #0 __tsan_mutex_destroy ", "  and:\n    #0 __tsan_mutex_post_lock "],
    );
    // Linker-initialised locks are not destroyed; nor those that are static, by what is not.
    silent(&lives(1, 0), &[]);
    silent(&lives(0, 1 << 8), &[]);
    // What happens inside of the lock's own works orders nothing and is no access.
    let works = "static int word; static void take(void) { __tsan_mutex_pre_lock(&x, 0); word = 1; __tsan_mutex_post_lock(&x, \
        0, 0); }
        static void give(void) { __tsan_mutex_pre_unlock(&x, 0); word = 0; __tsan_mutex_post_unlock(&x, 0); }
        static void *task(void *p) { for (int i = 0; i < 100; i++) { pthread_mutex_lock(&m); take(); give(); \
        pthread_mutex_unlock(&m); word = 2; } return 0; }
        int main(void) { AnnotateIgnoreWritesBegin(0, 0); word = 3; AnnotateIgnoreWritesEnd(0, 0); alone(task); return 0; }";
    silent(works, &[]);
    let held = "static void checks(void) { __tsan_check_no_mutexes_held(); } int main(void) { checks(); pthread_mutex_lock(&m); \
        checks(); pthread_mutex_unlock(&m); return 0; }";
    reported(held, "mutex held in the wrong context", &["    #1 checks ", "ThreadSanitizer: reported 1 warnings"]);
}

#[test]
fn the_end_of_locks() {
    let locked = "int main(void) { pthread_mutex_t l; pthread_mutex_init(&l, 0); pthread_mutex_lock(&l); \
        pthread_mutex_destroy(&l); return 0; }";
    let said = ["    #0 pthread_mutex_destroy ", "  and:\n    #0 pthread_mutex_lock ", "created at:\n    #0 pthread_mutex_init "];
    reported(locked, "destroy of a locked mutex", &said);
    silent(locked, &["-O", "report_destroy_locked=0"]);
    let after = "int main(void) { pthread_mutex_t l; pthread_mutex_init(&l, 0); pthread_mutex_destroy(&l); \
        pthread_mutex_lock(&l); return 0; }";
    reported(after, "use of an invalid mutex (e.g. uninitialized or destroyed)", &["    #0 pthread_mutex_lock "]);
    let shared = "int main(void) { pthread_rwlock_init(&rw, 0); pthread_rwlock_destroy(&rw); pthread_rwlock_rdlock(&rw); \
        pthread_rwlock_unlock(&rw); return 0; }";
    reported(shared, "use of an invalid mutex (e.g. uninitialized or destroyed)", &["    #0 pthread_rwlock_rdlock "]);
    silent(
        "int main(void) { pthread_rwlock_init(&rw, 0); pthread_rwlock_destroy(&rw); \
            rw = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER; pthread_rwlock_rdlock(&rw); pthread_rwlock_unlock(&rw); return \
            0; }",
        &[],
    );
    // Where the heap writes nothing when memory is freed, or the lock would be taken.
    let freed = "int main(void) { char *p = malloc(64); pthread_spinlock_t *l = (pthread_spinlock_t *)(p + 32); \
        pthread_spin_init(l, 0); free(p); pthread_spin_lock(l); return 0; }";
    let held = "static void stop(int s) { _exit(7); }
        int main(void) { pthread_spinlock_t *l = malloc(64); free((void *)l); signal(SIGALRM, stop); alarm(2); \
        pthread_spin_lock(l); return 0; }";
    run(held, &[]).expect(7, &["WARNING: ThreadSanitizer: heap-use-after-free", "    #0 pthread_spin_lock ", "    #0 free "]);
    reported(freed, "heap-use-after-free", &["  Atomic read of size 1 ", "    #0 pthread_spin_lock ", "    #0 free "]);
    // Destruction behind the first use of the lock, but not behind the last one.
    let racing = |first: &str| {
        format!(
            "static pthread_mutex_t l; static int used, done;
        static void use(void) {{ pthread_mutex_lock(&l); pthread_mutex_unlock(&l); }}
        static void *task(void *p) {{ {first} __atomic_store_n(&used, 1, __ATOMIC_RELEASE); use(); __atomic_store_n(&done, 1, \
        __ATOMIC_RELAXED); return 0; }}
        int main(void) {{ pthread_mutex_init(&l, 0); pthread_t t; pthread_create(&t, 0, task, 0); \
        while (!__atomic_load_n(&used, __ATOMIC_ACQUIRE));
        while (!__atomic_load_n(&done, __ATOMIC_RELAXED)); pthread_mutex_destroy(&l); pthread_join(t, 0); return 0; }}"
        )
    };
    let said = ["    #0 pthread_mutex_destroy ", "  Previous atomic read of size 1 "];
    reported(&racing(""), "data race", &said);
    reported(&racing("use();"), "data race", &[said[0], said[1], "    #0 pthread_mutex_unlock "]);
}

#[test]
fn orders_of_locks() {
    let inverted = "static void ab(void) { pthread_mutex_lock(&m); pthread_mutex_lock(&n); pthread_mutex_unlock(&n); \
        pthread_mutex_unlock(&m); }
        static void ba(void) { pthread_mutex_lock(&n); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); \
        pthread_mutex_unlock(&n); }
        static void *first(void *p) { ab(); return 0; } static void *second(void *p) { ba(); ba(); return 0; } int main(void) { \
        alone(first); alone(second); return 0; }";
    let kind = "lock-order-inversion (potential deadlock)";
    let said = [
        " => M1 (0x",
        "acquired here while holding mutex M",
        "in thread T1:",
        "in thread T2:",
        "second_deadlock_stack=1",
        "reported 1 warnings",
    ];
    reported(inverted, kind, &said);
    run(inverted, &["-O", "second_deadlock_stack=1"]).expect(66, &["previously acquired by the same thread here:"]);
    silent(inverted, &["-O", "detect_deadlocks=0"]);
    // A try never waits.
    silent(
        &inverted
            .replace("pthread_mutex_lock(&n); pthread_mutex_unlock(&n)", "pthread_mutex_trylock(&n); pthread_mutex_unlock(&n)"),
        &[],
    );
    let cycle = |locks: usize, closes: bool| {
        format!(
            "static pthread_mutex_t l[{locks}]; int main(void) {{ for (int i = 0; i < {locks}; i++) pthread_mutex_init(&l[i], 0);
            for (int i = 0; i < {locks} - !{}; i++) {{ pthread_mutex_lock(&l[i]); pthread_mutex_lock(&l[(i + 1) % {locks}]); \
            pthread_mutex_unlock(&l[(i + 1) % {locks}]); pthread_mutex_unlock(&l[i]); }} return 0; }}",
            closes as u32
        )
    };
    reported(&cycle(3, true), kind, &[" => M2 (0x", "reported 1 warnings"]);
    reported(&cycle(40, true), kind, &[" => M39 (0x", "reported 1 warnings"]);
    silent(&cycle(40, false), &[]);
    // More locks held than a lock set has room for; the innermost closes a cycle with the outermost.
    let many = "static pthread_mutex_t l[300]; int main(void) { for (int i = 0; i < 300; i++) { pthread_mutex_init(&l[i], 0); \
        pthread_mutex_lock(&l[i]); }
        for (int i = 0; i < 300; i++) pthread_mutex_unlock(&l[i]); pthread_mutex_lock(&l[299]); pthread_mutex_lock(&l[0]); \
        pthread_mutex_unlock(&l[0]); pthread_mutex_unlock(&l[299]); return 0; }";
    reported(many, kind, &["reported 1 warnings"]);
    // A lock that is destroyed takes its place in the order with it.
    let reborn = "static pthread_mutex_t l; static void in(int inverted) { pthread_mutex_init(&l, 0); \
        pthread_mutex_lock(inverted ? &l : &m); pthread_mutex_lock(inverted ? &m : &l);
        pthread_mutex_unlock(&m); pthread_mutex_unlock(&l); pthread_mutex_destroy(&l); } int main(void) { in(0); in(1); in(0); \
        return 0; }";
    silent(reborn, &[]);
}

#[test]
fn deadlocks_that_happen() {
    let pair = "static pthread_barrier_t b; static void *task(void *p) { pthread_mutex_lock(&n); pthread_barrier_wait(&b); \
        pthread_mutex_lock(&m); return 0; }
        int main(void) { pthread_barrier_init(&b, 0, 2); pthread_t t; pthread_create(&t, 0, task, 0); pthread_mutex_lock(&m); \
        pthread_barrier_wait(&b); pthread_mutex_lock(&n); return 0; }";
    run(pair, &[]).expect(
        66,
        &[
            "lock-order-inversion (potential deadlock)",
            "WARNING: ThreadSanitizer: deadlock (pid=",
            "  Main thread waits for mutex M",
            "  Thread T1 waits for mutex M",
            "held by main thread:",
            "held by thread T1:",
            "the program is ended",
        ],
    );
    let itself = "int main(void) { pthread_mutex_lock(&m); pthread_mutex_lock(&m); return 0; }";
    run(itself, &[]).expect(66, &["double lock of a mutex", "  Main thread waits for mutex M0", "the program is ended"]);
    let join = "static void *task(void *p) { pthread_mutex_lock(&m); return 0; \
        } int main(void) { pthread_mutex_lock(&m); alone(task); return 0; }";
    run(join, &[])
        .expect(66, &["  Main thread waits for thread T1 to end:", "  Thread T1 waits for mutex M0", "the program is ended"]);
}

#[test]
fn threads_that_nobody_joins() {
    // The kernel gives a robust mutex on when the thread that has it is gone.
    let leaks = "#include <semaphore.h>
        static pthread_mutex_t dying; static sem_t held; static void *task(void *p) { pthread_mutex_lock(&dying); \
        sem_post(&held); return 0; }
        int main(void) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setrobust(&a, \
        PTHREAD_MUTEX_ROBUST); pthread_mutex_init(&dying, &a); sem_init(&held, 0, 0);
        for (int i = 0; i < 3; i++) { pthread_t t; pthread_create(&t, 0, task, 0); sem_wait(&held); pthread_mutex_lock(&dying); \
        pthread_mutex_consistent(&dying); pthread_mutex_unlock(&dying); }
        return 0; }";
    reported(
        leaks,
        "thread leak",
        &["finished) created by main thread at:\n    #0 pthread_create ", "And 2 more similar thread leaks."],
    );
    silent(leaks, &["-O", "report_thread_leaks=0"]);
    silent(
        "static void *task(void *p) { return 0; } int main(void) { pthread_t t; \
            pthread_create(&t, 0, task, 0); pthread_detach(t); return 0; }",
        &[],
    );
}

#[test]
fn fibres_are_threads() {
    let switches = |flags: u32| {
        format!(
            "static char stack[65536]; static ucontext_t inner, outer; static void *home, *fiber;
            static void run(void) {{ x = 1; __tsan_switch_to_fiber(home, {flags}); swapcontext(&inner, &outer); }}
            int main(void) {{ home = __tsan_get_current_fiber(); fiber = __tsan_create_fiber(0); getcontext(&inner); \
            inner.uc_stack.ss_sp = stack; inner.uc_stack.ss_size = sizeof stack;
            makecontext(&inner, run, 0); x = 2; __tsan_switch_to_fiber(fiber, {flags}); swapcontext(&outer, &inner); x = 3; \
            __tsan_destroy_fiber(fiber); return 0; }}"
        )
    };
    silent(&switches(0), &[]);
    reported(
        &switches(1),
        "data race",
        &["    #0 run ", "by main thread:", "created by main thread at:\n    #0 __tsan_create_fiber "],
    );
}

#[test]
fn fibres_leave_no_memory_behind() {
    silent(
        "static long pages(void) { long count = 0; FILE *f = fopen(\"/proc/self/statm\", \"r\"); fscanf(f, \"%ld\", &count); \
         fclose(f); return count; }
        int main(void) { void *home = __tsan_get_current_fiber(); pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; \
        long before = 0;
        for (int i = 0; i < 400; i++) { if (i == 200) before = pages(); void *fiber = __tsan_create_fiber(0); \
        __tsan_switch_to_fiber(fiber, 0);
        pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); __tsan_switch_to_fiber(home, 0); __tsan_destroy_fiber(fiber); \
        } return pages() != before; }",
        &[],
    );
}

#[test]
fn signal_handlers() {
    let handles = |body: &str| {
        format!(
            "static void handler(int s) {{ {body} }} int main(void) {{ signal(SIGUSR1, handler); \
                kill(getpid(), SIGUSR1); x = 1; return 0; }}"
        )
    };
    let said = ["    #0 malloc ", "    #1 handler ", "    #0 free "];
    reported(&handles("void *volatile p = malloc(1); free(p);"), "signal-unsafe call inside of a signal", &said);
    silent(&handles("write(1, \"\", 0);"), &[]);
    silent(&handles("void *volatile p = malloc(1); free(p);"), &["-O", "report_signal_unsafe=0"]);
    let spoils = "static pthread_t main_thread; static void handler(int s) { errno = 1; x = 1; } static void *task(void *p) { \
        pthread_kill(main_thread, SIGUSR1); return 0; }
        int main(void) { main_thread = pthread_self(); signal(SIGUSR1, handler); alone(task); return 0; }";
    reported(spoils, "signal handler spoils errno", &["Signal 10 handler invoked at:\n    #0 handler "]);
}

#[test]
fn regions_that_do_not_count() {
    let racing = |begin: &str, end: &str| {
        format!("static void *task(void *p) {{ {begin} x++; {end} return 0; }} int main(void) {{ both(task, task); return 0; }}")
    };
    reported(&racing("", ""), "data race", &["    #0 task "]);
    silent(&racing("AnnotateIgnoreWritesBegin(0, 0);", "AnnotateIgnoreWritesEnd(0, 0);"), &[]);
    silent(&racing("AnnotateBenignRaceSized(0, 0, &x, sizeof x, 0);", ""), &[]);
    let locked = racing("pthread_mutex_lock(&m);", "pthread_mutex_unlock(&m);");
    silent(&locked, &[]);
    reported(
        &racing(
            "AnnotateIgnoreSyncBegin(0, 0); pthread_mutex_lock(&m);",
            "pthread_mutex_unlock(&m); AnnotateIgnoreSyncEnd(0, 0);",
        ),
        "data race",
        &[],
    );
    let left =
        "static void *task(void *p) { AnnotateIgnoreWritesBegin(0, 0); return 0; } int main(void) { alone(task); return 0; }";
    run(left, &[]).expect(
        66,
        &[
            "thread T1  finished with ignores enabled, created at:\n    #0 pthread_create ",
            "Ignore was enabled at:\n    #0 AnnotateIgnoreWritesBegin ",
        ],
    );
    // What the program tells of an atomic's place is not undone by its stores there.
    let told = "static int flag; static void *task(void *p) { while (!__atomic_load_n(&flag, __ATOMIC_RELAXED)); \
        AnnotateHappensAfter(0, 0, &flag); x++; return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); x++; AnnotateHappensBefore(0, 0, &flag); \
        __atomic_store_n(&flag, 1, __ATOMIC_RELAXED); pthread_join(t, 0); return 0; }";
    silent(told, &[]);
}

#[test]
fn objects_of_the_programs_own() {
    let external = "static void *tag; static void change(void) { __tsan_external_write(&x, __builtin_return_address(0), tag); } \
        static void *task(void *p) { change(); return 0; }
        int main(void) { tag = __tsan_external_register_tag(\"drawer\"); both(task, task); return 0; }";
    reported(external, "race on drawer", &["    #0 change ", "by thread T1", "by thread T2"]);
    let moves = "static char heap[4096] __attribute__((aligned(8))); static unsigned long base; static void *task(void *p) { \
        __tsan_java_mutex_lock(base + 1032); *(int *)(base + 1024) = 1; __tsan_java_mutex_unlock(base + 1032); return 0; }
        int main(void) { base = (unsigned long)heap; __tsan_java_init(base, 4096); __tsan_java_alloc(base, 64); pthread_t t; \
        pthread_create(&t, 0, task, 0);
        pthread_join(t, 0); __tsan_java_free(base + 1024, 64); return __tsan_java_fini(); }";
    silent(moves, &[]);
}
