//! `check` records until schedules show nothing new, keeps to its budget, takes an execution that ends wrongly for a finding, and
//! loses nothing when it is ended.

use crate::support::place::{Ended, Place, RACE, statuses, wait_for};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Ends with 3 where main is first.
const WRONG: &str = "#include <pthread.h>
static _Atomic int ready;
static void *task(void *p) { ready = 1; return p; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    int r = ready;
    pthread_join(thread, 0);
    return r ? 0 : 3;
}
";

/// What is to be put into a program that takes a while, whatever clocks say.
const LONG: &str = "static void take_long(long millions) {
    for (long i = 0; i < millions * 1000000; i++) __asm__ volatile(\"\");
}
";

fn check(place: &Place, options: &[&str], code: i32, said: &[&str]) -> (Ended, Value) {
    let arguments: Vec<&str> = ["check", "--json", "report.json", "--output", "store"]
        .iter()
        .chain(options)
        .chain(&["--", "./program"])
        .copied()
        .collect();
    let ended = place.rashomon(&arguments).expect(code, said);
    let report = place.json("report.json");
    (ended, report)
}

fn of_kind(report: &Value, kind: &str) -> Vec<Value> {
    let all = report["findings"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|finding| finding["kind"] == kind).collect()
}

fn recordings(place: &Place) -> Vec<(String, u64)> {
    let run = place.json("store/run.json");
    let of = |one: &Value| (one["policy"].as_str().unwrap_or_default().to_owned(), one["seed"].as_u64().unwrap_or(0));
    run["recordings"].as_array().into_iter().flatten().map(of).collect()
}

#[test]
fn schedules_are_recorded_until_they_show_nothing_new() {
    let place = Place::new();
    place.compile("program", RACE);
    check(&place, &["--seed", "5"], 66, &["1 proven"]);
    let made = recordings(&place);
    assert!(made.len() > 6, "{made:?}");
    let start = [("random", 5), ("run-to-block", 6), ("pct", 7), ("random", 8), ("round-robin", 9), ("pct", 10), ("random", 11)];
    let start = start.map(|(policy, seed)| (policy.to_owned(), seed));
    assert_eq!(made[..start.len()], start);
}

#[test]
fn what_is_asked_for_stays() {
    let place = Place::new();
    place.compile("program", RACE);
    check(&place, &["--recordings", "1"], 66, &["1 recording,"]);
    let other = |options: &[&str]| {
        let all = [&["check", "--output", "other"], options, &["--", "./program"]].concat();
        place.rashomon(&all).expect(66, &[]);
        let run = place.json("other/run.json");
        std::fs::remove_dir_all(place.path("other")).unwrap();
        let policy = |one: &Value| one["policy"].as_str().unwrap_or_default().to_owned();
        run["recordings"].as_array().into_iter().flatten().map(policy).collect::<Vec<_>>()
    };
    assert_eq!(other(&["--policy", "round-robin"]), ["round-robin"]);
    assert_eq!(other(&["--policy", "round-robin", "--recordings", "2"]), ["round-robin", "random"]);
    let drawn = other(&["--policy", "pct"]);
    assert!(drawn.len() > 6 && drawn.iter().all(|policy| policy == "pct"), "{drawn:?}");
}

/// Only the first execution is the user's: what others write does not appear twice.
#[test]
fn the_output_is_that_of_one_execution() {
    let place = Place::new();
    place.compile(
        "program",
        &RACE.replace("return 0;\n}\n", "puts(\"done\"); return 0;\n}\n").replacen('#', "#include <stdio.h>\n#", 1),
    );
    let (ended, _) = check(&place, &[], 66, &[]);
    assert_eq!(ended.out, "done\n");
}

#[test]
fn an_exit_code_that_only_some_schedules_give_is_proven_wrong() {
    let place = Place::new();
    place.compile("program", WRONG);
    let (_, report) = check(&place, &[], 66, &["1 proven"]);
    let failures = of_kind(&report, "failure");
    assert_eq!(failures.len(), 1, "{report}");
    assert_eq!((&failures[0]["grade"], &failures[0]["subject"]), (&"wrong-exit".into(), &"exit code 3".into()));
    let id = failures[0]["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
}

#[test]
fn an_assertion_that_only_some_schedules_fail_is_told_with_its_words() {
    let place = Place::new();
    place.compile(
        "program",
        &WRONG
            .replace("#include", "#include <assert.h>\n#include")
            .replace("return r ? 0 : 3;", "assert(!r && \"too late\"); return 0;"),
    );
    let (_, report) = check(&place, &[], 66, &["1 proven"]);
    let failures = of_kind(&report, "failure");
    assert_eq!(failures.len(), 1, "{report}");
    assert_eq!(failures[0]["grade"], "crashed");
    let notes = failures[0]["notes"].to_string();
    assert!(notes.contains("main: Assertion `!r && \\\"too late\\\"' failed."), "{notes}");
    let stack = failures[0]["sides"][0]["stack"].to_string();
    assert!(stack.contains("\"main\""), "{stack}");
    let id = failures[0]["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
}

/// Threads stand elsewhere while one dies: all are told.
#[test]
fn a_crash_of_every_schedule_is_proven_with_all_stacks() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int here;
static void *task(void *p) { here = 1; pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return p; }
static int *volatile nothing;
static void die(void) { *nothing = 1; }
int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&m);
    pthread_create(&thread, 0, task, 0);
    while (!here) sched_yield();
    die();
    return 0;
}
",
    );
    let (_, report) = check(&place, &["--policy", "round-robin"], 66, &["1 proven"]);
    let failures = of_kind(&report, "failure");
    assert_eq!(failures.len(), 1, "{report}");
    assert_eq!(failures[0]["subject"], "crashed: segmentation fault");
    assert_eq!(failures[0]["sides"].as_array().map(Vec::len), Some(2), "{report}");
    assert_eq!(report["run"]["exit"], serde_json::json!({ "kind": "signal", "signal": 11 }));
    let said = "the kernel said: SIGSEGV: nothing is mapped at the address (code 1), address 0x0: a null pointer";
    assert!(failures[0]["notes"].to_string().contains(said), "{report}");
    let id = failures[0]["id"].as_str().unwrap();
    let mut replay = place.command(env!("CARGO_BIN_EXE_rashomon"), &["replay", "--store", "store", id]);
    let again = place.run({
        replay.stdin(std::process::Stdio::null());
        replay
    });
    assert!(again.code == 0 && again.out.contains(said), "{again}");
}

#[test]
fn what_the_kernel_says_of_a_crash_is_told() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void *task(void *unused) { return 0; }
struct pair { char far[24]; int field; };
static volatile int zero;
int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    switch (atoi(arguments[1])) {
        case 0: return ((struct pair *volatile)0)->field;
        case 1: *(volatile char *)mmap((void *)0x410000000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, \
        0) = 1;
        case 2: return *(volatile int *)0x8000000000000000;
        case 3: return 7 / zero;
        case 4: __builtin_trap();
        case 5: abort();
    }
}
",
    );
    for (number, signal, said) in [
        ("0", 11, "code 1), address 0x18: 24 bytes behind a null pointer"),
        ("1", 11, "the memory there may not be accessed in that way (code 2), address 0x410000000000"),
        ("2", 11, "an address that no memory can have"),
        ("3", 8, "an integer is divided by zero, or the quotient is too large (code 1), instruction 0x"),
        ("4", 4, "SIGILL: the instruction is none, or may not be executed"),
        ("5", 6, "SIGABRT: sent by this process or by another one"),
    ] {
        place.rashomon(&["record", "--output", number, "--", "./program", number]).expect(128 + signal, &[]);
        let told = place.rashomon(&["trace", "stat", number]).expect(0, &[]);
        assert!(told.out.contains(said), "{number}: {told}");
    }
}

#[test]
fn the_death_of_a_process_that_the_program_made_is_told() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *task(void *unused) { return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    for (int i = 0; i < 2; i++) {
        if (!fork()) i ? abort() : (void)(*(volatile int *)8 = 1);
        wait(0);
    }
    return 0;
}
",
    );
    let (_, report) = check(&place, &["--recordings", "2"], 0, &[]);
    let notes = report["run"]["notes"].to_string();
    for said in [
        "process 0 (program), which the program made, died: SIGSEGV: nothing is mapped at the address \
            (code 1), address 0x8: 8 bytes behind",
        "process 1 (program), which the program made, died: SIGABRT",
    ] {
        assert_eq!(notes.matches(said).count(), 1, "{notes}");
    }
}

#[test]
fn what_fails_in_every_schedule_is_the_program_s_own_affair() {
    let place = Place::new();
    place.compile("program", &WRONG.replace("return r ? 0 : 3;", "return 3;"));
    let (_, report) = check(&place, &[], 3, &["0 proven"]);
    assert_eq!(report["findings"], serde_json::json!([]));
    // Unless it is said what is right.
    std::fs::remove_dir_all(place.path("store")).unwrap();
    check(&place, &["--expect-exit", "3"], 3, &["0 proven"]);
    std::fs::remove_dir_all(place.path("store")).unwrap();
    check(&place, &["--expect-exit", "0"], 66, &["1 proven", "exit code 3"]);
}

/// The second execution fails because of the first, not because of its schedule.
#[test]
fn what_an_execution_leaves_behind_is_not_blamed_on_schedules() {
    let place = Place::new();
    let left = "#include <fcntl.h>\n#include <pthread.h>\n#include <stdlib.h>";
    let source = WRONG
        .replace("#include <pthread.h>", left)
        .replace("return r ? 0 : 3;", "(void)r; if (open(\"world\", O_CREAT | O_EXCL, 0600) < 0) HOW; return 0;");
    for how in ["abort()", "return 3"] {
        place.compile("program", &source.replace("HOW", how));
        let (_, report) = check(&place, &["--show", "suspicions"], 0, &["0 proven"]);
        let failures = of_kind(&report, "failure");
        assert_eq!(failures.len(), 1, "{report}");
        assert!(failures[0]["notes"].to_string().contains("--before-each"), "{report}");
        std::fs::remove_dir_all(place.path("store")).unwrap();
        std::fs::remove_file(place.path("world")).unwrap();
        check(&place, &["--before-each", "rm -f world"], 0, &["0 proven"]);
        std::fs::remove_dir_all(place.path("store")).unwrap();
        std::fs::remove_file(place.path("world")).unwrap();
    }
}

/// Races at many places, in a program that takes a while.
fn long_racy(millions: u32) -> String {
    let places: String = (0..30).map(|n| format!("    x{n}++;\n")).collect();
    let variables: String = (0..30).map(|n| format!("static int x{n};\n")).collect();
    format!(
        "#include <pthread.h>\n{LONG}{variables}static void *task(void *p) {{\n{places}    return p;\n}}
int main(void) {{
    pthread_t thread;
    take_long({millions});
    pthread_create(&thread, 0, task, 0);
{places}    pthread_join(thread, 0);
    return 0;
}}
"
    )
}

/// Seconds of the first recording.
fn first_recording(place: &Place) -> f64 {
    let run = place.json("store/run.json");
    run["recordings"][0]["milliseconds"].as_u64().unwrap_or(0) as f64 / 1000.0
}

#[test]
fn a_budget_that_is_given_is_that_of_everything() {
    let place = Place::new();
    place.compile("program", &long_racy(400));
    let begin = Instant::now();
    let (_, report) = check(&place, &["--budget", "2", "--fail-on", "never"], 0, &["untried"]);
    let took = begin.elapsed().as_secs_f64();
    assert!(took <= 2.0 * 1.1 + 1.0, "{took} s");
    assert_eq!(report["run"]["interrupted"], Value::Null);
    // What was not tried is not said to have diverged.
    assert!(!statuses(&report).iter().any(|(_, status)| status == "diverged"), "{report}");
}

#[test]
fn a_program_longer_than_the_budget_is_told() {
    let place = Place::new();
    // Longer than that budget, and on a busy machine still shorter than what any program is given.
    place.compile("program", &long_racy(50));
    check(&place, &["--budget", "0.01", "--fail-on", "never"], 0, &["longer than the budget"]);
    assert_eq!(recordings(&place).len(), 1);
}

/// Whatever was printed is in the report and in the store when the tool is ended, in whichever way.
#[test]
fn what_is_decided_survives_the_end_of_the_tool() {
    let place = Place::new();
    place.compile("program", &long_racy(100));
    for signal in ["KILL", "TERM", "INT"] {
        let store = format!("store-{signal}");
        let report = format!("{signal}.json");
        // Not quiet: proofs are told as they are made.
        let mut command = place.command(env!("CARGO_BIN_EXE_rashomon"), &["check", "--json", &report, "--output", &store]);
        command.args(["--", "./program"]);
        let started = place.start(command);
        let proven = wait_for("a proof", || {
            let text = started.complained();
            (text.matches("proven (").count() >= 2).then_some(text)
        });
        let id = started.child.id().to_string();
        place.run(place.command("kill", &["-s", signal, &id])).expect(0, &[]);
        let ended = started.finish();
        assert_eq!(ended.code, if signal == "KILL" { 137 } else { 130 }, "{ended}");
        let report = place.json(&report);
        assert_eq!(report["run"]["interrupted"], true);
        for line in proven.lines().filter(|line| line.contains("proven (")) {
            let id = line.rsplit(' ').next().unwrap_or_default();
            let told =
                report["findings"].as_array().into_iter().flatten().any(|one| one["id"] == id && one["verdict"] == "proven");
            assert!(told, "{id} is not in {signal}.json");
            let finding = place.json(&format!("{store}/findings/{id}.json"));
            assert_eq!(finding["finding"]["verdict"]["status"], "proven", "{id}");
        }
        place.rashomon(&["report", "--store", &store]).expect(0, &[]);
    }
}

#[test]
fn explore_and_minimise_keep_to_their_budgets() {
    let place = Place::new();
    let source = WRONG.replace("#include <pthread.h>", &format!("#include <pthread.h>\n{LONG}"));
    // No schedule fails.
    place.compile("program", &source.replace("pthread_t thread;", "pthread_t thread; take_long(400);").replace("r ? 0 : 3", "0"));
    let begin = Instant::now();
    let explore = ["explore", "--budget", "2", "--schedules", "1000", "--output", "store", "--", "./program"];
    place.rashomon(&explore).expect(0, &[]);
    let behind = begin.elapsed().as_secs_f64() - first_recording(&place);
    assert!(behind <= 2.0 * 1.1 + 1.0, "{behind} s behind the first recording");

    std::fs::remove_dir_all(place.path("store")).unwrap();
    place.compile("program", &source.replace("pthread_t thread;", "pthread_t thread; take_long(100);"));
    let (_, report) = check(&place, &[], 66, &["1 proven"]);
    let failures = of_kind(&report, "failure");
    let id = failures[0]["id"].as_str().unwrap_or_default();
    let begin = Instant::now();
    place.rashomon(&["minimise", "--store", "store", "--budget", "1", id]).expect(0, &[]);
    assert!(begin.elapsed() <= Duration::from_millis(2100), "{:?}", begin.elapsed());
    place.rashomon(&["replay", "--store", "store", id]).expect(0, &[]);
}

#[test]
fn a_flood_of_pairs_of_places_leaves_time_for_some() {
    let place = Place::new();
    let many = "    x++;\n".repeat(60);
    let source = format!(
        "#include <pthread.h>\nstatic volatile int x;\nstatic void *task(void *a) {{\n{many}    return a;\n}}\n\
         int main(void) {{\n    pthread_t t;\n    \
         pthread_create(&t, 0, task, 0);\n{many}    pthread_join(t, 0);\n    return 0;\n}}\n"
    );
    place.compile("program", &source);
    // Threads that take turns at every access meet at every pair of places.
    let turns = ["--every-access", "--policy", "round-robin", "--quantum", "1", "--recordings", "1", "--budget", "3"];
    let told = ["of the same bytes, functions and locks as others here"];
    let (_, report) = check(&place, &turns, 66, &told);
    let found = statuses(&report);
    assert!(found.len() <= 64 && found.iter().any(|(_, status)| status == "proven"), "{} findings", found.len());
}

/// Two functions that touch a variable at forty lines each race at 1600 pairs of places: some are proven, the pair that both
/// threads come to first among them, the others are counted. Other variables do not have to wait for them.
#[test]
fn races_of_one_cause_are_set_aside() {
    let place = Place::new();
    let lines = "    x++;\n".repeat(40);
    let source = format!(
        "#include <pthread.h>\nstatic volatile int x, y;\nstatic void *one(void *p) {{\n{lines}    y = 1;\n    return p;\n}}\n\
         static void *two(void *p) {{\n{lines}    y = 2;\n    return p;\n}}\n\
         int main(void) {{\n    pthread_t a, b;\n    pthread_create(&a, 0, one, 0);\n    pthread_create(&b, 0, two, 0);\n    \
         pthread_join(a, 0);\n    pthread_join(b, 0);\n    return 0;\n}}\n"
    );
    place.compile("program", &source);
    let (_, report) = check(&place, &[], 66, &["of the same bytes, functions and locks as others here"]);
    let races = of_kind(&report, "data-race");
    let of = |variable: &str| {
        let here = races.iter().filter(|race| race["subject"].as_str().is_some_and(|subject| subject.starts_with(variable)));
        here.map(|race| {
            let line = |side: usize| race["sides"][side]["stack"][0]["line"].as_u64().unwrap_or(0);
            (race["verdict"].as_str().unwrap_or_default().to_owned(), line(0).min(line(1)), line(0).max(line(1)))
        })
        .collect::<Vec<_>>()
    };
    assert!(of("global y").iter().any(|(status, ..)| status == "proven"), "{races:?}");
    let of_x = of("global x");
    assert!(of_x.iter().all(|(status, ..)| status == "proven"), "{of_x:?}");
    assert!(of_x.iter().any(|(_, one, other)| (*one, *other) == (4, 48)), "{of_x:?}");
    assert!((4..=12).contains(&of_x.len()), "{of_x:?}");
}

/// There is no other schedule of it, whatever it exits with.
#[test]
fn a_program_of_one_thread_is_recorded_once() {
    let place = Place::new();
    for (name, exit) in [("right", 0), ("wrong", 3)] {
        place.compile(name, &format!("int table[9]; int main(int n, char **v) {{ table[n]++; return {exit}; }}"));
        place.rashomon(&["check", "--", &format!("./{name}")]).expect(exit, &["1 recording, 1 thread"]);
    }
}

/// Makes a folder before it has threads, by calls that nobody sees, and needs it until its end, when it removes it. Each
/// execution writes down what it found.
const NEEDS_A_FOLDER: &str = "#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int x;
static char folder[40];
static long call(long number, const void *a, long b, long c) {
    long result;
    __asm__ volatile(\"syscall\" : \"=a\"(result) : \"a\"(number), \"D\"(a), \"S\"(b), \"d\"(c)
        : \"rcx\", \"r11\", \"memory\");
    return result;
}
static void say(const char *text) {
    long file = call(SYS_open, \"found\", O_WRONLY | O_CREAT | O_APPEND, 0600);
    call(SYS_write, (void *)file, (long)text, (long)strlen(text));
    call(SYS_close, (void *)file, 0, 0);
}
static void *work(void *p) {
    for (int i = 0; i < 2; i++) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); }
    return p;
}
int main(void) {
    snprintf(folder, sizeof folder, \"folder-%d\", (int)getpid());
    if (call(SYS_mkdir, folder, 0700, 0) != 0) return 4;
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    if (call(SYS_rmdir, folder, 0, 0) != 0) { say(\"gone\\n\"); abort(); }
    say(\"kept\\n\");
    return 0;
}
";

/// What one execution from a process snapshot removes the next one misses. Such executions do not count as explored.
#[test]
fn executions_that_fail_for_each_others_sake_are_made_from_the_beginning() {
    let place = Place::new();
    place.compile("program", NEEDS_A_FOLDER);
    let call = ["check", "--budget", "20", "--engines", "explore", "--", "./program"];
    let checked = place.rashomon(&call).expect(0, &["every schedule with up to 2 preemptions at visible operations"]);
    assert!(!checked.err.contains("failed as no replay did"), "{checked}");
    let found = std::fs::read_to_string(place.path("found")).unwrap();
    let count = |what: &str| found.lines().filter(|line| *line == what).count();
    assert!(count("gone") <= 8 && count("kept") >= 20, "{found}");
}
