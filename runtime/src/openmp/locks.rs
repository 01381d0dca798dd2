//! `critical`, `GOMP_atomic_start`, `omp_*_lock`: locks in the words that the compilers give them.
//!
//! A word is 0 while free, 1 while taken and 2 while somebody sleeps for it. A nestable lock has, behind it, who owns it and how
//! often: eight bytes, as in the smaller of the two libraries.

use super::Call;
use crate::intercept::lock_common::{acquire_by_trying, drop_hold, hold, request};
use crate::record::recorder;
use crate::serial::clock::NEVER;
use crate::serial::explore;
use crate::serial::sched::{self, WaitFor};
use crate::serial::standstill::For;
use crate::system::config;
use crate::system::sys::{self, EBUSY};
use crate::system::thread::Runtime;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, lock_kind};

#[repr(C)]
pub struct Lock {
    word: AtomicU32,
    /// Kernel id of the owner of a nestable lock, and how often it has it.
    owned: AtomicU32,
}

/// Of `critical` without a name, and of what the compiler cannot do atomically.
pub static UNNAMED: Lock = Lock::new();
pub static ATOMIC: Lock = Lock::new();
const OWNER_BITS: u32 = 22;

impl Lock {
    const fn new() -> Self {
        Self { word: AtomicU32::new(0), owned: AtomicU32::new(0) }
    }

    fn object(&self) -> u64 {
        self as *const Self as u64
    }

    fn try_take(&self) -> c_int {
        if self.word.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() { 0 } else { EBUSY }
    }

    fn sleep(&self) {
        while self.word.swap(2, AcqRel) != 0 {
            sys::futex_wait(&self.word, 2);
        }
    }

    pub fn take(&self, call: Call) {
        let here = call.enter();
        here.point(Op::Lock, self.object());
        match &here.runtime {
            Some(runtime) if config::serial() => {
                let _ = acquire_by_trying(runtime, self.object(), false, NEVER, call.site, || self.try_take());
            }
            Some(runtime) => {
                if self.try_take() == EBUSY {
                    let wait = For::lock(false, lock_kind::OTHER, self.object(), call.site);
                    request(runtime, wait, true, || self.sleep());
                }
            }
            None => self.sleep(),
        }
        if let Some(runtime) = &here.runtime {
            taken(runtime, self.object(), call.site, 0);
        }
    }

    pub fn test(&self, call: Call) -> bool {
        let here = call.enter();
        let Some(runtime) = &here.runtime else { return self.try_take() == 0 };
        explore::concerns(runtime.thread(), explore::TRY);
        here.point(Op::Lock, self.object());
        let result = self.try_take();
        if result == 0 {
            taken(runtime, self.object(), call.site, lock_kind::TRY);
        } else {
            sched::failed_try(runtime);
            here.sync(Op::LockFailed, self.object(), 0, &[result as u64]);
        }
        result == 0
    }

    pub fn give(&self, call: Call) {
        let here = call.enter();
        here.point(Op::Unlock, self.object());
        if let Some(runtime) = &here.runtime {
            drop_hold(runtime.thread(), self.object());
        }
        here.sync(Op::Unlock, self.object(), 0, &[]);
        if self.word.swap(0, AcqRel) == 2 {
            sys::futex_wake(&self.word, 1);
        }
        if here.runtime.is_some() {
            sched::wake(WaitFor::Lock, self.object(), usize::MAX);
        }
    }

    pub fn begin(&self, call: Call) {
        self.word.store(0, Relaxed);
        call.enter().sync(Op::LockInit, self.object(), lock_kind::OTHER, &[]);
    }

    pub fn end(&self, call: Call) {
        call.enter().sync(Op::LockDestroy, self.object(), 0, &[]);
    }

    /// `begin` of a nestable one.
    pub fn begin_nestable(&self, call: Call) {
        self.owned.store(0, Relaxed);
        self.begin(call);
    }

    /// How often the calling thread has it.
    fn owned(&self) -> u32 {
        let owned = self.owned.load(Relaxed);
        if owned & ((1 << OWNER_BITS) - 1) == own_id() { owned >> OWNER_BITS } else { 0 }
    }

    fn set_owned(&self, times: u32) {
        self.owned.store(if times == 0 { 0 } else { times << OWNER_BITS | own_id() }, Relaxed);
    }

    pub fn take_nestable(&self, call: Call) {
        let times = self.owned();
        if times > 0 {
            call.enter().does(Op::LockAgain, self.object(), lock_kind::OTHER | lock_kind::RECURSIVE, &[]);
        } else {
            self.take(call);
        }
        self.set_owned(times + 1);
    }

    /// How often the thread has it now; 0: it could not be taken.
    pub fn test_nestable(&self, call: Call) -> c_int {
        let times = self.owned();
        if times > 0 {
            call.enter().does(Op::LockAgain, self.object(), lock_kind::OTHER | lock_kind::RECURSIVE, &[]);
        } else if !self.test(call) {
            return 0;
        }
        self.set_owned(times + 1);
        times as c_int + 1
    }

    pub fn give_nestable(&self, call: Call) {
        let times = self.owned();
        self.set_owned(times.saturating_sub(1));
        if times > 1 {
            call.enter().does(Op::UnlockInner, self.object(), 0, &[]);
        } else {
            self.give(call);
        }
    }
}

fn taken(runtime: &Runtime, object: u64, site: u64, try_flag: u16) {
    let thread = runtime.thread();
    thread.spins.set(0);
    hold(thread, object, false);
    recorder::sync(thread, Op::Lock, object, lock_kind::OTHER | try_flag, site, &[]);
}

fn own_id() -> u32 {
    sys::thread_id() & ((1 << OWNER_BITS) - 1)
}
