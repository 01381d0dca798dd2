//! One crash for another is none, though the signal is the same.

use crate::support::place::{Place, statuses};
use serde_json::Value;

/// The second thread crashes in one place where it comes first, and in another where the first thread is done.
const PROGRAM: &str = "#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stage;
__attribute__((noinline)) static void crash_early(void) { *(volatile int *)8 = 1; }
__attribute__((noinline)) static void crash_late(void) { *(volatile int *)16 = 1; }
__attribute__((noinline)) static void next(void) { pthread_mutex_lock(&lock); stage++; pthread_mutex_unlock(&lock); }
__attribute__((noinline)) static int now(void) { pthread_mutex_lock(&lock); int s = stage; pthread_mutex_unlock(&lock); \
    return s; }
static void *first(void *p) { now(); next(); next(); return p; }
static void *second(void *p) {
    int seen = now();
    if (seen == 2)
        crash_late();
    if (seen == 0)
        crash_early();
    return p;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
";
/// Where the kernel says that it crashed.
const PLACES: [(&str, &str); 2] = [("crash_early", "address 0x8:"), ("crash_late", "address 0x10:")];

/// The tool that says what it does, to be run there.
fn loud(place: &Place, arguments: &[&str]) -> std::process::Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_rashomon"), arguments);
    command.stdin(std::process::Stdio::null());
    command
}

/// Ids of the failures, and where each was.
fn failures(report: &Value) -> Vec<(String, &'static str)> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let failures = findings.filter(|finding| finding["id"].as_str().is_some_and(|id| id.starts_with("failure")));
    let place = |finding: &Value| {
        let function = &finding["sides"][0]["stack"][0]["function"];
        PLACES.iter().find(|(name, _)| function == name).map(|(_, address)| *address).expect("it is one of the two")
    };
    failures.map(|finding| (finding["id"].as_str().unwrap_or_default().to_owned(), place(finding))).collect()
}

#[test]
fn a_shorter_schedule_that_crashes_elsewhere_is_not_gone_on_from() {
    let place = Place::new();
    place.compile("program", PROGRAM);
    let check = ["check", "--recordings", "1", "--json", "report.json", "--output", "store", "--", "./program"];
    place.rashomon(&check).expect(66, &[]);
    let found = failures(&place.json("report.json"));
    assert!(!found.is_empty());
    for (id, address) in &found {
        place.rashomon(&["minimise", "--store", "store", id]).expect(0, &[]);
        let again = place.run(loud(&place, &["replay", "--store", "store", id])).expect(0, &[]);
        assert!(again.out.contains("again") && again.out.contains(address), "{again}");
    }
}

#[test]
fn exploration_keeps_each_crash() {
    let place = Place::new();
    place.compile("program", PROGRAM);
    let explore = ["explore", "--all", "--schedules", "60", "--json", "report.json", "--output", "store", "--", "./program"];
    place.rashomon(&explore).expect(66, &[]);
    let report = place.json("report.json");
    let mut found = failures(&report);
    assert!(statuses(&report).iter().all(|(_, status)| status == "proven"), "{report:#}");
    for (id, address) in &found {
        let again = place.run(loud(&place, &["replay", "--store", "store", id])).expect(0, &[]);
        assert!(again.out.contains(address), "{again}");
    }
    found.sort_by_key(|(_, address)| *address);
    let addresses: Vec<&str> = found.iter().map(|(_, address)| *address).collect();
    assert_eq!(addresses, ["address 0x10:", "address 0x8:"]);
}
