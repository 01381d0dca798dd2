//! Whether a thread that runs alone comes back to a state in which it was.
//!
//! The process is forked, and the copy has the calling thread only. There the runtime stands aside: hooks pass through, and the
//! thread goes on natively, one instruction after the other (the processor's trap flag, SIGTRAP). Every writable page is made
//! read-only, but for the thread's own: its stack from the stack pointer on, and the page of its thread-local storage in which
//! the kernel may write. A page that the thread writes is copied first. So the state is known in full: registers, the thread's
//! own memory, and the copies of whatever changed.
//!
//! Period: R. P. Brent, "An Improved Monte Carlo Factorization Algorithm", BIT 20, 1980, §2: the state after 2^n instructions is
//! compared with those that follow, up to 2^(n+1). Equal states: the thread, which nothing from outside reaches, goes round for
//! ever. Nothing else is concluded from it: a trial that comes to its bounds, to an instruction that may tell something from
//! outside ([`rashomon_abi::instructions`]), to a call into the kernel, to an interposed function that is no poll, or to the end
//! of the copy, has shown nothing.
//!
//! Where other threads could run, too, the thread must not change for a moment what they may see: each instruction that writes
//! outside of its own pages has to leave the bytes as they were, and of the other threads' stacks and thread-local storage it may
//! read nothing, as they change their own.
//!
//! Limit: code that is not instrumented and writes another thread's stack for a moment only.

mod kernel;
mod pages;
mod protect;

use crate::record::recorder;
use crate::serial::wait::WaitFor;
use crate::system::sys::{self, syscall};
use crate::system::thread::{State, Thread, all, known};
use crate::system::tls::Hot;
use crate::system::{entry, header, signals, stripes};
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use kernel::{is_traced, stay_on_processor};
use pages::{copy, same, same_floating, xstate_bytes};
use rashomon_abi::instructions::{Kind, kind};

/// What the scheduler tells of the thread and the process.
pub struct Setting {
    /// Where the thread stands: a return address.
    pub site: u64,
    /// Where another mapping begins that is shared with the host.
    pub shared: u64,
    /// What is to be done first in the copy.
    pub begin_copy: fn(),
}

pub enum Answer {
    /// It comes back to where it was, and passes where it stands now on the way.
    Shown,
    NotShown,
    /// This is the copy, in which the thread is to go on at once.
    Copy,
}

pub(super) const PAGE: u64 = 4096;
/// Instructions of a trial.
const MOST_STEPS: u64 = 1 << 13;
/// Instructions on the way out of the runtime.
const MOST_STEPS_BEFORE: u64 = 1 << 14;
const FIRST_PERIOD: u64 = 256;
pub(super) const MOST_RANGES: usize = 2048;
const MOST_STACKS: usize = 64;
const MOST_PAGES: usize = 128;
pub(super) const MOST_OWN: usize = 256 << 10;
/// General registers, flags and instruction pointer in a signal's context.
const REGISTERS: usize = 18;
const RSP: usize = 15;
const RIP: usize = 16;
const FLAGS: usize = 17;
const ERROR: usize = 19;
const RAX: usize = 13;
/// The flags that instructions compute.
const COMPUTED: u64 = 0xcd5;
pub(super) const MOST_XSTATE: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    pub(super) const EMPTY: Self = Self { start: 0, end: 0 };
    pub(super) const fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// A page as it was when the thread was about to write it.
#[repr(C)]
pub(super) struct Saved {
    pub(super) page: u64,
    pub(super) bytes: [u8; PAGE as usize],
}

/// What the copy knows. All-zero bytes are valid.
#[repr(C)]
pub(super) struct Trial {
    /// Where the thread stands: a return address.
    pub(super) site: u64,
    pub(super) block: *const Hot,
    pub(super) stack: Range,
    /// Other threads could run as well.
    pub(super) side_by_side: bool,
    /// Mutexes can be taken and given back: nobody waits for one.
    pub(super) locks_pass: bool,
    pub(super) others: [Range; MOST_STACKS],
    pub(super) other_count: usize,
    /// Where mappings that the runtime shares with the host begin.
    pub(super) shared: [u64; MOST_STACKS],
    pub(super) shared_count: usize,

    pub(super) begun: bool,
    pub(super) steps: u64,
    pub(super) protected: [Range; MOST_RANGES],
    pub(super) protected_count: usize,
    pub(super) kernel_code: Range,
    /// Not protected: the thread's stack from here on, and thread-local storage beside it.
    pub(super) own: [Range; 2],

    /// The state to come back to.
    pub(super) registers: [u64; REGISTERS],
    pub(super) xstate: [u8; MOST_XSTATE],
    pub(super) xstate_bytes: usize,
    pub(super) own_bytes: [u8; MOST_OWN],
    pub(super) saved: [Saved; MOST_PAGES],
    pub(super) saved_count: usize,
    /// Of these the pages that the instruction which is being made may write.
    pub(super) open_from: usize,
    pub(super) since: u64,
    pub(super) period: u64,
    pub(super) site_passed: bool,
}

static TRIAL: AtomicPtr<Trial> = AtomicPtr::new(core::ptr::null_mut());

const CLONE: usize = 56;
const WAIT4: usize = 61;
const WALL: usize = 0x4000_0000;
/// How the copy ends when the thread has shown that it repeats itself; anything else shows nothing.
const SHOWN: i32 = 42;
const NOT_SHOWN: i32 = 43;

/// Has the calling thread show what it does. Under the scheduler's lock, by the holder of the turn; every other thread of `live`
/// stands still. In the copy as well.
pub fn hold(thread: &Thread, live: &[u32], setting: &Setting) -> Answer {
    let memory = sys::map_anonymous(size_of::<Trial>()).cast::<Trial>();
    // SAFETY: fresh memory; all-zero bytes are valid.
    let Some(trial) = (unsafe { memory.as_mut() }) else { return Answer::NotShown };
    let answer = if !prepare(trial, thread, live, setting) || is_traced() {
        Answer::NotShown
    } else {
        fork(trial, thread, setting.begin_copy)
    };
    if !matches!(answer, Answer::Copy) {
        // SAFETY: nobody else knows it.
        unsafe { sys::unmap(memory.cast(), size_of::<Trial>()) };
    }
    answer
}

fn prepare(trial: &mut Trial, thread: &Thread, live: &[u32], setting: &Setting) -> bool {
    trial.site = setting.site;
    trial.block = thread.hot();
    let (start, end) = thread.stack.get();
    trial.stack = Range { start, end };
    let wait_of = |number: u32| known(number).serial().wait.get().what;
    trial.locks_pass = !live.iter().any(|&number| matches!(wait_of(number), WaitFor::Lock | WaitFor::LockShared));
    for &number in live.iter().filter(|&&number| number != thread.number.get()) {
        let other = known(number);
        if other.state.get() == State::Runnable {
            trial.side_by_side = true;
            trial.locks_pass = false;
            // The initial thread has its thread-local storage outside of its stack.
            let apart = other.tls.get().0 < other.stack.get().0 || other.stack.get().1 < other.tls.get().1;
            for (start, end) in [other.stack.get(), other.tls.get()].into_iter().take(1 + usize::from(apart)) {
                let Some(range) = trial.others.get_mut(trial.other_count) else { return false };
                *range = Range { start: start & !(PAGE - 1), end: end.next_multiple_of(PAGE) };
                trial.other_count += 1;
            }
        }
    }
    let chunks = all().map(|thread| thread.chunk.get() as u64).filter(|&chunk| chunk != 0);
    for address in chunks.chain([header::page() as u64, setting.shared]) {
        let Some(place) = trial.shared.get_mut(trial.shared_count) else { return false };
        *place = address;
        trial.shared_count += 1;
    }
    true
}

fn fork(trial: &mut Trial, thread: &Thread, begin_copy: fn()) -> Answer {
    // No signal announces the copy's end, and only who asks for such children hears of it.
    // SAFETY: a copy with a stack of its own.
    let child = unsafe { sys::call(CLONE, 0, 0, 0, 0, 0, 0) };
    match child {
        0 => {
            begin(trial, thread, begin_copy);
            Answer::Copy
        }
        child if child < 0 => Answer::NotShown,
        child => {
            let mut status = 0i32;
            // SAFETY: our own child and variable.
            while unsafe { syscall!(WAIT4, child, &raw mut status, WALL, 0) } == -sys::EINTR {}
            if status == SHOWN << 8 { Answer::Shown } else { Answer::NotShown }
        }
    }
}

pub(super) fn give_up() -> ! {
    sys::exit_group(NOT_SHOWN)
}

/// In the copy: nothing from here on is seen by anybody, and it is over within a second.
fn begin(trial: &mut Trial, thread: &Thread, begin_copy: fn()) {
    const PRCTL: usize = 157;
    const PR_SET_PDEATHSIG: usize = 1;
    const SIGKILL: usize = 9;
    const SETITIMER: usize = 38;
    const RLIMIT_CORE: usize = 4;
    const SIGALRM: usize = 14;
    let (second, none, default) = ([0i64, 0, 1, 0], [0u64; 2], [0u64; 4]);
    // Traps, faults and the alarm get through.
    let mask = !(1u64 << 4 | 1 << 6 | 1 << 10 | 1 << 13);
    // SAFETY: plain system calls with locals of the right sizes.
    unsafe {
        syscall!(PRCTL, PR_SET_PDEATHSIG, SIGKILL);
        syscall!(sys::PRLIMIT64, 0, RLIMIT_CORE, none.as_ptr(), 0usize);
        syscall!(sys::RT_SIGACTION, SIGALRM, default.as_ptr(), 0usize, 8);
        syscall!(SETITIMER, 0, second.as_ptr(), 0usize);
        for signal in [5usize, 7, 11] {
            // SA_SIGINFO | SA_RESTORER; all other signals wait.
            let action = [stopped as *const () as u64, 4 | 0x0400_0000, restore as *const () as u64, u64::MAX];
            syscall!(sys::RT_SIGACTION, signal, action.as_ptr(), 0usize, 8);
        }
        syscall!(sys::RT_SIGPROCMASK, 2, &raw const mask, 0usize, 8);
    }
    stay_on_processor();
    begin_copy();
    recorder::disable();
    header::set_page(core::ptr::null_mut());
    signals::reset_lock();
    stripes::reset();
    recorder::forget(thread);
    TRIAL.store(trial, Release);
    // The scheduler's lock is the caller's, who gives it back. From here on every instruction traps.
    // SAFETY: the handler is installed. The red zone is left alone: this function calls others.
    unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
}

/// Returns from a signal's handler.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}

/// What the kernel calls before each instruction (SIGTRAP) and at faults.
unsafe extern "C" fn stopped(signal: c_int, information: *mut u64, context: *mut u8) {
    // SAFETY: set before the first trap; the arguments are the kernel's.
    unsafe {
        let trial = &mut *TRIAL.load(Relaxed);
        trial.stopped(signal, information, context);
        trial.forget_own_calls();
    }
}

impl Trial {
    unsafe fn stopped(&mut self, signal: c_int, information: *mut u64, context: *mut u8) {
        // SAFETY: `context` is a `ucontext_t`: registers from byte 40, the pointer to the floating-point state at 224; the
        // address of a fault is the third word of `information`.
        unsafe {
            let registers = &mut *context.add(40).cast::<[u64; 23]>();
            let floating = *context.add(224).cast::<*const u8>();
            self.steps += 1;
            if !self.begun {
                if signal != 5 || self.steps > MOST_STEPS_BEFORE {
                    give_up();
                }
                if (*self.block).nesting.get() == 0 {
                    self.stand_aside(registers);
                    self.remember(registers, floating);
                }
                return;
            }
            match signal {
                5 => {}
                11 if self.opens(*information.add(2), registers[ERROR]) => return,
                _ => give_up(),
            }
            if self.steps > MOST_STEPS {
                give_up();
            }
            self.close_pages();
            self.look_at_call();
            self.look_at_instruction(registers);
            self.site_passed |= registers[RIP] == self.site;
            if self.is_back(registers, floating) {
                sys::exit_group(if self.site_passed { SHOWN } else { NOT_SHOWN });
            }
            self.since += 1;
            if self.since == self.period {
                self.period *= 2;
                self.remember(registers, floating);
            }
        }
    }

    /// The thread has left the runtime, which from here on does not know it. Its memory is protected.
    unsafe fn stand_aside(&mut self, registers: &[u64; 23]) {
        // SAFETY: the thread's own block.
        unsafe {
            (*self.block).forget_thread();
            (*self.block).callee.set(0);
        }
        self.begun = true;
        self.steps = 0;
        self.period = FIRST_PERIOD;
        self.list_mappings();
        self.own_ranges(registers[RSP]);
        self.protect();
    }

    /// A write to a protected page: true, it may be made, and the page is looked at afterwards.
    fn opens(&mut self, address: u64, error: u64) -> bool {
        const WRITES: u64 = 2;
        let page = address & !(PAGE - 1);
        let is_ours = self.protected[..self.protected_count].iter().any(|range| range.contains(page));
        let is_others = self.others[..self.other_count].iter().any(|range| range.contains(page));
        if !is_ours || is_others || error & WRITES == 0 || self.saved_count == MOST_PAGES {
            return false;
        }
        if self.saved[..self.saved_count].iter().any(|saved| saved.page == page) {
            return false;
        }
        let saved = &mut self.saved[self.saved_count];
        saved.page = page;
        // SAFETY: a page that can be read.
        unsafe { copy(page as *const u8, saved.bytes.as_mut_ptr(), PAGE as usize) };
        self.saved_count += 1;
        set_rights(page, PAGE, 3);
        true
    }

    /// An instruction was made. Side by side with others it must have left everything as it was; then pages are protected again.
    fn close_pages(&mut self) {
        if !self.side_by_side {
            return;
        }
        while self.saved_count > 0 {
            let saved = &self.saved[self.saved_count - 1];
            if !saved.is_unchanged() {
                give_up();
            }
            set_rights(saved.page, PAGE, 1);
            self.saved_count -= 1;
        }
    }

    /// What this code calls may be interposed functions, too: copies and comparisons of memory.
    fn forget_own_calls(&self) {
        // SAFETY: the thread's own block.
        unsafe {
            (*self.block).callee.as_ptr().write_volatile(0);
            (*self.block).caller.as_ptr().write_volatile(0);
        }
    }

    /// Which interposed function was called.
    fn look_at_call(&mut self) {
        // SAFETY: the thread's own block.
        let callee = unsafe { (*self.block).callee.as_ptr().read_volatile() };
        let passes = callee == 0 || entry::is_poll(callee) || self.locks_pass && entry::is_mutex_call(callee);
        if !passes {
            give_up();
        }
    }

    /// What comes next. Calls into the kernel that let others run, or time pass, are left out.
    fn look_at_instruction(&self, registers: &mut [u64; 23]) {
        const SYSCALL_BYTES: u64 = 2;
        loop {
            let at = registers[RIP];
            if self.kernel_code.contains(at) {
                give_up();
            }
            // SAFETY: the processor is about to read it.
            match kind(|offset| unsafe { ((at + offset as u64) as *const u8).read_volatile() }) {
                Kind::Plain => return,
                Kind::Call if lets_time_pass(registers) => {
                    registers[RAX] = 0;
                    registers[RIP] += SYSCALL_BYTES;
                }
                Kind::Call | Kind::Other => give_up(),
            }
        }
    }

    /// This is the state to come back to.
    unsafe fn remember(&mut self, registers: &[u64; 23], floating: *const u8) {
        for at in 0..self.saved_count {
            set_rights(self.saved[at].page, PAGE, 1);
        }
        self.saved_count = 0;
        self.since = 0;
        self.site_passed = false;
        self.registers.copy_from_slice(&registers[..REGISTERS]);
        self.own[0].start = registers[RSP] - 128;
        // SAFETY: the kernel's floating-point state, of so many bytes; the thread's own memory, which is mapped.
        unsafe {
            self.xstate_bytes = xstate_bytes(floating);
            copy(floating, self.xstate.as_mut_ptr(), self.xstate_bytes);
            self.forget_own_calls();
            let mut to = self.own_bytes.as_mut_ptr();
            let mut left = MOST_OWN as u64;
            for range in self.own {
                let bytes = range.end.saturating_sub(range.start);
                if bytes > left {
                    give_up();
                }
                copy(range.start as *const u8, to, bytes as usize);
                to = to.add(bytes as usize);
                left -= bytes;
            }
        }
    }

    /// Whether that state has come again.
    unsafe fn is_back(&self, registers: &[u64; 23], floating: *const u8) -> bool {
        if self.since == 0 {
            return false;
        }
        let flags = |registers: &[u64]| registers[FLAGS] & COMPUTED;
        if registers[..FLAGS] != self.registers[..FLAGS] || flags(registers) != flags(&self.registers) {
            return false;
        }
        self.forget_own_calls();
        // SAFETY: as in `remember`.
        unsafe {
            if xstate_bytes(floating) != self.xstate_bytes || !same_floating(floating, &self.xstate[..self.xstate_bytes]) {
                return false;
            }
            let mut known = self.own_bytes.as_ptr();
            for range in self.own {
                let bytes = range.end.saturating_sub(range.start) as usize;
                if !same(range.start as *const u8, known, bytes) {
                    return false;
                }
                known = known.add(bytes);
            }
        }
        self.saved[..self.saved_count].iter().all(Saved::is_unchanged)
    }
}

/// Whether this call into the kernel is a yield, or a sleep of a given length.
fn lets_time_pass(registers: &[u64; 23]) -> bool {
    const CLOCK_NANOSLEEP: usize = 230;
    const RSI: usize = 9;
    match registers[RAX] as usize {
        sys::SCHED_YIELD | sys::NANOSLEEP => true,
        CLOCK_NANOSLEEP => registers[RSI] == 0,
        _ => false,
    }
}

pub(super) fn set_rights(address: u64, bytes: u64, rights: usize) {
    // SAFETY: the copy's own memory. If it fails a write is not seen: then there is no verdict.
    if unsafe { syscall!(sys::MPROTECT, address, bytes, rights) } != 0 {
        give_up();
    }
}
