//! The formats that other services read: what they say, and that their own readers accept it.

mod fixtures;

use fixtures::{fixtures, race, run};
use quick_xml::Reader;
use quick_xml::events::Event;
use rashomon_event::{CodePlace, Descriptor, Evidence, Finding, FindingId, Grade, Provocation, Replays, Trial, Verdict};
use rashomon_report::timeline::{DRAWN, Moment, Timeline, Timelines};
use rashomon_report::{Format, Options, Report, RunSummary, Shown, Unexamined, github::GitHub, gitlab::GitLab, html::Html};
use rashomon_report::{junit::JUnit, sarif::Sarif, sources::Excerpts};
use serde_sarif::sarif::{ResultKind, ResultLevel};
use std::collections::BTreeMap;

fn render(format: &dyn Format, findings: &[Finding], run: &RunSummary) -> String {
    let options = Options { shown: Shown::Everything, folder: "/home/user/pool".into(), ..Options::default() };
    format.report(Report { findings, run }, &options)
}

/// Below the folder, with a name that a URI cannot hold as it is.
fn placed() -> Finding {
    let mut finding = race();
    for frame in finding.sides.iter_mut().flat_map(|side| &mut side.stack) {
        frame.file = Some("/home/user/pool/a b/listing#1.c".into());
    }
    finding
}

fn complete() -> RunSummary {
    RunSummary { unexamined: Unexamined::default(), ..run() }
}

#[test]
fn sarif() {
    let text = render(&Sarif, &[&fixtures()[..], &[placed()]].concat(), &run());
    insta::assert_snapshot!(text);
}

#[test]
fn another_reader_of_sarif_sees_the_same() {
    let text = render(&Sarif, &[&fixtures()[..2], &[placed()]].concat(), &run());
    let document: serde_sarif::sarif::Sarif = serde_json::from_str(&text).expect("what the schema allows");
    let [run] = &document.runs[..] else { panic!("one run") };
    let results = run.results.as_ref().expect("results");
    let levels: Vec<_> = results.iter().map(|result| (result.kind.clone(), result.level)).collect();
    let expected = [ResultLevel::Error, ResultLevel::Warning, ResultLevel::Note];
    assert_eq!(levels, expected.map(|level| (Some(ResultKind::Fail), Some(level))));
    let race = &results[0];
    let place = race.locations.as_ref().and_then(|all| all[0].physical_location.clone()).expect("a place");
    let artifact = place.artifact_location.expect("a file");
    assert_eq!(artifact.uri.as_deref(), Some("a%20b/listing%231.c"));
    assert_eq!(artifact.uri_base_id.as_deref(), Some("SRCROOT"));
    let flows = &race.code_flows.as_ref().expect("a schedule")[0].thread_flows;
    let turns: Vec<_> =
        flows.iter().map(|flow| (flow.id.clone().unwrap_or_default(), flow.locations[0].execution_order)).collect();
    assert_eq!(turns, [("0".to_owned(), Some(38)), ("main".to_owned(), Some(37))]);
}

/// The elements of a document, with their attributes; panics where it is not well-formed.
fn elements(text: &str) -> Vec<String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut all = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(element) | Event::Empty(element) => {
                let attributes = element.attributes().map(|attribute| attribute.expect("well-formed"));
                let words: Vec<String> = attributes.map(|one| format!(" {}", one.key.as_ref())).collect();
                all.push(format!("{}{}", element.name().as_ref(), words.concat()));
            }
            Event::Eof => return all,
            _ => {}
        }
    }
}

#[test]
fn junit() {
    let mut hostile = placed();
    hostile.subject = "global a<b & \"c\"> \u{1b}[31m".into();
    let text = render(&JUnit, &[&fixtures()[..2], &[hostile]].concat(), &run());
    assert_eq!(elements(&text).iter().filter(|element| element.starts_with("testcase ")).count(), 3);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_that_proves_nothing_passes_if_it_was_whole() {
    let whole = render(&JUnit, &[], &complete());
    assert_eq!(elements(&whole).last().map(String::as_str), Some("testcase classname name"));
    let cut_short = render(&JUnit, &[], &run());
    assert_eq!(elements(&cut_short).last().map(String::as_str), Some("skipped message"));
}

/// Two threads, a lock that goes from one to the other, an access, and numbers that name nothing.
fn timeline() -> Timeline {
    let moment = |number, thread, does, holds| Moment { number, thread, does, holds, ..Moment::default() };
    let access = Moment { place: Some(0), is_of_finding: true, ..moment(9, 1, 2, 1) };
    Timeline {
        threads: vec!["main".into(), "0".into()],
        words: vec!["acquires mutex <m>".into(), "releases mutex <m>".into(), "write of global </script>\u{1b}".into()],
        places: vec![fixtures::frame("task", 11)],
        held: vec![vec![], vec!["mutex <m>".into()]],
        held_before: vec![1, 0],
        moments: vec![
            moment(3, 0, 1, 0),
            Moment { after: Some((3, 0)), ..moment(7, 1, 0, 1) },
            access,
            Moment { after: Some((3, 7)), place: Some(7), ..moment(0, 7, 7, 7) },
        ],
        earlier: 2,
        later: 1,
    }
}

#[test]
fn what_stands_behind_the_first_findings_is_text() {
    let findings: Vec<Finding> = (0..300)
        .map(|number| Finding {
            id: FindingId::new(format!("race-{number:08x}")).unwrap(),
            forced: Some(Box::new(timeline())),
            ..race()
        })
        .collect();
    let text = render(&Html, &findings, &run());
    assert_eq!(text.matches("<noscript class=\"body\"").count(), 100);
    assert_eq!(text.matches("Forced execution, which shows it").count(), DRAWN);
}

fn provoked() -> Finding {
    let site = CodePlace { module: Some(0), offset: 1 };
    let held = Descriptor { thread: None, identity: 0, site, frames: vec![], ordinal: 0 };
    let modules = vec![];
    let provocation = Provocation { version: 1, modules, held, arriving: site, favoured: None, hold_milliseconds: 100 };
    Finding { provocation: Some(provocation), ..race() }
}

/// What the execution is called that shows a finding, and what is said where it is not drawn.
#[test]
fn executions_are_called_by_their_kind() {
    let grade = Grade::Unordered;
    let verdict = Verdict::Suspected.advance(Trial::Shown { grade, replays: Replays::all(1) });
    let replayed = Finding { verdict, ..race() };
    let seen = Verdict::Suspected.advance(Trial::Shown { grade: Grade::Observed, replays: Replays::default() });
    let seen = Finding { verdict: seen, evidence: Evidence::Observed, ..race() };
    for (finding, called, why) in [
        (race(), "Forced execution, which", "is not drawn: no trace of it was kept"),
        (replayed, "Replayed execution, which", "is not drawn: no trace of it was kept"),
        (seen, "Replayed execution, which", "no replay of it to be drawn"),
        (provoked(), "Provoked execution, which", "none in which the accesses met again was recorded"),
    ] {
        let drawn = Finding { forced: Some(Box::new(timeline())), ..finding.clone() };
        let (drawn, not_drawn) = (render(&Html, &[drawn], &run()), render(&Html, &[finding], &run()));
        assert!(drawn.contains(called) && !drawn.contains(why), "{called}");
        assert!(!not_drawn.contains(called) && not_drawn.contains(why), "{why}");
    }
}

#[test]
fn html() {
    let mut hostile = placed();
    hostile.subject = "global a</code><script>alert(1)</script> \u{1b}[31m".into();
    let mut excerpts = Excerpts::default();
    let source: String = (1..=20).map(|line| format!("line {line} if (a < b)\n")).collect();
    excerpts.add("/home/user/pool/a b/listing#1.c", &source);
    hostile.forced = Some(Box::new(timeline()));
    let timelines = Timelines { recorded: BTreeMap::from([(hostile.id.clone(), timeline())]), whole: Some(timeline()) };
    let findings = [&fixtures()[..2], &[hostile]].concat();
    let folder = "/home/user/pool".to_owned();
    let options = Options { shown: Shown::Everything, folder, excerpts, timelines, ..Options::default() };
    let text = Html.report(Report { findings: &findings, run: &run() }, &options);
    assert!(!text.contains("<script>alert") && !text.contains('\u{1b}'));
    let (before, body) = text.split_once("<body>").expect("a body");
    assert!(!before.contains("http") && !before.contains("src="), "nothing comes from a network");
    let (body, _) = body.split_once("<script>").expect("a script");
    // What is data for the script ends where it should.
    assert_eq!(body.matches("<script").count(), body.matches("</script>").count());
    // An element a line: who reads the snapshot sees what changed.
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn github_annotations() {
    insta::assert_snapshot!(render(&GitHub, &[&fixtures()[..2], &[placed()]].concat(), &run()));
    assert_eq!(render(&GitHub, &[], &complete()), "");
}

#[test]
fn gitlab_code_quality() {
    insta::assert_snapshot!(render(&GitLab, &[&fixtures()[..2], &[placed()]].concat(), &run()));
    assert_eq!(render(&GitLab, &[], &complete()), "[]\n");
}
