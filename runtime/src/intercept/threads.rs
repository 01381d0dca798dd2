//! `pthread_create`, `_join`, `_detach`: the life of threads.
//!
//! A thread ends, for the model, in the last round of its key destructors: that is behind its start routine, behind
//! `pthread_exit` and cancellation, and behind the destructors of its thread-local objects and of the program's own keys.

use super::lock_common::deadline;
use crate::detect;
use crate::detect::fibers;
use crate::intercept::{gaps, room};
use crate::provoke;
use crate::record::recorder;
use crate::serial::cancellation;
use crate::serial::clock::{NEVER, REALTIME};
use crate::serial::sched::{self, Wait, WaitFor};
use crate::serial::{replay, standstill, watchdog};
use crate::system::handles;
use crate::system::real::{Real, real};
use crate::system::registered::Registered;
use crate::system::sys::Decimal;
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::{caller, hot};
use crate::system::{config, signals, storage, sys};
use crate::threads as lives;
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, lock_kind, sync_source, thread_create};

pub type Routine = unsafe extern "C" fn(*mut u8) -> *mut u8;

/// Key + 1 whose destructor ends threads.
static KEY: AtomicU32 = AtomicU32::new(0);
/// `PTHREAD_DESTRUCTOR_ITERATIONS`
const ROUNDS: u32 = 4;
const DEFAULT_STACK: u64 = 8 << 20;

fn key() -> u32 {
    let known = KEY.load(Acquire);
    if known != 0 {
        return known - 1;
    }
    let mut key = 0u32;
    // SAFETY: valid arguments.
    let error = unsafe { real!(fn pthread_key_create(*mut u32, unsafe extern "C" fn(*mut u8)) -> c_int)(&mut key, round) };
    if error != 0 {
        sys::die(&[b"no thread-specific key left, errno ", Decimal::new(error as u64).bytes()]);
    }
    KEY.store(key + 1, Release);
    key
}

/// Lets all threads allocate from the one heap. Further arenas are aligned to their size, which puts them at random distances,
/// and only one thread runs at a time anyway.
fn one_arena() {
    const M_ARENA_MAX: c_int = -8;
    // SAFETY: valid arguments.
    unsafe { real!(fn mallopt(c_int, c_int) -> c_int)(M_ARENA_MAX, 1) };
}

/// Arms the destructor for the calling thread.
fn arm(thread: &Thread) {
    // SAFETY: a valid key.
    unsafe { real!(fn pthread_setspecific(u32, *const Thread) -> c_int)(key(), thread) };
}

unsafe extern "C" {
    /// What every instrumented module calls first: it begins the runtime.
    fn __tsan_init();
}

/// What OpenMP does at the end of a thread that is one of its own.
pub static BEFORE_END: Registered<fn()> = Registered::none();

/// A round of key destructors. The model's end of the thread is the last one.
unsafe extern "C" fn round(argument: *mut u8) {
    let Some(runtime) = Runtime::try_enter() else { return };
    if detect::on() {
        // It may have ended as another fibre.
        // SAFETY: the record of a thread, as `arm` was told.
        let thread: &'static Thread = unsafe { &*argument.cast() };
        fibers::switch(runtime.thread(), thread, fibers::NO_SYNC);
    }
    let thread = runtime.thread();
    debug_assert!(core::ptr::eq(thread, argument.cast::<Thread>()));
    thread.key_rounds.set(thread.key_rounds.get() + 1);
    if thread.key_rounds.get() < ROUNDS {
        arm(thread);
        return;
    }
    if let Some(before_end) = BEFORE_END.get() {
        before_end();
    }
    sched::point(&runtime, Op::ThreadEnd, 0, 0);
    recorder::sync(thread, Op::ThreadEnd, 0, 0, 0, &[]);
    if thread.detached.get() {
        handles::give_up(thread);
    }
    signals::block_programs();
    // SAFETY: the thread's last words are recorded.
    unsafe { lives::detach(thread) };
    thread.ended.store(1, Release);
    let last = standstill::ends(thread);
    if config::serial() {
        sched::ended(thread);
    }
    if if config::serial() { sched::live_count() == 0 } else { last } {
        // The C library ends the process with its last thread, but counts the runtime's own.
        // SAFETY: as the C library would call it, from here.
        unsafe { real!(fn exit(c_int) -> ())(0) };
    }
}

/// Calls `routine(argument)`, from a place that can be told.
#[unsafe(naked)]
unsafe extern "C" fn call_routine(_routine: Routine, _argument: *mut u8) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
    )
}

/// Whether a start routine returns to this address.
pub fn calls_routine(address: u64) -> bool {
    address.wrapping_sub(call_routine as *const () as u64) < 24
}

unsafe extern "C" fn begin(argument: *mut u8) -> *mut u8 {
    // SAFETY: the record that its creator made for this thread.
    let thread: &'static Thread = unsafe { &*argument.cast() };
    let pointer = storage::pointer();
    // Whoever had this handle before was joined where nobody here saw it.
    while let Some(other) = handles::by_handle(pointer) {
        other.joined.set(true);
        handles::give_up(other);
    }
    handles::store(thread, pointer);
    let end = storage::around(pointer).map_or(pointer + 4096, |(_, end)| end);
    thread.stack.set((end.saturating_sub(thread.stack.get().0), end));
    hot().nesting.set(1);
    sched::arrive(thread);
    provoke::begins(thread);
    // SAFETY: this thread, once.
    let runtime = unsafe {
        lives::attach(thread);
        Runtime::enter()
    };
    arm(thread);
    let (id, parent, ordinal) = (thread.kernel_id.get(), thread.parent.get(), thread.spawn_ordinal.get());
    let stack = thread.stack.get();
    recorder::sync(thread, Op::ThreadStart, id as u64, 0, 0, &[parent as u64, ordinal as u64, stack.0, stack.1, 0, 0]);
    if thread.takes_start_mask.get() {
        signals::set_mask(thread.start_mask.get());
    }
    thread.begun.store(1, Release);
    if detect::on() {
        sys::futex_wake(&thread.begun, 1);
        let_overtake(thread);
    }
    // SAFETY: its creator set it.
    let routine = unsafe { thread.start_routine.get().unwrap_unchecked() };
    let argument = thread.start_argument.get();
    drop(runtime);
    // SAFETY: the program's own function, or the passage to it, and its argument.
    unsafe { call_routine(passing(routine), argument) }
}

/// The routine, or what notes that it is called where its code is not seen.
fn passing(routine: Routine) -> Routine {
    // SAFETY: either is a function of this type.
    unsafe { core::mem::transmute::<u64, Routine>(gaps::seen(routine as *const () as u64)) }
}

/// Whether these attributes of a new thread say which signals it blocks. Their first version that can is that of glibc 2.32.
fn has_own_mask(attributes: *const u8) -> bool {
    #[used]
    #[unsafe(link_section = "rashomon_real")]
    static REAL: Real = Real::new(c"pthread_attr_getsigmask_np", None);
    let function = REAL.address();
    if attributes.is_null() || function.is_null() {
        return false;
    }
    let mut mask = [0u64; 16];
    // SAFETY: the signature is that of the C declaration; the program's own attributes and a whole mask of libc's.
    unsafe {
        let function = core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const u8, *mut u64) -> c_int>(function);
        function(attributes, mask.as_mut_ptr()) == 0
    }
}

/// Threads that may be ahead of their creator.
const AHEAD: u32 = 256;

/// A new thread begins side by side with what its creator does next, or ahead of it: which races an execution shows depends on
/// who is first, and to begin a thread takes so long that it would always be the creator. Either is as likely as the other.
fn let_begin(child: &Thread) {
    while child.begun.load(Acquire) == 0 {
        sys::futex_wait(&child.begun, 0);
    }
    if child.number.get() <= AHEAD && chance() & 1 == 0 {
        sleep_microseconds(50);
    }
}

/// A new thread, about to execute its routine: of several that are created one after the other, the first would always be ahead.
/// One in four lets the next ones overtake.
fn let_overtake(thread: &Thread) {
    if thread.number.get() <= AHEAD && chance() & 3 == 0 {
        sleep_microseconds(200);
    }
}

fn chance() -> u64 {
    // SAFETY: reads the time stamp counter, whose lowest bits nobody knows.
    unsafe { core::arch::x86_64::_rdtsc() >> 5 }
}

fn sleep_microseconds(microseconds: i64) {
    // SAFETY: the kernel reads the time, and writes nothing.
    unsafe { sys::syscall!(sys::NANOSLEEP, [0, microseconds * 1000].as_ptr(), 0usize) };
}

pub unsafe extern "C" fn create(handle: *mut u64, attributes: *const u8, routine: Routine, argument: *mut u8) -> c_int {
    let site = caller();
    // SAFETY: does nothing when done already.
    unsafe { __tsan_init() };
    // SAFETY: as the program calls it.
    let roomy = unsafe { room::with_room(attributes) };
    let attributes = roomy.as_ref().map_or(attributes, |roomy| roomy.as_ptr().cast());
    // SAFETY: the real function with the program's arguments, or our routine and record.
    let real = |routine: Routine, argument: *mut u8| unsafe {
        real!(fn pthread_create(*mut u64, *const u8, Routine, *mut u8) -> c_int)(handle, attributes, routine, argument)
    };
    let Some(runtime) = Runtime::try_enter() else { return real(routine, argument) };
    if detect::on() {
        detect::forked::makes_thread();
        detect::background::start();
    }
    watchdog::start();
    let parent = runtime.thread();
    if parent.number.get() == 0 && parent.spawned.get() == 0 {
        arm(parent);
        if config::serial() {
            one_arena();
        }
    }
    sched::point(&runtime, Op::ThreadCreate, 0, site);
    let Some(child) = lives::register(parent.number.get(), parent.spawned.get()) else { return 11 };
    let (mut state, mut stack) = (0, DEFAULT_STACK as usize);
    if !attributes.is_null() {
        // SAFETY: the program's own attributes.
        unsafe {
            real!(fn pthread_attr_getdetachstate(*const u8, *mut c_int) -> c_int)(attributes, &mut state);
            real!(fn pthread_attr_getstacksize(*const u8, *mut usize) -> c_int)(attributes, &mut stack);
        }
    }
    child.detached.set(state == 1);
    // The size, until the thread knows where it is. The guard below is no part of it: another thread's stack may end there.
    child.stack.set((stack as u64, 0));
    child.start_routine.set(Some(routine));
    child.start_argument.set(argument);
    let ordinal = parent.spawned.get();
    parent.spawned.set(parent.spawned.get() + 1);
    replay::appeared(child);
    let aux = if child.detached.get() { thread_create::DETACHED } else { 0 };
    recorder::sync(parent, Op::ThreadCreate, child.number.get() as u64, aux, site, &[ordinal as u64]);
    sched::created(child);
    child.takes_start_mask.set(!has_own_mask(attributes));
    child.start_mask.set(signals::block_programs());
    let mask = child.start_mask.get();
    let error = real(begin, core::ptr::from_ref(child).cast_mut().cast());
    signals::set_mask(mask);
    child.made.store(1, Release);
    if error != 0 {
        child.ended.store(1, Release);
        child.detached.set(true);
        handles::give_up(child);
        sched::forget(child);
    } else if detect::on() {
        let_begin(child);
    }
    error
}

/// What becomes of a join that finds the thread running, if it does not wait: libc refuses to join the calling thread, or one
/// that is detached. `ask` is the same join, whose time is up.
fn at_once(runtime: &Runtime, ask: impl FnOnce() -> c_int) -> Option<c_int> {
    if cancellation::is_due(runtime, WaitFor::Join) {
        return None;
    }
    let result = cancellation::deferred(ask);
    (result != sys::ETIMEDOUT).then_some(result)
}

/// `ask`: see [`at_once`].
fn join_until(handle: u64, until: u64, site: u64, ask: impl FnOnce() -> c_int, real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    sched::point(&runtime, Op::ThreadJoin, handle, site);
    let Some(child) = handles::find(handle) else { return sched::external(&runtime, real) };
    let kind = if until == NEVER { 0 } else { lock_kind::TRY };
    if child.ended.load(Acquire) == 0 {
        match at_once(&runtime, ask) {
            None => {}
            Some(0) => {
                joined(&runtime, child, 0, kind, site);
                return 0;
            }
            Some(error) => return not_joined(&runtime, child, error, site),
        }
    }
    if config::serial() {
        while child.ended.load(Acquire) == 0 {
            if sched::block(&runtime, Wait::on(WaitFor::Join, child.number.get() as u64).until(until), site)
                == sched::Wake::TimedOut
            {
                return not_joined(&runtime, child, sys::ETIMEDOUT, site);
            }
        }
    }
    // It has ended, or (in free mode) this may take its time.
    let result = if config::serial() {
        real()
    } else if until == NEVER {
        standstill::during(&runtime, standstill::For::on(Op::ThreadJoin, child.number.get() as u64, site), real)
    } else {
        sched::external(&runtime, real)
    };
    joined(&runtime, child, result, kind, site);
    result
}

/// `kind`: [`lock_kind::TRY`] for a join that would not have waited for ever, else 0.
fn joined(runtime: &Runtime, child: &Thread, result: c_int, kind: u16, site: u64) {
    if result == 0 {
        child.joined.set(true);
        handles::give_up(child);
        recorder::sync(runtime.thread(), Op::ThreadJoin, child.number.get() as u64, kind, site, &[]);
    }
}

/// The child runs on: an event of its own, by which positions before and behind it differ.
fn not_joined(runtime: &Runtime, child: &Thread, error: c_int, site: u64) -> c_int {
    recorder::sync(runtime.thread(), Op::Blocking, child.number.get() as u64, sync_source::OTHER, site, &[error as u64]);
    error
}

/// A time that is over.
const PAST: [i64; 2] = [0, 0];

unsafe fn clock_join(handle: u64, value: *mut *mut u8, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: by the caller.
    unsafe { real!(fn pthread_clockjoin_np(u64, *mut *mut u8, c_int, *const [i64; 2]) -> c_int)(handle, value, clock, time) }
}

pub unsafe extern "C" fn join(handle: u64, value: *mut *mut u8) -> c_int {
    // SAFETY: the real functions with the program's arguments, here and below.
    let ask = || unsafe { clock_join(handle, value, REALTIME, &PAST) };
    // SAFETY: as above.
    join_until(handle, NEVER, caller(), ask, || unsafe { real!(fn pthread_join(u64, *mut *mut u8) -> c_int)(handle, value) })
}

pub unsafe extern "C" fn join_until_time(handle: u64, value: *mut *mut u8, time: *const [i64; 2]) -> c_int {
    // SAFETY: as above; the program's own time, if it gives one.
    let until = if time.is_null() { NEVER } else { unsafe { deadline(REALTIME, time) } };
    // SAFETY: as above.
    let ask = || unsafe { clock_join(handle, value, REALTIME, &PAST) };
    // SAFETY: as above.
    join_until(handle, until, caller(), ask, || unsafe {
        real!(fn pthread_timedjoin_np(u64, *mut *mut u8, *const [i64; 2]) -> c_int)(handle, value, time)
    })
}

pub unsafe extern "C" fn join_until_clock(handle: u64, value: *mut *mut u8, clock: c_int, time: *const [i64; 2]) -> c_int {
    // SAFETY: as above; the program's own time, if it gives one.
    let until = if time.is_null() { NEVER } else { unsafe { deadline(clock, time) } };
    // SAFETY: as above.
    let ask = || unsafe { clock_join(handle, value, clock, &PAST) };
    // SAFETY: as above.
    join_until(handle, until, caller(), ask, || unsafe { clock_join(handle, value, clock, time) })
}

pub unsafe extern "C" fn try_join(handle: u64, value: *mut *mut u8) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_tryjoin_np(u64, *mut *mut u8) -> c_int)(handle, value) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::ThreadJoin, handle, site);
    let Some(child) = handles::find(handle) else { return real() };
    if child.ended.load(Acquire) == 0 {
        not_joined(&runtime, child, sys::EBUSY, site);
        sched::failed_try(&runtime);
        return sys::EBUSY;
    }
    // SAFETY: as above. It has ended for the model: the rest takes no time.
    let result = unsafe { real!(fn pthread_join(u64, *mut *mut u8) -> c_int)(handle, value) };
    joined(&runtime, child, result, lock_kind::TRY, site);
    result
}

pub unsafe extern "C" fn detach(handle: u64) -> c_int {
    // SAFETY: as above.
    let real = || unsafe { real!(fn pthread_detach(u64) -> c_int)(handle) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::ThreadDetach, handle, site);
    if let Some(child) = handles::find(handle) {
        child.detached.set(true);
        if child.ended.load(Acquire) != 0 {
            handles::give_up(child);
        }
        recorder::sync(runtime.thread(), Op::ThreadDetach, child.number.get() as u64, 0, site, &[]);
    }
    real()
}

interpose! {
    pthread_detach => detach;
}
