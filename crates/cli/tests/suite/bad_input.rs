//! Programs that are none, traces and stores that are damaged, and ends in the middle of things: each with an exit code and words
//! that say what is wrong, and nothing that was decided is lost.

use crate::support::place::{Place, RACE, is_installed, statuses};
use std::fs;
use std::path::Path;

fn race() -> Place {
    let place = Place::new();
    place.compile("race", RACE);
    place
}

fn recording() -> Place {
    let place = race();
    place.rashomon(&["record", "-o", "store", "--", "./race"]).expect(0, &[]);
    place
}

fn make_executable(place: &Place, name: &str) {
    place.must("chmod", &["+x", name]);
}

/// The start of an ELF file of this class (1: 32 bits) and machine.
fn elf(class: u8, machine: u8) -> Vec<u8> {
    let mut bytes = vec![0_u8; 64];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    (bytes[16], bytes[18], bytes[20], bytes[52]) = (2, machine, 1, 64);
    bytes
}

#[test]
fn what_is_no_program() {
    let place = Place::new();
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("text", b"hello\n".to_vec()),
        ("windows", b"MZ\x90\0".to_vec()),
        ("bits32", elf(1, 3)),
        ("arm", elf(2, 183)),
        ("cut", b"\x7fELF\x02\x01".to_vec()),
        ("hollow", elf(2, 62)),
    ] {
        place.write(name, bytes);
        make_executable(&place, name);
    }
    place.write("plain", "#!/bin/sh\n");
    for (program, code, said) in [
        ("./empty", 125, "not an ELF program"),
        ("./text", 125, "not an ELF program"),
        ("./windows", 125, "not an ELF program"),
        ("./bits32", 125, "not a program for x86-64"),
        ("./arm", 125, "not a program for x86-64"),
        ("./cut", 125, "not a program for x86-64"),
        ("./hollow", 125, "not instrumented"),
        ("./plain", 126, "not an executable file"),
        ("./", 126, "not an executable file"),
        ("./absent", 127, "no such program"),
        ("./plain/inside", 127, "no such program"),
        ("absent-from-path", 127, "no such program"),
    ] {
        for command in ["check", "record"] {
            place.rashomon(&[command, "--", program]).expect(code, &[program.trim_start_matches("./"), said]);
        }
    }
    assert!(!place.path(".rashomon").exists(), "nothing is stored of what cannot be run");
}

#[test]
fn sources_that_are_none() {
    let place = Place::new();
    place.write("wrong.c", "int main(void) { return undeclared; }\n");
    place.write("half.cpp", "int main() {\n");
    place.write("empty.c", "");
    fs::create_dir(place.path("folder.c")).expect("the folder is writable");
    place.rashomon(&["check", "wrong.c"]).expect(125, &["undeclared", "wrong.c was not compiled"]);
    place.rashomon(&["check", "half.cpp"]).expect(125, &["half.cpp was not compiled"]);
    place.rashomon(&["check", "empty.c"]).expect(125, &["empty.c was not compiled"]);
    place.rashomon(&["check", "absent.c"]).expect(127, &["absent.c: no such file"]);
    place.rashomon(&["check", "folder.c"]).expect(127, &["folder.c"]);
    let mut without = place.tool(&["check", "wrong.c"]);
    without.env("CC", "/nonexistent/compiler");
    place.run(without).expect(125, &["/nonexistent/compiler", "CC"]);
}

#[test]
fn programs_that_cannot_be_observed() {
    let place = Place::new();
    place.write("race.c", RACE);
    if !is_installed("gcc") {
        return;
    }
    place.must("gcc", &["-pthread", "race.c", "-o", "plain"]);
    place.rashomon(&["check", "--", "./plain"]).expect(125, &["not instrumented", "rashomon cc"]);
    place.must("gcc", &["-fsanitize=thread", "-c", "race.c"]);
    make_executable(&place, "race.o");
    place.rashomon(&["check", "--", "./race.o"]).expect(125, &["an object file", "link it"]);
    let archive = place.must("gcc", &["-print-file-name=libtsan.a"]).out;
    if !Path::new(archive.trim()).is_absolute() {
        crate::support::place::skipped("libtsan.a is not installed");
        return;
    }
    place.must("gcc", &["-fsanitize=thread", "-static-libtsan", "-pthread", "race.c", "-o", "static"]);
    place.rashomon(&["check", "--", "./static"]).expect(125, &["cannot be replaced", "without -static-libtsan"]);
    place.must("strip", &["static"]);
    let stripped = place.rashomon(&["check", "--", "./static"]);
    assert_eq!(stripped.code, 125, "{stripped}");
}

#[test]
fn without_debug_information() {
    let place = Place::new();
    place.write("race.c", RACE);
    place.rashomon(&["cc", "-g0", "-O1", "-pthread", "race.c", "-o", "race"]).expect(0, &[]);
    place.rashomon(&["check", "--", "./race"]).expect(66, &["no debug information", "build with -g", "task (race+0x"]);
    place.must("strip", &["race"]);
    place
        .rashomon(&["check", "--", "./race"])
        .expect(66, &["no symbols", "before the program is stripped", "3 proven", " race+0x"]);
}

/// As with the `main` that gtest brings: it is not the program's own.
#[test]
fn a_main_of_a_library_without_debug_information() {
    let place = Place::new();
    place.write("race.c", format!("#define main work\n{RACE}"));
    place.write("main.c", "int work(void);\nint main(void) { return work(); }\n");
    place.must("gcc", &["-O1", "-c", "main.c"]);
    place.rashomon(&["cc", "-g", "-O1", "-pthread", "race.c", "main.o", "-o", "race"]).expect(0, &[]);
    let checked = place.rashomon(&["check", "--", "./race"]).expect(66, &["race.c:"]);
    assert!(!checked.err.contains("no debug information"), "{checked}");
}

/// Ends, or does not, in the way that its argument names; a thread has run by then.
const MISBEHAVES: &str = "#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int *volatile nowhere;
static volatile int endless = 1;
static void *task(void *unused) { return 0; }
int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    const char *how = arguments[1];
    if (!strcmp(how, \"crash\")) *nowhere = 1;
    if (!strcmp(how, \"abort\")) abort();
    if (!strcmp(how, \"kill\")) kill(getpid(), SIGKILL);
    if (!strcmp(how, \"pause\")) for (;;) pause();
    if (!strcmp(how, \"sleep\")) for (;;) sleep(1000);
    if (!strcmp(how, \"spin\")) while (endless);
    if (!strcmp(how, \"read\")) { int ends[2]; char byte; pipe(ends); read(ends[0], &byte, 1); }
    if (!strcmp(how, \"ignore\")) { signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); for (;;) pause(); }
    if (!strcmp(how, \"fork\")) {
        int status;
        pid_t child = fork();
        if (child == 0) { pthread_create(&thread, 0, task, 0); pthread_join(thread, 0); _exit(5); }
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (!strcmp(how, \"exec\")) {
        int status;
        pid_t child = fork();
        if (child == 0) { execl(\"/bin/sh\", \"sh\", \"-c\", \"exit 6\", (char *)0); _exit(9); }
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (!strcmp(how, \"become\")) { execl(\"/bin/sh\", \"sh\", \"-c\", \"exit 7\", (char *)0); }
    if (!strcmp(how, \"orphan\") && fork() == 0) for (;;) pause();
    return 0;
}
";

#[test]
fn programs_that_misbehave() {
    let place = Place::new();
    place.compile("program", MISBEHAVES);
    for (how, code, said) in [
        ("kill", 137, "ended by signal 9"),
        ("fork", 5, "exit code 5"),
        ("exec", 6, "exit code 6"),
        ("become", 7, "exit code 7"),
        ("orphan", 0, "exit code 0"),
    ] {
        place.rashomon(&["check", "--", "./program", how]).expect(code, &["0 proven", said]);
        place.rashomon(&["trace", "verify", "."]).expect(0, &[]);
    }
    for (how, said) in [("crash", "ended by signal 11"), ("abort", "ended by signal 6")] {
        place.rashomon(&["check", "--", "./program", how]).expect(66, &["1 proven", said]);
        place.rashomon(&["trace", "verify", "."]).expect(0, &[]);
    }
}

#[test]
fn programs_that_do_not_end() {
    let place = Place::new();
    place.compile("program", MISBEHAVES);
    for how in ["pause", "sleep", "spin", "read", "ignore"] {
        // A loop that nothing can end is a finding; the others wait for what may come.
        let (code, said) = if how == "spin" { (66, "endless (proven") } else { (124, "0 proven") };
        place.rashomon(&["check", "--timeout", "0.5", "--", "./program", how]).expect(code, &[said]);
        place.rashomon(&["trace", "verify", "."]).expect(0, &[]);
    }
}

#[test]
fn a_race_in_a_program_that_crashes() {
    let place = Place::new();
    let crash = "pthread_join(thread, 0);\n    *(volatile int *)0 = x;";
    place.compile("race", &RACE.replace("pthread_join(thread, 0);", crash));
    place.rashomon(&["check", "--", "./race"]).expect(66, &["2 proven", "ended by signal 11"]);
}

#[test]
fn a_flood_of_output_costs_no_memory() {
    const MEGABYTES: u64 = 300;
    const MOST_KILOBYTES: u64 = 100_000;
    let place = Place::new();
    let print =
        format!("static char block[1 << 20]; for (int i = 0; i < {MEGABYTES}; i++) fwrite(block, 1, sizeof block, stdout);");
    let source = RACE
        .replace("#include <pthread.h>", "#include <pthread.h>\n#include <stdio.h>")
        .replace("return 0;\n}\n", &(print + " return 0;\n}\n"));
    place.compile("race", &source);
    let line = format!("{} check --quiet --budget 20 -- ./race | wc -c", env!("CARGO_BIN_EXE_rashomon"));
    let count = place.run(place.command("sh", &["-c", &line]));
    assert_eq!(count.out.trim(), (MEGABYTES << 20).to_string(), "{count}");
    assert!(count.err.contains("1 proven"), "{count}");
    let mut again = place.tool(&["confirm"]);
    again.env("NO_COLOR", "1");
    let ended = place.run(again).expect(66, &["1 proven"]);
    assert!(ended.out.is_empty(), "what forced executions print is shown to nobody");
    assert!((1..MOST_KILOBYTES).contains(&ended.peak_kilobytes), "{} kB", ended.peak_kilobytes);
}

#[test]
fn a_flood_of_accesses_stays_within_the_trace_limit() {
    const MOST_KILOBYTES: u64 = 600_000;
    let place = Place::new();
    place.compile(
        "race",
        &RACE.replace(
            "x++;\n",
            "x++; static volatile int all[1 << 16]; for (int i = 0; i < 30000000; i++) all[i * 7 & 65535]++;\n",
        ),
    );
    let ended = place
        .rashomon(&["check", "--budget", "20", "--trace-limit", "8", "-o", "store", "--", "./race"])
        .expect(66, &["1 proven"]);
    assert!(ended.peak_kilobytes < MOST_KILOBYTES, "{} kB", ended.peak_kilobytes);
    let size: u64 = fs::read_dir(place.path("store/recording-0"))
        .expect("it is there")
        .flatten()
        .map(|entry| entry.metadata().map_or(0, |found| found.len()))
        .sum();
    assert!(size < 16 << 20, "{size} bytes");
}

#[test]
fn a_program_killed_while_it_is_recorded() {
    let place = Place::new();
    let source = RACE
        .replace("#include <pthread.h>", "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>")
        .replace("return 0;\n}\n", "printf(\"%d\\n\", (int)getpid()); fflush(stdout); for (;;) pause();\n}\n");
    place.compile("race", &source);
    let mut command = place.tool(&["record", "-o", "store", "--", "./race"]);
    command.env("NO_COLOR", "1");
    let recording = place.start(command);
    let id = crate::support::place::wait_for("the program's number", || {
        let text = recording.said();
        text.ends_with('\n').then(|| text.trim().to_owned())
    });
    place.must("kill", &["-KILL", &id]);
    recording.finish().expect(137, &[]);
    let verified = place.rashomon(&["trace", "verify", "store"]).expect(0, &[]);
    assert!(
        verified.out.contains("killed") || verified.out.contains("incomplete") || verified.out.contains("not complete"),
        "{verified}"
    );
    place.rashomon(&["confirm", "store"]).expect(66, &["not complete", "1 proven", "ended by signal 9"]);
}

#[test]
fn folders_that_cannot_be_written() {
    let place = race();
    place.write("file", "text");
    place.rashomon(&["check", "-o", "file/store", "--", "./race"]).expect(125, &["cannot create file/store"]);
    place.rashomon(&["check", "-o", "file", "--", "./race"]).expect(125, &["file"]);
    place.rashomon(&["check", "-o", "/proc/store", "--", "./race"]).expect(125, &["cannot create /proc/store"]);
    place.write("full/something", "");
    place.rashomon(&["check", "-o", "full", "--", "./race"]).expect(125, &["full is not empty", "another folder"]);
    place
        .rashomon(&["check", "-o", "store", "--json", "absent/report.json", "--", "./race"])
        .expect(125, &["absent/report.json"]);
    place.rashomon(&["check", "-o", "other", "--stdin", "absent", "--", "./race"]).expect(125, &["absent"]);
    place.write(".rashomon", "a file where the folder should be");
    place.rashomon(&["check", "--", "./race"]).expect(125, &["cannot create .rashomon"]);
}

#[test]
fn the_runtime_s_folder_that_cannot_be_used() {
    let place = race();
    place.write("race.c", RACE);
    place.write("file", "");
    for (folder, said) in [("absent", "cannot be used"), (".", "holds no libtsan.so.2")] {
        let mut command = place.tool(&["cc", "race.c", "-o", "again"]);
        command.env("RASHOMON_RUNTIME_DIR", folder);
        place.run(command).expect(125, &["RASHOMON_RUNTIME_DIR", folder, said]);
    }
    let mut command = place.tool(&["runtime-path"]);
    command.env("HOME", place.path("file")).env_remove("XDG_CACHE_HOME").env("TMPDIR", place.path("file"));
    place.run(command).expect(125, &["cannot unpack the runtime", "XDG_CACHE_HOME"]);
}

#[test]
fn names_of_stores_that_are_taken() {
    let place = race();
    place.write(".rashomon/5-race", "");
    place.write(".rashomon/18446744073709551615-race", "");
    place.write(".rashomon/word-race", "");
    place.rashomon(&["record", "--", "./race"]).expect(0, &[]);
    assert!(place.path(".rashomon/6-race/run.json").exists());
    // Those that start together get different ones.
    let started: Vec<_> = (0..4).map(|_| place.start(place.tool(&["record", "--", "./race"]))).collect();
    for one in started {
        one.finish().expect(0, &[]);
    }
    for number in 7..=10 {
        assert!(place.path(&format!(".rashomon/{number}-race/run.json")).exists(), "{number}");
    }
    place.rashomon(&["report"]).expect(0, &[]);
}

/// Four races, each of another variable.
const RACES: &str = "#include <pthread.h>
static int a, b, c, d;
static void *task(void *unused) {
    a++;
    b++;
    c++;
    d++;
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    a++;
    b++;
    c++;
    d++;
    pthread_join(thread, 0);
    return 0;
}
";

/// A command for `--before-each` that sends the tool a signal before the sixth execution: one was recorded, and two findings are
/// decided.
fn sixth(signal: &str) -> String {
    format!("echo >> count; test $(wc -l < count) -ne 6 || {{ kill -{signal} $PPID; exec sleep 60; }}")
}

fn ended_while_confirming(signal: &str, code: i32) {
    let place = Place::new();
    place.compile("races", RACES);
    place.rashomon(&["check", "--recordings", "1", "--before-each", &sixth(signal), "--", "./races"]).expect(code, &[]);
    let lines = || fs::read_to_string(place.path("count")).unwrap_or_default().lines().count();
    assert_eq!(lines(), 6);
    let report = place.rashomon(&["report", "--format", "json"]).expect(0, &[]);
    let report = serde_json::from_str(&report.out).expect("JSON");
    let proven = statuses(&report).iter().filter(|(_, status)| status == "proven").count();
    assert_eq!((proven, statuses(&report).len()), (2, 4), "{report}");
    place.rashomon(&["report"]).expect(0, &[]);
    for (id, _) in statuses(&report).iter().filter(|(_, status)| status == "proven") {
        place.rashomon(&["replay", id]).expect(0, &[]);
    }
    // Looking again without forcing takes nothing back.
    place.rashomon(&["predict"]).expect(66, &["2 proven"]);
    // It can be taken up again.
    place.rashomon(&["confirm"]).expect(66, &["4 proven"]);
}

#[test]
fn killing_the_tool_loses_no_decided_finding() {
    ended_while_confirming("KILL", 137);
}

#[test]
fn interrupting_the_tool_loses_no_decided_finding() {
    ended_while_confirming("INT", 130);
}

#[test]
fn no_program_outlives_the_tool() {
    let place = Place::new();
    place.compile("program", MISBEHAVES);
    let recording = place.start(place.tool(&["record", "-o", "store", "--", "./program", "pause"]));
    // The header's third word of eight bytes is the program's number.
    let number = crate::support::place::wait_for("the program's number", || {
        let bytes = fs::read(place.path("store/recording-0/header")).ok()?;
        let word = bytes.get(24..32)?.try_into().ok()?;
        Some(u64::from_le_bytes(word)).filter(|number| *number > 0)
    });
    let process = Path::new("/proc").join(number.to_string());
    assert!(process.exists());
    place.must("kill", &["-KILL", &recording.child.id().to_string()]);
    recording.finish().expect(137, &[]);
    crate::support::place::wait_for("the program's end", || {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // Gone, or a zombie that nobody adopted.
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn a_reader_that_goes_away() {
    let place = recording();
    for command in ["trace dump store", "trace stat store", "report --store store"] {
        let line = format!("{{ {} {command}; echo $? > code; }} | true", env!("CARGO_BIN_EXE_rashomon"));
        let ended = place.run(place.command("bash", &["-c", &line]));
        assert!(!ended.err.contains("panicked"), "{command}: {ended}");
        assert_eq!(fs::read_to_string(place.path("code")).expect("it was written").trim(), "0", "{command}: {ended}");
    }
}

#[test]
fn a_tool_without_standard_output() {
    let place = race();
    for line in
        ["check --json - -- ./race >&-", "report >&-", "runtime-path >&-", "report > /dev/full", "runtime-path > /dev/full"]
    {
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_rashomon"));
        let ended = place.run(place.command("sh", &["-c", &line]));
        assert!(ended.code < 126, "{line}: {ended}");
        assert!(!ended.err.contains("panicked"), "{line}: {ended}");
    }
}
