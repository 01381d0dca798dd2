//! Control files decoded again with nothing but the layout in `rashomon_abi::control`.

use rashomon_abi::PROTOCOL_VERSION;
use rashomon_abi::control::{
    FRAME_WORDS, GOAL_WORDS, HEAD_WORDS, KEPT_WORDS, KNOWN_WORDS, MAGIC, MODULE_WORDS, NO_MODULE, OBJECT_WORDS, THREAD_WORDS,
    TURN_WORDS, field, goal, mode, object, option, policy, turn,
};
use rashomon_event::schedule::{SCHEDULE_VERSION, ScheduleModule};
use rashomon_event::{CodePlace, Goal, KeptPlace, Landmark, ObjectName, Place, Position, Schedule, ThreadPath, Turn};
use rashomon_trace::control::encode;
use rashomon_trace::{After, ControlError, ControlRequest, Enforcement, Policy, RunMode};

struct Decoded {
    head: Vec<u64>,
    modules: Vec<Vec<u64>>,
    threads: Vec<Vec<u64>>,
    objects: Vec<Vec<u64>>,
    turns: Vec<Vec<u64>>,
    goals: Vec<Vec<u64>>,
    frames: Vec<Vec<u64>>,
    known: Vec<Vec<u64>>,
    strings: Vec<u8>,
    kept: Vec<Vec<u64>>,
}

fn decode(bytes: &[u8]) -> Decoded {
    let mut rest = bytes;
    let mut word = || {
        let (head, tail) = rest.split_at(8);
        rest = tail;
        u64::from_le_bytes(head.try_into().expect("eight bytes"))
    };
    let head: Vec<u64> = (0..HEAD_WORDS).map(|_| word()).collect();
    let mut table = |entries: usize, words: usize| -> Vec<Vec<u64>> {
        (0..head[entries]).map(|_| (0..words).map(|_| word()).collect()).collect()
    };
    let modules = table(field::MODULES, MODULE_WORDS);
    let threads = table(field::THREADS, THREAD_WORDS);
    let objects = table(field::OBJECTS, OBJECT_WORDS);
    let turns = table(field::TURNS, TURN_WORDS);
    let goals = table(field::GOALS, GOAL_WORDS);
    let frames = table(field::FRAMES, FRAME_WORDS);
    let known = table(field::KNOWN, KNOWN_WORDS);
    let (strings, mut rest) = rest.split_at(head[field::STRING_BYTES] as usize);
    if head[field::KEPT] > 0 {
        rest = &rest[strings.len().next_multiple_of(8) - strings.len()..];
    }
    let words: Vec<u64> = rest.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let kept: Vec<Vec<u64>> = words.chunks(KEPT_WORDS).map(<[u64]>::to_vec).collect();
    assert_eq!(kept.len() as u64, head[field::KEPT]);
    Decoded { head, modules, threads, objects, turns, goals, frames, known, strings: strings.to_vec(), kept }
}

fn schedule() -> Schedule {
    let place = |offset| CodePlace { module: Some(0), offset };
    let heap = ObjectName::Heap { thread: 1, site: place(0x30), ordinal: 2 };
    let access = |delta| Place::Access { site: place(0x40), object: heap, delta, size: 4 };
    let until = |ordinal, place| Position { ordinal, place };
    Schedule {
        version: SCHEDULE_VERSION,
        modules: vec![
            ScheduleModule { path: "/bin/prog".into(), build_id: None },
            ScheduleModule { path: "/lib/libx.so".into(), build_id: Some("00".into()) },
        ],
        // The path 0.3 has a parent that the schedule does not name.
        threads: vec![ThreadPath::default(), ThreadPath(vec![0, 3])],
        turns: vec![
            Turn { thread: 0, until: until(3, Place::Synchronisation { op: 16 }), landmark: None },
            Turn { thread: 1, until: until(1, access(8)), landmark: None },
            Turn { thread: 0, until: until(3, Place::Count { accesses: 7 }), landmark: None },
            Turn { thread: 1, until: until(1, access(12)), landmark: None },
            Turn { thread: 0, until: until(9, Place::End), landmark: None },
        ],
        goal: Goal::Race { turns: [1, 2] },
        quantum: 77,
        unseen_calls: false,
        surroundings: None,
        kept: Vec::new(),
    }
}

#[test]
fn parameters_are_where_the_layout_says() {
    let request = ControlRequest {
        mode: RunMode::Free,
        policy: Policy::Pct,
        seed: 9,
        quantum: 5,
        switch_period: 6,
        pct_changes: 3,
        pct_length: 500,
        options: 2,
        call_timeout_ms: 1234,
        trace_limit: 99,
        access_cap: 16,
        filter_locations: 17,
        processes: 12,
        after: After::Continue,
        base_time_nanoseconds: 4711,
        schedule: None,
        enforcement: Enforcement::Strict,
        kept: &[],
        known: &[],
        valued: &[],
        provoke: None,
    };
    let decoded = decode(&encode(&request).expect("encodes"));
    let head = |number: usize| decoded.head[number];
    assert_eq!((head(field::MAGIC), head(field::VERSION)), (MAGIC, u64::from(PROTOCOL_VERSION)));
    assert_eq!((head(field::MODE), head(field::POLICY), head(field::SEED)), (mode::FREE, policy::PCT, 9));
    assert_eq!((head(field::QUANTUM), head(field::SWITCH_PERIOD)), (5, 6));
    assert_eq!((head(field::PCT_CHANGES), head(field::PCT_LENGTH), head(field::OPTIONS)), (3, 500, 2));
    assert_eq!((head(field::CALL_TIMEOUT_MS), head(field::TRACE_LIMIT), head(field::AFTER)), (1234, 99, 1));
    assert_eq!((head(field::BASE_TIME), head(field::ACCESS_CAP), head(field::GOAL)), (4711, 16, goal::NONE));
    assert_eq!(head(field::FILTER_LOCATIONS), 17);
    assert!(decoded.turns.is_empty() && decoded.strings.is_empty());
}

#[test]
fn a_schedule_is_rewritten_into_tables() {
    let schedule = schedule();
    let decoded = decode(&encode(&ControlRequest { schedule: Some(&schedule), ..ControlRequest::default() }).expect("encodes"));
    assert_eq!(decoded.head[field::QUANTUM], 77);
    assert_eq!(decoded.head[field::GOAL], goal::RACE);
    let names: Vec<&[u8]> =
        decoded.modules.iter().map(|entry| &decoded.strings[entry[0] as usize..][..entry[1] as usize]).collect();
    assert_eq!(names, [&b"/bin/prog"[..], b"/lib/libx.so"]);
    assert_eq!(decoded.threads, [vec![u64::MAX, 0], vec![0, 0], vec![1, 3]]);
    // Both accesses name one object.
    assert_eq!(decoded.objects, [vec![object::HEAP, 2, 0, 0x30, 2]]);
    assert_eq!(
        decoded.turns,
        [
            vec![0, 0, 3, 0, NO_MODULE, 0, u64::MAX, 0, 0, 16],
            vec![2, turn::AT_SITE, 1, 0, 0, 0x40, 0, 8, 4, 0],
            vec![0, turn::AT_COUNT, 3, 7, NO_MODULE, 0, u64::MAX, 0, 0, 0],
            vec![2, turn::AT_SITE, 1, 0, 0, 0x40, 0, 12, 4, 0],
            vec![0, turn::TO_END, 9, 0, NO_MODULE, 0, u64::MAX, 0, 0, 0],
        ]
    );
    assert_eq!(decoded.goals, [vec![2, 1], vec![0, 2]]);
}

/// The program is the first module, whatever its path; each other one is named once more.
#[test]
fn kept_places_come_behind_the_strings() {
    let place = |module: &str, offset| KeptPlace { module: module.into(), offset };
    let kept = [place("/lib/libx.so", 0x10), place("/bin/prog", 0x20), place("/lib/libx.so", 0x30)];
    let name = |decoded: &Decoded, module: u64| {
        let entry = &decoded.modules[module as usize];
        String::from_utf8(decoded.strings[entry[0] as usize..][..entry[1] as usize].to_vec()).expect("a path")
    };
    let names = |decoded: &Decoded| -> Vec<(String, u64)> {
        decoded.kept.iter().map(|entry| (name(decoded, entry[0]), entry[1])).collect()
    };
    let wanted: Vec<(String, u64)> = kept.iter().map(|place| (place.module.clone(), place.offset)).collect();
    let recorded = decode(&encode(&ControlRequest { kept: &kept, ..ControlRequest::default() }).expect("encodes"));
    assert_eq!(names(&recorded), wanted);
    assert_eq!((name(&recorded, 0), recorded.modules.len()), (String::new(), 3));
    let schedule = Schedule { kept: kept.to_vec(), ..schedule() };
    let forced = decode(&encode(&ControlRequest { schedule: Some(&schedule), ..ControlRequest::default() }).expect("encodes"));
    assert_eq!(names(&forced), wanted);
    assert_eq!(name(&forced, 0), "/bin/prog");
}

/// Elastic enforcement is asked for, and a position then says by what it is recognised.
#[test]
fn elasticity_is_in_the_options_and_landmarks_in_the_turns() {
    let mut schedule = schedule();
    let site = CodePlace { module: Some(1), offset: 0x50 };
    schedule.turns[0].landmark = Some(Landmark { site, occurrence: 6 });
    let known = [[site, CodePlace { module: Some(0), offset: 0x60 }]];
    let options = |enforcement| {
        let valued = [known[0][0]];
        let request = ControlRequest {
            schedule: Some(&schedule),
            enforcement,
            known: &known,
            valued: &valued,
            ..ControlRequest::default()
        };
        let decoded = decode(&encode(&request).expect("encodes"));
        assert_eq!(decoded.turns[0], [0, turn::LANDMARK, 3, 6, 1, 0x50, u64::MAX, 0, 0, 16]);
        assert_eq!(decoded.known, [vec![1, 0x50, 0, 0x60]]);
        assert_eq!(decoded.frames, [vec![1, 0x50]], "sites whose values are recorded");
        decoded.head[field::OPTIONS]
    };
    assert_eq!(options(Enforcement::Strict), 0);
    assert_eq!(options(Enforcement::Elastic), option::ELASTIC);
    assert_eq!(options(Enforcement::HoldOnly), option::ELASTIC | option::HOLD_ONLY);
}

#[test]
fn a_damaged_schedule_is_refused() {
    let encoded = |change: &dyn Fn(&mut Schedule)| {
        let mut schedule = schedule();
        change(&mut schedule);
        encode(&ControlRequest { schedule: Some(&schedule), ..ControlRequest::default() })
    };
    assert!(encoded(&|_| {}).is_ok());
    let thread = encoded(&|schedule| schedule.turns[0].thread = 2);
    assert_eq!(thread, Err(ControlError::NoSuchEntry { what: "thread", index: 2, entries: 2 }));
    let module = encoded(&|schedule| schedule.modules.clear());
    assert_eq!(module, Err(ControlError::NoSuchEntry { what: "module", index: 0, entries: 0 }));
    let goal = encoded(&|schedule| schedule.goal = Goal::Deadlock { turns: vec![0, 5] });
    assert_eq!(goal, Err(ControlError::NoSuchEntry { what: "turn", index: 5, entries: 5 }));
    let version = encoded(&|schedule| schedule.version = 9);
    assert_eq!(version, Err(ControlError::Version { found: 9, supported: SCHEDULE_VERSION }));
}
