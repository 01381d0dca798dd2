//! The command line as it is understood.

use super::*;
use clap::CommandFactory as _;

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

fn check(line: &[&str]) -> (Option<PathBuf>, Vec<OsString>) {
    match Arguments::try_parse_from(line).unwrap().command {
        Command::Check { target, .. } => (target.file, target.command),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_forms_of_check() {
    assert_eq!(check(&["rashomon", "check", "a.c"]), (Some("a.c".into()), vec![]));
    assert_eq!(check(&["rashomon", "check", "a.c", "--", "-x", "1"]), (Some("a.c".into()), vec!["-x".into(), "1".into()]));
    assert_eq!(
        check(&["rashomon", "check", "--seed", "3", "--", "./p", "--", "y"]),
        (None, vec!["./p".into(), "--".into(), "y".into()])
    );
}

#[test]
fn gdb_arguments_are_passed_on() {
    let line = ["rashomon", "replay", "race-1", "--gdb", "--", "-batch", "-ex", "bt"];
    match Arguments::try_parse_from(line).unwrap().command {
        Command::Replay { gdb: true, gdb_arguments, .. } => assert_eq!(gdb_arguments, ["-batch", "-ex", "bt"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let parses = |line: &str| Arguments::try_parse_from(line.split(' ')).is_ok();
    for (good, bad) in [
        ("rashomon replay race --times 1", "rashomon replay race --times 0"),
        ("rashomon check --expect-exit 255 -- ./prog", "rashomon check --expect-exit 256 -- ./prog"),
    ] {
        assert!(parses(good), "{good}");
        assert!(!parses(bad), "{bad}");
    }
}

#[test]
fn times_that_make_no_sense_are_refused() {
    assert!(["-1", "nan", "inf", "1e300", "x"].iter().all(|bad| seconds(bad).is_err()));
    assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
}
