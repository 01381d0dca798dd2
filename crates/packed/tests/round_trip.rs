//! What is written is what is read.

mod support;

use proptest::prelude::*;
use rashomon_packed::{
    Event, Format, Generator, Names, Op, OpenOptions, PackedWriter, Preset, Sink as _, Slice, Source as _, Space, WriteOptions,
    copy, create, open,
};
use std::io::Write as _;
use std::path::Path;
use support::{canonical, drain, packed};

fn event() -> impl Strategy<Value = Event> {
    let number = || prop_oneof![0_u32..4, 0_u32..70_000, 0_u32..1 << 24];
    (0_u8..Op::COUNT, 0_u8..8, prop_oneof![0_u16..4, any::<u16>()], number(), number()).prop_map(
        |(op, order, thread, target, location)| {
            let op = Op::from_number(op).unwrap();
            let target = if op.space() == Some(Space::Thread) { target & 0xffff } else { target };
            Event { order, ..Event::new(thread, op, target, location) }
        },
    )
}

fn names() -> impl Strategy<Value = Names> {
    proptest::collection::vec((0..Space::COUNT, proptest::collection::vec(any::<u8>(), 0..40)), 0..200).prop_map(|all| {
        let mut names = Names::default();
        for (space, name) in all {
            names.push_bytes(Space::ALL[space], &name);
        }
        names
    })
}

proptest! {
    #[test]
    fn packed_traces(events in proptest::collection::vec(event(), 0..5000), names in names()) {
        let folder = tempfile::tempdir().unwrap();
        let bytes = packed(&events, &names);
        for (name, bytes) in [
            ("plain", bytes.clone()),
            ("zst", zstd::encode_all(&bytes[..], 1).unwrap()),
            ("gz", {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&bytes).unwrap();
                encoder.finish().unwrap()
            }),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let mut source = open(&path, &OpenOptions::default()).unwrap();
            prop_assert_eq!(&drain(&mut source).unwrap(), &events);
            prop_assert_eq!(source.names(), &names);
        }
    }
}

#[test]
fn eight_bytes_are_enough_for_ordinary_traces() {
    for preset in [Preset::Flat, Preset::Nest, Preset::Wide, Preset::Regions] {
        let mut source = Generator::new(preset.shape(200_000, 5)).unwrap();
        let mut bytes = Vec::new();
        let mut writer = PackedWriter::new(&mut bytes, Path::new("memory"), &source).unwrap();
        copy(&mut source, &mut writer, |_| {}).unwrap();
        assert!(bytes.len() < 8 * 200_000 + 1000, "{} bytes", bytes.len());
    }
}

#[test]
fn names_stand_before_the_events_that_need_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut names = Names::default();
    let mut writer = PackedWriter::new(std::fs::File::create(&path).unwrap(), &path, &Slice::default()).unwrap();
    for number in 0..40_000 {
        names.push(Space::Variable, &format!("variable {number}"));
        writer.write(&[Event::new(0, Op::Write, number, 0)], &names).unwrap();
    }
    writer.finish(&names).unwrap();
    let mut source = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(source.events(), Some(40_000));
    assert_eq!(source.expected(Space::Variable), Some(40_000));
    let mut block = Vec::new();
    loop {
        source.next(&mut block).unwrap();
        let Some(last) = block.last() else { break };
        assert_eq!(source.names().get(Space::Variable, last.target), format!("variable {}", last.target));
    }
}

#[test]
fn a_trace_that_was_cut_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let events = drain(&mut Generator::new(Preset::Flat.shape(40_000, 3)).unwrap()).unwrap();
    let bytes = packed(&events, &Names::default());
    std::fs::write(&path, &bytes[..bytes.len() - 96]).unwrap();
    let mut source = open(&path, &OpenOptions::default()).unwrap();
    let error = drain(&mut source).unwrap_err().to_string();
    assert!(error.contains("not written to its end: 40000 events are whole"), "{error}");
    let mut source = open(&path, &OpenOptions { lenient: true, ..OpenOptions::default() }).unwrap();
    assert_eq!(drain(&mut source).unwrap(), events);
    assert_eq!(source.notices().len(), 1);
    // Inside the last chunk of events.
    std::fs::write(&path, &bytes[..bytes.len() - 1000]).unwrap();
    let mut source = open(&path, &OpenOptions { lenient: true, ..OpenOptions::default() }).unwrap();
    let found = drain(&mut source).unwrap();
    assert_eq!(found.len(), 2 << 14);
    assert_eq!(found, events[..found.len()]);
}

#[test]
fn formats_are_told_by_content() {
    let folder = tempfile::tempdir().unwrap();
    for (content, op) in [("\nT1|w(x)|3\n", Op::Write), ("1,LK,1,nil,1\r\n1,UK,1,nil,0", Op::Acquire)] {
        let path = folder.path().join("trace");
        std::fs::write(&path, content).unwrap();
        assert_eq!(drain(&mut open(&path, &OpenOptions::default()).unwrap()).unwrap()[0].op, op);
    }
    for content in ["", "what is this", "\0\0\0"] {
        let path = folder.path().join("trace");
        std::fs::write(&path, content).unwrap();
        assert!(open(&path, &OpenOptions::default()).is_err(), "{content}");
        for format in Format::ALL {
            // Said to be one: read as one, and refused as one, unless it is empty text.
            let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
            let result = open(&path, &options).and_then(|mut source| drain(&mut source));
            assert_eq!(
                result.is_ok(),
                content.is_empty() && matches!(format, Format::Std | Format::SpeedyGo),
                "{content} as {}",
                format.name()
            );
        }
    }
}

/// Writes events in a format and reads them again.
fn through(events: &[Event], names: &Names, format: Format, options: WriteOptions) -> Result<Vec<Event>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut source = Slice::named(events, names.clone());
    let mut sink = create(&path, format, options, &source).map_err(|error| error.to_string())?;
    copy(&mut source, &mut sink, |_| {}).map_err(|error| error.to_string().split_once("event").unwrap().1.to_owned())?;
    drop(sink);
    drain(&mut open(&path, &OpenOptions { format: Some(format), ..OpenOptions::default() }).unwrap())
        .map_err(|error| error.to_string())
}

/// Events that a format can say, with numbers that it can say.
fn sayable(ops: &'static [Op], located: bool) -> impl Strategy<Value = Vec<Event>> {
    let event = (0..ops.len(), 0_u16..1024, 0_u32..1 << 20, 1_u32..1 << 15).prop_map(move |(op, thread, target, location)| {
        let target = match ops[op].space() {
            Some(Space::Thread) => target & 1023,
            Some(_) => target,
            None => 0,
        };
        Event::new(thread, ops[op], target, if located { location } else { 0 })
    });
    proptest::collection::vec(event, 1..3000)
}

const STD: &[Op] = &[
    Op::Read,
    Op::Write,
    Op::Acquire,
    Op::Release,
    Op::Fork,
    Op::Join,
    Op::Begin,
    Op::End,
    Op::Request,
    Op::AcquireShared,
    Op::ReleaseShared,
    Op::RequestShared,
    Op::Branch,
    Op::Nothing,
];
const RAPID_BIN: &[Op] = &[Op::Acquire, Op::Release, Op::Read, Op::Write, Op::Fork, Op::Join, Op::Begin, Op::End, Op::Request];
const SPEEDY_GO: &[Op] = &[Op::Read, Op::Write, Op::Acquire, Op::Release, Op::ReleaseObject, Op::AcquireObject];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn std_text(events in sayable(STD, true)) {
        let found = through(&events, &Names::default(), Format::Std, WriteOptions::default()).unwrap();
        prop_assert_eq!(canonical(&found), canonical(&events));
    }

    #[test]
    fn rapid_bin(events in sayable(RAPID_BIN, true)) {
        let found = through(&events, &Names::default(), Format::RapidBin, WriteOptions::default()).unwrap();
        prop_assert_eq!(canonical(&found), canonical(&events));
    }

    #[test]
    fn speedy_go(events in sayable(SPEEDY_GO, true)) {
        let found = through(&events, &Names::default(), Format::SpeedyGo, WriteOptions::default()).unwrap();
        prop_assert_eq!(canonical(&found), canonical(&events));
    }
}

#[test]
fn names_go_through_text() {
    let mut names = Names::default();
    names.push(Space::Location, "-");
    for name in ["main", "worker (2)", "12"] {
        names.push(Space::Thread, name);
        names.push(Space::Variable, name);
        names.push(Space::Location, name);
    }
    let events: Vec<_> = (0..3).map(|number| Event::new(number, Op::Write, number.into(), u32::from(number) + 1)).collect();
    assert_eq!(through(&events, &names, Format::Std, WriteOptions::default()).unwrap(), events);
    let refused = through(&events, &names, Format::SpeedyGo, WriteOptions::default()).unwrap_err();
    assert_eq!(refused, " 0: thread main is not called by a number; --numbers writes numbers instead");
    let numbers = WriteOptions { numbers: true, ..WriteOptions::default() };
    assert_eq!(through(&events, &names, Format::SpeedyGo, numbers).unwrap(), events);
}

#[test]
fn what_a_format_cannot_say_is_refused_or_left_out() {
    let events = [Event::new(0, Op::Write, 1, 1), Event::new(0, Op::AtomicWrite, 1, 1), Event::new(1, Op::Read, 1, 1)];
    for format in [Format::Std, Format::RapidBin, Format::SpeedyGo] {
        let refused = through(&events, &Names::default(), format, WriteOptions::default()).unwrap_err();
        assert!(refused.starts_with(" 1: ") && refused.contains("cannot say `atomic write`"), "{refused}");
        let lossy = WriteOptions { lossy: true, ..WriteOptions::default() };
        assert_eq!(through(&events, &Names::default(), format, lossy).unwrap().len(), 2);
    }
    for (event, reason) in [
        (Event::new(1024, Op::Write, 1, 1), " 0: thread number 1024 does not fit RapidBin's 10 bits"),
        (Event::new(0, Op::Fork, 1024, 1), " 0: thread number 1024 does not fit RapidBin's 10 bits"),
        (Event::new(0, Op::Write, 1, 1 << 15), " 0: location number 32768 does not fit RapidBin's 15 bits"),
    ] {
        for lossy in [false, true] {
            let options = WriteOptions { lossy, ..WriteOptions::default() };
            assert_eq!(through(&[event], &Names::default(), Format::RapidBin, options).unwrap_err(), reason);
        }
    }
}

#[test]
fn forks_and_joins_become_signals_for_speedygo() {
    let events = [
        Event::new(0, Op::Fork, 1, 1),
        Event::new(0, Op::Write, 0, 2),
        Event::new(1, Op::Write, 1, 3),
        Event::new(1, Op::Write, 2, 3),
        Event::new(0, Op::Join, 1, 4),
    ];
    let found = through(&events, &Names::default(), Format::SpeedyGo, WriteOptions::default()).unwrap();
    let steps: Vec<_> = found.iter().map(|event| (event.thread, event.op)).collect();
    assert_eq!(
        steps,
        [
            (0, Op::ReleaseObject),
            (0, Op::Write),
            (1, Op::AcquireObject),
            (1, Op::Write),
            (1, Op::Write),
            (1, Op::ReleaseObject),
            (0, Op::AcquireObject)
        ]
    );
    assert_eq!(found[0].target, found[2].target);
    assert_eq!(found[5].target, found[6].target);
    assert_ne!(found[0].target, found[5].target);
}
