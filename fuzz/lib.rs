//! What the targets have in common: a trace is read to its end through the checks, and what is refused names its place.

use rashomon_packed::{CheckOptions, Checked, Format, OpenOptions, Source as _, TraceError, read};
use std::io::Cursor;
use std::path::Path;

/// Panics if a refusal has no place; everything else is for the fuzzer to find.
pub fn read_all(content: Vec<u8>, format: Option<Format>, flags: u8) {
    let options = OpenOptions { format, bare_threads: flags & 1 != 0, lenient: flags & 2 != 0, ..OpenOptions::default() };
    let checks = CheckOptions { lenient: flags & 2 != 0, reentrant: flags & 4 != 0 };
    let source = read(Box::new(Cursor::new(content)), Path::new("input"), &options);
    let result = source.and_then(|source| {
        let mut source = Checked::new(source, checks);
        let mut block = Vec::new();
        loop {
            source.next(&mut block)?;
            if block.is_empty() {
                return Ok(());
            }
        }
    });
    match result {
        Ok(()) | Err(TraceError::Malformed { .. } | TraceError::IllFormed { place: Some(_), .. }) => {}
        Err(error) => panic!("no place in: {error}"),
    }
}

/// The first byte says how to read the rest.
pub fn read_flagged(input: &[u8], format: Option<Format>) {
    if let [flags, content @ ..] = input {
        read_all(content.to_vec(), format, *flags);
    }
}
