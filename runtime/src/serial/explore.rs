//! The exploring policy: who makes the next step is decided by a list, then by a strategy; what happened is written down choice
//! by choice (`rashomon_abi::exploration` describes the file).
//!
//! Strategies after the list: CONTINUE, RANDOM; PCT ([`rashomon_logic::pct`]); POS (X. Yuan, J. Yang, R. Gu, "Partial Order Aware
//! Concurrency Sampling", CAV 2018, Algorithm 2). Sleep sets: P. Godefroid, "Partial-Order Methods for the Verification of
//! Concurrent Systems", LNCS 1032, 1996, §5.
//!
//! Deviation 1: a thread that only polls the same places, or sleeps, is passed over until another one has
//! done something else (fairness: a loop that waits for a flag has finitely many executions). Deviation 2: a thread that would
//! block at once on a taken lock or for a thread that has not ended cannot be chosen, unless nobody else can: then it blocks, and
//! a deadlock shows. Deviation 3: a sleeping thread can be chosen, which ends its sleep; other time-outs fire only when nobody
//! can run.
//!
//! Nothing is decided while a schedule is in force: its end is where exploration begins. Until then accesses run at full speed. A
//! forked child does not explore.

pub use crate::serial::exploration::words;
use crate::serial::exploration::{log_start, set, stop, word, write_pending, write_thread};
use crate::serial::policy::Occasion;
use crate::serial::sched::{WaitFor, Wake};
use crate::serial::strategy::{draws_anew, pick, step};
use crate::serial::{clock, exploration, linger, replay, sched, visible};
use crate::system::memory::{List, Spare};
use crate::system::thread::{NO_THREAD, State, Thread, known};
use crate::system::{config, folder, sys};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use rashomon_abi::control::{self, policy};
use rashomon_abi::exploration::{HEAD_WORDS, MAGIC, Operation, accesses, end, field, strategy};
use rashomon_abi::header::outcome;
use rashomon_abi::numbers::SplitMix;
use rashomon_abi::record::{AccessClass, Op};
use rashomon_logic::pct;

/// The first choice was made.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// A thread has asked for the end of the process.
static ENDING: AtomicBool = AtomicBool::new(false);
/// For a choice: who can run, and who of them would not block. Under the scheduler's lock.
static CAN_RUN: Spare<u32> = Spare::new();
static ENABLED: Spare<u32> = Spare::new();
static RANDOM: AtomicU64 = AtomicU64::new(0);
const MAX_CHANGES: usize = 32;
pub static CHANGES: [AtomicU64; MAX_CHANGES] = [const { AtomicU64::new(u64::MAX) }; MAX_CHANGES];
pub static LOWEST: AtomicU64 = AtomicU64::new(pct::LOWEST);
/// Repeated polls, with nothing changed in between, after which a thread is passed over.
pub const POLLS: u32 = 3;
/// Steps without a new place that such a thread still makes before the process ends.
const POLLS_AT_END: u32 = 16;
/// Accesses in a row, none of them a step, after which a thread is passed over.
pub const ACCESSES_WITHOUT_STEP: i64 = 1 << 20;
/// Places that a thread polls and that are remembered: a loop that waits polls few.
const PLACES: usize = 16;

/// What a thread stands before.
pub struct Pending {
    pub operation: Cell<Operation>,
    pub site: Cell<u64>,
    pub ordinal: Cell<u64>,
    pub count: Cell<u64>,
    /// Of PCT and POS.
    pub priority: Cell<u64>,
    /// Given the turn by a choice while it stood in a schedule's.
    pub chosen: Cell<bool>,
    pub asleep: Cell<bool>,
    pub waiting: Cell<bool>,
    /// Mutex of the condition wait that is about to begin; [`TRY`] before a try.
    pub second: Cell<u64>,
    /// Site and object of the thread's polls since it changed anything.
    polls: [Cell<(u64, u64)>; PLACES],
    polled: Cell<usize>,
    /// Accesses since the last step.
    pub unseen: Cell<i64>,
}

/// Says of a lock operation that it does not wait.
pub const TRY: u64 = rashomon_abi::exploration::NO_WAIT;

pub fn initialise() {
    if config::word(control::field::POLICY) != policy::EXPLORE || !config::serial() {
        return;
    }
    let path = folder::path_of(rashomon_abi::exploration::FILE.as_bytes(), None);
    // SAFETY: a terminated path; a fresh mapping, shared and kept.
    unsafe {
        let file = sys::syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000002, 0);
        if file < 0 {
            return;
        }
        let size = sys::syscall!(8usize, file, 0usize, 2usize); // lseek to the end
        let mapped =
            if size < (HEAD_WORDS * 8) as isize { -1 } else { sys::call(sys::MMAP, 0, size as usize, 3, 1, file as usize, 0) };
        sys::syscall!(sys::CLOSE, file);
        if mapped <= 0 {
            return;
        }
        exploration::has(mapped as *mut u64, size as usize / 8);
    }
    take_request();
    if word(field::SNAPSHOT) != 0 {
        // SAFETY: at the start of the process.
        unsafe { crate::serial::preconditions::begin() };
    }
}

/// What the file says is to be done.
fn take_request() {
    let whole = log_start().checked_add(word(field::LOG_WORDS) as usize).is_some_and(|words| words <= exploration::length());
    if word(field::MAGIC) != MAGIC || word(field::VERSION) != rashomon_abi::PROTOCOL_VERSION as u64 || !whole {
        sys::die(&[b"the session's exploration file is not one of this version"]);
    }
    RANDOM.store(word(field::SEED).wrapping_mul(0xd134_2543_de82_ef95), Relaxed);
    if word(field::STRATEGY) == strategy::PCT {
        let length = word(field::LENGTH);
        for change in CHANGES.iter().take(word(field::CHANGES) as usize) {
            change.store(pct::change_point(random(), length), Relaxed);
        }
    }
}

/// An execution goes on from a snapshot: what it is to do stands in the file, in place of what the process that stands was told.
pub fn begin_again(live: &[u32]) {
    take_request();
    visible::look_again();
    for &number in live {
        known(number).serial().explore.priority.set(pct::initial(random()));
    }
}

/// There is no snapshot: this execution is an ordinary one.
pub fn refuse_snapshot(reason: u64) {
    set(field::REFUSED, reason);
}

/// A forked child goes on without.
pub fn forget() {
    exploration::has(core::ptr::null_mut(), 0);
    visible::forget();
}

pub fn on() -> bool {
    !words().is_null()
}

/// Choices are made here, and not by a schedule.
pub fn exploring() -> bool {
    on() && !replay::active()
}

pub fn random() -> u64 {
    SplitMix::mixed(SplitMix::next(RANDOM.fetch_add(SplitMix::STEP, Relaxed)))
}

/// A thread was created: its first step is to begin.
pub fn created(thread: &Thread) {
    thread.serial().explore.priority.set(pct::initial(random()));
    if exploring() {
        write_thread(thread);
    }
    // The thread's own number, never 0, tells who waits for it.
    let operation = Operation { op: Op::ThreadStart as u64, object: identity(thread.number.get()), ..Operation::default() };
    stands_before(thread, operation, 0);
}

/// Threads as objects: no address is so low.
fn identity(number: u32) -> u64 {
    1 + number as u64
}

fn stands_before(thread: &Thread, operation: Operation, site: u64) {
    thread.serial().explore.unseen.set(0);
    thread.serial().explore.operation.set(operation);
    thread.serial().explore.site.set(site);
    thread.serial().explore.ordinal.set(thread.ordinal.get() as u64);
    thread.serial().explore.count.set(if thread.has_block() { thread.accesses_since_sync() } else { 0 });
    if draws_anew() {
        thread.serial().explore.priority.set(random());
    }
    if ENDING.load(Relaxed) && !replay::active() {
        linger::step(thread, linger::place(operation.op, site), 1);
    }
    if exploring() {
        write_pending(thread);
    }
}

/// The thread is about to synchronise. To be called before a schedule is asked.
pub fn at_synchronisation(thread: &Thread, op: Op, object: u64, access: crate::serial::replay::AccessAt, site: u64) {
    let second = thread.serial().explore.second.replace(0);
    let object = match op {
        Op::ThreadJoin => crate::system::handles::find(object).map_or(0, |thread| identity(thread.number.get())),
        Op::ThreadEnd => identity(thread.number.get()),
        _ => object,
    };
    // Calls for both ways of holding have one name; releases of readers commute.
    let shared = op == Op::Unlock && thread.held.iter().any(|held| held.lock == object && held.shared);
    let op = if shared { Op::UnlockShared } else { op };
    let operation = Operation { op: op as u64, object, second, class: access.class, bytes: access.bytes, atomic: access.atomic };
    stands_before(thread, operation, site);
    match op {
        Op::AtomicLoad | Op::Sleep => polls(thread),
        // What becomes of it tells.
        Op::AtomicRmw | Op::Lock | Op::LockShared | Op::SemaphoreWait | Op::ThreadJoin => {}
        Op::Yield | Op::Acquire | Op::Blocking => {}
        _ => changes(thread),
    }
    check_races(thread);
}

/// The thread polls what it stands before, or found it as it was: counts if it has done so before and changed nothing since.
pub fn polls(thread: &Thread) {
    let pending = &thread.serial().explore;
    let place = (pending.site.get(), pending.operation.get().object);
    let polled = pending.polled.get();
    if pending.polls[..polled.min(PLACES)].iter().any(|poll| poll.get() == place) {
        thread.spins.set(thread.spins.get() + 1);
    } else {
        pending.polls[polled % PLACES].set(place);
        pending.polled.set(polled + 1);
    }
}

/// The thread changed something that others may see.
pub fn changes(thread: &Thread) {
    thread.spins.set(0);
    thread.serial().explore.polled.set(0);
}

/// What the thread is about to do concerns another object as well.
pub fn concerns(thread: &Thread, second: u64) {
    thread.serial().explore.second.set(second);
}

/// The same for an access. True: it is visible.
pub fn at_access(thread: &Thread, access: crate::serial::replay::AccessAt, of_schedule: bool) -> bool {
    let visible = match word(field::ACCESSES) {
        accesses::ALL => true,
        // SAFETY: the thread holds the turn.
        accesses::SITES => unsafe { visible::is_listed(access.site) },
        _ => false,
    };
    let operation =
        Operation { op: 0, object: access.address, second: 0, class: access.class, bytes: access.bytes, atomic: access.atomic };
    if !visible && !of_schedule {
        if races_wanted() && meets(thread, &operation).is_some() {
            stands_before(thread, operation, access.site);
            check_races(thread);
        }
        return false;
    }
    stands_before(thread, operation, access.site);
    if operation.writes() {
        changes(thread);
    } else {
        polls(thread);
    }
    check_races(thread);
    visible
}

/// The thread is about to make an access that is no step. True: it has made so many of these in a row that it is taken to wait
/// for somebody, in a loop that nobody sees.
pub fn runs_on(thread: &Thread, access: crate::serial::replay::AccessAt, quantum_used_up: bool) -> bool {
    if !exploring() {
        return false;
    }
    let more = if watches_accesses() {
        1
    } else if quantum_used_up {
        ACCESSES_WITHOUT_STEP
    } else {
        0
    };
    let unseen = thread.serial().explore.unseen.get() + more;
    thread.serial().explore.unseen.set(unseen);
    if unseen < ACCESSES_WITHOUT_STEP {
        return false;
    }
    let operation = Operation { object: access.address, class: AccessClass::Read as u64, ..Operation::default() };
    stands_before(thread, operation, access.site);
    true
}

/// Accesses have to be looked at.
pub fn watches_accesses() -> bool {
    exploring() && (word(field::ACCESSES) != accesses::NONE || races_wanted())
}

pub fn races_wanted() -> bool {
    word(field::RACES) != 0
}

fn is_held(thread: &Thread) -> bool {
    word(field::HOLD) == thread.schedule_index.get() as u64 + 1 && thread.schedule_index.get() != NO_THREAD
}

/// Who stands at an access that conflicts with this one.
fn meets(thread: &Thread, operation: &Operation) -> Option<u32> {
    // SAFETY: the holder of the turn; the others stand still. Registered threads are never unmapped.
    unsafe { sched::live() }.as_slice().iter().copied().find(|&number| {
        let other = known(number);
        number != thread.number.get()
            && other.state.get() == State::Runnable
            && (word(field::HOLD) == 0 || is_held(other))
            && other.serial().explore.operation.get().races(operation)
    })
}

fn check_races(thread: &Thread) {
    if !exploring() || !races_wanted() {
        return;
    }
    if let Some(other) = meets(thread, &thread.serial().explore.operation.get()) {
        set(field::RACE_A, other as u64);
        set(field::RACE_B, thread.number.get() as u64);
        replay::conclude(outcome::CO_ENABLED, other as u64, thread.number.get() as u64);
    }
}

/// A schedule said that the thread may go on, or is over. True: the thread has to ask here as well.
pub fn asks(thread: &Thread) -> bool {
    exploring() && !thread.serial().explore.chosen.take()
}

/// The thread stood in a schedule that is over, and was given the turn by a choice.
pub fn released(thread: &Thread) {
    if exploring() {
        thread.serial().explore.chosen.set(true);
    }
}

/// The thread goes on without having asked.
pub fn passed(thread: &Thread) {
    thread.serial().explore.chosen.set(false);
}

/// Why the thread offers its turn.
pub fn offered(thread: &Thread, occasion: Occasion) {
    if occasion == Occasion::Yield {
        waits(thread);
    }
}

/// The thread only polls for what another is to do.
pub fn waits(thread: &Thread) {
    thread.spins.set(0);
    thread.serial().explore.waiting.set(true);
    if word(field::STRATEGY) == strategy::PCT {
        thread.serial().explore.priority.set(LOWEST.fetch_sub(1, Relaxed));
    }
}

/// Whether the thread would block at once.
fn would_block(thread: &Thread, live: &[u32]) -> bool {
    if thread.state.get() != State::Runnable {
        return false;
    }
    let Operation { op, object, second, .. } = thread.serial().explore.operation.get();
    let held_by_another = |lock: u64, shared: bool| {
        live.iter().any(|&number| {
            let other = known(number);
            number != thread.number.get() && other.held.iter().any(|held| held.lock == lock && !(shared && held.shared))
        })
    };
    match Op::from_code(op) {
        Some(Op::Lock) => second != TRY && held_by_another(object, false),
        Some(Op::LockShared) => second != TRY && held_by_another(object, true),
        Some(Op::CondWaitEnd) => held_by_another(second, false),
        Some(Op::ThreadJoin) => live.iter().any(|&number| identity(number) == object),
        _ => false,
    }
}

/// The thread that makes the next step, if anybody can. Under the scheduler's lock, with no holder of the turn.
pub fn choose(live: &[u32], outgoing: u32) -> Option<&'static Thread> {
    let of = known;
    if !BEGUN.swap(true, Relaxed) {
        if word(field::SNAPSHOT) != 0 {
            // SAFETY: nobody holds the turn.
            unsafe { visible::prepare() };
            crate::serial::snapshot::stand_here(live);
        }
        crate::system::thread::all().for_each(write_thread);
        for &number in live {
            let thread = of(number);
            // Nobody created the initial thread.
            if thread.serial().explore.priority.get() == 0 {
                thread.serial().explore.priority.set(pct::initial(random()));
            }
            write_pending(thread);
        }
    }
    let sleeps = |thread: &Thread| thread.state.get() == State::Blocked && thread.serial().wait.get().what == WaitFor::Time;
    // SAFETY: under the scheduler's lock.
    let (mut can_run, mut enabled) = unsafe { (CAN_RUN.take(), ENABLED.take()) };
    for &number in live {
        let thread = of(number);
        if (thread.state.get() == State::Runnable || sleeps(thread)) && !is_held(thread) {
            can_run.push(number);
            if !would_block(thread, live) {
                enabled.push(number);
            }
        }
    }
    if enabled.len() == 0 {
        core::mem::swap(&mut enabled, &mut can_run);
    }
    let goes_on = others_first(&mut enabled, live);
    let next = if goes_on { pick(&enabled, outgoing) } else { None };
    // SAFETY: under the scheduler's lock.
    unsafe {
        CAN_RUN.put(can_run);
        ENABLED.put(enabled);
    }
    if !goes_on {
        return choose(live, outgoing);
    }
    if let Some(next) = next {
        let thread = of(next);
        if sleeps(thread) {
            clock::advance_to(thread.serial().wait.get().deadline);
            sched::let_go(thread, Wake::TimedOut);
        }
        step(thread, live);
        return Some(thread);
    }
    if word(field::HOLD) != 0 && !live.iter().any(|&number| may_come_back(of(number))) {
        stop(end::HELD);
    }
    None
}

/// Whether a thread stands before the end of the process.
fn is_at_end(thread: &Thread) -> bool {
    thread.serial().explore.operation.get().op == Op::ExitGoesOn as u64
}

/// A thread is about to end the process: from here on it counts who repeats itself.
pub fn process_ends(thread: &Thread) {
    if !crate::system::thread::all().any(|other| other.number.get() != thread.number.get() && other.serial().linger.ends.get()) {
        linger::forget_places();
    }
    ENDING.store(true, Relaxed);
}

/// The end of the process is made when nobody else goes on: what the others do before it, an earlier end would only hide. Whoever
/// does the same a few times over may be about to do something else. Takes it from those who can be chosen, or them; false: time
/// passed, and somebody woke up.
fn others_first(enabled: &mut List<u32>, live: &[u32]) -> bool {
    let of = known;
    if !ENDING.load(Relaxed) || !enabled.as_slice().iter().any(|&number| is_at_end(of(number))) {
        return true;
    }
    let goes_on = |thread: &Thread| {
        let polls = thread.serial().explore.waiting.get() && linger::stays(thread, POLLS_AT_END);
        !is_at_end(thread) && !polls && !thread.serial().linger.passed_over.get()
    };
    let others = enabled.as_slice().iter().any(|&number| goes_on(of(number)));
    if !others {
        let timed = |thread: &Thread| {
            thread.state.get() == State::Blocked
                && thread.serial().wait.get().what != WaitFor::Time
                && thread.serial().wait.get().deadline != clock::NEVER
        };
        let first = live.iter().copied().filter(|&number| timed(of(number)) && !of(number).serial().linger.passed_over.get());
        if let Some(number) = first.min_by_key(|&number| of(number).serial().wait.get().deadline) {
            clock::advance_to(of(number).serial().wait.get().deadline);
            sched::let_go(of(number), Wake::TimedOut);
            return false;
        }
        if live.iter().any(|&number| of(number).serial().linger.passed_over.get()) {
            set(field::PASSED_OVER, 1);
        }
    }
    let mut kept: List<u32> = List::new();
    for &number in enabled.as_slice() {
        let thread = of(number);
        if if others { !is_at_end(thread) && !thread.serial().linger.passed_over.get() } else { is_at_end(thread) } {
            kept.push(number);
        }
    }
    core::mem::replace(enabled, kept).clear_and_free();
    true
}

/// Whether a thread that cannot run may do so without another's help.
fn may_come_back(thread: &Thread) -> bool {
    thread.state.get() == State::External
        || thread.state.get() == State::Blocked
            && (thread.serial().wait.get().what == WaitFor::Files || thread.serial().wait.get().deadline != clock::NEVER)
}
