//! Supervision, with shells in place of instrumented programs: nothing here needs the runtime.

use rashomon_confirm::{ConfirmError, Ending, Execution, Input, Output, Program, Time, execute};
use rashomon_event::Deadline;
use std::path::Path;
use std::time::Duration;

fn shell(script: &str, directory: &Path) -> Program {
    Program {
        executable: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: directory.into(),
        library_path: None,
        randomise_addresses: true,
        environment: Vec::new(),
        before_each: None,
        before_each_limit: None,
        client: None,
    }
}

fn run(program: &Program, limit: Option<Duration>) -> Execution {
    in_time(program, Time { limit, ..Time::UNLIMITED }).expect("the shell starts")
}

fn in_time(program: &Program, time: Time) -> Result<Execution, ConfirmError> {
    let session = program.directory.join("session");
    execute(program, &session, &Input::Empty, Output::Discard, time)
}

#[test]
fn exit_codes_and_signals_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&shell("exit 7", folder.path()), None).ending, Ending::Code(7));
    assert_eq!(run(&shell("kill -ABRT $$", folder.path()), None).ending, Ending::Signal(6));
}

#[test]
fn the_limit_ends_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    // The grandchild holds the write end of a pipe; only when it is dead does the reader see the end of the file.
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let program = shell("exec 3>fifo; (exec sleep 1000) & wait", folder.path());
    let reader = std::thread::spawn(move || std::fs::read(fifo).unwrap());
    assert_eq!(run(&program, Some(Duration::from_millis(300))).ending, Ending::TimedOut);
    assert!(reader.join().unwrap().is_empty());
}

#[test]
fn what_a_program_leaves_behind_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let program = shell("exec 3>fifo; (exec sleep 1000) & exit 3", folder.path());
    let reader = std::thread::spawn(move || std::fs::read(fifo).unwrap());
    assert_eq!(run(&program, None).ending, Ending::Code(3));
    assert!(reader.join().unwrap().is_empty());
}

#[test]
fn the_session_and_the_library_path_are_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = shell("printf %s \"$RASHOMON_SESSION|${LD_LIBRARY_PATH%%:*}\" >seen", folder.path());
    program.library_path = Some("/some/runtime".into());
    assert_eq!(run(&program, None).ending, Ending::Code(0));
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    assert_eq!(seen, format!("{}|/some/runtime", folder.path().join("session").display()));
}

#[test]
fn addresses_are_not_randomised_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = shell("cat /proc/self/personality >personality", folder.path());
    program.randomise_addresses = false;
    assert_eq!(run(&program, None).ending, Ending::Code(0));
    let text = std::fs::read_to_string(folder.path().join("personality")).unwrap();
    let bits = u64::from_str_radix(text.trim(), 16).unwrap();
    assert_ne!(bits & 0x0004_0000, 0, "ADDR_NO_RANDOMIZE is set in {text}");
}

#[test]
fn the_world_is_restored_before_each_execution() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = shell("test ! -e used && touch used", folder.path());
    assert_eq!(run(&program, None).ending, Ending::Code(0));
    assert_eq!(run(&program, None).ending, Ending::Code(1));
    program.before_each = Some("rm -f used".into());
    assert_eq!(run(&program, None).ending, Ending::Code(0));
    assert_eq!(run(&program, None).ending, Ending::Code(0));

    program.before_each = Some("exit 4".into());
    let error = execute(&program, folder.path(), &Input::Empty, Output::Discard, Time::UNLIMITED).unwrap_err();
    assert!(error.to_string().contains("exit code 4"), "{error}");
}

/// What restores the world has its own time; what is left of a budget ends it without a word.
#[test]
fn restoring_the_world_is_not_part_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = shell("true", folder.path());
    program.before_each = Some("sleep 0.5".into());
    assert_eq!(in_time(&program, Time::of(Duration::from_millis(400))).unwrap().ending, Ending::Code(0));
    program.before_each = Some("sleep 1000".into());
    for milliseconds in [0, 300] {
        let time = Time { limit: None, until: Deadline::within(Duration::from_millis(milliseconds)) };
        assert_eq!(in_time(&program, time).unwrap().ending, Ending::TimedOut);
    }
    program.before_each_limit = Some(Duration::from_millis(300));
    let error = in_time(&program, Time::UNLIMITED).unwrap_err();
    assert!(error.to_string().contains("did not end within the time"), "{error}");
}

#[test]
fn input_comes_from_a_file_or_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), "hello").unwrap();
    let program = shell("read line; test \"$line\" = hello", folder.path());
    let session = folder.path();
    let from_file = Input::File(folder.path().join("in"));
    assert_eq!(execute(&program, session, &from_file, Output::Discard, Time::UNLIMITED).unwrap().ending, Ending::Code(0));
    assert_eq!(execute(&program, session, &Input::Empty, Output::Discard, Time::UNLIMITED).unwrap().ending, Ending::Code(1));
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = shell("", folder.path());
    program.executable = folder.path().join("none");
    let error = execute(&program, folder.path(), &Input::Empty, Output::Discard, Time::UNLIMITED).unwrap_err();
    assert!(error.to_string().starts_with("cannot execute"), "{error}");
}
