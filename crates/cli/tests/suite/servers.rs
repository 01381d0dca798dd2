//! Programs that serve: with `--with-client` every execution has its client, and ends when that has ended.

use crate::support::place::{Ended, Place, gdb_works, statuses};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// Both connections are at work on two accounts, in opposite orders.
const BOTH: &str = "./ask '1:add 1 10' '2:add 2 5' '1:move 1 2 1' '2:move 2 1 3' 1:sum";

fn source(name: &str) -> String {
    let path = crate::support::manifest::folder().join("../servers").join(name);
    std::fs::read_to_string(path).expect("the program is part of the sources")
}

/// The server, compiled through the wrapper, and its client, which is not instrumented.
fn place() -> Place {
    let place = Place::new();
    place.compile("accounts", &source("accounts.c"));
    place.write("ask.c", source("ask.c"));
    place.must("cc", &["-w", "-o", "ask", "ask.c"]);
    place
}

/// Kinds and verdicts.
fn proven(report: &Value) -> Vec<(String, String)> {
    let mut found = statuses(report);
    for (id, _) in &mut found {
        *id = id.rsplit_once('-').map_or(id.clone(), |(kind, _)| kind.to_owned());
    }
    found.sort();
    found
}

fn race_and_deadlock() -> Vec<(String, String)> {
    [("deadlock", "proven"), ("race", "proven")].map(|(kind, status)| (kind.into(), status.into())).to_vec()
}

/// Under the seed of its test nobody loses the turn between two locks in the first recording.
fn sum_is_right(ended: &Ended) {
    assert!(ended.out.ends_with("1:15\n"), "the client's output is shown; {ended}");
}

/// The first recording may show the deadlock already, or end when it is asked to.
fn ended_or_blocked(ended: Ended, said: &[&str]) -> Ended {
    let code = ended.code;
    assert!([0, 124].contains(&code), "{ended}");
    ended.expect(code, said)
}

#[test]
fn what_two_clients_do_to_a_server_is_proven() {
    let place = place();
    let client = format!("{BOTH} >answers");
    let report = ["--fail-on", "never", "--json", "report.json"];
    let line = [&["check", "--with-client", &client][..], &report, &["--", "./accounts", "0"]].concat();
    ended_or_blocked(place.rashomon(&line), &["the program ended when it was asked to (SIGTERM), after its client"]);
    let report = place.json("report.json");
    assert_eq!(proven(&report), race_and_deadlock(), "{report}");
    // The store knows the client.
    for (id, _) in statuses(&report) {
        place.rashomon(&["replay", &id, "--times", "2"]).expect(0, &[]);
    }
    place.rashomon(&["minimise", "deadlock", "--executions", "5"]).expect(0, &[]);
    place.rashomon(&["confirm", "--fail-on", "never", "--json", "again.json"]).expect(0, &[]);
    assert_eq!(proven(&place.json("again.json")), race_and_deadlock());
}

#[test]
fn local_sockets_and_programs_that_do_not_end_when_asked() {
    let place = place();
    let path = place.path("socket");
    let path = path.to_str().expect("a name in Unicode");
    let line = [
        "check",
        "--seed",
        "4",
        "--with-client",
        BOTH,
        "--grace",
        "0.1",
        "--json",
        "report.json",
        "--",
        "./accounts",
        path,
        "stays",
    ];
    let ended = place.rashomon(&line).expect(66, &["did not end in time when it was asked to (SIGTERM)"]);
    sum_is_right(&ended);
    assert_eq!(proven(&place.json("report.json")), race_and_deadlock());
}

#[test]
fn under_gdb_a_server_has_its_world_and_its_client() {
    let place = place();
    if !gdb_works(&place) {
        return;
    }
    let line = ["check", "--fail-on", "never", "--before-each", "touch restored", "--with-client", BOTH, "--", "./accounts", "0"];
    ended_or_blocked(place.rashomon(&line), &["deadlock (proven, deadlocked)"]);
    std::fs::remove_file(place.path("restored")).expect("it was made before each execution");
    let ended = place.rashomon(&["replay", "deadlock", "--gdb", "--", "-batch", "-ex", "thread apply all bt"]);
    assert!(place.path("restored").exists(), "{ended}");
    assert!(ended.out.contains("the finding has come about"), "{ended}");
    assert!(ended.out.matches("accounts.c:").count() >= 2, "{ended}");
}

#[test]
fn a_program_whose_time_ends_while_it_is_asked_to_end_timed_out() {
    let place = place();
    let path = place.path("socket");
    let line = ["record", "--timeout", "3", "--grace", "1000", "--with-client", "./ask 1:sum", "--", "./accounts"];
    let line = [&line[..], &[path.to_str().expect("a name in Unicode"), "stays"]].concat();
    place.run(loud(&place, &line)).expect(124, &["had not when its time was over (--timeout)"]);
}

#[test]
fn a_program_that_ends_by_itself_gives_its_own_exit_code() {
    let place = place();
    let ended = place.rashomon(&["record", "--with-client", "./ask 1:sum 1:shutdown", "--", "./accounts", "0"]).expect(7, &[]);
    assert!(!ended.err.contains("SIGTERM"), "{ended}");
    // Nobody came to listen.
    place.compile("quick", "int main(void) { return 3; }");
    place
        .run(loud(&place, &["record", "--with-client", "touch begun", "--", "./quick"]))
        .expect(3, &["the client was not started"]);
    assert!(!place.path("begun").exists());
}

/// The tool, telling of what it does.
fn loud(place: &Place, arguments: &[&str]) -> std::process::Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_rashomon"), arguments);
    command.env_remove("CC");
    command
}

#[test]
fn what_is_recorded_is_named_and_never_the_client() {
    let place = place();
    // A client that is instrumented itself, and leaves a process behind.
    place.rashomon(&["cc", "-w", "-o", "asking", "ask.c"]).expect(0, &[]);
    let script = place.write("serve.sh", "#!/bin/sh\n./accounts 0\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("the folder is writable");
    let client = "(exec 3<>left; exec sleep 1000) & ./asking 1:sum";
    place.must("mkfifo", &["left"]);
    let line = ["record", "--output", "store", "--with-client", client, "--", "./serve.sh"];
    place.run(loud(&place, &line)).expect(0, &["recorded: accounts (initial process)"]);
    let store = place.path("store/recording-0");
    let processes = std::fs::read_dir(store).expect("the recording is there");
    let others = processes.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("process-")).count();
    assert_eq!(others, 0, "the client was recorded");
    // What the client left behind is gone: opening the pipe for writing, without waiting, finds no reader.
    let ended = place.run(place.command("dd", &["if=/dev/null", "of=left", "oflag=nonblock", "conv=notrunc"]));
    assert_ne!(ended.code, 0, "the client's child is still there; {ended}");
}

#[test]
fn ready_says_when_the_client_begins() {
    let place = place();
    // The client would find nothing where it is sent before: the command makes it.
    let ready = "if test -e tried; then touch found; else touch tried; exit 1; fi";
    let client = "test -e found && touch began";
    place.rashomon(&["record", "--ready", ready, "--with-client", client, "--", "./accounts", "0"]).expect(0, &[]);
    assert!(place.path("began").exists());
}

#[test]
fn every_command_that_runs_the_program_has_its_client() {
    let place = place();
    let line = [
        "provoke",
        "--budget",
        "20",
        "--with-client",
        BOTH,
        "--fail-on",
        "never",
        "--json",
        "provoked.json",
        "--",
        "./accounts",
        "0",
    ];
    place.rashomon(&line).expect(0, &[]);
    let races = proven(&place.json("provoked.json"));
    assert!(races.contains(&("race".into(), "proven".into())), "{races:?}");
    place.rashomon(&["explore", "--with-client", BOTH, "--", "./accounts", "0"]).expect(66, &["deadlock (proven, deadlocked)"]);
    // The program has no handler for what ends it, and its exit code still tells of what was found: the order of the locks at
    // least, as an answer that was sent before a request came may have caused it.
    let ended = place.rashomon(&["detect", "--with-client", BOTH, "--", "./accounts", "0"]).expect(66, &["accounts.c:32"]);
    assert!(ended.out.contains("1:done"), "{ended}");
    place.rashomon(&["detect", "--with-client", "./ask 1:sum", "--", "./accounts", "0"]).expect(0, &[]);
}

#[test]
fn virtual_time_does_not_run_ahead_of_a_server_that_waits() {
    let place = place();
    place.compile("patient", &source("patient.c"));
    for policy in ["random", "run-to-block"] {
        let line = ["record", "--policy", policy, "--with-client", "sleep 1; exec ./ask 1:sum >answers", "--", "./patient"];
        let ended = place.rashomon(&line).expect(0, &[]);
        let looks: u32 = ended.out.trim().parse().expect("how often it looked");
        // Ten times a second: a loaded machine makes it fewer, or the client late.
        assert!((1..200).contains(&looks), "looked {looks} times; {ended}");
    }
}

/// Its first thread has ended when it serves.
const HEADLESS: &str = "#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static int x, door;
static const struct sockaddr_un name = {AF_UNIX, \"door\"};
static void *serve(void *first) {
    if (first) pthread_join(*(pthread_t *)first, 0);
    listen(door, 1);
    int client = accept(door, 0, 0);
    x++;
    write(client, \"served\\n\", 7);
    close(client);
    for (;;) pause();
}
static void *task(void *unused) { x++; return 0; }
int main(void) {
    static pthread_t self, server, other;
    self = pthread_self();
    unlink(name.sun_path);
    door = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(door, (struct sockaddr *)&name, sizeof name);
    pthread_create(&other, 0, task, 0);
    pthread_create(&server, 0, serve, &self);
    pthread_exit(0);
}
";

const VISITOR: &str = "#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void) {
    struct sockaddr_un name = {AF_UNIX, \"door\"};
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    char text[8];
    if (connect(server, (struct sockaddr *)&name, sizeof name)) return 1;
    return write(1, text, read(server, text, sizeof text)) != 7;
}
";

#[test]
fn a_server_whose_first_thread_has_ended_is_served_as_any_other() {
    let place = Place::new();
    place.compile("headless", HEADLESS);
    place.write("visitor.c", VISITOR);
    place.must("cc", &["-w", "-o", "visitor", "visitor.c"]);
    let ended = place.rashomon(&["detect", "--with-client", "./visitor", "--", "./headless"]).expect(66, &["global x"]);
    assert_eq!(ended.out, "served\n", "{ended}");
    let ended = place.rashomon(&["record", "--policy", "free", "--with-client", "./visitor", "--", "./headless"]).expect(0, &[]);
    assert_eq!(ended.out, "served\n", "{ended}");
}

#[test]
fn a_process_that_stays_and_writes_does_not_end_the_check() {
    let place = Place::new();
    place.compile("daemon", DAEMON);
    let line = ["check", "--budget", "5", "--timeout", "20", "--json", "report.json", "--", "./daemon"];
    place.rashomon(&line).expect(66, &[]);
    assert!(proven(&place.json("report.json")).contains(&("race".into(), "proven".into())));
    // Nobody goes on: no process is left that has the counter open.
    assert!(place.path("count").exists(), "the daemon counted");
    assert_eq!(users_of(&place.path("count")), Vec::<String>::new(), "the daemon still runs");
}

/// The processes that have a file open, as folders of the kernel's account.
fn users_of(file: &std::path::Path) -> Vec<String> {
    let file = file.canonicalize().expect("it is there");
    let descriptors = |process: &std::path::Path| std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let has_it = |process: &std::path::PathBuf| {
        descriptors(process).any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
    };
    let processes = std::fs::read_dir("/proc").expect("the kernel's account").flatten().map(|entry| entry.path());
    processes.filter(has_it).map(|process| process.display().to_string()).collect()
}

/// Its race is in the first process; the second leaves the group and the session, and never stops to write and to start threads.
const DAEMON: &str = "#include <pthread.h>
#include <fcntl.h>
#include <unistd.h>
static int x;
static void *task(void *unused) { x++; return 0; }
int main(void) {
    pthread_t thread;
    if (fork() == 0) {
        setsid();
        int count = open(\"count\", O_WRONLY | O_CREAT | O_APPEND, 0666);
        for (;;) {
            write(count, \"x\", 1);
            pthread_create(&thread, 0, task, 0);
            pthread_join(thread, 0);
        }
    }
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return 0;
}
";

/// Answers each byte with one, to whoever connects.
fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut byte = [0];
                while connection.read_exact(&mut byte).and_then(|()| connection.write_all(&byte)).is_ok() {}
            });
        }
    });
    port
}

/// The server outside always answers: a sleep that only others' inactivity could end would never do so.
#[test]
fn time_passes_for_a_client_that_is_always_answered() {
    let place = Place::new();
    place.compile("impatient", &source("impatient.c"));
    let port = echo().to_string();
    let recorded = place.rashomon(&["record", "--timeout", "60", "--", "./impatient", &port]).expect(0, &[]);
    assert_eq!(recorded.out, "over\n", "{recorded}");
    let ended = place.rashomon(&["check", "--budget", "5", "--", "./impatient", &port]);
    assert_eq!(ended.code, 0, "it has no bug; {ended}");
}
