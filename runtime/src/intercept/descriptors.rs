//! What a file descriptor names, whether using it may block, and the frame of every call that transfers data through one.
//!
//! Regular files, directories and block devices never block: calls on them are the real calls and leave no event. Everything else
//! is one event per call, on completion, whatever comes of it: `Release` for what lets others go on, recorded before they can see
//! it, `Acquire` for what takes something in, `Blocking` for calls that failed. The object is the file's identity, not the
//! descriptor's number: of the process's own pipes, its ordinal, so that re-executions agree; of others, device and
//! inode. Sockets are one object, as their two ends have no identity in common, but for connections that the process has with
//! itself ([`connections`]). Descriptors 0 to 2 leave an event whatever they are, so that a re-execution with other standard
//! files counts the same events. Where they are a device, such as a terminal, each is an object of its own: who reads what is
//! typed is not behind what was printed there, nor is a reader of `/dev/null` behind its writers.
//!
//! In serial mode a thread asks poll(2) first and blocks in the model until the file is ready. Then it makes the call with the
//! turn in its hands. Writes to pipes and streams go in pieces of [`PIECE`] bytes, which a ready pipe takes at once; each piece
//! is a write of its own.

use crate::detect;
use crate::detect::descriptors::{Close, Use};
use crate::intercept::hooks;
use crate::intercept::identities::{self, Answer};
use crate::intercept::lives::{self, Number};
use crate::record::connections::{self, End};
use crate::record::external;
use crate::record::{origin, recorder};
use crate::serial::clock::{self, NEVER};
use crate::serial::sched::{self, PollFile, Wait, WaitFor, Wake};
use crate::serial::{explore, preconditions, replay, world};
use crate::system::real::{errno, set_errno};
use crate::system::sys::{self, syscall};
use crate::system::thread::{Runtime, Thread};
use crate::system::{config, header, signals};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use external::Identity;
use rashomon_abi::header::field;
use rashomon_abi::record::{AccessClass, Op, allocation_kind, descriptor_address, sync_source};

pub const POLLIN: i16 = 1;
pub const POLLPRI: i16 = 2;
pub const POLLOUT: i16 = 4;
pub const EINTR: c_int = 4;
const EBADF: c_int = 9;
pub const EAGAIN: c_int = 11;
/// `PIPE_BUF`
pub const PIECE: usize = 4096;
pub const SOCKETS: u64 = 1 << 47;
const CONNECTION: u64 = 1 << 45;
const STANDARD: u64 = 1 << 44;
const SO_TYPE: usize = 3;
const SO_RCVTIMEO: usize = 20;
const SO_SNDTIMEO: usize = 21;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never blocks; also descriptors that are none.
    Direct,
    Pipe,
    Socket,
    Device,
    /// Of messages.
    Queue,
    Other,
}

#[derive(Clone, Copy)]
pub struct Descriptor {
    pub file: c_int,
    pub kind: Kind,
    pub identity: Identity,
    /// Device number of a character device.
    device: u64,
    counts_events: bool,
}

pub fn look(file: c_int) -> Descriptor {
    const NONE: Identity = Identity { device: 0, inode: 0 };
    let mut device = 0;
    let answer = identities::of(file, || {
        let status = external::status(file)?;
        device = status.device;
        let kind = match status.kind {
            0o100_000 | 0o040_000 | 0o060_000 => Kind::Direct,
            0o010_000 => Kind::Pipe,
            0o140_000 => Kind::Socket,
            0o020_000 => Kind::Device,
            _ => Kind::Other,
        };
        Some(Answer { kind, identity: status.identity, counts_events: kind == Kind::Other && is_event_counter(file) })
    });
    let Some(Answer { kind, identity, counts_events }) = answer else {
        return Descriptor { file, kind: Kind::Direct, identity: NONE, device, counts_events: false };
    };
    Descriptor { file, kind, identity, device, counts_events }
}

/// An eventfd or a set of epoll: what comes out of it was put in by this process.
fn is_event_counter(file: c_int) -> bool {
    let mut room = [0; 32];
    matches!(origin::target(file, &mut room), b"anon_inode:[eventfd]" | b"anon_inode:[eventpoll]")
}

impl Descriptor {
    pub fn is_standard(&self) -> bool {
        (0..=2).contains(&self.file)
    }
    /// Calls leave no event.
    pub fn is_silent(&self) -> bool {
        self.kind == Kind::Direct && !self.is_standard()
    }
    /// Whom writes and reads of the file meet at.
    pub fn object(&self) -> u64 {
        if self.kind == Kind::Socket {
            let end = connections::end(self.identity);
            return if let End::Known(connection) = end { SOCKETS | CONNECTION | connection } else { SOCKETS };
        }
        if let Some(ordinal) = external::ordinal(self.identity) {
            return SOCKETS | ordinal;
        }
        if self.kind == Kind::Device && self.is_standard() {
            return SOCKETS | STANDARD | self.file as u64;
        }
        let mixed = (self.identity.inode ^ self.identity.device.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        SOCKETS | 1 << 46 | mixed >> 18
    }
    /// What is read here may come from another process, or be another thing the next time.
    fn is_outside(&self) -> bool {
        match self.kind {
            Kind::Direct => false,
            Kind::Pipe | Kind::Socket | Kind::Queue => !external::is_own(self.identity),
            // null, zero, full
            Kind::Device => !matches!(self.device, 0x103 | 0x105 | 0x107),
            Kind::Other => !self.counts_events || header::word(field::FORKS).load(Relaxed) != 0,
        }
    }
    /// A socket that something else writes to than this process.
    fn comes_from_world(&self) -> bool {
        self.kind == Kind::Socket && self.object() == SOCKETS
    }
    pub fn is_nonblocking(&self) -> bool {
        self.flags() & 0o4000 != 0
    }
    /// What it was opened with; 0 if it is none.
    fn flags(&self) -> isize {
        // SAFETY: F_GETFL.
        unsafe { syscall!(sys::FCNTL, self.file, 3usize, 0usize) }.max(0)
    }
    /// A call in this direction fails at once: it was opened for the other one. poll(2) would wait.
    pub fn refuses(&self, events: i16) -> bool {
        const MODE: isize = 3;
        let mode = self.flags() & MODE;
        if events & POLLIN != 0 { mode == 1 } else { self.kind == Kind::Pipe && mode == 0 }
    }
    fn socket_option(&self, option: usize, value: &mut [i64; 2]) -> bool {
        let mut length = 16u32;
        // SAFETY: SOL_SOCKET is 1; a local buffer with its length.
        unsafe { sys::call(55, self.file as usize, 1, option, value.as_mut_ptr() as usize, &raw mut length as usize, 0) == 0 }
    }
    /// Bytes without borders between messages.
    pub fn is_stream(&self) -> bool {
        let mut kind = [0i64; 2];
        self.kind == Kind::Pipe || self.kind == Kind::Socket && self.socket_option(SO_TYPE, &mut kind) && kind[0] as u32 == 1
    }
    /// Elapsed virtual time at which the socket's own time-out ends a wait that begins now.
    pub fn deadline(&self, events: i16) -> u64 {
        let mut time = [0i64; 2];
        let option = if events & POLLIN != 0 { SO_RCVTIMEO } else { SO_SNDTIMEO };
        if self.kind != Kind::Socket || !self.socket_option(option, &mut time) || time == [0, 0] {
            return NEVER;
        }
        clock::elapsed() + time[0] as u64 * 1_000_000_000 + time[1] as u64 * 1_000
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    Yes,
    /// It would block, and is not to, or not any longer.
    No,
    Interrupted,
}

/// What a signal handler does to a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// Ends it.
    Always,
    /// Ends it unless it was installed with `SA_RESTART`.
    ByFlag,
}

/// Blocks in the model until one of the files is ready. Serial mode only.
pub fn wait_for_files(
    runtime: &Runtime,
    files: &mut [PollFile],
    until: u64,
    interruption: Interruption,
    site: u64,
    mut ready: impl FnMut(&mut [PollFile]) -> bool,
) -> Ready {
    // Answers of earlier waits are not about this one.
    signals::interrupts(runtime.thread());
    loop {
        if ready(files) {
            return Ready::Yes;
        }
        let what = if files.is_empty() { WaitFor::Time } else { WaitFor::Files };
        let wait = Wait { files: files.as_mut_ptr(), file_count: files.len(), ..Wait::on(what, 0).until(until).interruptible() };
        match sched::block(runtime, wait, site) {
            Wake::TimedOut => return Ready::No,
            Wake::Signal if interruption == Interruption::Always || signals::interrupts(runtime.thread()) => {
                return Ready::Interrupted;
            }
            _ => {}
        }
    }
}

/// Asks the kernel, now.
pub fn poll_now(files: &mut [PollFile]) -> isize {
    // SAFETY: a slice of the kernel's own layout.
    unsafe { syscall!(sys::POLL, files.as_mut_ptr(), files.len(), 0usize) }
}

/// Whether a recording has descriptors as objects that threads race on, as online detection has: each is eight bytes of no
/// memory, which a call that uses it reads, and one that closes it ends. The three that a process begins with are nobody's.
fn is_object(file: c_int) -> Option<u64> {
    let counts = config::serial() && !detect::on() && !explore::on() && file > 2;
    descriptor_address(file).filter(|_| counts)
}

/// A number names another file from now on, or none.
pub fn renamed(file: c_int) {
    super::stdio::forget(file);
    identities::forget(file);
    super::timers::forget_file(file);
}

/// A call made this descriptor, unless it failed.
pub fn made(file: c_int, site: u64) -> c_int {
    renamed(file);
    preconditions::opens(file);
    if let Some(address) = is_object(file).filter(|_| lives::begins(file)) {
        super::heap::allocated(address, 8, site, allocation_kind::DESCRIPTOR);
    } else if detect::on()
        && file >= 0
        && let Some(runtime) = Runtime::try_enter()
    {
        runtime.with_own(|own| detect::descriptors::made(own, file, site));
    }
    file
}

/// A call is about to use this descriptor. Not to be called within the runtime.
pub fn uses(file: c_int, site: u64) {
    if let Some(address) = is_object(file).filter(|_| lives::number(file) != Number::Unknown) {
        hooks::of_object(address, 8, site, AccessClass::Read);
    }
}

/// A call is about to close this descriptor.
pub fn closes(file: c_int, site: u64) -> Option<Close> {
    renamed(file);
    preconditions::opens(file);
    if let Some(address) = is_object(file) {
        match lives::number(file) {
            Number::Open => hooks::ends(address, 8, site),
            // A call that fails ends nothing, and needs the number all the same.
            Number::Closed => hooks::of_object(address, 8, site, AccessClass::Read),
            Number::Unknown => {}
        }
    } else if detect::on()
        && let Some(runtime) = Runtime::try_enter()
    {
        return runtime.with_own(|own| detect::descriptors::closes(own, file, site));
    }
    None
}

/// The call that [`closes`] it has returned.
pub fn closed(file: c_int, close: Option<Close>, result: c_int) {
    // Somebody may have asked in between.
    identities::forget(file);
    if is_object(file).is_some() {
        lives::ends(file);
    }
    if let Some(close) = close
        && let Some(runtime) = Runtime::try_enter()
    {
        if result < 0 && errno() == EBADF {
            runtime.with_own(|own| detect::descriptors::closed_nothing(own, close));
            set_errno(EBADF);
        } else {
            runtime.with_own(|own| detect::descriptors::closed(own, close));
        }
    }
}

/// A call that uses a descriptor has returned.
pub fn used(runtime: &Runtime, one: Option<Use>, result: isize) {
    if result < 0
        && errno() == EBADF
        && let Some(one) = one
    {
        runtime.with_own(|own| detect::descriptors::failed(own, one));
        set_errno(EBADF);
    }
}

/// How a call is to be made.
#[derive(Clone, Copy)]
pub struct Call {
    pub file: c_int,
    pub events: i16,
    /// The call itself says that it must not block.
    pub at_once: bool,
    /// It may block although the file is ready: the turn is given up meanwhile.
    pub external: bool,
    /// The file is a queue of messages, and the call's own time-out ends a wait at this elapsed virtual time.
    pub queue_until: Option<u64>,
    pub site: u64,
}

impl Call {
    pub const fn input(file: c_int, site: u64) -> Self {
        Self { file, events: POLLIN, at_once: false, external: false, queue_until: None, site }
    }
    pub const fn output(file: c_int, site: u64) -> Self {
        Self { file, events: POLLOUT, at_once: false, external: false, queue_until: None, site }
    }
    pub const fn at_once(mut self, at_once: bool) -> Self {
        self.at_once = at_once;
        self
    }
    pub const fn queue(mut self, until: u64) -> Self {
        self.queue_until = Some(until);
        self
    }
    pub const fn external(mut self, external: bool) -> Self {
        self.external = external;
        self
    }
}

/// Data is about to go out. Meanwhile another thread may get to know the connection.
pub fn lets_go_on(thread: &Thread, descriptor: &Descriptor, site: u64) {
    let releases = |object| _ = recorder::sync(thread, Op::Release, object, sync_source::FILE, site, &[]);
    // Where the other end is in this process, who reads there knows the connection alone.
    if let End::Asked(connection) = connections::end(descriptor.identity) {
        releases(SOCKETS | CONNECTION | connection);
        return releases(SOCKETS);
    }
    let before = descriptor.object();
    releases(before);
    if descriptor.object() != before {
        releases(descriptor.object());
    }
}

/// Something was taken in: from outside, perhaps.
fn may_come_in(thread: &Thread, descriptor: &Descriptor, object: u64, site: u64) {
    // Detection does not execute again.
    if !detect::on() && descriptor.is_outside() {
        external::came_in(thread, object, sync_source::FILE, site, Some(descriptor.file));
        if descriptor.comes_from_world() && config::serial() && !replay::active() {
            world::answered();
        }
    }
}

/// The frame of a call on one descriptor: waits, calls, records. The result is the call's, with `errno`.
pub fn transfer(call: Call, mut real: impl FnMut() -> isize) -> isize {
    uses(call.file, call.site);
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let one = if detect::on() { runtime.with_own(|own| detect::descriptors::used(own, call.file, call.site)) } else { None };
    let mut descriptor = look(call.file);
    if call.queue_until.is_some() {
        descriptor.kind = Kind::Queue;
    }
    let until = || call.queue_until.unwrap_or_else(|| descriptor.deadline(call.events));
    let takes_in = call.events & POLLIN != 0;
    if detect::on() && !takes_in {
        runtime.with_own(|own| detect::descriptors::moves_data(own, takes_in, call.site));
    }
    if descriptor.is_silent() {
        let result = runtime.outside(real);
        if detect::on() && takes_in {
            runtime.with_own(|own| detect::descriptors::moves_data(own, takes_in, call.site));
        }
        used(&runtime, one, result);
        return result;
    }
    let (op, site) = (if takes_in { Op::Acquire } else { Op::Release }, call.site);
    sched::point(&runtime, op, descriptor.object(), site);
    let thread = runtime.thread();
    let mut ready = Ready::Yes;
    if config::serial() && takes_in && descriptor.kind == Kind::Socket {
        world::polls(call.file);
    }
    if config::serial() && !call.external {
        let mut files = [PollFile { file: call.file, events: call.events, returned: 0 }];
        if poll_now(&mut files) == 0 && !descriptor.refuses(call.events) {
            ready = if call.at_once || descriptor.is_nonblocking() {
                Ready::No
            } else {
                wait_for_files(&runtime, &mut files, until(), Interruption::ByFlag, site, |files| poll_now(files) != 0)
            };
        }
    }
    let releases = !takes_in && ready == Ready::Yes;
    if releases {
        lets_go_on(thread, &descriptor, site);
    }
    let result = match ready {
        Ready::Interrupted => {
            set_errno(EINTR);
            -1
        }
        // A time-out of the socket: the real call would wait once more.
        Ready::No if !call.at_once && !descriptor.is_nonblocking() => {
            set_errno(EAGAIN);
            -1
        }
        _ if call.external || !config::serial() => sched::external(&runtime, &mut real),
        _ => runtime.outside(&mut real),
    };
    if !releases {
        let object = descriptor.object();
        if result >= 0 && takes_in {
            may_come_in(thread, &descriptor, object, site);
            recorder::sync(thread, Op::Acquire, object, sync_source::FILE, site, &[]);
            if detect::on() {
                thread.with_own(|own| detect::descriptors::moves_data(own, takes_in, site));
            }
        } else {
            let outcome = if result < 0 { -errno() as u64 } else { result as u64 };
            recorder::sync(thread, Op::Blocking, object, sync_source::FILE, site, &[outcome]);
        }
    }
    if result < 0 && errno() == EAGAIN {
        sched::failed_try(&runtime);
    } else {
        thread.spins.set(0);
    }
    sched::files_moved();
    used(&runtime, one, result);
    result
}

/// A part of a vector of buffers.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Part {
    pub base: *mut u8,
    pub bytes: usize,
}

/// The parts of a `readv`-like call.
///
/// # Safety
/// `parts` points to `count` of them, or `count` is not positive.
pub unsafe fn parts<'a>(parts: *const Part, count: c_int) -> &'a [Part] {
    if count <= 0 || parts.is_null() {
        return &[];
    }
    // SAFETY: by the contract.
    unsafe { core::slice::from_raw_parts(parts, count as usize) }
}

/// The frame of a call that writes bytes: at once where that cannot block half-way, else in pieces.
pub fn write_all(
    call: Call,
    buffers: &[Part],
    whole: impl FnMut() -> isize,
    mut piece: impl FnMut(*mut u8, usize) -> isize,
) -> isize {
    let total = buffers.iter().fold(0usize, |sum, part| sum.saturating_add(part.bytes));
    let observed = config::serial() && crate::system::tls::current().is_some();
    if !observed || total <= PIECE || call.at_once || (0..=2).contains(&call.file) {
        return transfer(call, whole);
    }
    let descriptor = look(call.file);
    if !descriptor.is_stream() || descriptor.is_nonblocking() {
        return transfer(call, whole);
    }
    let mut done = 0;
    for part in buffers {
        let mut at = 0;
        while at < part.bytes {
            let bytes = (part.bytes - at).min(PIECE);
            // SAFETY: inside the part.
            let start = unsafe { part.base.add(at) };
            let result = transfer(call, || piece(start, bytes));
            if result <= 0 {
                return if done > 0 { done } else { result };
            }
            at += result as usize;
            done += result;
        }
    }
    done
}
