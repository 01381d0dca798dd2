//! `rashomon detect`: calls on descriptors that another thread closes. Every order is forced by relaxed atomics, which order
//! nothing for the detector, or by what orders.

use crate::support::place::{Ended, Place};

/// One thread uses a descriptor, `main` has another close it, in the turns that both ask for.
const PRELUDE: &str = "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>
static int turn, ends[2], own[2], file;
static void await(int which) { while (__atomic_load_n(&turn, __ATOMIC_RELAXED) < which) {} }
static void pass(int which) { __atomic_store_n(&turn, which, __ATOMIC_RELAXED); }
static void await_all(int which) { while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < which) {} }
static void pass_all(int which) { __atomic_store_n(&turn, which, __ATOMIC_RELEASE); }
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void with(void *(*task)(void *), void (*then)(void)) { pthread_t thread; if (pipe(ends) || pipe(own)) _exit(9); \
    file = ends[1]; pthread_create(&thread, 0, task, 0); then(); pthread_join(thread, 0); }
";

#[track_caller]
fn run(body: &str, options: &[&str]) -> Ended {
    let place = Place::new();
    place.compile("calls", &format!("{PRELUDE}{body}"));
    place.rashomon(&[&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0"], options, &["--", "./calls"]].concat())
}

/// One race, between calls in two functions.
#[track_caller]
fn reported(body: &str, calls: [&str; 2]) {
    for options in [&[][..], &["--detector", "hybrid"]] {
        let said = ["WARNING: ThreadSanitizer: data race (pid=", "  Location is file descriptor ", "reported 1 warnings"];
        let ended = run(body, options).expect(66, &said);
        for call in calls {
            assert!(ended.err.contains(&format!("    #0 {call} ")), "nothing of {call}: {ended}");
        }
    }
}

#[track_caller]
fn silent(body: &str) {
    for options in [&[][..], &["--detector", "hybrid"]] {
        let ended = run(body, options).expect(0, &[]);
        assert!(!ended.err.contains("ThreadSanitizer"), "{ended}");
    }
}

const CLOSES: &str = "static void closes(void) { await(1); close(file); pass(2); }\n";
const MAIN: &str = "int main(void) { with(task, closes); return 0; }";

#[test]
fn used_before_it_is_closed() {
    let uses = "static void *task(void *p) { write(file, \"x\", 1); pass(1); return p; }\n";
    reported(&format!("{CLOSES}{uses}{MAIN}"), ["write", "close"]);
}

/// Both names of the place are told, and the program still sees the error.
#[test]
fn used_when_it_is_closed() {
    let each = [
        ("write", "write(file, \"x\", 1) != -1"),
        ("read", "read(file, p, 0) != -1"),
        ("dup", "dup(file) != -1"),
        ("dup2", "dup2(file, 77) != -1"),
        // From a pipe of the thread's own: what comes out of the other one is ordered behind the close of its end.
        ("splice", "write(own[1], \"x\", 1) != 1 || splice(own[0], 0, file, 0, 1, 0) != -1"),
        ("dprintf", "dprintf(file, \"%d\", 5) >= 0"),
    ];
    for (name, call) in each {
        let uses = format!(
            "static void *task(void *p) {{ pass(1); await(2); errno = 0; if ({call} || errno != EBADF) _exit(3); return p; }}\n"
        );
        reported(&format!("{CLOSES}{uses}{MAIN}"), [name, "close"]);
    }
}

/// A call that waits in the kernel while its descriptor is closed, and the number belongs to another file when it looks again.
#[test]
fn closed_and_used_again_in_between() {
    let again = "static void closes(void) { close(file); int other = dup(ends[0]); if (other != file) _exit(4); pass(1); }
        static void *task(void *p) { await(1); char c; if (write(file, &c, 1) != -1 || errno != EBADF) _exit(3); return p; }\n";
    let ended = run(&format!("{again}{MAIN}"), &[]).expect(66, &["data race", "#0 write ", "#0 dup "]);
    assert!(ended.err.contains("created by main thread"), "{ended}");
}

#[test]
fn ordered_behind_the_close() {
    let uses = "static void *task(void *p) { pass(1); await_all(2); \
        if (write(file, \"x\", 1) != -1 || errno != EBADF) _exit(3); return p; }\n";
    silent(&format!("static void closes(void) {{ await(1); close(file); pass_all(2); }}\n{uses}{MAIN}"));
    let by_mutex = "static void closes(void) { pthread_mutex_lock(&m); close(file); pthread_mutex_unlock(&m); pass(1); }
        static void *task(void *p) { await(1); pthread_mutex_lock(&m); if (write(file, \"x\", 1) != -1) _exit(3); \
        pthread_mutex_unlock(&m); return p; }\n";
    silent(&format!("{by_mutex}{MAIN}"));
    let by_join = "static void *task(void *p) { close(file); return p; } static void nothing(void) {}
        int main(void) { with(task, nothing); return write(file, \"x\", 1) != -1; }";
    silent(by_join);
}

/// Nobody closes it twice, nor looks for it, but to know whether it is one.
#[test]
fn questions_are_no_uses() {
    let asks = "static void *task(void *p) { pass(1); await(2); if (fcntl(file, F_GETFD) != -1 || fcntl(file, F_GETFL) != -1 || \
        dup2(file, file) != -1 || errno != EBADF) _exit(3); return p; }\n";
    silent(&format!("{CLOSES}{asks}{MAIN}"));
    // Open, but not for that: another thread's close of the number was in its former life.
    let other_mode = "static void *task(void *p) { close(file); if (dup(ends[0]) != file) _exit(4); pass_all(1); return p; }
        static void uses(void) { await_all(1); if (write(file, \"x\", 1) != -1 || errno != EBADF) _exit(3); }
        int main(void) { with(task, uses); return 0; }";
    silent(other_mode);
}

#[test]
fn all_that_may_be_inherited_is_closed() {
    // In the process itself, up and down, and in a child; with numbers that stay open.
    for all in [
        "for (int n = 3; n < 60; n++) close(n);",
        "for (int n = 60; n > 2; n--) close(n);",
        "for (int n = file; n < 60; n += 7) close(n);",
        "for (int n = 3; n < 60; n++) if (fcntl(n, F_GETFD) != -1) close(n);",
        "pid_t child = fork(); if (child == 0) { for (int n = 3; n < 60; n++) close(n); close(file); write(file, \"x\", 1); \
            _exit(0); } int status; waitpid(child, &status, 0); if (status) _exit(5);",
        "pid_t child = vfork(); if (child == 0) { for (int n = 3; n < 60; n++) close(n); execl(\"/bin/true\", \"true\", (void \
            *)0); _exit(1); } int status; waitpid(child, &status, 0); if (status) _exit(5);",
    ] {
        let closes = format!("static void *task(void *p) {{ pass(1); await(2); {all} pass(3); return p; }}\n");
        silent(&format!("{CLOSES}{closes}{MAIN}"));
    }
    let execs = "static void *task(void *p) { pass(1); await(2); for (int n = 3; n < 60; n++) close(n); \
        execl(\"/bin/true\", \"true\", (void *)0); return p; }\n";
    silent(&format!("{CLOSES}{execs}{MAIN}"));
}

#[test]
fn closed_twice() {
    // Told at the end of the thread, and before it closes something else.
    for then in ["", "close(ends[0] + 100);", "close(ends[0]);"] {
        let again =
            format!("static void *task(void *p) {{ pass(1); await(2); if (close(file) != -1) _exit(3); {then} return p; }}\n");
        reported(&format!("{CLOSES}{again}{MAIN}"), ["close", "close"]);
    }
    // And at the end of the process.
    let at_the_end = "static void *task(void *p) { close(file); pass(1); await(2); return p; }
        static void again(void) { await(1); if (close(file) != -1) _exit(3); _exit(0); }
        int main(void) { with(task, again); return 0; }";
    reported(at_the_end, ["close", "close"]);
    let in_order = "static void *task(void *p) { close(file); return p; } static void nothing(void) {}
        int main(void) { with(task, nothing); return close(file) != -1; }";
    silent(in_order);
}
