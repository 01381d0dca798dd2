//! `check` finds what exploration finds; what that shows is recorded and analysed; the report says what was tried.

use crate::support::place::{Place, statuses};
use serde_json::Value;

const WOKEN_TOO_EARLY: &str = include_str!("../../../../tests/loop/woken_too_early.c");
const USED_AFTER_FREE: &str = include_str!("../../../../tests/loop/used_after_free.c");
const LINED_UP: &str = include_str!("../../../../tests/loop/lined_up.c");
const BEHIND_A_BRANCH: &str = include_str!("../../../../tests/loop/behind_a_branch.c");

fn mended(source: &str) -> String {
    format!("#define FIXED\n{source}")
}

fn check(place: &Place, options: &[&str], code: i32) -> Value {
    // Where one store was another may be.
    let _ = std::fs::remove_dir_all(place.path("store"));
    let arguments = [&["check", "--json", "report.json", "--output", "store"], options, &["--", "./program"]].concat();
    place.rashomon(&arguments).expect(code, &[]);
    place.json("report.json")
}

/// The lines about what was tried and what was not.
fn told(report: &Value) -> [String; 2] {
    let notes: Vec<&str> = report["run"]["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ["tried: ", "not tried: "].map(|start| {
        let lines: Vec<&str> = notes.iter().filter_map(|note| note.strip_prefix(start)).collect();
        assert_eq!(lines.len(), 1, "{start}{notes:?}");
        lines[0].to_owned()
    })
}

#[test]
fn what_no_recording_shows_is_found_by_exploration() {
    let place = Place::new();
    place.compile("program", WOKEN_TOO_EARLY);
    let report = check(&place, &["--recordings", "1"], 66);
    let [tried, left] = told(&report);
    assert!(tried.contains("every schedule with up to 2 preemptions at visible operations"), "{tried}");
    assert_eq!(left, "code that no execution reached");
    let finding = &report["findings"][0];
    assert_eq!((&finding["kind"], &finding["grade"]), (&"stuck".into(), &"stuck".into()), "{report}");
    let id = finding["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
    // Whoever narrows the engines does without.
    let report = check(&place, &["--recordings", "1", "--engines", "force"], 0);
    assert!(!told(&report)[0].contains("schedule"), "{report}");
    place.compile("program", &mended(WOKEN_TOO_EARLY));
    assert_eq!(statuses(&check(&place, &[], 0)), []);
}

/// Without any preemption there are more schedules than can be tried.
#[test]
fn where_many_threads_have_to_line_up_reads_are_steered() {
    let place = Place::new();
    place.compile("program", LINED_UP);
    let report = check(&place, &["--recordings", "1", "--engines", "explore", "--budget", "600"], 66);
    let finding = &report["findings"][0];
    assert_eq!((&finding["kind"], &finding["grade"]), (&"failure".into(), &"crashed".into()), "{report}");
    let notes = finding["notes"].to_string();
    assert!(notes.contains("found by exploration (new inputs of reads)"), "{notes}");
    assert!(told(&report)[0].contains("in which reads are steered to inputs that they have not had"), "{report}");
}

#[test]
fn no_other_engine_can_be_asked_for() {
    let place = Place::new();
    place.rashomon(&["check", "--engines", "force,luck", "--", "./program"]).expect(2, &["luck", "explore", "provoke"]);
}

/// The lock orders the two: it is no race.
#[test]
fn memory_that_another_order_frees_too_early() {
    let place = Place::new();
    place.compile("program", USED_AFTER_FREE);
    let report = check(&place, &[], 66);
    let finding = &report["findings"][0];
    assert_eq!((&finding["kind"], &finding["grade"]), (&"use-after-free".into(), &"freed".into()), "{report}");
    let actions = finding["sides"].as_array().into_iter().flatten().map(|side| side["action"].to_string());
    let actions: Vec<String> = actions.collect();
    assert!(actions[0].contains("uses 4 bytes in heap block") && actions[1].contains("freed it"), "{actions:?}");
    let id = finding["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", "store", id, "--times", "3"]).expect(0, &[]);
    place.compile("program", &mended(USED_AFTER_FREE));
    assert_eq!(statuses(&check(&place, &[], 0)), []);
}

#[test]
fn what_exploration_shows_becomes_a_recording() {
    let place = Place::new();
    place.compile("program", BEHIND_A_BRANCH);
    let report = check(&place, &[], 66);
    assert!(report["findings"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "data-race")), "{report}");
    let explored = |place: &Place| {
        let run = place.json("store/run.json");
        let all = run["recordings"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|one| one["policy"] == "explore").count()
    };
    assert!(explored(&place) > 0);
    // Whoever asks for a number of recordings gets that many.
    check(&place, &["--recordings", "2", "--fail-on", "never"], 0);
    assert_eq!((explored(&place), place.json("store/run.json")["recordings"].as_array().map(Vec::len)), (0, Some(2)));
}

/// Threads that spin: all schedules of it would be too many.
#[test]
fn of_a_long_execution_not_all_schedules_are_tried_and_the_report_says_so() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
#include <stdatomic.h>
static atomic_long turns;
static void *task(void *unused) {
    for (int i = 0; i < 10000; i++) turns++;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    task(0);
    pthread_join(thread, 0);
    return 0;
}
",
    );
    let begin = std::time::Instant::now();
    let report = check(&place, &["--recordings", "1", "--budget", "60"], 0);
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
    let [tried, left] = told(&report);
    assert!(tried.contains("64 schedules in which objects are touched"), "{tried}");
    assert!(left.contains("not explored: one has more than 5000 visible operations"), "{left}");
}
