//! Recorded calls into unseen code: how far each goes, and what it reaches.

use rashomon_abi::record::{Op, call_aux, reach};
use rashomon_event::{Address, Gap, ModuleInfo, ThreadId};
use rashomon_trace::modules::ModuleLine;
use rashomon_trace::{Recording, RunHeader, SessionWriter};

const MAIN: u64 = 0x55_0000_0000;
const FUNCTION: u64 = MAIN + 0x100;
const STACK: u64 = 0x7fff_0000_0000;
/// Frames, the innermost last.
const FRAMES: [u64; 3] = [STACK + 0x300, STACK + 0x200, STACK + 0x100];

struct Session(SessionWriter);

impl Session {
    fn new() -> Self {
        let mut session = SessionWriter::new(RunHeader::default());
        session.modules.push(ModuleLine::Loaded {
            sequence: 0,
            module: ModuleInfo { path: "/bin/prog".into(), build_id: None, base: MAIN, start: MAIN, end: MAIN + 0x8000 },
        });
        session.sync(0, Op::ThreadStart, 100, 0, MAIN + 1, &[u64::MAX, 0, STACK, STACK + 0x10000, 0, 0]);
        Self(session)
    }

    fn begin(&mut self, frame: u64, aux: u16, set: u64) {
        self.0.sync(0, Op::CallBegin, FUNCTION, aux, MAIN + 0x20, &[frame, set]);
    }

    fn end(&mut self, frame: u64, aux: u16) {
        self.0.sync(0, Op::CallEnd, FUNCTION, aux, MAIN + 0x20, &[frame]);
    }

    fn gaps(mut self) -> Vec<Gap> {
        self.0.sync(0, Op::ThreadEnd, 0, 0, 0, &[]);
        let directory = tempfile::tempdir().expect("a temporary directory");
        self.0.write(directory.path()).expect("a session is written");
        Recording::open(directory.path()).expect("a session opens").load().expect("a session loads").trace.gaps
    }

    /// Indices of the begin and the end of each call.
    fn extents(self) -> Vec<(u32, Option<u32>)> {
        self.gaps().iter().map(|gap| (gap.begin.0, gap.end.map(|end| end.0))).collect()
    }
}

#[test]
fn calls_nest() {
    let mut session = Session::new();
    session.begin(FRAMES[0], 0, 0);
    session.begin(FRAMES[1], 0, 0);
    session.end(FRAMES[1], 0);
    session.end(FRAMES[0], 0);
    assert_eq!(session.extents(), [(1, Some(4)), (2, Some(3))]);
}

#[test]
fn a_call_that_is_left_without_returning_ends_with_the_next_one_that_is_not_below() {
    let mut session = Session::new();
    session.begin(FRAMES[1], 0, 0);
    session.begin(FRAMES[2], 0, 0);
    session.begin(FRAMES[0], 0, 0);
    assert_eq!(session.extents(), [(1, Some(3)), (2, Some(3)), (3, None)]);
    let mut session = Session::new();
    session.begin(FRAMES[0], 0, 0);
    session.begin(FRAMES[1], 0, 0);
    session.end(FRAMES[0], 0);
    assert_eq!(session.extents(), [(1, Some(3)), (2, Some(3))]);
}

#[test]
fn a_frame_that_is_elsewhere_says_nothing_of_others() {
    let mut session = Session::new();
    session.begin(FRAMES[1], 0, 0);
    session.begin(FRAMES[0], call_aux::ELSEWHERE, 0);
    session.end(FRAMES[0], call_aux::ELSEWHERE);
    session.end(FRAMES[1], 0);
    assert_eq!(session.extents(), [(1, Some(4)), (2, Some(3))]);
}

#[test]
fn sets_are_told_once_and_named_afterwards() {
    let mut session = Session::new();
    let data = MAIN + 0x4000;
    session.0.sync(0, Op::CallReaches, 1, 0, MAIN + 0x20, &[data, 16, STACK + 8, 8]);
    session.0.sync(0, Op::CallReaches, 1, 0, MAIN + 0x20, &[0, reach::THREAD]);
    session.0.sync(0, Op::CallReaches, 2, 0, MAIN + 0x20, &[]);
    for set in [1, 2, 1, reach::EVERYTHING, 7] {
        session.begin(FRAMES[0], 0, set);
        session.end(FRAMES[0], 0);
    }
    let gaps = session.gaps();
    let everything = vec![(Address(0), u64::MAX)];
    let sizes: Vec<Vec<u64>> = gaps.iter().map(|gap| gap.reach.iter().map(|&(_, bytes)| bytes).collect()).collect();
    assert_eq!(sizes, [vec![16, 8], vec![], vec![16, 8], vec![u64::MAX], vec![u64::MAX]]);
    assert_eq!(gaps[0].reach[0].0, Address(data));
    assert_eq!((&gaps[3].reach, &gaps[4].reach), (&everything, &everything));
    let threads: Vec<&[ThreadId]> = gaps.iter().map(|gap| gap.threads.as_slice()).collect();
    assert_eq!(threads, [&[ThreadId(0)][..], &[], &[ThreadId(0)], &[ThreadId(0)], &[ThreadId(0)]]);
    assert!(gaps.iter().all(|gap| gap.module == Some(0)));
}

/// Two numbers of places in a word.
const fn both(low: u64, high: u64) -> u64 {
    low | high << 32
}

#[test]
fn places_lead_to_others_as_they_were_told_until_then() {
    let mut session = Session::new();
    let data = MAIN + 0x4000;
    let tell = |session: &mut Session, number, aux, words: &[u64]| {
        session.0.sync(0, Op::CallReaches, number, aux, MAIN + 0x20, words);
    };
    // 1 leads to 2 and back, 3 is a thread.
    tell(&mut session, 1, reach::PLACE, &[data, 1, both(2, 0)]);
    tell(&mut session, 2, reach::PLACE, &[data + 0x10, 2, both(1, 0)]);
    tell(&mut session, 3, reach::PLACE, &[0, reach::THREAD]);
    tell(&mut session, 1, reach::PLACES, &[both(1, 0)]);
    tell(&mut session, 2, reach::PLACES, &[]);
    session.begin(FRAMES[0], 0, 1);
    session.end(FRAMES[0], 0);
    tell(&mut session, 2, reach::FURTHER, &[both(3, 4)]);
    tell(&mut session, 4, reach::PLACE, &[data + 0x20, 4]);
    session.begin(FRAMES[0], 0, 1);
    session.end(FRAMES[0], 0);
    // It leads nowhere any more.
    tell(&mut session, 1, reach::PLACE, &[data, 1]);
    session.begin(FRAMES[0], 0, 1);
    session.end(FRAMES[0], 0);
    session.begin(FRAMES[0], 0, 2);
    session.end(FRAMES[0], 0);
    // Of a place that was never told nobody knows where it leads.
    tell(&mut session, 1, reach::FURTHER, &[both(9, 0)]);
    session.begin(FRAMES[0], 0, 1);
    session.end(FRAMES[0], 0);
    let sizes = |gap: &Gap| {
        let mut sizes: Vec<u64> = gap.reach.iter().map(|&(_, bytes)| bytes).collect();
        sizes.sort_unstable();
        (sizes, gap.threads.len())
    };
    let all: Vec<(Vec<u64>, usize)> = session.gaps().iter().map(sizes).collect();
    assert_eq!(all, [(vec![1, 2], 0), (vec![1, 2, 4], 1), (vec![1], 0), (vec![], 0), (vec![u64::MAX], 1)]);
}
