//! A gate: what is known does not fail, what is new does, and every report says the same.

use crate::support::place::{Place, RACE};

fn with_race() -> Place {
    let place = Place::new();
    place.compile("program", RACE);
    place
}

/// The id of the one finding of the store.
fn only_finding(place: &Place) -> String {
    place.rashomon(&["report", "store", "--format", "json"]).expect(0, &[]).out.lines().find_map(id_of).expect("a finding")
}

/// Its fingerprint.
fn only_fingerprint(place: &Place) -> String {
    let report = place.rashomon(&["report", "store", "--format", "json"]).expect(0, &[]).out;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    report["findings"][0]["fingerprint"].as_str().unwrap().to_owned()
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn id_of(line: &str) -> Option<String> {
    line.trim().strip_prefix("\"id\": \"")?.strip_suffix("\",").map(str::to_owned)
}

#[test]
fn what_is_accepted_fails_no_more_and_what_is_new_does() {
    let place = with_race();
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &["PROVEN: 1 data race"]);
    let id = only_finding(&place);
    place.rashomon(&["accept", "--store", "store", &id[..8]]).expect(0, &["1 finding added to rashomon.baseline"]);
    place.rashomon(&["accept", "--store", "store", "--all"]).expect(0, &["0 findings added"]);
    let fingerprint = only_fingerprint(&place);
    let baseline = read(&place, "rashomon.baseline");
    let (entry, what) = baseline.split_once("  # ").expect("an entry says what it is");
    let begin = format!("# Accepted findings: rashomon check --baseline FILE\n{id} {fingerprint} race=");
    assert!(entry.strip_prefix(&begin).is_some_and(|mark| mark.len() == 16), "{baseline}");
    assert_eq!(what, "data race (proven, co-enabled): global x (4 bytes)\n");
    let known = ["check", "--baseline", "rashomon.baseline", "--strict", "--json", "report.json", "--", "./program"];
    place.rashomon(&known).expect(0, &["1 finding was accepted in rashomon.baseline", "nothing new was made to happen"]);
    assert_eq!(place.json("report.json")["status"], "clean");
    // Another race is new.
    place.compile(
        "program",
        &RACE.replace("int x;", "int x, y;").replace("x++; return", "x++; y++; return").replace("    x++;", "    x++;\n    y++;"),
    );
    place.rashomon(&known).expect(66, &["1 finding was accepted", "global y", "PROVEN: 1 data race"]);
    // Once it is fixed, what the baseline says is no longer true.
    place.compile("program", "int main(void) { return 0; }");
    place.rashomon(&known).expect(66, &["1 finding of rashomon.baseline not found this time"]);
    place.rashomon(&["check", "--baseline", "rashomon.baseline", "--", "./program"]).expect(0, &["not found this time"]);
}

#[test]
fn what_is_accepted_stays_so_when_lines_are_added_and_lets_nothing_else_pass() {
    let place = with_race();
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &[]);
    place.rashomon(&["accept", "--store", "store", "--all"]).expect(0, &[]);
    let known = ["check", "--baseline", "rashomon.baseline", "--strict", "--", "./program"];
    // Within both functions, so that the id is another.
    let moved = RACE
        .replace("{ x++; return 0; }", "{\n\n    x++;\n    return 0;\n}")
        .replace("    x++;\n    pthread", "\n    x++;\n    pthread");
    place.compile("program", &moved);
    place.rashomon(&known).expect(0, &["1 finding was accepted in rashomon.baseline"]);
    // The same race once more, and the first is still there: one of them is new.
    let twice = RACE.replace("    x++;\n", "    x++;\n    x += 2;\n");
    place.compile("program", &twice);
    place.rashomon(&known).expect(66, &["1 finding was accepted in rashomon.baseline", "PROVEN: 1 data race"]);
}

#[test]
fn suppressions_of_thread_sanitizers_form_leave_findings_out() {
    let place = with_race();
    place.write("known.supp", "# ours\nrace:^task$\ndeadlock:nowhere\n");
    let checked =
        |more: &[&str]| place.rashomon(&[&["check", "--suppressions", "known.supp"], more, &["--", "./program"]].concat());
    let ended = checked(&[])
        .expect(0, &["1 finding was suppressed by race:^task$ (1)", "deadlock:nowhere of known.supp matches nothing"]);
    assert!(!ended.err.contains("global x"), "{ended}");
    checked(&["--strict"]).expect(66, &["matches nothing"]);
    place.write("known.supp", "race:^x$\n");
    checked(&["--strict"]).expect(0, &["suppressed by race:^x$ (1)"]);
    place.write("known.supp", "race:other\n");
    checked(&[]).expect(66, &["race:other of known.supp matches nothing"]);
}

#[test]
fn files_that_cannot_be_read_end_the_command_before_anything_runs() {
    let place = with_race();
    place.write("bad.supp", "rase:x\n");
    place.write("bad.baseline", "race-00000001\nRace 2\n");
    for (option, file, said) in [
        ("--suppressions", "bad.supp", "line 1: 'rase:x' has an unknown type"),
        ("--suppressions", "none.supp", "cannot read the suppressions none.supp"),
        ("--baseline", "bad.baseline", "bad.baseline, line 2"),
        ("--baseline", "none.baseline", "cannot read the baseline none.baseline"),
        ("--report", "xml=races.xml", "no format `xml`; there are text, json"),
        ("--report", "sarif", "expected FORMAT=FILE"),
    ] {
        let ended = place.rashomon(&["check", option, file, "--", "./program"]).expect(2, &[said]);
        assert!(!place.path(".rashomon").exists(), "{ended}");
    }
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &[]);
    place.rashomon(&["accept", "--store", "store", "deadlock"]).expect(125, &["no finding `deadlock` in the store"]);
}

#[test]
fn one_run_writes_every_format() {
    let place = with_race();
    let reports = ["sarif=r.sarif", "junit=r.xml", "gitlab=r.json", "tsan=r.txt", "github=-"];
    let options: Vec<&str> = reports.iter().flat_map(|report| ["--report", report]).collect();
    let ended = place.rashomon(&[&["check"], &options[..], &["--output", "store", "--", "./program"]].concat()).expect(66, &[]);
    assert!(ended.out.starts_with("::error file=program.c,line="), "{ended}");
    let id = only_finding(&place);
    assert_eq!(place.json("r.sarif")["runs"][0]["results"][0]["partialFingerprints"]["rashomonFinding/v1"], id);
    assert_eq!(place.json("r.json")[0]["fingerprint"], only_fingerprint(&place));
    assert!(read(&place, "r.xml").contains("failures=\"1\""));
    assert!(read(&place, "r.txt").contains("WARNING: ThreadSanitizer: data race"));
    let again = place.rashomon(&["report", "store", "--format", "sarif"]).expect(0, &[]);
    assert_eq!(again.out, read(&place, "r.sarif"));
}

/// The lock orders them when they are recorded: each is predicted, and forced by a schedule of its own.
const TWO: &str = "#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int first, second;
static __attribute__((noinline)) void one(int value) { first = value; }
static __attribute__((noinline)) void other(int value) { second = value; }
static void *task(void *p) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    one(1);
    other(1);
    return p;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    one(2);
    other(2);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn what_is_suppressed_is_forced_behind_all_others() {
    let place = Place::new();
    place.compile("program", TWO);
    let line = ["check", "--recordings", "1", "--policy", "run-to-block", "--engines", "force"];
    for (suppressed, told) in [("one", "second"), ("other", "first")] {
        let rule = format!("race:^{suppressed}$");
        // Not quiet: proofs are told as they are made.
        let arguments = [&line[..], &["--suppress", &rule, "--json", "r.json", "--", "./program"]].concat();
        let ended = place.run(place.command(env!("CARGO_BIN_EXE_rashomon"), &arguments));
        let text = ended.to_string();
        ended.expect(66, &[&format!("global {told} "), "PROVEN: 1 data race", "1 finding was suppressed"]);
        let report = place.json("r.json");
        let id = report["findings"][0]["id"].as_str().unwrap_or_default();
        let proven: Vec<&str> = text.lines().filter(|line| line.contains("proven (") && line.contains("rashomon: ")).collect();
        assert!(proven.len() == 2 && proven[0].ends_with(id), "{text}");
    }
}
