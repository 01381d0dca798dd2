//! Reports of real programs on terminals of three widths: a finding is one screen, says what, where, why it is sure and how to
//! see it again, and what is folded is there on request. `crates/report/tests/golden` has such reports, word by word: with
//! `RASHOMON_TESTS_RECORD=1` those that are named here are made anew.

mod debian;

use crate::support::place::Place;
use crate::support::terminal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Rows of a screen.
const ROWS: usize = 40;
const WIDTHS: [u16; 3] = [80, 100, 160];

/// A program of this folder, or of `tests`; the options of the compiler; the command that looks at it, and what its report says.
struct Kind {
    /// The fixture that it makes.
    golden: Option<&'static str>,
    source: &'static str,
    options: &'static [&'static str],
    command: &'static [&'static str],
    says: &'static [&'static str],
}

/// Its report, stored.
fn looked_at(kind: &Kind, code: i32) -> Place {
    let place = Place::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/reports").join(kind.source);
    let elsewhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(kind.source);
    let source =
        fs::read_to_string(&tests).or_else(|_| fs::read_to_string(elsewhere)).expect("the program is part of the sources");
    let name = Path::new(kind.source).file_name().and_then(|name| name.to_str()).expect("a plain name");
    place.write(name, source);
    let compiler = if name.ends_with(".c") { "cc" } else { "c++" };
    let build = [compiler, "-O1", "-g", "-pthread", "-o", "program", name];
    place.rashomon(&[&build, kind.options].concat()).expect(0, &[]);
    look_at(&place, kind.command, kind.golden, code);
    place
}

/// The program in the folder.
fn look_at(place: &Place, command: &[&str], golden: Option<&str>, code: i32) {
    place.rashomon(&[command, &["-o", "store", "--", "./program"]].concat()).expect(code, &[]);
    if let Some(golden) = golden {
        record_if_asked(place, golden);
    }
}

/// A program over a library of which the source is fetched, and built by `build` with the tool's compiler `$CC`.
#[track_caller]
fn over_a_library(package: &str, source: &str, build: &str, golden: &str, says: &[&str]) {
    let place = Place::new();
    let library = debian::source(package, &place.path(""));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/reports").join(source);
    fs::copy(program, place.path(source)).unwrap();
    let mut shell = place.command("sh", &["-euc", build]);
    shell.env("CC", env!("CARGO_BIN_EXE_rashomon-cc")).env("L", library.file_name().unwrap());
    debian::said(&mut shell);
    look_at(&place, CHECK, Some(golden), 66);
    is_one_screen(&place, says);
    nothing_is_lost(&place);
}

/// The stored findings as a fixture of the formats: without schedules for machines, in the folder of a user.
fn record_if_asked(place: &Place, golden: &str) {
    if std::env::var_os("RASHOMON_TESTS_RECORD").is_none() {
        return;
    }
    let read = |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let store = place.path("store");
    let mut paths: Vec<_> = fs::read_dir(store.join("findings")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut findings: Vec<Value> = paths.iter().map(|path| read(path)["finding"].take()).collect();
    for fields in findings.iter_mut().filter_map(Value::as_object_mut) {
        fields.retain(|name, _| name != "schedule" && name != "provocation");
    }
    let fixture = json!({ "findings": findings, "run": read(&store.join("summary.json")) });
    let folder = place.path("");
    let text = format!("{fixture:#}\n")
        .replace(&format!("{}/reports", env!("CARGO_TARGET_TMPDIR")), "/home/user/work/target")
        .replace(folder.to_str().unwrap().trim_end_matches('/'), "/home/user/work")
        .replace(env!("CARGO_BIN_EXE_rashomon"), "rashomon")
        .replace("/home/user/work/store", "/home/user/work/.rashomon/1-program");
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    fs::write(goldens.join(golden).with_extension("json"), text).unwrap();
}

/// The stored report as a terminal shows it, without colours.
fn shown(place: &Place, width: u16, options: &[&str]) -> String {
    let printed = terminal::run(place.tool(&[&["report", "store"], options].concat()), width, ROWS as u16);
    let text = printed.text();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, escape)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, behind)| behind);
    }
    plain + rest
}

fn stored(place: &Place) -> Value {
    let ended = place.rashomon(&["report", "store", "--format", "json", "--show", "everything"]);
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}; {ended}"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Every finding that is told by default, at every width.
#[track_caller]
fn is_one_screen(place: &Place, says: &[&str]) {
    for width in WIDTHS {
        let text = shown(place, width, &[]);
        let findings = text.split("\n\n").filter(|block| block.contains("(proven, "));
        for block in findings {
            let rows: usize = block.lines().map(|line| line.chars().count().div_ceil(width.into()).max(1)).sum();
            assert!(rows <= ROWS, "{rows} rows at {width}: {block}");
            // Where, why it is sure, how to see it again.
            assert!(block.contains("    #") && block.contains("\n  = "), "{block}");
            assert!(block.contains("make it happen again:\n    ") && block.contains("replay --store"), "{block}");
        }
        // Where lines break depends on the width; words and their order do not.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in says {
            assert!(words.contains(said), "nothing of `{said}` at {width}: {text}");
        }
    }
}

#[track_caller]
fn nothing_is_lost(place: &Place) {
    let text = shown(place, 160, &["--show", "everything", "--full-stacks", "--full-schedule", "--ungrouped"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let report = stored(place);
    for finding in list(&report["findings"]) {
        assert!(words.contains(finding["id"].as_str().unwrap()), "{finding}: {text}");
        let frames = list(&finding["sides"]).flat_map(|side| list(&side["stack"]));
        for function in frames.filter_map(|frame| frame["function"].as_str()) {
            let function = function.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&function), "{function}: {text}");
        }
        let earlier = finding["earlier_steps"].as_u64().unwrap_or(0);
        for number in (earlier + 1..).take(list(&finding["steps"]).count()) {
            assert!(text.contains(&format!("    {number}. ")), "turn {number} of {}: {text}", finding["id"]);
        }
    }
}

#[track_caller]
fn tells(kind: &Kind) {
    let place = looked_at(kind, 66);
    is_one_screen(&place, kind.says);
    nothing_is_lost(&place);
}

/// Two threads count in a cell that claims to be safe to share.
const COUNTS: &str = "\
use std::cell::UnsafeCell;
use std::sync::Arc;

struct Shared {
    count: UnsafeCell<u64>,
}

unsafe impl Sync for Shared {}

impl Shared {
    fn add(&self) {
        unsafe { *self.count.get() += 1 };
    }
}

fn main() {
    let shared = Arc::new(Shared { count: UnsafeCell::new(0) });
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.add())
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
";

#[test]
fn rust_threads() {
    let place = Place::new();
    place.write("src/main.rs", COUNTS);
    place.write("Cargo.toml", "[package]\nname = \"counts\"\nedition = \"2021\"\n[workspace]\n");
    // Time enough to shorten the schedule on a busy machine, too: the check ends by itself.
    let mut command = place.command(env!("CARGO_BIN_EXE_cargo-rashomon"), &["rashomon", "run", "--budget", "60"]);
    // Where the instrumented standard library stays from run to run.
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    command.env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", built).env_remove("RUSTFLAGS").env_remove("RUSTC_WRAPPER");
    let ended = place.run(command).expect(66, &[]);
    let kept = ended.err.lines().find_map(|line| line.strip_prefix("kept in ")).expect("a store");
    fs::rename(kept.trim_matches('\''), place.path("store")).expect("both are in the scratch folder");
    record_if_asked(&place, "rust-threads");
    is_one_screen(&place, &["Shared::count (8 bytes)", "#0 <counts::Shared>::add", "PROVEN: 1 data race"]);
    nothing_is_lost(&place);
}

const CHECK: &[&str] = &["check", "--budget", "10"];
const EXPLORE: &[&str] = &["explore"];

#[test]
fn a_pool_of_tasks() {
    let says = &["data race (proven, ", "local counted of main (8 bytes)", "… 4 frames of libraries", "PROVEN: 1 data race"];
    tells(&Kind { golden: Some("pool-of-tasks"), source: "pool.cpp", options: &[], command: CHECK, says });
}

#[test]
fn openmp() {
    let says = &["local histogram[", "] of main (4 bytes)", "#0 main histogram.c:8:", "PROVEN: "];
    tells(&Kind { golden: Some("openmp"), source: "histogram.c", options: &["-fopenmp"], command: CHECK, says });
}

#[test]
fn a_deadlock_of_three() {
    let says =
        &["thread 0: waits for Bank::accounts[1].lock, held by thread 1", "holding Bank::accounts[0].lock", "PROVEN: 1 deadlock"];
    tells(&Kind { golden: Some("deadlock-of-three"), source: "three.cpp", options: &[], command: CHECK, says });
}

#[test]
fn a_lost_wake_up() {
    let says = &["lost wake-up (proven, stuck)", "waits for condition variable c", "PROVEN: 1 lost wake-up"];
    tells(&Kind { golden: Some("lost-wake-up"), source: "explore/lost_signal.c", options: &[], command: EXPLORE, says });
}

#[test]
fn a_misuse() {
    let says = &["unlock of a lock that is not held (proven, observed)", "releases mutex ledger", "PROVEN: "];
    tells(&Kind { golden: Some("misuse"), source: "refund.c", options: &[], command: CHECK, says });
}

#[test]
fn a_provoked_race() {
    let says =
        &["data race (proven, co-enabled)", "provoked again: reproduces", "global balance (8 bytes)", "PROVEN: 1 data race"];
    tells(&Kind { golden: Some("provoked"), source: "refund.c", options: &[], command: &["provoke"], says });
}

#[test]
fn an_explored_crash() {
    let says = &["failure (proven, crashed)", "SIGABRT", "critical order: ", "PROVEN: 1 failure"];
    tells(&Kind { golden: Some("explored-crash"), source: "explore/freed_early.cpp", options: &[], command: EXPLORE, says });
}

/// Whatever becomes of its suspicions: which of them diverge depends on the machine's speed.
#[test]
fn a_program_with_suspicions_that_no_schedule_shows() {
    let says = &["global unprotected (4 bytes)", "suspected", "PROVEN: 1 data race"];
    tells(&Kind { golden: None, source: "programs/racy/lazy_elsewhere.cpp", options: &[], command: CHECK, says });
}

#[test]
#[ignore = "fetches and builds Debian's source of libuv"]
fn libuv() {
    let build = "cmake -S $L -B built -DCMAKE_C_COMPILER=$CC -DCMAKE_C_FLAGS='-O1 -g -w' -DCMAKE_BUILD_TYPE= -DBUILD_TESTING=OFF
make -C built uv_a
$CC -O1 -g -pthread -I$L/include -o program sums.c built/libuv_a.a -ldl";
    let says = ["data race (proven, ", "global results.sum (8 bytes)", "#0 add sums.c:7:", "PROVEN: 1 data race"];
    over_a_library("libuv1", "sums.c", build, "libuv", &says);
}

#[test]
#[ignore = "fetches and builds Debian's source of SQLite"]
fn sqlite() {
    let build = "(cd $L && ./configure --disable-shared --disable-readline --disable-dependency-tracking && make sqlite3.c)
$CC -O1 -g -w -pthread -I$L -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -o program rows.c $L/sqlite3.c -lm";
    let says = ["data race (proven, ", "global rows (4 bytes)", "#0 count rows.c:10:", "PROVEN: 1 data race"];
    over_a_library("sqlite3", "rows.c", build, "sqlite", &says);
}

/// A value is handed over under a lock that neither access holds, and as an instruction is not seen, nothing refutes that they
/// race; a schedule without the order cannot be followed.
#[test]
fn a_finding_whose_schedules_diverge() {
    let kind = Kind { golden: Some("diverged"), source: "handed_over.c", options: &[], command: CHECK, says: &[] };
    let place = looked_at(&kind, 0);
    is_one_screen(&place, &["no bug was made to happen", "data race [race-", "global input (4 bytes)", "1 diverged"]);
    nothing_is_lost(&place);
    let report = stored(&place);
    let verdicts: Vec<&Value> = list(&report["findings"]).map(|finding| &finding["verdict"]).collect();
    assert_eq!(verdicts, ["diverged"]);
    let width = 100;
    let all = shown(&place, width, &["--show", "suspicions"]);
    let block = all.split("\n\n").find(|block| block.contains("global input")).expect("it is told");
    let rows: usize = block.lines().map(|line| line.chars().count().div_ceil(width.into()).max(1)).sum();
    assert!(rows <= ROWS && block.contains("schedule"), "{rows} rows: {block}");
}

#[test]
fn an_incomplete_analysis() {
    let command = &["check", "--predict-within", "0.000001", "--recordings", "1", "--budget", "10"];
    let kind =
        Kind { golden: Some("incomplete"), source: "programs/race_free/barrier_phases.c", options: &[], command, says: &[] };
    let place = looked_at(&kind, 0);
    is_one_screen(&place, &["no bug was made to happen", "incomplete: ", "not examined"]);
    assert_ne!(stored(&place)["run"]["unexamined"], Value::Null);
}
