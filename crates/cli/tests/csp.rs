//! `rashomon csp check`: verdicts, counterexamples, places of errors.

mod support;

use support::place::Place;

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
    assert!(out.contains("undecided: the limit of states is reached ("), "{out}");
}

#[test]
fn errors_have_a_place() {
    let (code, _, err) = check("channel a\nP = a -> b -> STOP\n", &[]);
    assert_eq!(code, 125, "{err}");
    assert!(err.contains("model.csp: line 2, column 10: expected a declared event, found `b`"), "{err}");
}
