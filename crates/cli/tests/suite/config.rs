//! `rashomon.toml`: where it is found, what wins over what, what is said of a wrong one, and what `rashomon config` tells.

use crate::support::place::{Ended, Place, RACE};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What `rashomon config` says of a key, blanks folded.
fn told(ended: &Ended, key: &str) -> Vec<String> {
    let lines = ended.out.lines().filter(|line| line.starts_with(&format!("{key} = ")));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn config(place: &Place, words: &[&str]) -> Ended {
    place.rashomon(&[&["config"], words].concat()).expect(0, &[])
}

#[test]
fn the_command_line_wins_over_the_file_and_the_nearest_section_over_others() {
    let place = Place::new();
    place.write(
        "rashomon.toml",
        "seed = 2\nbudget = 7\nquantum = 50\n\n[check]\nbudget = 8\nfail-on = \"predicted\"\n\n\
         [target.\"pro*\"]\nquantum = 60\nbudget = 9\n[target.other]\nquantum = 70\n",
    );
    place.write("program", "#!/bin/sh\n");
    std::fs::set_permissions(place.path("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let of_check = config(&place, &["check", "--seed", "3", "--", "./program"]);
    assert_eq!(told(&of_check, "seed"), ["seed = 3 # command line"]);
    assert_eq!(told(&of_check, "budget"), ["budget = 9 # rashomon.toml:11"]);
    assert_eq!(told(&of_check, "quantum"), ["quantum = 60 # rashomon.toml:10"]);
    assert_eq!(told(&of_check, "fail-on"), ["fail-on = \"predicted\" # rashomon.toml:7"]);
    assert_eq!(told(&of_check, "proofs"), ["proofs = 2 # default"]);
    assert!(of_check.out.starts_with("# rashomon check, with "), "{of_check}");
    let of_record = config(&place, &["record", "--", "/bin/true"]);
    assert_eq!(told(&of_record, "quantum"), ["quantum = 50 # rashomon.toml:3"]);
    assert_eq!(told(&of_record, "seed"), ["seed = 2 # rashomon.toml:1"]);
    // Nothing of it is for other commands, and on request for none.
    let without = config(&place, &["check", "--no-config"]);
    assert_eq!(told(&without, "seed"), ["seed = 1 # default"]);
    assert!(without.out.starts_with("# rashomon check, without a rashomon.toml"), "{without}");
    place.rashomon(&["config", "trace"]).expect(2, &[]);
    place.rashomon(&["config", "env"]).expect(125, &["rashomon.toml is for check, record"]);
}

#[test]
fn the_environment_wins_over_the_file() {
    let place = Place::new();
    place.write("rashomon.toml", "filter = \"tree\"\n");
    let mut command = place.tool(&["config", "check"]);
    command.env("RASHOMON_FILTER", "none");
    let ended = place.run(command).expect(0, &[]);
    assert_eq!(told(&ended, "filter"), ["filter = \"none\" # environment: RASHOMON_FILTER"]);
    assert_eq!(told(&config(&place, &["check"]), "filter"), ["filter = \"tree\" # rashomon.toml:1"]);
    // What was typed wins over what it excludes.
    let typed = config(&place, &["check", "--every-access"]);
    assert_eq!(told(&typed, "filter"), ["filter = \"none\" # default"]);
}

#[test]
fn the_nearest_file_above_the_program_holds() {
    let place = Place::new();
    for folder in ["project/build/deep", "elsewhere"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.write("rashomon.toml", "seed = 10\n");
    place.write("project/rashomon.toml", "seed = 11\n");
    for program in ["project/build/deep/program", "elsewhere/program"] {
        place.write(program, "#!/bin/sh\n");
        std::fs::set_permissions(place.path(program), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let seed = |words: &[&str]| told(&config(&place, words), "seed");
    assert_eq!(seed(&["check", "--", "project/build/deep/program"]), ["seed = 11 # rashomon.toml:1"]);
    assert_eq!(seed(&["check", "--", "elsewhere/program"]), ["seed = 10 # rashomon.toml:1"]);
    // A program that is elsewhere has none above it: that of the working directory holds.
    assert_eq!(seed(&["check", "--", "true"]), ["seed = 10 # rashomon.toml:1"]);
    assert_eq!(seed(&["check", "--config", "project/rashomon.toml", "--", "true"]), ["seed = 11 # rashomon.toml:1"]);
    place.rashomon(&["config", "check", "--config", "nothing.toml"]).expect(125, &["cannot read nothing.toml"]);
}

/// Suppressions, the baseline and lists are those of a check.
#[test]
fn a_check_obeys_it() {
    let place = Place::new();
    place.compile("program", RACE);
    std::fs::create_dir_all(place.path("known")).unwrap();
    place.write("known/races.supp", "race:nowhere\n");
    place.write(
        "rashomon.toml",
        "suppressions = [\"known/races.supp\"]\nsuppress = [\"race:^task$\"]\nstrict = false\n\
         trust-library = [\"libfoo\"]\n[check]\nreport = [\"junit=races.xml\"]\n",
    );
    let check = |more: &[&str]| place.rashomon(&[&["check"], more, &["--", "./program"]].concat());
    check(&[]).expect(0, &["suppressed by race:^task$ (1)", "race:nowhere of ", "matches nothing"]);
    assert!(place.path("races.xml").is_file());
    check(&["--strict"]).expect(66, &["matches nothing"]);
    check(&["--no-config"]).expect(66, &["PROVEN: 1 data race"]);
    // Lists of what is known add up.
    let both = config(&place, &["check", "--suppress", "race:^x$", "--trust-library", "libbar", "--", "./program"]);
    assert_eq!(
        told(&both, "suppress"),
        ["suppress = \"race:^task$\" # rashomon.toml:2", "suppress = \"race:^x$\" # command line"]
    );
    assert_eq!(
        told(&both, "trust-library"),
        ["trust-library = \"libfoo\" # rashomon.toml:4", "trust-library = \"libbar\" # command line"]
    );
}

#[test]
fn accept_and_check_share_the_baseline() {
    let place = Place::new();
    place.compile("program", RACE);
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &["PROVEN: 1 data race"]);
    place.write("rashomon.toml", "baseline = \"known.txt\"\n");
    place.rashomon(&["check", "--", "./program"]).expect(2, &["rashomon.toml:1: ", "cannot read the baseline"]);
    place.rashomon(&["accept", "--store", "store", "--all"]).expect(0, &["1 finding added to "]);
    assert!(place.path("known.txt").is_file());
    place.rashomon(&["check", "--", "./program"]).expect(0, &["1 finding was accepted in "]);
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_is_expected() {
    let place = Place::new();
    for (text, said) in [
        ("\n\nbudgt = 3\n", "rashomon.toml:3: unknown key budgt; expected one of "),
        ("[check]\nschedules = 3\n", "rashomon.toml:2: unknown key schedules; expected one of "),
        ("[chek]\nseed = 3\n", "rashomon.toml:1: unknown section [chek]; expected [target.PATTERN] or one of [check], [record]"),
        ("target = 3\n", "rashomon.toml:1: expected a section, such as [target.\"tests/*\"]"),
        ("seed = \"three\"\n", "rashomon.toml:1: invalid value 'three' for '--seed <N>'"),
        ("[target.x]\nfail-on = \"maybe\"\n", "[possible values: proven, predicted, never]"),
        ("budget = -1\n", "rashomon.toml:1: invalid value '-1' for '--budget <SECONDS>': not between 0 and"),
        ("strict = 1\n", "rashomon.toml:1: strict: expected true or false"),
        ("seed = [1, 2]\n", "rashomon.toml:1: seed: expected one value, not a list"),
        ("seed = true\n", "rashomon.toml:1: seed: expected a text or a number"),
        ("seed = 2024-01-01\n", "rashomon.toml:1: seed: expected a text or a number"),
        ("strategy = \"pct\"\n", "rashomon.toml:1: strategy means something else for each command"),
        ("trust = true\n", "rashomon.toml:1: trust is for the command line alone"),
        ("seed = 1\nseed = 2\n", "rashomon.toml:2: duplicate key"),
        ("seed = \n", "rashomon.toml:1: "),
        ("suppress = [\"rase:x\"]\n", "rashomon.toml:1: invalid value 'rase:x' for '--suppress <RULE>'"),
        ("suppressions = [\"none.supp\"]\n", "cannot read the suppressions"),
        ("filter = \"tree\"\nevery-access = true\n", "cannot be used with"),
    ] {
        place.write("rashomon.toml", text);
        // Nothing is executed: there is no such program.
        let ended = place.rashomon(&["check", "--", "./program"]).expect(2, &[said]);
        assert!(!place.path(".rashomon").exists(), "{text}: {ended}");
    }
    std::fs::write(place.path("rashomon.toml"), b"seed = \xff\n").unwrap();
    place.rashomon(&["check", "--", "./program"]).expect(125, &["cannot read ", "rashomon.toml"]);
    std::fs::write(place.path("rashomon.toml"), "#".repeat(2 << 20)).unwrap();
    place.rashomon(&["check", "--", "./program"]).expect(2, &["bytes are too many"]);
}

/// It may name commands that are executed.
#[test]
fn a_file_that_everybody_can_write_is_not_obeyed() {
    let place = Place::new();
    place.write("rashomon.toml", "seed = 4\n");
    std::fs::set_permissions(place.path("rashomon.toml"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let ended = place.rashomon(&["config", "check"]).expect(0, &["is not read: everybody can write it"]);
    assert_eq!(told(&ended, "seed"), ["seed = 1 # default"]);
    let named = config(&place, &["check", "--config", "rashomon.toml"]);
    assert_eq!(told(&named, "seed"), ["seed = 4 # rashomon.toml:1"]);
}

#[test]
fn the_reference_names_every_key() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    let place = Place::new();
    for section in ["", "[detect]\n", "[accept]\n"] {
        place.write("rashomon.toml", format!("{section}nonsense = 1\n"));
        let ended = place.rashomon(&["check", "--", "./program"]).expect(2, &["unknown key nonsense; expected one of "]);
        let (_, keys) = ended.err.split_once("expected one of ").expect("the keys");
        let keys: Vec<&str> = keys.trim().split(", ").collect();
        assert!(keys.len() > 1, "{keys:?}");
        let unnamed: Vec<&&str> = keys.iter().filter(|key| !reference.contains(&format!("`{key}`"))).collect();
        assert!(unnamed.is_empty(), "not in docs/reference/configuration.md: {unnamed:?}");
    }
}
