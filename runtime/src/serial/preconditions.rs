//! Whether a process can be continued more than once: what one execution does must not be seen by the next one.

use crate::serial::{explore, kept, watchdog};
use crate::system::header;
use crate::system::memory::List;
use crate::system::sys::{self, syscall};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rashomon_abi::exploration::snapshot::refusal;

const O_CLOEXEC: usize = 0o2000000;

/// Regular files that are read, and how far: a child opens them again, to have a place of its own in them.
static mut READ_FILES: List<(i32, isize)> = List::new();

/// What was open when the program began, as device and inode: all its executions share that, however they begin.
static mut INHERITED: List<(i32, u64, u64)> = List::new();

/// Whether anybody asks what follows.
static IS_TO_STAND: AtomicBool = AtomicBool::new(false);
/// Whether the program made, changed or removed a file or folder.
static CHANGED_FILES: AtomicBool = AtomicBool::new(false);

pub fn changes_files() {
    CHANGED_FILES.store(true, Relaxed);
}

/// A descriptor was made; a file that it is open to write may be closed again by the time of the snapshot.
pub fn opens(file: i32) {
    const TYPE: u32 = 0o170000;
    const REGULAR: u32 = 0o100000;
    if file >= 0 && IS_TO_STAND.load(Relaxed) && !is_only_read(file) {
        let is_regular = |status: [u64; 18]| status[3] as u32 & TYPE == REGULAR;
        CHANGED_FILES.fetch_or(status(file).is_some_and(is_regular), Relaxed);
    }
}

fn is_only_read(file: i32) -> bool {
    const F_GETFL: usize = 3;
    const ACCESS_MODE: isize = 3;
    // SAFETY: asks.
    unsafe { syscall!(sys::FCNTL, file, F_GETFL) & ACCESS_MODE == 0 }
}

/// At the start of a process that is to stand.
///
/// # Safety
/// Once, before there are other threads.
pub unsafe fn begin() {
    let inherited = &raw mut INHERITED;
    IS_TO_STAND.store(true, Relaxed);
    numbers_in(c"/proc/self/fd", |file| {
        if let Some([device, inode, ..]) = status(file) {
            // SAFETY: by the contract.
            unsafe { (*inherited).push((file, device, inode)) };
        }
    });
}

/// `struct stat`.
fn status(file: i32) -> Option<[u64; 18]> {
    let mut status = [0u64; 18];
    // SAFETY: it has 144 bytes.
    (unsafe { syscall!(sys::FSTAT, file, status.as_mut_ptr()) } == 0).then_some(status)
}

/// By the thread that decides, under the scheduler's lock. `threads`: those that the runtime knows, the watchdog included.
pub fn check(threads: usize) -> Result<(), u64> {
    if kernel_threads() != threads {
        return Err(refusal::THREAD);
    }
    if has_children() {
        return Err(refusal::CHILDREN);
    }
    look_at_descriptors()?;
    if CHANGED_FILES.load(Relaxed) {
        return Err(refusal::FILES);
    }
    if has_timers() {
        return Err(refusal::TIMER);
    }
    if shares_memory() {
        return Err(refusal::SHARED_MEMORY);
    }
    Ok(())
}

/// Reads a file of procfs piece by piece, or a folder's entries. False if it cannot be opened.
fn read_pieces(path: &core::ffi::CStr, entries: bool, mut piece: impl FnMut(&[u8])) -> bool {
    const GETDENTS64: usize = 217;
    let mut buffer = [0u8; 8192];
    // SAFETY: a terminated path, our own descriptor and buffer.
    unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), O_CLOEXEC, 0);
        if file < 0 {
            return false;
        }
        loop {
            let call = if entries { GETDENTS64 } else { sys::READ };
            let got = syscall!(call, file, buffer.as_mut_ptr(), buffer.len());
            if got <= 0 {
                break;
            }
            piece(&buffer[..got as usize]);
        }
        syscall!(sys::CLOSE, file);
    }
    true
}

/// The numbers that are names in a folder of procfs.
fn numbers_in(path: &core::ffi::CStr, mut each: impl FnMut(i32)) -> bool {
    read_pieces(path, true, |mut entries| {
        // inode 8, offset 8, length 2, type 1, name.
        while let Some(&[low, high]) = entries.get(16..18) {
            let length = usize::from(u16::from_le_bytes([low, high]));
            let Some(entry) = entries.get(..length).filter(|entry| entry.len() > 19) else { return };
            let digits = || entry[19..].iter().take_while(|&&byte| byte != 0);
            if digits().all(u8::is_ascii_digit) {
                each(digits().fold(0i32, |number, digit| number.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'))));
            }
            entries = &entries[length..];
        }
    })
}

/// How many threads the kernel knows of this process.
pub fn kernel_threads() -> usize {
    let mut count = 0;
    numbers_in(c"/proc/self/task", |_| count += 1);
    count
}

fn has_children() -> bool {
    const WNOHANG: usize = 1;
    const WEXITED: usize = 4;
    const WAITID: usize = 247;
    const WALL: usize = 0x4000_0000;
    const WNOWAIT: usize = 0x0100_0000;
    const ECHILD: isize = 10;
    let mut info = [0u32; 32];
    // Of children that announce their end by no signal some are ours.
    let kinds = if kept::may_have_copies() { 0 } else { WALL };
    // SAFETY: `siginfo_t` has 128 bytes.
    unsafe { sys::call(WAITID, 0, 0, info.as_mut_ptr() as usize, WEXITED | WNOHANG | WNOWAIT | kinds, 0, 0) != -ECHILD }
}

/// Whether the program set a timer, or the kernel does not say.
fn has_timers() -> bool {
    const GETITIMER: usize = 36;
    let mut any = false;
    for which in 0..3 {
        let mut timer = [0u64; 4];
        // SAFETY: two times of two words each.
        any |= unsafe { syscall!(GETITIMER, which, timer.as_mut_ptr()) } != 0 || timer != [0; 4];
    }
    // Where the kernel has no such file it cannot be asked.
    read_pieces(c"/proc/self/timers", false, |_| any = true);
    any
}

fn look_at_descriptors() -> Result<(), u64> {
    const TYPE: u32 = 0o170000;
    const CHARACTERS: u32 = 0o020000;
    const REGULAR: u32 = 0o100000;
    let (files, inherited) = (&raw mut READ_FILES, &raw const INHERITED);
    // SAFETY: under the scheduler's lock.
    let files = unsafe { &mut *files };
    files.truncate(0);
    let mut fit = true;
    let known = numbers_in(c"/proc/self/fd", |file| {
        let Some(status) = status(file).filter(|_| !watchdog::is_own(file)) else { return };
        // SAFETY: written at the start only.
        let inherited = unsafe { &*inherited }.as_slice().contains(&(file, status[0], status[1]));
        let (kind, device) = (status[3] as u32 & TYPE, status[5]);
        let reads = is_only_read(file);
        match kind {
            // null, zero, random and so on.
            CHARACTERS if device >> 8 & 0xfff == 1 => {}
            // SAFETY: asks.
            REGULAR if reads => files.push((file, unsafe { syscall!(sys::LSEEK, file, 0, 1) })),
            _ if inherited => {}
            // The folder that is being read.
            _ if is_folder_of_descriptors(file) => {}
            _ => fit = false,
        }
    });
    if known && fit { Ok(()) } else { Err(refusal::DESCRIPTOR) }
}

/// `/proc/self/fd/N`.
fn link_of(file: i32) -> [u8; 40] {
    let mut path = [0u8; 40];
    let digits = sys::Decimal::new(file as u64);
    for (to, &from) in path.iter_mut().zip(b"/proc/self/fd/".iter().chain(digits.bytes())) {
        *to = from;
    }
    path
}

fn is_folder_of_descriptors(file: i32) -> bool {
    const READLINK: usize = 89;
    let (path, mut target) = (link_of(file), [0u8; 64]);
    // SAFETY: a terminated path and our own buffer.
    let length = unsafe { syscall!(READLINK, path.as_ptr(), target.as_mut_ptr(), target.len()) };
    let target = &target[..length.max(0) as usize];
    target.starts_with(b"/proc/") && target.ends_with(b"/fd")
}

/// A child reads files from places of its own.
pub fn open_files_again() {
    const DUP3: usize = 292;
    const F_GETFD: usize = 1;
    let files = &raw const READ_FILES;
    // SAFETY: the child has one thread.
    let files = unsafe { &*files };
    for &(file, place) in files.as_slice() {
        let path = link_of(file);
        // SAFETY: a terminated path. The new descriptor takes the place of the old one, whose file it reads from the same place
        // on.
        unsafe {
            let flags = syscall!(sys::FCNTL, file, F_GETFD);
            let new = syscall!(sys::OPENAT, -100isize, path.as_ptr(), O_CLOEXEC, 0);
            if place >= 0 && new >= 0 {
                syscall!(sys::LSEEK, new, place, 0);
                syscall!(DUP3, new, file, if flags & 1 != 0 { O_CLOEXEC } else { 0 });
            }
            if new >= 0 {
                syscall!(sys::CLOSE, new);
            }
        }
    }
}

/// Whether there is memory, other than what the host gave, that a child would share with its parent.
fn shares_memory() -> bool {
    let own = [header::page() as u64, explore::words() as u64];
    let (mut start, mut field, mut digits, mut shared) = (0u64, 0, true, false);
    let (mut writable, mut any) = (false, false);
    let known = read_pieces(c"/proc/self/maps", false, |piece| {
        for &byte in piece {
            match byte {
                b'\n' => {
                    any |= shared && writable && !own.contains(&start);
                    (start, field, digits, shared, writable) = (0, 0, true, false, false);
                }
                b' ' => field += 1,
                // start-end rights offset device inode path
                _ if field == 0 => match (byte as char).to_digit(16) {
                    Some(digit) if digits => start = start << 4 | u64::from(digit),
                    _ => digits = false,
                },
                _ if field == 1 => {
                    writable |= byte == b'w';
                    shared |= byte == b's';
                }
                _ => {}
            }
        }
    });
    any || !known
}
