//! Where a thread has its static thread-local storage.
//!
//! It lies below the thread pointer, and libc's own record of the thread from there upwards. How large both are, the loader and
//! libc tell to those who look into threads. The size of the storage counts the room that the loader keeps for libraries that are
//! opened later.

use crate::system::real::Real;
use core::ffi::c_void;

/// The loader's own: the size of a thread's storage and record together; and libc's: of the record alone. Looked up at the start:
/// reports are built under a lock of the loader's that comes after the one for looking up.
#[used]
#[unsafe(link_section = "rashomon_real")]
static STORAGE_SIZE: Real = Real::new(c"_dl_get_tls_static_info", None);
#[used]
#[unsafe(link_section = "rashomon_real")]
static RECORD_SIZE: Real = Real::new(c"_thread_db_sizeof_pthread", None);

/// What the storage is taken to be where nobody tells: more than there is, usually.
const UNKNOWN: u64 = 64 << 10;

/// The calling thread's thread pointer.
pub fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the first word at the thread pointer is the pointer itself.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, pure, readonly)) };
    pointer
}

/// The storage and record of a thread with this thread pointer, if their sizes are known.
pub fn around(pointer: u64) -> Option<(u64, u64)> {
    type Size = unsafe extern "C" fn(*mut usize, *mut usize);
    if STORAGE_SIZE.known().is_null() || RECORD_SIZE.known().is_null() {
        return None;
    }
    let (mut size, mut alignment) = (0, 0);
    // SAFETY: both are there, and are what their names say.
    let record = unsafe {
        core::mem::transmute::<*mut c_void, Size>(STORAGE_SIZE.known())(&mut size, &mut alignment);
        *RECORD_SIZE.known().cast::<u32>()
    };
    let end = pointer.checked_add(u64::from(record))?;
    Some((end.checked_sub(size as u64)?, end))
}

/// The same of the initial thread, whose storage lies in no stack that would hold it.
pub fn of_initial(pointer: u64) -> (u64, u64) {
    around(pointer).unwrap_or((pointer.saturating_sub(UNKNOWN), pointer))
}
