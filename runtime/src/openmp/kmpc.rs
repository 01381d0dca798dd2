//! What clang calls: `__kmpc_*`, but for [tasks](super::kmpc_tasks).

use super::data::Vector;
use super::doacross::{self, Dimension};
use super::locks::Lock;
use super::settings::Kind;
use super::shares::{self, Loop};
use super::team::{self, Body, local, member, parallel};
use super::{Call, openmp};
use core::arch::naked_asm;

/// The body of a region: pointers to the thread's number and to that in its team, and what it shares.
pub type Microtask = *const u8;

/// Calls a body with `count` further arguments.
#[unsafe(naked)]
pub unsafe extern "C" fn call_microtask(
    _function: Microtask,
    _global: *const u32,
    _number: *const u32,
    _count: usize,
    _arguments: *const usize,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov r11, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov r10, r8",
        // Those that go onto the stack: all but four, in an even number of places.
        "mov rax, rcx",
        "sub rax, 4",
        "jle 3f",
        "lea rdx, [rax + 1]",
        "and rdx, -2",
        "shl rdx, 3",
        "sub rsp, rdx",
        "2: mov rdx, [r10 + 8*rax + 24]",
        "mov [rsp + 8*rax - 8], rdx",
        "dec rax",
        "jnz 2b",
        "3: mov rax, rcx",
        "test rax, rax",
        "jz 4f",
        "mov rdx, [r10]",
        "cmp rax, 1",
        "je 4f",
        "mov rcx, [r10 + 8]",
        "cmp rax, 2",
        "je 4f",
        "mov r8, [r10 + 16]",
        "cmp rax, 3",
        "je 4f",
        "mov r9, [r10 + 24]",
        "4: xor eax, eax",
        "call r11",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// `__kmpc_fork_call`: how many further arguments there are is its second one.
#[unsafe(naked)]
unsafe extern "C" fn fork() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 32",
        "mov [rsp], rcx",
        "mov [rsp + 8], r8",
        "mov [rsp + 16], r9",
        "mov edi, esi",
        "mov rsi, rdx",
        "mov rdx, rsp",
        "lea rcx, [rbp + 16]",
        "call {fork_with}",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        fork_with = sym fork_with,
    )
}

unsafe extern "C" fn fork_with(count: u32, function: Microtask, first: *const usize, further: *const usize) {
    let call = Call::current();
    let all = Vector::new();
    for at in 0..count as usize {
        // SAFETY: the trampoline has stored three arguments at `first`; the others are on the stack of the call.
        all.push(unsafe { if at < 3 { *first.add(at) } else { *further.add(at - 3) } });
    }
    let wanted = local().wanted.take();
    parallel(call, Body::Microtask(function, count as usize, all.as_slice().as_ptr()), wanted, None);
    all.free();
}

unsafe extern "C" fn fork_if(_location: usize, count: u32, function: Microtask, wanted: i32, arguments: *mut u8) {
    let call = Call::current();
    let only = [arguments as usize];
    // Said for this region, whether or not it has more than one thread.
    let said = local().wanted.take();
    let threads = if wanted == 0 { 1 } else { said };
    parallel(call, Body::Microtask(function, count.min(1) as usize, only.as_ptr()), threads, None);
}

unsafe extern "C" fn push_threads(_location: usize, _thread: i32, count: i32) {
    local().wanted.set(count.max(0) as u32);
}

unsafe extern "C" fn nothing() {}

unsafe extern "C" fn zero() -> i32 {
    0
}

unsafe extern "C" fn cancel() -> i32 {
    super::refuse_cancellation();
    0
}

unsafe extern "C" fn begin_serial(_location: usize, _thread: i32) {
    local().wanted.set(0);
    team::begin_serial(Call::current());
}

unsafe extern "C" fn end_serial(_location: usize, _thread: i32) {
    team::end_serial(Call::current());
}

unsafe extern "C" fn global_number(_location: usize) -> i32 {
    local().number as i32
}

unsafe extern "C" fn bound_number(_location: usize) -> i32 {
    member().number as i32
}

unsafe extern "C" fn bound_count(_location: usize) -> i32 {
    member().size() as i32
}

unsafe extern "C" fn barrier(_location: usize, _thread: i32) -> i32 {
    team::barrier(Call::current());
    0
}

/// Whose turn a schedule's code is, without its modifiers.
const ORDERED: u32 = 32;

fn kind_of(schedule: u32) -> (Kind, bool, bool) {
    let code = schedule & 0xff;
    let (code, ordered) = if (65..=72).contains(&code) { (code - ORDERED, true) } else { (code, false) };
    match code {
        35 => (Kind::Dynamic, ordered, false),
        36 | 39 | 42 => (Kind::Guided, ordered, false),
        37 => (Kind::Dynamic, ordered, true),
        _ => (Kind::Static, ordered, false),
    }
}

macro_rules! loops {
    ($($type:ident $wide:ident $make:expr; $init:ident $start:ident $next:ident)*) => { $(
        /// A static schedule: the thread's first chunk, and how far apart its chunks are. Bounds are inclusive.
        #[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
        unsafe extern "C" fn $init(
            _location: usize,
            _thread: i32,
            schedule: u32,
            is_last: *mut i32,
            lower: *mut $type,
            upper: *mut $type,
            stride: *mut $wide,
            step: $wide,
            chunk: $wide,
        ) {
            // SAFETY: the compiler's places for the bounds, which hold those of the whole loop.
            unsafe {
                let iterations: Loop = $make(i128::from(*lower), i128::from(*upper), i128::from(step));
                let me = member();
                let (size, number, total) = (u64::from(me.size()), u64::from(me.number), iterations.total);
                if total == 0 {
                    *is_last = 0;
                    *stride = step;
                    return;
                }
                let value = |at: u64| iterations.start.wrapping_add(at.wrapping_mul(iterations.step)) as $type;
                if schedule & 0xff == 33 || schedule & 0xff == 65 {
                    let chunk = (chunk as i64).max(1) as u64;
                    *lower = value(number * chunk);
                    *upper = value(number * chunk + chunk - 1);
                    *stride = (chunk * size).wrapping_mul(iterations.step) as $wide;
                    *is_last = ((total - 1) / chunk % size == number) as i32;
                } else {
                    let (least, more) = (total / size, total % size);
                    let first = number * least + number.min(more);
                    let behind = first + least + u64::from(number < more);
                    if first == behind {
                        // Nothing: from behind the end.
                        *lower = value(total);
                        *upper = value(total - 1);
                    } else {
                        *lower = value(first);
                        *upper = value(behind - 1);
                    }
                    *stride = total.wrapping_mul(iterations.step) as $wide;
                    *is_last = (first < behind && behind == total) as i32;
                }
            }
        }

        unsafe extern "C" fn $start(
            _location: usize,
            _thread: i32,
            schedule: u32,
            lower: $type,
            upper: $type,
            step: $wide,
            chunk: $wide,
        ) {
            let mut iterations: Loop = $make(i128::from(lower), i128::from(upper), i128::from(step));
            let (kind, ordered, as_set) = kind_of(schedule);
            iterations.kind = kind;
            let has_chunk = matches!(schedule & 0xff, 33 | 65) || kind != Kind::Static;
            iterations.chunk = if has_chunk { (chunk as i64).max(1) as u64 } else { 0 };
            if as_set {
                iterations = iterations.as_set();
            }
            iterations.ordered = ordered;
            shares::begin_loop(Call::current(), iterations);
        }

        unsafe extern "C" fn $next(
            _location: usize,
            _thread: i32,
            is_last: *mut i32,
            lower: *mut $type,
            upper: *mut $type,
            stride: *mut $wide,
        ) -> i32 {
            let call = Call::current();
            let Some((iterations, first, behind)) = shares::next_chunk(call) else {
                shares::end_loop(call, false);
                return 0;
            };
            // SAFETY: the compiler's places for the bounds of the next chunk.
            unsafe {
                let value = |at: u64| iterations.start.wrapping_add(at.wrapping_mul(iterations.step)) as $type;
                *lower = value(first);
                *upper = value(behind - 1);
                if !stride.is_null() {
                    *stride = iterations.step as $wide;
                }
                if !is_last.is_null() {
                    *is_last = (behind == iterations.total) as i32;
                }
            }
            1
        }
    )* };
}

/// Iterations with an inclusive end, counted in a type that none of the bounds leaves.
pub fn inclusive(lower: i128, upper: i128, step: i128) -> Loop {
    let total = match step {
        1.. if lower <= upper => (upper - lower) / step + 1,
        ..=-1 if lower >= upper => (lower - upper) / -step + 1,
        _ => 0,
    };
    let total = total as u64;
    let end = (lower + step * total as i128) as u64;
    Loop { start: lower as u64, step: step as u64, end, total, kind: Kind::Static, chunk: 0, ordered: false }
}

loops! {
    i32 i32 inclusive; static_4 start_4 next_4
    u32 i32 inclusive; static_4u start_4u next_4u
    i64 i64 inclusive; static_8 start_8 next_8
    u64 i64 inclusive; static_8u start_8u next_8u
}

unsafe extern "C" fn critical(_location: usize, _thread: i32, name: *const Lock) {
    // SAFETY: the compiler's word for the name, which begins as 0.
    unsafe { (*name).take(Call::current()) };
}

unsafe extern "C" fn end_critical(_location: usize, _thread: i32, name: *const Lock) {
    // SAFETY: as in `critical`.
    unsafe { (*name).give(Call::current()) };
}

unsafe extern "C" fn single(_location: usize, _thread: i32) -> i32 {
    shares::is_single(Call::current()) as i32
}

unsafe extern "C" fn master(_location: usize, _thread: i32) -> i32 {
    (member().number == 0) as i32
}

unsafe extern "C" fn masked(_location: usize, _thread: i32, number: i32) -> i32 {
    (member().number as i32 == number) as i32
}

unsafe extern "C" fn ordered(_location: usize, _thread: i32) {
    shares::take_turn(Call::current());
}

/// Every thread adds its part under a lock of the construct's.
unsafe extern "C" fn reduce(
    _location: usize,
    _thread: i32,
    _count: i32,
    _bytes: usize,
    _data: *mut u8,
    _function: usize,
    lock: *const Lock,
) -> i32 {
    // SAFETY: the compiler's word for the reduction, which begins as 0.
    unsafe { (*lock).take(Call::current()) };
    1
}

unsafe extern "C" fn end_reduce_nowait(_location: usize, _thread: i32, lock: *const Lock) {
    // SAFETY: as in `reduce`: it is taken.
    unsafe { (*lock).give(Call::current()) };
}

unsafe extern "C" fn end_reduce(_location: usize, _thread: i32, lock: *const Lock) {
    let call = Call::current();
    // SAFETY: as in `end_reduce_nowait`.
    unsafe { (*lock).give(call) };
    team::barrier(call);
}

unsafe extern "C" fn copyprivate(
    _location: usize,
    _thread: i32,
    _bytes: usize,
    data: *mut u8,
    copy: unsafe extern "C" fn(*mut u8, *mut u8),
    is_single: i32,
) {
    let call = Call::current();
    let Some(team) = member().team() else { return };
    if is_single != 0 {
        team.copied.set(data);
    }
    team::barrier(call);
    if is_single == 0 {
        // SAFETY: the compiler's function for the two places: this thread's, and that of the one that executed the block.
        unsafe { copy(data, team.copied.get()) };
    }
    team::barrier(call);
}

/// A loop of a doacross nest, its bounds inclusive.
#[repr(C)]
struct Bounds {
    lower: i64,
    upper: i64,
    step: i64,
}

unsafe extern "C" fn doacross_init(_location: usize, _thread: i32, loops: i32, bounds: *const Bounds) {
    // SAFETY: the compiler passes the bounds of so many loops.
    let bounds = unsafe { core::slice::from_raw_parts(bounds, loops.max(0) as usize) };
    doacross::begin(Call::current(), bounds.len(), |at| {
        let Bounds { lower, upper, step } = bounds[at];
        // clang counts iterations from 0, and gives their number for the last one: that one does not exist, and nobody comes to
        // it.
        let is_numbered = lower == 0 && step == 1;
        let count = if is_numbered {
            upper.max(0) as u64
        } else {
            inclusive(i128::from(lower), i128::from(upper), i128::from(step)).total
        };
        Dimension { count, first: lower, step }
    });
}

unsafe extern "C" fn doacross_post(_location: usize, _thread: i32, values: *const i64) {
    // SAFETY: the compiler passes a number for each loop.
    unsafe { doacross::post(Call::current(), values) };
}

unsafe extern "C" fn doacross_wait(_location: usize, _thread: i32, values: *const i64) {
    // SAFETY: as in `doacross_post`.
    unsafe { doacross::wait(Call::current(), values) };
}

unsafe extern "C" fn doacross_end(_location: usize, _thread: i32) {
    doacross::end(Call::current());
}

openmp! { "libomp.so.5";
    __kmpc_fork_call => fork;
    __kmpc_fork_call_if => fork_if;
    __kmpc_push_num_threads => push_threads;
    __kmpc_push_proc_bind => nothing;
    __kmpc_begin => nothing;
    __kmpc_end => nothing;
    __kmpc_flush => nothing;
    __kmpc_serialized_parallel => begin_serial;
    __kmpc_end_serialized_parallel => end_serial;
    __kmpc_global_thread_num => global_number;
    __kmpc_bound_thread_num => bound_number;
    __kmpc_bound_num_threads => bound_count;
    __kmpc_barrier => barrier;
    __kmpc_cancel_barrier => barrier;
    __kmpc_cancel => cancel;
    __kmpc_cancellationpoint => zero;
    __kmpc_for_static_init_4 => static_4;
    __kmpc_for_static_init_4u => static_4u;
    __kmpc_for_static_init_8 => static_8;
    __kmpc_for_static_init_8u => static_8u;
    __kmpc_for_static_fini => nothing;
    __kmpc_dispatch_init_4 => start_4;
    __kmpc_dispatch_init_4u => start_4u;
    __kmpc_dispatch_init_8 => start_8;
    __kmpc_dispatch_init_8u => start_8u;
    __kmpc_dispatch_next_4 => next_4;
    __kmpc_dispatch_next_4u => next_4u;
    __kmpc_dispatch_next_8 => next_8;
    __kmpc_dispatch_next_8u => next_8u;
    __kmpc_dispatch_fini_4 => nothing;
    __kmpc_dispatch_fini_4u => nothing;
    __kmpc_dispatch_fini_8 => nothing;
    __kmpc_dispatch_fini_8u => nothing;
    __kmpc_dispatch_deinit => nothing;
    __kmpc_critical => critical;
    __kmpc_critical_with_hint => critical;
    __kmpc_end_critical => end_critical;
    __kmpc_single => single;
    __kmpc_end_single => nothing;
    __kmpc_master => master;
    __kmpc_end_master => nothing;
    __kmpc_masked => masked;
    __kmpc_end_masked => nothing;
    __kmpc_ordered => ordered;
    __kmpc_end_ordered => nothing;
    __kmpc_doacross_init => doacross_init;
    __kmpc_doacross_post => doacross_post;
    __kmpc_doacross_wait => doacross_wait;
    __kmpc_doacross_fini => doacross_end;
    __kmpc_reduce => reduce;
    __kmpc_end_reduce => end_reduce;
    __kmpc_reduce_nowait => reduce;
    __kmpc_end_reduce_nowait => end_reduce_nowait;
    __kmpc_copyprivate => copyprivate;
}
