//! `rashomon trace export --to perfetto`: what the file says, by a reader of protobuf's wire format that knows the few fields it
//! looks at. `cargo xtask evaluate formats-out` reads such files with Perfetto's own definitions.

use crate::support::place::{Place, RACE};
use std::collections::BTreeMap;

/// Fields of a message, in their order.
type Fields<'a> = Vec<(u64, Field<'a>)>;

#[derive(Clone, Copy, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number that ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number without an end");
}

fn fields(mut bytes: &[u8]) -> Fields<'_> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(fixed.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, field));
    }
    all
}

fn number(fields: &Fields<'_>, wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn bytes<'a>(fields: &Fields<'a>, wanted: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(*bytes),
        _ => None,
    })
}

fn text(fields: &Fields<'_>, wanted: u64) -> String {
    String::from_utf8(bytes(fields, wanted).unwrap_or_default().to_vec()).unwrap()
}

/// What is read of a trace.
#[derive(Debug, Default)]
struct Seen {
    tracks: BTreeMap<u64, String>,
    /// Category, name and duration of each slice or instant, with its track.
    slices: Vec<(String, String, u64, String)>,
    flows: Vec<(u64, bool)>,
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// Fails where slices do not nest, or time of a track goes back.
fn read(file: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut open: BTreeMap<u64, Vec<(String, String, u64)>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (field, packet) in fields(file) {
        let Field::Bytes(packet) = packet else { panic!("no packet") };
        assert_eq!(field, 1);
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1), "the sequence");
        if let Some(descriptor) = bytes(&packet, 60) {
            let descriptor = fields(descriptor);
            let thread = bytes(&descriptor, 4).map(|thread| text(&fields(thread), 5));
            let track = number(&descriptor, 1).expect("a track");
            let name = thread.unwrap_or_else(|| text(&descriptor, 2));
            assert!(seen.tracks.insert(track, name).is_none(), "track {track} is described once");
        }
        let Some(event) = bytes(&packet, 11).map(fields) else { continue };
        let (time, track) = (number(&packet, 8).expect("a time"), number(&event, 11).expect("a track"));
        let before = last.insert(track, time).unwrap_or(0);
        assert!(before <= time, "track {track}: {before} before {time}");
        let name = (text(&event, 22), text(&event, 23));
        let on = seen.tracks.get(&track).cloned().expect("a track that was described");
        match number(&event, 9) {
            Some(BEGIN) => open.entry(track).or_default().push((name.0, name.1, time)),
            Some(END) => {
                let (category, name, from) = open.get_mut(&track).and_then(Vec::pop).expect("an open slice");
                seen.slices.push((category, name, time - from, on));
            }
            Some(INSTANT) => seen.slices.push((name.0, name.1, 0, on)),
            other => panic!("{other:?}"),
        }
        seen.flows.extend(event.iter().filter_map(|(field, value)| match value {
            Field::Number(flow) if *field == 47 || *field == 48 => Some((*flow, *field == 48)),
            _ => None,
        }));
    }
    assert!(open.values().all(Vec::is_empty), "open at the end: {open:?}");
    seen
}

fn exported(place: &Place, store: &str) -> Seen {
    place.rashomon(&["trace", "export", store, "--to", "perfetto", "-o", "trace.pftrace"]).expect(0, &[]);
    read(&std::fs::read(place.path("trace.pftrace")).unwrap())
}

/// Each flow begins at one event and ends at one behind it.
fn check_flows(seen: &Seen) {
    let mut sides: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
    for (flow, ends) in &seen.flows {
        sides.entry(*flow).or_default().push(*ends);
    }
    assert!(!sides.is_empty());
    assert!(sides.values().all(|sides| *sides == [false, true]), "{sides:?}");
}

#[test]
fn threads_are_tracks_and_accesses_of_findings_are_instants() {
    let place = Place::new();
    place.compile("program", RACE);
    place.rashomon(&["check", "--output", "store", "--", "./program"]).expect(66, &["PROVEN: 1 data race"]);
    let seen = exported(&place, "store");
    check_flows(&seen);
    let names: Vec<&str> = seen.tracks.values().map(String::as_str).collect();
    assert!(names.contains(&"the main thread") && names.contains(&"thread 0"), "{names:?}");
    let of = |category: &'static str| seen.slices.iter().filter(move |slice| slice.0 == category);
    let found: Vec<(&str, &str)> = of("finding").map(|slice| (slice.1.as_str(), slice.3.as_str())).collect();
    assert!(found.iter().any(|(name, on)| name.starts_with("race-") && *on == "thread 0"), "{found:?}");
    assert!(found.iter().any(|(name, on)| name.starts_with("race-") && *on == "the main thread"), "{found:?}");
    assert!(of("synchronisation").any(|slice| slice.1 == "creates thread 0" && slice.3 == "the main thread"), "{seen:?}");
    assert!(of("synchronisation").any(|slice| slice.1 == "joins thread 0"), "{seen:?}");
    assert_eq!(of("thread").count(), 2);
}

#[test]
fn locks_held_and_waits_are_slices() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
void *task(void *unused) {
    pthread_mutex_lock(&first);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&first);
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    pthread_create(&thread, 0, task, 0);
    while (!ready) pthread_cond_wait(&changed, &first);
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    pthread_join(thread, 0);
    return 0;
}
",
    );
    place.rashomon(&["record", "--output", "store", "--", "./program"]).expect(0, &[]);
    let seen = exported(&place, "store");
    check_flows(&seen);
    let held: Vec<&str> = seen.slices.iter().filter(|slice| slice.0 == "lock").map(|slice| slice.1.as_str()).collect();
    assert_eq!(held.iter().filter(|name| **name == "mutex second").count(), 1, "{held:?}");
    // Taken by both threads, and once more behind the wait.
    assert_eq!(held.iter().filter(|name| **name == "mutex first").count(), 3, "{held:?}");
    let waits = |slice: &&(String, String, u64, String)| slice.0 == "wait" && slice.1.contains("condition variable changed");
    assert_eq!(seen.slices.iter().filter(waits).count(), 1, "{seen:?}");
}

#[test]
fn standard_output_has_the_bytes_of_a_file() {
    let place = Place::new();
    place.compile("program", RACE);
    place.rashomon(&["record", "--output", "store", "--", "./program"]).expect(0, &[]);
    exported(&place, "store");
    let line = "\"$0\" --quiet trace export store --to perfetto -o - > piped";
    place.run(place.command("sh", &["-c", line, env!("CARGO_BIN_EXE_rashomon")])).expect(0, &[]);
    let [file, piped] = ["trace.pftrace", "piped"].map(|name| std::fs::read(place.path(name)).unwrap());
    assert!(file == piped, "{} bytes, and {} by way of a pipe", file.len(), piped.len());
}

#[test]
fn what_is_no_recording_is_refused() {
    let place = Place::new();
    place.rashomon(&["trace", "gen", "--events", "3000", "-o", "packed"]).expect(0, &[]);
    place
        .rashomon(&["trace", "export", "packed", "--to", "perfetto", "-o", "out"])
        .expect(125, &["takes a recording or a store"]);
    place.rashomon(&["trace", "export", "nothing", "--to", "perfetto", "-o", "out"]).expect(125, &[]);
    place.rashomon(&["trace", "gen", "--events", "3000", "--to", "perfetto", "-o", "out"]).expect(2, &["possible values"]);
}
