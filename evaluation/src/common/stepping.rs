//! The memory that threads of a process touch between two breakpoints, instruction by instruction (`ptrace`): which cache lines
//! they pass to each other.
//!
//! Each thread that comes to an `int3` waits there until as many have as were asked for. Then all are executed a step at a time,
//! by turns, up to their next `int3`. What the kernel writes for them is not seen.

use anyhow::{Context as _, Result, bail};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register};
use nix::errno::Errno;
use nix::libc::user_regs_struct as Registers;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const LINE: u64 = 64;
const BREAKPOINT: u8 = 0xcc;
/// Of everything.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// At its first breakpoint.
    Waits,
    Steps,
    Over,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Touched {
    pub instructions: u64,
    /// How often a line had to come from another thread, by lines.
    pub passed: BTreeMap<u64, u64>,
}

/// Who has a cache line.
#[derive(Default)]
struct Line {
    /// Bits of threads that have it as it is.
    holders: u64,
}

struct Tracer {
    process: Pid,
    memory: File,
    threads: BTreeMap<Pid, State>,
    wanted: usize,
    decoded: HashMap<u64, Instruction>,
    info: InstructionInfoFactory,
    lines: HashMap<u64, Line>,
    touched: Touched,
}

/// Follows a process that does not yet come to breakpoints: `go` lets it. Ends when it has ended.
pub fn follow(process: i32, wanted: usize, go: impl FnOnce() -> Result<()>) -> Result<Touched> {
    let process = Pid::from_raw(process);
    let memory = File::open(format!("/proc/{process}/mem")).context("cannot read the process's memory")?;
    let mut tracer = Tracer {
        process,
        memory,
        threads: BTreeMap::new(),
        wanted,
        decoded: HashMap::new(),
        info: InstructionInfoFactory::new(),
        lines: HashMap::new(),
        touched: Touched::default(),
    };
    for task in std::fs::read_dir(format!("/proc/{process}/task")).context("cannot list the process's threads")? {
        let Some(number) = task?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let thread = Pid::from_raw(number);
        let options = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
        ptrace::seize(thread, options).context("cannot trace the process (is ptrace permitted?)")?;
        tracer.threads.insert(thread, State::Runs);
    }
    go()?;
    tracer.run()?;
    Ok(tracer.touched)
}

impl Tracer {
    fn run(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.threads.contains_key(&self.process) {
            if begin.elapsed() > TIMEOUT {
                bail!("the process does not come to its end");
            }
            let mut idle = true;
            for thread in self.threads.keys().copied().collect::<Vec<_>>() {
                match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::StillAlive) => continue,
                    Ok(status) => self.came(thread, status)?,
                    Err(Errno::ECHILD) => _ = self.threads.remove(&thread),
                    Err(error) => return Err(error).context("cannot wait for the process"),
                }
                idle = false;
            }
            if idle {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn came(&mut self, thread: Pid, status: WaitStatus) -> Result<()> {
        let state = self.threads.get(&thread).copied().unwrap_or(State::Over);
        match status {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                self.threads.remove(&thread);
                return Ok(());
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => return self.trapped(thread, state),
            WaitStatus::Stopped(_, signal) => return self.goes_on(thread, state, Some(signal)),
            WaitStatus::PtraceEvent(_, _, event) if event == ptrace::Event::PTRACE_EVENT_CLONE as i32 => {
                let made = Pid::from_raw(ptrace::getevent(thread)? as i32);
                self.threads.entry(made).or_insert(State::Runs);
            }
            _ => {}
        }
        self.goes_on(thread, state, None)
    }

    fn goes_on(&mut self, thread: Pid, state: State, signal: Option<Signal>) -> Result<()> {
        match state {
            State::Steps => ptrace::step(thread, signal),
            _ => ptrace::cont(thread, signal),
        }
        .or_else(|error| if error == Errno::ESRCH { Ok(()) } else { Err(error) })
        .context("cannot let the process go on")
    }

    fn trapped(&mut self, thread: Pid, state: State) -> Result<()> {
        match state {
            State::Runs => {
                self.threads.insert(thread, State::Waits);
                let waiting: Vec<Pid> =
                    self.threads.iter().filter(|(_, state)| **state == State::Waits).map(|(thread, _)| *thread).collect();
                if waiting.len() == self.wanted {
                    for thread in waiting {
                        self.threads.insert(thread, State::Steps);
                        self.step(thread)?;
                    }
                }
                Ok(())
            }
            State::Steps => self.step(thread),
            State::Waits | State::Over => self.goes_on(thread, State::Over, None),
        }
    }

    /// Looks at the thread's next instruction, and has it executed.
    fn step(&mut self, thread: Pid) -> Result<()> {
        let registers = ptrace::getregs(thread).context("cannot read registers")?;
        let mut bytes = [0; 15];
        let length = self.memory.read_at(&mut bytes, registers.rip).unwrap_or(0);
        if bytes[0] == BREAKPOINT {
            ptrace::setregs(thread, Registers { rip: registers.rip + 1, ..registers }).context("cannot pass a breakpoint")?;
            self.threads.insert(thread, State::Over);
            return self.goes_on(thread, State::Over, None);
        }
        let instruction = *self
            .decoded
            .entry(registers.rip)
            .or_insert_with(|| Decoder::with_ip(64, &bytes[..length], registers.rip, DecoderOptions::NONE).decode());
        self.note(thread, &instruction, &registers);
        self.goes_on(thread, State::Steps, None)
    }

    fn note(&mut self, thread: Pid, instruction: &Instruction, registers: &Registers) {
        let own = self.threads.keys().position(|one| *one == thread).unwrap_or(0) % 64;
        self.touched.instructions += 1;
        for used in self.info.info(instruction).used_memory() {
            let writes =
                matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite);
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            let address = used.virtual_address(0, |register, _, _| value(registers, register));
            let Some(address) = address.filter(|_| writes || reads) else { continue };
            let last = address.saturating_add(used.memory_size().size().max(1) as u64 - 1);
            for line in address / LINE..=last / LINE {
                let entry = self.lines.entry(line).or_default();
                let has = entry.holders >> own & 1 != 0;
                let alone = entry.holders == 1 << own;
                if entry.holders != 0 && (!has || writes && !alone) {
                    *self.touched.passed.entry(line).or_default() += 1;
                }
                entry.holders = if writes { 1 << own } else { entry.holders | 1 << own };
            }
        }
    }
}

/// What a general register, or the base of a segment, holds.
fn value(registers: &Registers, register: Register) -> Option<u64> {
    let whole = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    };
    Some(whole)
}
