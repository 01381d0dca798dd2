//! What gcc calls: `GOMP_*`, and the `omp_*` functions, which are the same for all compilers.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "entry points that take the compiler's or the program's own arguments share one reason, stated above them"
)]

use super::doacross::{self, Dimension};
use super::gomp_tasks;
use super::locks::{ATOMIC, Lock, UNNAMED};
use super::settings::Kind;
use super::shares::{self, Loop};
use super::team::{self, Body, parallel};
use super::{Call, openmp};
use crate::intercept::heap;
use crate::system::sys;
use core::ffi::c_int;

pub type Function = unsafe extern "C" fn(*mut u8);

// SAFETY (of every block below): the compiler passes what its own library would be passed.

unsafe extern "C" fn parallel_region(function: Function, data: *mut u8, threads: u32, _flags: u32) {
    parallel(Call::current(), Body::Function(function, data), threads, None);
}

macro_rules! parallel_loops {
    ($($name:ident $kind:expr;)*) => { $(
        unsafe extern "C" fn $name(
            function: Function,
            data: *mut u8,
            threads: u32,
            start: i64,
            end: i64,
            step: i64,
            chunk: i64,
            _flags: u32,
        ) {
            let first = Loop::signed(start, end, step, $kind, chunk);
            parallel(Call::current(), Body::Function(function, data), threads, Some(first));
        }
    )* };
}

parallel_loops! {
    parallel_static Kind::Static;
    parallel_dynamic Kind::Dynamic;
    parallel_guided Kind::Guided;
}

unsafe extern "C" fn parallel_runtime(
    function: Function,
    data: *mut u8,
    threads: u32,
    start: i64,
    end: i64,
    step: i64,
    _flags: u32,
) {
    let first = Loop::signed(start, end, step, Kind::Static, 0).as_set();
    parallel(Call::current(), Body::Function(function, data), threads, Some(first));
}

unsafe extern "C" fn parallel_sections(function: Function, data: *mut u8, threads: u32, count: u32, _flags: u32) {
    parallel(Call::current(), Body::Function(function, data), threads, Some(sections(count)));
}

/// Sections are numbered from 1.
fn sections(count: u32) -> Loop {
    Loop::signed(1, i64::from(count) + 1, 1, Kind::Dynamic, 1)
}

unsafe extern "C" fn barrier() {
    team::barrier(Call::current());
}

unsafe extern "C" fn barrier_cancel() -> bool {
    team::barrier(Call::current());
    false
}

unsafe extern "C" fn not_cancelled() -> bool {
    false
}

unsafe extern "C" fn cancel(_what: c_int, does: bool) -> bool {
    if does {
        super::refuse_cancellation();
    }
    false
}

/// Writes the thread's next chunk to where the compiler wants it.
unsafe fn next(call: Call, first: *mut u64, behind: *mut u64) -> bool {
    let Some((iterations, from, to)) = shares::next_chunk(call) else { return false };
    unsafe {
        *first = iterations.value(from);
        *behind = iterations.value(to);
    }
    true
}

unsafe extern "C" fn loop_next(first: *mut u64, behind: *mut u64) -> bool {
    unsafe { next(Call::current(), first, behind) }
}

macro_rules! loop_starts {
    ($($name:ident $unsigned:ident $kind:expr, $($ordered:ident)?;)*) => { $(
        unsafe extern "C" fn $name(start: i64, end: i64, step: i64, chunk: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::signed(start, end, step, $kind, chunk)$(.$ordered())?);
            unsafe { next(call, first, behind) }
        }
        unsafe extern "C" fn $unsigned(
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
        unsafe extern "C" fn $name(start: i64, end: i64, step: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::signed(start, end, step, Kind::Static, 0).as_set()$(.$ordered())?);
            unsafe { next(call, first, behind) }
        }
        unsafe extern "C" fn $unsigned(up: bool, start: u64, end: u64, step: u64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
            shares::begin_loop(call, Loop::unsigned(up, start, end, step, Kind::Static, 0).as_set()$(.$ordered())?);
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
        unsafe extern "C" fn $name(
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
            unsafe { any_start(iterations, first, behind, reductions, memory, Call::current()) }
        }
        #[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
        unsafe extern "C" fn $unsigned(
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
    let count = |at: usize| unsafe { *counts.add(at) };
    doacross::begin(call, loops as usize, |at| Dimension::numbered(count(at)));
    Loop::unsigned(true, 0, if loops == 0 { 0 } else { count(0) }, 1, kind, chunk.max(0) as u64)
}

macro_rules! doacross_starts {
    ($($name:ident $kind:expr;)*) => { $(
        unsafe extern "C" fn $name(loops: u32, counts: *const u64, chunk: i64, first: *mut u64, behind: *mut u64) -> bool {
            let call = Call::current();
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

unsafe extern "C" fn doacross_runtime_start(loops: u32, counts: *const u64, first: *mut u64, behind: *mut u64) -> bool {
    let call = Call::current();
    unsafe {
        shares::begin_loop(call, nest(call, loops, counts, Kind::Static, 0).as_set());
        next(call, first, behind)
    }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe extern "C" fn doacross_start(
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
    unsafe {
        let iterations = nest(call, loops, counts, Kind::of(schedule as u32 & 0xff), chunk);
        any_start(kind_of(schedule, iterations), first, behind, reductions, memory, call)
    }
}

unsafe extern "C" fn doacross_post(iteration: *const i64) {
    unsafe { doacross::post(Call::current(), iteration) };
}

/// A function of as many arguments as the nest has loops; those that are not given are not looked at.
#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe extern "C" fn doacross_wait(
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
    unsafe { doacross::wait(Call::current(), [a, b, c, d, e, f, g, h, i, j, k, l].as_ptr()) };
}

unsafe extern "C" fn loop_end() {
    let call = Call::current();
    shares::end_loop(call, true);
}

unsafe extern "C" fn loop_end_cancel() -> bool {
    unsafe { loop_end() };
    false
}

unsafe extern "C" fn loop_end_nowait() {
    let call = Call::current();
    shares::end_loop(call, false);
}

unsafe extern "C" fn ordered_start() {
    shares::take_turn(Call::current());
}

unsafe extern "C" fn ordered_end() {}

unsafe fn section(call: Call) -> u32 {
    shares::next_chunk(call).map_or(0, |(iterations, from, _)| iterations.value(from) as u32)
}

unsafe extern "C" fn sections_start(count: u32) -> u32 {
    let call = Call::current();
    shares::begin_loop(call, sections(count));
    unsafe { section(call) }
}

unsafe extern "C" fn sections2_start(count: u32, reductions: *const usize, memory: *mut *mut u8) -> u32 {
    let call = Call::current();
    refuse_reductions(reductions);
    shares::begin_loop(call, sections(count));
    unsafe {
        if !memory.is_null() {
            *memory = shares::memory(call, *memory as usize);
        }
        section(call)
    }
}

unsafe extern "C" fn sections_next() -> u32 {
    unsafe { section(Call::current()) }
}

unsafe extern "C" fn single_start() -> bool {
    shares::is_single(Call::current())
}

unsafe extern "C" fn single_copy_start() -> *mut u8 {
    shares::single_copy_begin(Call::current())
}

unsafe extern "C" fn single_copy_end(data: *mut u8) {
    shares::single_copy_end(Call::current(), data);
}

unsafe extern "C" fn critical_start() {
    UNNAMED.take(Call::current());
}

unsafe extern "C" fn critical_end() {
    UNNAMED.give(Call::current());
}

unsafe extern "C" fn critical_name_start(name: *const Lock) {
    unsafe { (*name).take(Call::current()) };
}

unsafe extern "C" fn critical_name_end(name: *const Lock) {
    unsafe { (*name).give(Call::current()) };
}

unsafe extern "C" fn atomic_start() {
    ATOMIC.take(Call::current());
}

unsafe extern "C" fn atomic_end() {
    ATOMIC.give(Call::current());
}

unsafe extern "C" fn aligned_allocate(alignment: usize, bytes: usize, _allocator: usize) -> *mut u8 {
    let call = Call::current();
    heap::allocating(bytes, call.site, || unsafe { crate::system::real::__libc_memalign(alignment.max(16), bytes) })
}

unsafe extern "C" fn free(block: *mut u8, _allocator: usize) {
    unsafe { heap::freeing(block, Call::current().site) };
}

openmp! { "libgomp.so.1";
    GOMP_parallel => parallel_region;
    GOMP_parallel_loop_static => parallel_static;
    GOMP_parallel_loop_dynamic => parallel_dynamic;
    GOMP_parallel_loop_guided => parallel_guided;
    GOMP_parallel_loop_nonmonotonic_dynamic => parallel_dynamic;
    GOMP_parallel_loop_nonmonotonic_guided => parallel_guided;
    GOMP_parallel_loop_runtime => parallel_runtime;
    GOMP_parallel_loop_nonmonotonic_runtime => parallel_runtime;
    GOMP_parallel_loop_maybe_nonmonotonic_runtime => parallel_runtime;
    GOMP_parallel_sections => parallel_sections;
    GOMP_barrier => barrier;
    GOMP_barrier_cancel => barrier_cancel;
    GOMP_cancel => cancel;
    GOMP_cancellation_point => not_cancelled;
    GOMP_loop_end => loop_end;
    GOMP_loop_end_cancel => loop_end_cancel;
    GOMP_loop_end_nowait => loop_end_nowait;
    GOMP_loop_start => loop_start;
    GOMP_loop_ordered_start => loop_ordered_start;
    GOMP_loop_ull_start => loop_start_unsigned;
    GOMP_loop_ull_ordered_start => loop_ordered_start_unsigned;
    GOMP_loop_static_start => static_start;
    GOMP_loop_static_next => loop_next;
    GOMP_loop_dynamic_start => dynamic_start;
    GOMP_loop_dynamic_next => loop_next;
    GOMP_loop_guided_start => guided_start;
    GOMP_loop_guided_next => loop_next;
    GOMP_loop_runtime_start => runtime_start;
    GOMP_loop_runtime_next => loop_next;
    GOMP_loop_nonmonotonic_dynamic_start => dynamic_start;
    GOMP_loop_nonmonotonic_dynamic_next => loop_next;
    GOMP_loop_nonmonotonic_guided_start => guided_start;
    GOMP_loop_nonmonotonic_guided_next => loop_next;
    GOMP_loop_nonmonotonic_runtime_start => runtime_start;
    GOMP_loop_nonmonotonic_runtime_next => loop_next;
    GOMP_loop_ordered_static_start => ordered_static_start;
    GOMP_loop_ordered_static_next => loop_next;
    GOMP_loop_ordered_dynamic_start => ordered_dynamic_start;
    GOMP_loop_ordered_dynamic_next => loop_next;
    GOMP_loop_ordered_guided_start => ordered_guided_start;
    GOMP_loop_ordered_guided_next => loop_next;
    GOMP_loop_ordered_runtime_start => ordered_runtime_start;
    GOMP_loop_ordered_runtime_next => loop_next;
    GOMP_loop_maybe_nonmonotonic_runtime_start => runtime_start;
    GOMP_loop_maybe_nonmonotonic_runtime_next => loop_next;
    GOMP_loop_ull_static_start => static_start_unsigned;
    GOMP_loop_ull_static_next => loop_next;
    GOMP_loop_ull_dynamic_start => dynamic_start_unsigned;
    GOMP_loop_ull_dynamic_next => loop_next;
    GOMP_loop_ull_guided_start => guided_start_unsigned;
    GOMP_loop_ull_guided_next => loop_next;
    GOMP_loop_ull_runtime_start => runtime_start_unsigned;
    GOMP_loop_ull_runtime_next => loop_next;
    GOMP_loop_ull_nonmonotonic_dynamic_start => dynamic_start_unsigned;
    GOMP_loop_ull_nonmonotonic_dynamic_next => loop_next;
    GOMP_loop_ull_nonmonotonic_guided_start => guided_start_unsigned;
    GOMP_loop_ull_nonmonotonic_guided_next => loop_next;
    GOMP_loop_ull_nonmonotonic_runtime_start => runtime_start_unsigned;
    GOMP_loop_ull_nonmonotonic_runtime_next => loop_next;
    GOMP_loop_ull_ordered_static_start => ordered_static_start_unsigned;
    GOMP_loop_ull_ordered_static_next => loop_next;
    GOMP_loop_ull_ordered_dynamic_start => ordered_dynamic_start_unsigned;
    GOMP_loop_ull_ordered_dynamic_next => loop_next;
    GOMP_loop_ull_ordered_guided_start => ordered_guided_start_unsigned;
    GOMP_loop_ull_ordered_guided_next => loop_next;
    GOMP_loop_ull_ordered_runtime_start => ordered_runtime_start_unsigned;
    GOMP_loop_ull_ordered_runtime_next => loop_next;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start => runtime_start_unsigned;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next => loop_next;
    GOMP_loop_doacross_start => doacross_start;
    GOMP_loop_doacross_static_start => doacross_static_start;
    GOMP_loop_doacross_dynamic_start => doacross_dynamic_start;
    GOMP_loop_doacross_guided_start => doacross_guided_start;
    GOMP_loop_doacross_runtime_start => doacross_runtime_start;
    GOMP_loop_ull_doacross_start => doacross_start;
    GOMP_loop_ull_doacross_static_start => doacross_static_start;
    GOMP_loop_ull_doacross_dynamic_start => doacross_dynamic_start;
    GOMP_loop_ull_doacross_guided_start => doacross_guided_start;
    GOMP_loop_ull_doacross_runtime_start => doacross_runtime_start;
    GOMP_doacross_post => doacross_post;
    GOMP_doacross_wait => doacross_wait;
    GOMP_doacross_ull_post => doacross_post;
    GOMP_doacross_ull_wait => doacross_wait;
    GOMP_ordered_start => ordered_start;
    GOMP_ordered_end => ordered_end;
    GOMP_sections_start => sections_start;
    GOMP_sections2_start => sections2_start;
    GOMP_sections_next => sections_next;
    GOMP_sections_end => loop_end;
    GOMP_sections_end_cancel => loop_end_cancel;
    GOMP_sections_end_nowait => loop_end_nowait;
    GOMP_single_start => single_start;
    GOMP_single_copy_start => single_copy_start;
    GOMP_single_copy_end => single_copy_end;
    GOMP_critical_start => critical_start;
    GOMP_critical_end => critical_end;
    GOMP_critical_name_start => critical_name_start;
    GOMP_critical_name_end => critical_name_end;
    GOMP_atomic_start => atomic_start;
    GOMP_atomic_end => atomic_end;
    GOMP_task => gomp_tasks::task;
    GOMP_taskwait => gomp_tasks::taskwait;
    GOMP_taskwait_depend => gomp_tasks::taskwait_depend;
    GOMP_taskyield => gomp_tasks::taskyield;
    GOMP_taskgroup_start => gomp_tasks::taskgroup_start;
    GOMP_taskgroup_end => gomp_tasks::taskgroup_end;
    GOMP_taskloop => gomp_tasks::taskloop;
    GOMP_taskloop_ull => gomp_tasks::taskloop_unsigned;
    GOMP_alloc => aligned_allocate;
    GOMP_free => free;
}
