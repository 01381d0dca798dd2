//! What streams of `stdio.h` hand from thread to thread: a call that takes in from one acquires the file under it, a call that
//! gives out releases it.
//!
//! Only files that threads can meet at count: pipes, sockets and their like. Of the standard three only a pipe or a socket that
//! the process made itself, so that a re-execution with other standard files counts the same events. Calls on all others cost a
//! look at a table, and leave no event; bytes that a thread takes from what it read itself leave none either. Bytes that are put
//! are released call by call: another thread may be the one that flushes them.
//!
//! In serial mode a thread that needs more than the stream holds waits in the model first. The stream's buffer is looked at for
//! that: its layout is part of glibc's interface, as `getc_unlocked` is compiled into programs.

use super::descriptors::{Interruption, Kind, POLLIN, POLLOUT, Ready, lets_go_on, look, poll_now, wait_for_files};
use crate::detect;
use crate::record::external;
use crate::record::recorder;
use crate::serial::sched::{self, PollFile};
use crate::serial::world;
use crate::system::config;
use crate::system::real::real;
use crate::system::thread::Runtime;
use crate::system::tls::{caller, hot};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, sync_source};

const KNOWN_FILES: usize = 1024;
const SILENT: u8 = 1;
const ORDERS: u8 = 2;

/// What is known of a descriptor: 0 is nothing.
static KNOWN: [AtomicU8; KNOWN_FILES] = [const { AtomicU8::new(0) }; KNOWN_FILES];
/// Number + 1 of the thread that read last what the stream over a descriptor holds.
static FILLED_BY: [AtomicU32; KNOWN_FILES] = [const { AtomicU32::new(0) }; KNOWN_FILES];

/// A descriptor may name another file from now on.
pub fn forget(file: c_int) {
    if let Some(known) = KNOWN.get(file as usize) {
        known.store(0, Relaxed);
        FILLED_BY[file as usize].store(0, Relaxed);
    }
}

#[cold]
fn asked(file: c_int) -> u8 {
    let descriptor = look(file);
    let orders = match descriptor.kind {
        Kind::Direct | Kind::Device | Kind::Queue => false,
        Kind::Pipe | Kind::Socket | Kind::Other => !descriptor.is_standard() || external::ordinal(descriptor.identity).is_some(),
    };
    if orders { ORDERS } else { SILENT }
}

/// The descriptor under a stream, if its file orders threads and the caller is one that counts.
fn file_of(stream: usize) -> Option<c_int> {
    const FILE: usize = 112;
    if stream == 0 || !hot().is_outside() {
        return None;
    }
    // SAFETY: a stream of the library's, whose descriptor lies there.
    let file = unsafe { ((stream + FILE) as *const c_int).read() };
    let Some(known) = KNOWN.get(file as usize) else {
        return (file >= 0 && asked(file) == ORDERS).then_some(file);
    };
    let mut state = known.load(Relaxed);
    if state == 0 {
        let _runtime = Runtime::try_enter()?;
        state = asked(file);
        known.store(state, Relaxed);
    }
    (state == ORDERS).then_some(file)
}

/// How much a call takes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    Bytes(usize),
    /// Up to this byte, or so many.
    Until(u8, usize),
    /// That is not known before.
    Unknown,
}

/// Whether the stream holds what a call wants, so that it does not read.
fn holds(stream: usize, wants: Wants) -> bool {
    const END_SEEN: u32 = 0x10;
    const PUT_BACK: u32 = 0x100;
    // SAFETY: the same: what it has read, and not handed out, lies between these.
    let [from, to] = unsafe { ((stream + 8) as *const [usize; 2]).read() };
    let held = to.saturating_sub(from);
    // SAFETY: its flags are its first word.
    if unsafe { (stream as *const u32).read() } & (END_SEEN | PUT_BACK) != 0 {
        // Nothing is read any more; or what was put back lies before what was read, where this cannot be told.
        return true;
    }
    match wants {
        Wants::Bytes(bytes) => bytes <= held,
        Wants::Until(end, most) => {
            let looked_at = held.min(most);
            // SAFETY: bytes that the stream holds.
            let found =
                looked_at > 0 && unsafe { real!(fn memchr(usize, c_int, usize) -> usize)(from, end as c_int, looked_at) } != 0;
            found || most <= held
        }
        Wants::Unknown => false,
    }
}

/// The frame of a call that takes in from a stream.
pub fn takes<R>(stream: usize, wants: Wants, real: impl FnOnce() -> R) -> R {
    let site = caller();
    let Some(file) = file_of(stream) else { return real() };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let thread = runtime.thread();
    let filled_by = FILLED_BY.get(file as usize);
    let held = holds(stream, wants);
    if held && filled_by.is_some_and(|by| by.load(Relaxed) == thread.number.get() + 1) {
        return runtime.outside(real);
    }
    let descriptor = look(file);
    sched::point(&runtime, Op::Acquire, descriptor.object(), site);
    let mut ready = Ready::Yes;
    if config::serial() && !held {
        if descriptor.kind == Kind::Socket {
            world::polls(file);
        }
        let mut files = [PollFile { file, events: POLLIN, returned: 0 }];
        if poll_now(&mut files) == 0 && !descriptor.is_nonblocking() {
            ready = match wants {
                Wants::Unknown => Ready::No,
                _ => wait_for_files(&runtime, &mut files, descriptor.deadline(POLLIN), Interruption::ByFlag, site, |files| {
                    poll_now(files) != 0
                }),
            };
        }
    }
    let result = if config::serial() && ready == Ready::Yes { runtime.outside(real) } else { sched::external(&runtime, real) };
    if let Some(by) = filled_by {
        by.store(thread.number.get() + 1, Relaxed);
    }
    recorder::sync(thread, Op::Acquire, descriptor.object(), sync_source::FILE, site, &[]);
    if detect::on() {
        thread.with_own(|own| detect::descriptors::moves_data(own, true, site));
    }
    thread.spins.set(0);
    sched::files_moved();
    result
}

/// The frame of a call that gives out to a stream.
pub fn gives<R>(stream: usize, real: impl FnOnce() -> R) -> R {
    let site = caller();
    let Some(file) = file_of(stream) else { return real() };
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let thread = runtime.thread();
    let descriptor = look(file);
    if detect::on() {
        thread.with_own(|own| detect::descriptors::moves_data(own, false, site));
    }
    sched::point(&runtime, Op::Release, descriptor.object(), site);
    lets_go_on(thread, &descriptor, site);
    let mut files = [PollFile { file, events: POLLOUT, returned: 0 }];
    let result =
        if config::serial() && poll_now(&mut files) != 0 { runtime.outside(real) } else { sched::external(&runtime, real) };
    thread.spins.set(0);
    sched::files_moved();
    result
}

/// `stdin` and `stdout` of the program.
pub fn standard_input() -> usize {
    unsafe extern "C" {
        static stdin: usize;
    }
    // SAFETY: the library's own variable.
    unsafe { (&raw const stdin).read_volatile() }
}

pub fn standard_output() -> usize {
    unsafe extern "C" {
        static stdout: usize;
    }
    // SAFETY: the library's own variable, too.
    unsafe { (&raw const stdout).read_volatile() }
}

macro_rules! streams {
    (($frame:expr) $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty, $stream:expr $(, $wants:expr)?;)*) => { $(
        #[allow(non_snake_case, reason = "named as the function")]
        pub mod $name {
            #[allow(unused_imports, reason = "what rows may use")]
            use super::*;

            pub unsafe extern "C" fn call($($argument: $kind),*) -> $result {
                // SAFETY: the function itself with the program's arguments.
                $frame($stream, $($wants,)? || unsafe { real!(fn $name($($kind),*) -> $result)($($argument),*) })
            }
        }
    )* };
}

macro_rules! streams_seen_here {
    (($frame:expr) $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty, $stream:expr $(, $wants:expr)?;)*) => {
        streams! { ($frame) $($name($($argument: $kind),*) -> $result, $stream $(, $wants)?;)* }
        crate::intercept::interpose! { $($name => $name::call;)* }
    };
}

/// Items of a size, as one number of bytes.
const fn bytes(size: usize, count: usize) -> Wants {
    Wants::Bytes(size.saturating_mul(count))
}

/// A line of at most so many characters and the end.
fn line(most: c_int) -> Wants {
    Wants::Until(b'\n', most.max(1) as usize - 1)
}

const ONE: Wants = Wants::Bytes(1);

// What is told of their memory is in `effects`.
streams! { (takes)
    fgets(to: usize, most: c_int, stream: usize) -> usize, stream, line(most);
    fgets_unlocked(to: usize, most: c_int, stream: usize) -> usize, stream, line(most);
    __fgets_chk(to: usize, room: usize, most: c_int, stream: usize) -> usize, stream, line(most);
    fgetws(to: usize, most: c_int, stream: usize) -> usize, stream, Wants::Unknown;
    fread(to: usize, size: usize, count: usize, stream: usize) -> usize, stream, bytes(size, count);
    fread_unlocked(to: usize, size: usize, count: usize, stream: usize) -> usize, stream, bytes(size, count);
    __fread_chk(to: usize, room: usize, size: usize, count: usize, stream: usize) -> usize, stream, bytes(size, count);
}

streams! { (gives)
    fwrite(from: usize, size: usize, count: usize, stream: usize) -> usize, stream;
    fwrite_unlocked(from: usize, size: usize, count: usize, stream: usize) -> usize, stream;
    fputs(text: usize, stream: usize) -> c_int, stream;
    fputs_unlocked(text: usize, stream: usize) -> c_int, stream;
    fputws(text: usize, stream: usize) -> c_int, stream;
    puts(text: usize) -> c_int, standard_output();
}

streams_seen_here! { (takes)
    fgetc(stream: usize) -> c_int, stream, ONE;
    getc(stream: usize) -> c_int, stream, ONE;
    _IO_getc(stream: usize) -> c_int, stream, ONE;
    getchar() -> c_int, standard_input(), ONE;
    fgetc_unlocked(stream: usize) -> c_int, stream, ONE;
    getc_unlocked(stream: usize) -> c_int, stream, ONE;
    getchar_unlocked() -> c_int, standard_input(), ONE;
    __uflow(stream: usize) -> c_int, stream, ONE;
    __underflow(stream: usize) -> c_int, stream, ONE;
    getw(stream: usize) -> c_int, stream, Wants::Bytes(4);
    fgetwc(stream: usize) -> u32, stream, Wants::Unknown;
    getwc(stream: usize) -> u32, stream, Wants::Unknown;
    getwchar() -> u32, standard_input(), Wants::Unknown;
    fgetwc_unlocked(stream: usize) -> u32, stream, Wants::Unknown;
    getwc_unlocked(stream: usize) -> u32, stream, Wants::Unknown;
}

streams_seen_here! { (gives)
    fputc(byte: c_int, stream: usize) -> c_int, stream;
    putc(byte: c_int, stream: usize) -> c_int, stream;
    _IO_putc(byte: c_int, stream: usize) -> c_int, stream;
    putchar(byte: c_int) -> c_int, standard_output();
    fputc_unlocked(byte: c_int, stream: usize) -> c_int, stream;
    putc_unlocked(byte: c_int, stream: usize) -> c_int, stream;
    putchar_unlocked(byte: c_int) -> c_int, standard_output();
    __overflow(stream: usize, byte: c_int) -> c_int, stream;
    putw(word: c_int, stream: usize) -> c_int, stream;
    fputwc(character: u32, stream: usize) -> u32, stream;
    putwc(character: u32, stream: usize) -> u32, stream;
    putwchar(character: u32) -> u32, standard_output();
    fputwc_unlocked(character: u32, stream: usize) -> u32, stream;
    putwc_unlocked(character: u32, stream: usize) -> u32, stream;
    fflush(stream: usize) -> c_int, stream;
    fflush_unlocked(stream: usize) -> c_int, stream;
}
