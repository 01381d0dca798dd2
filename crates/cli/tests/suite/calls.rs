//! What calls return under the tool is what they return natively: of objects, ids and descriptors that are not what they claim to
//! be, and of calls that must not wait.

use crate::support::place::Place;

const MODES: [&[&str]; 6] = [
    &["record", "--policy", "random", "--seed", "1", "--output", "store"],
    &["record", "--policy", "random", "--seed", "3", "--output", "store"],
    &["record", "--policy", "run-to-block", "--output", "store"],
    &["record", "--policy", "pct", "--output", "store"],
    &["record", "--policy", "free", "--output", "store"],
    &["detect"],
];

/// The cases that the program lists, each in every mode.
fn every_case(source: &str) {
    let place = Place::new();
    place.compile("observed", source);
    place.must("cc", &["-O1", "-w", "-pthread", "-o", "native", "observed.c"]);
    let cases = place.must("./native", &[]).out;
    assert!(cases.lines().count() > 20, "{cases}");
    let mut wrong = String::new();
    for case in cases.lines() {
        let native = place.must("./native", &[case]).out;
        for mode in MODES {
            let _ = std::fs::remove_dir_all(place.path("store"));
            let ended = place.rashomon(&[mode, &["--", "./observed", case]].concat());
            // Misuses are reported, and are what these cases are about.
            let code = if mode[0] == "detect" { ended.code == 0 || ended.code == 66 } else { ended.code == 0 };
            let blocked = ended.err.lines().any(|line| line.starts_with("deadlock") || line.starts_with("every thread waits"));
            if ended.out != native || !code || blocked {
                wrong += &format!("{case} under {}\n--- native\n{native}{ended}\n", mode.join(" "));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn return_what_they_return_natively() {
    every_case(include_str!("calls/returns.c"));
}
