//! Engines and who runs them: those that see first, the others by the best offer, each within its share; executions that are
//! handed back.

use rashomon_abi::record::{AccessClass, Op};
use rashomon_confirm::{Input, Output, Program};
use rashomon_event::{Deadline, ModuleInfo};
use rashomon_pipeline::check::budget::Deadlines;
use rashomon_pipeline::check::postponed::Postponed;
use rashomon_pipeline::engines::engine::{Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use rashomon_pipeline::engines::{self, Asked, of_check, run_portfolio};
use rashomon_pipeline::findings::declared::Declarations;
use rashomon_pipeline::shard::Shard;
use rashomon_pipeline::store::run::{RUN_FORMAT, RUN_VERSION};
use rashomon_pipeline::{
    Accesses, Binaries, Budget, Case, Job, PipelineError, RecordSettings, RecordedRun, RunRecord, Scheduling, Settings,
    ShellText, Store, UnseenCalls,
};
use rashomon_report::ProgramExit;
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{Policy, RunHeader, SessionWriter};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn run_record() -> RunRecord {
    RunRecord {
        format: RUN_FORMAT.into(),
        version: RUN_VERSION,
        executable: ShellText::Text("/bin/true".into()),
        arguments: vec![],
        directory: ShellText::Text("/".into()),
        randomise_addresses: false,
        environment: vec![],
        surroundings: Default::default(),
        before_each: None,
        client: None,
        input: None,
        loads_runtime: false,
        quantum: 0,
        base_time_nanoseconds: 0,
        trace_limit: 0,
        processes: 0,
        trusted_libraries: vec![],
        limit_milliseconds: None,
        recordings: vec![],
        notes: vec![],
    }
}

fn settings() -> Settings {
    Settings {
        record: RecordSettings {
            scheduling: Scheduling::Serial(Policy::Random),
            seed: 1,
            quantum: 0,
            input: Input::Empty,
            output: Output::Discard,
            limit: None,
            until: Deadline::NEVER,
            trace_limit: 0,
            processes: 0,
            call_timeout: Duration::from_secs(1),
            base_time_nanoseconds: 0,
            accesses: Accesses::Distinct,
            unseen_calls: UnseenCalls::Unrecorded,
            dependences: false,
            kept: vec![],
            values: false,
        },
        expected_exit: None,
        engine: rashomon_pipeline::analyse::Engine::Cascade,
        budget: Budget::NONE,
        forced_limit: None,
        shard: Shard::WHOLE,
        postponed: Postponed::default(),
        times: 1,
        correlated: Declarations::default(),
        keep: false,
        tool: "rashomon".into(),
    }
}

fn program() -> Program {
    Program {
        executable: PathBuf::from("/bin/true"),
        arguments: vec![],
        directory: PathBuf::from("/"),
        library_path: None,
        randomise_addresses: false,
        environment: vec![],
        before_each: None,
        before_each_limit: None,
        client: None,
    }
}

/// A case of a program that nobody executes.
fn with_case(act: impl FnOnce(&mut Case<'_, '_, Binaries>)) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_at(&folder.path().join("store")).unwrap();
    let (program, settings, symbols, mut run) = (program(), settings(), Binaries::new(), run_record());
    let job = Job { program: &program, store: &store, settings: &settings, symbols: &symbols };
    act(&mut Case::new(&job, &mut run, &mut ()));
}

/// So many units, each of which takes and gives the same.
struct Fake<'l> {
    name: &'static str,
    left: u32,
    takes: Duration,
    gives: f64,
    log: &'l RefCell<Vec<String>>,
    /// An execution could not be made in this unit, from the end.
    fails_at: Option<u32>,
    /// A unit goes on for as long as it may.
    uses_all: bool,
}

impl Engine<Binaries> for Fake<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn offer(&mut self, _: &Case<'_, '_, Binaries>) -> Option<Offer> {
        (self.left > 0).then(|| Expectation::new(self.gives, self.takes).offer())
    }

    fn step(&mut self, case: &mut Case<'_, '_, Binaries>, until: Deadline) -> Result<Yield, PipelineError> {
        self.left -= 1;
        let bound = if until == Deadline::NEVER { "" } else { " in a share" };
        self.log.borrow_mut().push(format!("{}{bound}", self.name));
        if self.uses_all {
            std::thread::sleep(until.limit(Duration::from_secs(60)));
        }
        if self.fails_at == Some(self.left) {
            case.stopped = Some(PipelineError::NotObserved);
        }
        Ok(Yield::default())
    }

    fn finish(&mut self, _: &mut Case<'_, '_, Binaries>) -> Result<(), PipelineError> {
        self.log.borrow_mut().push(format!("{} ends", self.name));
        Ok(())
    }
}

fn fake<'l>(name: &'static str, left: u32, log: &'l RefCell<Vec<String>>) -> Fake<'l> {
    Fake { name, left, takes: Duration::from_secs(1), gives: 1.0, log, fails_at: None, uses_all: false }
}

/// One that sees.
fn registered(engine: Fake<'_>, share: Share) -> Registered<'_, Binaries> {
    Registered { engine: Box::new(engine), share, turn: Turn::First }
}

/// One that searches.
fn searching(engine: Fake<'_>, share: Share) -> Registered<'_, Binaries> {
    Registered { turn: Turn::ByOffer, ..registered(engine, share) }
}

#[test]
fn engines_have_their_turns_in_order_each_with_its_share() {
    let log = RefCell::default();
    with_case(|case| {
        let (one, two, none) = (fake("one", 2, &log), fake("two", 1, &log), fake("none", 1, &log));
        let part = Share::AtMost(Duration::from_secs(9));
        let all = vec![registered(one, Share::Whole), registered(none, Share::AtMost(Duration::ZERO)), registered(two, part)];
        run_portfolio(all, case).unwrap();
    });
    assert_eq!(*log.borrow(), ["one", "one", "one ends", "two in a share", "two ends"]);
}

#[test]
fn a_budget_that_is_over_leaves_no_share_but_lets_what_is_left_be_counted() {
    let log = RefCell::default();
    with_case(|case| {
        case.deadlines = Deadlines { total: Deadline::within(Duration::ZERO), ..Deadlines::NEVER };
        let part = Share::AtMost(Duration::from_secs(9));
        run_portfolio(vec![registered(fake("part", 1, &log), part), registered(fake("rest", 1, &log), Share::Whole)], case)
            .unwrap();
    });
    assert_eq!(*log.borrow(), ["rest in a share", "rest ends"]);
}

#[test]
fn where_an_execution_cannot_be_made_nothing_else_is_executed() {
    let log = RefCell::default();
    with_case(|case| {
        let failing = Fake { fails_at: Some(1), ..fake("failing", 3, &log) };
        run_portfolio(vec![registered(failing, Share::Whole), registered(fake("next", 1, &log), Share::Whole)], case).unwrap();
        assert!(case.stopped.is_some());
    });
    assert_eq!(*log.borrow(), ["failing", "failing", "failing ends"]);
}

#[test]
fn the_best_offer_first_and_behind_those_that_see() {
    let log = RefCell::default();
    with_case(|case| {
        let cheap = Fake { takes: Duration::from_millis(10), gives: 0.1, ..fake("cheap", 2, &log) };
        let dear = Fake { takes: Duration::from_secs(10), gives: 1.0, ..fake("dear", 1, &log) };
        let middling = Fake { gives: 1.0, ..fake("middling", 1, &log) };
        let all = [dear, cheap, middling].map(|one| searching(one, Share::Whole)).into_iter();
        let seeing = registered(Fake { gives: 0.0, ..fake("seeing", 1, &log) }, Share::Whole);
        run_portfolio(all.chain([seeing]).collect(), case).unwrap();
    });
    let turns = ["seeing", "seeing ends", "cheap", "cheap", "middling", "dear"];
    assert_eq!(log.borrow()[..turns.len()], turns);
    assert_eq!(log.borrow()[turns.len()..], ["dear ends", "cheap ends", "middling ends"]);
}

#[test]
fn of_equal_offers_the_first_is_taken() {
    let log = RefCell::default();
    with_case(|case| {
        let all = ["one", "two"].map(|name| searching(fake(name, 2, &log), Share::Whole));
        run_portfolio(all.into(), case).unwrap();
    });
    assert_eq!(log.borrow()[..4], ["one", "one", "two", "two"]);
}

#[test]
fn a_share_that_is_used_up_leaves_the_turn_to_others() {
    let log = RefCell::default();
    with_case(|case| {
        let best = Fake { gives: 9.0, ..fake("best", 9, &log) };
        let none = Share::AtMost(Duration::ZERO);
        run_portfolio(vec![searching(best, none), searching(fake("other", 1, &log), Share::Whole)], case).unwrap();
    });
    assert_eq!(*log.borrow(), ["other", "other ends"]);
}

#[test]
fn who_uses_up_all_the_time_leaves_some_to_those_that_come_last() {
    let log = RefCell::default();
    with_case(|case| {
        case.deadlines = Deadlines { total: Deadline::within(Duration::from_millis(400)), ..Deadlines::NEVER };
        let busy = Fake { uses_all: true, ..fake("busy", 2, &log) };
        let late =
            Registered { turn: Turn::Last, ..registered(fake("late", 1, &log), Share::AtMost(Duration::from_millis(200))) };
        run_portfolio(vec![searching(busy, Share::Whole), late], case).unwrap();
        assert!(case.deadlines.total.is_over(), "what was kept and not needed is the others'");
    });
    assert_eq!(*log.borrow(), ["busy in a share", "late in a share", "busy in a share", "busy ends", "late ends"]);
}

fn names(asked: &mut Asked<'_>) -> Vec<(&'static str, Share, Turn)> {
    of_check::<Binaries>(asked).iter().map(|one| (one.engine.name(), one.share, one.turn)).collect()
}

#[test]
fn a_check_runs_the_registered_engines() {
    let mut plan = rashomon_pipeline::check::plan::Fixed {
        first: rashomon_pipeline::check::plan::Next { scheduling: Scheduling::Serial(Policy::Random), seed: 1 },
        number: 1,
        seeds: 0,
    };
    let (search, budget) = (Duration::from_secs(7), Duration::from_secs(60));
    let none = || Asked { plan: None, stored: true, search, jobs: 1, budget, engines: vec![], feeds_back: true };
    let witness = ("witness", Share::AtMost(search), Turn::ByOffer);
    let [harm, critical] = ["harm", "critical"].map(|name| (name, Share::AtMost(budget / 10), Turn::Last));
    let adhoc = ("adhoc", Share::AtMost(budget / 20), Turn::Last);
    let force = ("force", Share::Whole, Turn::ByOffer);
    let part = |of: u32| Share::AtMost(budget / of);
    let [atomicity, provoke] = ["atomicity", "provoke"].map(|name| (name, part(6), Turn::ByOffer));
    let correlated = ("correlated", part(5), Turn::ByOffer);
    let detect = ("detect", part(4), Turn::ByOffer);
    // Beyond its part exploration goes on while nobody else has anything to do: it offers nothing then.
    let explore = ("explore", Share::Whole, Turn::ByOffer);
    let mut usual = Asked { plan: Some(&mut plan), stored: false, ..none() };
    let first = ("record", Share::Whole, Turn::First);
    // Of a large first recording.
    let predict = ("predict", Share::Whole, Turn::ByOffer);
    let all = [first, predict, force, detect, atomicity, correlated, explore, provoke, witness, harm, critical, adhoc];
    assert_eq!(names(&mut usual), all);
    let mut check = Asked { plan: Some(&mut plan), stored: false, engines: vec![engines::EVERY.into()], ..none() };
    assert_eq!(names(&mut check), all);
    assert_eq!(names(&mut none()), [("predict", Share::Whole, Turn::First), force, witness]);
    // Whoever is named takes part; what records and analyses always does.
    let mut some = Asked { plan: Some(&mut plan), stored: false, engines: vec!["explore".into()], ..none() };
    assert_eq!(names(&mut some), [first, predict, explore]);
    assert!(engines::OPTIONAL.iter().all(|name| *name == engines::EVERY || engines::NAMES.contains(name)));
    // Without a budget nothing is executed.
    let mut unbounded = Asked { plan: Some(&mut plan), stored: false, budget: Duration::ZERO, ..none() };
    assert_eq!(names(&mut unbounded).iter().map(|one| one.0).collect::<Vec<_>>(), ["record", "predict", "force", "witness"]);
}

const MAIN: u64 = 0x55_0000_0000;

/// Two threads write one variable, the one of `first` first.
fn write_session(folder: &Path, first: u32) {
    let mut session = SessionWriter::new(RunHeader::default());
    let module = ModuleInfo { path: "/bin/prog".into(), build_id: None, base: MAIN, start: MAIN, end: MAIN + 0x8000 };
    session.modules.push(ModuleLine::Loaded { sequence: 0, module });
    session.sync(0, Op::ThreadStart, 100, 0, MAIN + 1, &[u64::MAX, 0, 0x7000, 0x8000, 0, 0]);
    for child in 1..3 {
        session.sync(0, Op::ThreadCreate, child, 0, MAIN + 0x20, &[child - 1]);
    }
    for child in [first, 3 - first] {
        let low = 0x7f00_0000_0000 + u64::from(child) * 0x10_0000;
        session.sync(child, Op::ThreadStart, 200, 0, MAIN + 0x30, &[0, u64::from(child) - 1, low, low + 0x1000, 0, 0]);
        session.stream(child).access(AccessClass::Write, MAIN + 0x4000, 4, MAIN + 0x100 + u64::from(child) * 16);
        session.sync(child, Op::ThreadEnd, 0, 0, 0, &[]);
    }
    for child in 1..3 {
        session.turn(0, 0);
        session.sync(0, Op::ThreadJoin, child, 0, MAIN + 0x40, &[]);
    }
    session.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
    session.write(folder).unwrap();
}

fn recorded() -> RecordedRun {
    RecordedRun {
        folder: "somewhere".into(),
        policy: "random".into(),
        seed: 1,
        exit: ProgramExit::Code { code: 0 },
        milliseconds: 1,
        notes: vec![],
        kept: vec![],
    }
}

#[test]
fn an_execution_that_shows_something_becomes_a_recording_with_its_leads() {
    with_case(|case| {
        let session = case.job.store.scratch("fake").join("one");
        write_session(&session, 1);
        assert!(case.hand_back(&session, recorded()).unwrap());
        assert_eq!(case.run.recordings.iter().map(|one| one.folder.as_str()).collect::<Vec<_>>(), ["recording-0"]);
        assert!(case.job.store.recording(0).is_dir() && !session.exists());
        assert_eq!(case.job.store.run().unwrap().recordings.len(), 1);
        let stored = case.job.store.findings().unwrap();
        assert_eq!(stored.iter().map(|finding| finding.sides.len()).collect::<Vec<_>>(), [2], "the race is a lead");
        case.job.store.clear_scratch("fake").unwrap();
        assert!(!case.job.store.scratch("fake").parent().unwrap().exists());
    });
}

/// Nothing but the initial thread.
fn write_empty_session(folder: &Path) {
    let mut session = SessionWriter::new(RunHeader::default());
    session.sync(0, Op::ThreadStart, 100, 0, MAIN + 1, &[u64::MAX, 0, 0x7000, 0x8000, 0, 0]);
    session.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
    session.write(folder).unwrap();
}

#[test]
fn an_execution_that_shows_nothing_new_leaves_nothing_behind() {
    with_case(|case| {
        let session = case.job.store.scratch("fake").join("one");
        write_empty_session(&session);
        assert!(case.hand_back(&session, recorded()).unwrap(), "the first one is new");
        write_empty_session(&session);
        assert!(!case.hand_back(&session, recorded()).unwrap());
        assert_eq!(case.run.recordings.len(), 1);
        assert!(!case.job.store.recording(1).exists() && !session.exists());
    });
}

#[test]
fn an_execution_that_cannot_be_read_is_told_and_thrown_away() {
    with_case(|case| {
        let session = case.job.store.scratch("fake").join("one");
        std::fs::create_dir_all(&session).unwrap();
        assert!(!case.hand_back(&session, recorded()).unwrap());
        assert!(case.run.recordings.is_empty() && !case.job.store.recording(0).exists());
    });
}
