//! What a program or a debugger may ask: of the report under way (`__tsan_get_report_…`, from `__tsan_on_report`), of addresses,
//! of the calling thread's stack.
//!
//! A report is its message; an answer is read out of that. Texts and traces that are handed out live as long as the report.

use super::reporter::{bytes, question};
use super::sources::{self, DEEPEST};
use super::{CURRENT, CURRENT_WORDS, REPORTING, exclusively, output, plain, tags};
use crate::system::memory::List;
use crate::system::sys;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::*;
use rashomon_abi::report::{HEAD_WORDS, Items, Reader, access, item, kind, location, thread, warning};

/// Bytes of a frame format.
const LONGEST_FORMAT: usize = 256;

/// The items of one code of a report.
fn items(report: *const u64, code: u32) -> impl Iterator<Item = Reader<'static>> {
    let current = CURRENT.load(Acquire);
    let words: &[u64] = if report.is_null() || current.cast_const() != report {
        &[]
    } else {
        // SAFETY: the message of the report under way, which stays until the program's callback returns.
        unsafe { core::slice::from_raw_parts(current, CURRENT_WORDS.load(Relaxed)) }
    };
    Items::new(words.get(HEAD_WORDS..).unwrap_or_default()).filter(move |&(found, _)| found == code).map(|(_, words)| words)
}

/// Stores through a pointer of the program's that may be null.
unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by the caller: null or a place for the value.
        unsafe { place.write(value) };
    }
}

/// Copies a stack, ended by a null if there is room.
unsafe fn store_trace(trace: *mut usize, size: usize, stack: impl Iterator<Item = u64>) {
    if trace.is_null() {
        return;
    }
    for (place, address) in stack.chain(core::iter::once(0)).take(size).enumerate() {
        // SAFETY: by the caller: `size` words.
        unsafe { trace.add(place).write(address as usize) };
    }
}

/// What the current report is, for debuggers: the argument of the functions below; null when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_current_report() -> *mut c_void {
    // Other threads' reports are none of this one's.
    if REPORTING.load(Relaxed) == sys::thread_id() { CURRENT.load(Acquire).cast() } else { core::ptr::null_mut() }
}

fn description(kind: u64) -> &'static CStr {
    match kind {
        warning::RACE => c"data-race",
        warning::VPTR_RACE => c"data-race-vptr",
        warning::USE_AFTER_FREE => c"heap-use-after-free",
        warning::VPTR_USE_AFTER_FREE => c"heap-use-after-free-vptr",
        warning::EXTERNAL_RACE => c"external-race",
        warning::THREAD_LEAK => c"thread-leak",
        warning::MUTEX_DESTROY_LOCKED => c"locked-mutex-destroy",
        warning::MUTEX_DOUBLE_LOCK => c"mutex-double-lock",
        warning::MUTEX_INVALID => c"mutex-invalid-access",
        warning::MUTEX_BAD_UNLOCK => c"mutex-bad-unlock",
        warning::MUTEX_BAD_READ_LOCK => c"mutex-bad-read-lock",
        warning::MUTEX_BAD_READ_UNLOCK => c"mutex-bad-read-unlock",
        warning::SIGNAL_UNSAFE => c"signal-unsafe-call",
        warning::ERRNO_IN_SIGNAL => c"errno-in-signal-handler",
        warning::DEADLOCK => c"lock-order-inversion",
        warning::MUTEX_WRONG_CONTEXT => c"mutex-held-in-wrong-context",
        _ => c"",
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_data(
    report: *const u64,
    text: *mut *const c_char,
    count: *mut c_int,
    stacks: *mut c_int,
    accesses: *mut c_int,
    locations: *mut c_int,
    mutexes: *mut c_int,
    threads: *mut c_int,
    unique_threads: *mut c_int,
    sleep: *mut usize,
    size: usize,
) -> c_int {
    let mut head = items(report, item::HEAD).next().unwrap_or(Reader::new(&[]));
    let of = |code| items(report, code).count() as c_int;
    // SAFETY: the program's own places.
    unsafe {
        store(text, description(head.word()).as_ptr());
        store(count, head.word() as c_int);
        store(stacks, of(item::STACK));
        store(accesses, of(item::ACCESS));
        store(locations, of(item::LOCATION));
        store(mutexes, of(item::MUTEX));
        store(threads, of(item::THREAD));
        store(unique_threads, of(item::UNIQUE_THREAD));
        if let Some(mut slept) = items(report, item::SLEEP).next() {
            store_trace(sleep, size, slept.stack());
        }
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_tag(report: *const u64, tag: *mut usize) -> c_int {
    let Some(mut head) = items(report, item::HEAD).next() else { return 0 };
    [(); 3].iter().for_each(|()| _ = head.word());
    // SAFETY: the program's own place.
    unsafe { store(tag, head.word() as usize) };
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_stack(report: *const u64, index: usize, trace: *mut usize, size: usize) -> c_int {
    let Some(mut words) = items(report, item::STACK).nth(index) else { return 0 };
    words.word();
    // SAFETY: the program's own places.
    unsafe { store_trace(trace, size, words.stack()) };
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_mop(
    report: *const u64,
    index: usize,
    by: *mut c_int,
    address: *mut usize,
    bytes: *mut c_int,
    write: *mut c_int,
    atomic: *mut c_int,
    trace: *mut usize,
    size: usize,
) -> c_int {
    let Some(mut words) = items(report, item::ACCESS).nth(index) else { return 0 };
    let flags = words.word();
    // SAFETY: the program's own places.
    unsafe {
        store(address, words.word() as usize);
        store(bytes, words.word() as c_int);
        store(by, words.word() as c_int);
        store(write, c_int::from(flags & access::WRITE != 0));
        store(atomic, c_int::from(flags & access::ATOMIC != 0));
        words.word();
        words.words();
        store_trace(trace, size, words.stack());
    }
    1
}

fn kind_of_place(kind: u64) -> &'static CStr {
    match kind {
        location::HEAP => c"heap",
        location::STACK => c"stack",
        location::TLS => c"tls",
        location::DESCRIPTOR => c"fd",
        _ => c"global",
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_loc(
    report: *const u64,
    index: usize,
    kind: *mut *const c_char,
    address: *mut usize,
    start: *mut usize,
    bytes: *mut usize,
    by: *mut c_int,
    descriptor: *mut c_int,
    suppressable: *mut c_int,
    trace: *mut usize,
    size: usize,
) -> c_int {
    let Some(mut words) = items(report, item::LOCATION).nth(index) else { return 0 };
    let place = words.word();
    // SAFETY: the program's own places.
    unsafe {
        store(kind, kind_of_place(place).as_ptr());
        let asked = words.word() as usize;
        store(address, if place == location::STATIC { asked } else { 0 });
        store(start, words.word() as usize);
        store(bytes, words.word() as usize);
        store(by, words.word() as c_int);
        store(descriptor, words.word() as c_int);
        store(suppressable, c_int::from(place == location::STATIC));
        words.word();
        words.word();
        store_trace(trace, size, words.stack());
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_loc_object_type(report: *const u64, index: usize, kind: *mut *const c_char) -> c_int {
    let Some(mut words) = items(report, item::LOCATION).nth(index) else { return 0 };
    [(); 7].iter().for_each(|()| _ = words.word());
    let text = tags::get(words.word() as u32).map_or(core::ptr::null(), |(object, _)| object.as_ptr());
    // SAFETY: the program's own place.
    unsafe { store(kind, text.cast()) };
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_mutex(
    report: *const u64,
    index: usize,
    id: *mut usize,
    address: *mut usize,
    destroyed: *mut c_int,
    trace: *mut usize,
    size: usize,
) -> c_int {
    let Some(mut words) = items(report, item::MUTEX).nth(index) else { return 0 };
    // SAFETY: the program's own places.
    unsafe {
        store(id, index);
        store(address, words.word() as usize);
        store(destroyed, (words.word() & 1) as c_int);
        store_trace(trace, size, words.stack());
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_thread(
    report: *const u64,
    index: usize,
    number: *mut c_int,
    id: *mut u64,
    running: *mut c_int,
    name: *mut *const c_char,
    parent: *mut c_int,
    trace: *mut usize,
    size: usize,
) -> c_int {
    let Some(mut words) = items(report, item::THREAD).nth(index) else { return 0 };
    // SAFETY: the program's own places.
    unsafe {
        store(number, words.word() as c_int);
        store(id, words.word());
        store(running, c_int::from(words.word() & thread::RUNNING != 0));
        store(parent, words.word() as c_int);
        // Texts of messages end with a zero.
        store(name, words.packed_text().0.as_ptr().cast());
        store_trace(trace, size, words.stack());
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_report_unique_tid(report: *const u64, index: usize, number: *mut c_int) -> c_int {
    let Some(mut words) = items(report, item::UNIQUE_THREAD).nth(index) else { return 0 };
    // SAFETY: the program's own place.
    unsafe { store(number, words.word() as c_int) };
    1
}

/// What an address belongs to: the kind of region, its beginning and size, and a variable's name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_locate_address(
    address: u64,
    name: *mut u8,
    name_size: usize,
    start: *mut usize,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: the program's own places.
    unsafe {
        if !name.is_null() && name_size > 0 {
            name.write(0);
        }
        if let Some(block) = sources::heap(address) {
            store(start, block.start as usize);
            store(size, block.size as usize);
            return c"heap".as_ptr();
        }
        if let Some((number, stack)) = sources::owner(address) {
            let (low, high) = sources::thread(number)
                .map_or((0, 0), |thread| if stack { thread.stack.get() } else { sources::thread_local(thread) });
            store(start, low as usize);
            store(size, (high - low) as usize);
            return if stack { c"stack" } else { c"tls" }.as_ptr();
        }
        if within(|| {
            symbol(address, c"%g", |mut data, _| {
                store(start, data.word() as usize);
                store(size, data.word() as usize);
                copy(bytes(data.packed_text()), name, name_size);
            })
        })
        .is_none()
        {
            store(start, 0);
            store(size, 0);
        }
        c"global".as_ptr()
    }
}

/// Where the block of the heap that holds an address was allocated: the number of return addresses, and the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_get_alloc_stack(
    address: u64,
    trace: *mut usize,
    size: usize,
    number: *mut c_int,
    id: *mut u64,
) -> c_int {
    let Some(block) = sources::heap(address) else { return 0 };
    let mut stack = List::new();
    (0..DEEPEST).for_each(|_| stack.push(0_u64));
    let count = sources::walk(block.stack, stack.as_mut_slice()).min(size);
    // SAFETY: the program's own places.
    unsafe {
        store_trace(trace, size, stack.as_slice()[..count].iter().copied());
        store(number, block.thread as c_int);
        store(id, sources::thread(block.thread).map_or(0, |thread| u64::from(thread.kernel_id.get())));
    }
    stack.clear_and_free();
    count as c_int
}

/// Under the lock of reports, also inside a report's callback.
fn within<R>(body: impl FnOnce() -> R) -> R {
    if REPORTING.load(Relaxed) == sys::thread_id() { body() } else { exclusively(body) }
}

unsafe fn format_of(format: *const c_char) -> &'static [u8] {
    if format.is_null() {
        return b"";
    }
    // SAFETY: a terminated text of the program's, used during its call.
    let text = unsafe { CStr::from_ptr(format) }.to_bytes();
    &text[..text.len().min(LONGEST_FORMAT)]
}

/// Copies a text, terminated; cut if there is no room.
unsafe fn copy(text: &[u8], into: *mut u8, size: usize) {
    if into.is_null() || size == 0 {
        return;
    }
    for (place, &byte) in text.iter().take(size - 1).chain(core::iter::once(&0)).enumerate() {
        // SAFETY: by the caller: `size` bytes.
        unsafe { into.add(place).write(byte) };
    }
}

/// The variable at an address, if the reporter knows one: its words (first address, size, name) and its text.
fn symbol<R>(address: u64, format: &CStr, then: impl FnOnce(Reader<'_>, &[u8]) -> R) -> Option<R> {
    // SAFETY: terminated.
    let format = unsafe { format_of(format.as_ptr()) };
    let body = question(kind::SYMBOLIZE_DATA, |writer| {
        writer.item(item::ADDRESS);
        writer.word(address);
        writer.item(item::FORMAT);
        writer.text(format);
    })?;
    let of = |wanted: u32| Items::new(body).find(move |&(code, _)| code == wanted).map(|(_, words)| words);
    let text = of(item::TEXT).map_or(&b""[..], |mut words| bytes(words.packed_text()));
    Some(then(of(item::DATA)?, text))
}

fn frames<R>(stack: &[u64], format: &[u8], then: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let body = question(kind::SYMBOLIZE, |writer| {
        writer.item(item::STACK);
        writer.word(0);
        writer.stack(&stack[..stack.len().min(512)]);
        writer.item(item::FORMAT);
        writer.text(format);
    })?;
    let text = Items::new(body).find(|&(code, _)| code == item::TEXT)?.1.packed_text();
    Some(then(bytes(text)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_symbolize_pc(address: u64, format: *const c_char, into: *mut u8, size: usize) {
    // SAFETY: the program's own texts and places.
    unsafe {
        let format = format_of(format);
        let found = within(|| frames(&[address], format, |text| copy(text, into, size)));
        if found.is_none() {
            copy(b"<can't symbolize>", into, size);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_symbolize_global(address: u64, format: *const c_char, into: *mut u8, size: usize) {
    if format.is_null() {
        return;
    }
    // SAFETY: the program's own texts and places.
    unsafe {
        let format = CStr::from_ptr(format);
        if within(|| symbol(address, format, |_, text| copy(text, into, size))).is_none() {
            copy(b"", into, size);
        }
    }
}

/// The calling thread's stack, where reports go.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_print_stack_trace() {
    let mut stack = List::new();
    (0..DEEPEST).for_each(|_| stack.push(0_u64));
    let count = sources::own_stack(stack.as_mut_slice());
    within(|| print_stack(&stack.as_slice()[..count]));
    stack.clear_and_free();
}

/// A stack as in a report. Under the lock of reports.
pub fn print_stack(stack: &[u64]) {
    if stack.is_empty() || frames(stack, b"", output::text).is_none() {
        plain::stack(stack);
    }
}
