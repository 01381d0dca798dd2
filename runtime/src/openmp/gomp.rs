//! What gcc calls: `GOMP_*`, and the `omp_*` functions, which are the same for all compilers.

use super::gomp_loops::{self, refuse_reductions};
use super::gomp_tasks;
use super::locks::{ATOMIC, Lock, UNNAMED};
use super::settings::Kind;
use super::shares::{self, Loop};
use super::team::{self, Body, parallel};
use super::{Call, openmp};
use crate::intercept::heap;
use core::ffi::c_int;

pub type Function = unsafe extern "C" fn(*mut u8);

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

unsafe extern "C" fn loop_end() {
    let call = Call::current();
    shares::end_loop(call, true);
}

unsafe extern "C" fn loop_end_cancel() -> bool {
    shares::end_loop(Call::current(), true);
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

fn section(call: Call) -> u32 {
    shares::next_chunk(call).map_or(0, |(iterations, from, _)| iterations.value(from) as u32)
}

unsafe extern "C" fn sections_start(count: u32) -> u32 {
    let call = Call::current();
    shares::begin_loop(call, sections(count));
    section(call)
}

unsafe extern "C" fn sections2_start(count: u32, reductions: *const usize, memory: *mut *mut u8) -> u32 {
    let call = Call::current();
    refuse_reductions(reductions);
    shares::begin_loop(call, sections(count));
    // SAFETY: null, or a place that holds how much memory is wanted and gets its address.
    unsafe {
        if !memory.is_null() {
            *memory = shares::memory(call, *memory as usize);
        }
        section(call)
    }
}

unsafe extern "C" fn sections_next() -> u32 {
    section(Call::current())
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
    // SAFETY: the compiler's word for the name, which begins as 0.
    unsafe { (*name).take(Call::current()) };
}

unsafe extern "C" fn critical_name_end(name: *const Lock) {
    // SAFETY: as in `critical_name_start`.
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
    // SAFETY: libc's allocator, with an alignment that it accepts.
    heap::allocating(bytes, call.site, || unsafe { crate::system::real::__libc_memalign(alignment.max(16), bytes) })
}

unsafe extern "C" fn free(block: *mut u8, _allocator: usize) {
    // SAFETY: the program gives back what `aligned_allocate` made.
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
    GOMP_loop_start => gomp_loops::loop_start;
    GOMP_loop_ordered_start => gomp_loops::loop_ordered_start;
    GOMP_loop_ull_start => gomp_loops::loop_start_unsigned;
    GOMP_loop_ull_ordered_start => gomp_loops::loop_ordered_start_unsigned;
    GOMP_loop_static_start => gomp_loops::static_start;
    GOMP_loop_static_next => gomp_loops::loop_next;
    GOMP_loop_dynamic_start => gomp_loops::dynamic_start;
    GOMP_loop_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_guided_start => gomp_loops::guided_start;
    GOMP_loop_guided_next => gomp_loops::loop_next;
    GOMP_loop_runtime_start => gomp_loops::runtime_start;
    GOMP_loop_runtime_next => gomp_loops::loop_next;
    GOMP_loop_nonmonotonic_dynamic_start => gomp_loops::dynamic_start;
    GOMP_loop_nonmonotonic_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_nonmonotonic_guided_start => gomp_loops::guided_start;
    GOMP_loop_nonmonotonic_guided_next => gomp_loops::loop_next;
    GOMP_loop_nonmonotonic_runtime_start => gomp_loops::runtime_start;
    GOMP_loop_nonmonotonic_runtime_next => gomp_loops::loop_next;
    GOMP_loop_ordered_static_start => gomp_loops::ordered_static_start;
    GOMP_loop_ordered_static_next => gomp_loops::loop_next;
    GOMP_loop_ordered_dynamic_start => gomp_loops::ordered_dynamic_start;
    GOMP_loop_ordered_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_ordered_guided_start => gomp_loops::ordered_guided_start;
    GOMP_loop_ordered_guided_next => gomp_loops::loop_next;
    GOMP_loop_ordered_runtime_start => gomp_loops::ordered_runtime_start;
    GOMP_loop_ordered_runtime_next => gomp_loops::loop_next;
    GOMP_loop_maybe_nonmonotonic_runtime_start => gomp_loops::runtime_start;
    GOMP_loop_maybe_nonmonotonic_runtime_next => gomp_loops::loop_next;
    GOMP_loop_ull_static_start => gomp_loops::static_start_unsigned;
    GOMP_loop_ull_static_next => gomp_loops::loop_next;
    GOMP_loop_ull_dynamic_start => gomp_loops::dynamic_start_unsigned;
    GOMP_loop_ull_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_ull_guided_start => gomp_loops::guided_start_unsigned;
    GOMP_loop_ull_guided_next => gomp_loops::loop_next;
    GOMP_loop_ull_runtime_start => gomp_loops::runtime_start_unsigned;
    GOMP_loop_ull_runtime_next => gomp_loops::loop_next;
    GOMP_loop_ull_nonmonotonic_dynamic_start => gomp_loops::dynamic_start_unsigned;
    GOMP_loop_ull_nonmonotonic_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_ull_nonmonotonic_guided_start => gomp_loops::guided_start_unsigned;
    GOMP_loop_ull_nonmonotonic_guided_next => gomp_loops::loop_next;
    GOMP_loop_ull_nonmonotonic_runtime_start => gomp_loops::runtime_start_unsigned;
    GOMP_loop_ull_nonmonotonic_runtime_next => gomp_loops::loop_next;
    GOMP_loop_ull_ordered_static_start => gomp_loops::ordered_static_start_unsigned;
    GOMP_loop_ull_ordered_static_next => gomp_loops::loop_next;
    GOMP_loop_ull_ordered_dynamic_start => gomp_loops::ordered_dynamic_start_unsigned;
    GOMP_loop_ull_ordered_dynamic_next => gomp_loops::loop_next;
    GOMP_loop_ull_ordered_guided_start => gomp_loops::ordered_guided_start_unsigned;
    GOMP_loop_ull_ordered_guided_next => gomp_loops::loop_next;
    GOMP_loop_ull_ordered_runtime_start => gomp_loops::ordered_runtime_start_unsigned;
    GOMP_loop_ull_ordered_runtime_next => gomp_loops::loop_next;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start => gomp_loops::runtime_start_unsigned;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next => gomp_loops::loop_next;
    GOMP_loop_doacross_start => gomp_loops::doacross_start;
    GOMP_loop_doacross_static_start => gomp_loops::doacross_static_start;
    GOMP_loop_doacross_dynamic_start => gomp_loops::doacross_dynamic_start;
    GOMP_loop_doacross_guided_start => gomp_loops::doacross_guided_start;
    GOMP_loop_doacross_runtime_start => gomp_loops::doacross_runtime_start;
    GOMP_loop_ull_doacross_start => gomp_loops::doacross_start;
    GOMP_loop_ull_doacross_static_start => gomp_loops::doacross_static_start;
    GOMP_loop_ull_doacross_dynamic_start => gomp_loops::doacross_dynamic_start;
    GOMP_loop_ull_doacross_guided_start => gomp_loops::doacross_guided_start;
    GOMP_loop_ull_doacross_runtime_start => gomp_loops::doacross_runtime_start;
    GOMP_doacross_post => gomp_loops::doacross_post;
    GOMP_doacross_wait => gomp_loops::doacross_wait;
    GOMP_doacross_ull_post => gomp_loops::doacross_post;
    GOMP_doacross_ull_wait => gomp_loops::doacross_wait;
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
