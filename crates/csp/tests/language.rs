//! What is wrong with scripts that have data: each error has its place, what was found and what is expected; and every bound.

use proptest::prelude::*;
use rashomon_csp::refine::{Limits, Verdict, Why};
use rashomon_csp::script::{Script, ScriptError};
use std::sync::LazyLock;

fn error(text: &str) -> ScriptError {
    match Script::read(text) {
        Err(error) => error,
        Ok(script) => panic!("{text}: accepted, {} assertions", script.assertions.len()),
    }
}

#[test]
fn every_error_has_a_place() {
    let cases = [
        ("channel c : {0..3\n", "line 2, column 1: expected `}`, found the end of the script"),
        ("channel c : {0..}", "line 1, column 13: expected a range with an end, found `0..`"),
        ("channel c : Int", "line 1, column 13: expected a finite set, found `Int`"),
        ("channel c : 7", "line 1, column 13: expected a set, found `7`"),
        ("channel c : {0..3}.{0..99999}", "line 1, column 9: expected at most 100000 events of all channels, found more"),
        ("channel c : {0..3}\nP = c.4 -> STOP", "line 2, column 5: expected a value of {0,1,2,3}, found `4`"),
        ("channel c : {0..3}\nP = c!1!2 -> STOP", "line 2, column 9: expected 1 fields of `c`, found `1.2`"),
        ("channel c : {0..3}\nP = c -> STOP", "line 2, column 5: expected an event with the 1 fields of `c`, found `c`"),
        ("channel c\nP = c?x -> STOP", "line 2, column 7: expected a field of `c`, found no more fields"),
        ("channel c : {0..3}\nP = c?x:{7}!x STOP", "line 2, column 15: expected `->`, `?`, `!` or `$`, found `STOP`"),
        ("channel c : {0..3}\nP = c$x:{7} -> STOP", "line 2, column 7: expected something to choose from, found nothing"),
        ("channel c : Bool\nP = 1 -> STOP", "line 2, column 5: expected an event, found `1`"),
        ("P = if 1 then STOP else SKIP", "line 1, column 8: expected `true` or `false`, found `1`"),
        ("P = (1 + true) & STOP", "line 1, column 10: expected a number, found `true`"),
        ("P = 1 [] STOP", "line 1, column 5: expected a process, found `1`"),
        ("channel c\nP = c [] STOP", "line 2, column 5: expected a process, found an event: `->` is missing behind it"),
        ("P(n) = STOP\nQ = P(1, 2)", "line 2, column 5: expected 1 arguments of `P`, found 2"),
        ("f(0) = 1\nx = f(1)", "line 2, column 5: expected arguments of `f`, found `1`"),
        ("x = y(1)\ny = 3", "line 1, column 5: expected a function, found `3`"),
        ("x = x + 1", "line 1, column 5: expected a definition that does not need itself, found one that does"),
        ("f(x, x) = 1", "line 1, column 6: expected another name, found `x` again"),
        ("f(x + 1) = 1", "line 1, column 3: expected a pattern"),
        ("f(x^y) = 1", "line 1, column 3: expected one name at most among sequences of known length, found more"),
        ("x = _", "line 1, column 5: expected a value, found a pattern"),
        ("x = head(<>)", "line 1, column 10: expected a sequence that is not empty, found `<>`"),
        ("x = card(<1>)", "line 1, column 10: expected a set, found `<1>`"),
        ("x = union({1})", "line 1, column 5: expected 2 arguments of `union`, found 1"),
        ("x = 1 / 0", "line 1, column 9: expected a divisor that is not 0, found `0`"),
        ("x = 9223372036854775807 + 1", "line 1, column 5: expected a number of 64 bits, found more"),
        ("x = {1..1000000}", "line 1, column 5: expected at most 100000 elements, found more"),
        ("x = {-9223372036854775807..1}", "line 1, column 5: expected `-}` behind this `{-`, found the end of the script"),
        ("x = { -9223372036854775807..9223372036854775807}", "line 1, column 5: expected at most 100000 elements, found more"),
        ("x = < -9223372036854775807..9223372036854775807>", "line 1, column 5: expected at most 100000 elements, found more"),
        ("x = Set({1..64})", "line 1, column 9: expected at most 100000 elements, found more"),
        ("x = {y | y <- 3}", "line 1, column 15: expected a finite set or a sequence, found `3`"),
        ("x = let y = 1", "line 1, column 14: expected a definition or `within`, found the end of the script"),
        ("x = let y = 1 y = 2 within y", "line 1, column 15: expected a name that is not defined yet, found `y`"),
        ("datatype T = A | A", "line 1, column 18: expected a constructor that is not declared yet, found `A`"),
        ("datatype T = A | B.T", "line 1, column 20: expected a definition that does not need itself, found one that does"),
        ("subtype T = A", "line 1, column 13: expected a constructor of a datatype, found `A`"),
        ("channel c : {0..1}\nP = STOP \\ {c.0, 3}", "line 2, column 12: expected an event, found `3`"),
        ("channel c : {0..1}\nP = STOP[[c <- 3]]", "line 2, column 16: expected an event, found `3`"),
        ("P = |~| x:{} @ STOP", "line 1, column 5: expected something to choose from, found nothing"),
        ("P = [] x:{1} STOP", "line 1, column 14: expected `@`, found `STOP`"),
        ("P = || x:{1} @ STOP", "line 1, column 16: expected `[`, found `STOP`"),
        ("assert STOP :[deterministic [X]]", "line 1, column 30: expected `F` or `FD`, found `X`"),
        ("include \"other.csp\"", "line 1, column 9: expected a script that can be read, found one that is not allowed here"),
        ("include other", "line 1, column 9: expected the name of a script between quotes, found `other`"),
        (
            "external f",
            "line 1, column 1: expected `channel`, `datatype`, `subtype`, `nametype`, `include`, `transparent`, `assert`",
        ),
        ("x = 12345678901234567890", "line 1, column 5: expected a process, found `12345678901234567890`"),
        ("channel c : {c.0}", "line 1, column 14: expected a type that needs no events, found one that does"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let said = match Script::read(text) {
            Err(error) => error.to_string(),
            Ok(_) => String::from("accepted"),
        };
        if !said.starts_with(expected) {
            wrong.push(format!("{text:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_does_not_end_is_bounded() {
    let endless = ["f(x) = f(x + 1)\ny = f(0)", "f(x) = <x>^f(x + 1)\ny = f(0)"];
    for text in endless {
        let error = error(text);
        assert!(error.expected.starts_with("at most ") && error.expected.ends_with(" evaluations within each other"), "{error}");
    }
    let long = error("S = {1..1000}\ny = {a + b + c | a <- S, b <- S, c <- S}");
    assert!(long.expected.ends_with(" evaluations in all"), "{long}");
    let nested = format!("x = {}1{}", "<".repeat(10_000), ">".repeat(10_000));
    assert!(error(&nested).expected.ends_with("within each other"));
    let sums = format!("x = 1{}", " + 1".repeat(10_000));
    assert!(error(&sums).expected.ends_with("within each other"));
    let deep = format!("x = {}1{}", "(1 + ".repeat(95), ")".repeat(95));
    Script::read(&deep).unwrap_or_else(|error| panic!("{error}"));
}

fn undecided(text: &str) -> Why {
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    let claim = script.assertions[0].claim;
    match script.check(claim, &Limits { states: 20_000, ..Limits::default() }) {
        Verdict::Undecided { why, .. } => why,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn instances_are_made_where_they_are_needed() {
    let unguarded =
        undecided("P(n) = P(n + 1) [] (g(150) == n & STOP)\ng(0) = 0\ng(x) = 1 + g(x - 1)\nassert P(0) :[deadlock free]");
    assert!(unguarded.to_string().contains("deeper than"), "{unguarded}");
    let endless = undecided("channel a\nP(n) = a -> P(n + 1)\nassert P(0) :[deadlock free]");
    assert_eq!(endless, Why::Terms);
    let growing = undecided("channel a\nP(s) = a -> P(s^<1>)\nassert P(<>) :[deadlock free]");
    assert!(growing.to_string().contains("at most 5000000 values in the arguments of all instances"), "{growing}");
    // What is wrong behind some events is told where an exploration comes there, with its place.
    let wrong = undecided("channel a : {0..2}\nP(n) = a.n -> P(n + 1)\nassert P(0) :[deadlock free]");
    assert_eq!(wrong.to_string(), "line 2, column 8: expected a value of {0,1,2}, found `3`");
}

#[test]
fn included_scripts_are_read_and_named() {
    let mut include = |name: &str| match name {
        "types.csp" => Ok(String::from("datatype T = A | B\ninclude \"more.csp\"")),
        "more.csp" => Ok(String::from("channel c : T\nP = c?x -> P")),
        "wrong.csp" => Ok(String::from("\n  Q = STOP [] 1")),
        "itself.csp" => Ok(String::from("include \"itself.csp\"")),
        _ => Err(String::from("nothing of that name")),
    };
    let mut read = |text: &str| Script::read_with(text, &mut include);
    let script = read("include \"types.csp\"\nassert P :[deterministic]").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(script.processes.events, ["c.A", "c.B"]);
    let error = |found: Result<Script, ScriptError>| found.map(|_| ()).unwrap_err().to_string();
    assert_eq!(error(read("include \"wrong.csp\"")), "wrong.csp: line 2, column 15: expected a process, found `1`");
    assert!(
        error(read("\ninclude \"none.csp\"")).starts_with("line 2, column 9: expected a script that can be read, found nothing")
    );
    assert!(error(read("include \"itself.csp\"")).contains("expected at most 64 included scripts, 8 within each other"));
}

#[test]
fn data_becomes_names_in_written_scripts() {
    let text = "channel c : {0, 1}\nchannel c_1\nP(x) = c.x -> P(1 - x) [] c_1 -> STOP\n\
        assert P(0) :[deadlock free]\nassert not STOP [T= P(1)";
    let mut script = Script::read(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(script.processes.unfold_all(100).is_ok_and(|all| all));
    let says: Vec<_> = script.assertions.iter().map(|assertion| script.says(assertion)).collect();
    assert_eq!(says, ["P(0) :[deadlock free]", "not STOP [T= P(1)"]);
    let written = script.written();
    assert!(written.starts_with("channel c_0, c_1, c_1'\n"), "{written}");
    assert!(written.contains("assert not STOP [T= P_1_"), "{written}");
    Script::read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
}

/// The classic scripts, in pieces.
static PIECES: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let pieces = |text: String| text.split_inclusive(|letter: char| !letter.is_alphanumeric()).map(String::from).collect();
    files.iter().map(|file| pieces(std::fs::read_to_string(file).unwrap())).collect()
});

/// Without reductions there is no end to what the counterexample comes through.
#[test]
fn a_counterexample_that_cannot_be_run_to_its_end_within_the_limits_is_no_answer() {
    let text = "channel a, b\nGROW = a -> (GROW ||| GROW)\nP = (b -> STOP) [] (GROW \\ {a})\nassert STOP [T= P\n";
    let mut script = Script::read(text).unwrap();
    let claim = script.assertions[0].claim;
    let verdict = script.check(claim, &Limits { states: 300, ..Limits::default() });
    assert!(matches!(verdict, Verdict::Undecided { why: Why::Unchecked | Why::States, .. }), "{verdict:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Scripts with a few pieces replaced by others, or cut off.
    #[test]
    fn any_script_is_accepted_or_refused(
        file in 0usize..1000,
        length in 1usize..4000,
        changes in prop::collection::vec((0usize..4000, 0usize..1000, 0usize..4000), 0..4),
    ) {
        let all = &*PIECES;
        let mut pieces: Vec<&str> = all[file % all.len()].iter().map(String::as_str).collect();
        for (at, file, other) in changes {
            let (at, others) = (at % pieces.len(), &all[file % all.len()]);
            pieces[at] = &others[other % others.len()];
        }
        pieces.truncate(length);
        if let Ok(mut script) = Script::read(&pieces.concat()) {
            for assertion in script.assertions.clone() {
                let _ = script.clone().check(assertion.claim, &Limits { states: 300, ..Limits::default() });
            }
            let _ = script.processes.unfold_all(50);
            let _ = script.written();
        }
    }
}
