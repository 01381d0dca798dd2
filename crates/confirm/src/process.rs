//! The only calls into the kernel that the standard library does not offer: what a child does between `fork` and `exec`,
//! and ending a whole process group.
//!
//! Limit: the kernel's parent-death signal is tied to the *thread* that forks, so executions must be started from a thread
//! that lives as long as they do (they are: [`crate::execute`] waits).

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The children that run now: process ids, negated where the child leads a group of its own.
static RUNNING: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// How a child is set up before its program is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub randomise_addresses: bool,
    /// A child that shares the terminal's input stays in our group, so that keys reach it as if it had been started by hand.
    pub own_group: bool,
}

/// The child dies with us, whatever ends us, and keeps its addresses where it is asked to.
pub(crate) fn prepare(command: &mut Command, setup: Setup) {
    if setup.own_group {
        command.process_group(0);
    }
    let parent = std::process::id();
    let work = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // We may have ended before the line above took effect.
        let still = rustix::process::getppid().map_or(0, |id| id.as_raw_nonzero().get().unsigned_abs());
        if still != parent {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        if !setup.randomise_addresses {
            // A container may forbid it; a schedule does not depend on addresses, so this is no reason to give up.
            let _ = personality_without_randomisation();
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "the standard library marks every hook between fork and exec unsafe")]
    // SAFETY: between fork and exec only async-signal-safe operations are allowed. The closure makes three system calls,
    // allocates nothing, takes no lock, and owns only `Copy` data.
    unsafe {
        command.pre_exec(work);
    }
}

fn personality_without_randomisation() -> bool {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    #[expect(unsafe_code, reason = "no safe binding of personality(2) at hand")]
    // SAFETY: personality(2) takes a number and touches no memory of ours; the first call only asks.
    unsafe {
        let now = libc::personality(QUERY);
        now >= 0 && libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) >= 0
    }
}

/// A child that [`kill_running`] reaches, until dropped.
#[derive(Debug)]
pub(crate) struct Running(i32);

impl Running {
    pub(crate) fn register(child: &Child, own_group: bool) -> Self {
        let id = child.id().cast_signed();
        let id = if own_group { -id } else { id };
        running().push(id);
        Self(id)
    }

    /// Ends it, with everything in its group if it has its own.
    pub(crate) fn kill(&self) {
        kill(self.0);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        running().retain(|id| *id != self.0);
    }
}

/// Whether the child has ended; it is not reaped.
pub(crate) fn has_ended(child: &Child) -> std::io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(id) = Pid::from_raw(child.id().cast_signed()) else {
        return Ok(true);
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(id), options) {
        Ok(status) => Ok(status.is_some()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What the child gave as its exit code, if it has ended; 128 and more if a signal ended it. It is not reaped.
pub(crate) fn exit_code_of(child: &Child) -> Option<i32> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let id = Pid::from_raw(child.id().cast_signed())?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), options).ok()??;
    Some(status.exit_status().unwrap_or(128))
}

/// We are about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends every execution that runs now, and whoever waits for one waits on: nothing that an interruption ended is judged. For
/// handlers of interruptions (that run on a thread of their own and end the process).
pub fn kill_running() {
    ENDING.store(true, Ordering::SeqCst);
    for id in running().iter() {
        kill(*id);
    }
}

/// Behind every wait for a child.
pub(crate) fn unless_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

fn running() -> MutexGuard<'static, Vec<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn kill(id: i32) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    if let Some(process) = Pid::from_raw(id.abs()) {
        // Failure means that it has ended by itself.
        let _ = if id < 0 { kill_process_group(process, Signal::KILL) } else { kill_process(process, Signal::KILL) };
    }
}
