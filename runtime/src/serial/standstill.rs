//! Threads that wait for each other for ever where they run in parallel: free recordings, provocations and detection.
//!
//! A thread says what it is about to wait for without a time limit ([`during`]). A thread of the runtime's own, which sleeps
//! while nobody waits so, looks for cycles of such waits, and for the whole process at a standstill. It believes nothing that one
//! sample shows: every thread concerned has to sleep in the kernel, in a futex call without time-out, on a word that no other
//! process sees; and it must not have run between two samples, by the kernel's count of its context switches. A thread that spins
//! runs all the time; it must have been in one and the same call of the spin lock. So all that was seen was true at once, at any
//! moment between the two.
//!
//! A cycle alone, while others run who might break it (a mutex serves as a semaphore, and another thread unlocks it), has to last
//! for [`TIMEOUT_NS`]: then the detector tells of it, and an execution that is recorded or provoked ends. The detector does not
//! wait so long if the process ends first. Else the process is ended only when no thread is left that could run, no timer of the
//! process is armed, and, if the program has signal handlers, nothing has happened for [`HANDLERS_TIMEOUT_NS`].
//!
//! Who holds a mutex, or a rwlock for itself, libc's object tells. Readers of a rwlock and holders of a spin lock or of one of
//! OpenMP's are looked for among the threads that wait themselves, in what they say that they hold.
//!
//! Limit: waits that are not seen are not told of: those of uninstrumented locks that call the kernel themselves, and loops that
//! spin by themselves.

use crate::detect;
pub use crate::serial::kernel_tasks::timer_armed;
use crate::serial::kernel_tasks::{Task, census, read_foreign};
use crate::serial::{blocked, clock, deadlock, sched};
use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::sys;
use crate::system::thread::{Held, Runtime, Thread, all, by_number};
use crate::system::{config, real, signals};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::record::{Op, lock_kind};

const TICK_NS: u64 = 100_000_000;
/// A signal may still come and its handler end a wait.
const HANDLERS_TIMEOUT_NS: u64 = 10_000_000_000;
/// How long a cycle may last while others run, who might break it.
const TIMEOUT_NS: u64 = 3_000_000_000;
/// Longest cycle that is looked for.
const LONGEST: usize = 256;

/// What a thread waits for without a time limit, written by itself.
pub struct Waiting {
    /// `count of its waits << 32 | kind of lock << 16 | operation`; the lower half is 0 while it does not wait.
    word: AtomicU64,
    object: AtomicU64,
    /// See [`For::sleeps_at`].
    futex: AtomicU64,
    site: AtomicU64,
    /// While detecting: its call stack.
    stack: AtomicU32,
}

const COUNT: u64 = 1 << 32;

/// Threads that live, and those of them that wait.
static ALIVE: AtomicU32 = AtomicU32::new(0);
static WAITING: AtomicU32 = AtomicU32::new(0);

/// The helper's state, on which it sleeps.
static STATE: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const ASLEEP: u32 = 1;
const AWAKE: u32 = 2;
/// Its kernel id.
static HELPER: AtomicU32 = AtomicU32::new(0);
/// For starting it.
static START: RawLock = RawLock::new();
/// While detecting: what tells the cycle last told of from others.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// A thread begins to live, or was created.
pub fn begins() {
    ALIVE.fetch_add(1, Relaxed);
}

/// It has ended, or never came to be. Whether it was the last, but for the helper.
pub fn ends(thread: &Thread) -> bool {
    end(thread);
    ALIVE.fetch_sub(1, AcqRel) == 1 && STATE.load(Relaxed) != NONE
}

/// In a forked child: its only thread does not wait, and nobody looks.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn restart(thread: &Thread) {
    START.reset();
    thread.serial().waiting.word.store(0, Relaxed);
    ALIVE.store(1, Relaxed);
    WAITING.store(0, Relaxed);
    STATE.store(NONE, Relaxed);
    HELPER.store(0, Relaxed);
}

/// Whether the kernel's thread of that id is the runtime's own.
pub fn is_helper(kernel_id: u32) -> bool {
    HELPER.load(Relaxed) == kernel_id
}

/// A wait as it is told of.
#[derive(Clone, Copy)]
pub struct For {
    pub op: Op,
    /// `record::lock_kind` of a lock.
    pub kind: u16,
    /// Address of the object, or number of the thread.
    pub object: u64,
    pub site: u64,
    /// Where the word begins that the kernel is called with, at the latest; the object itself, mostly.
    futex: u64,
}

impl For {
    pub const fn on(op: Op, object: u64, site: u64) -> Self {
        Self { op, kind: 0, object, site, futex: object }
    }
    /// The word that the thread sleeps on is not part of the object.
    pub const fn sleeps_at(self, futex: u64) -> Self {
        Self { futex, ..self }
    }
    pub const fn lock(shared: bool, kind: u16, object: u64, site: u64) -> Self {
        Self { op: if shared { Op::LockShared } else { Op::Lock }, kind, object, site, futex: object }
    }
}

/// Makes a call that may wait for ever, where it waits by itself.
pub fn during<R>(runtime: &Runtime, wait: For, call: impl FnOnce() -> R) -> R {
    if config::serial() {
        return sched::external(runtime, call);
    }
    begin(runtime.thread(), wait);
    let result = sched::external(runtime, call);
    end(runtime.thread());
    result
}

fn begin(thread: &Thread, wait: For) {
    let stack = if detect::on() { thread.with_own(|own| detect::places::call_stack(own, wait.site)) } else { 0 };
    let waiting = &thread.serial().waiting;
    let before = waiting.word.load(Relaxed);
    waiting.object.store(wait.object, Relaxed);
    waiting.futex.store(wait.futex, Relaxed);
    waiting.site.store(wait.site, Relaxed);
    waiting.stack.store(stack, Relaxed);
    let count = (before & !(COUNT - 1)).wrapping_add(COUNT);
    waiting.word.store(count | (wait.kind as u64) << 16 | wait.op as u64, Release);
    // A wait that was left by cancellation, or by a jump, was never ended.
    if before & (COUNT - 1) == 0 {
        WAITING.fetch_add(1, SeqCst);
    }
    match STATE.load(SeqCst) {
        NONE => start(),
        ASLEEP if STATE.swap(AWAKE, SeqCst) == ASLEEP => sys::futex_wake(&STATE, 1),
        _ => {}
    }
}

fn end(thread: &Thread) {
    let now = thread.serial().waiting.word.load(Relaxed);
    if now & (COUNT - 1) != 0 {
        thread.serial().waiting.word.store(now & !(COUNT - 1), Release);
        WAITING.fetch_sub(1, AcqRel);
    }
}

#[cold]
fn start() {
    START.with(|| {
        if STATE.load(Relaxed) == NONE {
            STATE.store(AWAKE, Relaxed);
            real::create_unobserved(run);
        }
    });
}

extern "C" fn run(_argument: *mut u8) -> *mut u8 {
    HELPER.store(sys::thread_id(), Release);
    let mut watch = Watch { tasks: List::new(), since: 0, cycle: (0, 0) };
    loop {
        if WAITING.load(SeqCst) == 0 && STATE.compare_exchange(AWAKE, ASLEEP, SeqCst, Relaxed).is_ok() {
            // A thread that began to wait in between saw a helper that is awake, and woke nobody. In one order of all these
            // steps, either it sees that the helper sleeps, or the helper sees it. No test forces this: the window is between two
            // instructions of the runtime.
            if WAITING.load(SeqCst) != 0 {
                STATE.store(AWAKE, SeqCst);
            }
            while STATE.load(Acquire) == ASLEEP {
                sys::futex_wait(&STATE, ASLEEP);
            }
        }
        sys::sleep(TICK_NS);
        watch.inspect();
    }
}

/// The waits of a cycle, each for the next one's thread.
struct Cycle {
    /// Thread, and what tells its wait from later ones.
    members: [(u32, u64); LONGEST],
    length: usize,
}

/// The helper's memory.
struct Watch {
    tasks: List<Task>,
    /// When the process came to a standstill; 0: it did not.
    since: u64,
    /// What tells the cycle seen last from others, and since when.
    cycle: (u64, u64),
}

impl Watch {
    fn inspect(&mut self) {
        let all_wait = WAITING.load(Acquire) >= ALIVE.load(Acquire);
        let cycle = cycle();
        if cycle.is_none() && !all_wait {
            return self.forget();
        }
        let mut tasks = List::new();
        let complete = census(&mut tasks, spinning);
        let before = core::mem::replace(&mut self.tasks, tasks);
        let samples = (before.as_slice(), self.tasks.as_slice());
        let stands = complete && samples.1.iter().all(|task| stood(samples, task.id).is_some());
        let cycle = cycle.filter(|cycle| cycle.stood(samples));
        let mut before = before;
        before.clear_and_free();
        if let Some(cycle) = cycle.as_ref().filter(|_| stands && detect::on()) {
            cycle.is_told();
        }
        let now = sys::clock(clock::MONOTONIC as usize);
        let sum = cycle.as_ref().map_or(0, Cycle::sum);
        if self.cycle.0 != sum {
            self.cycle = (sum, now);
        }
        if !stands || timer_armed() {
            self.since = 0;
            let timeout = if signals::handlers_installed() { HANDLERS_TIMEOUT_NS } else { TIMEOUT_NS };
            let lasts = now - self.cycle.1 >= timeout;
            match cycle.filter(|cycle| lasts && !cycle.joins()) {
                Some(cycle) if detect::on() => cycle.is_told(),
                Some(cycle) if !timer_armed() => deadlock::among(cycle.members()),
                _ => {}
            }
            return;
        }
        if self.since == 0 {
            self.since = now;
        }
        if signals::handlers_installed() && now - self.since < HANDLERS_TIMEOUT_NS {
            return;
        }
        // What was seen of the waits is from before the second sample of the threads: they have not moved since the first.
        if detect::on() {
            blocked::ends(TOLD.load(Relaxed) != 0);
        }
        deadlock::standstill(cycle.as_ref().map_or(&[], |cycle| cycle.members()));
    }

    fn forget(&mut self) {
        self.tasks.clear_and_free();
        self.since = 0;
        self.cycle = (0, 0);
    }
}

impl Cycle {
    fn members(&self) -> &[(u32, u64)] {
        &self.members[..self.length]
    }

    /// Whether one of its threads joins another: that wait ends when somebody cancels the thread, whose handlers may give locks
    /// back.
    fn joins(&self) -> bool {
        self.members().iter().any(|&(_, word)| Op::from_code(word & 0xffff) == Some(Op::ThreadJoin))
    }

    /// The detector tells of it, once.
    fn is_told(&self) {
        if TOLD.swap(self.sum(), AcqRel) != self.sum() {
            blocked::happened(self.members());
        }
    }

    /// Whether each of its threads slept at its wait from the first sample to the second.
    fn stood(&self, samples: (&[Task], &[Task])) -> bool {
        self.members().iter().all(|&(number, _)| {
            known(number).is_some_and(|thread| stood(samples, thread.kernel_id.get()).is_some_and(|task| task.is_at(thread)))
        })
    }

    fn sum(&self) -> u64 {
        self.members()
            .iter()
            .fold(1, |sum, &(number, word)| sum.wrapping_add((word ^ (number as u64) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

/// The thread of that kernel id, if it has not run between two samples.
fn stood((before, after): (&[Task], &[Task]), id: u32) -> Option<Task> {
    after.iter().find(|task| task.id == id).filter(|task| task.futex != 0 && before.contains(task)).copied()
}

/// How many threads wait, and how many live.
pub fn waiting_and_alive() -> (u32, u32) {
    (WAITING.load(Acquire), ALIVE.load(Acquire))
}

/// While detecting: whether a cycle was told of.
pub fn has_told() -> bool {
    TOLD.load(Acquire) != 0
}

/// While detecting, the process is about to end: tells of a cycle that has not lasted long enough yet.
pub fn conclude() {
    const BETWEEN_LOOKS_NS: u64 = 10_000_000;
    if WAITING.load(Acquire) == 0 || cycle().is_none() {
        return;
    }
    let (mut before, mut after) = (List::new(), List::new());
    census(&mut before, spinning);
    sys::sleep(BETWEEN_LOOKS_NS);
    let cycle = cycle();
    census(&mut after, spinning);
    if let Some(cycle) = cycle.filter(|cycle| !cycle.joins() && cycle.stood((before.as_slice(), after.as_slice()))) {
        cycle.is_told();
    }
    before.clear_and_free();
    after.clear_and_free();
}

impl Task {
    /// Whether it sleeps where the thread says that it waits.
    fn is_at(&self, thread: &Thread) -> bool {
        let Some((_, op, _, object)) = wait_of(thread) else { return false };
        let (first, bytes) = match op {
            // Its thread control block holds the word.
            Op::ThreadJoin => (known(object as u32).map_or(0, |child| child.handle.load(Relaxed)), 4096),
            _ => (thread.serial().waiting.futex.load(Relaxed), 56),
        };
        (first..first.saturating_add(bytes)).contains(&self.futex)
    }
}

fn known(number: u32) -> Option<&'static Thread> {
    by_number(number).filter(|thread| thread.ended.load(Acquire) == 0)
}

/// Word, operation, kind of lock and object of a thread's wait.
fn wait_of(thread: &Thread) -> Option<(u64, Op, u16, u64)> {
    let word = thread.serial().waiting.word.load(Acquire);
    let op = Op::from_code(word & 0xffff)?;
    (word & (COUNT - 1) != 0).then(|| (word, op, (word >> 16) as u16, thread.serial().waiting.object.load(Relaxed)))
}

/// The holder that a wait depends on, as libc's own object tells.
fn holder(op: Op, kind: u16, object: u64) -> Option<u32> {
    let owner_at = match (op, kind & lock_kind::KIND_MASK) {
        (Op::ThreadJoin, _) => return known(object as u32).map(|thread| thread.number.get()),
        // `__owner` and `__cur_writer`.
        (Op::Lock, lock_kind::MUTEX) => 8,
        (Op::Lock | Op::LockShared, lock_kind::RWLOCK) => 24,
        _ => return None,
    };
    let mut owner = 0u32;
    // SAFETY: our own word.
    if !unsafe { read_foreign(object + owner_at, (&raw mut owner).cast(), size_of::<u32>()) } {
        return None;
    }
    let holder = all().find(|thread| thread.libc_id.get() == owner && thread.ended.load(Acquire) == 0);
    holder.filter(|_| owner != 0).map(|thread| thread.number.get())
}

/// Whether the object does not tell who holds such a lock.
const fn has_unnamed_holders(op: Op, kind: u16) -> bool {
    let kind = kind & lock_kind::KIND_MASK;
    matches!(op, Op::Lock | Op::LockShared) && matches!(kind, lock_kind::RWLOCK | lock_kind::SPIN | lock_kind::OTHER)
}

/// Locks of a thread that are looked at.
const MOST_HELD: usize = 64;

/// Whether a thread that waits, and so changes nothing of it, says that it holds a lock. It may go on meanwhile: the kernel reads
/// its list, which then may be gone.
fn says_it_holds(thread: &Thread, lock: u64) -> bool {
    let (items, length) = thread.held.place();
    let length = length.min(MOST_HELD);
    let mut held = [[0u64; size_of::<Held>() / 8]; MOST_HELD];
    let bytes = length * size_of::<Held>();
    // SAFETY: `bytes` of our own array.
    let read = unsafe { read_foreign(items as u64, held.as_mut_ptr().cast(), bytes) };
    read && held[..length].iter().any(|held| held[core::mem::offset_of!(Held, lock) / 8] == lock)
}

/// Any cycle of waits.
fn cycle() -> Option<Cycle> {
    let mut cycle = Cycle { members: [(0, 0); LONGEST], length: 0 };
    let mut dead_ends: List<u32> = List::new();
    let found = all().any(|thread| cycle.goes_on(thread, &mut dead_ends));
    dead_ends.clear_and_free();
    found.then_some(cycle)
}

impl Cycle {
    /// Follows the waits from a thread on; true: they lead back to it or to one on the way, and this is now the cycle. Who is no
    /// part of any becomes a dead end.
    fn goes_on(&mut self, thread: &Thread, dead_ends: &mut List<u32>) -> bool {
        let Some((word, op, kind, object)) = wait_of(thread) else { return false };
        if dead_ends.as_slice().contains(&thread.number.get()) || self.length == LONGEST {
            return false;
        }
        if let Some(start) = self.members().iter().position(|&(number, _)| number == thread.number.get()) {
            self.members.copy_within(start..self.length, 0);
            self.length -= start;
            return true;
        }
        self.members[self.length] = (thread.number.get(), word);
        self.length += 1;
        let found = match holder(op, kind, object) {
            Some(holder) => known(holder).is_some_and(|holder| self.goes_on(holder, dead_ends)),
            None if has_unnamed_holders(op, kind) => {
                let mut waiting = all().filter(|thread| wait_of(thread).is_some());
                waiting.any(|holder| says_it_holds(holder, object) && self.goes_on(holder, dead_ends))
            }
            None => false,
        };
        if !found {
            self.length -= 1;
            dead_ends.push(thread.number.get());
        }
        found
    }
}

/// The wait of a thread that stands, for the recorder: operation, object and site; and its holder.
pub fn told(thread: &Thread) -> Option<(Op, u64, u64, Option<u32>)> {
    let (_, op, kind, object) = wait_of(thread)?;
    Some((op, object, thread.serial().waiting.site.load(Relaxed), holder(op, kind, object)))
}

/// While detecting: the call stack of a thread's wait, and what it waits for.
pub fn stack_of(number: u32) -> Option<(u32, Op, u64)> {
    let thread = known(number)?;
    let (_, op, _, object) = wait_of(thread)?;
    Some((thread.serial().waiting.stack.load(Relaxed), op, object))
}

/// What stands for a thread that spins on a lock: which call of it, in place of what the kernel knows.
fn spinning(id: u32) -> Option<Task> {
    let thread = all().find(|thread| thread.kernel_id.get() == id)?;
    let (word, _, kind, object) = wait_of(thread)?;
    let spins = kind & lock_kind::KIND_MASK == lock_kind::SPIN;
    spins.then_some(Task { id, switches: word, futex: object })
}

/// All threads stand: their streams are ours to write.
static STANDS: AtomicU32 = AtomicU32::new(0);

pub fn stand() {
    STANDS.store(1, Release);
}

pub fn stands() -> bool {
    STANDS.load(Relaxed) != 0
}
