//! Provocation: what lock sets and happens-before miss in a recording is proven from it, whatever the program synchronises with;
//! race-free programs stay without a report.

mod support;

use serde_json::Value;
use std::path::PathBuf;
use support::place::{Ended, Place};

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/provocation").join(name)
}

/// Compiles sources of `tests/provocation` to a program of that name.
#[track_caller]
fn compile(place: &Place, name: &str, sources: &[&str], options: &[&str]) {
    let mut command = place.tool(&["cc", "-g", "-O1", "-pthread", "-o", name]);
    command.args(options).args(sources.iter().map(|name| source(name)));
    place.run(command).expect(0, &[]);
}

#[track_caller]
fn provoke(place: &Place, options: &[&str], command: &[&str]) -> (Ended, Value) {
    let arguments = ["provoke", "--json", "report.json"].iter().chain(options).chain(&["--"]).chain(command);
    let ended = place.rashomon(&arguments.copied().collect::<Vec<_>>());
    let report = place.json("report.json");
    (ended, report)
}

/// Lines of each proven race, sorted.
fn lines(report: &Value) -> Vec<[u64; 2]> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let line = |side: &Value| side["stack"].as_array().and_then(|stack| stack[0]["line"].as_u64()).unwrap_or(0);
    let of = |finding: &Value| {
        assert_eq!((finding["verdict"].as_str(), finding["grade"].as_str()), (Some("proven"), Some("co-enabled")), "{finding}");
        let mut lines = [line(&finding["sides"][0]), line(&finding["sides"][1])];
        lines.sort_unstable();
        lines
    };
    let mut all: Vec<_> = findings.map(of).collect();
    all.sort_unstable();
    all
}

/// Everything that the analyses of the store's recording say.
fn predicted(place: &Place, store: &str) -> Vec<Value> {
    place.rashomon(&["predict", "--show", "everything", "--json", "predicted.json", store]);
    place.json("predicted.json")["findings"].as_array().cloned().unwrap_or_default()
}

/// The threads of each pair that the lockset analysis warns of.
fn warned(place: &Place, store: &str) -> Vec<[String; 2]> {
    let said = place.rashomon(&["analyse", "--analysis", "lockset", "--json", store]).expect(0, &[]).out;
    let report: Value = serde_json::from_str(&said).expect("JSON");
    let pairs = report["analyses"][0]["pairs"].as_array().cloned().expect("a list of pairs");
    let thread = |side: &Value| side["thread"].as_str().expect("a thread").to_owned();
    pairs.iter().map(|pair| [thread(&pair["earlier"]), thread(&pair["later"])]).collect()
}

/// Listing 1 of the RaceHunter paper, t1 before t2: both recorded accesses hold one lock. The lockset analysis warns only of
/// what main reads after it has joined both threads, which is no race, and of nothing between the two.
#[test]
fn lock_sets_miss_what_a_common_lock_hides() {
    let place = Place::new();
    compile(&place, "listing", &["common_lock.c"], &[]);
    place.rashomon(&["record", "--policy", "run-to-block", "--output", "store", "--", "./listing"]).expect(0, &[]);
    assert_eq!(predicted(&place, "store"), Vec::<Value>::new(), "no analysis of the recording suspects anything");
    let warned = warned(&place, "store");
    assert!(warned.iter().all(|threads| threads.iter().any(|thread| thread == "main")), "{warned:?}");
    let ended = place.rashomon(&["provoke", "--json", "report.json", "store"]).expect(66, &["1 proven", "the order matters"]);
    let report = place.json("report.json");
    assert_eq!(lines(&report), [[13, 31]], "{ended}");
    let id = report["findings"][0]["id"].as_str().unwrap();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
}

/// Listing 2, t1 before t2: a store and the load that reads it order both recorded writes.
#[test]
fn happens_before_misses_what_a_flag_hides() {
    let place = Place::new();
    compile(&place, "listing", &["flag.c"], &[]);
    place.rashomon(&["record", "--policy", "run-to-block", "--output", "store", "--", "./listing"]).expect(0, &[]);
    let evidence: Vec<Value> = predicted(&place, "store").iter().map(|finding| finding["evidence"].clone()).collect();
    assert!(!evidence.contains(&Value::from("happens-before")), "{evidence:?}");
    // Here no lock is held, and the lockset analysis does see the two writes.
    assert_eq!(warned(&place, "store"), [["0", "1"]].map(|threads| threads.map(str::to_owned)));
    let ended = place.rashomon(&["provoke", "--json", "report.json", "store"]).expect(66, &["1 proven"]);
    assert_eq!(lines(&place.json("report.json")), [[13, 21]], "{ended}");
}

/// A program without conflicting accesses, and one whose accesses a lock keeps apart, are left in peace.
#[test]
fn nothing_is_proven_of_what_is_right() {
    let place = Place::new();
    let locked = "#include <pthread.h>
#include <stdio.h>
static int x;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *task(void *unused) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); } \
    return 0; }
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, task, 0);
    pthread_create(&other, 0, task, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return x == 2000 ? 3 : 4;
}
";
    place.compile("locked", locked);
    let (ended, report) = provoke(&place, &[], &["./locked"]);
    let ended = ended.expect(3, &["0 proven", "pairs of conflicting accesses"]);
    assert!(!ended.err.contains(" 0 pairs of conflicting"), "{ended}");
    assert_eq!(lines(&report), Vec::<[u64; 2]>::new());
}

/// Only memory barriers, and a handler that runs while a mask word is clear: nothing is reported until the consumer forgets to
/// mask it.
#[test]
fn memory_barriers_and_a_masked_handler_are_enough() {
    let place = Place::new();
    compile(&place, "right", &["barriers.c"], &[]);
    compile(&place, "wrong", &["barriers.c"], &["-DRACE=1"]);
    let (ended, report) = provoke(&place, &[], &["./right"]);
    let ended = ended.expect(0, &["0 proven"]);
    assert_eq!(lines(&report), Vec::<[u64; 2]>::new(), "{ended}");
    assert!(!ended.err.contains(" 0 pairs of conflicting"), "{ended}");
    let (ended, report) = provoke(&place, &["--orders", "off"], &["./wrong"]);
    let races = lines(&report);
    // The handler counts in line 71; the consumer reads in line 105 and clears in line 106.
    assert!(!races.is_empty() && races.iter().all(|race| race[0] == 71 && [105, 106].contains(&race[1])), "{races:?} {ended}");
}

/// The library of `tests/arinc` with each of its races, and without.
#[test]
fn races_of_a_library_with_its_own_locks() {
    for (race, on) in
        [(0, None), (1, Some("arinc_last_length")), (2, Some("measurements.sent")), (3, Some("measurements.received"))]
    {
        let place = Place::new();
        let define = format!("-DRACE={race}");
        compile(&place, "exchange", &["../arinc/exchange.c", "../arinc/arinc.c"], &[&define]);
        let (ended, report) = provoke(&place, &["--orders", "off", "--budget", "600"], &["./exchange", "0.05"]);
        assert!(ended.err.contains(" 0 undecided"), "race {race}: {ended}");
        let subjects: Vec<&str> = report["findings"].as_array().unwrap().iter().filter_map(|f| f["subject"].as_str()).collect();
        assert_eq!(subjects.is_empty(), on.is_none(), "race {race}: {subjects:?} {ended}");
        assert!(subjects.iter().all(|subject| subject.contains(on.unwrap_or_default())), "race {race}: {subjects:?} {ended}");
    }
}

/// A thread that the program names is found by its name, although it is another one by the order of creation when the program is
/// provoked.
#[test]
fn threads_are_found_by_the_names_that_the_program_gives() {
    let place = Place::new();
    let mut named = MEET.to_owned();
    let (one, other) = ("    pthread_create(&one, 0, many, 0);\n", "    pthread_create(&other, 0, once, 0);\n");
    let either =
        format!("    int swapped = access(\"swapped\", F_OK) == 0;\n    if (swapped)\n{other}{one}    if (!swapped)\n{other}");
    for (old, new) in [
        ("#include <pthread.h>", "#include \"rashomon.h\"\n#include <unistd.h>\n#include <pthread.h>"),
        ("    atomic_store(&started", "    RASHOMON_THREAD_ID(11);\n    atomic_store(&started"),
        ("    while (!atomic_load(&started", "    RASHOMON_THREAD_ID(22);\n    while (!atomic_load(&started"),
        (&format!("{one}{other}"), &either),
    ] {
        assert!(named.contains(old), "{old}");
        named = named.replace(old, new);
    }
    place.write("named.c", named);
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    place.rashomon(&["cc", "-g", "-O1", "-pthread", include, "-o", "named", "named.c"]).expect(0, &[]);
    place.rashomon(&["record", "--policy", "run-to-block", "--output", "store", "--", "./named"]).expect(0, &[]);
    let identities = std::fs::read_to_string(place.path("store/recording-0/identities")).unwrap();
    assert_eq!(identities, "1 11\n2 22\n");
    place.write("swapped", "");
    let ended = place.rashomon(&["provoke", "--json", "report.json", "store"]).expect(66, &["1 proven"]);
    let report = place.json("report.json");
    let id = report["findings"][0]["id"].as_str().unwrap();
    let finding = place.json(&format!("store/findings/{id}.json"));
    // Either may be held; what is asked for is what it is called.
    let held = &finding["finding"]["provocation"]["held"];
    let asked = (held["identity"].as_u64(), held["thread"].clone());
    let called = [(Some(11), serde_json::json!([0])), (Some(22), serde_json::json!([1]))];
    assert!(called.contains(&asked), "{finding} {ended}");
    place.rashomon(&["replay", "--store", "store", id]).expect(0, &[]);
    // Without us it is an ordinary program.
    place.must("cc", &["-pthread", include, "-o", "plain", "named.c"]);
    place.must("./plain", &[]);
}

/// Neither thread touches `x` unless it sees the other one at work, which it does not in the first recording.
const SEEN: &str = "#include <pthread.h>
#include <stdatomic.h>
int x;
static atomic_int at_work[2];
static pthread_barrier_t begin;
static void *one(void *unused) {
    pthread_barrier_wait(&begin);
    for (int i = 0; i < 3000; i++) {
        atomic_store(&at_work[0], 1);
        if (atomic_load(&at_work[1])) x = 1;
        atomic_store(&at_work[0], 0);
    }
    return unused;
}
static void *other(void *unused) {
    pthread_barrier_wait(&begin);
    for (int i = 0; i < 3000; i++) {
        atomic_store(&at_work[1], 1);
        if (atomic_load(&at_work[0])) x = 2;
        atomic_store(&at_work[1], 0);
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&begin, 0, 2);
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, other, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

#[test]
fn what_is_left_of_the_budget_finds_accesses_that_the_recording_does_not_have() {
    let place = Place::new();
    place.compile("seen", SEEN);
    place.rashomon(&["record", "--policy", "run-to-block", "--output", "store", "--", "./seen"]).expect(0, &[]);
    place.rashomon(&["provoke", "--second-look", "0", "store"]).expect(0, &["provocation: 0 pairs", "; 0 executions"]);
    for longer in [&["--second-look", "600"] as &[&str], &["--whole-budget"]] {
        let all = [&["provoke", "--budget", "600", "--runs", "100", "--json", "report.json"], longer, &["store"]].concat();
        let ended = place.rashomon(&all).expect(66, &["1 proven", "100 executions", "further recordings"]);
        assert_eq!(lines(&place.json("report.json")), [[10, 19]], "{ended}");
    }
    let report = place.json("report.json");
    place.rashomon(&["replay", "--store", "store", report["findings"][0]["id"].as_str().unwrap()]).expect(0, &[]);
}

#[test]
fn budgets_and_limits_are_kept() {
    let place = Place::new();
    compile(&place, "listing", &["flag.c"], &[]);
    let (ended, _) = provoke(&place, &["--policy", "run-to-block", "--budget", "0"], &["./listing"]);
    ended.expect(0, &["1 undecided"]);
    let (ended, _) =
        provoke(&place, &["--policy", "run-to-block", "--runs", "1", "--orders", "off", "--jobs", "1"], &["./listing"]);
    assert!(ended.err.contains("; 1 execution with "), "{ended}");
}

/// Either thread that is held at its first access meets the other one, however fast they run.
const MEET: &str = "#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
int x;
static atomic_int started, done;
static void *many(void *unused) {
    atomic_store(&started, 1);
    do
        x = 1;
    while (!atomic_load(&done));
    return unused;
}
static void *once(void *unused) {
    while (!atomic_load(&started)) sched_yield();
    x = 2;
    atomic_store(&done, 1);
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, many, 0);
    pthread_create(&other, 0, once, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
";

#[test]
fn executions_at_the_same_time_prove_the_same() {
    let place = Place::new();
    place.compile("meet", MEET);
    for (jobs, store) in [("1", "one"), ("3", "three")] {
        let (ended, report) = provoke(&place, &["--jobs", jobs, "--output", store], &["./meet"]);
        ended.expect(66, &["1 proven"]);
        let id = report["findings"][0]["id"].as_str().unwrap();
        place.rashomon(&["replay", "--store", store, id]).expect(0, &[]);
    }
}

#[test]
fn gdb_shows_both_accesses_of_a_provoked_race() {
    let place = Place::new();
    if !support::place::gdb_works(&place) {
        return;
    }
    place.write("meet.c", MEET);
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "-o", "meet", "meet.c"]).expect(0, &[]);
    let (ended, report) = provoke(&place, &["--orders", "off", "--output", "store"], &["./meet"]);
    ended.expect(66, &["1 proven"]);
    let id = report["findings"][0]["id"].as_str().unwrap();
    let batch = ["replay", "--store", "store", id, "--gdb", "--", "-batch", "-ex", "thread apply all bt"];
    let ended = place.rashomon(&[&batch[..], &["-ex", "rashomon watch", "-ex", "rashomon step-turn"]].concat());
    for line in [9, 15] {
        assert!(ended.out.contains(&format!("meet.c:{line}\n")), "{ended}");
    }
    assert!(ended.out.contains("watchpoint"), "where the accesses meet is known: {ended}");
    assert!(ended.err.contains("threads in parallel, which take no turns"), "{ended}");
}

/// A command for `--before-each` that kills the tool before the first execution behind a result.
const KILL: &str =
    "test -e killed || test -z \"$(ls store/findings/*.json 2>/dev/null)\" || { touch killed; kill -KILL $PPID; exec sleep 60; }";

/// Ended by force between two results, the tool has lost none.
#[test]
fn killing_the_tool_loses_no_catch_and_no_witness() {
    for command in ["provoke", "witness"] {
        let place = Place::new();
        let several = MEET.replace("x = 1;", "{ x = 1; y = 1; z = 1; }").replace("x = 2;", "x = 2; y = 2; z = 2;");
        place.compile("meet", &several.replace("int x;", "int x, y, z;"));
        place.rashomon(&[command, "--before-each", KILL, "--output", "store", "--", "./meet"]).expect(137, &[]);
        let ended = place.rashomon(&["report", "--store", "store", "--format", "json"]).expect(0, &[]);
        let report: Value = serde_json::from_str(&ended.out).unwrap();
        let statuses = support::place::statuses(&report);
        assert!(!statuses.is_empty() && statuses.iter().all(|(_, status)| status == "proven"), "{command}: {report}");
        for (id, _) in statuses {
            place.rashomon(&["replay", "--store", "store", &id]).expect(0, &[]);
        }
    }
}

/// Two threads, each with a lock that the other one wants next: a barrier is between. With the name of a file, only if that is
/// not there yet.
const BLOCKED: &str = "#include <fcntl.h>
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int meet;
static void *one(void *unused) {
    pthread_mutex_lock(&a);
    if (meet)
        pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return 0;
}
static void *two(void *unused) {
    if (!meet)
        return 0;
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return 0;
}
int main(int count, char **arguments) {
    pthread_t threads[2];
    meet = count < 2 || open(arguments[1], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, two, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

/// Kinds, statuses and grades of all findings, and whether each can be made to happen again.
fn decided(report: &Value) -> Vec<(String, String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().into_iter().flatten();
    let of = |finding: &Value| {
        (text(&finding["kind"]), text(&finding["verdict"]), text(&finding["grade"]), finding["reproduce"].is_string())
    };
    findings.map(of).collect()
}

#[test]
fn a_deadlock_that_is_met_is_proven_by_a_serial_schedule() {
    let place = Place::new();
    place.compile("blocked", BLOCKED);
    let (_, report) = provoke(&place, &["--fail-on", "never"], &["./blocked"]);
    assert_eq!(decided(&report), [("deadlock".into(), "proven".into(), "deadlocked".into(), true)], "{report}");
    place.rashomon(&["replay", "deadlock", "--times", "2"]).expect(0, &[]);
}

#[test]
fn a_deadlock_that_no_schedule_shows_again_is_suspected() {
    let place = Place::new();
    place.compile("blocked", BLOCKED);
    let (ended, report) = provoke(&place, &["--show", "suspicions"], &["./blocked", "ran"]);
    assert_eq!(decided(&report), [("deadlock".into(), "suspected".into(), String::new(), false)], "{report}");
    ended.expect(124, &["a deadlock is suspected (mutex a, mutex b)", "no bug was made to happen"]);
}
