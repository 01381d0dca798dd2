//! Which processors the program may use, and how many there are.
//!
//! A serial execution stays on one processor ([`crate::system::processor`]), of which these functions tell nothing: a program
//! that makes a thread for each processor makes as many as without the runtime. A thread that the program places itself is left
//! where it was placed.
//!
//! Limit: a thread made by one that the program placed on just the processor that was chosen is said to run anywhere.

use crate::system::handles;
use crate::system::processor::{self, everywhere};
use crate::system::real::real;
use crate::system::sys;
use core::ffi::{c_char, c_int, c_long};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Threads that the program placed on just the processor that was chosen, by the kernel's numbers; 0: none. A program with more
/// of them hears of the last ones.
static PLACED: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];
static NEXT_PLACED: AtomicU32 = AtomicU32::new(0);

/// A thread, by the kernel's number, was placed by the program.
fn placed(id: u32, bytes: &[u8]) {
    let at = PLACED.iter().position(|known| known.load(Relaxed) == id);
    let slot = if processor::is_our_mask(bytes) {
        let at = at.unwrap_or_else(|| NEXT_PLACED.fetch_add(1, Relaxed) as usize % PLACED.len());
        Some((at, id))
    } else {
        at.map(|at| (at, 0))
    };
    if let Some((at, id)) = slot {
        PLACED[at].store(id, Relaxed);
    }
}

/// What the program is told in place of a mask of ours.
fn tell(id: u32, bytes: &mut [u8]) {
    if processor::is_our_mask(bytes) && PLACED.iter().all(|placed| placed.load(Relaxed) != id) {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = processor::allowed_byte(at);
        }
    }
}

/// The kernel's number of what the program calls 0.
fn numbered(id: c_int) -> u32 {
    if id == 0 { sys::thread_id() } else { id as u32 }
}

/// Behind a call that has filled the mask.
///
/// # Safety
/// The program's mask, that the kernel has written to.
pub unsafe fn told(id: c_int, bytes: usize, mask: *mut u8) {
    if processor::is_chosen() {
        // SAFETY: by the contract.
        tell(numbered(id), unsafe { core::slice::from_raw_parts_mut(mask, bytes) });
    }
}

/// Behind a call that has placed a thread.
///
/// # Safety
/// The program's mask, which the kernel has read.
pub unsafe fn was_placed(id: c_int, bytes: usize, mask: *const u8) {
    if processor::is_chosen() {
        // SAFETY: by the contract.
        placed(numbered(id), unsafe { core::slice::from_raw_parts(mask, bytes) });
    }
}

unsafe extern "C" fn get(id: c_int, bytes: usize, mask: *mut u8) -> c_int {
    // SAFETY: the program's arguments; the mask is filled where the call succeeds.
    unsafe {
        let result = real!("GLIBC_2.3.4" fn sched_getaffinity(c_int, usize, *mut u8) -> c_int)(id, bytes, mask);
        if result == 0 {
            told(id, bytes, mask);
        }
        result
    }
}

unsafe extern "C" fn set(id: c_int, bytes: usize, mask: *const u8) -> c_int {
    // SAFETY: the program's arguments; the kernel has read the mask where the call succeeds.
    unsafe {
        let result = real!("GLIBC_2.3.4" fn sched_setaffinity(c_int, usize, *const u8) -> c_int)(id, bytes, mask);
        if result == 0 {
            was_placed(id, bytes, mask);
        }
        result
    }
}

/// The kernel's number of a thread, by its handle. A number that no thread has, if it is unknown.
fn number_of(handle: u64) -> c_int {
    handles::by_handle(handle).map_or(-1, |thread| thread.kernel_id.get() as c_int)
}

unsafe extern "C" fn get_of_thread(handle: u64, bytes: usize, mask: *mut u8) -> c_int {
    // SAFETY: as in `get`.
    unsafe {
        let result = real!("GLIBC_2.32" fn pthread_getaffinity_np(u64, usize, *mut u8) -> c_int)(handle, bytes, mask);
        if result == 0 {
            told(number_of(handle), bytes, mask);
        }
        result
    }
}

unsafe extern "C" fn set_of_thread(handle: u64, bytes: usize, mask: *const u8) -> c_int {
    // SAFETY: as in `set`.
    unsafe {
        let result = real!("GLIBC_2.34" fn pthread_setaffinity_np(u64, usize, *const u8) -> c_int)(handle, bytes, mask);
        if result == 0 {
            was_placed(number_of(handle), bytes, mask);
        }
        result
    }
}

unsafe extern "C" fn configured(name: c_int) -> c_long {
    const NPROCESSORS_ONLN: c_int = 84;
    // SAFETY: a number only.
    let real = || unsafe { real!(fn sysconf(c_int) -> c_long)(name) };
    // Some versions of libc count what the calling thread may use.
    if name == NPROCESSORS_ONLN { everywhere(real) } else { real() }
}

unsafe extern "C" fn count() -> c_int {
    // SAFETY: no arguments.
    everywhere(|| unsafe { real!(fn get_nprocs() -> c_int)() })
}

/// `popen`: what it starts may run anywhere.
pub unsafe fn open_process(command: *const c_char, mode: *const c_char) -> *mut u8 {
    // SAFETY: the program's texts.
    everywhere(|| unsafe { real!(fn popen(*const c_char, *const c_char) -> *mut u8)(command, mode) })
}

crate::intercept::interpose! {
    sched_getaffinity => get;
    sched_setaffinity => set;
    pthread_getaffinity_np => get_of_thread;
    pthread_setaffinity_np => set_of_thread;
    sysconf => configured;
    get_nprocs => count;
}
