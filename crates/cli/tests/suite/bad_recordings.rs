//! Recordings and stores that are damaged or of another version: an error that names the place, and no crash.

use crate::support::place::{Place, RACE, statuses};
use std::fs;

fn race() -> Place {
    let place = Place::new();
    place.compile("race", RACE);
    place
}

/// A recording beside which damaged copies can be made.
fn recording() -> Place {
    let place = race();
    place.rashomon(&["record", "-o", "store", "--", "./race"]).expect(0, &[]);
    place
}

fn copied(place: &Place, name: &str) -> String {
    place.must("cp", &["-r", "store/recording-0", name]);
    name.to_owned()
}

/// All commands that read recordings: none may crash, and an error names the place.
#[track_caller]
fn read_in_every_way(place: &Place, session: &str) {
    for line in [
        &["trace", "verify", session] as &[&str],
        &["trace", "stat", session],
        &["trace", "dump", session],
        &["predict", session],
    ] {
        let ended = place.rashomon(line);
        assert!([0, 1, 125].contains(&ended.code), "{line:?}: {ended}");
        assert!(ended.code == 0 || ended.err.contains(session), "{line:?} names what is damaged: {ended}");
        assert!(!ended.err.contains("panicked"), "{line:?}: {ended}");
    }
}

#[test]
fn recordings_that_are_none() {
    let place = recording();
    fs::create_dir(place.path("nothing")).expect("the folder is writable");
    place.write("file", "text");
    for session in ["nothing", "file", "absent"] {
        place.rashomon(&["trace", "verify", session]).expect(1, &[session]);
        place.rashomon(&["trace", "stat", session]).expect(125, &[session]);
        place.rashomon(&["trace", "dump", session]).expect(125, &[session]);
        place.rashomon(&["predict", session]).expect(125, &[session, "rashomon"]);
        place.rashomon(&["confirm", session]).expect(125, &[session, "rashomon"]);
        place.rashomon(&["report", "--store", session]).expect(125, &[session]);
    }
    let session = copied(&place, "headless");
    fs::remove_file(place.path("headless/header")).expect("it is there");
    place.rashomon(&["trace", "stat", &session]).expect(125, &["headless is no recording", "`header`"]);
    fs::remove_file(place.path("store/recording-0/header")).expect("it is there");
    place.rashomon(&["predict", "store"]).expect(125, &["recording-0 is no recording"]);
}

#[test]
fn recordings_of_another_version() {
    let place = recording();
    let session = copied(&place, "newer");
    let header = place.path("newer/header");
    let mut bytes = fs::read(&header).expect("it is there");
    bytes[8] += 1;
    fs::write(&header, &bytes).expect("the folder is writable");
    for line in [&["trace", "stat", session.as_str()] as &[&str], &["predict", &session]] {
        place.rashomon(line).expect(125, &["newer/header", "version 5", "reads versions 1 to 4", "record again"]);
    }
    bytes[0] ^= 1;
    fs::write(&header, &bytes).expect("the folder is writable");
    place.rashomon(&["predict", &session]).expect(125, &["newer/header", "no recording"]);
}

#[test]
fn recordings_cut_short() {
    let place = recording();
    read_in_every_way(&place, "store/recording-0");
    for file in ["thread-0000", "thread-0001", "header", "modules"] {
        let whole = fs::read(place.path("store/recording-0").join(file)).expect("it is there");
        let used = whole.len() - whole.iter().rev().take_while(|byte| **byte == 0).count();
        for length in [0, 1, 8, 31, 32, 40, used / 2, used.saturating_sub(9), used.saturating_sub(1)] {
            let session = copied(&place, "cut");
            place.write(&format!("cut/{file}"), &whole[..length.min(whole.len())]);
            read_in_every_way(&place, &session);
            fs::remove_dir_all(place.path("cut")).expect("it is there");
        }
    }
    for file in ["thread-0000", "thread-0001", "modules"] {
        let session = copied(&place, "lacking");
        fs::remove_file(place.path("lacking").join(file)).expect("it is there");
        read_in_every_way(&place, &session);
        fs::remove_dir_all(place.path("lacking")).expect("it is there");
    }
}

#[test]
fn a_stream_that_is_lost() {
    let place = recording();
    let session = copied(&place, "lacking");
    fs::remove_file(place.path("lacking/thread-0001")).expect("it is there");
    place.rashomon(&["predict", &session]).expect(0, &["not complete", "thread 1 has no stream"]);
    place.rashomon(&["trace", "verify", &session]).expect(1, &["lacking/header", "thread 1 has no stream"]);
}

#[test]
fn a_thread_that_never_ran_has_no_stream() {
    let place = Place::new();
    let kill = "raise(SIGKILL);\n    pthread_join(thread, 0);";
    place.compile(
        "early",
        &RACE
            .replace("x++;\n    pthread_join(thread, 0);", kill)
            .replace("#include <pthread.h>", "#include <pthread.h>\n#include <signal.h>"),
    );
    place.rashomon(&["record", "--policy", "run-to-block", "-o", "store", "--", "./early"]).expect(137, &[]);
    assert!(!place.path("store/recording-0/thread-0001").exists());
    let verified = place.rashomon(&["trace", "verify", "store"]);
    assert!(!verified.out.contains("has no stream") && !verified.err.contains("has no stream"), "{verified}");
    let predicted = place.rashomon(&["predict", "store"]).expect(0, &["0 proven, 0 predicted"]);
    assert!(!predicted.err.contains("has no stream"), "{predicted}");
}

#[test]
fn schedules_of_another_binary() {
    let place = race();
    place.rashomon(&["check", "--json", "report.json", "--", "./race"]).expect(66, &[]);
    let id = statuses(&place.json("report.json")).remove(0).0;
    place.compile("race", &RACE.replace("static int x;", "static int y; static int x;").replace("x++;", "y++; x++;"));
    for further in [&[] as &[&str], &["--gdb"]] {
        let line = [&["replay", id.as_str()], further].concat();
        place.rashomon(&line).expect(125, &[&id, "another binary", "race had build-id", "rashomon check"]);
    }
    for command in ["predict", "confirm"] {
        place.rashomon(&[command]).expect(125, &["another binary", "race had build-id", "rashomon check"]);
    }
    fs::remove_file(place.path("race")).expect("it is there");
    place.rashomon(&["replay", &id]).expect(127, &["race: no such program"]);
    // The report needs no program.
    place.rashomon(&["report"]).expect(0, &[]);
}

#[test]
fn findings_that_are_damaged() {
    let place = race();
    place.rashomon(&["check", "-o", "store", "--json", "report.json", "--", "./race"]).expect(66, &[]);
    let id = statuses(&place.json("report.json")).remove(0).0;
    let file = format!("store/findings/{id}.json");
    let whole = fs::read_to_string(place.path(&file)).expect("it is there");
    let both = |said: &[&str]| {
        for line in [&["report", "--store", "store"] as &[&str], &["replay", "--store", "store", &id]] {
            place.rashomon(line).expect(125, said);
        }
    };
    for text in ["", "{", "[]", "null", &whole[..whole.len() / 2]] {
        place.write(&file, text);
        both(&[&format!("findings/{id}.json")]);
    }
    place.write(&file, whole.replace("\"version\": 1", "\"version\": 9"));
    both(&[&format!("findings/{id}.json"), "version 9", "version 1 was expected"]);
    // Well formed, but it names a thread that it does not have.
    let strange = whole.replacen("\"thread\": 1,", "\"thread\": 77,", 1);
    let strange = if strange == whole { whole.replacen("\"thread\": 0,", "\"thread\": 77,", 1) } else { strange };
    assert_ne!(strange, whole);
    place.write(&file, strange);
    place.rashomon(&["replay", "--store", "store", &id]).expect(125, &["77", "damaged"]);
    place.write(&file, &whole);
    place.rashomon(&["replay", "--store", "store", "race-zzz"]).expect(125, &["no finding race-zzz", &id]);
    place.rashomon(&["replay", "--store", "store", "../run"]).expect(125, &["no finding ../run"]);
    place.rashomon(&["replay", "--store", "store", &id]).expect(0, &[]);
    let run = fs::read_to_string(place.path("store/run.json")).expect("it is there");
    place.write("store/run.json", &run[..run.len() / 2]);
    place.rashomon(&["replay", "--store", "store", &id]).expect(125, &["run.json"]);
    place.rashomon(&["confirm", "store"]).expect(125, &["run.json"]);
}
