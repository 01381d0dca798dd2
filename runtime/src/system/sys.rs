//! System calls without libc: no `errno`, no cancellation point, nothing that could be interposed.

use core::arch::asm;
use core::sync::atomic::AtomicU32;

pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const POLL: usize = 7;
pub const LSEEK: usize = 8;
pub const MMAP: usize = 9;
pub const MPROTECT: usize = 10;
pub const MUNMAP: usize = 11;
pub const RT_SIGACTION: usize = 13;
pub const RT_SIGPROCMASK: usize = 14;
pub const SCHED_YIELD: usize = 24;
pub const MADVISE: usize = 28;
pub const NANOSLEEP: usize = 35;
pub const GETPID: usize = 39;
pub const FTRUNCATE: usize = 77;
pub const ACCESS: usize = 21;
pub const KILL: usize = 62;
pub const MKDIR: usize = 83;
pub const RMDIR: usize = 84;
pub const UNLINK: usize = 87;
pub const GETPPID: usize = 110;
pub const GETTID: usize = 186;
pub const TGKILL: usize = 234;
pub const FSTAT: usize = 5;
pub const FCNTL: usize = 72;
pub const FUTEX: usize = 202;
pub const CLOCK_GETTIME: usize = 228;
pub const EXIT_GROUP: usize = 231;
pub const OPENAT: usize = 257;
pub const FALLOCATE: usize = 285;
pub const PRLIMIT64: usize = 302;
pub const EVENTFD2: usize = 290;

pub const ESRCH: isize = 3;
pub const EINTR: isize = 4;
pub const EAGAIN: isize = 11;
pub const EBUSY: i32 = 16;
pub const ETIMEDOUT: i32 = 110;

/// # Safety
/// As the system call itself.
#[inline(always)]
pub unsafe fn call(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    let result: isize;
    // SAFETY: the x86-64 Linux convention; the caller answers for the call's own effects.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

macro_rules! syscall {
    ($number:expr $(,)?) => {
        $crate::system::sys::call($number, 0, 0, 0, 0, 0, 0)
    };
    ($number:expr, $a:expr) => {
        $crate::system::sys::call($number, $a as usize, 0, 0, 0, 0, 0)
    };
    ($number:expr, $a:expr, $b:expr) => {
        $crate::system::sys::call($number, $a as usize, $b as usize, 0, 0, 0, 0)
    };
    ($number:expr, $a:expr, $b:expr, $c:expr) => {
        $crate::system::sys::call($number, $a as usize, $b as usize, $c as usize, 0, 0, 0)
    };
    ($number:expr, $a:expr, $b:expr, $c:expr, $d:expr) => {
        $crate::system::sys::call($number, $a as usize, $b as usize, $c as usize, $d as usize, 0, 0)
    };
}
pub(crate) use syscall;

/// Zeroed private memory, or null.
///
/// The kernel moves mappings of whole huge pages to a huge page's boundary, which leaves a gap of random size; what is mapped
/// later, the program's memory too, would lie at random distances. So such a mapping is made a page longer and cut.
pub fn map_anonymous(bytes: usize) -> *mut u8 {
    const HUGE: usize = 2 << 20;
    let extra = if bytes.is_multiple_of(HUGE) { 4096 } else { 0 };
    // SAFETY: a fresh anonymous mapping touches nothing that exists.
    let address = unsafe { call(MMAP, 0, bytes + extra, 3, 0x22 | 0x4000, usize::MAX, 0) };
    if address < 0 {
        return core::ptr::null_mut();
    }
    if extra > 0 {
        // SAFETY: the page behind what is handed out.
        unsafe { unmap((address as usize + bytes) as *mut u8, extra) };
    }
    address as *mut u8
}

/// # Safety
/// Nothing may use the mapping any more.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: by the contract above.
    unsafe { syscall!(MUNMAP, address, bytes) };
}

/// Sleeps while `*word == expected`; returns early at will. Tells whether a signal interrupted it.
pub fn futex_wait(word: &AtomicU32, expected: u32) -> bool {
    // SAFETY: FUTEX_WAIT_PRIVATE only reads the word.
    unsafe { syscall!(FUTEX, word.as_ptr(), 128, expected, 0usize) == -EINTR }
}

/// Makes a file longer, with blocks of its own where the file system has them: a full disk is an error here, not a SIGBUS at the
/// first touch. The negative error if that fails; a file beyond the process's limit is one, and no SIGXFSZ.
///
/// # Safety
/// A descriptor of ours.
pub unsafe fn grow(file: isize, from: usize, bytes: usize) -> isize {
    const EPERM: isize = 1;
    const ENOSYS: isize = 38;
    const EOPNOTSUPP: isize = 95;
    if (from + bytes) as u64 > file_size_limit() {
        return -EFBIG;
    }
    // SAFETY: by the contract.
    unsafe {
        match syscall!(FALLOCATE, file, 0, from, bytes) {
            result if [-EPERM, -ENOSYS, -EOPNOTSUPP].contains(&result) => syscall!(FTRUNCATE, file, from + bytes),
            result => result,
        }
    }
}

const EFBIG: isize = 27;

/// Who writes beyond it gets a signal that ends the program.
fn file_size_limit() -> u64 {
    const FILE_SIZE: usize = 1;
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel fills two words, or none.
    unsafe { syscall!(PRLIMIT64, 0, FILE_SIZE, 0usize, limit.as_mut_ptr()) };
    limit[0]
}

/// Writes all of it to the end of a file that was opened for that, or as much as possible: then the negative error.
///
/// # Safety
/// A descriptor of ours.
pub unsafe fn append(file: isize, mut bytes: &[u8]) -> isize {
    const TO_END: usize = 2;
    let limit = file_size_limit();
    while !bytes.is_empty() {
        // SAFETY: by the contract; reads the slice.
        let written = unsafe {
            let end = if limit == u64::MAX { 0 } else { syscall!(LSEEK, file, 0, TO_END) };
            if end as u64 + bytes.len() as u64 > limit { -EFBIG } else { syscall!(WRITE, file, bytes.as_ptr(), bytes.len()) }
        };
        match written {
            0 => return -EFBIG,
            error if error == -EINTR => {}
            error if error < 0 => return error,
            written => bytes = bytes.get(written as usize..).unwrap_or(&[]),
        }
    }
    0
}

pub fn futex_wake(word: &AtomicU32, count: u32) {
    // SAFETY: FUTEX_WAKE_PRIVATE does not touch memory.
    unsafe { syscall!(FUTEX, word.as_ptr(), 129, count) };
}

pub fn thread_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { syscall!(GETTID) as u32 }
}

/// Whether the kernel still has that thread of this process.
pub fn thread_exists(id: u32) -> bool {
    // SAFETY: signal 0 is none.
    unsafe { syscall!(TGKILL, syscall!(GETPID), id, 0) != -ESRCH }
}

pub fn process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { syscall!(GETPID) as u32 }
}

pub fn parent_process_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { syscall!(GETPPID) as u32 }
}

/// Whether a thread of this process blocks one of these signals, as the kernel tells it.
pub fn blocks_signals(thread: u32, signals: u64) -> bool {
    let (mut path, mut text) = ([0u8; 48], [0u8; 4096]);
    let number = Decimal::new(u64::from(thread));
    let parts: [&[u8]; 3] = [b"/proc/self/task/", number.bytes(), b"/status"];
    for (place, &byte) in path.iter_mut().zip(parts.iter().copied().flatten()) {
        *place = byte;
    }
    // SAFETY: a terminated path, our own descriptor and buffer. O_RDONLY | O_CLOEXEC
    let read = unsafe {
        let file = syscall!(OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if file < 0 {
            return false;
        }
        let read = syscall!(READ, file, text.as_mut_ptr(), text.len());
        syscall!(CLOSE, file);
        read.max(0) as usize
    };
    const FIELD: &[u8] = b"SigBlk:\t";
    let Some(at) = text[..read].windows(FIELD.len()).position(|window| window == FIELD) else { return false };
    let digits = text[at + FIELD.len()..read].iter().map_while(|&digit| (digit as char).to_digit(16));
    digits.fold(0u64, |mask, digit| mask << 4 | u64::from(digit)) & signals != 0
}

/// Where a thread of this process is.
pub enum Where {
    Gone,
    /// In a system call, whose number and first arguments are known.
    Call,
    /// Running, or where the kernel does not tell.
    Elsewhere,
}

/// Where a thread is, as the kernel tells it: the number of the call that it waits in, and what it was given.
pub fn waits_in(thread: u32, call: &mut [u64; 5]) -> Where {
    let (mut path, mut text) = ([0u8; 48], [0u8; 256]);
    let number = Decimal::new(u64::from(thread));
    let parts: [&[u8]; 3] = [b"/proc/self/task/", number.bytes(), b"/syscall"];
    for (place, &byte) in path.iter_mut().zip(parts.iter().copied().flatten()) {
        *place = byte;
    }
    // SAFETY: a terminated path, our own descriptor and buffer. O_RDONLY | O_CLOEXEC
    let read = unsafe {
        let file = syscall!(OPENAT, -100isize, path.as_ptr(), 0o2000000, 0);
        if file < 0 {
            return if thread_exists(thread) { Where::Elsewhere } else { Where::Gone };
        }
        let read = syscall!(READ, file, text.as_mut_ptr(), text.len());
        syscall!(CLOSE, file);
        read
    };
    if read < 0 {
        return if thread_exists(thread) { Where::Elsewhere } else { Where::Gone };
    }
    let mut words = text[..read as usize].split(|&byte| byte == b' ' || byte == b'\n');
    for (place, radix) in call.iter_mut().zip([10, 16, 16, 16, 16]) {
        let word = words.next().unwrap_or(&[]);
        let digits = word.strip_prefix(b"0x").unwrap_or(word);
        if digits.is_empty() || !digits.iter().all(|&digit| (digit as char).is_digit(radix)) {
            return Where::Elsewhere;
        }
        let value = |value: u64, digit: &u8| {
            value.wrapping_mul(u64::from(radix)).wrapping_add((*digit as char).to_digit(radix).unwrap_or(0).into())
        };
        *place = digits.iter().fold(0, value);
    }
    Where::Call
}

/// Nanoseconds of a kernel clock.
pub fn clock(id: usize) -> u64 {
    let mut time = [0i64; 2];
    // SAFETY: the kernel fills the two words.
    unsafe { syscall!(CLOCK_GETTIME, id, time.as_mut_ptr()) };
    (time[0] as u64).wrapping_mul(1_000_000_000).wrapping_add(time[1] as u64)
}

pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { syscall!(EXIT_GROUP, code) };
    }
}

/// Sleeps in the kernel; a signal may end it early.
pub fn sleep(nanoseconds: u64) {
    let time = [nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000];
    // SAFETY: reads the two words.
    unsafe { syscall!(NANOSLEEP, time.as_ptr(), 0usize) };
}

/// Ends the process by SIGABRT, whatever handler there is.
pub fn abort() -> ! {
    let default = [0u64; 4];
    let signal = 1u64 << 5;
    // SAFETY: the kernel reads both; the default action ends the process.
    unsafe {
        syscall!(RT_SIGACTION, 6, default.as_ptr(), 0usize, 8);
        syscall!(RT_SIGPROCMASK, 1, &raw const signal, 0usize, 8);
        syscall!(TGKILL, syscall!(GETPID), syscall!(GETTID), 6);
    }
    exit_group(134)
}

/// A line on standard error, in one write.
pub fn message(parts: &[&[u8]]) {
    let mut buffer = [0u8; 1024];
    let mut length = 0;
    for part in [b"rashomon: ".as_slice()].iter().chain(parts).chain([b"\n".as_slice()].iter()) {
        for &byte in *part {
            if length < buffer.len() {
                buffer[length] = byte;
                length += 1;
            }
        }
    }
    // SAFETY: reads the initialised part of the buffer.
    unsafe { syscall!(WRITE, 2, buffer.as_ptr(), length) };
}

/// Decimal digits of a number, for [`message`].
pub struct Decimal([u8; 20], usize);

impl Decimal {
    pub fn new(mut value: u64) -> Self {
        let mut digits = [0u8; 20];
        let mut at = 20;
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 || at == 0 {
                break;
            }
        }
        Self(digits, at)
    }
    pub fn bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

/// The runtime cannot go on: the recording would be wrong.
pub fn die(parts: &[&[u8]]) -> ! {
    message(parts);
    exit_group(125)
}
