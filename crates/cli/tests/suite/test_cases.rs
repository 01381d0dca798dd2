//! Programs of test frameworks: each test case is a check of its own, and one report tells of all.

use crate::support::place::{Ended, Place, skipped};

const CASES: usize = 6;
/// Whatever the machine: one recording shows these races.
const QUICK: [&str; 5] = ["--quiet", "--recordings", "1", "--engines", "force"];

/// Functions that count with a lock, or without. `body` makes a test case of a number and what it does.
fn source(head: &str, racing: &[usize], body: impl Fn(usize, &str) -> String) -> String {
    let mut text = format!("{head}\n#include <mutex>\n#include <thread>\nstatic std::mutex lock;\n");
    for number in 0..CASES {
        let guard = if racing.contains(&number) { "" } else { "std::lock_guard<std::mutex> guard(lock); " };
        text.push_str(&format!("static int counter_{number};\nstatic void count_{number}() {{ {guard}counter_{number}++; }}\n"));
        let run = format!("std::thread one(count_{number}), other(count_{number}); one.join(); other.join();");
        text.push_str(&body(number, &run));
    }
    text
}

fn google(racing: &[usize]) -> String {
    source("#include <gtest/gtest.h>", racing, |number, run| {
        let wrong = if number == 0 { "EXPECT_EQ(std::getenv(\"FAILS\"), nullptr);" } else { "" };
        format!("TEST(Count, Case{number}) {{ {run} {wrong} }}\n")
    })
}

/// Compiles `suite`; whether the framework is there.
fn build(place: &Place, source: &str, link: &[&str]) -> bool {
    place.write("suite.cpp", source);
    let header = source.lines().find(|line| line.starts_with("#include")).expect("a framework's header");
    place.write("probe.cpp", header);
    if place.run(place.command("g++", &["-std=c++17", "-fsyntax-only", "probe.cpp"])).code != 0 {
        skipped(&format!("{header}: not installed"));
        return false;
    }
    let compile = ["c++", "-g", "-O1", "-w", "-std=c++17", "-pthread", "-o", "suite", "suite.cpp"];
    place.rashomon(&[&compile, link].concat()).expect(0, &[]);
    true
}

/// Checks each test case; the names of those that failed, as the JUnit report has them.
fn check(place: &Place, options: &[&str], program: &[&str]) -> (Ended, Vec<String>) {
    let reports = ["--json", "r.json", "--report", "junit=r.xml"];
    let line = [&["check", "--per-test-case"], &QUICK[..], &reports, options, &["--", "./suite"], program].concat();
    let ended = place.rashomon(&line);
    let text = std::fs::read_to_string(place.path("r.xml")).unwrap_or_else(|error| panic!("{error}; {ended}"));
    let mut failed = Vec::new();
    let mut case = "";
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("<testcase ").and_then(|(_, rest)| rest.split_once(" name=\"")) {
            case = rest.split('"').next().unwrap_or_default();
        }
        if line.starts_with("<failure") {
            failed.push(case.to_owned());
        }
    }
    (ended, failed)
}

#[test]
fn a_gate_for_each_test_case_of_googletest() {
    let place = Place::new();
    let link = ["-lgtest", "-lgtest_main"];
    if !build(&place, &google(&[1, 4]), &link) {
        return;
    }
    let (ended, failed) = check(&place, &[], &[]);
    ended.expect(66, &["PROVEN: 2 data races", "shown by test case Count.Case1", "shown by test case Count.Case4"]);
    assert_eq!(failed, ["Case1", "Case4"]);
    let report = place.json("r.json");
    let cases = report["run"]["test_cases"].as_array().expect("test cases");
    let found: Vec<usize> = cases.iter().map(|case| case["findings"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!((cases.len(), found), (CASES, vec![0, 1, 0, 0, 1, 0]));
    // What was found replays, from the store of its test case.
    let (store, id) = (cases[4]["store"].as_str().unwrap(), cases[4]["findings"][0].as_str().unwrap());
    place.rashomon(&["replay", "--store", store, id]).expect(0, &[]);
    place.rashomon(&["accept", "--all"]).expect(0, &["2 findings added to rashomon.baseline"]);
    let known = ["--baseline", "rashomon.baseline"];
    let (ended, failed) = check(&place, &known, &[]);
    ended.expect(0, &["2 findings were accepted"]);
    assert_eq!(failed, [""; 0]);
    // A new one; then its fix, and that of a known one.
    build(&place, &google(&[1, 2, 4]), &link);
    let (ended, failed) = check(&place, &known, &[]);
    ended.expect(66, &["PROVEN: 1 data race", "shown by test case Count.Case2"]);
    assert_eq!(failed, ["Case2"]);
    build(&place, &google(&[1]), &link);
    check(&place, &known, &[]).0.expect(0, &["1 finding of rashomon.baseline not found this time"]);
    check(&place, &[&known[..], &["--strict"]].concat(), &[]).0.expect(66, &["not found this time"]);
}

#[test]
fn a_test_that_fails_fails_and_the_programs_own_arguments_select() {
    let place = Place::new();
    if !build(&place, &google(&[]), &["-lgtest", "-lgtest_main"]) {
        return;
    }
    let line = ["check", "--per-test-case=gtest", "--report", "junit=r.xml", "--json", "r.json"];
    let mut command = place.tool(&[&line, &QUICK[..], &["--", "./suite", "--gtest_filter=*Case0:*Case3"]].concat());
    let ended = place.run({
        command.env("FAILS", "1");
        command
    });
    assert_eq!(ended.code, 1, "{ended}");
    assert_eq!(place.json("r.json")["run"]["test_cases"].as_array().map(Vec::len), Some(2));
    let junit = std::fs::read_to_string(place.path("r.xml")).unwrap();
    assert!(junit.contains("<testsuites tests=\"2\" failures=\"1\"") && junit.contains("the test ended with code 1"), "{junit}");
    // Shares of a machine each, as GoogleTest gives them.
    let mut shared = place.tool(&[&line, &QUICK[..], &["--", "./suite"]].concat());
    shared.env("GTEST_TOTAL_SHARDS", "4").env("GTEST_SHARD_INDEX", "1");
    place.run(shared).expect(0, &[]);
    let report = place.json("r.json");
    let cases = report["run"]["test_cases"].as_array().unwrap().iter().map(|case| case["name"].as_str().unwrap().to_owned());
    assert_eq!(cases.collect::<Vec<_>>(), ["Count.Case1", "Count.Case5"]);
}

#[test]
fn names_with_commas_and_brackets_select_themselves() {
    let catch = source("#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>", &[1], |number, run| {
        format!("TEST_CASE(\"counts, {number} [times]\") {{ {run} CHECK({number} < 100); }}\n")
    });
    let doctest = source("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>", &[1], |number, run| {
        format!("TEST_CASE(\"counts, {number} [times]\") {{ {run} CHECK({number} < 100); }}\n")
    });
    for source in [catch, doctest] {
        let place = Place::new();
        if build(&place, &source, &[]) {
            let (ended, failed) = check(&place, &[], &[]);
            ended.expect(66, &["PROVEN: 1 data race", "shown by test case counts, 1 [times]"]);
            assert_eq!(failed, ["counts, 1 [times]"]);
            assert_eq!(place.json("r.json")["run"]["test_cases"].as_array().map(Vec::len), Some(CASES));
        }
    }
}

/// A library with instrumentation, which Python loads: `hit` counts without its lock.
const LIBRARY: &str = "#include <pthread.h>
static long hits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void hit(void) { hits++; }
void locked(void) { pthread_mutex_lock(&lock); hits++; pthread_mutex_unlock(&lock); }
";

/// Calls of ctypes do not hold Python's own lock.
const TESTS: &str = "import ctypes, os, threading
library = ctypes.CDLL(os.path.abspath('libcounts.so'))
def twice(call):
    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
def test_hit():
    twice(library.hit)
class TestLocked:
    def test_locked(self):
        twice(library.locked)
";

#[test]
fn a_gate_for_each_test_of_a_library_under_pytest() {
    const PYTHON: &str = "/usr/bin/python3";
    let place = Place::new();
    let version = std::process::Command::new(PYTHON).args(["-m", "pytest", "--version"]).output();
    if !version.is_ok_and(|said| said.status.success()) {
        return skipped("Debian's pytest is not installed");
    }
    // Python lists the folder that it is started in. What is written there meanwhile makes a replay another execution.
    place.write("library/counts.c", LIBRARY);
    place.write("library/tests/test_counts.py", TESTS);
    let rashomon = |arguments: &[&str]| {
        let mut tool = place.tool(arguments);
        tool.current_dir(place.path("library"));
        place.run(tool)
    };
    rashomon(&["cc", "-g", "-O1", "-shared", "-fPIC", "-pthread", "-o", "libcounts.so", "counts.c"]).expect(0, &[]);
    let program = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"];
    rashomon(&[&["check", "--"], &program[..]].concat()).expect(125, &["not instrumented", "--preload"]);
    let line = ["check", "--preload", "--per-test-case", "--recordings", "1", "--engines", "force,provoke"];
    let reports = ["--report", "junit=../r.xml", "--json", "../r.json", "--"];
    let shown = "shown by test case tests/test_counts.py::test_hit";
    rashomon(&[&line, &reports[..], &program[..]].concat()).expect(66, &[shown]);
    let junit = std::fs::read_to_string(place.path("r.xml")).unwrap();
    assert!(junit.contains("<testsuites tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("classname=\"tests.test_counts\" name=\"test_hit\">"), "{junit}");
    assert!(junit.contains("classname=\"tests.test_counts.TestLocked\" name=\"test_locked\"/>"), "{junit}");
    // The store says that the runtime is there before Python is.
    let report = place.json("r.json");
    let (store, id) = (&report["run"]["test_cases"][0]["store"], &report["run"]["test_cases"][0]["findings"][0]);
    rashomon(&["replay", "--store", store.as_str().unwrap(), id.as_str().unwrap()]).expect(0, &[]);
}

#[test]
fn what_has_no_test_cases_is_refused() {
    let place = Place::new();
    place.compile("plain", "int main(void) { return 0; }");
    let said = "neither GoogleTest's, Catch2's, doctest's nor pytest's";
    place.rashomon(&["check", "--per-test-case", "--", "./plain"]).expect(125, &[said]);
    place.rashomon(&["check", "--per-test-case=gtest", "--", "./plain"]).expect(125, &["lists no test case"]);
    place.rashomon(&["check", "--per-test-case", "plain.c"]).expect(125, &["takes a program that is built already"]);
}
