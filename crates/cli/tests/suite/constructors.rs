//! What happens before `main` is seen: a thread that a library's constructor starts races with the constructor of another
//! library. What initialises a static variable is not suspected of racing with who finds it initialised.

use crate::support::place::{Place, program_text};

const FIRST: &str = "#include <pthread.h>
#include <sched.h>
int shared, turn;
static pthread_t thread;
static void *task(void *unused) {
    while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != 1) sched_yield();
    shared = 1;
    return 0;
}
__attribute__((constructor)) static void begin(void) { pthread_create(&thread, 0, task, 0); }
void finish(void) { pthread_join(thread, 0); }
";
const SECOND: &str = "extern int shared, turn;
__attribute__((constructor)) static void begin(void) {
    shared = 2;
    __atomic_store_n(&turn, 1, __ATOMIC_RELAXED);
}
int second(void) { return 0; }
";
const PROGRAM: &str = "void finish(void);
int second(void);
int main(void) { finish(); return second(); }
";

fn program() -> Place {
    let place = Place::new();
    place.write("first.c", FIRST);
    place.write("second.c", SECOND);
    place.write("program.c", PROGRAM);
    let common = ["cc", "-g", "-O1", "-w", "-pthread", "-fPIC", "-L.", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"];
    let compile = |further: &[&str]| {
        place.rashomon(&[&common[..], further].concat()).expect(0, &[]);
    };
    compile(&["-shared", "-o", "libfirst.so", "first.c"]);
    compile(&["-shared", "-o", "libsecond.so", "second.c", "-lfirst"]);
    compile(&["-o", "program", "program.c", "-lsecond", "-lfirst"]);
    place
}

#[test]
fn a_race_between_constructors_is_detected() {
    let lines = ["WARNING: ThreadSanitizer: data race", "first.c:7", "second.c:3"];
    program().rashomon(&["detect", "--format", "tsan", "--", "./program"]).expect(66, &lines);
}

#[test]
fn a_race_between_constructors_is_proven() {
    program().rashomon(&["check", "--", "./program"]).expect(66, &["data race (proven", "first.c:7", "second.c:3"]);
}

/// Whoever finds the guard set does not call the library.
#[test]
fn a_guard_that_is_set_is_no_suspicion() {
    let place = Place::new();
    place.compile_cxx("program", &program_text("race_free/static_local.cpp"));
    let check = ["check", "--engines", "force", "--show", "everything", "--", "./program"];
    place.rashomon(&check).expect(0, &["0 proven, 0 predicted, 0 suspected, 0 diverged"]);
}
