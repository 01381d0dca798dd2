//! External inputs: data of files that nobody in this process wrote, and signals that nobody in it sent.
//!
//! From the first such thing on a re-execution may see something else. Pipes and socket pairs that the process made itself are
//! inside as long as it has not forked; every other socket, terminals and pipes that were there before are outside. Regular files
//! are taken to be the same next time.

use crate::record::{origin, recorder};
use crate::system::header;
use crate::system::lock::RawLock;
use crate::system::memory::Map;
use crate::system::sys::{self, syscall};
use crate::system::thread::Thread;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::*};
use rashomon_abi::header::{field, note};
use rashomon_abi::record::{Op, input};

/// A part of the files that the process made: threads ask of their own ones at each transfer.
#[repr(align(64))]
struct Shard {
    lock: RawLock,
    files: UnsafeCell<Map>,
}

// SAFETY: the map is touched under its lock only.
unsafe impl Sync for Shard {}

const SHARDS: usize = 64;
static OWN: [Shard; SHARDS] = [const { Shard { lock: RawLock::new(), files: UnsafeCell::new(Map::new()) } }; SHARDS];
static MADE: AtomicU64 = AtomicU64::new(0);

/// Who a file is, whatever descriptor names it: device and inode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// What the kernel says of a descriptor.
#[derive(Clone, Copy)]
pub struct Status {
    pub identity: Identity,
    /// Bits of `S_IFMT`.
    pub kind: u32,
    /// Of a device: which.
    pub device: u64,
}

/// `None`: it is no descriptor.
pub fn status(file: c_int) -> Option<Status> {
    let mut status = [0u64; 18];
    // SAFETY: `struct stat` has 144 bytes: device, inode, links, mode and user, group, device number, …
    let result = unsafe { syscall!(sys::FSTAT, file, status.as_mut_ptr()) };
    let identity = Identity { device: status[0], inode: status[1] };
    (result >= 0).then_some(Status { identity, kind: status[3] as u32 & 0o170_000, device: status[5] })
}

/// Who a socket is; `None` of anything else.
pub fn socket(file: c_int) -> Option<Identity> {
    const SOCKET: u32 = 0o140_000;
    status(file).filter(|status| status.kind == SOCKET).map(|status| status.identity)
}

/// A forked child made none of them: its parent has the other ends.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    for shard in &OWN {
        shard.lock.reset();
        // SAFETY: nobody else is there. The map may have been in the middle of a change.
        unsafe { shard.files.get().write(Map::new()) };
    }
    MADE.store(0, Relaxed);
}

fn with<R>(file: Identity, body: impl FnOnce(&mut Map) -> R) -> R {
    let shard = &OWN[file.inode as usize % SHARDS];
    // SAFETY: under the shard's lock.
    shard.lock.with(|| body(unsafe { &mut *shard.files.get() }))
}

/// The process made this pipe or socket pair.
pub fn made_here(file: Identity) {
    with(file, |files| *files.entry((file.device, file.inode)) = MADE.fetch_add(1, Relaxed) + 1);
}

/// The ordinal of a pipe, or of an end of a socket pair, among those of this process: the same in every execution, unlike its
/// inode.
pub fn ordinal(file: Identity) -> Option<u64> {
    with(file, |files| files.get((file.device, file.inode)))
}

/// Whether all that can be read from a file was written in this process.
pub fn is_own(file: Identity) -> bool {
    header::word(field::FORKS).load(Relaxed) == 0 && ordinal(file).is_some()
}

/// Something came in: the first time, this is where the recording stops being re-executable. `file`: the descriptor it came from.
pub fn came_in(thread: &Thread, object: u64, source: u16, site: u64, file: Option<c_int>) {
    if header::word(field::NOT_REEXECUTABLE_FROM).load(Relaxed) != 0 {
        return;
    }
    header::note(note::EXTERNAL_INPUT);
    let executed = thread.accesses_since_sync();
    let mut arguments = [0; 1 + input::WORDS];
    arguments[0] = executed;
    if let Some(file) = file {
        arguments[1..].copy_from_slice(&origin::of(file));
    }
    let count = if file.is_some() { arguments.len() } else { 1 };
    let sequence = recorder::sync(thread, Op::ExternalInput, object, source, site, &arguments[..count]);
    let _ = header::word(field::NOT_REEXECUTABLE_FROM).compare_exchange(0, sequence, AcqRel, Relaxed);
}
