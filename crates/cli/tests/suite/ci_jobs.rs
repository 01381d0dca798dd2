//! The jobs that the book gives for CI: their commands are executed as a runner would execute them, one after the other in one
//! folder, up to the first that fails.

use crate::support::place::{Ended, Place};
use std::path::Path;

const CHAPTER: &str = include_str!("../../../../docs/how-to/ci.md");
/// A project whose tests have a race, and the same without.
const TESTS: &str = include_str!("../../../../examples/listing1.c");
const MAKEFILE: &str = "tests: tests.c\n\t$(CC) -g -O1 -pthread -o tests tests.c\n";

/// Commands of the first job that has this word in it.
fn job(word: &str) -> Vec<String> {
    let blocks = CHAPTER.split("```").skip(1).step_by(2);
    let job = blocks.into_iter().find(|block| block.contains(word)).unwrap_or_else(|| panic!("no job has {word}"));
    let command = |line: &str| {
        let line = line.trim();
        let jenkins = line.strip_prefix("sh '").and_then(|rest| rest.strip_suffix('\''));
        let gitlab = || line.strip_prefix("- ").filter(|rest| !rest.contains(": "));
        line.strip_prefix("- run: ").or(jenkins).or_else(gitlab).map(str::to_owned)
    };
    job.lines().filter_map(command).collect()
}

/// How the job ends.
fn run(place: &Place, commands: &[String]) -> Ended {
    assert!(commands.len() >= 2, "{commands:?}");
    let tool = Path::new(env!("CARGO_BIN_EXE_rashomon"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths(tool.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&paths)));
    let paths = paths.expect("folders of tests have no colons");
    let mut ended = None;
    for line in commands {
        let mut command = place.command("sh", &["-e", "-c", line]);
        command.env("PATH", &paths);
        let one = place.run(command);
        let failed = one.code != 0;
        ended = Some(one);
        if failed {
            break;
        }
    }
    ended.expect("a job has commands")
}

fn is_red_and_then_green(word: &str, artifacts: &[&str]) {
    let place = Place::new();
    place.write("Makefile", MAKEFILE);
    place.write("tests.c", TESTS);
    let commands = job(word);
    run(&place, &commands).expect(66, &["PROVEN: 1 data race"]);
    for artifact in artifacts {
        assert!(place.path(artifact).exists(), "{word}: no {artifact}");
    }
    let mended = TESTS.replace("y++;", "(void)y;");
    assert_ne!(mended, TESTS);
    place.write("tests.c", &mended);
    std::fs::remove_file(place.path("tests")).expect("it was built");
    run(&place, &commands).expect(0, &[]);
}

#[test]
fn github() {
    is_red_and_then_green("actions/upload-artifact", &["races.json", ".rashomon"]);
}

#[test]
fn gitlab() {
    is_red_and_then_green("codequality:", &["races.json", "races.xml", ".rashomon"]);
}

#[test]
fn jenkins() {
    is_red_and_then_green("pipeline {", &["races.xml", "races.html", ".rashomon"]);
}
