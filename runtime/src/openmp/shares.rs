//! Work sharing: loops, sections, `single`, `ordered`.
//!
//! The threads of a team come to the same constructs in the same order; the k-th of each thread is the same one. A loop is
//! counted in iterations from 0, whatever its variable.

use super::data::{allocate, release};
use super::settings::Kind;
use super::team::{Member, Team, barrier, member};
use super::{Call, Here, doacross};
use crate::serial::sched::WaitFor;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Release;
use rashomon_abi::record::{Op, sync_source};

/// Iterations, and how they are handed out. Values wrap as the loop's variable does.
#[derive(Clone, Copy)]
pub struct Loop {
    pub start: u64,
    pub step: u64,
    /// Of the variable behind the last iteration, as the program gave it.
    pub end: u64,
    pub total: u64,
    pub kind: Kind,
    /// 0: not given.
    pub chunk: u64,
    pub ordered: bool,
}

/// One work sharing construct of a team.
pub struct Share {
    pub next: *mut Share,
    ordinal: u64,
    /// Threads that are not done with it.
    users: u32,
    pub iterations: Loop,
    /// The first iteration that nobody has.
    given: u64,
    /// The iteration whose chunk has the turn of `ordered`, and the name of that.
    turn: u64,
    ordered: u64,
    /// Memory for all.
    memory: *mut u8,
}

impl Loop {
    /// The variable's value before iteration `at`.
    pub fn value(&self, at: u64) -> u64 {
        if at >= self.total { self.end } else { self.start.wrapping_add(at.wrapping_mul(self.step)) }
    }

    /// The iterations from `start` to `end`, without it, by `step`. The variable is signed.
    pub fn signed(start: i64, end: i64, step: i64, kind: Kind, chunk: i64) -> Self {
        let total = match step {
            0 => 0,
            1.. if start < end => (end.wrapping_sub(start) as u64 - 1) / step as u64 + 1,
            ..0 if start > end => (start.wrapping_sub(end) as u64 - 1) / step.unsigned_abs() + 1,
            _ => 0,
        };
        Self { start: start as u64, step: step as u64, end: end as u64, total, kind, chunk: chunk.max(0) as u64, ordered: false }
    }

    /// The same unsigned; `up` says where `step` leads.
    pub fn unsigned(up: bool, start: u64, end: u64, step: u64, kind: Kind, chunk: u64) -> Self {
        let total = match (up, step) {
            (_, 0) => 0,
            (true, _) if start < end => (end - start - 1) / step + 1,
            (false, _) if start > end => (start - end - 1) / step.wrapping_neg() + 1,
            _ => 0,
        };
        Self { start, step, end, total, kind, chunk, ordered: false }
    }

    /// With `ordered` in it.
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// With what the settings say, for `schedule(runtime)`.
    pub fn as_set(mut self) -> Self {
        let settings = member().task().settings.get();
        (self.kind, self.chunk) = (settings.kind, settings.chunk.max(0) as u64);
        self
    }
}

impl Share {
    /// That `users` threads come to. Outside the runtime.
    pub fn new(call: Call, iterations: Loop, ordinal: u64, users: u32) -> *mut Self {
        let share = allocate(call, size_of::<Self>()).cast::<Self>();
        // SAFETY: fresh memory, all zero, which is valid for the fields not named here.
        unsafe {
            (&raw mut (*share).iterations).write(iterations);
            (*share).ordinal = ordinal;
            (*share).users = users;
        }
        share
    }

    /// What its threads share; null until one asked for it.
    pub fn shared_memory(&self) -> *mut u8 {
        self.memory
    }

    /// # Safety
    /// Nobody uses it any more. Outside the runtime.
    pub unsafe fn free(share: *mut Self) {
        // SAFETY: by the contract.
        unsafe {
            if !(*share).memory.is_null() {
                release((*share).memory);
            }
            release(share.cast());
        }
    }
}

/// The team's next construct, for the calling thread: whoever comes first makes it. Tells whether that was this thread.
fn enter(call: Call, team: &Team, me: &Member, iterations: Loop) -> bool {
    let ordinal = me.shares.get();
    me.shares.set(ordinal + 1);
    begin(me);
    let locked = |new: *mut Share| {
        let _here = call.enter();
        team.lock.with(|| {
            let mut at = team.shares.get();
            // SAFETY: constructs of the list are there.
            unsafe {
                while !at.is_null() && (*at).ordinal != ordinal {
                    at = (*at).next;
                }
                if at.is_null() && !new.is_null() {
                    (*new).next = team.shares.replace(new);
                    at = new;
                }
            }
            at
        })
    };
    let known = locked(null_mut());
    if !known.is_null() {
        me.share.set(known);
        return false;
    }
    let new = Share::new(call, iterations, ordinal, team.size);
    let share = locked(new);
    if share != new {
        // SAFETY: another thread was quicker; nobody knows this one.
        unsafe { Share::free(new) };
    }
    me.share.set(share);
    share == new
}

fn begin(me: &Member) {
    me.chunk.set((0, 0));
    me.trips.set(0);
    me.has_turn.set(false);
}

/// The thread comes to a construct without iterations, which is its present one from now on.
pub fn enter_other(call: Call, team: &Team, me: &Member) {
    enter(call, team, me, NO_LOOP);
}

/// The calling thread is done with its construct.
fn leave(call: Call, team: &Team, me: &Member) {
    let share = me.share.replace(null_mut());
    if !share.is_null() {
        leave_share(call, team, share);
    }
}

/// The calling thread is done with this construct.
pub fn leave_share(call: Call, team: &Team, share: *mut Share) {
    let here = call.enter();
    // SAFETY: as above.
    let is_last = team.lock.with(|| unsafe {
        (*share).users -= 1;
        if (*share).users > 0 {
            return false;
        }
        if team.shares.get() == share {
            team.shares.set((*share).next);
        } else {
            let mut at = team.shares.get();
            while (*at).next != share {
                at = (*at).next;
            }
            (*at).next = (*share).next;
        }
        true
    });
    drop(here);
    if is_last {
        // SAFETY: all threads are done with it.
        unsafe { Share::free(share) };
    }
}

/// Begins a loop for the calling thread. Outside of every team there is nothing to share: the thread has a construct of its own.
pub fn begin_loop(call: Call, iterations: Loop) {
    let me = member();
    match me.team() {
        Some(team) => {
            enter(call, team, me, iterations);
        }
        None => {
            begin(me);
            me.share.set(Share::new(call, iterations, 0, 1));
        }
    }
}

/// Looks at, or changes, what threads share of a construct.
fn guarded<R>(me: &Member, body: impl FnOnce() -> R) -> R {
    match me.team() {
        Some(team) => team.lock.with(body),
        None => body(),
    }
}

/// Memory that all threads of the present construct share.
pub fn memory(call: Call, bytes: usize) -> *mut u8 {
    memory_filled(call, bytes, |_| ())
}

/// The same; who brings it fills it before anybody sees it.
pub fn memory_filled(call: Call, bytes: usize, fill: impl FnOnce(*mut u8)) -> *mut u8 {
    let me = member();
    let share = me.share.get();
    if share.is_null() {
        return null_mut();
    }
    let set = |new: *mut u8| {
        let _here = call.enter();
        // SAFETY: the thread's present construct.
        guarded(me, || unsafe {
            if (*share).memory.is_null() {
                (*share).memory = new;
            }
            (*share).memory
        })
    };
    let known = set(null_mut());
    if !known.is_null() {
        return known;
    }
    let new = allocate(call, bytes.max(1));
    fill(new);
    let memory = set(new);
    if memory != new {
        // SAFETY: another thread was quicker; nobody knows this one.
        unsafe { release(new) };
    }
    memory
}

/// The thread's next chunk of iterations.
pub fn next_chunk(call: Call) -> Option<(Loop, u64, u64)> {
    let me = member();
    let size = u64::from(me.size());
    let share = me.share.get();
    if share.is_null() {
        return None;
    }
    // SAFETY: the thread's present construct; its iterations never change.
    let iterations = unsafe { (*share).iterations };
    if iterations.ordered {
        pass_turn(call);
    }
    let total = iterations.total;
    let (first, behind) = match iterations.kind {
        Kind::Static | Kind::Auto => {
            let number = u64::from(me.number);
            let trip = me.trips.replace(me.trips.get() + 1);
            if iterations.chunk == 0 {
                let (least, more) = (total / size, total % size);
                let first = number * least + number.min(more);
                if trip > 0 { (total, total) } else { (first, first + least + u64::from(number < more)) }
            } else {
                let first = (trip * size + number).saturating_mul(iterations.chunk).min(total);
                (first, first.saturating_add(iterations.chunk).min(total))
            }
        }
        Kind::Dynamic | Kind::Guided => {
            let here = call.enter();
            if size > 1 {
                here.lets_others(share as u64, true);
            }
            // SAFETY: as above.
            let chunk = guarded(me, || unsafe {
                let first = (*share).given;
                let left = total - first;
                let least = iterations.chunk.max(1);
                let chunk = if iterations.kind == Kind::Guided { least.max(left.div_ceil(size)) } else { least };
                (*share).given = first + chunk.min(left);
                (first, (*share).given)
            });
            if chunk.0 < chunk.1 {
                here.took();
            }
            chunk
        }
    };
    me.chunk.set((first, behind));
    (first < behind).then_some((iterations, first, behind))
}

pub fn end_loop(call: Call, waits: bool) {
    doacross::end(call);
    let me = member();
    let share = me.share.get();
    // SAFETY: the thread's present construct.
    if !share.is_null() && unsafe { (*share).iterations.ordered } {
        pass_turn(call);
    }
    match me.team() {
        Some(team) => {
            leave(call, team, me);
            if waits {
                barrier(call);
            }
        }
        None if !share.is_null() => {
            me.share.set(null_mut());
            // SAFETY: the thread's own.
            unsafe { Share::free(share) };
        }
        None => {}
    }
}

/// `single`: whether the calling thread is the one.
pub fn is_single(call: Call) -> bool {
    let me = member();
    let Some(team) = me.team() else { return true };
    // An event, so that anybody may be the first.
    call.enter().does(Op::Blocking, &raw const team.shares as u64, sync_source::OTHER, &[0]);
    let first = enter(call, team, me, NO_LOOP);
    leave(call, team, me);
    first
}

const NO_LOOP: Loop = Loop { start: 0, step: 1, end: 0, total: 0, kind: Kind::Dynamic, chunk: 1, ordered: false };

/// `ordered` begins: the thread's chunk has the turn, or waits for it.
pub fn take_turn(call: Call) {
    let me = member();
    let (share, (first, behind)) = (me.share.get(), me.chunk.get());
    let Some(team) = me.team() else { return };
    if share.is_null() || me.has_turn.get() || first >= behind {
        return;
    }
    // The first chunk has it from the beginning: an operation that is announced is also made, or a schedule would not know where
    // the thread stands.
    if first > 0 {
        // SAFETY: the thread's present construct, which is there until this thread leaves it, here and below.
        let object = unsafe { &raw const (*share).ordered as u64 };
        let here = call.enter();
        here.point(Op::SemaphoreWait, object);
        // SAFETY: as above.
        let has_come = || unsafe { (*share).turn == first };
        here.wait(WaitFor::Semaphore, object, &team.word, || team.lock.with(has_come));
        here.sync(Op::SemaphoreWait, object, 0, &[]);
    }
    me.has_turn.set(true);
}

/// The thread is done with its chunk: the next one has the turn.
fn pass_turn(call: Call) {
    let me = member();
    let (share, (first, behind)) = (me.share.get(), me.chunk.get());
    let Some(team) = me.team() else { return };
    if share.is_null() || first >= behind {
        return;
    }
    take_turn(call);
    // SAFETY: as above.
    let object = unsafe { &raw const (*share).ordered as u64 };
    let here: Here = call.enter();
    here.does(Op::SemaphorePost, object, 0, &[]);
    team.lock.with(|| {
        // SAFETY: as above.
        unsafe { (*share).turn = behind };
        team.word.fetch_add(1, Release);
    });
    here.wake(WaitFor::Semaphore, object, &raw const team.word);
    me.has_turn.set(false);
    me.chunk.set((0, 0));
}

/// `single copyprivate`: null for the one, what it hands to them for the others.
pub fn single_copy_begin(call: Call) -> *mut u8 {
    if is_single(call) {
        return null_mut();
    }
    barrier(call);
    member().team().map_or(null_mut(), |team| team.copied.get())
}

pub fn single_copy_end(call: Call, data: *mut u8) {
    if let Some(team) = member().team() {
        team.copied.set(data);
        barrier(call);
    }
}
