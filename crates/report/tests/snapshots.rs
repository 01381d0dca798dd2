//! Every renderer on the same fixtures.

use rashomon_event::finding::{HeldLock, Step};
use rashomon_event::{Evidence, Finding, FindingId, FindingKind, Frame, Grade, Replays, Side, Trial, Verdict, WitnessLevel};
use rashomon_report::{Format, Options, ProgramExit, Report, RunSummary, Shown, Unexamined, json::Json, text::Text, tsan::Tsan};

fn render(format: &dyn Format, findings: &[Finding], run: &RunSummary, shown: Shown, colour: bool) -> String {
    format.report(Report { findings, run }, &Options { shown, colour, ..Options::default() })
}

fn frame(function: &str, line: u32) -> Frame {
    Frame {
        function: Some(function.into()),
        file: Some("listing1.c".into()),
        line: Some(line),
        column: Some(6),
        module: "/home/user/listing1".into(),
        offset: 0x1200 + u64::from(line),
        inlined: false,
    }
}

fn race() -> Finding {
    Finding {
        id: FindingId::new("race-3f2a91c4").unwrap(),
        kind: FindingKind::DataRace,
        verdict: Verdict::Suspected.advance(Trial::Shown { grade: Grade::CoEnabled, replays: Replays::all(1) }),
        evidence: Evidence::Hybrid,
        witness_level: Some(WitnessLevel::Synchronisation),
        subject: "global y (4 bytes)".into(),
        sides: vec![
            Side {
                thread: "main".into(),
                action: "write of 4 bytes".into(),
                stack: vec![frame("main", 17)],
                held: vec![],
                created_at: vec![],
            },
            Side {
                thread: "0".into(),
                action: "read and write of 4 bytes".into(),
                stack: vec![Frame { inlined: true, ..frame("bump", 7) }, frame("task", 11)],
                held: vec![HeldLock { name: "mutex m".into(), acquired_at: vec![frame("task", 8)] }],
                created_at: vec![frame("main", 16)],
            },
        ],
        earlier_steps: 36,
        steps: vec![
            Step { thread: "main".into(), until: "runs up to its write of global y".into(), place: Some(frame("main", 17)) },
            Step { thread: "0".into(), until: "runs up to its write of global y".into(), place: Some(frame("task", 11)) },
        ],
        schedule: None,
        provocation: None,
        harm: None,
        reproduce: Some("/usr/bin/rashomon replay --store '/tmp/a b/.rashomon/1-listing1' race-3f2a91c4".into()),
        unseen: vec![],
        notes: vec![],
        occurrences: 1,
    }
}

fn deadlock() -> Finding {
    let side = |thread: &str, wants: &str, holds: &str, line| Side {
        thread: thread.into(),
        action: format!("waits for mutex {wants}"),
        stack: vec![frame("lock_both", line)],
        held: vec![HeldLock { name: format!("mutex {holds}"), acquired_at: vec![frame("lock_both", line - 1)] }],
        created_at: vec![],
    };
    Finding {
        id: FindingId::new("deadlock-00c0ffee").unwrap(),
        kind: FindingKind::Deadlock,
        verdict: Verdict::Predicted,
        evidence: Evidence::LockOrder,
        witness_level: Some(WitnessLevel::Causal),
        subject: "mutex a, mutex b".into(),
        sides: vec![side("0", "b", "a", 12), side("0.1", "a", "b", 22)],
        steps: vec![],
        earlier_steps: 0,
        schedule: None,
        provocation: None,
        harm: None,
        reproduce: None,
        unseen: vec![],
        notes: vec!["a note".into()],
        occurrences: 3,
    }
}

/// No debug information, hostile names, a divergence.
fn diverged() -> Finding {
    let bare = Frame { module: "/usr/lib/lib\u{1b}[31mx.so".into(), offset: 0x1234, ..Frame::default() };
    Finding {
        id: FindingId::new("race-0badf00d").unwrap(),
        verdict: Verdict::Diverged { expected: "Lock at ordinal 3".into(), actual: "Unlock at ordinal 3".into() },
        evidence: Evidence::HappensBefore,
        subject: "heap block of 16 bytes".into(),
        sides: vec![Side {
            thread: "1".into(),
            action: "atomic read of 8 bytes".into(),
            stack: vec![bare],
            held: vec![],
            created_at: vec![],
        }],
        steps: vec![],
        earlier_steps: 0,
        unseen: vec!["libfoo.so.1".into()],
        reproduce: None,
        occurrences: 1,
        ..race()
    }
}

fn run() -> RunSummary {
    RunSummary {
        command: vec!["./listing1".into(), "a b".into()],
        exit: ProgramExit::Code { code: 0 },
        recordings: 1,
        events: 19,
        threads: 2,
        executions: 2,
        untried: 1,
        unexamined: Unexamined { suspicions: 2, pairs: 1, recordings: 1 },
        store: "/tmp/a b/.rashomon/1-listing1".into(),
        notes: vec!["module libz.so.1 is not instrumented".into()],
        interrupted: false,
    }
}

fn fixtures() -> Vec<Finding> {
    vec![diverged(), deadlock(), race()]
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
fn thread_sanitizer_shows_everything() {
    insta::assert_snapshot!(render(&Tsan, &fixtures(), &run(), Shown::Everything, false).replace('\x1b', "ESC"));
}
