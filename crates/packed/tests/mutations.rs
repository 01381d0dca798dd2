//! Damaged files through every reader: no panic, no memory without bound, and every refusal names a place.
//! `cargo xtask evaluate mutations` does the same with more of them, and with recordings.

mod support;

use rashomon_packed::file::reseal;
use rashomon_packed::{
    CheckOptions, Checked, Event, Format, Generator, Names, OpenOptions, Preset, Shape, Slice, Space, TraceError, WriteOptions,
    copy, create, open,
};
use rashomon_testkit::mutate::{Mutator, peak_memory};
use std::path::Path;
use support::drain;

/// Of each reader.
const FILES: usize = 400;
/// What reading a file of some ten kilobytes may cost, and the test itself.
const MEMORY: u64 = 512 << 20;

fn good(format: Format, seed: u64) -> Vec<u8> {
    let shape = Shape {
        threads: 4,
        locks: 5,
        variables: 300,
        racy: 3,
        read_shared: 20,
        locations: 50,
        nesting: 2,
        ..Preset::Regions.shape(900, seed)
    };
    let shape = Shape { transactions: format != Format::SpeedyGo, ..shape };
    let events: Vec<Event> = drain(&mut Generator::new(shape).unwrap()).unwrap();
    let mut names = Names::default();
    if format == Format::Packed {
        (0..300).for_each(|number| names.push(Space::Variable, &format!("name {number}")));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut source = Slice::named(&events, names);
    let mut sink = create(&path, format, WriteOptions::default(), &source).unwrap();
    copy(&mut source, &mut sink, |_| {}).unwrap();
    drop(sink);
    std::fs::read(path).unwrap()
}

/// Reads as far as it goes. An error must name a place.
fn read(path: &Path, options: &OpenOptions, checks: CheckOptions) -> bool {
    match open(path, options).and_then(|source| drain(&mut Checked::new(source, checks))) {
        Ok(_) => true,
        Err(TraceError::Malformed { .. } | TraceError::IllFormed { place: Some(_), .. }) => false,
        Err(error) => panic!("no place in: {error}"),
    }
}

fn damage(format: Format, prepare: fn(Vec<u8>) -> Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let (one, other) = (good(format, 1), good(format, 2));
    std::fs::write(&path, prepare(one.clone())).unwrap();
    assert!(read(&path, &OpenOptions::default(), CheckOptions::default()), "undamaged");
    let mut mutator = Mutator::new(format as u64);
    let mut refused = 0;
    for number in 0..FILES {
        std::fs::write(&path, prepare(mutator.mutate(&one, &other))).unwrap();
        let lenient = number % 2 == 1;
        let options = OpenOptions { format: Some(format), lenient, bare_threads: number % 4 == 2, ..OpenOptions::default() };
        refused += usize::from(!read(&path, &options, CheckOptions { lenient, reentrant: number % 8 == 4 }));
        // Whatever the content looks like after that.
        read(&path, &OpenOptions { format: None, ..options }, CheckOptions::default());
    }
    assert!(refused > FILES / 4, "only {refused} of {FILES} damaged files were refused");
    if let Some(peak) = peak_memory() {
        assert!(peak < MEMORY, "{peak} bytes of memory");
    }
}

#[test]
fn std_text() {
    damage(Format::Std, |bytes| bytes);
}

#[test]
fn speedy_go() {
    damage(Format::SpeedyGo, |bytes| bytes);
}

#[test]
fn rapid_bin() {
    damage(Format::RapidBin, |bytes| bytes);
}

#[test]
fn packed() {
    damage(Format::Packed, |bytes| bytes);
}

#[test]
fn packed_with_checksums_that_match() {
    damage(Format::Packed, |mut bytes| {
        reseal(&mut bytes);
        bytes
    });
}

#[test]
fn packed_from_a_stream() {
    damage(Format::Packed, |mut bytes| {
        reseal(&mut bytes);
        zstd::encode_all(&bytes[..], 1).unwrap()
    });
}

#[test]
fn compressed_files() {
    for level in [1, 3] {
        let good = zstd::encode_all(&good(Format::Std, 1)[..], level).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut mutator = Mutator::new(9);
        for _ in 0..FILES / 2 {
            std::fs::write(&path, mutator.mutate(&good, &good)).unwrap();
            read(&path, &OpenOptions { format: Some(Format::Std), ..OpenOptions::default() }, CheckOptions::default());
        }
    }
}

#[test]
fn a_file_of_a_thousand_bytes_that_uncompresses_to_a_long_line_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    std::fs::write(&path, zstd::encode_all(&vec![b'x'; 64 << 20][..], 1).unwrap()).unwrap();
    let error = open(&path, &OpenOptions { format: Some(Format::Std), ..OpenOptions::default() })
        .and_then(|mut source| drain(&mut source))
        .unwrap_err()
        .to_string();
    assert!(error.contains("byte 0 (line 1): a line of more than 262144 bytes"), "{error}");
}
