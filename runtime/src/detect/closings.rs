//! Closes of descriptors, and the calls that come behind one: they fail with `EBADF`, and what they do by that is told here.
//!
//! A close that fails so is told only when it is seen not to be of a loop over numbers: programs close all that they may have
//! inherited, whoever else closes some of it. Until the thread's next close, or its end, it is *doubtful*. **Limit**: descriptors
//! with numbers side by side that one place closes twice, one behind the other, are taken for such a loop.

use super::found::{self, Side};
use super::locksets::{self, LockSet};
use super::spans::When;
use super::stacks::{self, StackId};
use super::{Detector, detector};
use crate::detect::own::Own;
use crate::system::lock::RawLock;
use crate::system::memory::List;
use core::ffi::c_int;
use rashomon_logic::clocks;

/// A close of some descriptor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Closing {
    pub thread: u32,
    pub stack: StackId,
    pub when: When,
    pub lock_set: LockSet,
}

impl Closing {
    /// One before everything, as all zeros are.
    pub const NONE: Self = Self { thread: 0, stack: 0, when: When { epoch: 0, slot_atomic: 0 }, lock_set: locksets::EMPTY };

    pub fn of(thread: &Own, stack: StackId) -> Self {
        let told = thread.detected();
        let when = When { epoch: told.epoch.get(), slot_atomic: told.slot.get() << 1 };
        Self { thread: thread.number.get(), stack, when, lock_set: thread.detect.lock_set }
    }

    /// Whether it is one that the user wants to know of.
    pub const fn counts(&self) -> bool {
        self.when.epoch != 0
    }

    /// Whether it is ordered before what the thread does, or kept apart from that by a lock.
    pub fn is_before(&self, thread: &Own) -> bool {
        let (local, own) = (&thread.detect, thread.detected().slot.get());
        clocks::is_ordered(self.when.slot_atomic >> 1, self.when.epoch, own, |slot| local.clock.get(slot))
            || detector() == Detector::Hybrid && locksets::protects(self.lock_set, local.lock_set)
    }
}

/// What a thread closed last.
#[derive(Clone, Copy)]
pub struct Last {
    site: u64,
    file: c_int,
    /// By a loop over numbers.
    by_loop: bool,
    /// There is something doubtful of this thread.
    doubtful: bool,
}

impl Last {
    pub const NONE: Self = Self { site: 0, file: 0, by_loop: false, doubtful: false };
}

/// Numbers that a loop leaves out, such as those of descriptors that are to stay open.
const GAP: u32 = 16;

/// Two sides of a race, if the close that is the first one was of no loop.
#[derive(Clone, Copy)]
struct Doubtful(Side, Side);

static mut DOUBTFUL: List<Doubtful> = List::new();
pub static LOCK: RawLock = RawLock::new();

/// The thread is about to close a descriptor.
pub fn goes_on(thread: &mut Own, file: c_int, stack: StackId) {
    let (last, site) = (thread.detect.closed_last, stacks::innermost(stack));
    let by_loop = last.site == site && (1..=GAP).contains(&file.abs_diff(last.file));
    if last.doubtful {
        settle(thread.number.get(), !by_loop);
    }
    thread.detect.closed_last = Last { site, file, by_loop, doubtful: false };
}

/// The thread's last close has failed, behind another thread's.
pub fn is_doubtful(thread: &mut Own, now: Side, before: Side) {
    if thread.detect.closed_last.by_loop {
        return;
    }
    thread.detect.closed_last.doubtful = true;
    let all = &raw mut DOUBTFUL;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { (*all).push(Doubtful(now, before)) });
}

/// What is doubtful of a thread is so no longer: it is told, or not.
fn settle(thread: u32, tells: bool) {
    let all = &raw mut DOUBTFUL;
    let next = || {
        // SAFETY: under the lock.
        LOCK.with(|| unsafe {
            let at = (*all).as_slice().iter().position(|one| one.0.thread == thread)?;
            Some((*all).remove(at))
        })
    };
    while let Some(one) = next() {
        if tells {
            tell(&one);
        }
    }
}

fn tell(one: &Doubtful) {
    found::behind_a_close(&one.0, &one.1, 0);
}

/// The thread closes nothing more.
pub fn ends(thread: &mut Own) {
    if thread.detect.closed_last.doubtful {
        settle(thread.number.get(), true);
    }
}

/// Nobody does.
pub fn all_end() {
    let all = &raw mut DOUBTFUL;
    // SAFETY: under the lock.
    while let Some(one) = LOCK.with(|| unsafe { (*all).pop() }) {
        tell(&one);
    }
}

/// In a child: its parent tells of what came before.
pub fn forked() {
    let all = &raw mut DOUBTFUL;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { (*all).truncate(0) });
}
