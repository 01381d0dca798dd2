//! Tasks as gcc calls for them: `GOMP_task`, `GOMP_taskloop` and their kin, whose names are in [`super::gomp`].

use super::Call;
use super::data::Vector;
use super::gomp::Function;
use super::gomp_loops::refuse_reductions;
use super::settings::Kind;
use super::shares::Loop;
use super::tasks::{self, Clauses, Code, Item, Pieces, Use};
use super::team::member;
use crate::system::sys;
use core::ffi::c_int;
use rashomon_abi::record::Op;

/// Flags of a task.
mod flag {
    pub const FINAL: u32 = 2;
    pub const DEPEND: u32 = 8;
    pub const UP: u32 = 1 << 8;
    pub const GRAIN_SIZE: u32 = 1 << 9;
    pub const IF: u32 = 1 << 10;
    pub const NO_GROUP: u32 = 1 << 11;
    pub const REDUCTION: u32 = 1 << 12;
    pub const DETACH: u32 = 1 << 13;
    pub const STRICT: u32 = 1 << 14;
}

/// What a task depends on.
unsafe fn dependences(of: *const usize) -> Vector<Item> {
    /// Kinds of objects that dependences are read from.
    const IN: usize = 1;
    const IN_OUT_SET: usize = 5;
    let all = Vector::new();
    if of.is_null() {
        return all;
    }
    let item = |address: usize, uses| Item { address: address as u64, uses };
    let of_two = |writes| if writes { Use::Writes } else { Use::Reads };
    // SAFETY: the compiler's array, of the first word's length, or, if that is 0, the second one's.
    unsafe {
        let at = |index: usize| *of.add(index);
        if at(0) != 0 {
            // Those that are written come first.
            (0..at(0)).for_each(|index| all.push(item(at(2 + index), of_two(index < at(1)))));
            return all;
        }
        let (total, out, exclusive, read) = (at(1), at(2), at(3), at(4));
        for index in 0..total {
            let word = at(5 + index);
            all.push(if index < out + exclusive + read {
                item(word, of_two(index < out + exclusive))
            } else {
                // An object: the address and the kind.
                let object = word as *const usize;
                let uses = match *object.add(1) {
                    IN => Use::Reads,
                    IN_OUT_SET => Use::Joins,
                    _ => Use::Writes,
                };
                item(*object, uses)
            });
        }
    }
    all
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
pub unsafe extern "C" fn task(
    function: Function,
    data: *mut u8,
    copy: Option<unsafe extern "C" fn(*mut u8, *mut u8)>,
    bytes: i64,
    alignment: i64,
    deferred: bool,
    flags: u32,
    depends: *const usize,
    _priority: c_int,
    _detach: *mut u8,
) {
    let call = Call::current();
    if flags & flag::DETACH != 0 {
        sys::die(&[b"detached tasks are not covered: run the program without observation"]);
    }
    let (new, place) = tasks::prepare(call, Code::Function(function), bytes.max(0) as usize, alignment.max(1) as usize);
    // SAFETY: the compiler passes data of that many bytes, and dependences if the flag says so.
    unsafe {
        match copy {
            Some(copy) => copy(place, data),
            None => core::ptr::copy_nonoverlapping(data, place, bytes.max(0) as usize),
        }
        let on = dependences(if flags & flag::DEPEND != 0 { depends } else { core::ptr::null() });
        tasks::submit(call, new, &Clauses { at_once: !deferred, is_final: flags & flag::FINAL != 0, depends: on.as_slice() });
        on.free();
    }
}

pub unsafe extern "C" fn taskwait() {
    tasks::wait(Call::current());
}

pub unsafe extern "C" fn taskwait_depend(depends: *const usize) {
    // SAFETY: the compiler passes an array of dependences.
    let on = unsafe { dependences(depends) };
    tasks::wait_for(Call::current(), on.as_slice());
    on.free();
}

pub unsafe extern "C" fn taskyield() {
    Call::current().enter().does(Op::Yield, 0, 0, &[]);
}

pub unsafe extern "C" fn taskgroup_start() {
    tasks::begin_group(Call::current());
}

pub unsafe extern "C" fn taskgroup_end() {
    tasks::end_group(Call::current());
}

/// Iterations of a `taskloop` are cut into tasks, each with its first and last value at the beginning of its data.
#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
unsafe fn loop_of_tasks(
    call: Call,
    function: Function,
    data: *mut u8,
    copy: Option<unsafe extern "C" fn(*mut u8, *mut u8)>,
    bytes: usize,
    alignment: usize,
    flags: u32,
    count: u64,
    iterations: Loop,
) {
    if flags & flag::REDUCTION != 0 {
        refuse_reductions(data.cast());
    }
    if iterations.total == 0 {
        return;
    }
    let pieces = match count {
        0 => Pieces::Count(u64::from(member().size())),
        size if flags & flag::GRAIN_SIZE != 0 => Pieces::of_size(size, flags & flag::STRICT != 0),
        count => Pieces::Count(count),
    };
    let grouped = flags & flag::NO_GROUP == 0;
    if grouped {
        tasks::begin_group(call);
    }
    for (from, to) in pieces.of(iterations.total) {
        let (new, place) = tasks::prepare(call, Code::Function(function), bytes, alignment);
        // SAFETY: the place has as many bytes as the compiler's data, which begin with the range.
        unsafe {
            match copy {
                Some(copy) => copy(place, data),
                None => core::ptr::copy_nonoverlapping(data, place, bytes),
            }
            let range = place.cast::<u64>();
            *range = iterations.value(from);
            *range.add(1) = iterations.value(to);
        }
        let clauses = Clauses { at_once: flags & flag::IF == 0, is_final: flags & flag::FINAL != 0, depends: &[] };
        tasks::submit(call, new, &clauses);
    }
    if grouped {
        tasks::end_group(call);
    }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
pub unsafe extern "C" fn taskloop(
    function: Function,
    data: *mut u8,
    copy: Option<unsafe extern "C" fn(*mut u8, *mut u8)>,
    bytes: i64,
    alignment: i64,
    flags: u32,
    count: u64,
    _priority: c_int,
    start: i64,
    end: i64,
    step: i64,
) {
    let iterations = Loop::signed(start, end, step, Kind::Static, 0);
    // SAFETY: what the compiler passes for a loop of tasks.
    unsafe {
        loop_of_tasks(Call::current(), function, data, copy, bytes as usize, alignment as usize, flags, count, iterations);
    }
}

#[allow(clippy::too_many_arguments, reason = "the compiler's interface")]
pub unsafe extern "C" fn taskloop_unsigned(
    function: Function,
    data: *mut u8,
    copy: Option<unsafe extern "C" fn(*mut u8, *mut u8)>,
    bytes: i64,
    alignment: i64,
    flags: u32,
    count: u64,
    _priority: c_int,
    start: u64,
    end: u64,
    step: u64,
) {
    let iterations = Loop::unsigned(flags & flag::UP != 0, start, end, step, Kind::Static, 0);
    // SAFETY: the same for iterations without a sign.
    unsafe {
        loop_of_tasks(Call::current(), function, data, copy, bytes as usize, alignment as usize, flags, count, iterations);
    }
}
