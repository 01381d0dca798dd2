//! Races and deadlocks that rest on values of plain accesses, or on what depends on them: predicted once these are recorded, at
//! once or by a replay, and proven; nothing of the twins of these programs, whose values differ.

use crate::support::place::{Place, program_text, skipped, statuses};

const VALUES: [&str; 9] =
    ["awaited", "halves", "measured", "opposite_locks", "relayed", "reset", "same_flag", "same_pointer", "toggled"];
const BRANCHES: [&str; 3] = ["indexed", "passed_on", "statistics"];
/// So each reader sees the last of the writers.
const ORDER: [&str; 4] = ["--policy", "run-to-block", "--recordings", "1"];

fn compile(place: &Place, source: &str, options: &[&str]) {
    place.write("program.c", program_text(source));
    let build = ["cc", "-g", "-O1", "-w", "-pthread", "-o", "program", "program.c"];
    place.rashomon(&[&build[..], options].concat()).expect(0, &[]);
}

fn recorded(place: &Place, store: &str, options: &[&str]) {
    place.rashomon(&[&["record", "-o", store], &ORDER[..], options, &["--", "./program"]].concat()).expect(0, &[]);
}

/// How many findings are predicted, or proven, of a store.
fn predicted(place: &Place, store: &str, options: &[&str]) -> usize {
    place.rashomon(&[&["predict", "--json", "report.json"], options, &[store]].concat());
    told(place, &["predicted", "proven"])
}

fn told(place: &Place, verdicts: &[&str]) -> usize {
    let report = place.json("report.json");
    statuses(&report).iter().filter(|(_, status)| verdicts.contains(&status.as_str())).count()
}

/// What `check` proves, and what it predicts or proves.
fn checked(place: &Place) -> [usize; 2] {
    let check = ["check", "--engines", "force", "--budget", "60", "--json", "report.json", "-o", "check"];
    place.rashomon(&[&check[..], &ORDER, &["--", "./program"]].concat());
    [told(place, &["proven"]), told(place, &["predicted", "proven"])]
}

#[test]
fn what_rests_on_values_is_predicted_with_them_and_proven() {
    for name in VALUES {
        for (twin, found) in [(&[][..], 1), (&["-DTWIN"], 0)] {
            let place = Place::new();
            compile(&place, &format!("values/{name}.c"), twin);
            recorded(&place, "without", &[]);
            assert_eq!(predicted(&place, "without", &[]), 0, "{name} {twin:?} without values");
            assert_eq!(predicted(&place, "without", &["--engine", "causality"]), found, "{name} {twin:?}, replayed");
            recorded(&place, "with", &["--values"]);
            assert_eq!(predicted(&place, "with", &[]), found, "{name} {twin:?} with values");
            assert_eq!(checked(&place), [found; 2], "{name} {twin:?}");
        }
    }
}

#[test]
fn who_does_not_trust_a_store_replays_nothing() {
    let place = Place::new();
    compile(&place, "values/same_flag.c", &[]);
    recorded(&place, "store", &[]);
    let run = place.json("store/run.json");
    let mut foreign = run.as_object().expect("an object").clone();
    foreign.remove("seal");
    place.write("store/run.json", serde_json::to_string(&foreign).expect("text"));
    assert_eq!(predicted(&place, "store", &["--engine", "causality"]), 0);
}

#[test]
fn values_are_shown_in_dumps_and_replays_are_the_same() {
    let place = Place::new();
    compile(&place, "values/halves.c", &[]);
    recorded(&place, "store", &["--values"]);
    let dump = place.rashomon(&["trace", "dump", "store/recording-0"]).expect(0, &[]).out;
    let of = |what: &str| dump.lines().filter(|line| line.ends_with(what)).count();
    // What is written, and what the reader reads.
    assert_eq!((of(" left 0x200000001"), of(" saw 0x200000001")), (1, 1), "{dump}");
    assert_eq!((of(" left 0x1"), of(" left 0x2")), (2, 2), "{dump}");
}

#[test]
fn what_no_event_depends_on_need_not_be_read_as_it_was() {
    if std::env::var_os("RASHOMON_PLUGIN").is_none() {
        return skipped("RASHOMON_PLUGIN names no plugin; `cargo xtask plugin --test` builds it and runs this");
    }
    for name in BRANCHES {
        for (twin, found) in [(&["--deep"][..], 1), (&["--deep", "-DTWIN"], 0)] {
            let place = Place::new();
            compile(&place, &format!("branches/{name}.c"), twin);
            recorded(&place, "without", &[]);
            assert_eq!(predicted(&place, "without", &[]), 0, "{name} {twin:?} without dependences");
            recorded(&place, "with", &["--dependences"]);
            assert_eq!(predicted(&place, "with", &[]), found, "{name} {twin:?} with dependences");
            assert_eq!(checked(&place), [found; 2], "{name} {twin:?}");
        }
    }
}
