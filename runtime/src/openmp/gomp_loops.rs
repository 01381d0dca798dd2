//! Loops as gcc calls for them: `GOMP_loop_*` and `GOMP_doacross_*`, whose names are in [`super::gomp`].

use super::Call;
use super::doacross::{self, Dimension};
use super::settings::Kind;
use super::shares::{self, Loop};
use crate::system::sys;

/// Writes the thread's next chunk to where the compiler wants it.
unsafe fn next(call: Call, first: *mut u64, behind: *mut u64) -> bool {
    let Some((iterations, from, to)) = shares::next_chunk(call) else { return false };
    // SAFETY: by the callers, the compiler's places for the bounds.
    unsafe {
        *first = iterations.value(from);
        *behind = iterations.value(to);
    }
    true
}

pub unsafe extern "C" fn loop_next(first: *mut u64, behind: *mut u64) -> bool {
    // SAFETY: the compiler passes places for the bounds of a chunk, here and below.
    unsafe { next(Call::current(), first, behind) }
}

macro_rules! loop_starts {
    ($($name:ident $unsigned:ident $kind:expr, $($ordered:ident)?;)*) => { $(
        pub unsafe extern "C" fn $name(start: i64, end: i64, step: i64, chunk: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::signed(start, end, step, $kind, chunk)$(.$ordered())?);
            // SAFETY: as in `loop_next`.
            unsafe { next(call, first, behind) }
        }
        pub unsafe extern "C" fn $unsigned(
            up: bool,
            start: u64,
            end: u64,
            step: u64,
            chunk: u64,
            first: *mut u64,
            behind: *mut u64,
        ) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::unsigned(up, start, end, step, $kind, chunk)$(.$ordered())?);
            // SAFETY: as in `loop_next`.
            unsafe { next(call, first, behind) }
        }
    )* };
}

loop_starts! {
    static_start static_start_unsigned Kind::Static,;
    dynamic_start dynamic_start_unsigned Kind::Dynamic,;
    guided_start guided_start_unsigned Kind::Guided,;
    ordered_static_start ordered_static_start_unsigned Kind::Static, ordered;
    ordered_dynamic_start ordered_dynamic_start_unsigned Kind::Dynamic, ordered;
    ordered_guided_start ordered_guided_start_unsigned Kind::Guided, ordered;
}

macro_rules! runtime_starts {
    ($($name:ident $unsigned:ident $($ordered:ident)?;)*) => { $(
        pub unsafe extern "C" fn $name(start: i64, end: i64, step: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::signed(start, end, step, Kind::Static, 0).as_set()$(.$ordered())?);
            // SAFETY: as in `loop_next`.
            unsafe { next(call, first, behind) }
        }
        pub unsafe extern "C" fn $unsigned(up: bool, start: u64, end: u64, step: u64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::unsigned(up, start, end, step, Kind::Static, 0).as_set()$(.$ordered())?);
            // SAFETY: as in `loop_next`.
            unsafe { next(call, first, behind) }
        }
    )* };
}

runtime_starts! {
    runtime_start runtime_start_unsigned;
    ordered_runtime_start ordered_runtime_start_unsigned ordered;
}

/// A task reduction would need more than is here.
pub fn refuse_reductions(reductions: *const usize) {
    if !reductions.is_null() {
        sys::die(&[b"reductions over tasks are not covered: run the program without observation, or reduce otherwise"]);
    }
}

fn kind_of(schedule: i64, iterations: Loop) -> Loop {
    // 0: as set; a bit for "monotonic" above.
    if schedule & 0xff == 0 { iterations.as_set() } else { iterations }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe fn any_start(
    iterations: Loop,
    first: *mut u64,
    behind: *mut u64,
    reductions: *const usize,
    memory: *mut *mut u8,
    call: Call,
) -> bool {
    refuse_reductions(reductions);
    shares::begin_loop(call, iterations);
    // SAFETY: by the callers: null, or a place that holds how much memory is wanted and gets its address.
    unsafe {
        if !memory.is_null() {
            *memory = shares::memory(call, *memory as usize);
        }
        first.is_null() || next(call, first, behind)
    }
}

macro_rules! any_starts {
    ($($name:ident $unsigned:ident $($ordered:ident)?;)*) => { $(
        #[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
        pub unsafe extern "C" fn $name(
            start: i64,
            end: i64,
            step: i64,
            schedule: i64,
            chunk: i64,
            first: *mut u64,
            behind: *mut u64,
            reductions: *const usize,
            memory: *mut *mut u8,
        ) -> bool {
            let kind = Kind::of(schedule as u32 & 0xff);
            let iterations = kind_of(schedule, Loop::signed(start, end, step, kind, chunk))$(.$ordered())?;
            // SAFETY: the compiler passes places for the bounds, null where it asks for no chunk, and for memory.
            unsafe { any_start(iterations, first, behind, reductions, memory, Call::current()) }
        }
        #[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
        pub unsafe extern "C" fn $unsigned(
            up: bool,
            start: u64,
            end: u64,
            step: u64,
            schedule: i64,
            chunk: u64,
            first: *mut u64,
            behind: *mut u64,
            reductions: *const usize,
            memory: *mut *mut u8,
        ) -> bool {
            let kind = Kind::of(schedule as u32 & 0xff);
            let iterations = kind_of(schedule, Loop::unsigned(up, start, end, step, kind, chunk))$(.$ordered())?;
            // SAFETY: the same for iterations without a sign.
            unsafe { any_start(iterations, first, behind, reductions, memory, Call::current()) }
        }
    )* };
}

any_starts! {
    loop_start loop_start_unsigned;
    loop_ordered_start loop_ordered_start_unsigned ordered;
}

/// The outermost loop is shared out; its iterations, as those of the others, are counted from 0.
unsafe fn nest(call: Call, loops: u32, counts: *const u64, kind: Kind, chunk: i64) -> Loop {
    // SAFETY: by the callers, the compiler tells how many iterations each of the loops has.
    let count = |at: usize| unsafe { *counts.add(at) };
    doacross::begin(call, loops as usize, |at| Dimension::numbered(count(at)));
    Loop::unsigned(true, 0, if loops == 0 { 0 } else { count(0) }, 1, kind, chunk.max(0) as u64)
}

macro_rules! doacross_starts {
    ($($name:ident $kind:expr;)*) => { $(
        pub unsafe extern "C" fn $name(loops: u32, counts: *const u64, chunk: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            // SAFETY: the compiler passes as many counts as loops, and places for the bounds.
            unsafe {
                shares::begin_loop(call, nest(call, loops, counts, $kind, chunk));
                next(call, first, behind)
            }
        }
    )* };
}

doacross_starts! {
    doacross_static_start Kind::Static;
    doacross_dynamic_start Kind::Dynamic;
    doacross_guided_start Kind::Guided;
}

pub unsafe extern "C" fn doacross_runtime_start(loops: u32, counts: *const u64, first: *mut u64, behind: *mut u64) -> bool {
    let call = Call::current();
    // SAFETY: as for the other schedules.
    unsafe {
        shares::begin_loop(call, nest(call, loops, counts, Kind::Static, 0).as_set());
        next(call, first, behind)
    }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
pub unsafe extern "C" fn doacross_start(
    loops: u32,
    counts: *const u64,
    schedule: i64,
    chunk: i64,
    first: *mut u64,
    behind: *mut u64,
    reductions: *const usize,
    memory: *mut *mut u8,
) -> bool {
    let call = Call::current();
    // SAFETY: the same, with places as in `loop_start`.
    unsafe {
        let iterations = nest(call, loops, counts, Kind::of(schedule as u32 & 0xff), chunk);
        any_start(kind_of(schedule, iterations), first, behind, reductions, memory, call)
    }
}

pub unsafe extern "C" fn doacross_post(iteration: *const i64) {
    // SAFETY: the compiler passes a number for each loop of the nest.
    unsafe { doacross::post(Call::current(), iteration) };
}

/// A function of as many arguments as the nest has loops; those that are not given are not looked at.
#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
pub unsafe extern "C" fn doacross_wait(
    a: i64,
    b: i64,
    c: i64,
    d: i64,
    e: i64,
    f: i64,
    g: i64,
    h: i64,
    i: i64,
    j: i64,
    k: i64,
    l: i64,
) {
    // SAFETY: as many values as the nest has loops, which are no more than twelve.
    unsafe { doacross::wait(Call::current(), [a, b, c, d, e, f, g, h, i, j, k, l].as_ptr()) };
}
