//! Whatever ends the tool: nothing that it started is left.

use crate::support::place::{Place, Started, wait_for};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::CommandExt as _;

/// Makes processes of every kind, which all say who they are and then wait for ever: a child, a child of a child that has ended,
/// a daemon that has nothing in common with its maker (session, descriptors, environment), and a program that is not
/// instrumented.
const FAMILY: &str = "#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void waits(void) {
    char line[32];
    int file = open(\"members\", O_WRONLY | O_APPEND | O_CREAT, 0644);
    write(file, line, sprintf(line, \"%d\\n\", getpid()));
    close(file);
    for (;;) pause();
}
static void *task(void *unused) { return 0; }
int main(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_join(thread, 0);
    if (!fork()) waits();
    if (!fork()) {
        if (!fork()) waits();
        _exit(0);
    }
    if (!fork()) {
        setsid();
        clearenv();
        if (fork()) _exit(0);
        for (int file = 0; file < 64; file++) close(file);
        waits();
    }
    if (!fork()) {
        setsid();
        execle(\"/bin/sh\", \"sh\", \"-c\", \"echo $$ >> members; exec sleep 100000\", (char *)0, (char *[]){0});
    }
    waits();
}
";

const MEMBERS: usize = 5;

fn started(place: &Place, arguments: &[&str], own_group: bool) -> (Started, Vec<i32>) {
    place.compile("family", FAMILY);
    let mut tool = place.tool(arguments);
    if own_group {
        tool.process_group(0);
    }
    let started = place.start(tool);
    let members = wait_for("all members of the family", || {
        let text = std::fs::read_to_string(place.path("members")).unwrap_or_default();
        let members: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (members.len() == MEMBERS && text.ends_with('\n')).then_some(members)
    });
    assert!(members.iter().all(|&member| is_alive(member)), "{members:?}");
    (started, members)
}

fn is_alive(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

#[track_caller]
fn nothing_is_left(members: &[i32]) {
    wait_for("the end of all that the tool started", || members.iter().all(|&member| !is_alive(member)).then_some(()));
}

fn number(started: &Started) -> Pid {
    Pid::from_child(&started.child)
}

#[test]
fn the_tool_is_killed() {
    for command in ["record", "check"] {
        let place = Place::new();
        let (tool, members) = started(&place, &[command, "--", "./family"], false);
        kill_process(number(&tool), Signal::KILL).unwrap();
        assert_eq!(tool.finish().code, 128 + 9);
        nothing_is_left(&members);
    }
}

#[test]
fn everything_in_the_tools_group_is_killed() {
    let place = Place::new();
    let (tool, members) = started(&place, &["check", "--", "./family"], true);
    kill_process_group(number(&tool), Signal::KILL).unwrap();
    assert_eq!(tool.finish().code, 128 + 9);
    nothing_is_left(&members);
}

#[test]
fn the_tool_is_interrupted() {
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let place = Place::new();
        let (tool, members) = started(&place, &["check", "--", "./family"], false);
        kill_process(number(&tool), signal).unwrap();
        let ended = tool.finish().expect(130, &["interrupted"]);
        assert_eq!(ended.err.matches("interrupted").count(), 1, "{ended}");
        nothing_is_left(&members);
    }
}

#[test]
fn a_terminal_interrupts() {
    let place = Place::new();
    let (tool, members) = started(&place, &["check", "--", "./family"], true);
    kill_process_group(number(&tool), Signal::INT).unwrap();
    tool.finish().expect(130, &["interrupted"]);
    nothing_is_left(&members);
}

#[test]
fn the_time_of_the_recording_is_over() {
    let place = Place::new();
    let (tool, members) = started(&place, &["check", "--timeout", "10", "--budget", "1", "--", "./family"], false);
    tool.finish().expect(124, &[]);
    nothing_is_left(&members);
}

#[test]
fn the_tool_ends_as_it_did_without_a_keeper() {
    let place = Place::new();
    place.compile(
        "ends",
        "#include <stdlib.h>\n#include <pthread.h>\nstatic void *task(void *u) { return 0; \
        }\nint main(int c, char **v) { pthread_t t; pthread_create(&t, 0, task, 0); pthread_join(t, 0); return atoi(v[1]); }\n",
    );
    for code in [0, 3, 254] {
        place.rashomon(&["record", "--output", &format!("store-{code}"), "--", "./ends", &code.to_string()]).expect(code, &[]);
    }
}
