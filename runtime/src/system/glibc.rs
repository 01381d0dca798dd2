//! The C library's own code: what it does to memory inside its functions is none of the program's accesses.
//!
//! glibc calls `malloc` and `free` by their public names, so that we see its blocks, but it takes its locks inside, where nobody
//! sees them: blocks that its threads hand to each other behind such a lock (the resolver's list of addresses, buffers of
//! streams, tables of time zones and locales) would look unordered. So a call from the library's own code makes no access. Its
//! blocks begin and end as others do: whoever uses memory that the library gave back uses it after it was freed. What its
//! functions read and write of the *program's* memory is told by the functions in [`crate::intercept`].
//!
//! Plug-ins of the name service are loaded by the library itself, unseen: functions that may load one look again.

use crate::system::modules;
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
/// The C++ library counts who uses its exceptions, texts and locales by atomics that nobody sees: when it gives such memory back,
/// that is in order.
const OF_CXX: [&[u8]; 5] = [b"libstdc++.so", b"libc++.so", b"libc++abi.so", b"libgcc_s.so", b"libunwind.so"];
const MOST: usize = 16;

/// Start and end of the code of each library. Only ever added to.
struct Code {
    ranges: [[AtomicU64; 2]; MOST],
    count: AtomicUsize,
}

impl Code {
    const fn new() -> Self {
        Self { ranges: [const { [const { AtomicU64::new(0) }; 2] }; MOST], count: AtomicUsize::new(0) }
    }

    /// Several threads may do so at once: a place is whose start it got first. It holds nothing until its end is there.
    fn add(&self, start: u64, end: u64) {
        for (place, [first, last]) in self.ranges.iter().enumerate() {
            match first.compare_exchange(0, start, Relaxed, Relaxed) {
                Ok(_) => {
                    last.store(end, Release);
                    self.count.fetch_max(place + 1, Release);
                    return;
                }
                Err(taken) if taken == start => return,
                Err(_) => {}
            }
        }
    }

    #[inline]
    fn holds(&self, site: u64) -> bool {
        let known = &self.ranges[..self.count.load(Acquire).min(MOST)];
        known.iter().any(|[start, end]| site < end.load(Acquire) && start.load(Relaxed) <= site)
    }
}

static CODE: Code = Code::new();
static CXX_CODE: Code = Code::new();

/// At the start, and behind calls that may have loaded more. Two threads that add the same one at the same time do no harm.
pub fn look() {
    modules::each(|module| {
        let name = modules::base_name(module.path);
        for (code, names) in [(&CODE, NAMES.as_slice()), (&CXX_CODE, OF_CXX.as_slice())] {
            if !code.holds(module.start) && names.iter().any(|library| name.starts_with(library)) {
                code.add(module.start, module.end);
            }
        }
    });
}

/// Whether a place of code is the library's.
#[inline]
pub fn calls_from(site: u64) -> bool {
    CODE.holds(site)
}

/// The same of the C++ library.
#[inline]
pub fn cxx_calls_from(site: u64) -> bool {
    CXX_CODE.holds(site)
}
