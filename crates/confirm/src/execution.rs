//! One supervised execution of the program under test.
//!
//! Guarantees: it ends within its time limit, with everything in its process group (a descendant that makes itself a
//! session leader is ended with us, by the keeper); it dies with us; an execution that is not the recorded one reads nothing from
//! our input and writes nothing to our output, so a program that prints gigabytes costs nothing.

use crate::client::{self, Accompanied, Client, Served, ServerEnding};
use crate::descendants;
use crate::error::ConfirmError;
use crate::process::{self, Setup};
use crate::waiting::{self, Handle};
use rashomon_event::Deadline;
use rashomon_trace::{RunHeader, RunState};
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What to start, the same for every execution.
#[derive(Clone, Debug)]
pub struct Program {
    pub executable: PathBuf,
    /// Without the program's own name.
    pub arguments: Vec<OsString>,
    /// Working directory.
    pub directory: PathBuf,
    /// Prepended to `LD_LIBRARY_PATH`: where the program finds our runtime in place of libtsan.
    pub library_path: Option<PathBuf>,
    pub randomise_addresses: bool,
    /// Added to the environment of every execution.
    pub environment: Vec<(OsString, OsString)>,
    /// Shell command that restores the program's world before every execution.
    pub before_each: Option<OsString>,
    /// How long that may take.
    pub before_each_limit: Option<Duration>,
    /// Who asks a program that serves.
    pub client: Option<Client>,
}

impl Program {
    /// Whether an execution is the program's process and what that makes: then several can run at the same time, or go on from
    /// one point.
    pub const fn runs_alone(&self) -> bool {
        self.before_each.is_none() && self.client.is_none()
    }
}

/// How long an execution may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time {
    /// Of the program; `None`: as long as it takes.
    pub limit: Option<Duration>,
    /// Behind it nothing goes on: neither the program nor what restores its world, which then was not begun.
    pub until: Deadline,
}

impl Time {
    /// As long as it takes.
    pub const UNLIMITED: Self = Self { limit: None, until: Deadline::NEVER };

    pub const fn of(limit: Duration) -> Self {
        Self { limit: Some(limit), until: Deadline::NEVER }
    }

    /// Of a program that starts now.
    fn left(self) -> Option<Duration> {
        self.limit.map(|limit| self.until.limit(limit)).or(self.until.left())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Inherit,
    Empty,
    File(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Inherit,
    /// Standard output to standard error, which leaves ours to a report.
    ToError,
    Discard,
    /// Both streams to the file [`OUTPUT_FILE`] of the session.
    Keep,
}

/// What an execution wrote, where it was asked for.
pub const OUTPUT_FILE: &str = "output";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(i32),
    Signal(i32),
    TimedOut,
}

#[derive(Clone, Copy, Debug)]
pub struct Execution {
    pub ending: Ending,
    pub duration: Duration,
    /// Of a program with a client.
    pub served: Option<Served>,
}

/// The command line of an execution in `session`, for whoever starts it in another way (a debugger).
pub fn command(program: &Program, session: &Path) -> Command {
    let mut command = Command::new(&program.executable);
    command.args(&program.arguments).current_dir(&program.directory);
    for (name, value) in environment(program, session) {
        command.env(name, value);
    }
    command
}

/// What an execution in `session` adds to the environment.
pub fn environment(program: &Program, session: &Path) -> Vec<(OsString, OsString)> {
    const LIBRARIES: &str = "LD_LIBRARY_PATH";
    let mut variables = program.environment.clone();
    if let Some(folder) = &program.library_path {
        let given = variables.iter().position(|(name, _)| name == LIBRARIES).map(|at| variables.remove(at).1);
        let mut path = folder.as_os_str().to_owned();
        if let Some(rest) = given.or_else(|| std::env::var_os(LIBRARIES)).filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        variables.push((LIBRARIES.into(), path));
    }
    // An empty name is none.
    variables.push((rashomon_abi::SESSION_VARIABLE.into(), session.as_os_str().to_owned()));
    variables
}

/// The session of an execution that is not recorded.
pub fn no_session() -> &'static Path {
    Path::new("")
}

/// Runs the program in a session whose `control` is already written.
pub fn execute(program: &Program, session: &Path, input: &Input, output: Output, time: Time) -> Result<Execution, ConfirmError> {
    let start = Instant::now();
    if !restore(program, time.until)? {
        return Ok(Execution { ending: Ending::TimedOut, duration: start.elapsed(), served: None });
    }
    let start = Instant::now();
    let limit = time.left();
    let (child, own_group) = spawn(program, session, input, output)?;
    let Some(client) = &program.client else {
        let ending = supervise(child, own_group, start, limit, Some(session))
            .map_err(ConfirmError::io("wait for", &program.executable))?;
        return Ok(Execution { ending, duration: start.elapsed(), served: None });
    };
    let running = process::Running::register(&child, own_group);
    let deadline = limit.map(|limit| start + limit);
    let handle = Handle::of(child.id());
    let accompanied = client::accompany(
        &Accompanied { program, child: &child, own_group, session, output, deadline, debugs: false, handle },
        client,
    );
    let limit = match &accompanied {
        // It ends now, or has.
        Ok((_, true)) | Err(_) => Some(Duration::ZERO),
        Ok((_, false)) => limit,
    };
    drop(running);
    let ending =
        supervise(child, own_group, start, limit, Some(session)).map_err(ConfirmError::io("wait for", &program.executable))?;
    let (served, _) = accompanied?;
    Ok(Execution { ending: in_order(ending, served.server), duration: start.elapsed(), served: Some(served) })
}

/// Who ends as it was asked to ends in order, also by the signal that asked; not who had no time left for it.
fn in_order(ending: Ending, server: ServerEnding) -> Ending {
    const SIGKILL: i32 = 9;
    const SIGTERM: i32 = 15;
    match (ending, server) {
        (Ending::Signal(SIGTERM), ServerEnding::Asked | ServerEnding::Killed)
        | (Ending::Signal(SIGKILL), ServerEnding::Killed) => Ending::Code(0),
        (_, ServerEnding::OutOfTime) => Ending::TimedOut,
        _ => ending,
    }
}

/// Starts the program, in its world as it is; whether it leads a group of its own.
pub(crate) fn spawn(program: &Program, session: &Path, input: &Input, output: Output) -> Result<(Child, bool), ConfirmError> {
    let mut command = command(program, session);
    command.stdin(match input {
        Input::Inherit => Stdio::inherit(),
        Input::Empty => Stdio::null(),
        Input::File(path) => rashomon_files::open_input(path).map_err(ConfirmError::io("open", path))?.into(),
    });
    match output {
        Output::Inherit => {}
        Output::ToError => {
            command.stdout(std::io::stderr());
        }
        Output::Discard => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        Output::Keep => {
            let path = session.join(OUTPUT_FILE);
            let file = File::create(&path).map_err(ConfirmError::io("create", &path))?;
            let copy = file.try_clone().map_err(ConfirmError::io("create", &path))?;
            command.stdout(file).stderr(copy);
        }
    }
    let own_group = !(*input == Input::Inherit && std::io::stdin().is_terminal());
    process::prepare(&mut command, Setup { randomise_addresses: program.randomise_addresses, own_group });
    let child = command.spawn().map_err(|source| ConfirmError::Execute { program: program.executable.clone(), source })?;
    Ok((child, own_group))
}

/// Restores the program's world as before every execution, if it wants that. False: there was no time for it.
pub fn restore(program: &Program, until: Deadline) -> Result<bool, ConfirmError> {
    let Some(restore) = &program.before_each else { return Ok(true) };
    if until.is_over() {
        return Ok(false);
    }
    let limit = Time { limit: program.before_each_limit, until }.left();
    let mut command = Command::new("sh");
    // What it prints belongs to neither the program's output nor the report.
    command.arg("-c").arg(restore).current_dir(&program.directory).stdin(Stdio::null()).stdout(Stdio::null());
    process::prepare(&mut command, Setup { randomise_addresses: true, own_group: true });
    let child = command.spawn().map_err(|source| ConfirmError::Execute { program: "sh".into(), source })?;
    match supervise(child, true, Instant::now(), limit, None).map_err(ConfirmError::io("wait for", "sh"))? {
        Ending::Code(0) => Ok(true),
        Ending::TimedOut if until.is_over() => Ok(false),
        ending => Err(ConfirmError::BeforeEach {
            command: restore.clone(),
            status: match ending {
                Ending::Code(code) => format!("exit code {code}"),
                Ending::Signal(signal) => format!("signal {signal}"),
                Ending::TimedOut => "it did not end within the time of an execution (--timeout)".into(),
            },
        }),
    }
}

/// Waits until the child ends or `limit` has passed; then nothing of its group is left, nor of the other processes that record
/// into its session. If it ended in order, those have the rest of the time to do so as well, as long as they do anything.
pub(crate) fn supervise(
    mut child: Child,
    own_group: bool,
    start: Instant,
    limit: Option<Duration>,
    session: Option<&Path>,
) -> std::io::Result<Ending> {
    let running = process::Running::register(&child, own_group);
    let mut timed_out = false;
    let (handle, deadline) = (Handle::of(child.id()), limit.map(|limit| start + limit));
    while !process::has_ended(&child)? {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            timed_out = true;
            break;
        }
        waiting::until_one_ends(&[&handle], deadline);
    }
    if let Some(session) = session {
        end_descendants(session, timed_out, deadline);
    }
    if own_group || timed_out {
        // Also descendants that the program left behind: they would write into the next execution's world. The child is not
        // yet reaped, so its number still means its group.
        running.kill();
    }
    // From the moment at which it is reaped its number may be somebody else's.
    drop(running);
    let status = child.wait()?;
    process::unless_ending();
    Ok(if timed_out { Ending::TimedOut } else { ending_of(status) })
}

/// Lets the other processes of a session end, and ends those that do not.
pub(crate) fn end_descendants(session: &Path, timed_out: bool, deadline: Option<Instant>) {
    let in_order = !timed_out && RunHeader::read(session).is_ok_and(|header| header.state == RunState::Complete);
    let left = if in_order { descendants::wait(session, deadline) } else { descendants::running(session) };
    descendants::end(&left);
}

fn ending_of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Code(code),
        (None, Some(signal)) => Ending::Signal(signal),
        // Neither exited nor signalled: cannot be seen by `wait` without asking for stops.
        (None, None) => Ending::Code(0),
    }
}
