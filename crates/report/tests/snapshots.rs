//! Every renderer on the same fixtures.

mod fixtures;

use fixtures::{diverged, fixtures, frame, race, run};
use rashomon_event::finding::Step;
use rashomon_event::{Finding, FindingId, Frame, Side, Verdict};
use rashomon_report::{Format, Options, ProgramExit, Report, RunSummary, Shown, Unexamined, json::Json, text::Text, tsan::Tsan};

fn render(format: &dyn Format, findings: &[Finding], run: &RunSummary, shown: Shown, colour: bool) -> String {
    format.report(Report { findings, run }, &Options { shown, colour, ..Options::default() })
}

#[test]
fn text_shows_claims() {
    insta::assert_snapshot!(render(&Text, &fixtures(), &run(), Shown::Claims, false));
}

#[test]
fn text_shows_everything_in_colour() {
    insta::assert_snapshot!(render(&Text, &fixtures(), &run(), Shown::Everything, true).replace('\x1b', "ESC"));
}

/// A race of a pool's tasks: most frames are of the standard library, and other threads take most turns.
fn pooled() -> Vec<Finding> {
    let library = |function: &str| Frame { file: Some("/usr/include/c++/12/bits/invoke.h".into()), ..frame(function, 61) };
    let own = |function: &str, line| Frame { file: Some("/home/user/pool/src/stats.cpp".into()), ..frame(function, line) };
    let side = |thread: &str, line| Side {
        thread: thread.into(),
        action: "write of 8 bytes".into(),
        stack: vec![
            library("std::__detail::_Hash_code_base<int, int>::_M_bucket_index(unsigned long, unsigned long) const"),
            library("std::unordered_map<int, Entry, std::hash<int>, std::equal_to<int> >::operator[](int const&)"),
            own("Stats::add(std::string const&)", line),
            library("void std::__invoke_impl<void, void (*)(int), int>(std::__invoke_other, void (*&&)(int), int&&)"),
            library("std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int), int> > >::_M_run()"),
        ],
        held: vec![],
        created_at: vec![library("std::thread::_M_start_thread()"), own("Pool::start()", 12)],
    };
    let step = |thread: &str, place| Step { thread: thread.into(), until: "runs up to its write".into(), place: Some(place) };
    let mut steps: Vec<Step> = (0..9).map(|_| step("2", own("other()", 5))).collect();
    steps.extend([
        step("0", library("std::mutex::lock()")),
        step("0", own("Stats::add()", 40)),
        step("1", own("Stats::add()", 44)),
    ]);
    let one = |id: &str, offset, line| Finding {
        id: FindingId::new(id).unwrap(),
        subject: format!("8 bytes in heap block of 64 bytes allocated at Pool::start() (stats.cpp:9){offset}"),
        sides: vec![side("0", 40), side("1", line)],
        steps: steps.clone(),
        earlier_steps: 0,
        notes: vec!["a note that both have".into()],
        ..race()
    };
    vec![one("race-00000001", "", 44), one("race-00000002", ", 8 bytes into it", 45)]
}

fn at_width(width: usize, full: bool) -> String {
    let folder = "/home/user/pool".into();
    let options = Options { width, folder, full_stacks: full, full_schedule: full, ungrouped: full, ..Options::default() };
    Text.report(Report { findings: &pooled(), run: &run() }, &options)
}

#[test]
fn what_is_of_libraries_is_folded() {
    insta::assert_snapshot!(at_width(80, false));
}

#[test]
fn all_is_there_on_request() {
    insta::assert_snapshot!(at_width(usize::MAX, true));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 160] {
        let report = at_width(width, false);
        // What is pasted stays in one line.
        let too_wide: Vec<&str> = report
            .lines()
            .filter(|line| line.chars().count() > width && !line.contains(" replay ") && !line.starts_with("kept in"))
            .collect();
        assert!(too_wide.is_empty(), "{width}: {too_wide:#?}");
    }
}

#[test]
fn text_without_findings() {
    let run = RunSummary {
        exit: ProgramExit::Signal { signal: 11 },
        untried: 0,
        unexamined: Unexamined::default(),
        notes: vec![],
        ..run()
    };
    insta::assert_snapshot!(render(&Text, &[], &run, Shown::Claims, false));
}

#[test]
fn json_shows_everything() {
    insta::assert_snapshot!(render(&Json, &fixtures(), &run(), Shown::Everything, false));
}

#[test]
fn json_without_findings() {
    insta::assert_snapshot!(render(&Json, &[], &run(), Shown::Claims, false));
}

#[test]
fn the_last_line_of_a_finding_is_its_command() {
    let report = render(&Text, &[race()], &run(), Shown::Claims, true);
    let (finding, _) = report.split_once("\n\n").expect("an empty line ends a finding");
    assert_eq!(finding.lines().last().map(str::trim), race().reproduce.as_deref());
}

/// Each of the libraries has to be trusted before anything is predicted, so the user is told all of them at once.
#[test]
fn suspicions_that_hang_on_the_same_libraries_are_one_note() {
    let hangs_on = |libraries: &[&str]| Finding { unseen: libraries.iter().map(ToString::to_string).collect(), ..diverged() };
    let findings = [hangs_on(&["libb.so.2", "liba.so.1"]), hangs_on(&["liba.so.1", "libb.so.2"]), hangs_on(&["libb.so.2"])];
    let report = render(&Text, &findings, &run(), Shown::Claims, false);
    let notes: Vec<&str> = report.lines().filter(|line| line.contains("--trust-library")).collect();
    assert_eq!(
        notes,
        [
            "note: liba.so.1, libb.so.2: 2 suspicions were not predicted because their calls may order threads; \
                --trust-library liba.so.1 --trust-library libb.so.2 if none of them do",
            "note: libb.so.2: 1 suspicion was not predicted because its calls may order threads; \
                --trust-library libb.so.2 if they do not",
        ]
    );
}

#[test]
fn of_many_libraries_a_note_names_a_few() {
    let libraries: Vec<String> = (0..9).map(|number| format!("lib{number}.so")).collect();
    let findings = [Finding { unseen: libraries.into_iter().collect(), ..diverged() }];
    let report = render(&Text, &findings, &run(), Shown::Claims, false);
    assert!(report.contains("lib4.so, lib5.so and 3 more libraries: 1 suspicion was not predicted"), "{report}");
    assert!(report.contains("--trust-library NAME for each of them (--json lists them) if none of them do"), "{report}");
    assert!(!report.contains("lib6.so"), "{report}");
}

/// A prediction has forced nothing: who sees no finding is told that there are some, and what to do with them.
#[test]
fn suspicions_that_nothing_has_forced_are_counted() {
    let suspected = [Finding { verdict: Verdict::Suspected, ..race() }];
    let predicted = RunSummary { executions: 0, store: "a store".into(), ..run() };
    let next = |findings: &[Finding], run: &RunSummary, shown: Shown| {
        let report = render(&Text, findings, run, shown, false);
        report.lines().filter(|line| line.starts_with("next: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        next(&[&suspected[..], &[race()]].concat(), &predicted, Shown::Claims),
        ["next: 1 suspicion not shown, as nothing was forced yet: `rashomon confirm 'a store'` makes happen what can; \
            `--show suspicions` lists them"]
    );
    assert!(next(&suspected, &predicted, Shown::Suspicions).is_empty());
    assert!(next(&[race()], &predicted, Shown::Claims).is_empty());
    // Forced, or of a trace that no program of ours has made.
    let forced = RunSummary { executions: 1, ..predicted.clone() };
    assert!(next(&suspected, &forced, Shown::Claims).is_empty());
    assert!(next(&suspected, &RunSummary { command: Vec::new(), ..predicted }, Shown::Claims).is_empty());
}

#[test]
fn thread_sanitizer_shows_everything() {
    insta::assert_snapshot!(render(&Tsan, &fixtures(), &run(), Shown::Everything, false).replace('\x1b', "ESC"));
}
