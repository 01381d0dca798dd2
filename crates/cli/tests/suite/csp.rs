//! `rashomon csp check`: verdicts, counterexamples, places of errors.

use crate::support::place::{Ended, Place, program_text};

fn check(script: &str, options: &[&str]) -> (i32, String, String) {
    let place = Place::new();
    place.write("model.csp", script);
    let arguments: Vec<&str> = ["csp", "check"].iter().chain(options).chain(&["model.csp"]).copied().collect();
    let output = place.tool(&arguments).output().expect("the tool starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn assertions_are_decided() {
    let script =
        "channel a, b\nP = a -> P\nQ = a -> Q |~| b -> STOP\nassert Q [T= P\nassert P [T= Q\nassert Q :[deadlock free]\n";
    let (code, out, _) = check(script, &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("model.csp:4: Q [T= P: holds"), "{out}");
    assert!(out.contains("model.csp:5: P [T= Q: fails") && out.contains("\n    b\n"), "{out}");
    assert!(out.contains("model.csp:6: Q :[deadlock free]: fails") && out.contains("b; then it offers nothing"), "{out}");
}

#[test]
fn what_outgrows_its_states_is_undecided() {
    let (code, out, _) = check("channel a\nP = a -> (P ||| P)\nassert P :[deadlock free]\n", &["--states", "300"]);
    assert_eq!(code, 125, "{out}");
    assert!(out.contains("undecided: the limit of states is reached by the terms that they are made of ("), "{out}");
}

#[test]
fn errors_have_a_place() {
    let (code, _, err) = check("channel a\nP = a -> b -> STOP\n", &[]);
    assert_eq!(code, 125, "{err}");
    assert!(err.contains("model.csp: line 2, column 10: expected a declared event, found `b`"), "{err}");
}

#[test]
fn scripts_with_data_say_what_the_source_says() {
    let script = "channel c : {0..2}\nP(n) = n < 2 & c!n -> P(n + 1)\nassert not P(0)   :[deadlock free]\nassert STOP [T= P(2)\n";
    let (code, out, _) = check(script, &[]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("model.csp:3: not P(0) :[deadlock free]: holds"), "{out}");
    assert!(out.contains("\n    c.0, c.1; then it offers nothing\n"), "{out}");
    assert!(out.contains("model.csp:4: STOP [T= P(2): holds"), "{out}");
    let (code, out, err) = check("channel c : {0..2}\nP(n) = c!n -> P(n + 1)\nassert P(0) :[deadlock free]\n", &[]);
    assert_eq!(code, 125, "{out}");
    assert!(err.contains("model.csp: line 2, column 10: expected a value of {0,1,2}, found `3`"), "{err}");
}

#[test]
fn included_scripts_lie_below_the_script() {
    let place = Place::new();
    place.write("outside.csp", "channel a");
    place.write("models/types.csp", "channel c : {0, 1}\n");
    place.write("models/model.csp", "include \"types.csp\"\nassert RUN({| c |}) :[deterministic]\n");
    place.write("models/leaves.csp", "include \"../outside.csp\"\n");
    let held = place.rashomon(&["csp", "check", "models/model.csp"]).expect(0, &[]);
    assert!(held.out.contains("RUN({| c |}) :[deterministic]: holds"), "{held}");
    let refused = ["line 1, column 9: expected a script that can be read, found a path that leaves the folder of the script"];
    place.rashomon(&["csp", "check", "models/leaves.csp"]).expect(125, &refused);
}

/// The names in a counterexample of these kinds, in order.
fn synchronisation(counterexample: &str) -> Vec<&str> {
    let access = |name: &&str| !["read_", "write_"].iter().any(|kind| name.starts_with(kind)) && *name != "race";
    counterexample.trim().split(", ").filter(access).collect()
}

/// §2.2.1: from a run in which main took the lock first, the schedule that the paper prints; forced, with both source lines.
#[test]
fn listing_one_is_refined_and_proven() {
    let place = Place::new();
    place.compile("program", &program_text("measured/listing1.c"));
    place.rashomon(&["record", "--output", "store", "--", "./program"]).expect(0, &[]);
    place.rashomon(&["csp", "export", "store", "--output", "model.csp"]).expect(0, &[]);
    let checked = place.rashomon(&["csp", "check", "model.csp"]).expect(1, &[]);
    assert!(checked.out.contains("PROGRAM :[deadlock free]: holds"), "{checked}");
    let race = checked.out.lines().find(|line| line.ends_with(", race")).unwrap_or_else(|| panic!("{checked}"));
    assert_eq!(synchronisation(race), ["fork_t1_t2", "start_t2", "lock_t2_m1", "unlock_t2_m1"]);
    // No correct reordering has it.
    let exact = place.rashomon(&["confirm", "store", "--engine", "exact"]).expect(0, &[]);
    assert!(said(&exact).contains("0 proven, "), "{exact}");
    let csp = place.rashomon(&["confirm", "store", "--engine", "csp"]).expect(66, &[]);
    for words in ["proven, co-enabled", "program.c:16", "program.c:24", "1 proven, "] {
        assert!(said(&csp).contains(words), "{csp}");
    }
}

fn said(ended: &Ended) -> String {
    format!("{}{}", ended.out, ended.err)
}

/// What is said of a recording that was made with these options, by whoever makes a model of it; also where little else is.
fn not_decided(source: &str, options: &[&str], loss: &str) {
    let place = Place::new();
    place.compile("program", source);
    let record: Vec<&str> = ["record"].iter().chain(options).chain(&["--output", "store", "--", "./program"]).copied().collect();
    place.rashomon(&record);
    let said = format!("not decided, as it was not recorded: {loss}");
    place.rashomon(&["csp", "export", "store", "--output", "model.csp"]).expect(0, &[&said]);
    let enforced = place.rashomon(&["csp", "enforce", "--budget", "1", "store"]);
    assert!(enforced.err.contains(&said), "{enforced}");
}

#[test]
fn what_a_filter_left_out_is_said() {
    let loss = "accesses that are redundant for detectors of races were left out (--filter)";
    not_decided(&program_text("measured/listing1.c"), &["--filter", "tree"], loss);
}

/// Two threads that do `WORK` and are joined.
const WORKERS: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile char bytes[8 << 20];
static int count;
static void *task(void *unused) {
    WORK
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    task(0);
    return pthread_join(thread, 0);
}
";

#[test]
fn what_came_too_often_is_said() {
    let source =
        WORKERS.replace("WORK", "for (int i = 0; i < 60000; i++) { pthread_mutex_lock(&m); count++; pthread_mutex_unlock(&m); }");
    not_decided(&source, &["--trace-limit", "4"], "accesses that came again and again were no longer kept");
}

#[test]
fn what_was_too_much_is_said() {
    let source = WORKERS.replace("WORK", "for (int i = 0; i < 8 << 20; i += 4) bytes[i]++; count++;");
    not_decided(&source, &["--trace-limit", "4"], "plain accesses were no longer kept from some point on");
}

/// The loop has no end, and no event that would let it be known as endless.
#[test]
fn what_came_too_late_is_said() {
    let source = WORKERS.replace("WORK", "while (1) { }");
    not_decided(
        &source,
        &["--timeout", "1"],
        "what comes behind the end of the recording: the program was ended before it was done",
    );
}

/// `csp enforce` on a recording of that program with so many seconds: exit code 125, and why, quietly or not.
fn undecided(source: &str, budget: &str) {
    let place = Place::new();
    place.compile("program", source);
    place.rashomon(&["record", "--output", "store", "--", "./program"]);
    let arguments = ["csp", "enforce", "--json", "orders.json", "--budget", budget, "store"];
    let tool = env!("CARGO_BIN_EXE_rashomon");
    for enforced in [place.rashomon(&arguments), place.run(place.command(tool, &arguments))] {
        let enforced = enforced.expect(125, &["undecided: there was no time for more (--budget) (", " states seen)"]);
        let report = std::fs::read_to_string(place.path("orders.json")).unwrap();
        assert!(report.contains("\"cut_short\": true") && report.contains("\"counterexamples\": []"), "{report} {enforced}");
    }
}

/// Without time nothing is decided; nothing confirmed is no verdict then.
#[test]
fn what_is_open_is_said_quietly() {
    undecided(&program_text("measured/listing1.c"), "0");
}

/// A recording has its own clock, and sleeps for no time.
#[test]
fn an_order_whose_execution_has_no_time_is_undecided() {
    let sleeping = program_text("measured/listing1.c").replacen("int main(void) {", "int main(void) { sleep(60);", 1);
    assert!(sleeping.contains("sleep(60)"));
    undecided(&format!("#include <unistd.h>\n{sleeping}"), "3");
}

#[test]
fn threads_that_ran_in_parallel_are_undecided() {
    let place = Place::new();
    place.compile("program", &program_text("measured/listing1.c"));
    place.rashomon(&["record", "--policy", "free", "--output", "store", "--", "./program"]);
    let enforced = place.rashomon(&["csp", "enforce", "store"]);
    enforced.expect(125, &["undecided: recordings of threads that ran in parallel have no model, 1 "]);
}

#[test]
fn engines_are_compared() {
    let place = Place::new();
    place.compile("program", &program_text("measured/listing1.c"));
    place.rashomon(&["record", "--output", "store", "--", "./program"]).expect(0, &[]);
    let compared = place.rashomon(&["predict", "store", "--engine", "all"]).expect(0, &["csp has ", " that exact has not"]);
    let agreed = ", 0 contradictions, 0 witnesses that the checker does not accept";
    assert!(compared.err.contains(agreed), "{compared}");
    // Both decide the same class of reorderings.
    for pair in ["exact has 1 that causality has not", "causality has 1 that exact has not"] {
        assert!(!compared.err.contains(pair), "{compared}");
    }
    assert!(compared.err.contains(" that causality has not"), "{compared}");
}
