//! What is refused, where, and in which words.

mod support;

use rashomon_packed::{CheckOptions, Checked, OpenOptions, Source as _, read};
use std::io::Cursor;
use std::path::Path;
use support::drain;

/// What is said about a text trace: the error, or the notices.
fn said_with(text: &str, options: OpenOptions, checks: CheckOptions) -> String {
    let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let source = match read(reader, Path::new("FILE"), &options) {
        Ok(source) => source,
        Err(error) => return error.to_string(),
    };
    let mut source = Checked::new(source, checks);
    match drain(&mut source) {
        Ok(events) if source.notices().is_empty() => format!("{} events", events.len()),
        Ok(events) => {
            let ops: Vec<_> = events.iter().map(|event| event.op.name()).collect();
            format!("{}\n→ {}", source.notices().join("\n"), ops.join(", "))
        }
        Err(error) => error.to_string(),
    }
}

fn said(text: &str) -> String {
    said_with(text, OpenOptions::default(), CheckOptions::default())
}

fn all(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text:?}\n  {}\n", said(text))).collect()
}

#[test]
fn malformed_text() {
    insta::assert_snapshot!(all(&[
        "",
        "hello",
        "T1|w(x)|1\nT1 w(x) 2\n",
        "T1|w(x)|1\n\n|w(x)|2\n",
        "T1|q(x)|1",
        "T1|w|1",
        "T1|w()|1",
        "T1|w(x|1",
        "T1|w(x)|3|4",
        "1,LK,1,nil,1\n1,LK,1,nil",
        "1,LK,1,nil,1\n1,XX,1,nil,1",
        "1,RD,,nil,1",
    ]));
}

#[test]
fn locks() {
    insta::assert_snapshot!(all(&[
        "T1|rel(m)|1",
        "T1|acq(m)|1\nT2|rel(m)|2",
        "T1|acq(m)|1\nT2|acq(m)|2",
        "T1|acq(m)|1\nT1|acq(m)|2",
        "T1|acqr(m)|1\nT2|acqr(m)|2\nT1|relr(m)|3\nT2|relr(m)|4\nT1|acq(m)|5",
        "T1|acqr(m)|1\nT2|acq(m)|2",
        "T1|acq(m)|1\nT2|acqr(m)|2",
        "T1|acqr(m)|1\nT1|rel(m)|2",
        "T1|acq(m)|1\nT1|relr(m)|2",
        "T1|req(m)|1\nT1|acq(m)|2\nT2|req(m)|3\nT1|rel(m)|4",
    ]));
}

#[test]
fn threads() {
    insta::assert_snapshot!(all(&[
        "T1|fork(T2)|1\nT2|w(x)|2\nT1|join(T2)|3\nT1|w(x)|4",
        "T1|fork(T1)|1",
        "T1|fork(T2)|1\nT1|fork(T2)|2",
        "T2|w(x)|1\nT1|fork(T2)|2",
        "T1|fork(T2)|1\nT1|join(T2)|2\nT2|w(x)|3",
        "T1|w(x)|1\nT1|join(T2)|2",
        "T2|w(x)|1\nT1|join(T2)|2\nT3|join(T2)|3",
        "T1|fork(T2)|1\nT2|acq(m)|2\nT1|join(T2)|3",
        "T1|fork(T2)|1\nT2|begin(a)|2\nT1|join(T2)|3",
        "T1|join(T1)|1",
    ]));
}

#[test]
fn regions() {
    insta::assert_snapshot!(all(&[
        "T1|begin(a)|1\nT1|begin(b)|2\nT1|end(b)|3\nT1|end(a)|4",
        "T1|begin|1\nT1|end|2",
        "T1|end(a)|1",
        "T1|begin(a)|1\nT1|begin(b)|2\nT1|end(a)|3",
    ]));
}

#[test]
fn names_that_never_match() {
    let raw = "T1|fork(2)|1\nT2|w(x)|2\nT1|join(2)|3";
    let other = "main|fork(a)|1\nmain|fork(b)|2\nworker a|w(x)|3\nworker b|w(x)|4";
    insta::assert_snapshot!(all(&[raw, "T1|fork(T2)|1\nT12|w(x)|2\nT2|w(x)|3\nT1|fork(12)|4", other]));
    let bare = OpenOptions { bare_threads: true, ..OpenOptions::default() };
    assert_eq!(said_with(raw, bare, CheckOptions::default()), "3 events");
}

#[test]
fn leniently() {
    let lenient = CheckOptions { lenient: true, ..CheckOptions::default() };
    let text = "T1|fork(2)|1\nT2|w(x)|2\nT2|rel(m)|3\nT2|r(x)|4\nT1|fork(2)|5\n";
    insta::assert_snapshot!(said_with(text, OpenOptions::default(), lenient));
}

#[test]
fn reentrant_locks() {
    let text = "T1|acq(m)|1\nT1|req(m)|2\nT1|acq(m)|3\nT1|rel(m)|4\nT2|acq(n)|5\nT1|rel(m)|6\nT2|acq(m)|7\n";
    let reentrant = CheckOptions { reentrant: true, ..CheckOptions::default() };
    let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let source = read(reader, Path::new("FILE"), &OpenOptions::default()).unwrap();
    let events = drain(&mut Checked::new(source, reentrant)).unwrap();
    let ops: Vec<_> = events.iter().map(|event| event.op.name()).collect();
    assert_eq!(ops, ["acquire", "nothing", "nothing", "nothing", "acquire", "release", "acquire"]);
}

#[test]
fn places_are_right_in_long_files() {
    let good = "T1|w(x)|1\n".repeat(100_000);
    for (line, text) in [(100_001, format!("{good}T1|rel(m)|1\n{good}")), (60_002, format!("{}\nT1|what|1\n", &good[..600_000]))]
    {
        let said = said(&text);
        assert!(said.contains(&format!("(line {line})")), "{said}");
        assert!(said.contains(&format!("byte {}", if line == 60_002 { 600_001 } else { 1_000_000 })), "{said}");
    }
}

#[test]
fn too_many_threads() {
    let text: String = (0..65_537).map(|number| format!("T{number}|w(x)|1\n")).collect();
    let said = said(&text);
    assert!(said.contains("(line 65537): more than 65536 threads"), "{said}");
}
