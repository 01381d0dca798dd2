//! Recordings as packed events: pieces of memory become variables, and every order that the recording knows stays.

use rashomon_event::{Access, EventIndex};
use rashomon_packed::{CheckOptions, Checked, Event, Op, Source, Space, order};
use rashomon_pipeline::Recorded;
use rashomon_testkit::text::parse;

fn convert(text: &str) -> (Vec<Event>, Vec<EventIndex>) {
    let labelled = parse(text).unwrap();
    let mut source = Recorded::new(&labelled.trace).unwrap();
    let (mut events, mut origins, mut block) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        source.next(&mut block).unwrap();
        if block.is_empty() {
            return (events, origins);
        }
        origins.extend((0..block.len()).map(|index| source.origin(index).unwrap()));
        events.extend_from_slice(&block);
    }
}

fn steps(text: &str) -> Vec<(u16, Op, u32)> {
    convert(text).0.iter().map(|event| (event.thread, event.op, event.target)).collect()
}

#[test]
fn bytes_that_are_always_accessed_together_are_one_variable() {
    // Eight bytes; their upper half; a byte that touches nothing.
    let found = steps("main w x; main r x+4:4; main w x+16:1; main r x+0:4");
    assert_eq!(found, [(0, Op::Write, 0), (0, Op::Write, 1), (0, Op::Read, 1), (0, Op::Write, 2), (0, Op::Read, 0),]);
    assert_eq!(steps("main w x; main r x; main w y"), [(0, Op::Write, 0), (0, Op::Read, 0), (0, Op::Write, 1)]);
    assert_eq!(steps("main rw x"), [(0, Op::Read, 0), (0, Op::Write, 0)]);
}

#[test]
fn accesses_overlap_exactly_if_they_share_a_variable() {
    let mut state = 1_u64;
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str(&format!("main w x+{}:{};", state >> 60, 1 + (state >> 40) % 9));
        }
        let trace = parse(&text).unwrap().trace;
        let (events, origins) = convert(&text);
        let variables = |index: usize| {
            let of = origins.iter().zip(&events).filter(move |(origin, _)| origin.index() == index);
            of.map(|(_, event)| event.target).collect::<Vec<_>>()
        };
        let access = |index: usize| -> Access { trace.events.at(index).access().unwrap() };
        for one in 0..trace.events.len() {
            for other in 0..trace.events.len() {
                let shared = variables(one).iter().any(|variable| variables(other).contains(variable));
                assert_eq!(shared, access(one).overlaps(&access(other)), "{one} and {other} of {text}");
            }
        }
    }
}

#[test]
fn waiting_releases_and_acquires_and_observes_its_own_signal() {
    let found = steps(
        "main fork a; a lock m; a wait c m; main lock m; main signal c; main signal c #wakes; \
            main unlock m; a woken c m wakes; a unlock m",
    );
    assert_eq!(
        found,
        [
            (0, Op::Fork, 1),
            (1, Op::Acquire, 0),
            (1, Op::Release, 0),
            (0, Op::Acquire, 0),
            (0, Op::ReleaseObject, 0),
            (0, Op::ReleaseObject, 1),
            (0, Op::Release, 0),
            (1, Op::AcquireObject, 1),
            (1, Op::Acquire, 0),
            (1, Op::Release, 0),
        ]
    );
}

#[test]
fn other_synchronisation_keeps_its_order() {
    let found = steps(
        "main fork a; main post s; a take s; main enter b 1; a enter b 1; a exit b 1; main exit b 1; main enter b 2; \
         main done o; a seen o; main rlock m; \
         main runlock m; main lock m; main lock m; main unlock m; main unlock m; a request m; a end; main join a",
    );
    let expected = [
        (0, Op::Fork, 1),
        (0, Op::ReleaseObject, 0),
        (1, Op::AcquireObject, 0),
        (0, Op::Enter, 1),
        (1, Op::Enter, 1),
        (1, Op::Exit, 1),
        (0, Op::Exit, 1),
        (0, Op::Enter, 2),
        (0, Op::ReleaseObject, 3),
        (1, Op::AcquireObject, 3),
        (0, Op::AcquireShared, 0),
        (0, Op::ReleaseShared, 0),
        (0, Op::Acquire, 0),
        (0, Op::Release, 0),
        (1, Op::Request, 0),
        (0, Op::Join, 1),
    ];
    assert_eq!(found, expected);
}

#[test]
fn atomics_keep_what_they_order() {
    let (events, _) =
        convert("main st x release; main ld x acquire; main rmw x relaxed; main casf x seq_cst; main fence acq_rel");
    let found: Vec<_> = events.iter().map(|event| (event.op, event.order)).collect();
    assert_eq!(
        found,
        [
            (Op::AtomicWrite, order::RELEASES),
            (Op::AtomicRead, order::ACQUIRES),
            (Op::AtomicUpdate, 0),
            (Op::AtomicRead, order::ACQUIRES | order::SEQUENTIALLY_CONSISTENT),
            (Op::Fence, order::ACQUIRES | order::RELEASES),
        ]
    );
}

#[test]
fn long_recordings_come_in_blocks() {
    let text: String = (0..9000).map(|number| format!("main w x+{}:8;", number % 7 * 4)).collect();
    let (events, origins) = convert(&text);
    assert!(events.len() > 9000);
    assert!(origins.is_sorted());
    let labelled = parse(&text).unwrap();
    let mut checked = Checked::new(Recorded::new(&labelled.trace).unwrap(), CheckOptions::default());
    let mut block = Vec::new();
    let mut count = 0;
    loop {
        checked.next(&mut block).unwrap();
        if block.is_empty() {
            break;
        }
        count += block.len();
    }
    assert_eq!(count, events.len());
    assert_eq!(checked.names().get(Space::Thread, 0), "main");
}
