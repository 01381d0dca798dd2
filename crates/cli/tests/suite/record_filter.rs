//! What `--filter tree` says and who refuses its recordings. That it decides rightly: `recorded_filter.rs`.

use crate::support::place::{Place, statuses};

/// A loop under a lock, most of which is redundant, and a race on lines 7 and 14.
const LOCKED: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x, y;
static void *task(void *unused) {
    for (int i = 0; i < 100; i++) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); }

    y = 1;
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    for (int i = 0; i < 100; i++) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); }
    y = 2;
    pthread_join(thread, 0);
    return 0;
}
";

/// Sweeps over an array between barriers: nothing is redundant, so the filter rests. The last write races on lines 10 and 10.
const SWEEPS: &str = "#include <pthread.h>
static pthread_barrier_t barrier;
int cells[2][20000], last;
static void *task(void *own) {
    int *mine = cells[(long)own];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 20000; i++) mine[i] += round;
        pthread_barrier_wait(&barrier);
    }
    last = mine[7];
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, task, (void *)1);
    task(0);
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn races_are_proven_and_nothing_is_predicted() {
    let place = Place::new();
    for (name, program) in [("locked", LOCKED), ("sweeps", SWEEPS)] {
        place.compile(name, program);
        let run = format!("./{name}");
        for policy in ["random", "free"] {
            let check = |filter: &str, report: &str| {
                let arguments = [
                    "check",
                    "--engines",
                    "force",
                    "--show",
                    "suspicions",
                    "--filter",
                    filter,
                    "--policy",
                    policy,
                    "--json",
                    report,
                    "--",
                    &run,
                ];
                place.rashomon(&arguments);
                statuses(&place.json(report))
            };
            let (every, needed) = (check("none", "every.json"), check("tree", "needed.json"));
            assert_eq!((every.len(), &every), (1, &needed), "{name}, {policy}");
        }
    }
}

#[test]
fn what_was_spared_is_said() {
    let place = Place::new();
    place.compile("locked", LOCKED);
    // Not quiet, as the tests' own command is.
    let record = |arguments: &[&str]| place.run(place.command(env!("CARGO_BIN_EXE_rashomon"), arguments)).expect(0, &[]);
    let said = record(&["record", "--filter", "tree", "-o", "needed", "--", "./locked"]);
    assert!(said.err.contains("were redundant and are not recorded") && said.err.contains("nothing is predicted"), "{said}");
    let said = record(&["record", "-o", "every", "--", "./locked"]);
    assert!(!said.err.contains("redundant"), "{said}");
    let stat = place.rashomon(&["trace", "stat", "needed"]).expect(0, &[]);
    let filtered = stat.out.lines().find_map(|line| line.strip_prefix("accesses filtered")).expect("the statistics say so");
    assert!(filtered.trim().parse::<u64>().is_ok_and(|number| number > 100), "{stat}");
}

#[test]
fn the_environment_asks_for_it_too() {
    let place = Place::new();
    place.compile("locked", LOCKED);
    let mut command = place.tool(&["record", "-o", "needed", "--", "./locked"]);
    command.env("RASHOMON_FILTER", "tree");
    place.run(command).expect(0, &[]);
    assert!(place.rashomon(&["trace", "stat", "needed"]).expect(0, &[]).out.contains("accesses filtered"));
}

#[test]
fn who_needs_every_access_refuses() {
    let place = Place::new();
    place.compile("locked", LOCKED);
    for command in ["provoke", "explore", "witness"] {
        let ended = place.rashomon(&[command, "--filter", "tree", "--", "./locked"]);
        assert!(ended.code != 0 && ended.err.contains("needs a recording of all accesses"), "{command}: {ended}");
    }
    place.rashomon(&["record", "--filter", "tree", "-o", "needed", "--", "./locked"]).expect(0, &[]);
    let ended = place.rashomon(&["provoke", "needed"]);
    assert!(ended.code != 0 && ended.err.contains("was recorded with a filter"), "{ended}");
    for analysis in ["shb", "lockset", "wcp", "cp", "serialisability", "hb,shb"] {
        let ended = place.rashomon(&["analyse", "--analysis", analysis, "needed"]);
        assert!(ended.code != 0 && ended.err.contains("only hb and hybrid"), "{analysis}: {ended}");
    }
    place.rashomon(&["analyse", "--analysis", "hb,hybrid", "needed"]).expect(0, &[]);
}

/// What is redundant is left out of a recording of everything, too, and the same races are found.
#[test]
fn analyse_finds_the_same_without_what_is_redundant() {
    let place = Place::new();
    place.compile("locked", LOCKED);
    place.rashomon(&["record", "--every-access", "-o", "all", "--", "./locked"]).expect(0, &[]);
    let analysed = |filter: &[&str]| {
        let ended = place.rashomon(&[&["analyse", "--analysis", "hb,hybrid", "--json", "all"], filter].concat()).expect(0, &[]);
        let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let mut pairs = std::collections::BTreeSet::new();
        for analysis in report["analyses"].as_array().unwrap() {
            for race in analysis["pairs"].as_array().unwrap() {
                let mut sides = [&race["earlier"]["location"], &race["later"]["location"]].map(ToString::to_string);
                sides.sort();
                pairs.insert((analysis["analysis"].to_string(), sides));
            }
        }
        (pairs, report["notices"].to_string())
    };
    let (expected, _) = analysed(&[]);
    assert!(!expected.is_empty());
    for (filter, notice) in [("tree", "left out as redundant"), ("span", "left out as redundant"), ("segment", "repeat one")] {
        let (pairs, notices) = analysed(&["--filter", filter]);
        assert_eq!(pairs, expected, "{filter}");
        assert!(notices.contains(notice), "{filter}: {notices}");
    }
    let ended = place.rashomon(&["analyse", "--filter", "tree", "all"]);
    assert!(ended.code != 0 && ended.err.contains("only hb and hybrid"), "{ended}");
}

/// Without it the hooks themselves leave out what repeats since the thread's last synchronisation.
#[test]
fn every_access_is_kept_on_request() {
    let place = Place::new();
    place.compile("repeats", "static volatile int x; int main(void) { for (int i = 0; i < 1000; i++) x++; return 0; }");
    let kept = |options: &[&str], store: &str| {
        place.rashomon(&[&["record", "--output", store], options, &["--", "./repeats"]].concat()).expect(0, &[]);
        let stat = place.rashomon(&["trace", "stat", store]).expect(0, &[]).out;
        let line = stat.lines().find_map(|line| line.strip_prefix("accesses kept")).unwrap_or_else(|| panic!("{stat}"));
        line.trim().parse::<u64>().unwrap()
    };
    assert!(kept(&[], "some") < 100);
    for policy in ["random", "free"] {
        assert_eq!(kept(&["--every-access", "--policy", policy], policy), 2000, "{policy}");
    }
}
