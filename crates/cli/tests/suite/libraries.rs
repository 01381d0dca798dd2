//! Libraries without instrumentation: what they may order is neither predicted nor proven, what they are known or said not to
//! order is, and the report names those that matter.

use crate::support::place::{Place, RACE, statuses};
use serde_json::Value;

/// A lock that is seen by nobody: an exchange and the kernel's futex, without libc.
const HIDDEN: &str = "
static int word;
static long futex(int *at, long operation, long value) {
    long result;
    register long timeout __asm__(\"r10\") = 0;
    __asm__ volatile(\"syscall\" : \"=a\"(result) : \"0\"(202L), \"D\"(at), \"S\"(operation), \"d\"(value), \"r\"(timeout) \
    : \"rcx\", \"r11\", \"memory\");
    return result;
}
void hidden_lock(void) {
    for (;;) {
        int old = 1;
        __asm__ volatile(\"xchg %0, %1\" : \"+r\"(old), \"+m\"(word) :: \"memory\");
        if (old == 0) return;
        futex(&word, 128, 1);
    }
}
void hidden_unlock(void) {
    __asm__ volatile(\"movl $0, %0\" : \"=m\"(word) :: \"memory\");
    futex(&word, 129, 1);
}
";

/// Both threads take the hidden lock; nothing else orders the accesses to `x`.
const LOCKED: &str = "#include <pthread.h>
void hidden_lock(void);
void hidden_unlock(void);
static int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void count(void) {
    hidden_lock();
    x++;
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    hidden_unlock();
}
static void *task(void *unused) { count(); return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    count();
    pthread_join(thread, 0);
    return x - 2;
}
";

/// The library is called by both threads and orders nothing; `x` races.
const PURE: &str = "int pure_sum(int a, int b) { return a + b; }";
const CALLER: &str = "#include <pthread.h>
int pure_sum(int a, int b);
static int x;
static void *task(void *unused) { x++; return (void *)(long)pure_sum(1, 2); }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return pure_sum(1, -1);
}
";

/// Compiles a library without instrumentation, and a program that calls it.
#[track_caller]
fn build(place: &Place, library: &str, source: &str, program: &str) {
    place.write("library.c", source);
    let soname = format!("-Wl,-soname,{library}");
    place.must("gcc", &["-O1", "-shared", "-fPIC", &soname, "-o", library, "library.c"]);
    place.write("program.c", program);
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    place
        .rashomon(&["cc", "-g", "-O1", "-w", "-pthread", "-o", "program", "program.c", "-Wl,--no-as-needed", library, &folder])
        .expect(0, &[]);
}

fn count(report: &Value, status: &str) -> usize {
    statuses(report).iter().filter(|(_, of)| of == status).count()
}

#[test]
fn what_a_hidden_lock_orders_is_neither_predicted_nor_proven() {
    let place = Place::new();
    build(&place, "libhidden.so.3", HIDDEN, LOCKED);
    let everything = ["--budget", "8", "--json", "report.json", "--show", "everything"];
    for seed in ["1", "2", "3"] {
        let output = format!("store-{seed}");
        let arguments = ["check", "--unseen-calls=off", "--seed", seed, "-o", &output];
        let ended = place.rashomon(&[&arguments[..], &everything, &["--", "./program"]].concat());
        let ended = ended.expect(0, &["0 proven, 0 predicted", "libhidden.so.3"]);
        let report = place.json("report.json");
        for lost in report["lost"].as_array().into_iter().flatten() {
            assert_eq!(lost["library"], "libhidden.so.3", "{ended}");
            assert!(ended.err.contains("--trust-library libhidden.so.3 if they do not"), "{ended}");
        }
        let output = format!("calls-{seed}");
        let arguments = ["check", "--seed", seed, "-o", &output];
        place.rashomon(&[&arguments[..], &everything, &["--", "./program"]].concat()).expect(0, &["0 proven, 0 predicted"]);
    }
}

#[test]
fn a_library_that_is_trusted_turns_nothing_off_and_the_store_remembers() {
    let place = Place::new();
    build(&place, "libpure.so.1", PURE, CALLER);
    place.rashomon(&["record", "--unseen-calls=off", "-o", "store", "--", "./program"]).expect(0, &[]);
    let lost = "note: libpure.so.1: 1 suspicion was not predicted because its calls may order threads; \
        --trust-library libpure.so.1 if they do not";
    place.rashomon(&["predict", "--json", "before.json", "--show", "everything", "store"]).expect(0, &["0 predicted", lost]);
    let before = place.json("before.json");
    assert_eq!(before["lost"][0]["suspicions"], 1);
    assert_eq!(before["findings"][0]["unseen"][0], "libpure.so.1");
    // The name without its version will do; from here on the store knows.
    for arguments in [
        &["predict", "--trust-library", "libpure", "--json", "after.json", "store"][..],
        &["predict", "--json", "after.json", "store"],
    ] {
        let ended = place.rashomon(arguments).expect(0, &["1 predicted"]);
        assert!(!ended.err.contains("libpure"), "{ended}");
        let after = place.json("after.json");
        assert_eq!((count(&after, "predicted"), after["lost"].as_array().map(Vec::len)), (1, Some(0)), "{ended}");
    }
    // A library of another name is not meant.
    let record = ["record", "--unseen-calls=off", "--trust-library", "libpur", "-o", "other", "--", "./program"];
    place.rashomon(&record).expect(0, &[]);
    place.rashomon(&["predict", "other"]).expect(0, &["0 predicted", lost]);
}

#[test]
fn a_library_whose_calls_are_recorded_turns_nothing_off() {
    let place = Place::new();
    build(&place, "libpure.so.1", PURE, CALLER);
    place.rashomon(&["record", "-o", "store", "--", "./program"]).expect(0, &[]);
    let ended = place.rashomon(&["predict", "--json", "report.json", "store"]).expect(0, &["1 predicted"]);
    let report = place.json("report.json");
    assert_eq!((count(&report, "predicted"), report["lost"].as_array().map(Vec::len)), (1, Some(0)), "{ended}");
}

/// A program that calls no such library is recorded as if nobody asked for its calls; one that does is not.
#[test]
fn without_such_a_library_recordings_are_the_same() {
    let place = Place::new();
    let operations = |store: &str| -> Vec<String> {
        let ended = place.rashomon(&["trace", "stat", store]).expect(0, &[]);
        let lines = ended.out.lines().filter(|line| line.starts_with("  Call") || line.starts_with("operations"));
        lines.map(str::to_owned).collect()
    };
    for (library, differs) in [("libz.so.1", false), ("libpure.so.1", true)] {
        build(&place, library, PURE, CALLER);
        let stores = ["with", "without"].map(|which| format!("{which}-{library}"));
        place.rashomon(&["record", "-o", &stores[0], "--", "./program"]).expect(0, &[]);
        place.rashomon(&["record", "--unseen-calls=off", "-o", &stores[1], "--", "./program"]).expect(0, &[]);
        let [with, without] = stores.map(|store| operations(&store));
        assert_eq!(with != without, differs, "{library}: {with:?} {without:?}");
        assert_eq!(with.iter().any(|line| line.contains("CallBegin")), differs, "{library}: {with:?}");
    }
}

#[test]
fn known_libraries_turn_nothing_off() {
    let place = Place::new();
    build(&place, "libz.so.1", PURE, CALLER);
    place.rashomon(&["record", "-o", "store", "--", "./program"]).expect(0, &[]);
    let ended = place.rashomon(&["predict", "store"]).expect(0, &["1 predicted"]);
    assert!(!ended.err.contains("libz"), "{ended}");
}

#[test]
fn a_library_that_nobody_calls_turns_nothing_off() {
    let place = Place::new();
    // Linked all the same, as many build systems do.
    let program = CALLER.replace("pure_sum(1, 2)", "0").replace("pure_sum(1, -1)", "0");
    let library = "#include <stdlib.h>\nint pure_sum(int a, int b) { free(malloc(1)); return a + b; }";
    build(&place, "libidle.so.1", library, &program);
    place.rashomon(&["record", "-o", "store", "--", "./program"]).expect(0, &[]);
    let ended = place.rashomon(&["predict", "store"]).expect(0, &["1 predicted"]);
    assert!(!ended.err.contains("libidle"), "{ended}");
}

/// A library's function whose last act is to lock jumps there: who called it took the lock.
#[test]
fn locks_that_a_library_takes_as_its_last_act_are_taken_by_its_caller() {
    let place = Place::new();
    let library = "#include <pthread.h>
        int wrapped_lock(pthread_mutex_t *lock) { return pthread_mutex_lock(lock); }
        int wrapped_unlock(pthread_mutex_t *lock) { return pthread_mutex_unlock(lock); }\n";
    let declared = "int wrapped_lock(pthread_mutex_t *), wrapped_unlock(pthread_mutex_t *);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;";
    let under_lock = "{
    wrapped_lock(&lock);
    x++;
    wrapped_unlock(&lock);
    return 0;
}";
    let program = RACE.replace("static int x;", declared).replace("{ x++; return 0; }", under_lock);
    place.write("library.c", library);
    place.must("gcc", &["-O2", "-shared", "-fPIC", "-Wl,-soname,libwrapped.so", "-o", "libwrapped.so", "library.c"]);
    place.write("program.c", program);
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "-o", "program", "program.c", "libwrapped.so", &folder]).expect(0, &[]);
    let ended =
        place.rashomon(&["check", "--budget", "20", "--json", "report.json", "--", "./program"]).expect(66, &["1 proven"]);
    let report = place.json("report.json");
    let sides = report["findings"][0]["sides"].as_array().expect("two sides");
    let taken = sides.iter().find_map(|side| side["held"][0]["acquired_at"].as_array()).expect("a lock is held");
    assert_eq!((taken[0]["function"].as_str(), taken[0]["line"].as_u64()), (Some("task"), Some(6)), "{ended}");
}
