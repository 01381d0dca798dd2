//! Who may know whom.

use crate::files::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Every crate of the workspace and the crates of ours that it may be built from. A missing name is a missing permission.
const LAYERS: [(&str, &[&str]); 30] = [
    ("rashomon-abi", &[]),
    ("rashomon-logic", &["rashomon-abi"]),
    ("rashomon-event", &[]),
    ("rashomon-files", &[]),
    ("rashomon-trace", &["rashomon-abi", "rashomon-event", "rashomon-files"]),
    ("rashomon-order", &["rashomon-event"]),
    // The trusted checker: it must not share code, and so no mistake, with what it checks.
    ("rashomon-witness", &["rashomon-event"]),
    ("rashomon-csp", &[]),
    ("rashomon-sat", &[]),
    ("rashomon-units", &[]),
    ("rashomon-filter", &["rashomon-event", "rashomon-order"]),
    ("rashomon-refinement", &["rashomon-csp", "rashomon-event", "rashomon-order"]),
    ("rashomon-predict", &["rashomon-event", "rashomon-order", "rashomon-refinement", "rashomon-sat"]),
    ("rashomon-packed", &["rashomon-event"]),
    ("rashomon-spill", &[]),
    ("rashomon-engine", &["rashomon-packed", "rashomon-spill"]),
    ("rashomon-confirm", &["rashomon-abi", "rashomon-event", "rashomon-files", "rashomon-order", "rashomon-trace"]),
    ("rashomon-explore", &["rashomon-abi", "rashomon-confirm", "rashomon-event", "rashomon-files", "rashomon-trace"]),
    ("rashomon-queue", &["rashomon-files"]),
    ("rashomon-symbolize", &["rashomon-event", "rashomon-files"]),
    ("rashomon-table", &[]),
    ("rashomon-flow", &["rashomon-abi", "rashomon-event", "rashomon-symbolize", "rashomon-trace", "rashomon-units"]),
    ("rashomon-report", &["rashomon-event"]),
    ("rashomon-reporter", &["rashomon-abi", "rashomon-event", "rashomon-report", "rashomon-symbolize"]),
    ("rashomon-testkit", &["rashomon-abi", "rashomon-event"]),
    (
        "rashomon-pipeline",
        &[
            "rashomon-abi",
            "rashomon-confirm",
            "rashomon-engine",
            "rashomon-event",
            "rashomon-explore",
            "rashomon-files",
            "rashomon-filter",
            "rashomon-flow",
            "rashomon-order",
            "rashomon-packed",
            "rashomon-predict",
            "rashomon-refinement",
            "rashomon-report",
            "rashomon-symbolize",
            "rashomon-table",
            "rashomon-trace",
            "rashomon-units",
            "rashomon-witness",
        ],
    ),
    (
        "rashomon-cli",
        &[
            "rashomon-abi",
            "rashomon-csp",
            "rashomon-event",
            "rashomon-files",
            "rashomon-pipeline",
            "rashomon-queue",
            "rashomon-report",
            "rashomon-reporter",
            "rashomon-spill",
        ],
    ),
    (
        "rashomon-evaluation",
        &[
            "rashomon-abi",
            "rashomon-confirm",
            "rashomon-csp",
            "rashomon-engine",
            "rashomon-event",
            "rashomon-filter",
            "rashomon-flow",
            "rashomon-order",
            "rashomon-packed",
            "rashomon-pipeline",
            "rashomon-predict",
            "rashomon-queue",
            "rashomon-refinement",
            "rashomon-sat",
            "rashomon-spill",
            "rashomon-testkit",
            "rashomon-trace",
            "rashomon-units",
            "rashomon-witness",
            "xtask",
        ],
    ),
    ("xtask", &["rashomon-abi", "rashomon-packed", "rashomon-trace"]),
    ("rashomon-book", &[]),
];

/// What only programs that talk to a user need.
const OF_PROGRAMS: [&str; 5] = ["anyhow", "clap", "ctrlc", "indicatif", "termcolor"];
const PROGRAMS: [&str; 4] = ["rashomon-book", "rashomon-cli", "rashomon-evaluation", "xtask"];

/// Crates that compute: no matter through whom, none of them may come to know the user, the file system's maps excepted, or
/// the program under test.
const ANALYSES: [&str; 12] = [
    "rashomon-event",
    "rashomon-trace",
    "rashomon-packed",
    "rashomon-engine",
    "rashomon-order",
    "rashomon-filter",
    "rashomon-witness",
    "rashomon-csp",
    "rashomon-sat",
    "rashomon-refinement",
    "rashomon-predict",
    "rashomon-units",
];

struct Package {
    /// What it is built from, tests and build scripts apart.
    dependencies: BTreeSet<String>,
}

fn packages(folder: &str) -> BTreeMap<String, Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root().join(folder))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        Package { dependencies: all.filter(|dependency| dependency["kind"].is_null()).map(name).collect() }
    };
    metadata["packages"].as_array().unwrap().iter().map(|package| (name(package), of(package))).collect()
}

#[test]
fn crates_know_only_the_layers_below() {
    let packages = packages(".");
    for (name, package) in &packages {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| layer == name) else {
            panic!("{name} has no place in the layers yet; decide what it may know");
        };
        let ours = package.dependencies.iter().filter(|dependency| packages.contains_key(*dependency));
        for dependency in ours {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not know {dependency}");
        }
    }
    for (layer, _) in LAYERS {
        assert!(packages.contains_key(layer), "{layer} is gone; take it off the list");
    }
}

#[test]
fn the_witness_checker_stands_alone() {
    let allowed = BTreeSet::from(["rashomon-event".to_owned(), "thiserror".to_owned()]);
    let packages = packages(".");
    let checker = &packages["rashomon-witness"].dependencies;
    assert!(checker.is_subset(&allowed), "the checker is trusted because it depends on nothing that it checks: {checker:?}");
}

#[test]
fn only_programs_talk_to_users() {
    for (name, package) in packages(".") {
        if !PROGRAMS.contains(&name.as_str()) {
            let found: Vec<_> = OF_PROGRAMS.iter().filter(|foreign| package.dependencies.contains(**foreign)).collect();
            assert!(found.is_empty(), "{name} is a library and must not use {found:?}");
        }
    }
}

#[test]
fn analyses_see_neither_the_command_line_nor_the_runtime() {
    let packages = packages(".");
    for analysis in ANALYSES {
        let mut reached = BTreeSet::new();
        let mut open = vec![analysis.to_owned()];
        while let Some(name) = open.pop() {
            if reached.insert(name.clone())
                && let Some(package) = packages.get(&name)
            {
                open.extend(package.dependencies.iter().cloned());
            }
        }
        for foreign in ["rashomon-runtime", "rashomon-confirm", "rashomon-pipeline", "rashomon-cli"].iter().chain(&OF_PROGRAMS) {
            assert!(!reached.contains(*foreign), "{analysis} reaches {foreign}");
        }
    }
}

#[test]
fn the_two_worlds_share_one_crate() {
    // `rashomon-logic` is the runtime's own; the host only tests it.
    let runtime = packages("runtime");
    let only = BTreeSet::from(["rashomon-abi".to_owned(), "rashomon-logic".to_owned()]);
    assert_eq!(runtime["rashomon-runtime"].dependencies, only, "the runtime is linked into other people's programs");
    let host = packages(".");
    assert!(host["rashomon-abi"].dependencies.is_empty(), "what both worlds share needs nothing");
    for (name, package) in &host {
        assert!(!package.dependencies.contains("rashomon-runtime"), "{name} must not know the runtime");
        assert!(!package.dependencies.contains("rashomon-logic"), "{name} must not know the runtime's logic");
    }
}
