//! A forked child is a program of one thread in the middle of its run: it gives up what it inherited of the runtime and begins a
//! recording of its own.
//!
//! Handlers of `fork`'s own do that, registered before any of the program's: what is prepared is the last thing before the fork,
//! and the first thing behind it is the change. Locks of the runtime that other threads of the parent held are free in the child;
//! what these guarded is made anew, so that nothing half changed is ever looked at. The child keeps its thread's call stack and
//! the locks that the thread holds, which its recording begins with, and goes on with the parent's virtual time; its policy
//! begins again with the seed, so that how it runs does not depend on how its parent ran.
//!
//! While detecting, the child goes on with a copy of what is known ([`crate::detect::forked`]).
//!
//! A child of a thread that the runtime does not know runs unobserved.

use crate::detect;
use crate::intercept::process::ForkHandlers;
use crate::intercept::{barrier, exits, gaps, once, quarantine, timers};
use crate::openmp;
use crate::process::init;
use crate::provoke;
use crate::record::process_tree::{Cradle, NO_PLACE};
use crate::record::{connections, external};
use crate::record::{kept, recorder, tree};
use crate::report;
use crate::serial::shutdown;
use crate::serial::{clock, explore, gate, policy, replay, sched, watchdog, world};
use crate::system::lock::RawLock;
use crate::system::sys::{self, syscall};
use crate::system::thread::{Held, Runtime, Thread};
use crate::system::tls::{current, hot};
use crate::system::{config, header, loader, modules, processor, signals, stripes};
use crate::threads;
use core::sync::atomic::Ordering::*;
use rashomon_abi::header::field;
use rashomon_abi::record::{Op, lock_kind};

/// What is called around a fork.
pub static HANDLERS: ForkHandlers = ForkHandlers { prepare, parent, child };

/// Held from before a fork until behind it.
static LOCK: RawLock = RawLock::new();
static mut CRADLE: Cradle = Cradle::EMPTY;
static mut MASK: u64 = 0;
/// Whether the loader's lock is held as well.
static mut LOADER_HELD: bool = false;

/// In the parent, before.
unsafe extern "C" fn prepare() {
    let all = u64::MAX;
    let mut mask = 0u64;
    // Signals that wait are handled where the runtime is left. That must not be at the end of this, with all locks held: so none
    // comes from here on, and those that came before are handled first. In the child they wait until it knows that it is one.
    // SAFETY: masks of eight bytes.
    unsafe { syscall!(sys::RT_SIGPROCMASK, 2, &raw const all, &raw mut mask, 8) };
    drop(Runtime::try_enter());
    // Nothing of what happens here is the program's.
    let Some(runtime) = Runtime::try_enter() else { return restore_mask(mask) };
    let loader_held = loader::hold(|is_held| {
        // Its holder may need the turn.
        if config::serial() { sched::external(&runtime, || sched::until_timeout(is_held)) } else { sched::until_timeout(is_held) }
    });
    LOCK.lock();
    processor::leave();
    // SAFETY: under the lock nobody else prepares.
    unsafe {
        (&raw mut MASK).write(mask);
        (&raw mut LOADER_HELD).write(loader_held);
        let cradle = &raw mut CRADLE;
        (*cradle).fill();
    }
    if detect::on() {
        detect::forked::before(&exits::LOCK);
    }
}

fn restore_mask(mask: u64) {
    // SAFETY: a mask of eight bytes.
    unsafe { syscall!(sys::RT_SIGPROCMASK, 2, &raw const mask, 0usize, 8) };
}

/// In the parent, behind.
unsafe extern "C" fn parent() {
    let Some(runtime) = Runtime::try_enter() else { return };
    if detect::on() {
        detect::forked::in_parent(&exits::LOCK);
    }
    let cradle = &raw mut CRADLE;
    // SAFETY: the lock is held since `prepare`.
    let (mask, loader_held) = unsafe {
        runtime.thread().place_given.set(if (*cradle).page.is_null() { NO_PLACE } else { (*cradle).number });
        (*cradle).leave();
        ((&raw const MASK).read(), (&raw const LOADER_HELD).read())
    };
    processor::come_back();
    LOCK.unlock();
    if loader_held {
        loader::release();
    }
    restore_mask(mask);
}

/// In the child.
unsafe extern "C" fn child() {
    let thread = current();
    loader::forked();
    // SAFETY: the only thread of the child.
    unsafe {
        let cradle = &raw const CRADLE;
        if let Some(thread) = thread {
            thread.place_given.set((*cradle).number);
        }
        LOCK.unlock();
        match thread {
            Some(thread) if detect::on() => go_on(thread),
            Some(thread) if !(*cradle).page.is_null() => begin(thread, &*cradle),
            _ => silence(thread),
        }
        if thread.is_some() {
            restore_mask((&raw const MASK).read());
        }
    }
}

/// Nothing here is known to the runtime any more.
///
/// # Safety
/// In a child that has one thread.
unsafe fn silence(thread: Option<&Thread>) {
    shutdown::forget();
    recorder::disable();
    header::set_page(core::ptr::null_mut());
    signals::reset_lock();
    world::reset_lock();
    // The parent's memory behind the block's pointers stays as it is.
    if let Some(thread) = thread {
        recorder::forget(thread);
        hot().forget_thread();
    }
}

/// Detection goes on, with a reporter of the child's own.
///
/// # Safety
/// In a child whose only thread is this one.
unsafe fn go_on(thread: &Thread) {
    let nesting = hot().nesting.replace(1);
    signals::reset_lock();
    world::reset_lock();
    stripes::reset();
    thread.pending_signals.store(0, Relaxed);
    thread.arrived_signals.forget();
    // SAFETY: by the contract.
    unsafe {
        barrier::forget();
        once::forked();
        openmp::forget();
        external::forget();
        connections::forget();
        timers::forget();
        modules::forget();
        thread.with_own(|own| detect::forked::in_child(own, &exits::LOCK));
        sched::only(thread);
    }
    // SAFETY: by the contract.
    unsafe { gate::restart(thread) };
    report::forked();
    hot().nesting.set(nesting);
}

/// # Safety
/// In a child whose only thread is this one.
unsafe fn begin(thread: &'static Thread, cradle: &Cradle) {
    let site = thread.fork_site.get();
    let nesting = hot().nesting.replace(1);
    let elapsed = clock::elapsed();
    let start = header::word(field::START_TIME).load(Relaxed);
    processor::choose_again();
    recorder::forget(thread);
    cradle.settle();
    header::set(field::START_TIME, start);
    clock::advance_to(elapsed);
    signals::reset_lock();
    world::reset_lock();
    stripes::reset();
    // SAFETY: by the contract.
    unsafe {
        barrier::forget();
        once::forked();
        openmp::forget();
        external::forget();
        connections::forget();
        timers::forget();
        modules::forget();
        watchdog::forget();
        replay::restart();
        explore::forget();
        provoke::restart();
        policy::restart();
        quarantine::forked();
        threads::only(thread);
        sched::only(thread);
    }
    tree::forked(thread);
    kept::forked();
    gaps::forked();
    replay::appeared(thread);
    modules::write();
    recorder::begin(thread);
    let (stack, tls) = (thread.stack.get(), thread.tls.get());
    recorder::sync(
        thread,
        Op::ThreadStart,
        thread.kernel_id.get() as u64,
        0,
        site,
        &[u64::MAX, 0, stack.0, stack.1, tls.0, tls.1],
    );
    init::given_by_kernel(thread);
    for Held { lock, shared, .. } in thread.held.iter() {
        let (op, kind) = if shared { (Op::LockShared, lock_kind::RWLOCK) } else { (Op::Lock, lock_kind::MUTEX) };
        recorder::sync(thread, op, lock, kind, site, &[]);
    }
    shutdown::begin_again();
    debug_assert!(config::mode() != 0);
    hot().nesting.set(nesting);
}
