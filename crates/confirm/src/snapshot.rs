//! Executions that are forked from a process which stands where exploration begins: the way there is gone once.
//!
//! The layout of commands and answers is `rashomon_abi::exploration::snapshot`. Guarantees are those of [`crate::execute`]: an
//! execution ends within its time limit with everything in its group, and dies with us.
//!
//! All executions have the session of the process that stands: no file is made, mapped or removed for one of them, which would
//! take longer than a small execution itself. Limit: whatever escapes from an execution (a descendant that is neither in its
//! group nor recorded) still has the header of the next one mapped.

use crate::error::ConfirmError;
use crate::execution::{Ending, Execution, Input, Output, Program, end_descendants, spawn, supervise};
use crate::process::{self, Running};
use crate::{force, process_tree};
use rashomon_abi::exploration::snapshot::{ANSWERS, COMMANDS, GO_ON, answer};
use rashomon_abi::header::HEADER_BYTES;
use rashomon_abi::{HEADER_FILE, PROCESS_FOLDER_PREFIX};
use rashomon_trace::RunHeader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a process that was killed may take to be gone.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks whether a process has ended that says nothing.
const PAUSE: Duration = Duration::from_millis(5);
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);
/// How long an answer may take after what it is about was killed, before that is tried again.
const AFTER_KILL: Duration = Duration::from_millis(100);

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
    session: PathBuf,
    header: File,
    /// What the header says while the process stands, and the places in it that other processes had taken.
    standing: Box<[u8; HEADER_BYTES]>,
    places: u64,
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
            Ok(Some([answer::STANDS, ..])) => {
                let running = Running::register(&child, own_group);
                let path = session.join(HEADER_FILE);
                let header = OpenOptions::new().read(true).write(true).open(&path).map_err(ConfirmError::io("open", &path))?;
                let (program, session) = (program.executable.clone(), session.to_path_buf());
                let standing = Box::new([0; HEADER_BYTES]);
                let mut made = Snapshot { child, running, commands, answers, program, session, header, standing, places: 0 };
                made.remember()?;
                return Ok(Begun::Stands(made));
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
    /// One execution from there on, which does what the session's exploration file says now, and what its header says at the end.
    /// `None`: the process is gone, or cannot make another one.
    pub fn execute(&mut self, limit: Duration) -> Result<Option<(Execution, RunHeader)>, ConfirmError> {
        let start = Instant::now();
        let until = start + limit;
        self.header.write_all_at(&*self.standing, 0).map_err(ConfirmError::io("write", self.header_path()))?;
        if self.commands.write_all(&GO_ON.to_le_bytes()).is_err() {
            return Ok(None);
        }
        let mut ended = self.next_answer(until)?;
        let timed_out = ended.is_none();
        while ended.is_none() && until.elapsed() < TIMEOUT && !process::has_ended(&self.child).unwrap_or(true) {
            for process in process_tree::children(self.child.id().cast_signed()) {
                // It may not have its own group yet.
                [process, -process].into_iter().for_each(process::kill);
            }
            ended = self.next_answer(Instant::now() + AFTER_KILL)?;
        }
        let Some([answer::ENDED, process, how]) = ended else { return Ok(None) };
        let mut header = self.read_header();
        // Who makes a process that is recorded takes a place for it.
        let alone = header.as_ref().is_ok_and(|header| header.places == self.places);
        if !alone {
            end_descendants(&self.session, timed_out, Some(until));
        }
        // Not reaped before the next command: its number still means its group.
        if let Some(process) = i32::try_from(process).ok().filter(|&process| process > 1) {
            process::kill(-process);
        }
        if !alone {
            header = self.read_header();
            self.remove_places()?;
        }
        let ending = if timed_out { Ending::TimedOut } else { ending(how) };
        Ok(Some((Execution { ending, duration: start.elapsed(), served: None }, header?)))
    }

    fn next_answer(&mut self, until: Instant) -> Result<Option<[u64; 3]>, ConfirmError> {
        next_answer(&mut self.answers, until, Writer::There).map_err(ConfirmError::io("wait for", &self.program))
    }

    fn header_path(&self) -> PathBuf {
        self.session.join(HEADER_FILE)
    }

    /// Looks at the header: so every execution is to find it.
    fn remember(&mut self) -> Result<(), ConfirmError> {
        self.header.read_exact_at(&mut *self.standing, 0).map_err(ConfirmError::io("read", self.header_path()))?;
        self.places = RunHeader::parse(&self.header_path(), &*self.standing)?.places;
        Ok(())
    }

    fn read_header(&self) -> Result<RunHeader, ConfirmError> {
        let mut bytes = [0; HEADER_BYTES];
        self.header.read_exact_at(&mut bytes, 0).map_err(ConfirmError::io("read", self.header_path()))?;
        Ok(RunHeader::parse(&self.header_path(), &bytes)?)
    }

    /// What the processes left that an execution made: the next one takes the same places.
    fn remove_places(&self) -> Result<(), ConfirmError> {
        let failed = |source| ConfirmError::io("list", &self.session)(source);
        for entry in std::fs::read_dir(&self.session).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(PROCESS_FOLDER_PREFIX.as_bytes()) {
                force::remove(&entry.path())?;
            }
        }
        Ok(())
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

/// The next answer: what, a process, and a number. `None`: there is none until then, or will be none any more.
fn next_answer(answers: &mut File, until: Instant, writer: Writer) -> std::io::Result<Option<[u64; 3]>> {
    let mut bytes = [0; 24];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&*answers, PollFlags::IN)], Some(&time)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match answers.read(&mut bytes) {
            Ok(24) => {
                return Ok(Some([0, 8, 16].map(|at| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&bytes[at..at + 8]);
                    u64::from_le_bytes(word)
                })));
            }
            // Nobody has it open for writing.
            Ok(_) if writer == Writer::ToCome && Instant::now() < until => std::thread::sleep(BETWEEN_LOOKS),
            Ok(_) => return Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
}
