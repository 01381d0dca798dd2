//! Around the edges of a run: limits, readers that go away, files that are refused before anything runs.

use crate::support::place::Place;

/// So many threads one after the other, each of which writes next to nothing; then two accesses that nothing orders.
const SHORT_THREADS: &str = "#include <pthread.h>
static int early[64], late;
static void *brief(void *slot) { *(int *)slot = 1; return 0; }
static void *task(void *unused) { late++; return 0; }
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 64; i++) {
        pthread_create(&thread, 0, brief, early + i);
        pthread_join(thread, 0);
    }
    pthread_create(&thread, 0, task, 0);
    late++;
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn what_short_threads_reserve_does_not_use_up_the_trace_limit() {
    let place = Place::new();
    place.compile("threads", SHORT_THREADS);
    // 64 threads reserve 16 megabytes, and write some kilobytes.
    let ended = place.rashomon(&["check", "--trace-limit", "4", "--", "./threads"]).expect(66, &["proven", "global late"]);
    assert!(!ended.err.contains("limit reached"), "{ended}");
}

#[test]
fn a_malformed_suppression_file_is_refused_before_the_program_runs() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    place.write("bad", "race:fine\nno colon here\n");
    place.write("mark.c", "#include <stdio.h>\nint main(void) { puts(\"it ran\"); return 0; }\n");
    place.must("gcc", &["-fsanitize=thread", "mark.c", "-o", "mark"]);
    let ended = place.rashomon(&["detect", "--suppressions", "bad", "--", "./mark"]).expect(2, &["bad", "line 2"]);
    assert!(!ended.out.contains("it ran"), "{ended}");
    place
        .rashomon(&["detect", "--suppressions", "absent", "--", "./mark"])
        .expect(2, &["cannot read the suppression file absent"]);
    let ended = place.rashomon(&["detect", "-O", "suppressions=absent", "--", "./mark"]).expect(2, &["absent"]);
    assert!(!ended.out.contains("it ran"), "{ended}");
    let mut by_environment = place.tool(&["detect", "--", "./race"]);
    by_environment.env("TSAN_OPTIONS", "suppressions=absent");
    place.run(by_environment).expect(2, &["cannot read the suppression file 'absent'", "was not run"]);
}

#[test]
fn standard_error_that_nobody_reads_changes_no_exit_code() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        std::process::Stdio::from(writer)
    };
    let full = || std::process::Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (error, output) in [(gone(), gone()), (full(), full())] {
        let mut check = place.tool(&["check", "--", "./race"]);
        let status = check.stderr(error).stdout(output).status().unwrap();
        assert_eq!(status.code(), Some(66));
    }
    let mut report = place.tool(&["report"]);
    assert_eq!(report.stdout(gone()).stderr(gone()).status().unwrap().code(), Some(0), "a reader that went away");
    let mut report = place.tool(&["report"]);
    assert_eq!(report.stdout(full()).stderr(full()).status().unwrap().code(), Some(125), "a full disk");
}

#[test]
fn a_command_before_each_execution_that_does_not_end_is_ended() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    place
        .rashomon(&["check", "--timeout", "1", "--before-each", "sleep 1000", "--", "./race"])
        .expect(125, &["sleep 1000", "did not end within the time"]);
}

/// The budget's end is no failure of what it cut short.
#[test]
fn a_budget_may_end_within_the_command_before_an_execution() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    let second = "test ! -e recorded || exec sleep 1000; touch recorded";
    place
        .rashomon(&["check", "--recordings", "1", "--budget", "1", "--before-each", second, "--", "./race"])
        .expect(0, &["0 proven"]);
}

/// Nothing is found, and so nothing forced; but a further recording was cut short.
#[test]
fn the_last_execution_is_a_whole_one_whatever_was_executed_before() {
    let place = Place::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
            FILE *counted = fopen("counted", "r");
            int number = 0;
            if (!counted || fscanf(counted, "%d", &number) != 1) return 1;
            fclose(counted);
            volatile unsigned long rounds = 0;
            while (number == 2) rounds++;
            FILE *output = fopen("output", "w");
            fputs("whole", output);
            return fclose(output);
        }
    "#;
    place.compile("writes", source);
    place.write("counted", "0");
    let restore = "rm -f output; expr $(cat counted) + 1 >next; mv next counted";
    let line = ["check", "--recordings", "2", "--engines", "force", "--before-each", restore, "--", "./writes"];
    place.rashomon(&line).expect(0, &["0 proven"]);
    assert_eq!(std::fs::read_to_string(place.path("output")).unwrap(), "whole");
}

#[test]
fn a_folder_that_is_not_unicode_can_be_pasted() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    let folder = place.path("").join(std::ffi::OsStr::from_bytes(b"odd\xff\x1b folder"));
    std::fs::create_dir(&folder).unwrap();
    let mut check = place.tool(&["check", "--json", "report.json", "--", "../race"]);
    check.current_dir(&folder);
    let ended = place.run(check).expect(66, &["make it happen again"]);
    let command = ended.err.lines().skip_while(|line| !line.contains("make it happen again")).nth(1).unwrap().trim();
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["findings"][0]["reproduce"], command);
    let again = place.run(place.command("bash", &["-c", command]));
    assert_eq!(again.code, 0, "{again}");
}

#[test]
fn a_program_whose_path_has_line_ends_and_is_not_unicode_is_one_like_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    for name in [b"two\nlines".as_slice(), b"odd\xff\xc3", br"looks\xff\x0aescaped", b"tab\there"] {
        let folder = place.path("").join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(place.path("race"), folder.join("race")).unwrap();
        let mut check = place.tool(&["check", "--json", "report.json", "--", "./race"]);
        check.current_dir(&folder);
        // Names and lines are found: the file was opened again by its recorded path.
        let ended = place.run(check).expect(66, &["proven", "global x", "race.c:3", "race.c:7"]);
        assert!(!ended.err.contains("damaged") && !ended.err.contains("not seen"), "{ended}");
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
        let mut again = place.tool(&["replay", report["findings"][0]["id"].as_str().unwrap()]);
        again.current_dir(&folder);
        place.run(again).expect(0, &[]);
        let mut detect = place.tool(&["detect", "--", "./race"]);
        detect.current_dir(&folder);
        place.run(detect).expect(66, &["race.c:"]);
    }
}

/// A command that succeeds `times` times.
fn succeeds(place: &Place, times: u32) {
    place.write("restore", format!("#!/bin/sh\necho >>count\ntest $(wc -l <count) -le {times}\n"));
    place.must("chmod", &["+x", "restore"]);
}

#[test]
fn what_was_proven_before_an_execution_could_not_be_made_is_reported() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    // The recording and the two forced executions of a proof; the last execution of all cannot be made.
    succeeds(&place, 3);
    let line = ["check", "--recordings", "1", "--before-each", "./restore", "--json", "report.json", "--", "./race"];
    place.rashomon(&line).expect(66, &["1 proven", "nothing more was executed after an error", "./restore"]);
    assert_eq!(place.json("report.json")["status"], "proven");
}

/// A lock is handed over from one access to the other, and a value with it: another order is only suspected.
const HIDDEN_RACE: &str = "#include <pthread.h>
int shared, done, seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *unused) {
    shared++;
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *second(void *unused) {
    pthread_mutex_lock(&lock);
    seen = done;
    pthread_mutex_unlock(&lock);
    shared++;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

#[test]
fn a_check_that_did_not_come_to_its_end_is_not_clean() {
    let place = Place::new();
    // What is only suspected has to be forced.
    place.compile("race", HIDDEN_RACE);
    succeeds(&place, 1);
    let line = ["check", "--recordings", "1", "--policy", "run-to-block", "--before-each", "./restore", "--json", "report.json"];
    place.rashomon(&[&line[..], &["--", "./race"]].concat()).expect(125, &["./restore", "1 suspicion untried"]);
    let report = place.json("report.json");
    assert_eq!(report["status"], "incomplete");
    assert_eq!(report["run"]["interrupted"], true);
}

#[test]
fn instrumentation_is_known_without_local_symbols() {
    let place = Place::new();
    place.compile("race", crate::support::place::RACE);
    place.must("strip", &["-x", "race"]);
    let ended = place.rashomon(&["check", "--", "./race"]).expect(66, &["PROVEN"]);
    assert!(!ended.err.contains("instrumented"), "{ended}");
}

/// Asks in vain for another program, and with an argument for one that is there.
const IN_PLACE: &str = "#include <unistd.h>
int main(int count, char **arguments) {
    execl(\"/nonexistent/program\", \"missing\", (char *)0);
    if (count > 1) execl(arguments[1], arguments[1], (char *)0);
    return 0;
}
";

#[test]
fn another_program_is_told_of_only_where_it_was_started() {
    let place = Place::new();
    place.compile("program", IN_PLACE);
    let words = "another program was started in place of this one";
    for (store, arguments, told) in [("failed", [].as_slice(), false), ("started", ["/bin/true"].as_slice(), true)] {
        let line = [["record", "--output", store, "--", "./program"].as_slice(), arguments].concat();
        place.rashomon(&line).expect(0, &[]);
        let numbers = place.rashomon(&["trace", "stat", store]).expect(0, &[]);
        assert_eq!(numbers.out.contains(words), told, "{numbers}");
    }
}
