//! Rust programs through `cargo rashomon`: what is wrong with them is proven with the right lines, and nothing is said of the
//! others.
//!
//! The crate in `tests/rust` needs nothing but the standard library. Tests over published crates fetch them, and test nothing
//! where that cannot be done.

use crate::support::place::{Ended, Place, is_installed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rust")
}

/// Where results of builds stay from run to run; cargo locks it.
fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// `cargo rashomon …` in a folder with a package.
fn cargo(place: &Place, folder: &Path, target: &str, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_cargo-rashomon"), &["rashomon"]);
    command.args(arguments).current_dir(folder).env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", built(target));
    // A backtrace reads all debug information, and every access of that is instrumented.
    command.env("RUST_BACKTRACE", "0").env_remove("RUST_TEST_THREADS");
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "CC", "CXX", "CFLAGS", "RUSTC_BOOTSTRAP"] {
        command.env_remove(variable);
    }
    command
}

/// The JSON report of the store that the last lines of `cargo rashomon` name.
#[track_caller]
fn reported(place: &Place, ended: &Ended) -> (PathBuf, Value) {
    let line = ended.err.lines().find(|line| line.starts_with("kept in ")).unwrap_or_else(|| panic!("no store; {ended}"));
    let store = PathBuf::from(line.trim_start_matches("kept in ").trim_matches('\''));
    let report = place.rashomon(&["report", "--format", "json", "--store", store.to_str().unwrap()]).expect(0, &[]);
    let report = serde_json::from_str(&report.out).unwrap_or_else(|error| panic!("no report: {error}"));
    (store, report)
}

/// Of each side of each proven race: the innermost frame that is not the standard library's, as function, file and line.
fn proven(report: &Value) -> Vec<Vec<(String, String, u64)>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let side = |side: &Value| {
        let frames = side["stack"].as_array().cloned().unwrap_or_default();
        let own = frames.iter().find(|frame| !text(&frame["file"]).starts_with("/rustc/")).cloned().unwrap_or_default();
        (text(&own["function"]), text(&own["file"]), own["line"].as_u64().unwrap_or(0))
    };
    let findings = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["verdict"] == "proven" && finding["kind"] == "data-race");
    findings.map(|finding| finding["sides"].as_array().into_iter().flatten().map(side).collect()).collect()
}

/// Lines of a source file that end with `// race: NAME`.
fn marked(source: &Path) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(source).expect("part of the sources");
    let lines = (1..).zip(text.lines());
    lines.filter_map(|(number, line)| Some((line.split_once("// race: ")?.1.trim().to_owned(), number))).collect()
}

#[test]
fn programs_without_races() {
    let place = Place::new();
    let ended = place.run(cargo(&place, &programs(), "rust", &["test", "--budget", "20", "--test", "race_free"]));
    let ended = ended.expect(0, &["0 proven, 0 predicted", "1 program: 0 proven, 0 predicted"]);
    assert!(ended.out.contains("test result: ok. 21 passed"), "{ended}");
    assert!(!ended.err.contains("not instrumented"), "{ended}");
    assert!(!ended.err.contains("no debug information"), "{ended}");
}

/// What orders accesses inside a standard library that nobody sees into must not become a finding.
#[test]
fn the_standard_library_as_it_comes() {
    let place = Place::new();
    let arguments = [
        "test",
        "--budget",
        "20",
        "--std",
        "plain",
        "--test",
        "race_free",
        "--",
        "once",
        "channel",
        "parking",
        "output",
        "last_owner",
    ];
    let ended = place.run(cargo(&place, &programs(), "rust", &arguments)).expect(
        0,
        &[
            "standard library is not instrumented (asked for)",
            "not instrumented, so that nothing is predicted",
            "0 proven, 0 predicted",
        ],
    );
    assert!(ended.err.contains("Rust's standard library in race_free-"), "{ended}");
}

#[test]
fn races_of_every_sort() {
    let place = Place::new();
    let ended = place
        .run(cargo(&place, &programs(), "rust", &["test", "--budget", "40", "--recordings", "2", "--test", "racy"]))
        .expect(66, &["1 program: "]);
    let (_, report) = reported(&place, &ended);
    let marks = marked(&programs().join("tests/racy.rs"));
    let mut found = BTreeSet::new();
    for sides in proven(&report) {
        let names: BTreeSet<String> = sides
            .iter()
            .map(|(_, file, line)| match marks.iter().find(|(_, marked)| file.ends_with("tests/racy.rs") && marked == line) {
                Some((name, _)) => name.clone(),
                None if file.ends_with("c/tally.c") && *line == 4 => "in_c".to_owned(),
                None => panic!("{file}:{line} is no place of a race; {ended}"),
            })
            .collect();
        assert_eq!(names.len(), 1, "places of different races: {sides:?}");
        found.extend(names);
    }
    let mut expected: BTreeSet<String> = marks.into_iter().map(|(name, _)| name).collect();
    expected.insert("in_c".to_owned());
    assert_eq!(found, expected, "{ended}");
    assert!(ended.err.contains("global racy::COUNTER (4 bytes)"), "{ended}");
}

/// Threads that wait for locks of the standard library of each other, at the lines where they do; replays show it again.
#[test]
fn deadlocks_of_the_librarys_locks() {
    let place = Place::new();
    let options = ["test", "--budget", "60", "--recordings", "2", "--engines", "force", "--test", "locks"];
    let ended = place.run(cargo(&place, &programs(), "rust", &options)).expect(66, &["1 program: 2 proven", "rwlock table of"]);
    let (store, report) = reported(&place, &ended);
    let source = std::fs::read_to_string(programs().join("tests/locks.rs")).expect("the source");
    let line =
        |name: &str| source.lines().position(|line| line.ends_with(&format!("// deadlock: {name}"))).expect("a mark") as u64 + 1;
    let mut expected = [vec![line("sum"), line("sum")], vec![line("read"), line("write")]];
    expected.iter_mut().for_each(|lines| lines.sort_unstable());
    let findings = report["findings"].as_array().expect("findings");
    let deadlocks: Vec<_> = findings.iter().filter(|finding| finding["kind"] == "deadlock").collect();
    let mut found: Vec<Vec<u64>> = deadlocks.iter().map(|finding| own_lines(finding, "tests/locks.rs")).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{ended}");
    for finding in deadlocks {
        assert_eq!(finding["verdict"], "proven", "{ended}");
        let id = finding["id"].as_str().unwrap_or_default();
        place.rashomon(&["replay", "--store", store.to_str().unwrap(), id]).expect(0, &[]);
    }
}

/// Schedules are those of the program's threads: the harness of the tests only goes on when these cannot. The library handles
/// signals that nobody sends, so that a wait without end is one at once.
#[test]
fn a_lost_wake_up_under_the_harness_of_tests() {
    let place = Place::new();
    let options = ["test", "--budget", "60", "--recordings", "1", "--engines", "explore", "--test", "waits"];
    let mut command = cargo(&place, &programs(), "rust", &options);
    command.env("RUST_BACKTRACE", "1");
    let ended =
        place.run(command).expect(66, &["lost wake-up (proven, stuck)", "threads without code of the program coming last"]);
    let (store, report) = reported(&place, &ended);
    let run = std::fs::read_to_string(store.join("run.json")).expect("what is executed");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    assert!(run["environment"].as_array().unwrap().contains(&serde_json::json!(["RUST_BACKTRACE", "0"])), "{run}");
    assert_eq!(own_lines(&report["findings"][0], "tests/waits.rs"), [16, 21], "{ended}");
    let id = report["findings"][0]["id"].as_str().unwrap_or_default();
    place.rashomon(&["replay", "--store", store.to_str().unwrap(), id]).expect(0, &[]);
}

/// By side, the innermost line of a file; sorted.
fn own_lines(finding: &Value, file: &str) -> Vec<u64> {
    let own = |side: &Value| {
        let frames = side["stack"].as_array().cloned().unwrap_or_default();
        let own = frames.into_iter().find(|frame| frame["file"].as_str().is_some_and(|name| name.ends_with(file)));
        own.and_then(|frame| frame["line"].as_u64())
    };
    let mut lines: Vec<u64> = finding["sides"].as_array().into_iter().flatten().filter_map(own).collect();
    lines.sort_unstable();
    lines
}

/// Both manglings, and the user's own flags.
#[test]
fn a_bug_in_unsafe_code() {
    for (mangling, name) in [("v0", "<rust_programs::Tally>::add"), ("legacy", "rust_programs::Tally::add")] {
        let place = Place::new();
        let mut command = cargo(&place, &programs(), "rust", &["test", "--budget", "30", "--test", "seeded"]);
        command.env("RUSTFLAGS", format!("-Zunstable-options -Csymbol-mangling-version={mangling}"));
        let ended = place.run(command).expect(66, &["1 proven, 0 predicted", "proven, co-enabled"]);
        let (store, report) = reported(&place, &ended);
        let sides = proven(&report);
        let [sides] = sides.as_slice() else { panic!("one finding was expected; {ended}") };
        for (function, file, line) in sides {
            assert!(function == name && file.ends_with("tests/rust/src/lib.rs") && *line == 17, "{sides:?}");
        }
        let id = report["findings"][0]["id"].as_str().unwrap_or_default();
        let again = place.rashomon(&["replay", "--store", store.to_str().unwrap(), id]);
        again.expect(0, &[]);
    }
}

#[test]
fn online_detection() {
    let place = Place::new();
    let run = |test: &str| place.run(cargo(&place, &programs(), "rust", &["test", "--detect", "--test", test]));
    let ended = run("race_free").expect(0, &["1 program, 0 with findings"]);
    assert!(ended.out.contains("test result: ok. 21 passed") && !ended.err.contains("data race"), "{ended}");
    let ended = run("seeded").expect(66, &["1 program, 1 with findings", "src/lib.rs:17"]);
    assert!(ended.err.contains("<rust_programs::Tally>::add"), "{ended}");
}

/// Cargo's exit code, the tests' own, and that of a program, as far as nothing is found.
#[test]
fn exit_codes() {
    let place = Place::new();
    let run = |arguments: &[&str]| place.run(cargo(&place, &programs(), "rust", arguments));
    run(&["run", "--", "3"]).expect(3, &["1 program: 0 proven"]);
    run(&["run", "--", "0"]).expect(0, &["1 program: 0 proven"]);
    run(&["test", "--test", "failing"]).expect(101, &["1 program: 0 proven"]);
    run(&["test", "--test", "no_such_test"]).expect(101, &["no test target named `no_such_test`"]);
    run(&["test", "--budget"]).expect(2, &["--budget needs a value"]);
    run(&["--budget", "3"]).expect(2, &["which cargo command?"]);
    run(&["test", "--doc"]).expect(125, &["documentation tests"]);
    let help = run(&["--help"]).expect(0, &[]);
    assert!(help.out.contains("--std") && help.out.contains("--budget"), "{help}");
}

/// A copy of the crate over published ones, with other versions of them. `None`: they cannot be fetched.
fn advisories(place: &Place, replace: &[(&str, &str)]) -> Option<PathBuf> {
    let from = programs().join("advisory");
    for name in ["Cargo.toml", "src/lib.rs", "tests/oneshot.rs", "tests/bunch.rs"] {
        let mut text = std::fs::read_to_string(from.join(name)).expect("part of the sources");
        for (old, new) in replace {
            text = text.replace(old, new);
        }
        place.write(&format!("advisory/{name}"), text);
    }
    let folder = place.path("advisory");
    let mut fetch = place.command(env!("CARGO"), &["fetch"]);
    fetch.current_dir(&folder);
    let fetched = place.run(fetch);
    if fetched.code != 0 {
        crate::support::place::skipped(&format!("the published crates cannot be fetched\n{fetched}"));
        return None;
    }
    Some(folder)
}

#[test]
fn published_crates_with_known_races() {
    let place = Place::new();
    let Some(folder) = advisories(&place, &[]) else { return };
    for (test, file, functions) in [
        (
            "oneshot",
            "tokio-1.13.0/src/sync/oneshot.rs",
            ["tokio::sync::oneshot::Sender<i32>>::send", "tokio::sync::oneshot::Receiver<i32>>::try_recv"],
        ),
        ("bunch", "bunch-0.1.0/src/lib.rs", ["bunch::Bunch<u32>>::get", "bunch::Bunch<u32>>::push"]),
    ] {
        let ended = place
            .run(cargo(&place, &folder, "advisory", &["test", "--budget", "30", "--test", test]))
            .expect(66, &["proven, co-enabled"]);
        for needed in [file].iter().chain(&functions) {
            assert!(ended.err.contains(needed), "nothing of `{needed}`; {ended}");
        }
        let (_, report) = reported(&place, &ended);
        for sides in proven(&report) {
            for (_, at, line) in sides {
                assert!(
                    at.contains("tokio-1.13.0/src/") || at.contains("bunch-0.1.0/src/") || at.contains("arrayvec-"),
                    "{at}:{line}; {ended}"
                );
            }
        }
    }
}

/// The same test over the version that corrects it.
#[test]
fn a_published_crate_after_its_correction() {
    let place = Place::new();
    let Some(folder) = advisories(&place, &[("=1.13.0", "=1.13.1")]) else { return };
    place
        .run(cargo(&place, &folder, "advisory", &["test", "--budget", "20", "--test", "oneshot"]))
        .expect(0, &["1 program: 0 proven, 0 predicted"]);
}

/// Procedural macros and build scripts, and the C code in them, stay as they are; shared libraries get no runtime of their own.
#[test]
fn what_runs_on_the_host_is_left_alone() {
    if !is_installed("cc") {
        return;
    }
    let place = Place::new();
    place.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"user\", \"made\"]\nresolver = \"2\"\n[profile.release]\nlto = \
        \"fat\"\ndebug = 0\nstrip = true\n",
    );
    place.write(
        "made/Cargo.toml",
        "[package]\nname = \"made\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\nproc-macro = true\n",
    );
    let compile = "use std::{env, process::Command};\nfn main() {\n\
         let compiler = env::var(format!(\"CC_{}\", env::var(\"TARGET\").unwrap().replace('-', \"_\"))).unwrap();\n\
         let object = env::var(\"OUT_DIR\").unwrap() + \"/c.o\";\n\
         assert!(Command::new(compiler).args([\"-c\", \"c.c\", \"-fPIC\", \"-o\", &object]).status().unwrap().success());\n\
         println!(\"cargo::rustc-link-arg={object}\");\n}\n";
    place.write("made/build.rs", compile);
    place.write("made/c.c", "int number; int count(void) { return ++number; }\n");
    place.write(
        "made/src/lib.rs",
        "unsafe extern \"C\" { fn count() -> i32; }\n#[proc_macro]\n\
         pub fn number(_: proc_macro::TokenStream) -> proc_macro::TokenStream {\n\
         unsafe { count() }.to_string().parse().unwrap()\n}\n#[test]\nfn counts() { assert_eq!(unsafe { count() }, 1) }\n",
    );
    place.write(
        "user/Cargo.toml",
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\ncrate-type = [\"rlib\", \
            \"cdylib\"]\n[dependencies]\nmade = { path = \"../made\" }\n",
    );
    place.write("user/build.rs", compile);
    place.write("user/c.c", "int number; int count(void) { return ++number; }\n");
    place.write(
        "user/src/lib.rs",
        "unsafe extern \"C\" { fn count() -> i32; }\npub fn total() -> i32 { unsafe { count() + made::number!() } }\n\
         #[test]\nfn race() { std::thread::scope(|scope| { scope.spawn(total); total(); }) }\n",
    );
    let folder = place.path(".");
    let ended = place
        .run(cargo(&place, &folder, "host", &["test", "--budget", "20", "--workspace", "--release"]))
        .expect(66, &["is not instrumented and runs as it is", "1 proven", " c.c:1:", "2 programs: "]);
    assert_eq!(ended.out.matches("test result: ok. 1 passed").count(), 2, "{ended}");
}
