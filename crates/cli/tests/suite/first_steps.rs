//! What people do wrong the first time: each says what to do instead, and ends with the right exit code.

use crate::support::place::{Place, RACE, is_installed, statuses};

#[test]
fn only_linking_with_the_wrapper_is_said() {
    let place = Place::new();
    place.write("race.c", RACE);
    for compiler in ["gcc", "clang-19"].into_iter().filter(|compiler| is_installed(compiler)) {
        place.run(place.command(compiler, &["-g", "-c", "-o", "plain.o", "race.c"])).expect(0, &[]);
        for (link, said) in [("plain.o", true), ("race.c", false)] {
            let mut command = place.tool(&["cc", "-g", "-pthread", "-o", "program", link]);
            command.env("RASHOMON_CC", compiler);
            place.run(command).expect(0, &[]);
            let checked = place.rashomon(&["check", "--budget", "5", "--", "./program"]);
            assert_eq!(checked.err.contains("none of its code is instrumented"), said, "{compiler}: {checked}");
            assert_eq!(checked.code, if said { 0 } else { 66 }, "{compiler}: {checked}");
            let doctor = place.rashomon(&["doctor", "./program"]);
            assert_eq!((doctor.out.clone() + &doctor.err).contains("none of its code is instrumented"), said, "{doctor}");
        }
    }
}

/// The runtime understands fences. gcc's warning that ThreadSanitizer does not would end builds that take warnings for errors.
#[test]
fn a_fence_builds_where_warnings_are_errors() {
    let place = Place::new();
    place.write("fence.c", "int main(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }\n");
    for compiler in ["gcc", "clang-19"].into_iter().filter(|compiler| is_installed(compiler)) {
        for arguments in [["-c", "fence.c", "-o", "fence.o"], ["fence.c", "-pthread", "-o", "fence"]] {
            let mut command = place.tool(&["cc", "-Wall", "-Wextra", "-Werror"]);
            command.args(arguments).env("RASHOMON_CC", compiler);
            place.run(command).expect(0, &[]);
        }
    }
}

#[test]
fn a_program_is_no_command() {
    let place = Place::new();
    place.write("race", "");
    place.rashomon(&["./race"]).expect(2, &["rashomon check -- ./race"]);
    place.rashomon(&["race"]).expect(2, &["rashomon check -- race"]);
    place.rashomon(&["chekc"]).expect(2, &["unrecognized subcommand"]);
}

#[test]
fn what_is_no_program_for_us_is_told_with_a_way_out() {
    let place = Place::new();
    place.write("script", "./race\n");
    place.run(place.command("chmod", &["+x", "script"])).expect(0, &[]);
    place.rashomon(&["check", "--", "./script"]).expect(125, &["which begins with #!"]);
    place.rashomon(&["check", "--", "/bin/true"]).expect(125, &["not instrumented", "check a script"]);
}

#[test]
fn a_folder_that_takes_no_store_is_named_once() {
    let place = Place::new();
    place.compile("race", RACE);
    place.write(".rashomon", "a file");
    let ended = place.rashomon(&["check", "--", "./race"]).expect(125, &["--output", ".rashomon"]);
    assert_eq!(ended.err.matches("os error").count(), 1, "{ended}");
}

#[test]
fn an_input_that_is_not_there_leaves_no_store() {
    let place = Place::new();
    place.compile("race", RACE);
    place.rashomon(&["check", "--stdin", "missing", "--", "./race"]).expect(125, &["--stdin missing"]);
    assert!(!place.path(".rashomon").exists());
}

/// A thread that waits in the kernel when the process ends has written all that it did.
#[test]
fn who_waits_in_the_kernel_at_the_end_has_a_whole_recording() {
    let place = Place::new();
    let program = "#include <pthread.h>
#include <signal.h>
#include <sched.h>
static int ready;
static void *wait(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    sigwaitinfo(&set, 0);
    return 0;
}
int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_t thread;
    pthread_create(&thread, 0, wait, 0);
    while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) sched_yield();
    return 0;
}
";
    place.compile("waits", program);
    place.rashomon(&["record", "-o", "store", "--", "./waits"]).expect(0, &[]);
    let verified = place.rashomon(&["trace", "verify", "store"]).expect(0, &[]);
    assert!(!verified.out.contains("incomplete"), "{verified}");
}

/// What the end of the process is called in a schedule.
#[test]
fn the_end_of_the_process_is_called_so() {
    let place = Place::new();
    let program = "#include <pthread.h>
#include <stdlib.h>
static int x;
static void *late(void *unused) { x = 2; return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, late, 0);
    pthread_detach(thread);
    exit(0);
}
static void __attribute__((destructor)) last(void) { x = 1; }
";
    place.compile("ends", program);
    let ended = place.rashomon(&["check", "--show", "suspicions", "--budget", "10", "--", "./ends"]);
    assert!(!ended.err.contains("a synchronisation operation"), "{ended}");
}

#[test]
#[ignore = "started by the test below"]
fn skips_itself() {
    crate::support::place::skipped("there is nothing to try");
}

#[test]
fn a_skipped_test_fails_where_none_may_be_skipped() {
    let again = |set: bool| {
        let mut command = std::process::Command::new(std::env::current_exe().expect("a running test has a file"));
        command.args(["--exact", "first_steps::skips_itself", "--ignored"]).env_remove(crate::support::place::MUST_NOT_SKIP);
        if set {
            command.env(crate::support::place::MUST_NOT_SKIP, "1");
        }
        command.output().expect("it starts").status.success()
    };
    assert!(again(false) && !again(true));
}

/// The lines of a text up to a line.
fn up_to<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).unwrap_or_else(|| panic!("no `{end}` in\n{text}")).0
}

#[test]
fn the_first_screen_of_check_holds_what_most_need() {
    let place = Place::new();
    let help = place.rashomon(&["check", "--help"]).expect(0, &[]).out;
    let first = up_to(&help, "\nRecording:\n");
    for option in ["--budget", "--json", "--before-each", "--with-client", "--recordings", "--fail-on", "--show", "--output"] {
        assert!(first.contains(option), "{option}:\n{help}");
    }
    for option in ["--quantum", "--filter", "--forced-timeout", "--engines", "--full-stacks"] {
        assert!(!first.contains(option) && help.contains(option), "{option}:\n{help}");
    }
    let short = place.rashomon(&["check", "-h"]).expect(0, &[]).out;
    let short = up_to(&short, "\nRecording:\n");
    assert!(short.contains("--budget") && short.lines().count() <= 40, "{} lines:\n{short}", short.lines().count());
}

#[test]
fn wrappers_say_first_what_they_add() {
    let place = Place::new();
    let help = place.rashomon(&["cc", "--help"]).expect(0, &[]).out;
    assert!(help.starts_with("rashomon cc: calls cc") && help.contains("Usage: "), "{help}");
    let help = place.rashomon(&["cargo", "test", "--help"]).expect(0, &[]).out;
    let places =
        ["--budget", "own options:", "--no-run"].map(|words| help.find(words).unwrap_or_else(|| panic!("{words}: {help}")));
    assert!(places.is_sorted(), "{help}");
    assert!(place.rashomon(&["replay", "--help"]).expect(0, &[]).out.contains("The store with the finding"));
}

/// What `cargo install` puts beside the tool, and links to it.
#[test]
fn other_names_of_the_tool_work() {
    let place = Place::new();
    place.write("race.c", RACE);
    for wrapper in [env!("CARGO_BIN_EXE_rashomon-cc"), env!("CARGO_BIN_EXE_rashomon-cxx")] {
        place.must(wrapper, &["-c", "race.c", "-o", "race.o"]);
        let symbols = place.must("nm", &["race.o"]).out;
        assert!(symbols.contains("__tsan_write"), "{wrapper}: {symbols}");
    }
    let link = place.path("cargo-rashomon");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rashomon"), &link).expect("a link");
    let link = link.to_str().expect("a name in Unicode");
    for arguments in [&["rashomon", "--help"] as &[&str], &["--help"]] {
        let help = place.must(link, arguments).out;
        assert!(help.contains("Usage: cargo rashomon"), "{arguments:?}: {help}");
    }
}

#[test]
fn doctor_says_what_optimisation_hides() {
    let place = Place::new();
    place.compile("race", RACE);
    let said = place.rashomon(&["doctor", "./race"]).expect(0, &[]).out;
    assert!(said.contains("compilers remove reads whose value nobody uses"), "{said}");
}

/// Silence does not tell what was looked at from what was not.
#[test]
fn what_is_clean_says_what_was_looked_at() {
    let place = Place::new();
    place.compile("clean", RACE_FREE);
    place.compile("alone", "int main(void) { return 0; }\n");
    let loud = |arguments: &[&str]| place.command(env!("CARGO_BIN_EXE_rashomon"), arguments);
    let ended = place.run(loud(&["detect", "--", "./clean"])).expect(0, &[]);
    assert!(ended.err.contains("nothing was found in this execution of 3 threads"), "{ended}");
    let ended = place.run(loud(&["detect", "--", "./alone"])).expect(0, &[]);
    assert!(ended.err.contains("nothing was found: the program ran in one thread"), "{ended}");
    assert!(place.run(loud(&["detect", "--quiet", "--", "./clean"])).expect(0, &[]).err.is_empty());
    place.rashomon(&["check", "--", "./clean"]).expect(0, &["no bug was made to happen in ", " of 3 threads"]);
    place.rashomon(&["check", "--", "./alone"]).expect(0, &["of one thread, with which nothing can race"]);
}

/// Which call it was that asked for what may be another thing next time.
#[test]
fn external_input_is_named() {
    let place = Place::new();
    place.compile(
        "reads",
        "#include <unistd.h>\nint main(void) {\n    char c = 0;\n    return read(0, &c, 1) != 1 || c != 'a';\n}\n",
    );
    place.write("input", "a");
    let shell =
        place.run(place.command("sh", &["-c", &format!("cat input | {} check -- ./reads", env!("CARGO_BIN_EXE_rashomon"))]));
    let said = "note: external input from a pipe (descriptor 0, standard input), to main (reads.c:4):";
    let is_said = |line: &str| line.starts_with(said) && line.ends_with("with `--stdin FILE` all read the same");
    assert!(shell.err.lines().any(is_said), "{shell}");
}

/// Which every execution has to read.
#[test]
fn a_file_is_the_input_of_every_execution() {
    let place = Place::new();
    let asks = RACE_FREE.replace("int main(void) {", "int main(void) {\n    if (getchar() != 'y') return 0;");
    let racy = asks.replace("pthread_mutex_lock(&lock);", "").replace("pthread_mutex_unlock(&lock);", "");
    place.compile("asks", &format!("#include <stdio.h>\n{racy}"));
    place.write("input", "y");
    let tool = env!("CARGO_BIN_EXE_rashomon");
    let shell = |line: String| place.run(place.command("sh", &["-c", &line]));
    shell(format!("{tool} check --quiet --output file --json report.json -- ./asks < input"))
        .expect(66, &["PROVEN: 1 data race"]);
    let id = statuses(&place.json("report.json"))[0].0.clone();
    place.rashomon(&["replay", "--store", "file", &id]).expect(0, &[]);
    // Something has been read of it: whoever opened it would read that, too.
    shell(format!("{{ cat > begun; {tool} check --quiet --output other -- ./asks; }} < input"))
        .expect(0, &["no bug was made to happen"]);
    assert!(place.json("other/run.json")["input"].is_null());
}

const RACE_FREE: &str = "\
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;
static void *add(void *unused) {
    pthread_mutex_lock(&lock);
    x++;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return x - 2;
}
";
