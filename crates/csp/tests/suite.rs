//! Classic scripts in `tests/suite`. Behind each assertion stands what is known of it: `holds`, `fails`, or with the first
//! counterexample. Each counterexample was accepted by the interpreter of terms, or the verdict would be none.

use rashomon_csp::refine::{Limits, Verdict};
use rashomon_csp::script::{Assertion, Script};
use std::path::{Path, PathBuf};

/// What the script itself expects, by line.
fn expected(text: &str, line: usize) -> &str {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    line.rsplit_once("-- ").map_or("", |(_, comment)| comment.trim())
}

fn told(script: &Script, assertion: &Assertion, limits: &Limits) -> (Option<bool>, String) {
    let mut script = script.clone();
    let verdict = script.check(assertion.claim, limits);
    let counterexample = match &verdict {
        Verdict::Fails { counterexamples, .. } => script.counterexample(&counterexamples[0]),
        Verdict::Undecided { why, .. } => why.to_string(),
        Verdict::Holds { .. } => String::new(),
    };
    (assertion.holds(&verdict), counterexample)
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{} scripts", files.len());
    files
}

/// Written without data, a script says the same.
#[test]
fn unfolded_scripts_have_the_same_verdicts() {
    let mut same = 0;
    for file in files() {
        let mut script = Script::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        // Some have infinitely many instances, of which a check needs few.
        if !script.processes.unfold_all(2_000).unwrap_or(false) {
            continue;
        }
        same += 1;
        let again = Script::read(&script.written()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for (one, other) in script.assertions.iter().zip(&again.assertions) {
            let limits = Limits { states: 3_000_000, ..Limits::default() };
            let (one, other) = (told(&script, one, &limits).0, told(&again, other, &limits).0);
            assert!(one == other && one.is_some(), "{}", file.display());
        }
    }
    assert!(same >= 18, "{same} scripts");
}

#[test]
fn verdicts_are_those_of_the_literature() {
    let mut wrong = Vec::new();
    for file in &files() {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        let script = match Script::read(&text) {
            Ok(script) => script,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        assert!(!script.assertions.is_empty(), "{name}");
        for assertion in &script.assertions {
            let (holds, counterexample) = told(&script, assertion, &Limits { states: 3_000_000, ..Limits::default() });
            let expected = expected(&text, assertion.line);
            let right = match expected.split_once(": ") {
                Some(("fails", trace)) => holds == Some(false) && trace == counterexample,
                _ => matches!((expected, holds), ("holds", Some(true)) | ("fails", Some(false))),
            };
            if !right {
                wrong.push(format!("{name}:{}: {} is {holds:?}: {counterexample}", assertion.line, script.says(assertion)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
