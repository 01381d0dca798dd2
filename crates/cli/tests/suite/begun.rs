//! A check that begins with the recordings of a store: `check --from`.

use crate::support::place::{Ended, Place, RACE, statuses};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

/// Crashes where main is first; each execution leaves a line.
const RARE: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static _Atomic int ready;
static void *task(void *p) { ready = 1; return p; }
int main(void) {
    FILE *file = fopen(\"executed\", \"a\");
    fputs(\"once\\n\", file);
    fclose(file);
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    if (!ready) abort();
    pthread_join(thread, 0);
    return 0;
}
";

/// A race in a child process.
const CHILD: &str = "#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static int x;
static void *task(void *unused) { x++; return 0; }
int main(void) {
    pid_t child = fork();
    if (child) { int status; waitpid(child, &status, 0); return 0; }
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return 0;
}
";

const CHECK: [&str; 2] = ["check", "--json=report.json"];
/// No further recordings.
const QUICK: [&str; 2] = ["--recordings=1", "--engines=force"];

fn recorded(place: &Place, store: &str, options: &[&str], program: &[&str]) {
    place.rashomon(&[&["record", "--quiet", "--output", store], options, &["--"], program].concat());
}

fn begun(place: &Place, store: &str, options: &[&str], program: &[&str]) -> Ended {
    let separator: &[&str] = if program.is_empty() { &[] } else { &["--"] };
    let options =
        if options.iter().any(|one| one.starts_with("--recordings")) { options } else { &[&QUICK[..], options].concat() };
    place.rashomon(&[&CHECK[..], &["--from", store, "--output", "new"], options, separator, program].concat())
}

fn recordings(place: &Place, store: &str) -> Vec<(String, u64)> {
    let run = place.json(&format!("{store}/run.json"));
    let of = |one: &Value| (one["policy"].as_str().unwrap_or_default().to_owned(), one["seed"].as_u64().unwrap_or(0));
    run["recordings"].as_array().into_iter().flatten().map(of).collect()
}

/// It cannot begin, which is said, and leaves no store.
#[track_caller]
fn refused(place: &Place, store: &str, program: &[&str], said: &[&str]) {
    begun(place, store, &[], program).expect(125, said);
    assert!(!place.path("new").exists(), "nothing is left");
}

#[test]
fn what_was_recorded_is_the_first_recording() {
    let place = Place::new();
    place.compile("program", RACE);
    recorded(&place, "rec", &["--policy", "round-robin", "--seed", "5", "--quantum", "500"], &["./program"]);
    begun(&place, "rec", &[], &["./program"]).expect(66, &["PROVEN: 1 data race", "the first recording came from rec"]);
    assert_eq!(recordings(&place, "new"), [("round-robin".to_owned(), 5)]);
    let (new, old) = (place.json("new/run.json"), place.json("rec/run.json"));
    assert_eq!((&new["quantum"], &new["base_time_nanoseconds"]), (&old["quantum"], &old["base_time_nanoseconds"]));
    assert_eq!(place.json("report.json")["run"]["recordings"], 1);
    // Whole by itself.
    fs::remove_dir_all(place.path("rec")).expect("it is there");
    let id = statuses(&place.json("report.json"))[0].0.clone();
    place.rashomon(&["replay", "--store", "new", &id]).expect(0, &[]);
    place.rashomon(&["replay", "--recording", "new"]).expect(0, &[]);
}

#[test]
fn further_recordings_are_those_behind_the_first() {
    let place = Place::new();
    place.compile("program", RACE);
    recorded(&place, "rec", &["--recordings", "2", "--policy", "pct", "--seed", "40"], &["./program"]);
    begun(&place, "rec", &["--recordings=3"], &["./program"]).expect(66, &["the first 2 recordings came from rec"]);
    let expected = [("pct", 40), ("pct", 41), ("random", 3)].map(|(policy, seed)| (policy.to_owned(), seed));
    assert_eq!(recordings(&place, "new"), expected);
    let said = ["check", "--from", "rec", "--output", "more", "--", "./program"];
    place.rashomon(&said).expect(66, &[]);
    let made = recordings(&place, "more");
    assert_eq!(made[..2], expected[..2]);
    assert_eq!(made[2], ("pct".to_owned(), 3), "as the third of any check");
    assert!(made.len() > 4, "{made:?}");
}

#[test]
fn a_rare_execution_is_not_waited_for() {
    let place = Place::new();
    place.compile("rare", RARE);
    recorded(&place, "rec", &["--policy", "run-to-block"], &["./rare"]);
    let executed = || fs::read_to_string(place.path("executed")).unwrap_or_default().lines().count();
    let before = executed();
    let ended = begun(&place, "rec", &["--proofs=1"], &["./rare"]);
    ended.expect(66, &["PROVEN: 1 failure", "SIGABRT"]);
    assert_eq!(executed(), before + 1, "it was replayed, and not recorded again");
}

/// Without PROG the store says what is executed, and where.
#[test]
fn the_store_knows_its_program() {
    let place = Place::new();
    place.compile("program", RACE);
    place.write("input", "text");
    let options = ["--stdin", "input", "--before-each", "echo once >> restored"];
    recorded(&place, "rec", &options, &["./program", "argument"]);
    fs::create_dir(place.path("elsewhere")).expect("the folder is writable");
    let mut command = place.tool(&["check", "--recordings=2", "--engines=force", "--from", "../rec", "--output", "../new"]);
    command.current_dir(place.path("elsewhere"));
    place.run(command).expect(66, &["PROVEN: 1 data race"]);
    let (new, old) = (place.json("new/run.json"), place.json("rec/run.json"));
    for field in ["executable", "arguments", "directory", "before_each", "input"] {
        assert_eq!(new[field], old[field], "{field}");
    }
    assert!(!place.path("elsewhere/restored").exists());
}

#[test]
fn another_program_is_refused() {
    let place = Place::new();
    place.compile("program", RACE);
    place.compile("other", RARE);
    recorded(&place, "rec", &[], &["./program", "1"]);
    refused(&place, "rec", &["./program", "2"], &["rec holds recordings of", "program 1`", "program 2`", "same arguments"]);
    refused(&place, "rec", &["./program"], &["program 1`, and this is"]);
    refused(&place, "rec", &["./other", "1"], &["for another binary", "other had build-id"]);
    place.write("racy.c", RACE);
    place.rashomon(&["check", "--from", "rec", "racy.c"]).expect(125, &["built already"]);
    // Built anew from other sources.
    place.compile("program", &RACE.replace("x++;\n", "x += 2;\n"));
    refused(&place, "rec", &["./program", "1"], &["for another binary", "program had build-id"]);
    refused(&place, "rec", &[], &["for another binary"]);
    place.rashomon(&["check", "--trust", "--", "./program"]).expect(2, &["--from"]);
    place.rashomon(&["check", "--from", "rec", "--per-test-case", "--", "./program"]).expect(2, &["cannot be used with"]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let place = Place::new();
    place.compile("program", RACE);
    refused(&place, "nothing", &["./program"], &["no store in"]);
    recorded(&place, "rec", &[], &["./program"]);
    let run = place.json("rec/run.json");
    let with = |recordings: Value| {
        let mut run = run.clone();
        run["recordings"] = recordings;
        place.write("rec/run.json", run.to_string());
    };
    with(Value::Array(Vec::new()));
    refused(&place, "rec", &["./program"], &["holds no recording to begin with"]);
    with(vec![run["recordings"][0].clone(); 1001].into());
    refused(&place, "rec", &["./program"], &["1001 recordings are more than 1000"]);
    with(vec![run["recordings"][0].clone(); 2].into());
    refused(&place, "rec", &["./program"], &["recording-1"]);
    with(run["recordings"].clone());
    let header = fs::read(place.path("rec/recording-0/header")).expect("a recording has one");
    place.write("rec/recording-0/header", &header[..20]);
    refused(&place, "rec", &["./program"], &["rec/recording-0/header"]);
    place.write("rec/recording-0/header", "x".repeat(header.len()));
    refused(&place, "rec", &["./program"], &["rec/recording-0/header"]);
    place.write("rec/recording-0/header", &header);
    // What only reading all of it tells.
    let thread = "rec/recording-0/thread-0000";
    let whole = fs::read(place.path(thread)).expect("a recording has one");
    place.write(thread, [&whole[..whole.len() / 2], &vec![0x5a; whole.len() - whole.len() / 2]].concat());
    let _ = begun(&place, "rec", &[], &["./program"]);
    let _ = fs::remove_dir_all(place.path("new"));
    place.write(thread, whole);
    place.write("group/summary.json", "{}");
    refused(&place, "group", &["./program"], &["--from takes one of them"]);
    symlink("/etc/passwd", place.path("rec/recording-0/link")).expect("the folder is writable");
    refused(&place, "rec", &["./program"], &["recording-0/link is a link"]);
}

#[test]
fn somebody_elses_store_runs_nothing_of_its_own() {
    let place = Place::new();
    place.compile("program", RACE);
    recorded(&place, "rec", &["--before-each", "echo once >> restored"], &["./program"]);
    let mut run = place.json("rec/run.json");
    run["seal"]["code"] = "00".repeat(32).into();
    place.write("rec/run.json", run.to_string());
    fs::remove_file(place.path("restored")).expect("it was recorded");
    refused(&place, "rec", &[], &["was not recorded by you", "--trust"]);
    // What runs is what is named here.
    begun(&place, "rec", &[], &["./program"]).expect(66, &["PROVEN"]);
    assert!(!place.path("restored").exists());
    let id = statuses(&place.json("report.json"))[0].0.clone();
    place.rashomon(&["replay", "--store", "new", &id]).expect(0, &[]);
    fs::remove_dir_all(place.path("new")).expect("it was made");
    begun(&place, "rec", &["--trust"], &[]).expect(66, &["PROVEN"]);
    assert!(place.path("restored").exists());
    place.rashomon(&["replay", "--store", "new", &id]).expect(125, &["was not recorded by you"]);
}

/// As on another machine: the program is at another place there.
#[test]
fn a_program_may_have_moved() {
    let place = Place::new();
    place.compile("program", RACE);
    recorded(&place, "rec", &[], &["./program"]);
    fs::create_dir(place.path("other")).expect("the folder is writable");
    fs::rename(place.path("program"), place.path("other/renamed")).expect("it was compiled");
    begun(&place, "rec", &[], &[]).expect(127, &["no such program"]);
    begun(&place, "rec", &[], &["other/renamed"]).expect(66, &["PROVEN: 1 data race", "program.c:3"]);
    let id = statuses(&place.json("report.json"))[0].0.clone();
    place.rashomon(&["replay", "--store", "new", &id]).expect(0, &[]);
}

#[test]
fn all_processes_come_along() {
    let place = Place::new();
    place.compile("forks", CHILD);
    recorded(&place, "rec", &[], &["./forks"]);
    begun(&place, "rec", &[], &["./forks"]).expect(66, &["PROVEN: 1 data race"]);
    let found = statuses(&place.json("report.json"));
    let folders = |store: &str| {
        let entries = fs::read_dir(place.path(&format!("{store}/recording-0"))).expect("it is there");
        let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    assert!(folders("rec").iter().any(|name| name.starts_with("process-")));
    assert_eq!(folders("new"), folders("rec"));
    place.rashomon(&[&CHECK[..], &QUICK, &["--output", "usual", "--", "./forks"]].concat()).expect(66, &[]);
    assert_eq!(found, statuses(&place.json("report.json")));
}

#[test]
fn parts_begin_with_the_same() {
    let place = Place::new();
    place.compile("program", RACE);
    recorded(&place, "rec", &["--seed", "9"], &["./program"]);
    for part in ["1", "2"] {
        let (shard, store) = (format!("{part}/2"), format!("part-{part}"));
        let said = ["check", "--from", "rec", "--recordings=2", "--engines=force", "--budget=20", "--shard", &shard];
        place.rashomon(&[&said[..], &["--output", &store, "--", "./program"]].concat()).expect(66, &[]);
        assert_eq!(recordings(&place, &store)[0], ("random".to_owned(), 9));
    }
    assert_ne!(recordings(&place, "part-1")[1], recordings(&place, "part-2")[1]);
    place.rashomon(&["merge", "part-1", "part-2"]).expect(66, &["PROVEN: 1 data race"]);
}
