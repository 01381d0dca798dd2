//! `rashomon trace` on trace files: made up, imported, exported, looked at, refused.

use crate::support::place::{Place, RACE};

fn count(place: &Place, file: &str, name: &str) -> u64 {
    let said = place.rashomon(&["trace", "stat", file]).expect(0, &[]).out;
    let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{said}"));
    line.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn made_up_traces_go_through_every_format() {
    let place = Place::new();
    let shape = ["--events", "30000", "--threads", "5", "--nesting", "2", "--locations", "500", "--seed", "3"];
    let generate = |further: &[&str]| place.rashomon(&[&["trace", "gen"], &shape[..], further].concat());
    generate(&["-o", "trace"]).expect(0, &[]);
    generate(&["-o", "again"]).expect(0, &[]);
    assert_eq!(std::fs::read(place.path("trace")).unwrap(), std::fs::read(place.path("again")).unwrap());
    place.rashomon(&["trace", "verify", "trace"]).expect(0, &[]);
    assert_eq!(count(&place, "trace", "events"), 30_000);
    assert_eq!(count(&place, "trace", "threads"), 5);
    assert_eq!(count(&place, "trace", "locks held"), 2);
    for format in ["std", "rapidbin", "speedygo", "packed"] {
        let file = format!("{format}.trace");
        place.rashomon(&["trace", "export", "trace", "--to", format, "-o", &file]).expect(0, &[]);
        place.rashomon(&["trace", "import", &file, "-o", "back"]).expect(0, &[]);
        for name in ["acquire", "read", "write", "variables"] {
            assert_eq!(count(&place, "back", name), count(&place, "trace", name), "{name} through {format}");
        }
    }
    place.rashomon(&["trace", "export", "trace", "--to", "rapidbin", "-o", "-"]).expect(125, &["needs a file"]);
    place.rashomon(&["trace", "gen", "--events", "10", "-o", "few"]).expect(125, &["this shape needs"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let place = Place::new();
    place.write("mixed.std", "T1|fork(2)|1\nT2|w(x)|2\nT1|join(2)|3\n");
    let refused = ["mixed.std: byte 13 (line 2)", "never match", "--bare-threads"];
    place.rashomon(&["trace", "import", "mixed.std", "-o", "out"]).expect(125, &refused);
    place.rashomon(&["trace", "verify", "mixed.std"]).expect(1, &refused);
    for command in [["predict", "mixed.std"], ["analyse", "mixed.std"]] {
        place.rashomon(&command).expect(125, &[refused[0], "--lenient reads on"]);
        place.rashomon(&[command[0], "--lenient", command[1]]).expect(0, &[]);
    }
    place.rashomon(&["trace", "import", "mixed.std", "--lenient", "-o", "out"]).expect(0, &refused);
    place.rashomon(&["trace", "import", "mixed.std", "--bare-threads", "-o", "out"]).expect(0, &[]);
    assert_eq!(place.rashomon(&["trace", "dump", "out"]).expect(0, &[]).out.lines().next(), Some("       0 1 fork 2 at 1"));
    place.write("nested.std", "T1|acq(m)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT1|rel(m)|4\n");
    place.rashomon(&["trace", "verify", "nested.std"]).expect(1, &["(line 2)", "--reentrant"]);
    place.rashomon(&["trace", "verify", "nested.std", "--reentrant"]).expect(0, &[]);
    place.rashomon(&["trace", "import", "absent", "-o", "out"]).expect(125, &["absent"]);
    place.write("what", "what is this");
    place.rashomon(&["trace", "stat", "what"]).expect(125, &["no format known"]);
}

#[test]
fn recordings_are_imported() {
    let place = Place::new();
    place.compile("race", RACE);
    place.rashomon(&["record", "--output", "store", "--", "./race"]).expect(0, &[]);
    place.rashomon(&["trace", "import", "store", "-o", "packed"]).expect(0, &[]);
    assert_eq!(count(&place, "packed", "fork"), 1);
    assert_eq!(count(&place, "packed", "join"), 1);
    place.rashomon(&["trace", "verify", "packed"]).expect(0, &[]);
    place.rashomon(&["trace", "export", "store", "--to", "std", "--lossy", "-o", "std"]).expect(0, &[]);
    place.rashomon(&["trace", "verify", "std"]).expect(0, &[]);
}

/// Events without end come in: reading ends with the time, and what was read is a trace.
#[test]
fn a_trace_without_end_ends_with_the_budget() {
    let place = Place::new();
    place.write("begin", "T1|fork(T2)|1\nT2|w(x)|2\nT1|w(x)|3\n");
    let endless = |command: &str| {
        let line = format!("(cat begin; yes 'T1|r(y)|4') | \"$0\" --quiet {command}");
        place.run(place.command("bash", &["-c", &line, env!("CARGO_BIN_EXE_rashomon")]))
    };
    let predicted = endless("predict - --predict-within 1 --show everything")
        .expect(0, &["the time was over after", "--predict-within gives more"]);
    assert!(predicted.err.contains("x"), "{predicted}");
    let analysed = endless("analyse - --budget 1");
    assert_eq!(analysed.code, 0, "{analysed}");
    assert!(analysed.err.contains("the time was over after"), "{analysed}");
}
