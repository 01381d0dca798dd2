//! The last line of a finding, pasted into a shell, makes it happen again every time; under gdb both sides are seen.

use crate::support::place::{Place, gdb_works, program_text, statuses};

const TIMES: u32 = 20;

/// The last line of each finding of a text report.
fn last_lines(report: &str) -> Vec<String> {
    let blocks = report.split("\n\n").filter(|block| block.contains("make it happen again:"));
    blocks.filter_map(|block| block.trim_end().lines().last()).map(|line| line.trim().to_owned()).collect()
}

/// Checks the program of the manifest's folder and gives the commands of its report.
fn commands_of(place: &Place, program: &str) -> Vec<String> {
    let text = program_text(program);
    if program.ends_with(".cpp") {
        place.compile_cxx("program", &text)
    } else {
        place.compile("program", &text)
    };
    let ended = place.rashomon(&["check", "--", "./program"]).expect(66, &["proven"]);
    assert!(!ended.err.contains("rashomon_runtime::"), "a frame of our own: {ended}");
    let commands = last_lines(&ended.err);
    assert!(!commands.is_empty(), "{ended}");
    commands
}

fn happens_again(program: &str) {
    let place = Place::new();
    for command in commands_of(&place, program) {
        for number in 0..TIMES {
            let mut shell = place.command("sh", &["-c", &command]);
            shell.current_dir("/");
            let ended = place.run(shell);
            assert_eq!(ended.code, 0, "time {number} of `{command}`: {ended}");
            assert!(ended.out.contains("again: "), "{ended}");
        }
    }
}

#[test]
fn a_race_on_a_global_happens_again() {
    happens_again("measured/listing1.c");
}

#[test]
fn a_race_on_a_heap_object_happens_again() {
    happens_again("racy/heap_object.c");
}

#[test]
fn a_deadlock_happens_again() {
    happens_again("measured/potential_deadlock.c");
}

#[test]
fn accesses_that_nothing_orders_happen_again() {
    happens_again("measured/relaxed_flag.cpp");
}

/// A suspicion that no execution showed has no command that makes it happen again, is listed with a next step, and its replay
/// does not succeed.
#[test]
fn what_never_came_about_does_not_happen_again() {
    let place = Place::new();
    place.compile("program", include_str!("reports/handed_over.c"));
    let ended = place.rashomon(&["check", "--budget", "10", "--", "./program"]).expect(0, &["diverged: suspected, forced"]);
    let listed = ended.err.lines().find(|line| line.trim_start().starts_with("data race [")).expect("a line for it");
    let id = listed.split(['[', ']']).nth(1).expect("an id");
    assert!(listed.contains(" / "), "both sides: {listed}");
    let all = place.rashomon(&["report", "--show", "suspicions"]);
    let block = format!("{}{}", all.out, all.err);
    let block = block.split("\n\n").find(|block| block.contains(id)).expect("its own part");
    assert!(!block.contains("make it happen again"), "{block}");
    let replayed = place.run(place.command(env!("CARGO_BIN_EXE_rashomon"), &["replay", id]));
    assert_eq!(replayed.code, 1, "{replayed}");
    assert!(replayed.out.contains("not again"), "{replayed}");
}

/// Where gdb's stacks of all threads stand, for the only finding of a program.
fn stacks_under_gdb(place: &Place, program: &str) -> String {
    let commands = commands_of(place, program);
    let [command] = commands.as_slice() else { panic!("one finding was expected: {commands:?}") };
    let line = format!("{command} --gdb -- -batch -ex 'thread apply all bt'");
    let mut shell = place.command("sh", &["-c", &line]);
    shell.current_dir("/");
    place.run(shell).out
}

#[test]
fn gdb_shows_both_accesses_of_a_race() {
    let place = Place::new();
    if gdb_works(&place) {
        let stacks = stacks_under_gdb(&place, "measured/listing1.c");
        for line in [16, 24] {
            assert!(stacks.contains(&format!("program.c:{line}\n")), "{stacks}");
        }
    }
}

#[test]
fn gdb_shows_both_lock_calls_of_a_deadlock() {
    let place = Place::new();
    if gdb_works(&place) {
        let stacks = stacks_under_gdb(&place, "measured/potential_deadlock.c");
        for line in [13, 22] {
            assert!(stacks.contains(&format!("program.c:{line}\n")), "{stacks}");
        }
    }
}

#[test]
fn a_finding_can_be_replayed_many_times_in_one_go() {
    let place = Place::new();
    let [command] = commands_of(&place, "racy/heap_object.c").try_into().expect("one finding");
    let ended = place.must("sh", &["-c", &format!("{command} --times 3")]);
    for number in 1..=3 {
        assert!(ended.out.contains(&format!("replay {number} of 3: again")), "{ended}");
    }
}

/// The second thread is there only with a variable that steers the program.
#[test]
fn a_replay_elsewhere_is_told_which_variables_differ() {
    const PROGRAM: &str = "#include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        static int shared;
        static void *add(void *p) { shared++; return p; }
        int main(void) {
            const char *kind = getenv(\"KIND\");
            pthread_t thread;
            if (!kind || strcmp(kind, \"two\")) return 0;
            pthread_create(&thread, NULL, add, NULL);
            shared++;
            pthread_join(thread, NULL);
            return 0;
        }";
    let place = Place::new();
    place.compile("program", PROGRAM);
    let with = |kind: Option<&str>, arguments: &[&str]| {
        let mut command = place.tool(arguments);
        match kind {
            Some(kind) => command.env("KIND", kind),
            None => command.env_remove("KIND"),
        };
        place.run(command)
    };
    with(Some("two"), &["check", "--output", "store", "--report", "json=report", "--", "./program"]).expect(66, &[]);
    let id = statuses(&place.json("report")).remove(0).0;
    let replay = ["replay", "--store", "store", id.as_str()];
    let again = with(Some("two"), &replay).expect(0, &[]);
    assert!(!again.err.contains("hint"), "{again}");
    with(Some("one"), &replay).expect(1, &["hint", "KIND had another value then"]);
    with(None, &replay).expect(1, &["hint", "KIND was set then"]);
    with(None, &["replay", "--recording", "store"]).expect(1, &["KIND was set then"]);
}
