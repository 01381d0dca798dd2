//! A program that serves, and who asks it: the client that begins once the program listens.
//!
//! Guarantees: the client is started once in every execution; when it has ended, what is left of the program is asked to end
//! (SIGTERM), and ended if it has not after the time of grace; when the program has ended, what is left of the client is. The
//! program's ending is its own, unless it was ended as asked: then it is in order. The client is not observed, even if it is
//! instrumented.

use crate::error::ConfirmError;
use crate::execution::{Output, Program, no_session};
use crate::process::{self, Running, Setup};
use crate::process_tree::{self, Door, Process};
use crate::waiting::{self, Handle};
use rashomon_trace::{RunHeader, RunState};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who asks a program that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Shell command.
    pub command: OsString,
    /// Shell command that succeeds once the client can begin; without it, when the program listens.
    pub ready: Option<OsString>,
    /// How long the program may take to end once it was asked to, and the client once the program has ended.
    pub grace: Duration,
}

/// In the client's environment: the first port that the program listens at, and the first local socket.
pub const PORT_VARIABLE: &str = "RASHOMON_PORT";
pub const SOCKET_VARIABLE: &str = "RASHOMON_SOCKET";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnding {
    /// The program ended, or its time was over, before it listened.
    NotStarted,
    /// The same before the command succeeded that says when the client can begin.
    NeverReady,
    Code(i32),
    Signal(i32),
    /// We ended it: the program had ended, or the time was over.
    CutShort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnding {
    /// By itself, or when its time was over.
    Unasked,
    /// As it was asked to.
    Asked,
    /// It was asked to, and had to be ended.
    Killed,
    /// It was asked to, and its time was over before it did.
    OutOfTime,
}

/// How the two ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub client: ClientEnding,
    pub server: ServerEnding,
}

impl Served {
    /// What a user has to know of it.
    pub fn phrases(self) -> Vec<String> {
        let client = match self.client {
            ClientEnding::NotStarted => {
                "the client was not started: the program ended, or its time was over, before it was seen to listen (its \
                    standard input is empty, but for --stdin; --ready CMD says when it can be asked)"
                    .into()
            }
            ClientEnding::NeverReady => {
                "the client was not started: the program ended, or its time was over, before --ready succeeded".into()
            }
            ClientEnding::Code(0) => String::new(),
            ClientEnding::Code(code) => format!("the client ended with exit code {code}"),
            ClientEnding::Signal(signal) => format!("the client was ended by signal {signal}"),
            ClientEnding::CutShort => "the client was still there when the program had ended, and was ended".into(),
        };
        let server = match self.server {
            ServerEnding::Unasked => "",
            ServerEnding::Asked => "the program ended when it was asked to (SIGTERM), after its client",
            ServerEnding::Killed => {
                "the program did not end in time when it was asked to (SIGTERM), after its client, and was killed (--grace)"
            }
            ServerEnding::OutOfTime => {
                "the program was asked to end (SIGTERM), after its client, and had not when its time was over (--timeout)"
            }
        };
        [client, server.into()].into_iter().filter(|phrase| !phrase.is_empty()).collect()
    }
}

/// The program while it is accompanied.
pub(crate) struct Accompanied<'a> {
    pub program: &'a Program,
    pub child: &'a Child,
    pub own_group: bool,
    pub session: &'a Path,
    pub output: Output,
    pub deadline: Option<Instant>,
    /// The child is no part of the program: it debugs it.
    pub debugs: bool,
    /// Of the child.
    pub handle: Handle,
}

/// Between two looks at what nobody tells of: whether a program listens, and rests. Every look reads all of `/proc`, and so they
/// become rarer.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// So long a program has opened nothing more, and rests, when it is taken to be ready; and so long at most it is waited for if it
/// does not rest.
const SETTLED: Duration = Duration::from_millis(10);
const RESTLESS: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Goes with the program from its start until nothing is left to wait for but its own end. Also whether its time was over before.
pub(crate) fn accompany(of: &Accompanied<'_>, client: &Client) -> Result<(Served, bool), ConfirmError> {
    let failed = |source| ConfirmError::Execute { program: "sh".into(), source };
    let not_begun = if client.ready.is_some() { ClientEnding::NeverReady } else { ClientEnding::NotStarted };
    let mut served = Served { client: not_begun, server: ServerEnding::Unasked };
    let (doors, timed_out) = of.wait_until_ready(client).map_err(failed)?;
    let Some(doors) = doors else { return Ok((served, timed_out)) };
    let mut asking = of.start(&client.command, &doors, of.output).map_err(failed)?;
    let running = Running::register(&asking, true);
    let handle = Handle::of(asking.id());
    let mut over = None;
    let mut timed_out = false;
    let cut_short = loop {
        if process::has_ended(&asking).map_err(failed)? {
            break None;
        }
        timed_out = of.is_late();
        if over.is_none() && of.has_ended() {
            // Its last answers may still be on their way; in an execution that nobody looks at they interest nobody.
            over = Some(Instant::now() + if of.output == Output::Discard { Duration::ZERO } else { client.grace });
        }
        if timed_out || over.is_some_and(|until| Instant::now() >= until) {
            break Some(ClientEnding::CutShort);
        }
        of.wait(Some(&handle), over);
    };
    // Also what it left behind. It is not reaped before, so its number still means its group.
    running.kill();
    drop(running);
    let status = asking.wait().map_err(failed)?;
    served.client = cut_short.unwrap_or_else(|| ending_of(status));
    if over.is_none() && !timed_out {
        of.let_it_rest();
        if !of.has_ended() {
            served.server = of.ask_to_end(client.grace);
        }
        // It had decided what was asked for, and was about to end.
        if was_stopped(of.session) {
            served.server = ServerEnding::Unasked;
        }
    }
    Ok((served, timed_out))
}

/// Has the client ask a program that `debugger`, a child of ours in our process group, runs in `session`; returns when one of the
/// two has ended, and then nothing is left of the client. The program is not asked to end: that is for who debugs it.
pub fn beside_debugger(program: &Program, debugger: &Child, session: &Path) -> Result<(), ConfirmError> {
    let Some(client) = &program.client else { return Ok(()) };
    let failed = |source| ConfirmError::Execute { program: "sh".into(), source };
    let of = Accompanied {
        program,
        child: debugger,
        own_group: false,
        session,
        output: Output::Inherit,
        deadline: None,
        debugs: true,
        handle: Handle::of(debugger.id()),
    };
    let (Some(doors), _) = of.wait_until_ready(client).map_err(failed)? else { return Ok(()) };
    let mut asking = of.start(&client.command, &doors, of.output).map_err(failed)?;
    let running = Running::register(&asking, true);
    let handle = Handle::of(asking.id());
    while !process::has_ended(&asking).map_err(failed)? && !of.has_ended() {
        of.wait(Some(&handle), None);
    }
    running.kill();
    drop(running);
    asking.wait().map_err(failed)?;
    Ok(())
}

impl Accompanied<'_> {
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Until the child or the other one ends, its time is over, or `until`.
    fn wait(&self, other: Option<&Handle>, until: Option<Instant>) {
        let is_there = process::exit_code_of(self.child).is_none();
        // Of a daemon, whose first process has ended, nobody tells.
        let look = (!is_there).then(|| Instant::now() + LONGEST_PAUSE);
        let until = [self.deadline, until, look].into_iter().flatten().min();
        let handles: Vec<&Handle> = other.into_iter().chain(is_there.then_some(&self.handle)).collect();
        waiting::until_one_ends(&handles, until);
    }

    fn wait_for(&self, time: Duration) {
        self.wait(None, Some(Instant::now() + time));
    }

    fn members(&self) -> BTreeSet<i32> {
        let started = self.child.id().cast_signed();
        let mut members = process_tree::members(started, self.own_group, self.session);
        if self.debugs {
            members.remove(&started);
        }
        members
    }

    /// A program whose first process ended in order may have gone on as a daemon.
    fn has_ended(&self) -> bool {
        match process::exit_code_of(self.child) {
            None => false,
            Some(_) if self.debugs => true,
            Some(0) => self.members().is_empty() || was_stopped(self.session),
            Some(_) => true,
        }
    }

    /// Nothing if the program ended, or its time was over (and that).
    fn wait_until_ready(&self, client: &Client) -> io::Result<(Option<Vec<Door>>, bool)> {
        let begin = Instant::now();
        let mut known = Vec::new();
        let mut since = begin;
        loop {
            if self.has_ended() {
                return Ok((None, false));
            }
            if self.is_late() {
                return Ok((None, true));
            }
            if let Some(command) = &client.ready {
                if self.succeeds(command)? {
                    return Ok((Some(process_tree::doors(&self.members())), false));
                }
                self.wait_for(BETWEEN_TRIES);
                continue;
            }
            let members = self.members();
            let doors = process_tree::doors(&members);
            if doors != known {
                (known, since) = (doors, Instant::now());
            } else if !known.is_empty()
                && since.elapsed() >= SETTLED
                && (since.elapsed() >= RESTLESS || !process_tree::is_busy(&members))
            {
                return Ok((Some(known), false));
            }
            self.wait_for((begin.elapsed() / 16).clamp(PAUSE, LONGEST_PAUSE));
        }
    }

    fn succeeds(&self, command: &OsString) -> io::Result<bool> {
        let mut child = self.start(command, &[], Output::Discard)?;
        let running = Running::register(&child, true);
        let handle = Handle::of(child.id());
        let has_ended = loop {
            if process::has_ended(&child)? {
                break true;
            }
            if self.is_late() || self.has_ended() {
                break false;
            }
            self.wait(Some(&handle), None);
        };
        running.kill();
        drop(running);
        let status = child.wait()?;
        Ok(has_ended && status.success())
    }

    /// A shell with a group of its own, in the program's folder.
    fn start(&self, command: &OsString, doors: &[Door], output: Output) -> io::Result<Child> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(&self.program.directory).stdin(Stdio::null());
        shell.env_remove(rashomon_abi::SESSION_VARIABLE).env_remove(rashomon_abi::DETECT_VARIABLE);
        let port = doors.iter().find_map(|door| if let Door::Port(port) = door { Some(port.to_string()) } else { None });
        let socket = doors.iter().find_map(|door| if let Door::Socket(path) = door { Some(path.as_os_str()) } else { None });
        port.map(|port| shell.env(PORT_VARIABLE, port));
        socket.map(|path| shell.env(SOCKET_VARIABLE, path));
        match output {
            Output::Inherit => {}
            Output::ToError => {
                shell.stdout(io::stderr());
            }
            Output::Discard | Output::Keep => {
                shell.stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        process::prepare(&mut shell, Setup { randomise_addresses: true, own_group: true });
        shell.spawn()
    }

    /// What the client sent last may still be in work.
    fn let_it_rest(&self) {
        let begin = Instant::now();
        let mut since = begin;
        while since.elapsed() < SETTLED && begin.elapsed() < RESTLESS && !self.is_late() && !self.has_ended() {
            if process_tree::is_busy(&self.members()) {
                since = Instant::now();
            }
            self.wait_for(PAUSE);
        }
    }

    fn ask_to_end(&self, grace: Duration) -> ServerEnding {
        let until = Instant::now() + grace;
        let mut left = process_tree::processes(self.child.id().cast_signed(), self.own_group, self.session);
        left.iter().for_each(|process| process.signal(Signal::TERM));
        left.retain(Process::is_alive);
        while !left.is_empty() {
            let is_late = self.is_late();
            if is_late || Instant::now() >= until {
                process_tree::end(&left);
                return if is_late { ServerEnding::OutOfTime } else { ServerEnding::Killed };
            }
            let handles: Vec<Handle> = left.iter().map(Process::handle).collect();
            let handles: Vec<&Handle> = handles.iter().collect();
            waiting::until_one_ends(&handles, Some(self.deadline.map_or(until, |deadline| deadline.min(until))));
            left.retain(Process::is_alive);
        }
        ServerEnding::Asked
    }
}

/// The runtime ended the execution, because what was asked for is decided.
fn was_stopped(session: &Path) -> bool {
    session != no_session() && RunHeader::read(session).is_ok_and(|header| header.state == RunState::Stopped)
}

fn ending_of(status: std::process::ExitStatus) -> ClientEnding {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => ClientEnding::Code(code),
        (None, signal) => ClientEnding::Signal(signal.unwrap_or(0)),
    }
}
