//! Both orders of a proven race are executed, and what they do to the program is said; the worst is told first.

use crate::support::place::Place;
use serde_json::Value;

/// `main` writes `x`, and `HERE` reads it in another thread.
fn racing(here: &str, end: &str) -> String {
    format!(
        "#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
static sem_t never;
static int value, seen;
static int *pointer;
static int x;
static void *task(void *p) {{ {here} return p; }}
int main(void) {{
    pthread_t thread;
    sem_init(&never, 0, 0);
    pthread_create(&thread, 0, task, 0);
    {end}
    pthread_join(thread, 0);
    printf(\"%d\\n\", seen + (x > 1));
    return 0;
}}
"
    )
}

fn check(source: &str) -> (String, Value) {
    let place = Place::new();
    place.compile("program", source);
    let arguments = ["check", "--recordings", "1", "--engines", "force,harm", "--json", "report.json", "--output", "store"];
    let ended = place.rashomon(&[&arguments[..], &["--", "./program"]].concat());
    (ended.to_string(), place.json("report.json"))
}

/// Of the races, in their order.
fn harms(report: &Value) -> Vec<&str> {
    let races = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["kind"] == "data-race");
    races.map(|race| race["harm"].as_str().unwrap_or("not compared")).collect()
}

#[test]
fn an_order_that_crashes_the_program_is_told() {
    let (text, report) = check(&racing("*pointer = 1;", "pointer = &value;"));
    assert_eq!(harms(&report), ["crash"], "{text}");
    let notes = report["findings"][0]["notes"].to_string();
    assert!(notes.contains("with the access of thread 0 first, the program is ended by signal 11"), "{notes}");
    assert!(notes.contains("with the access of the main thread first, the program ends with exit code 0"), "{notes}");
    assert!(text.contains("consequence: crash"), "{text}");
}

#[test]
fn an_order_in_which_the_program_never_ends_is_told() {
    let (text, report) = check(&racing("if (x) sem_wait(&never);", "x = 1;"));
    assert_eq!(harms(&report), ["hang"], "{text}");
}

#[test]
fn another_result_is_told() {
    let (text, report) = check(&racing("seen = x;", "x = 1;"));
    assert_eq!(harms(&report), ["result"], "{text}");
    let notes = report["findings"][0]["notes"].to_string();
    assert!(notes.contains("prints `0`") && notes.contains("prints `1`"), "{notes}");
}

#[test]
fn no_difference_is_told_too_and_comes_last() {
    let (text, report) = check(&racing("value++; *pointer = 1;", "value++; pointer = &seen;"));
    let found = harms(&report);
    assert_eq!((found.first(), found.last()), (Some(&"crash"), Some(&"none-seen")), "{text}");
    let (text, report) = check(&racing("x = 1;", "x = 1;"));
    assert_eq!(harms(&report), ["none-seen"], "{text}");
}
