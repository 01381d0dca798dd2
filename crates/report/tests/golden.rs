//! Reports as people see them: findings of real programs, stored once as `golden/NAME.json`, in every look.
//!
//! A fixture holds the `findings` and the `run` of a store as they are there, without schedules for machines, and with the
//! folders of whoever made it replaced by those of a user. `docs/how-to/check.md` says how a report is read.

use rashomon_event::{Finding, FindingId, FindingKind};
use rashomon_report::{Format, Options, Report, RunSummary, Shown, json::Json, text::Text};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Fixture {
    findings: Vec<Finding>,
    run: RunSummary,
}

/// Rows of a screen. A finding is one screen at most.
const ROWS: usize = 40;
const WIDTHS: [usize; 3] = [80, 100, 160];

fn fixtures() -> Vec<(String, Fixture)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), serde_json::from_str(&text).unwrap())
    };
    paths.into_iter().map(read).collect()
}

fn look() -> Options {
    Options { folder: "/home/user/work".into(), ..Options::default() }
}

fn render(format: &dyn Format, fixture: &Fixture, options: &Options) -> String {
    format.report(Report { findings: &fixture.findings, run: &fixture.run }, options)
}

/// The looks that are kept.
fn looks(fixture: &Fixture) -> Vec<(String, String)> {
    let plain = ("plain".to_owned(), render(&Text, fixture, &look()));
    let terminals = WIDTHS.map(|width| {
        let text = render(&Text, fixture, &Options { width, colour: true, ..look() });
        // Escapes as others can read them.
        (format!("terminal-{width}"), text.replace('\x1b', "^"))
    });
    let json = ("json".to_owned(), render(&Json, fixture, &look()));
    std::iter::once(plain).chain(terminals).chain([json]).collect()
}

/// Each kind has its report, made by a test of its own: `crates/cli/tests/suite/reports.rs`.
const KINDS: [&str; 12] = [
    "deadlock-of-three",
    "diverged",
    "explored-crash",
    "incomplete",
    "libuv",
    "lost-wake-up",
    "misuse",
    "openmp",
    "pool-of-tasks",
    "provoked",
    "rust-threads",
    "sqlite",
];

#[test]
fn twelve_kinds_of_findings_look_like_this() {
    let fixtures = fixtures();
    let names: Vec<&str> = fixtures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, KINDS);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, fixture) in &fixtures {
        for (look, text) in looks(fixture) {
            settings.bind(|| insta::assert_snapshot!(format!("{name}.{look}"), text));
        }
    }
}

#[test]
fn a_finding_is_one_screen() {
    let mut faults = Vec::new();
    for (name, fixture) in fixtures() {
        for width in WIDTHS {
            let text = render(&Text, &fixture, &Options { width, ..look() });
            for block in text.split("\n\n") {
                let rows: usize = block.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
                if rows > ROWS {
                    faults.push(format!("{name} at {width}: {rows} rows"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What is folded is there on request.
#[test]
fn nothing_is_lost() {
    for (name, fixture) in fixtures() {
        let options = Options { full_stacks: true, full_schedule: true, ungrouped: true, shown: Shown::Everything, ..look() };
        let text = render(&Text, &fixture, &options);
        for finding in &fixture.findings {
            assert!(text.contains(finding.id.as_str()), "{name}: {}", finding.id);
            let frames = finding.sides.iter().flat_map(|side| &side.stack);
            for function in frames.filter_map(|frame| frame.function.as_deref()) {
                assert!(text.contains(function), "{name}: {function}");
            }
            let last = finding.earlier_steps + finding.steps.len();
            assert!(finding.steps.is_empty() || text.contains(&format!("    {last}. ")), "{name}: turn {last}");
        }
    }
}

/// What, where, why it is sure, and how to see it again: in the default look.
#[test]
fn a_proof_says_what_one_asks_first() {
    for (name, fixture) in fixtures() {
        let text = render(&Text, &fixture, &Options { width: 100, ..look() });
        for finding in fixture.findings.iter().filter(|finding| finding.verdict.is_proven()) {
            let Some(block) = text.split("\n\n").find(|block| block.starts_with(|_| true) && block.contains(finding.id.as_str()))
            else {
                panic!("{name}: nothing of {}", finding.id)
            };
            assert!(block.contains("(proven, ") && block.contains("\n  = "), "{name}: {block}");
            let command = finding.reproduce.as_deref().unwrap_or("make it happen again");
            assert!(block.contains(command) || block.contains("the same object races"), "{name}: {block}");
        }
    }
}

/// Names come from the program, and paths from whoever made it: none of them acts on a terminal.
#[test]
fn names_do_nothing_to_a_terminal() {
    const EVIL: &str = "\x1b]0;title\x07\x1b[2J\u{202e}f\n";
    for (name, mut fixture) in fixtures() {
        for finding in &mut fixture.findings {
            finding.subject.push_str(EVIL);
            finding.notes.push(EVIL.into());
            for side in &mut finding.sides {
                side.action.push_str(EVIL);
                side.thread.push_str(EVIL);
                for frame in &mut side.stack {
                    (frame.function, frame.file) = (Some(EVIL.into()), Some(format!("/home/user/work/{EVIL}")));
                }
            }
            for step in &mut finding.steps {
                step.until.push_str(EVIL);
            }
        }
        fixture.run.store.push_str(EVIL);
        fixture.run.notes.push(EVIL.into());
        for options in [look(), Options { full_stacks: true, full_schedule: true, shown: Shown::Everything, ..look() }] {
            for format in [&Text as &dyn Format, &Json] {
                let text = render(format, &fixture, &options);
                let acts = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
                assert!(!text.contains(acts), "{name}: {text}");
            }
        }
    }
}

/// A reader of the JSON finds every field in the reference.
#[test]
fn the_reference_names_every_field() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/formats.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    fn fields(value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| {
                found.insert(name.clone());
                fields(value, found);
            }),
            serde_json::Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
            _ => {}
        }
    }
    let mut found = std::collections::BTreeSet::new();
    for (_, fixture) in fixtures() {
        let text = render(&Json, &fixture, &Options { shown: Shown::Everything, ..look() });
        fields(&serde_json::from_str(&text).unwrap(), &mut found);
    }
    let unnamed: Vec<&String> = found
        .iter()
        .filter(|name| !reference.contains(&format!("`{name}`")) && !reference.contains(&format!(".{name}`")))
        .collect();
    assert!(unnamed.is_empty(), "not in docs/reference/formats.md: {unnamed:?}");
}

/// Whoever calls: locks that two functions take in another order each are one cause.
#[test]
fn findings_of_one_cause_are_one() {
    let (_, fixture) = fixtures().into_iter().find(|(name, _)| name == "deadlock-of-three").expect("its fixture");
    let deadlock = fixture.findings.iter().find(|finding| finding.sides.len() == 3).expect("its deadlock");
    let mut of_others = Finding { id: FindingId::new("deadlock-00000001").unwrap(), ..deadlock.clone() };
    of_others.subject = "mutex other_locks".into();
    let mut elsewhere = Finding { id: FindingId::new("deadlock-00000002").unwrap(), ..of_others.clone() };
    elsewhere.sides[0].stack.iter_mut().for_each(|frame| frame.line = frame.line.map(|line| line + 1));
    let text = |findings: &[Finding]| Text.report(Report { findings, run: &RunSummary::without_run() }, &look());
    let grouped = text(&[deadlock.clone(), of_others.clone()]);
    assert!(grouped.contains("locks taken at the same places deadlock once more:"), "{grouped}");
    assert!(grouped.contains("PROVEN: 2 deadlocks, of 1 cause"), "{grouped}");
    let apart = text(&[deadlock.clone(), elsewhere]);
    assert!(apart.ends_with("PROVEN: 2 deadlocks\n"), "{apart}");

    let (_, fixture) = fixtures().into_iter().find(|(name, _)| name == "pool-of-tasks").expect("its fixture");
    let race = fixture.findings.iter().find(|finding| finding.kind == FindingKind::DataRace).expect("a race");
    let race = &Finding { subject: "8 bytes in the stack of the main thread".into(), ..race.clone() };
    let mut of_one_line = Finding { id: FindingId::new("race-00000001").unwrap(), ..race.clone() };
    of_one_line.sides[1] = of_one_line.sides[0].clone();
    let mut elsewhere = Finding { id: FindingId::new("race-00000002").unwrap(), ..race.clone() };
    for frame in elsewhere.sides.iter_mut().flat_map(|side| &mut side.stack) {
        frame.line = frame.line.map(|line| line + 100);
    }
    let text = text(&[race.clone(), of_one_line, elsewhere]);
    assert!(text.ends_with("PROVEN: 3 data races, of 2 causes\n"), "{text}");
}

#[test]
fn several_of_a_kind_are_counted_in_its_words() {
    let (_, fixture) = fixtures().into_iter().find(|(name, _)| name == "misuse").expect("its fixture");
    let misuse = fixture.findings.iter().find(|finding| finding.verdict.is_proven()).expect("a proven misuse");
    let result = |kind| {
        let told = |id: &str| Finding { kind, id: FindingId::new(id).unwrap(), ..misuse.clone() };
        let text = Text.report(
            Report { findings: &[told("unlock-00000001"), told("unlock-00000002")], run: &RunSummary::without_run() },
            &look(),
        );
        text.lines().last().expect("a result").to_owned()
    };
    assert_eq!(result(FindingKind::UnlockNotHeld), "PROVEN: 2 unlocks of a lock that is not held");
    assert_eq!(result(FindingKind::UseAfterFree), "PROVEN: 2 uses after free");
    assert_eq!(result(FindingKind::Endless), "PROVEN: 2 endless executions");
}
