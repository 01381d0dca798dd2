//! Each test of a Rust package a check, under cargo-nextest: a test fails where something is proven that is not accepted.

use crate::support::place::{Ended, Place};
use std::path::PathBuf;
use std::process::Command;

/// Three tests; those that are named race.
fn source(racing: &[&str]) -> String {
    let mut text = String::from("use std::sync::Mutex;\nuse std::thread;\nstatic LOCK: Mutex<()> = Mutex::new(());\n");
    for name in ["first", "second", "third"] {
        let guard = if racing.contains(&name) { "" } else { "let _guard = LOCK.lock().unwrap(); " };
        let counter = name.to_uppercase();
        text.push_str(&format!(
            "static mut {counter}: u32 = 0;\nfn count_{name}() {{ {guard}unsafe {{ {counter} += 1 }} }}\n\
             #[test]\nfn {name}() {{ thread::scope(|scope| {{ scope.spawn(count_{name}); count_{name}() }}) }}\n"
        ));
    }
    text
}

struct Package(Place);

impl Package {
    /// `None`: cargo-nextest is not installed.
    fn new() -> Option<Self> {
        let known = Command::new(env!("CARGO")).args(["nextest", "--version"]).output();
        if !known.is_ok_and(|output| output.status.success()) {
            // No package of Debian has it, so that no machine has to.
            eprintln!("SKIPPED: cargo-nextest is not installed");
            return None;
        }
        let place = Place::new();
        place.write("Cargo.toml", "[package]\nname = \"counted\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n");
        place.write("src/lib.rs", "");
        // One recording shows it: a quick check is enough.
        place.write("rashomon.toml", "budget = 40\nrecordings = 1\n[check]\nengines = [\"force\"]\n");
        Some(Self(place))
    }

    fn write(&self, racing: &[&str]) {
        self.0.write("tests/counted.rs", source(racing));
    }

    fn nextest(&self, arguments: &[&str]) -> Ended {
        let mut command = self.0.command(env!("CARGO_BIN_EXE_cargo-rashomon"), &["rashomon", "nextest"]);
        command.args(arguments).current_dir(self.0.path(".")).env("CARGO", env!("CARGO"));
        command.env("CARGO_TARGET_DIR", self.0.path("target")).env("RUST_BACKTRACE", "0").env("NEXTEST_NO_TESTS", "fail");
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_BOOTSTRAP"] {
            command.env_remove(variable);
        }
        // The suite itself may run under nextest.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NEXTEST")) {
            command.env_remove(name);
        }
        self.0.run(command)
    }

    fn stores(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.0.path("target/rashomon/stores")).expect("where stores are");
        listed.map(|entry| entry.unwrap().path()).filter(|path| !path.is_symlink()).collect()
    }
}

/// The tests that nextest calls failed.
fn failed(ended: &Ended) -> Vec<String> {
    let (_, told) = ended.err.split_once("Summary").unwrap_or_else(|| panic!("no summary; {ended}"));
    let names = told.lines().filter(|line| line.trim_start().starts_with("FAIL"));
    names.filter_map(|line| line.split(' ').next_back().map(str::to_owned)).collect()
}

#[test]
fn a_test_that_races_is_red_until_it_is_accepted() {
    let Some(package) = Package::new() else { return };
    package.write(&["second"]);
    let ended = package.nextest(&["list"]).expect(0, &[]);
    assert!(ended.out.contains("counted::counted") && ended.out.contains("third"), "{ended}");
    let merged = package.0.path("races.xml");
    let merged_to = format!("junit={}", merged.display());
    let run = ["run", "--no-fail-fast", "--merged", &merged_to];
    let ended = package.nextest(&run).expect(66, &["3 tests: 1 proven, 0 predicted", "proven, co-enabled"]);
    assert_eq!(failed(&ended), ["second"], "{ended}");
    let report = std::fs::read_to_string(&merged).expect("the merged report");
    assert!(report.contains("tests=\"3\" failures=\"1\"") && report.contains("counted::SECOND"), "{report}");
    let stores = package.stores();
    assert_eq!(stores.len(), 3, "a store for each test: {stores:?}");
    for store in stores {
        let store = store.display().to_string();
        package.0.rashomon(&["accept", "--store", &store, "--baseline", "known.txt", "--all"]).expect(0, &[]);
    }
    let gate = ["run", "--no-fail-fast", "--baseline", "known.txt"];
    let ended = package.nextest(&gate).expect(0, &["3 passed"]);
    assert!(failed(&ended).is_empty(), "{ended}");
    // A new bug, by a line that others move with.
    package.write(&["second", "third"]);
    let ended = package.nextest(&gate).expect(66, &[]);
    assert_eq!(failed(&ended), ["third"], "{ended}");
    // nextest's own options, among them a filter: nothing else is executed.
    let ended = package
        .nextest(&["run", "--baseline", "known.txt", "--", "--exact", "first"])
        .expect(0, &["1 test run", "1 test: 0 proven"]);
    assert!(failed(&ended).is_empty(), "{ended}");
}
