//! The keeper: whatever ends the tool, nothing is left of what it started.
//!
//! The process that the user started becomes three. Its child, the *keeper*, is the next of kin of all that descends from it: who
//! loses its parent (a forked child whose parent was killed, a daemon) becomes the keeper's child, by `PR_SET_CHILD_SUBREAPER`.
//! The keeper's child is the tool itself, which returns from [`keep`] and does the work. When the tool has ended, or the process
//! that the user started has, the keeper ends every process that descends from it, and then itself; the first process ends as the
//! tool did. The keeper has a process group of its own, so that what is sent to the group of the other two (`timeout -s KILL`, a
//! terminal) does not reach it.
//!
//! Limit: who kills the keeper itself ends the tool and the programs that it started, and leaves what these started.

use crate::process_tree;
use std::io;
use std::time::{Duration, Instant};

type Signals = libc::sigset_t;

/// What the first process and the keeper hand on to the tool.
const HANDED_ON: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Tells the keeper that the first process has ended.
const ORPHANED: libc::c_int = libc::SIGUSR1;
/// The exit code where the system does not let us make another process.
const NOT_STARTED: i32 = 125;
/// How long processes may take to be gone that were killed.
const DEATH: Duration = Duration::from_secs(5);

/// Goes on as the tool under a keeper. To be called before there are other threads or open files; without effect where there are
/// other threads.
pub fn keep() -> io::Result<()> {
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if !alone {
        return Ok(());
    }
    let mut watched = empty();
    for signal in HANDED_ON.into_iter().chain([ORPHANED, libc::SIGCHLD]) {
        add(&mut watched, signal);
    }
    let before = change_mask(libc::SIG_BLOCK, &watched);
    // Who ignores it is not told of its children's ends.
    let on_death = set_action(libc::SIGCHLD, libc::SIG_DFL);
    let (first, group) = (own_number(), own_group());
    let keeper = fork()?;
    if keeper > 0 {
        let status = attend(keeper, &watched);
        change_mask(libc::SIG_SETMASK, &before);
        end_as(status);
    }
    die_with_parent(ORPHANED);
    set_group(0);
    become_next_of_kin();
    let keeper = own_number();
    // Nobody but the tool returns from here.
    let Ok(tool) = fork() else { std::process::exit(NOT_STARTED) };
    if tool > 0 {
        let status = guard(tool, first, &watched);
        end_all();
        change_mask(libc::SIG_SETMASK, &before);
        end_as(status);
    }
    die_with_parent(libc::SIGKILL);
    if parent() != keeper {
        std::process::exit(NOT_STARTED);
    }
    set_group(group);
    set_action(libc::SIGCHLD, on_death);
    change_mask(libc::SIG_SETMASK, &before);
    Ok(())
}

/// The first process: waits for the keeper.
fn attend(keeper: libc::pid_t, watched: &Signals) -> libc::c_int {
    loop {
        match next(watched, None) {
            Some((libc::SIGCHLD, _)) => {
                if let Some((_, status)) = reap(keeper) {
                    return status;
                }
            }
            // What a terminal sends has reached the tool as well.
            Some((signal, true)) if HANDED_ON.contains(&signal) => send(keeper, signal),
            _ => {}
        }
    }
}

/// The keeper: waits for the tool's end, or the first process's.
fn guard(tool: libc::pid_t, first: libc::pid_t, watched: &Signals) -> libc::c_int {
    loop {
        if parent() != first {
            return libc::SIGKILL;
        }
        match next(watched, None) {
            Some((libc::SIGCHLD, _)) => {
                while let Some((ended, status)) = reap(-1) {
                    if ended == tool {
                        return status;
                    }
                }
            }
            Some((signal, _)) if HANDED_ON.contains(&signal) => send(tool, signal),
            _ => {}
        }
    }
}

/// Ends all that descends from this process: the children of who is ended become children of ours.
fn end_all() {
    let mut deaths = empty();
    add(&mut deaths, libc::SIGCHLD);
    let start = Instant::now();
    while start.elapsed() < DEATH {
        let children = process_tree::children(own_number());
        if children.is_empty() {
            return;
        }
        children.into_iter().for_each(|child| send(child, libc::SIGKILL));
        next(&deaths, Some(Duration::from_millis(20)));
        while reap(-1).is_some() {}
    }
}

/// Ends this process as another one ended.
fn end_as(status: libc::c_int) -> ! {
    if !libc::WIFSIGNALED(status) {
        std::process::exit(libc::WEXITSTATUS(status));
    }
    let signal = libc::WTERMSIG(status);
    #[expect(unsafe_code, reason = "no safe binding of the calls at hand")]
    // SAFETY: the default action of a signal; this process has one thread, and ends here. What dumped core was another.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut all = empty();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const all, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    std::process::exit(128 + signal)
}

fn fork() -> io::Result<libc::pid_t> {
    #[expect(unsafe_code, reason = "the standard library has no fork")]
    // SAFETY: `keep` made sure that this process has one thread, so that the child is a whole process.
    let child = unsafe { libc::fork() };
    if child < 0 { Err(io::Error::last_os_error()) } else { Ok(child) }
}

fn empty() -> Signals {
    #[expect(unsafe_code, reason = "no safe binding of signal sets at hand")]
    // SAFETY: all bit patterns are sets; the call fills it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

fn add(set: &mut Signals, signal: libc::c_int) {
    #[expect(unsafe_code, reason = "as above")]
    // SAFETY: a set of ours.
    unsafe {
        libc::sigaddset(set, signal);
    }
}

/// The mask that was there before.
fn change_mask(how: libc::c_int, set: &Signals) -> Signals {
    let mut before = empty();
    #[expect(unsafe_code, reason = "as above")]
    // SAFETY: two sets of ours.
    unsafe {
        libc::pthread_sigmask(how, set, &raw mut before);
    }
    before
}

/// The next of these signals, and whether a process sent it (and not the kernel, for a terminal).
fn next(watched: &Signals, within: Option<Duration>) -> Option<(libc::c_int, bool)> {
    #[expect(unsafe_code, reason = "as above")]
    // SAFETY: a set, a buffer and a time of ours; a null time waits for ever.
    unsafe {
        let mut details: libc::siginfo_t = std::mem::zeroed();
        let time = within
            .map(|within| libc::timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: i64::from(within.subsec_nanos()) });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let signal = libc::sigtimedwait(watched, &raw mut details, time);
        (signal > 0).then_some((signal, details.si_code <= 0))
    }
}

/// A child that has ended, and how.
fn reap(child: libc::pid_t) -> Option<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    #[expect(unsafe_code, reason = "rustix does not give the status as it is")]
    // SAFETY: the call fills a number of ours.
    let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
    (ended > 0).then_some((ended, status))
}

fn send(process: libc::pid_t, signal: libc::c_int) {
    #[expect(unsafe_code, reason = "rustix has no signals by number")]
    // SAFETY: touches no memory. Who has ended by itself cannot be reached.
    unsafe {
        libc::kill(process, signal);
    }
}

/// The action that was there before.
fn set_action(signal: libc::c_int, action: libc::sighandler_t) -> libc::sighandler_t {
    #[expect(unsafe_code, reason = "as above")]
    // SAFETY: the default action, one that this process had, or a handler that may run at any time.
    unsafe {
        libc::signal(signal, action)
    }
}

/// From now on SIGQUIT ends this process as SIGTERM does, so that who handles that one has the last word here, too. Programs that
/// it executes are not concerned.
pub fn quit_terminates() {
    extern "C" fn terminate(_: libc::c_int) {
        #[expect(unsafe_code, reason = "rustix has no signals by number")]
        // SAFETY: touches no memory, and may be called by a signal handler.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGTERM);
        }
    }
    let terminate: extern "C" fn(libc::c_int) = terminate;
    set_action(libc::SIGQUIT, terminate as libc::sighandler_t);
}

fn die_with_parent(signal: libc::c_int) {
    #[expect(unsafe_code, reason = "rustix has no signals by number")]
    // SAFETY: touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
    }
}

fn become_next_of_kin() {
    #[expect(unsafe_code, reason = "one call of the same kind")]
    // SAFETY: touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Where that is impossible (the first process has ended), the group stays as it is.
fn set_group(group: libc::pid_t) {
    #[expect(unsafe_code, reason = "one call of the same kind")]
    // SAFETY: touches no memory.
    unsafe {
        libc::setpgid(0, group);
    }
}

fn own_number() -> libc::pid_t {
    std::process::id().cast_signed()
}

fn own_group() -> libc::pid_t {
    rustix::process::getpgrp().as_raw_nonzero().get()
}

fn parent() -> libc::pid_t {
    rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get())
}
