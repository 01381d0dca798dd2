//! `rashomon analyse` on trace files: what it says, how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rashomon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rashomon")).args(arguments).output().expect("the tool runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn file(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file in a temporary folder");
    path
}

/// `x` is accessed without a lock, `y` by two threads of which each holds another lock. Eraser does not look at a variable's
/// first thread.
const RACES: &str = "\
T0|fork(T1)|main:1
T0|w(x)|main:2
T0|acq(l)|main:3
T0|w(y)|main:4
T0|rel(l)|main:5
T1|acq(m)|worker:1
T1|w(y)|worker:2
T1|rel(m)|worker:3
T1|r(x)|worker:4
T0|join(T1)|main:6
";

#[test]
fn races_with_their_places() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path(), "races.std", RACES);
    let path = path.to_str().expect("text");
    let output = rashomon(&["analyse", path, "--analysis", "hb,shb,lockset,hybrid,wcp,cp", "--fail-on", "real"]);
    assert_eq!(output.status.code(), Some(66), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for (analysis, count) in [("hb", 2), ("shb", 2), ("lockset", 0), ("hybrid", 2), ("wcp", 2), ("cp", 2)] {
        let section = said.split(&format!("\n{analysis}: ")).nth(1).unwrap_or_else(|| panic!("no {analysis} in {said}"));
        let section = section.split("\n\n").next().expect("a section");
        assert!(section.contains(&format!("{count} later accesses")), "{analysis} in {said}");
    }
    assert!(said.contains("y: main:4 (T0, event 3) and worker:2 (T1, event 6), 1 ×"), "{said}");
}

#[test]
fn a_machine_reads_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path(), "races.std", RACES);
    let output = rashomon(&["analyse", path.to_str().expect("text"), "--analysis", "shb", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&document["format"], &document["version"]), (&"rashomon-analysis".into(), &2.into()));
    let analysis = &document["analyses"][0];
    assert_eq!((&analysis["analysis"], &analysis["racing_events"]), (&"shb".into(), &2.into()));
    let variables: Vec<_> = analysis["pairs"].as_array().expect("pairs").iter().map(|pair| &pair["variable"]).collect();
    assert!(variables.contains(&&"x".into()) && variables.contains(&&"y".into()), "{document}");
}

#[test]
fn all_regions_of_a_cycle_are_named() {
    // Each of the two could run in one piece, but not both; the third is ordered behind them and no more.
    let trace = "T2|begin(s)|b:1\nT2|w(y)|b:2\nT1|begin(r)|a:1\nT1|w(x)|a:2\nT2|w(x)|b:3\nT2|end(s)|b:4\nT1|w(y)|a:3\n\
                 T1|end(r)|a:4\nT1|begin(q)|c:1\nT1|r(x)|c:2\nT1|end(q)|c:3\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path(), "regions.std", trace);
    let output = rashomon(&["analyse", path.to_str().expect("text"), "--analysis", "serialisability"]);
    let told = text(&output.stdout);
    assert!(told.contains("2 of 3 regions lie on a cycle, begun at 2 places"), "{told}");
    assert!(told.contains("T1: r begun at a:1, event 2, 1 ×") && told.contains("T2: s begun at b:1, event 0, 1 ×"), "{told}");
    let output = rashomon(&["analyse", path.to_str().expect("text"), "--analysis", "serialisability", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let analysis = &document["analyses"][0];
    assert_eq!((&analysis["violating_regions"], &analysis["forgotten_regions"]), (&2.into(), &0.into()));
    let places: Vec<_> = analysis["places"].as_array().expect("places").iter().map(|place| &place["region"]["name"]).collect();
    assert_eq!(places.len(), 2);
    assert!(places.contains(&&"r".into()) && places.contains(&&"s".into()), "{document}");
}

#[test]
fn regions_that_are_cut() {
    let trace = "T0|begin(r)|a:1\nT0|r(x)|a:2\nT1|w(x)|b:1\nT0|w(x)|a:3\nT0|end(r)|a:4\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path(), "regions.std", trace);
    let output = rashomon(&["analyse", path.to_str().expect("text"), "--analysis", "serialisability", "--fail-on", "any"]);
    assert_eq!(output.status.code(), Some(66), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 of 1 region lies on a cycle, begun at 1 place\n"), "{}", text(&output.stdout));
}

#[test]
fn any_number_of_workers_and_little_memory_say_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("made-up.packed");
    let path = path.to_str().expect("text");
    let made =
        rashomon(&["trace", "gen", "--events", "200000", "--race-rate", "0.05", "--variables", "100000", "--output", path]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let analyse = |more: &[&str]| {
        let output = rashomon(&[&["analyse", path, "--analysis", "hb,lockset,hybrid", "--json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let mut document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let passes = document["passes"].take();
        (document, passes)
    };
    let (alone, one) = analyse(&["--workers", "1"]);
    assert_eq!(one, 1);
    assert_eq!(analyse(&["--workers", "3"]).0, alone);
    let (little, several) = analyse(&["--workers", "2", "--memory", "4M"]);
    assert_eq!(little, alone);
    assert!(several.as_u64() > Some(1), "{several}");
}

#[test]
fn what_needs_all_variables_goes_to_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("made-up.packed");
    let path = path.to_str().expect("text");
    let made =
        rashomon(&["trace", "gen", "--events", "300000", "--race-rate", "0.05", "--variables", "300000", "--output", path]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let options = ["analyse", path, "--analysis", "shb,wcp,serialisability", "--regions", "all", "--json"];
    let analyse = |more: &[&str]| {
        let output = rashomon(&[&options, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let mut document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let on_disk = document["bytes_on_disk"].take();
        (document, on_disk)
    };
    let (whole, nothing) = analyse(&[]);
    assert_eq!(nothing, 0);
    let (spilt, on_disk) = analyse(&["--memory", "8M", "--spill-to", folder.path().to_str().expect("text")]);
    assert_eq!(spilt, whole);
    assert!(on_disk.as_u64() > Some(8 << 20), "{on_disk}");
    let output = rashomon(&[&options[..], &["--memory", "8M", "--spill-to", "/nowhere/at/all"]].concat());
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("/nowhere/at/all"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_read_is_refused() {
    let output = rashomon(&["analyse", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(125));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path(), "bad.std", "T0|rel(l)|1\n");
    let output = rashomon(&["analyse", path.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("bad.std"), "{}", text(&output.stderr));
}
