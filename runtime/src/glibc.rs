//! The C library's own code: what it does to memory inside its functions is none of the program's accesses.
//!
//! glibc calls `malloc` and `free` by their public names, so that we see its blocks, but it takes its locks inside, where nobody sees them: blocks that its threads hand to each other
//! behind such a lock (the resolver's list of addresses, buffers of streams, tables of time zones and locales) would look unordered. So a call from the library's own code makes no
//! access. Its blocks begin and end as others do: whoever uses memory that the library gave back uses it after it was freed. What its functions read and write of the *program's* memory
//! is told by the functions in [`crate::intercept`].
//!
//! Plug-ins of the name service are loaded by the library itself, unseen: functions that may load one look again.

use crate::modules;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// What the names of its libraries begin with.
const NAMES: [&[u8]; 9] = [
    b"libc.so",
    b"libpthread.so",
    b"libresolv.so",
    b"libnss_",
    b"libm.so",
    b"librt.so",
    b"libdl.so",
    b"libanl.so",
    b"libthread_db.so",
];
const MOST: usize = 16;
/// Start and end of each. Only ever added to.
static CODE: [[AtomicU64; 2]; MOST] = [const { [const { AtomicU64::new(0) }; 2] }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// At the start, and behind calls that may have loaded more. Two threads that add the same one at the same time do no harm.
pub fn look() {
    modules::each(|module| {
        let name = modules::base_name(module.path);
        if calls_from(module.start) || !NAMES.iter().any(|library| name.starts_with(library)) {
            return;
        }
        let place = COUNT.load(Relaxed);
        if let Some([start, end]) = CODE.get(place) {
            start.store(module.start, Relaxed);
            end.store(module.end, Relaxed);
            COUNT.store(place + 1, Release);
        }
    });
}

/// Whether a place of code is the library's.
#[inline]
pub fn calls_from(site: u64) -> bool {
    CODE[..COUNT.load(Acquire).min(MOST)].iter().any(|[start, end]| start.load(Relaxed) <= site && site < end.load(Relaxed))
}
