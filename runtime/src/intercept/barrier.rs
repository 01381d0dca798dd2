//! `pthread_barrier_*`.
//!
//! A barrier's generation is the number of threads that entered it since its initialisation, divided by its count. In serial mode
//! the waiting is modelled and the program's barrier is never touched.

use super::queue;
use crate::record::recorder;
use crate::serial::sched::{self, Wait, WaitFor};
use crate::serial::standstill;
use crate::system::lock::RawLock;
use crate::system::memory::Map;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, mappings};
use core::ffi::c_int;
use rashomon_abi::record::Op;

/// What the last thread to enter gets.
const SERIAL_THREAD: c_int = -1;
const OK: c_int = 0;

/// glibc's `pthread_barrier_t`.
#[repr(C)]
pub struct Barrier {
    entered: u32,
    round: u32,
    count: u32,
    shared: c_int,
    left: u32,
}

/// Threads that entered each barrier since its initialisation. Under [`LOCK`].
static mut ENTERED: Map = Map::new();
static LOCK: RawLock = RawLock::new();

/// A forked child has no barrier that somebody else stands at.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    LOCK.unlock();
    // SAFETY: nobody else is there. The map may have been in the middle of a change.
    unsafe { (&raw mut ENTERED).write(Map::new()) };
}

fn with_entered<R>(barrier: u64, body: impl FnOnce(&mut u64) -> R) -> R {
    LOCK.with(|| {
        let entered = &raw mut ENTERED;
        // SAFETY: under the lock.
        let entered = unsafe { &mut *entered };
        body(entered.entry((barrier, 0)))
    })
}

unsafe extern "C" fn wait(barrier: *mut Barrier) -> c_int {
    // SAFETY: the real function with the program's arguments, here and below.
    let real = || unsafe { real!(fn pthread_barrier_wait(*mut Barrier) -> c_int)(barrier) };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    let (thread, object) = (runtime.thread(), barrier as u64);
    // SAFETY: the program's own barrier; set when it was initialised.
    let (count, shared) = unsafe { ((*barrier).count as u64, (*barrier).shared != 0 && mappings::is_shared(object)) };
    if count == 0 {
        // It was never initialised: what comes of that is libc's affair.
        return real();
    }
    sched::point(&runtime, Op::BarrierEnter, object, site);
    let place = with_entered(object, |entered| core::mem::replace(entered, *entered + 1));
    let generation = place / count;
    recorder::sync(thread, Op::BarrierEnter, object, 0, site, &[generation, count]);
    let result = if shared {
        sched::external(&runtime, real)
    } else if !config::serial() {
        standstill::during(&runtime, standstill::For::on(Op::BarrierExit, object, site), real)
    } else if place % count == count - 1 {
        queue::serve(WaitFor::Barrier, object, usize::MAX, 0, 0, |_| true);
        sched::position(&runtime, Op::BarrierExit, object, site);
        SERIAL_THREAD
    } else {
        queue::join(thread, object);
        sched::position(&runtime, Op::BarrierExit, object, site);
        queue::stand(&runtime, Wait::on(WaitFor::Barrier, object), site);
        OK
    };
    recorder::sync(thread, Op::BarrierExit, object, 0, site, &[generation]);
    result
}

unsafe extern "C" fn init(barrier: *mut Barrier, attributes: *const u8, count: u32) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real!(fn pthread_barrier_init(*mut Barrier, *const u8, u32) -> c_int)(barrier, attributes, count) };
    if result == 0
        && let Some(runtime) = Runtime::try_enter()
    {
        with_entered(barrier as u64, |entered| *entered = 0);
        recorder::sync(runtime.thread(), Op::BarrierInit, barrier as u64, 0, caller(), &[count as u64]);
    }
    result
}

unsafe extern "C" fn destroy(barrier: *mut Barrier) -> c_int {
    if let Some(runtime) = Runtime::try_enter() {
        with_entered(barrier as u64, |entered| *entered = 0);
        recorder::sync(runtime.thread(), Op::BarrierDestroy, barrier as u64, 0, caller(), &[]);
    }
    // SAFETY: as above.
    unsafe { real!(fn pthread_barrier_destroy(*mut Barrier) -> c_int)(barrier) }
}

interpose! {
    pthread_barrier_wait => wait;
    pthread_barrier_init => init;
    pthread_barrier_destroy => destroy;
}
