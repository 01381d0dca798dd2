//! `rashomon detect`: reports in every format, the options that ThreadSanitizer's users know, and a program that does not notice
//! who writes them.

use crate::support::place::Place;
use serde_json::Value;

/// One access and then the other, without order.
const RACE: &str = "#include <pthread.h>
static int x, turn; static int comes(void) { return __atomic_load_n(&turn, __ATOMIC_RELAXED); }
static void *task(void *unused) { while (!comes()) {} x++; return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++; __atomic_store_n(&turn, 1, __ATOMIC_RELAXED);
    pthread_join(thread, 0);
    return 0;
}
";

/// The same race, behind a function that suppressions can name; then says what a parent sees of its children.
const LONELY: &str = "#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
static int x, turn;
static void wait_for_turn(void) { while (!__atomic_load_n(&turn, __ATOMIC_RELAXED)) {} }
static void *task(void *unused) { wait_for_turn(); x++; return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    __atomic_store_n(&turn, 1, __ATOMIC_RELAXED);
    pthread_join(thread, 0);
    int none = waitpid(-1, 0, 0) == -1 && errno == ECHILD;
    int really_none = waitpid(-1, 0, __WALL) == -1 && errno == ECHILD;
    printf(\"children: %s\\n\", none && really_none ? \"none\" : \"some\");
    return 3;
}
";

fn with(source: &str) -> Place {
    let place = Place::new();
    place.compile("race", source);
    place
}

/// A command that detects, run to its end.
#[track_caller]
fn detect(place: &Place, options: &[&str]) -> crate::support::place::Ended {
    place.rashomon(&[&["detect"], options, &["--", "./race"]].concat())
}

/// Two threads meet in each of so many rounds, by relaxed atomics, which order nothing, and access a variable of the round at
/// once: the one writes it, the other does `other`.
fn meeting(rounds: usize, other: &str) -> String {
    let pairs = (0..rounds).map(|round| {
        let other = other.replace('x', &format!("x[{round}]"));
        format!("static void a{round}(void) {{ x[{round}]++; }}\nstatic void b{round}(void) {{ {other}; }}\n")
    });
    let pairs: String = pairs.collect();
    let names = |side: char| (0..rounds).map(|round| format!("{side}{round},")).collect::<String>();
    format!(
        "#include <pthread.h>
static volatile long x[{rounds}];
{pairs}
static int met;
static void meet(int round) {{
    __atomic_fetch_add(&met, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&met, __ATOMIC_RELAXED) < 2 * round + 2) {{}}
}}
static void (*const a[])(void) = {{{}}}, (*const b[])(void) = {{{}}};
static void *one(void *unused) {{ for (int round = 0; round < {rounds}; round++) meet(round), a[round](); return 0; }}
static void *two(void *unused) {{ for (int round = 0; round < {rounds}; round++) meet(round), b[round](); return 0; }}
int main(void) {{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, two, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}}
",
        names('a'),
        names('b')
    )
}

/// Whoever comes first to a word that nobody has touched: one of the two sees the other.
#[test]
fn at_the_same_moment() {
    const ROUNDS: usize = 60;
    for other in ["x++", "x = 1"] {
        let place = with(&meeting(ROUNDS, other));
        for options in [&[][..], &["--filter", "tree"], &["--detector", "hybrid"]] {
            for _ in 0..5 {
                let ended = detect(&place, options).expect(66, &[]);
                let lost = (0..ROUNDS).filter(|round| !ended.err.contains(&format!(" b{round} ")));
                let lost: Vec<usize> = lost.collect();
                assert!(lost.is_empty(), "{other} {options:?}: rounds {lost:?} lost\n{ended}");
            }
        }
    }
}

#[test]
fn as_thread_sanitizer_writes() {
    let place = with(RACE);
    let ended = detect(&place, &["--format", "tsan"]).expect(
        66,
        &[
            "==================\nWARNING: ThreadSanitizer: data race (pid=",
            "of size 4 at 0x",
            "  Location is global 'x' of size 4 at 0x",
            "  Thread T1 (tid=",
            "created by main thread at:\n    #0 pthread_create <null> (race+0x",
            "\nSUMMARY: ThreadSanitizer: data race ",
            "ThreadSanitizer: reported ",
        ],
    );
    for place_in_source in ["race.c:3", "race.c:7"] {
        assert!(ended.err.contains(place_in_source), "{ended}");
    }
}

#[test]
fn for_people_and_for_machines() {
    let place = with(RACE);
    detect(&place, &[]).expect(66, &["data race [process ", "]: global x (4 bytes)\n", "main thread: ", "#0 task ", " warning"]);
    let ended = detect(&place, &["--format", "json"]).expect(66, &[]);
    for line in ended.err.lines() {
        let warning: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(warning["format"], "rashomon-warning");
        assert_eq!(warning["kind"], "data-race");
        assert_eq!(warning["locations"][0]["name"], "x");
    }
    assert!(!ended.err.is_empty());
}

#[test]
fn suppressed_races_are_none() {
    let place = with(LONELY);
    place.write("some.supp", "# known\nrace:^ta*k$\n");
    let ended = detect(&place, &["--format", "tsan", "--suppressions", "some.supp", "--print-suppressions"]);
    let ended = ended.expect(3, &["ThreadSanitizer: Matched ", " race:^ta*k$\n"]);
    assert!(!ended.err.contains("WARNING"), "{ended}");
    place.write("bad.supp", "rase:task\n");
    // Refused before the program has begun.
    let refused = detect(&place, &["--suppressions", "bad.supp"]);
    let refused = refused.expect(2, &["bad.supp", "failed to parse suppressions: line 1: 'rase:task'"]);
    assert!(!refused.out.contains("children"), "{refused}");
    let refused = detect(&place, &["--suppressions", "none.supp"]).expect(2, &["none.supp"]);
    assert!(!refused.out.contains("children"), "{refused}");
}

#[test]
fn the_exit_code_and_the_log_are_as_asked() {
    let place = with(LONELY);
    let ended = detect(&place, &["--exitcode", "7", "--log", "log"]).expect(7, &[]);
    assert!(ended.err.is_empty() && ended.out.contains("children"), "{ended}");
    let log =
        std::fs::read_dir(place.path(".")).unwrap().flatten().find(|file| file.file_name().to_string_lossy().starts_with("log."));
    let log = std::fs::read_to_string(log.unwrap().path()).unwrap();
    assert!(log.starts_with("data race "), "{log}");
    detect(&place, &["--exitcode", "0"]).expect(3, &["data race "]);
    let ended = detect(&place, &["--halt-on-error"]).expect(66, &["data race "]);
    assert!(!ended.out.contains("children"), "it ended at the first report; {ended}");
}

/// Then the new user may not make files where the reports are to go; here the folder is renamed.
#[test]
fn the_log_is_opened_before_the_program_changes_its_user() {
    let begin = "#include <stdio.h>\n#include <unistd.h>\n";
    let place =
        with(&format!("{begin}{}", RACE.replace("main(void) {", "main(void) { setuid(getuid()); rename(\"logs\", \"kept\");")));
    std::fs::create_dir(place.path("logs")).unwrap();
    let ended = detect(&place, &["--log", "logs/log"]).expect(66, &[]);
    assert!(ended.err.is_empty(), "{ended}");
    let log = std::fs::read_dir(place.path("kept")).unwrap().flatten().next().expect("a log").path();
    assert!(std::fs::read_to_string(log).unwrap().starts_with("data race "));
}

#[test]
fn where_no_log_can_be_opened_reports_go_to_standard_error() {
    let place = with(LONELY);
    let ended = detect(&place, &["--log", "none/log"]);
    let ended =
        ended.expect(66, &["cannot open the file for reports ", "/none/log.", ": they go to standard error\n", "data race "]);
    assert!(ended.out.contains("children"), "{ended}");
}

#[test]
fn the_program_has_no_child_that_it_did_not_make() {
    let place = with(LONELY);
    let ended = detect(&place, &[]).expect(66, &["data race "]);
    assert_eq!(ended.out, "children: none\n");
}

#[test]
fn without_a_reporter_modules_and_offsets_are_told() {
    let place = with(LONELY);
    let ended = detect(&place, &["-O", "reporter=/nonexistent"]);
    let ended = ended
        .expect(66, &["rashomon: no reporter", "WARNING: ThreadSanitizer: data race (pid=", "    #0 <null> <null> (race+0x"]);
    assert!(ended.err.contains("ThreadSanitizer: reported "), "{ended}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = with(LONELY);
    detect(&place, &["-O", "halt_on_error=perhaps"]).expect(2, &["invalid value for option halt_on_error: 'perhaps'"]);
    detect(&place, &["-O", "detector"]).expect(125, &["write NAME=VALUE"]);
    detect(&place, &["-O", "nobody_knows=1", "-O", "verbosity=1"])
        .expect(66, &["found 1 unrecognized flag(s):\n    nobody_knows"]);
}

/// Nor is it of use to the handler that the thread will enter the runtime some day.
#[test]
fn a_handler_runs_although_its_thread_does_nothing_but_access() {
    const WAITS: &str = "#include <pthread.h>
#include <signal.h>
#include <stdio.h>
void __tsan_ignore_thread_begin(void); void __tsan_ignore_thread_end(void);
static volatile sig_atomic_t stop; static volatile long passes;
static void handle(int signal) { stop = signal; }
static void *task(void *waiting) { pthread_kill(*(pthread_t *)waiting, SIGUSR1); return 0; }
int main(void) {
    pthread_t thread, self = pthread_self();
    signal(SIGUSR1, handle);
    pthread_create(&thread, 0, task, &self);
    while (!stop) passes++;
    pthread_join(thread, 0);
    puts(\"handled\");
    return 0;
}
";
    let ignored = WAITS
        .replace("while (!stop) passes++;", "__tsan_ignore_thread_begin(); while (!stop) passes++; __tsan_ignore_thread_end();");
    for source in [WAITS, &ignored] {
        let place = with(source);
        for options in [&[][..], &["--filter", "tree"], &["--detector", "hybrid"]] {
            assert_eq!(detect(&place, options).expect(0, &[]).out, "handled\n");
        }
    }
}

/// A thread comes to a hundred thousand places without a release, more than one span has references for: later ones are looked at
/// all the same. Fibres, so that nothing but the program's order is at stake.
#[test]
fn a_span_of_very_many_places() {
    let place = with(
        "void *__tsan_get_current_fiber(void); void *__tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void *, unsigned);
static volatile char visited[1 << 20]; static int raced;
__attribute__((noinline)) static void walk(int depth, int node) {
    visited[8 * node] = 1;
    if (depth > 0) { walk(depth - 1, 2 * node); walk(depth - 1, 2 * node + 1); }
    visited[8 * node + 1] = 1;
}
__attribute__((noinline)) static void first(void) { raced = 1; }
__attribute__((noinline)) static void second(void) { raced = 2; }
int main(void) {
    void *main = __tsan_get_current_fiber(), *fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(fiber, 1);
    first();
    __tsan_switch_to_fiber(main, 1);
    walk(15, 1);
    second();
    return raced - 2;
}
",
    );
    for options in [&[][..], &["--filter", "tree"], &["--detector", "hybrid"]] {
        detect(&place, options).expect(66, &["first", "second"]);
    }
}
