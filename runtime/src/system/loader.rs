//! The loader: its lock in a forked child, and its own memory.
//!
//! `dl_iterate_phdr` holds a mutex of the loader's, and so do `dlopen` and `dlclose` while they change the list of modules. glibc
//! (2.36, and later ones as far as its source tells) leaves that mutex as it is when a process forks: if another thread held it,
//! nobody in the child ever gives it back, and whoever asks for modules there (the runtime does) waits for ever, or is shown a
//! module whose memory is gone already. So whoever forks takes it before, and the child makes it free. If its holder does not
//! give it back for a second, the fork goes ahead.
//!
//! The mutex has no name. It is found by what it does: the one recursive mutex in the loader's data that belongs to the calling
//! thread during `dl_iterate_phdr` and to nobody behind it. If there is not exactly one, nothing is done, and children are as
//! they are without us.
//!
//! What the loader keeps of a module (its name, its headers) it takes from the program's `malloc` and shows to the callbacks of
//! `dl_iterate_phdr`, all behind that mutex, of which nobody else sees anything. So nothing that it does to its blocks is an
//! access.

use crate::system::modules::{Info, base_name, dl_iterate_phdr, name_of, program_headers};
use crate::system::real::real;
use crate::system::sys;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// The beginning of glibc's `pthread_mutex_t`.
#[repr(C)]
struct Mutex {
    lock: AtomicU32,
    count: AtomicU32,
    owner: AtomicU32,
    users: AtomicU32,
    kind: AtomicU32,
}

const RECURSIVE: u32 = 1;
const MOST: usize = 4;
/// 0: not known.
static MUTEX: AtomicUsize = AtomicUsize::new(0);
/// Start and end of the loader's code; nothing until it is known.
static CODE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

struct Search {
    owner: u32,
    found: [usize; MOST],
    count: usize,
}

/// Shown the loader itself: looks at its data.
unsafe extern "C" fn visit(info: *const Info, _size: usize, search: *mut c_void) -> c_int {
    const LOADABLE: u32 = 1;
    const EXECUTABLE: u32 = 1;
    const WRITABLE: u32 = 2;
    // SAFETY: the loader's own tables, valid during the call; our own search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: as above.
    let (name, headers) = unsafe { (name_of(info), program_headers(info)) };
    if !base_name(name).starts_with(b"ld-linux") {
        return 0;
    }
    if let Some(code) = headers.iter().find(|header| header.kind == LOADABLE && header.flags & EXECUTABLE != 0) {
        CODE[0].store(info.base + code.address, Relaxed);
        CODE[1].store(info.base + code.address + code.memory_size, Relaxed);
    }
    for header in headers.iter().filter(|header| header.kind == LOADABLE && header.flags & WRITABLE != 0) {
        let start = (info.base + header.address).next_multiple_of(8) as usize;
        let end = (info.base + header.address + header.memory_size) as usize;
        let places = (start..end.saturating_sub(size_of::<Mutex>())).step_by(8);
        for place in places {
            // SAFETY: inside a loaded writable segment, aligned.
            let mutex = unsafe { &*(place as *const Mutex) };
            let held = mutex.owner.load(Relaxed) == search.owner
                && mutex.lock.load(Relaxed) != 0
                && mutex.count.load(Relaxed) == 1
                && mutex.kind.load(Relaxed) == RECURSIVE;
            if held && search.count < MOST {
                search.found[search.count] = place;
                search.count += 1;
            }
        }
    }
    1
}

/// At the start, by the initial thread.
pub fn learn() {
    let mut search = Search { owner: sys::thread_id(), found: [0; MOST], count: 0 };
    // SAFETY: the callback keeps nothing.
    unsafe { dl_iterate_phdr(visit, (&raw mut search).cast()) };
    // SAFETY: places in the loader's data, which is never unloaded.
    let is_free = |place: &&usize| unsafe { (*(**place as *const Mutex)).owner.load(Relaxed) != search.owner };
    let mut free = search.found[..search.count].iter().filter(is_free);
    if let (Some(&place), None) = (free.next(), free.next()) {
        MUTEX.store(place, Release);
    }
}

/// Whether a place of code is the loader's own.
pub fn calls_from(site: u64) -> bool {
    CODE[0].load(Relaxed) <= site && site < CODE[1].load(Relaxed)
}

fn mutex() -> Option<&'static Mutex> {
    // SAFETY: null, or found by `learn` in the loader's data.
    unsafe { (MUTEX.load(Acquire) as *const Mutex).as_ref() }
}

fn try_hold(mutex: &Mutex) -> bool {
    // SAFETY: one of libc's.
    unsafe { real!(fn pthread_mutex_trylock(*const Mutex) -> c_int)(mutex) == 0 }
}

/// Before a fork: nobody else changes the list of modules from here on. False: somebody may. `wait` asks what it is given for a
/// while, or until that says yes.
pub fn hold(wait: impl FnOnce(&dyn Fn() -> bool)) -> bool {
    let Some(mutex) = mutex() else { return false };
    if try_hold(mutex) {
        return true;
    }
    let held = Cell::new(false);
    wait(&|| {
        held.set(try_hold(mutex));
        held.get()
    });
    held.get()
}

/// In the parent, behind a fork, if it was held.
pub fn release() {
    if let Some(mutex) = mutex() {
        // SAFETY: one of libc's, taken by this thread.
        unsafe { real!(fn pthread_mutex_unlock(*const Mutex) -> c_int)(mutex) };
    }
}

/// In a forked child that has one thread: nobody else is there to give the lock back, and this thread is another one to it.
pub fn forked() {
    let Some(mutex) = mutex() else { return };
    for word in [&mutex.count, &mutex.owner, &mutex.users, &mutex.lock] {
        word.store(0, Release);
    }
}
