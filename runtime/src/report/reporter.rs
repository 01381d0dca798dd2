//! The reporter: a process of the host tool, started when there is first something to say, and asked over a socket from then on.
//!
//! The program must not notice it. It is a grandchild whose parent has ended and been waited for, made by system calls that no
//! interposer or `fork` handler sees, and without a signal on its end: no `wait` of the program's finds it. It has no descriptor
//! but its socket, so that it keeps no pipe or lock of the program's alive, and blocks all signals: it ends when the socket
//! closes, that is with the program, however that ends. Our end of the socket has a high number and is closed on `exec`; should
//! the program close it and the number come to mean something else, that is seen before anything is written.

use super::{hooks, launch, options, output};
use crate::system::modules;
use crate::system::sys::{self, syscall};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use rashomon_abi::report::{HEAD_WORDS, Items, MAX_BODY, Writer, head, item, kind};

/// Words of the buffer for messages other than warnings, and for answers.
const BUFFER_WORDS: usize = MAX_BODY as usize + HEAD_WORDS;
/// Milliseconds that an answer may take: naming the addresses of a large program reads all of its debug information.
const TIMEOUT_MS: usize = 120_000;

/// Our end of the socket, -1: none yet, -2: there is no reporter to be had.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
const NONE_YET: i32 = -1;
const UNAVAILABLE: i32 = -2;
/// Which file it is, and the process that it belongs to.
static FILE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Of the modules that the reporter knows.
static MODULES: AtomicU64 = AtomicU64::new(0);
static BUFFER: AtomicUsize = AtomicUsize::new(0);
/// The contents of the suppression file.
static SUPPRESSIONS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Reads the suppression file, whose name may be relative to a directory that the program leaves.
pub fn initialise() {
    let path = options::get().suppressions;
    if path.is_empty() {
        return;
    }
    match options::file(path).or_else(|| beside_program(path)) {
        Some(text) => {
            SUPPRESSIONS[0].store(text.as_ptr() as usize, Relaxed);
            SUPPRESSIONS[1].store(text.len(), Relaxed);
        }
        None => {
            options::refuse(&[b"cannot read the suppression file '", path, b"' (option suppressions): the program was not run"])
        }
    }
}

/// The text of suppressions, for those that are heeded in the process.
pub fn suppressions() -> &'static [u8] {
    let (address, length) = (SUPPRESSIONS[0].load(Relaxed), SUPPRESSIONS[1].load(Relaxed));
    // SAFETY: set once, together, to a mapping for good.
    if address == 0 { b"" } else { unsafe { core::slice::from_raw_parts(address as *const u8, length) } }
}

fn beside_program(path: &[u8]) -> Option<&'static [u8]> {
    let mut name = [0_u8; 4096];
    // SAFETY: a terminated path and a local buffer.
    let count = unsafe { syscall!(89usize, c"/proc/thread-self/exe".as_ptr(), name.as_mut_ptr(), name.len()) };
    let folder = name.get(..usize::try_from(count).ok()?)?.iter().rposition(|&byte| byte == b'/')? + 1;
    let end = folder + path.len();
    name.get_mut(folder..end)?.copy_from_slice(path);
    options::file(name.get(..end)?)
}

fn buffer() -> &'static mut [u64] {
    let mut address = BUFFER.load(Acquire);
    if address == 0 {
        address = sys::map_anonymous(BUFFER_WORDS * 8) as usize;
        if address == 0 {
            return &mut [];
        }
        BUFFER.store(address, Release);
    }
    // SAFETY: a mapping of that size for good; the lock of reports makes us its only user.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u64, BUFFER_WORDS) }
}

/// Sends a warning and prints the answer. True: it is suppressed. `None`: nobody answered, nothing was printed.
pub fn ask(message: &[u64]) -> Option<bool> {
    let body = exchange(message)?;
    let mut suppressed = false;
    for (code, mut words) in Items::new(body) {
        match code {
            item::VERDICT => suppressed = words.word() & 1 != 0,
            item::TEXT | item::TAIL => output::text(bytes(words.packed_text())),
            item::SUMMARY => hooks::summary(bytes(words.packed_text())),
            _ => {}
        }
    }
    Some(suppressed)
}

/// Tells that the process ends, and prints what the reporter says to that. False: nothing was printed.
pub fn conclude(printed: u32) -> bool {
    if SOCKET.load(Acquire) < 0 {
        return false;
    }
    // The buffer is for the answer; this message is short.
    let mut words = [0_u64; 8];
    let mut writer = Writer::new(&mut words, kind::FINISH);
    writer.item(item::COUNTS);
    writer.word(u64::from(printed));
    let Some(message) = writer.finish() else { return false };
    ask(message).is_some()
}

/// Asks for something else than a warning. Under the lock of reports; what is returned is valid until the next question.
pub fn question(kind: u64, build: impl FnOnce(&mut Writer<'_>)) -> Option<&'static [u64]> {
    let mut words = [0_u64; 640];
    let mut writer = Writer::new(&mut words, kind);
    build(&mut writer);
    exchange(writer.finish()?)
}

/// The bytes of a text.
pub fn bytes((words, count): (&[u64], usize)) -> &[u8] {
    // SAFETY: the words hold that many bytes, in order on this machine, which is little-endian.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), count.min(words.len() * 8)) }
}

/// Sends a message; the body of the answer.
fn exchange(message: &[u64]) -> Option<&'static [u64]> {
    let socket = connected()?;
    let answer = tell_modules(socket).then(|| send(socket, message)).filter(|&sent| sent).and_then(|_| receive(socket));
    if answer.is_none() {
        give_up(&[b"the reporter ended or does not answer"]);
    }
    answer
}

fn give_up(reason: &[&[u8]]) {
    close();
    SOCKET.store(UNAVAILABLE, Release);
    output::text(b"rashomon: ");
    output::texts(reason);
    output::text(b"; reports name modules and offsets only\n");
}

fn close() {
    if let Some(socket) = ours() {
        // SAFETY: our own descriptor.
        unsafe { syscall!(sys::CLOSE, socket) };
    }
}

/// The socket, if its number still means it.
fn ours() -> Option<i32> {
    let socket = SOCKET.load(Acquire);
    let same = socket >= 0 && file_of(socket) == [FILE[0].load(Relaxed), FILE[1].load(Relaxed)];
    same.then_some(socket)
}

fn file_of(descriptor: i32) -> [u64; 2] {
    let mut status = [0_u64; 18];
    // SAFETY: `struct stat` is 144 bytes, the first two words device and inode.
    let result = unsafe { syscall!(sys::FSTAT, descriptor, status.as_mut_ptr()) };
    if result == 0 { [status[0], status[1]] } else { [0, 0] }
}

/// The socket of this process's reporter, which is started if need be.
fn connected() -> Option<i32> {
    if SOCKET.load(Acquire) == UNAVAILABLE {
        return None;
    }
    if PROCESS.load(Relaxed) == sys::process_id()
        && let Some(socket) = ours()
    {
        return Some(socket);
    }
    MODULES.store(0, Relaxed);
    match launch::start() {
        Ok(socket) => {
            let file = file_of(socket);
            FILE[0].store(file[0], Relaxed);
            FILE[1].store(file[1], Relaxed);
            PROCESS.store(sys::process_id(), Relaxed);
            SOCKET.store(socket, Release);
            greet(socket).then_some(socket)
        }
        Err(reason) => {
            give_up(&[reason]);
            None
        }
    }
}

fn greet(socket: i32) -> bool {
    let mut writer = Writer::new(buffer(), kind::HELLO);
    writer.item(item::PROCESS);
    writer.word(rashomon_abi::report::VERSION);
    writer.word(u64::from(sys::process_id()));
    for text in options::texts() {
        writer.item(item::OPTIONS);
        writer.text(text);
    }
    if options::get().color == b"auto" {
        writer.item(item::OPTIONS);
        writer.text(if output::is_terminal() { b"color=always" } else { b"color=never" });
    }
    for (code, text) in [item::SUPPRESSIONS, item::DEFAULT_SUPPRESSIONS].into_iter().zip(super::suppressions()) {
        writer.item(code);
        writer.text(text);
    }
    // The answer says what is wrong with the suppressions, if anything is.
    let greeted = writer.finish().is_some_and(|message| send(socket, message));
    let Some(body) = greeted.then(|| receive(socket)).flatten() else {
        give_up(&[b"the reporter cannot be executed or ended at once"]);
        return false;
    };
    for (code, mut words) in Items::new(body) {
        if code == item::TEXT {
            output::text(bytes(words.packed_text()));
            sys::exit_group(options::get().exitcode as i32);
        }
    }
    true
}

/// Tells the modules, if they are others than before.
fn tell_modules(socket: i32) -> bool {
    let mut sum = 1_u64;
    modules::each(|module| {
        sum = (sum.rotate_left(7) ^ module.base ^ module.start.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    if MODULES.swap(sum, Relaxed) == sum {
        return true;
    }
    let mut writer = Writer::new(buffer(), kind::MODULES);
    modules::each(|module| {
        writer.item(item::MODULE);
        [module.base, module.start, module.end].iter().for_each(|&word| writer.word(word));
        writer.text(module.build_id);
        writer.text(module.path);
    });
    writer.finish().is_some_and(|message| send(socket, message))
}

fn send(socket: i32, message: &[u64]) -> bool {
    let (mut at, total) = (0, message.len() * 8);
    while at < total {
        // SAFETY: reads the rest of the message. sendto without an address, MSG_NOSIGNAL
        let sent = unsafe { sys::call(44, socket as usize, message.as_ptr() as usize + at, total - at, 0x4000, 0, 0) };
        match sent {
            sent if sent > 0 => at += sent as usize,
            sent if sent == -sys::EINTR => {}
            _ => return false,
        }
    }
    true
}

fn receive(socket: i32) -> Option<&'static [u64]> {
    let mut first = [0_u64; HEAD_WORDS];
    read(socket, &mut first)?;
    let (kind, length) = head(first)?;
    let body = &mut buffer()[..length];
    read(socket, body)?;
    (kind == kind::ANSWER).then_some(&*body)
}

fn read(socket: i32, words: &mut [u64]) -> Option<()> {
    let (mut at, total) = (0, words.len() * 8);
    while at < total {
        let mut poll = socket as u32 as u64 | 1 << 32;
        // SAFETY: one `pollfd` (POLLIN); fills the rest of the words.
        let count = unsafe {
            let ready = syscall!(sys::POLL, &raw mut poll, 1, TIMEOUT_MS);
            if ready == -sys::EINTR {
                continue;
            }
            if ready <= 0 {
                return None;
            }
            syscall!(sys::READ, socket, words.as_mut_ptr() as usize + at, total - at)
        };
        match count {
            count if count > 0 => at += count as usize,
            count if count == -sys::EINTR => {}
            _ => return None,
        }
    }
    Some(())
}

/// In a forked child: the socket is the parent's.
pub fn forget() {
    if let Some(socket) = ours() {
        // SAFETY: the child's copy of our descriptor.
        unsafe { syscall!(sys::CLOSE, socket) };
    }
    if SOCKET.load(Relaxed) != UNAVAILABLE {
        SOCKET.store(NONE_YET, Release);
    }
    MODULES.store(0, Relaxed);
}

/// For the fallback: the module that holds an address, copied into `path`; its length and the address's offset.
pub fn module_of(address: u64, path: &mut [u8; 256]) -> Option<(usize, u64)> {
    let mut found = None;
    modules::each(|module| {
        if module.start <= address && address < module.end {
            let name = module.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            let length = name.len().min(path.len());
            path[..length].copy_from_slice(&name[..length]);
            found = Some((length, address - module.base));
        }
    });
    found
}

/// Hexadecimal digits of a number, with prefix.
pub fn hexadecimal(value: u64, into: &mut [u8; 18]) -> &[u8] {
    let digits = ((64 - value.leading_zeros()).div_ceil(4) as usize).max(1);
    into[..2].copy_from_slice(b"0x");
    for place in 0..digits {
        let digit = (value >> (4 * (digits - 1 - place)) & 15) as u8;
        into[2 + place] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
    }
    &into[..2 + digits]
}
