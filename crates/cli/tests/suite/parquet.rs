//! `rashomon trace export --to parquet`: what the table says, by the reader of the crate that writes it.
//! `cargo xtask evaluate formats-out` asks DuckDB.

use crate::support::place::{Place, RACE};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::fs::{self, File};

type Row = BTreeMap<String, Field>;

fn rows(place: &Place, name: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(place.path(name)).unwrap()).unwrap();
    reader.into_iter().map(|row| row.unwrap().into_columns().into_iter().collect()).collect()
}

fn text(row: &Row, column: &str) -> String {
    match &row[column] {
        Field::Str(text) => text.clone(),
        Field::Null => String::new(),
        other => panic!("{column}: {other:?}"),
    }
}

fn number(row: &Row, column: &str) -> Option<i64> {
    match &row[column] {
        Field::Long(number) => Some(*number),
        Field::ULong(number) => Some(*number as i64),
        Field::Null => None,
        other => panic!("{column}: {other:?}"),
    }
}

fn list(row: &Row, column: &str) -> Vec<i64> {
    let Field::ListInternal(list) = &row[column] else { panic!("{column}: {:?}", row[column]) };
    let number = |field: &Field| if let Field::Long(number) = field { *number } else { panic!("{field:?}") };
    list.elements().iter().map(number).collect()
}

const PARQUET: [&str; 5] = ["--to", "parquet", "-o", "out", "--quiet"];

fn export(place: &Place, trace: &str) -> Vec<Row> {
    place.rashomon(&[&["trace", "export", trace], &PARQUET[..]].concat()).expect(0, &[]);
    rows(place, "out")
}

#[test]
fn a_recording_has_names_values_and_locks() {
    let place = Place::new();
    place.compile(
        "program",
        "#include <pthread.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
_Alignas(8) char word[8];
void *task(void *unused) {
    pthread_mutex_lock(&lock);
    ready = 7;
    word[3] = 'x';
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}
int main(void) {
    pthread_t thread;
    *(long *)word = 0x6161616161616161;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, 0, task, 0);
    while (!ready) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    return 0;
}
",
    );
    place.rashomon(&["record", "--values", "--output", "store", "--", "./program"]).expect(0, &[]);
    let rows = export(&place, "store");
    let of = |operation: &str| rows.iter().filter(|row| text(row, "operation") == operation).collect::<Vec<_>>();

    let write =
        rows.iter().find(|row| text(row, "variable_name") == "global ready" && row["writes"] == Field::Bool(true)).unwrap();
    assert_eq!(
        (text(write, "thread_name"), text(write, "function"), number(write, "line")),
        ("0".into(), "task".into(), Some(8))
    );
    assert_eq!((number(write, "size"), number(write, "value_written")), (Some(4), Some(7)), "{write:?}");
    assert!(text(write, "file").ends_with("program.c") && text(write, "location").starts_with("program+0x"), "{write:?}");
    let lock = number(of("release")[0], "lock").unwrap();
    assert_eq!((list(write, "held"), text(of("release")[0], "lock_name")), (vec![lock], "mutex lock".into()));

    // The whole word is three variables: one of its bytes is accessed by itself, too.
    let whole: Vec<_> = rows.iter().filter(|row| text(row, "variable_name").starts_with("global word")).collect();
    let sizes = |event: Option<i64>| {
        whole.iter().filter(|row| number(row, "event") == event).map(|row| number(row, "size").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(number(whole[0], "event")), [3, 1, 4], "{whole:?}");
    let byte = whole.iter().find(|row| text(row, "thread_name") == "0").unwrap();
    assert_eq!((number(byte, "variable"), number(byte, "value_written")), (number(whole[1], "variable"), Some(i64::from(b'x'))));
    assert_eq!(number(byte, "address"), number(whole[0], "address").map(|address| address + 3));

    // A wait gives the lock back and takes it again; the signal is named.
    let (begin, end) = (of("wait begin"), of("wait end"));
    assert_eq!((begin.len(), end.len()), (1, 1));
    assert_eq!((&begin[0]["takes"], list(begin[0], "held")), (&Field::Bool(false), vec![lock]));
    assert_eq!((&end[0]["takes"], list(end[0], "held")), (&Field::Bool(true), vec![]));
    assert_eq!(number(end[0], "woken_by"), number(of("signal")[0], "event"));
    assert_eq!(text(of("signal")[0], "object_name"), "condition variable changed");
    assert_eq!((text(of("fork")[0], "child_name"), number(of("join")[0], "child")), ("0".into(), Some(1)));
    // As many events as the recording has.
    let dumped = place.rashomon(&["trace", "dump", "store"]).expect(0, &[]).out.lines().count();
    assert_eq!(number(rows.last().unwrap(), "event"), Some(dumped as i64 - 1));
}

#[test]
fn a_trace_file_has_every_operation() {
    let place = Place::new();
    let trace = "T1|fork(T2)|10\nT1|begin(deposit)|11\nT1|req(m)|12\nT1|acq(m)|12\nT1|r(x)|13\nT2|acqr(t)|20\nT2|w(x)|21\n\
                 T2|relr(t)|22\nT1|rel(m)|14\nT1|end(deposit)|15\nT1|branch|16\nT1|join(T2)|\n";
    place.write("trace.std", trace);
    let rows = export(&place, "trace.std");
    let said: Vec<String> = rows.iter().map(|row| format!("{} {}", text(row, "thread_name"), text(row, "operation"))).collect();
    let expected = [
        "T1 fork",
        "T1 begin",
        "T1 request",
        "T1 acquire",
        "T1 read",
        "T2 acquire shared",
        "T2 write",
        "T2 release shared",
        "T1 release",
        "T1 end",
        "T1 branch",
        "T1 join",
    ];
    assert_eq!(said, expected);
    let events: Vec<_> = rows.iter().map(|row| number(row, "event")).collect();
    assert_eq!(events, (0..12).map(Some).collect::<Vec<_>>());
    let held: Vec<_> = rows.iter().map(|row| list(row, "held")).collect();
    assert_eq!((&held[3], &held[4], &held[6], &held[8], &held[9]), (&vec![], &vec![0], &vec![1], &vec![0], &vec![]));
    assert_eq!(number(&rows[4], "variable"), number(&rows[6], "variable"));
    assert_eq!((text(&rows[4], "variable_name"), text(&rows[4], "location")), ("x".into(), "13".into()));
    assert_eq!((text(&rows[1], "region"), text(&rows[0], "child_name"), text(&rows[2], "lock_name")), {
        ("deposit".into(), "T2".into(), "m".into())
    });
    let takes: Vec<_> = rows.iter().map(|row| row["takes"].clone()).filter(|takes| *takes != Field::Null).collect();
    assert_eq!(takes, [true, true, false, false].map(Field::Bool));
    for nothing in ["address", "size", "function", "line", "ordinal", "value_read"] {
        assert!(rows.iter().all(|row| row[nothing] == Field::Null), "{nothing}");
    }
}

/// More rows than a group has, from a pipe to a pipe.
#[test]
fn long_traces_go_through_pipes() {
    let place = Place::new();
    let line = "\"$0\" --quiet trace gen --events 300000 -o - | \"$0\" --quiet trace export --to parquet -o - - > out";
    let ended = place.run(place.command("bash", &["-o", "pipefail", "-c", line, env!("CARGO_BIN_EXE_rashomon")]));
    ended.expect(0, &[]);
    let reader = SerializedFileReader::new(File::open(place.path("out")).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!((metadata.file_metadata().num_rows(), metadata.num_row_groups()), (300_000, 2));
}

#[test]
fn nothing_half_written_takes_the_name() {
    let place = Place::new();
    place.write("trace.std", "T1|w(x)|1\nT1|rel(m)|2\n");
    let listed = || {
        let names = fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name == "out" || name.contains("part")).collect();
        names.sort();
        names
    };
    let export = |trace: &str, output: &str| place.rashomon(&["trace", "export", trace, "--to", "parquet", "-o", output]);
    export("trace.std", "out").expect(125, &["line 2", "--lenient"]);
    assert!(listed().is_empty(), "{:?}", listed());
    // What was there before stays.
    place.write("out", "precious");
    export("trace.std", "out").expect(125, &[]);
    assert_eq!(fs::read(place.path("out")).unwrap(), b"precious");
    place.rashomon(&["trace", "gen", "--events", "5000", "-o", "good"]).expect(0, &[]);
    export("good", "out").expect(0, &[]);
    assert_eq!(rows(&place, "out").len(), 5000);
    assert_eq!(listed(), ["out"]);
    export("good", "/dev/full").expect(125, &["cannot write /dev/full", "No space left"]);
    export("good", "absent/out").expect(125, &["cannot write absent/out", "o such file"]);
    export("good", ".").expect(125, &["cannot write .", "directory"]);
    export("good", "good").expect(125, &["cannot be read and written"]);
    export("nothing", "other").expect(125, &["nothing"]);
    assert!(!place.path("other").exists());
}

#[test]
fn a_recording_and_its_packed_trace_have_the_same_accesses() {
    let place = Place::new();
    place.compile("race", RACE);
    place.rashomon(&["record", "--output", "store", "--", "./race"]).expect(0, &[]);
    place.rashomon(&["trace", "import", "store", "-o", "packed"]).expect(0, &[]);
    let accesses = |rows: &[Row]| rows.iter().filter(|row| row["reads"] != Field::Null).count();
    let (recorded, packed) = (export(&place, "store"), export(&place, "packed"));
    assert!(accesses(&recorded) > 0);
    assert_eq!(accesses(&recorded), accesses(&packed));
}
