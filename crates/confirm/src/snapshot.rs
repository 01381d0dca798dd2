//! Executions that are forked from a process which stands where exploration begins: the way there is gone once.
//!
//! The layout of commands and answers is `rashomon_abi::exploration::snapshot`. Guarantees are those of [`crate::execute`]: an
//! execution ends within its time limit with everything in its group, and dies with us.

use crate::error::ConfirmError;
use crate::execution::{Ending, Execution, Input, Output, Program, end_descendants, spawn, supervise};
use crate::process::{self, Running};
use rashomon_abi::exploration::snapshot::{ANSWERS, COMMANDS, LONGEST_PATH, answer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a process that was killed may take to be gone.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks whether a process has ended that says nothing.
const PAUSE: Duration = Duration::from_millis(5);
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// A process that stands. Dropped, it is ended.
#[derive(Debug)]
pub struct Snapshot {
    child: Child,
    /// Its number where it can be reached by [`crate::kill_running`].
    running: Running,
    /// Closed, the process ends.
    commands: File,
    answers: File,
    program: PathBuf,
}

/// What became of a process that was to stand.
#[derive(Debug)]
pub enum Begun {
    Stands(Snapshot),
    /// It cannot be continued more than once, or never came there: an execution like any other.
    Ended(Execution),
}

/// Starts a process whose session says that it is to stand where exploration begins. It must be called by a thread that lives as
/// long as what it returns. `limit`: until it stands, or ends.
pub fn begin(program: &Program, session: &Path, input: &Input, limit: Duration) -> Result<Begun, ConfirmError> {
    let start = Instant::now();
    let [commands, answers] = [COMMANDS, ANSWERS].map(|name| session.join(name));
    for pipe in [&commands, &answers] {
        let made = mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        made.map_err(|error| ConfirmError::io("create", pipe)(error.into()))?;
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut answers =
        OpenOptions::new().read(true).custom_flags(flags).open(&answers).map_err(ConfirmError::io("open", &answers))?;
    // For reading as well, so that this does not wait for a reader.
    let commands = OpenOptions::new().read(true).write(true).open(&commands).map_err(ConfirmError::io("open", &commands))?;
    let (child, own_group) = spawn(program, session, input, Output::Discard)?;
    while start.elapsed() < limit {
        match next_answer(&mut answers, Instant::now() + PAUSE, Writer::ToCome) {
            Ok(Some((answer::STANDS, _))) => {
                let running = Running::register(&child, own_group);
                return Ok(Begun::Stands(Snapshot { child, running, commands, answers, program: program.executable.clone() }));
            }
            Ok(_) if !process::has_ended(&child).unwrap_or(true) => {}
            _ => break,
        }
    }
    let ending = supervise(child, own_group, start, Some(limit), Some(session));
    let ending = ending.map_err(ConfirmError::io("wait for", &program.executable))?;
    Ok(Begun::Ended(Execution { ending, duration: start.elapsed(), served: None }))
}

impl Snapshot {
    /// One execution from there on, recorded into a session whose files are already written (an absolute path). `None`: the
    /// process is gone, or cannot make another one.
    pub fn execute(&mut self, session: &Path, limit: Duration) -> Result<Option<Execution>, ConfirmError> {
        let failed = |source| ConfirmError::io("wait for", &self.program)(source);
        let start = Instant::now();
        let path = session.as_os_str().as_bytes();
        if path.len() > LONGEST_PATH {
            return Ok(None);
        }
        let command = [&(path.len() as u64).to_le_bytes(), path].concat();
        if self.commands.write_all(&command).is_err() {
            return Ok(None);
        }
        let Some((answer::BEGAN, process)) = next_answer(&mut self.answers, start + TIMEOUT, Writer::There).map_err(failed)?
        else {
            return Ok(None);
        };
        let Some(process) = i32::try_from(process).ok().filter(|&process| process > 1) else { return Ok(None) };
        let mut ended = next_answer(&mut self.answers, start + limit, Writer::There).map_err(failed)?;
        let timed_out = ended.is_none();
        if timed_out {
            // It may not have its own group yet.
            [process, -process].into_iter().for_each(process::kill);
            ended = next_answer(&mut self.answers, Instant::now() + TIMEOUT, Writer::There).map_err(failed)?;
        }
        end_descendants(session, timed_out, Some(start + limit));
        let Some((answer::ENDED, how)) = ended else { return Ok(None) };
        // Not reaped before the next command: its number still means its group.
        process::kill(-process);
        let ending = if timed_out { Ending::TimedOut } else { ending(how) };
        Ok(Some(Execution { ending, duration: start.elapsed(), served: None }))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.running.kill();
        // It was killed: nothing to learn from how it ended.
        let _ = self.child.wait();
    }
}

/// `CLD_EXITED`; all others are signals.
const EXITED: u64 = 1;

fn ending(how: u64) -> Ending {
    let status = ((how >> 32) as u32).cast_signed();
    if how & 0xffff_ffff == EXITED { Ending::Code(status) } else { Ending::Signal(status) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    ToCome,
    There,
}

/// The next answer: what, and a number. `None`: there is none until then, or will be none any more.
fn next_answer(answers: &mut File, until: Instant, writer: Writer) -> std::io::Result<Option<(u64, u64)>> {
    let mut words = [0; 16];
    loop {
        match answers.read(&mut words) {
            Ok(16) => {
                let [what, number] = [0, 8].map(|at| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&words[at..at + 8]);
                    u64::from_le_bytes(word)
                });
                return Ok(Some((what, number)));
            }
            // Nobody has it open for writing.
            Ok(_) if writer == Writer::ToCome && Instant::now() < until => std::thread::sleep(BETWEEN_LOOKS),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
                match poll(&mut [PollFd::new(&*answers, PollFlags::IN)], Some(&left)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
