//! From a finding of the detector to a report: collect what belongs to it, have it named and judged by the *reporter*, print, and
//! let the program look.
//!
//! The reporter is a process of the host tool ([`reporter`]); the messages are those of `rashomon_abi::report`. It applies
//! suppressions and formats; this side prints, so that a report goes where the program's standard error leads at that moment, and
//! in order. Without a reporter [`plain`] prints the same warning with modules and offsets.
//!
//! Entry points for those who find something: [`race`], [`misuse`], [`deadlock`], [`leak`], [`signal`]. Each is called by a
//! thread in runtime code, without a lock that a callback of the program (`__tsan_on_report`) could need; each returns when the
//! report is printed. Stacks are return addresses, innermost first. A call of an interposed function has that function's own
//! address + 1 innermost: its name becomes the frame.
//!
//! Calls: `system`.

mod build;
pub mod hooks;
mod launch;
mod names;
pub mod options;
pub mod output;
mod plain;
mod query;
mod reporter;
pub mod sources;
mod tags;

use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::real::real;
use crate::system::sys::{self, Decimal};
use crate::system::{ending, modules};
use build::Builder;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
pub use names::set as set_thread_name;
use rashomon_abi::report::{access, warning};

/// Set in an address of a stack that a virtual machine made up, and has to name.
pub const EXTERNAL: u64 = 1 << 60;

/// One report at a time.
static LOCK: RawLock = RawLock::new();
/// Kernel id of the thread that holds LOCK: what finds something inside a callback of a report is not reported.
static REPORTING: AtomicU32 = AtomicU32::new(0);
/// Reports printed.
static PRINTED: AtomicU32 = AtomicU32::new(0);
/// The warning being reported, for the program's questions.
static CURRENT: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
static CURRENT_WORDS: AtomicUsize = AtomicUsize::new(0);

/// A lock that somebody held, or that a warning is about.
#[derive(Clone, Copy)]
pub struct Lock {
    pub address: u64,
    /// Held for writing.
    pub write: bool,
    pub destroyed: bool,
    /// A call created it, and not its definition.
    pub initialised: bool,
    /// Where it was created, or first used.
    pub created: u32,
}

impl Lock {
    pub const NONE: Self = Self { address: 0, write: true, destroyed: false, initialised: false, created: 0 };
}

/// One side of a race.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// Number of the thread.
    pub thread: u32,
    pub address: u64,
    pub size: u32,
    /// Bits of [`rashomon_abi::report::access`].
    pub flags: u64,
    /// Kind of external object; 0: none.
    pub tag: u32,
    pub stack: &'a [u64],
    pub locks: &'a [Lock],
}

/// A descriptor that a race is about.
#[derive(Clone, Copy)]
pub struct Descriptor {
    pub number: u32,
    pub closed: bool,
    /// Who created or closed it, and where.
    pub thread: u32,
    pub stack: u32,
}

/// Two unordered accesses: first the one that was made now, then the former one.
#[derive(Clone, Copy)]
pub struct Race<'a> {
    pub accesses: [Access<'a>; 2],
    pub descriptor: Option<Descriptor>,
    /// Where the reporting thread slept, if that is all that separates the accesses; 0: no such place.
    pub slept: u32,
}

/// A wrong use of a lock.
#[derive(Clone, Copy)]
pub struct Misuse<'a> {
    /// Of [`warning`]: one of the `MUTEX_…` kinds.
    pub warning: u64,
    pub lock: Lock,
    /// The call, and for a destroyed locked mutex where it had been locked.
    pub stacks: &'a [&'a [u64]],
}

/// An edge of a cycle of locks: `thread` held `lock` when it acquired the next edge's.
#[derive(Clone, Copy)]
pub struct Edge<'a> {
    pub lock: Lock,
    pub thread: u32,
    /// Where the next edge's lock was acquired.
    pub stack: &'a [u64],
    /// Where `lock` had been.
    pub held_since: &'a [u64],
}

/// What became of a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Printed,
    Suppressed,
    /// Options, or a report that is under way on this thread.
    NotReported,
}

/// Two unordered accesses.
pub fn race(race: &Race<'_>) -> Verdict {
    let [now, former] = &race.accesses;
    if !options::get().report_atomic_races && (now.flags | former.flags) & access::ATOMIC != 0 {
        return Verdict::NotReported;
    }
    let tag = if now.tag != 0 { now.tag } else { former.tag };
    // Memory that is released after it was used is raced for like any other.
    let freed = former.flags & access::FREE != 0;
    let warning = match (now.flags & access::VPTR != 0, freed) {
        (true, true) => warning::VPTR_USE_AFTER_FREE,
        (true, false) => warning::VPTR_RACE,
        (false, true) => warning::USE_AFTER_FREE,
        (false, false) if tag != 0 => warning::EXTERNAL_RACE,
        (false, false) => warning::RACE,
    };
    report(|builder| {
        builder.head(warning, 0, 0, tag);
        race.accesses.iter().for_each(|access| builder.access(access));
        let (start, end) = (now.address.max(former.address), now.address.min(former.address));
        race.accesses.iter().for_each(|access| builder.thread(access.thread, false));
        match &race.descriptor {
            Some(descriptor) => builder.descriptor(now.address, descriptor),
            None => builder.location(if start < end + 8 { end } else { now.address }),
        }
        if race.slept != 0 {
            builder.slept(race.slept);
        }
        if options::get().print_full_thread_history {
            builder.ancestors();
        }
    })
}

/// A wrong use of a lock.
pub fn misuse(misuse: &Misuse<'_>) -> Verdict {
    let options = options::get();
    let asked =
        if misuse.warning == warning::MUTEX_DESTROY_LOCKED { options.report_destroy_locked } else { options.report_mutex_bugs };
    if !asked {
        return Verdict::NotReported;
    }
    report(|builder| {
        builder.head(misuse.warning, 0, 0, 0);
        builder.lock(&misuse.lock);
        misuse.stacks.iter().for_each(|stack| builder.stack(stack));
        builder.location(misuse.lock.address);
    })
}

/// Locks are held where the program says that none is.
pub fn wrong_context(locks: &[Lock], stack: &[u64]) -> Verdict {
    report(|builder| {
        builder.head(warning::MUTEX_WRONG_CONTEXT, 1, 0, 0);
        locks.iter().for_each(|lock| {
            builder.lock(lock);
        });
        builder.stack(stack);
    })
}

/// A cycle in the order in which locks are taken, in the order of the cycle.
pub fn deadlock(edges: &[Edge<'_>]) -> Verdict {
    report(|builder| {
        builder.head(warning::DEADLOCK, 0, 0, 0);
        for edge in edges {
            builder.lock(&edge.lock);
            builder.unique_thread(edge.thread);
            builder.thread(edge.thread, false);
        }
        for edge in edges {
            builder.stack(edge.stack);
            if options::get().second_deadlock_stack {
                builder.stack(edge.held_since);
            }
        }
    })
}

/// What a thread waits for without a time limit.
#[derive(Clone, Copy)]
pub struct Waits<'a> {
    pub thread: u32,
    /// `None`: another thread's end, or something else that nobody holds.
    pub lock: Option<Lock>,
    pub stack: &'a [u64],
}

/// Threads that wait for ever. `warning`: [`warning::DEADLOCKED`], each for the next one, or [`warning::STUCK`].
pub fn deadlocked(warning: u64, waits: &[Waits<'_>]) -> Verdict {
    report(|builder| {
        builder.head(warning, 0, 0, 0);
        for wait in waits {
            let lock = wait.lock.and_then(|lock| builder.lock(&lock));
            builder.unique_thread(wait.thread);
            builder.thread(wait.thread, false);
            builder.stack_of_wait(wait.stack, lock);
        }
    })
}

/// A thread that nobody joined or detached; `alike`: how many there are from the same place, this one included.
pub fn leak(thread: u32, alike: u32) -> Verdict {
    if !options::get().report_thread_leaks {
        return Verdict::NotReported;
    }
    report(|builder| {
        builder.head(warning::THREAD_LEAK, alike, 0, 0);
        builder.thread(thread, true);
    })
}

/// A signal handler called what it must not call, or changed `errno`. `warning`: [`warning::SIGNAL_UNSAFE`] or
/// [`warning::ERRNO_IN_SIGNAL`].
pub fn signal(warning: u64, number: u32, stack: &[u64]) -> Verdict {
    if !options::get().report_signal_unsafe {
        return Verdict::NotReported;
    }
    report(|builder| {
        builder.head(warning, 0, number, 0);
        builder.stack(stack);
    })
}

/// A thread ended inside regions that it asked to be ignored; `begun`: where these began. Ends the process, as ThreadSanitizer
/// does.
pub fn unfinished_ignores(thread: u32, begun: &[&[u64]]) -> ! {
    exclusively(|| {
        if thread == 0 {
            output::text(b"ThreadSanitizer: main thread finished with ignores enabled\n");
        } else {
            output::texts(&[b"ThreadSanitizer: thread T", Decimal::new(u64::from(thread)).bytes()]);
            let mut name = [0; names::LONGEST];
            let length = names::get(thread, &mut name);
            output::texts(&[b" ", &name[..length], b" finished with ignores enabled, created at:\n"]);
            let mut stack = List::new();
            (0..sources::DEEPEST).for_each(|_| stack.push(0_u64));
            let created = sources::thread(thread).map_or(0, sources::creation_stack);
            let count = sources::walk(created, stack.as_mut_slice());
            query::print_stack(&stack.as_slice()[..count]);
            stack.clear_and_free();
        }
        output::text(b"  One of the following ignores was not ended (in order of probability)\n");
        for stack in begun {
            output::text(b"  Ignore was enabled at:\n");
            query::print_stack(stack);
        }
    });
    die()
}

/// With the lock of reports, for those who ask the reporter, which is told the modules first. Behind the loader's lock: the
/// loader holds it when it frees memory that somebody else uses, which is reported.
fn exclusively<R>(body: impl FnOnce() -> R) -> R {
    modules::held(|| LOCK.with(body))
}

/// Builds, sends, prints.
fn report(build: impl FnOnce(&mut Builder)) -> Verdict {
    let thread = sys::thread_id();
    if !options::get().report_bugs || REPORTING.load(Relaxed) == thread {
        return Verdict::NotReported;
    }
    let verdict = exclusively(|| {
        REPORTING.store(thread, Relaxed);
        let verdict = report_locked(build);
        REPORTING.store(0, Relaxed);
        verdict
    });
    if verdict == Verdict::Printed && options::get().halt_on_error {
        die();
    }
    verdict
}

fn report_locked(build: impl FnOnce(&mut Builder)) -> Verdict {
    let mut builder = Builder::new();
    build(&mut builder);
    let message = builder.finish();
    if message.is_empty() {
        return Verdict::NotReported;
    }
    CURRENT_WORDS.store(message.len(), Relaxed);
    CURRENT.store(message.as_ptr().cast_mut(), Release);
    let suppressed = match reporter::ask(message) {
        Some(suppressed) => suppressed,
        None => {
            plain::print(message);
            false
        }
    };
    if !suppressed {
        PRINTED.fetch_add(1, AcqRel);
        print_module_map(2);
        hooks::on_report(message.as_ptr());
    }
    CURRENT.store(core::ptr::null_mut(), Release);
    if suppressed { Verdict::Suppressed } else { Verdict::Printed }
}

/// The texts of suppressions: the user's and the program's.
pub fn suppressions() -> [&'static [u8]; 2] {
    [reporter::suppressions(), hooks::default_suppressions()]
}

/// Prints where modules are, if `print_module_map` asks for it at this level.
fn print_module_map(level: i64) {
    if options::get().print_module_map < level {
        return;
    }
    output::text(b"Process module map:\n");
    modules::each(|module| {
        let (mut start, mut end) = ([0; 18], [0; 18]);
        let (start, end) = (reporter::hexadecimal(module.start, &mut start), reporter::hexadecimal(module.end, &mut end));
        output::texts(&[start, b"-", end, b" ", module.path, b" (BuildId: ", module.build_id, b")\n"]);
    });
    output::text(b"End of module map.\n");
}

/// Before detection begins: options and suppressions.
pub fn initialise() {
    options::load();
    reporter::initialise();
}

/// Detection has begun.
pub fn begun() {
    hooks::on_initialize();
}

/// The process ends: gives other threads their time, lets `last_checks` report what only the end shows, says how many reports
/// there were. Returns the exit code that a successful end turns into: 0 if nothing was reported.
pub fn conclude(last_checks: impl FnOnce()) -> i32 {
    let options = options::get();
    if options.atexit_sleep_ms > 0 && sources::other_threads() {
        ending::wait_for_others(options.atexit_sleep_ms as u64, sources::other_threads_go_on);
    }
    // Reports that are under way are printed whole.
    LOCK.with(|| ());
    last_checks();
    let printed = PRINTED.load(Acquire);
    exclusively(|| {
        if !reporter::conclude(printed) && printed > 0 {
            output::texts(&[b"ThreadSanitizer: reported ", Decimal::new(u64::from(printed)).bytes(), b" warnings\n"]);
        }
        if printed == 0 && options.say_clean == i64::from(sys::process_id()) {
            say_clean();
        }
    });
    print_module_map(1);
    if hooks::on_finalize(printed > 0) { options.exitcode as i32 } else { 0 }
}

/// Silence would not tell a program that was looked at from one that was not.
fn say_clean() {
    match crate::system::thread::count() {
        0 | 1 => output::text(b"rashomon: nothing was found: the program ran in one thread\n"),
        threads => output::texts(&[
            b"rashomon: nothing was found in this execution of ",
            Decimal::new(u64::from(threads)).bytes(),
            b" threads; `rashomon check` also looks at other schedules\n",
        ]),
    }
}

/// The process ends by `exit`: it ends otherwise if something was reported.
pub fn at_exit(last_checks: impl FnOnce()) {
    if conclude(last_checks) != 0 {
        // SAFETY: libc's own; null: every stream. What the program wrote comes out, as no handler runs any more.
        unsafe { real!(fn fflush(*mut u8) -> i32)(core::ptr::null_mut()) };
        die();
    }
}

/// A line about what the process does and must not: it ends.
pub fn refuse(parts: &[&[u8]]) -> ! {
    LOCK.with(|| {
        output::text(b"ThreadSanitizer: ");
        output::texts(parts);
        output::text(b"\n");
    });
    die()
}

/// A line about the run as a whole, that makes it a failed one.
pub fn fails(parts: &[&[u8]]) {
    PRINTED.fetch_add(1, AcqRel);
    output::text(b"ThreadSanitizer: ");
    output::texts(parts);
    output::text(b"\n");
}

/// A signal that nobody handles is about to end the process: it ends as it should after what was reported so far, if anything
/// was. For handlers of signals.
pub fn ends_by_signal() {
    if PRINTED.load(Acquire) != 0 {
        sys::exit_group(options::get().exitcode as i32);
    }
}

/// Ends a process in which nobody can go on.
pub fn end_stuck() -> ! {
    let printed = PRINTED.load(Acquire);
    exclusively(|| reporter::conclude(printed));
    die()
}

/// Ends the process as an error does.
pub fn die() -> ! {
    let options = options::get();
    hooks::before_death();
    if options.abort_on_error {
        sys::abort();
    }
    sys::exit_group(options.exitcode as i32)
}

/// In a forked child: the parent's reporter is not ours, and no report is under way.
pub fn forked() {
    LOCK.reset();
    REPORTING.store(0, Relaxed);
    CURRENT.store(core::ptr::null_mut(), Relaxed);
    PRINTED.store(0, Relaxed);
    names::forked();
    output::forked();
    reporter::forget();
}
