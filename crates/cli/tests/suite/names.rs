//! What findings call locks, variables and threads: the same in the report and under gdb.

use crate::support::place::{Place, RACE, gdb_works};

const STATS: &str = "\
#include <memory>
#include <mutex>
#include <thread>
struct Stats {
    std::mutex mutex_; std::mutex table_mutex_; long hits = 0; long misses = 0;
    void hit() { std::lock_guard<std::mutex> a(mutex_); std::lock_guard<std::mutex> b(table_mutex_); hits++; }
    void miss() { std::lock_guard<std::mutex> a(table_mutex_); std::lock_guard<std::mutex> b(mutex_); misses++; }
    void reset() { hits = 0; }
};
int main() {
    auto stats = std::make_shared<Stats>();
    std::thread a([stats] { stats->hit(); });
    std::thread b([stats] { stats->miss(); });
    std::thread c([stats] { stats->reset(); });
    a.join(); b.join(); c.join();
}
";

fn checked(place: &Place) -> String {
    place.write("stats.cpp", STATS);
    place.rashomon(&["c++", "-std=c++17", "-g", "-O1", "-pthread", "-o", "stats", "stats.cpp"]).expect(0, &[]);
    place.rashomon(&["check", "--", "./stats"]).expect(66, &["1 deadlock"]).err
}

/// The part of a report that is about the first finding that begins so.
fn told<'a>(report: &'a str, begins: &str) -> &'a str {
    report.split("\n\n").find_map(|part| part.find(begins).map(|at| &part[at..])).unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn members_of_blocks_are_called_by_their_names() {
    let place = Place::new();
    let report = checked(&place);
    let deadlock = told(&report, "deadlock (");
    for words in [
        "]: Stats::mutex_, Stats::table_mutex_",
        "Stats::mutex_, Stats::table_mutex_: mutex in heap block of 112 bytes allocated at main (stats.cpp:11)",
        "waits for Stats::mutex_, held by thread 0",
        "holding Stats::table_mutex_, taken at",
        // libstdc++, which is not compiled with the program, creates the thread.
        "thread 0 was created at main stats.cpp:12",
    ] {
        assert!(deadlock.contains(words), "{words}: {report}");
    }
    assert!(told(&report, "data race (").contains("]: Stats::hits (8 bytes) in heap block of 112 bytes"), "{report}");
}

#[test]
fn gdb_stops_in_the_users_frame_and_calls_threads_as_the_report_does() {
    let place = Place::new();
    if !gdb_works(&place) {
        return;
    }
    let report = checked(&place);
    let race = told(&report, "data race (");
    let sides: Vec<&str> = race.lines().filter(|line| line.starts_with("  thread ") && line.contains(": ")).collect();
    let id = race.split(['[', ']']).nth(1).expect("an id");
    let ended = place.rashomon(&["replay", id, "--gdb", "--", "-batch", "-ex", "bt", "-ex", "info threads"]);
    assert_eq!(sides.len(), 2, "{report}");
    for side in sides {
        let (name, does) = side.trim().split_once(": ").expect("what it does");
        assert!(ended.out.lines().any(|line| line.starts_with(name) && line.ends_with(does)), "{side}: {ended}");
        assert!(ended.out.contains(&format!("\"{name}\"")), "{name} in gdb's list: {ended}");
    }
    assert!(ended.out.contains("\"main thread\""), "{ended}");
    let stack = ended.out.split("the finding has come about").nth(1).expect("gdb says so");
    let stack: Vec<&str> = stack.lines().filter(|line| line.starts_with('#')).collect();
    assert!(stack[0].contains("stats.cpp:") && stack[0].contains("Stats::"), "{ended}");
    assert!(!stack.iter().any(|line| line.contains("rashomon_runtime")), "{ended}");
}

/// Analyses in one pass over a recording say where in the sources, and of which variable or lock, as other reports do.
#[test]
fn analyses_of_recordings_name_places_and_variables() {
    let place = Place::new();
    place.write("race.c", RACE);
    place.rashomon(&["cc", "-g", "-O1", "-w", "-pthread", "-o", "race", "race.c"]).expect(0, &[]);
    place.rashomon(&["record", "-o", "store", "--", "./race"]).expect(0, &[]);
    let told = place.rashomon(&["analyse", "--analysis", "hb", "store"]).expect(0, &[]).out;
    for said in ["global x (4 bytes): ", "task race.c:3:", "main race.c:7:"] {
        assert!(told.contains(said), "nothing of `{said}`: {told}");
    }
    assert!(!told.contains("+0x"), "{told}");
    let told = place.rashomon(&["analyse", "--analysis", "hb", "--json", "store"]).expect(0, &[]).out;
    assert!(told.contains("main race.c:7:") && !told.contains("+0x"), "{told}");
}
