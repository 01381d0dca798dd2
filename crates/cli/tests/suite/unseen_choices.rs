//! What a user says of calls into code that is not seen: which of them count (`--exclude-calls`, `--include-calls`), and which
//! memory a library has without being given it (`--library-global`, and the macros of `include/rashomon.h`).

use crate::support::place::{Place, statuses};

/// Its calls have something in common that orders nobody: how often it was called.
const LIBRARY: &str = "
int calls_made, other_calls;
int part_sum(int a, int b, int c, int d, int e, int f) { calls_made++; return a + b + c + d + e + f; }
";

/// `x` races. Where the task came first, the calls stand between its access and that of the main thread.
const PROGRAM: &str = "#include <pthread.h>
int part_sum(int, int, int, int, int, int);
static int x;
static void *task(void *unused) { x++; part_sum(1, 2, 3, 4, 5, 6); return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    int sum = part_sum(1, 2, 3, 4, 5, 6);
    x++;
    pthread_join(thread, 0);
    return sum - 21;
}
";

const SEEDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

fn build(place: &Place, library: &str, program: &str, options: &[&str]) {
    place.write("library.c", library);
    place.must("gcc", &["-O1", "-shared", "-fPIC", "-Wl,-soname,libpart.so.1", "-o", "libpart.so", "library.c"]);
    place.write("program.c", program);
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    let include = format!("-I{}/../../include", env!("CARGO_MANIFEST_DIR"));
    let build = ["cc", "-g", "-O1", "-w", "-pthread", &include, "-o", "program", "program.c", "libpart.so", &folder];
    std::os::unix::fs::symlink("libpart.so", place.path("libpart.so.1")).ok();
    place.rashomon(&[&build[..], options].concat()).expect(0, &[]);
}

/// How many races are predicted of a recording.
fn predicted(place: &Place, session: &str, options: &[&str]) -> usize {
    place.rashomon(&[&["predict", "--json", "report.json"], options, &[session]].concat()).expect(0, &[]);
    statuses(&place.json("report.json")).iter().filter(|(_, status)| status == "predicted").count()
}

fn record(place: &Place, store: &str, seed: &str, options: &[&str]) -> String {
    place.rashomon(&[&["record", "--seed", seed, "-o", store], options, &["--", "./program"]].concat()).expect(0, &[]);
    format!("{store}/recording-0")
}

#[test]
fn variables_of_a_library_that_matter_can_be_named() {
    let place = Place::new();
    build(&place, LIBRARY, PROGRAM, &[]);
    let count = |which: &str, options: &[&str]| -> usize {
        let of = |seed: &&str| predicted(&place, &record(&place, &format!("{which}-{seed}"), seed, options), &[]);
        SEEDS.iter().map(of).sum()
    };
    let by_default = count("default", &[]);
    assert!(by_default < SEEDS.len(), "the library's variables order its calls: {by_default}");
    assert_eq!(count("none", &["--library-global", "libpart.so.1:"]), SEEDS.len(), "nothing orders them any more");
    for (which, named) in [("name", "libpart.so.1:calls_made"), ("place", "libpart.so.1:0x0+8")] {
        assert_eq!(count(which, &["--library-global", named]), by_default, "calls use the same variable: {named}");
    }
    let ended = place.rashomon(&["record", "--library-global", "libpart.so.1:absent", "-o", "absent", "--", "./program"]);
    ended.expect(0, &["--library-global libpart.so.1:absent: no such variable of a loaded library"]);
    let ended = place.rashomon(&["record", "--library-global", "libpart.so.1", "-o", "no-colon", "--", "./program"]);
    assert!(ended.code != 0 && ended.err.contains("not LIBRARY:NAME"), "{ended}");
}

#[test]
fn calls_can_be_left_out() {
    let place = Place::new();
    build(&place, LIBRARY, PROGRAM, &[]);
    let all = SEEDS.iter().map(|seed| record(&place, &format!("store-{seed}"), seed, &[]));
    let mut ordered = all.filter(|session| predicted(&place, session, &[]) == 0);
    let session = ordered.next().expect("calls in order under some seed");
    let folder = place.path("").display().to_string();
    let none: &[&str] = &[];
    for (excluded, included, expected) in [
        (&["part_sum"][..], none, 1),
        (&["part_*"], none, 1),
        (&["part"], none, 0),
        (&["libpart.so"], none, 1),
        (&["libother.so"], none, 0),
        (&[&folder], none, 1),
        (&["elsewhere/"], none, 0),
        (&["part_*"], &["part_sum"], 0),
        (&["libpart.so"], &["part_other"], 1),
        (none, &["part_sum"], 0),
        (none, &["part_other"], 1),
    ] {
        let excluded = excluded.iter().flat_map(|what| ["--exclude-calls", what]);
        let options: Vec<&str> = excluded.chain(included.iter().flat_map(|what| ["--include-calls", what])).collect();
        assert_eq!(predicted(&place, &session, &options), expected, "{options:?}");
    }
}

/// The store remembers it, as it does for libraries that are trusted.
#[test]
fn what_was_left_out_is_remembered() {
    let place = Place::new();
    build(&place, LIBRARY, PROGRAM, &[]);
    for seed in SEEDS {
        let store = format!("store-{seed}");
        record(&place, &store, seed, &["--exclude-calls", "part_sum"]);
        assert_eq!(predicted(&place, &store, &[]), 1, "seed {seed}");
    }
}

/// Keeps the address of what its callers wait for in a form that nobody recognises.
const HIDING: &str = "#include <sched.h>
unsigned long part_hidden;
void part_give(int *flag) { part_hidden = ~(unsigned long)flag; }
void part_post(int a, int b, int c, int d, int e, int f) { __atomic_store_n((int *)~part_hidden, 1, __ATOMIC_RELEASE); }
void part_await(int a, int b, int c, int d, int e, int f) {
    while (!__atomic_load_n((int *)~part_hidden, __ATOMIC_ACQUIRE))
        sched_yield();
}
";

/// The library orders the accesses to `x`.
const WAITING: &str = "#include <pthread.h>
#include <rashomon.h>
void part_give(int *);
void part_post(int, int, int, int, int, int);
void part_await(int, int, int, int, int, int);
extern unsigned long part_hidden;
static int x, flag;
static void *task(void *unused) { x++; part_post(1, 2, 3, 4, 5, 6); return 0; }
int main(void) {
    pthread_t thread;
#ifdef NONE
    RASHOMON_LIBRARY_WITHOUT_GLOBALS(\"libpart.so.1\");
#endif
#ifdef GLOBAL
    RASHOMON_LIBRARY_GLOBAL(\"libpart.so.1\", part_hidden);
#endif
#ifdef MEMORY
    RASHOMON_LIBRARY_REACHES(\"libpart.so.1\", &flag, sizeof flag);
#endif
    part_give(&flag);
    pthread_create(&thread, 0, task, 0);
    part_await(1, 2, 3, 4, 5, 6);
    x++;
    pthread_join(thread, 0);
    return x - 2;
}
";

#[test]
fn programs_say_what_a_library_uses() {
    for (options, expected) in [
        (&[][..], 0),
        // That is not so, and what is predicted then is wrong.
        (&["-DNONE"], 1),
        (&["-DNONE", "-DMEMORY"], 0),
        (&["-DNONE", "-DGLOBAL"], 0),
    ] {
        let place = Place::new();
        build(&place, HIDING, WAITING, options);
        for seed in &SEEDS[..3] {
            let session = record(&place, &format!("store-{seed}"), seed, &[]);
            assert_eq!(predicted(&place, &session, &[]), expected, "{options:?}, seed {seed}");
        }
    }
}

/// Without the runtime the macros do nothing.
#[test]
fn the_macros_need_no_runtime() {
    let place = Place::new();
    build(&place, HIDING, WAITING, &["-DNONE", "-DMEMORY"]);
    let include = format!("-I{}/../../include", env!("CARGO_MANIFEST_DIR"));
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    let options = ["-O1", "-w", "-pthread", "-DNONE", "-DGLOBAL", "-DMEMORY", &include, "-o", "plain", "program.c"];
    place.must("gcc", &[&options[..], &["libpart.so", &folder]].concat());
    place.must("./plain", &[]);
}
