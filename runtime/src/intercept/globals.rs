//! Memory that a library has without being given it, as the user names it (Rajagopalan, thesis, 2016, §4.3, Caveat 5): by the
//! macros of `include/rashomon.h`, and by `--library-global`, which comes in the environment.
//!
//! Where a variable of a library is named, or it is said that none matters, calls reach what is named in place of all static data
//! of that library.
//!
//! Limit: names are those that the loader knows. Others are told by offset and size.

use crate::system::lock::RawLock;
use crate::system::memory::List;
use crate::system::thread::Runtime;
use crate::system::{real, sys};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::*};
use rashomon_abi::GLOBALS_VARIABLE;
use rashomon_abi::numbers::Fnv;

/// A name that is longer is not looked up.
const LONGEST_NAME: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Named {
    /// Hash of the library's name.
    library: u64,
    /// Start, bytes; no bytes: it is only said that nothing else matters.
    memory: [u64; 2],
    /// In place of the library's static data, not beside it.
    narrows: bool,
}

/// A loaded library, as far as names of its variables need it.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// Hashes of its names.
    pub names: [u64; 2],
    pub start: u64,
    pub end: u64,
}

static LOCK: RawLock = RawLock::new();
static mut NAMED: List<Named> = List::new();
/// What could not be found was told.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Of the name of a library.
pub fn hash(name: &[u8]) -> u64 {
    Fnv::EMPTY.with(name).0
}

fn add(new: Named) {
    let named = &raw mut NAMED;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        if !(*named).as_slice().contains(&new) {
            (*named).push(new);
        }
    });
}

/// In a child that has one thread.
pub fn forked() {
    LOCK.reset();
}

/// What a library with these names has: its static data (start, bytes), or what is named in its place; and what is named beside.
pub fn of(names: [u64; 2], data: [u64; 2], mut each: impl FnMut([u64; 2])) {
    let named = &raw const NAMED;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let own = || (*named).as_slice().iter().filter(|it| names.contains(&it.library));
        if !own().any(|it| it.narrows) {
            each(data);
        }
        own().for_each(|it| each(it.memory));
    });
}

/// Finds what the option names in libraries that are loaded.
pub fn look(loaded: &[Loaded]) {
    let Some(all) = real::environment(GLOBALS_VARIABLE.as_bytes()) else { return };
    for entry in all.split(|&byte| byte == b',').filter(|entry| !entry.is_empty()) {
        if let Some(named) = find(entry, loaded) {
            add(named);
        } else if !TOLD.load(Relaxed) {
            sys::message(&[b"--library-global ", entry, b": no such variable of a loaded library"]);
        }
    }
    TOLD.store(true, Relaxed);
}

/// `LIBRARY:NAME`, `LIBRARY:0xOFFSET+BYTES`, or `LIBRARY:` where no variable matters.
fn find(entry: &[u8], loaded: &[Loaded]) -> Option<Named> {
    let colon = entry.iter().rposition(|&byte| byte == b':')?;
    let (library, name) = (hash(&entry[..colon]), &entry[colon + 1..]);
    let own = loaded.iter().find(|it| it.names.contains(&library))?;
    let memory = match name {
        [] => Some([0, 0]),
        [b'0', b'x', rest @ ..] => placed(rest).map(|[offset, bytes]| [own.start.wrapping_add(offset), bytes]),
        name => variable(name),
    };
    let is_inside = |&[start, bytes]: &[u64; 2]| {
        bytes == 0 || start >= own.start && start.checked_add(bytes).is_some_and(|end| end <= own.end)
    };
    memory.filter(is_inside).map(|memory| Named { library, memory, narrows: true })
}

/// `OFFSET+BYTES`, the offset in hexadecimal digits.
fn placed(text: &[u8]) -> Option<[u64; 2]> {
    let plus = text.iter().position(|&byte| byte == b'+')?;
    let number = |digits: &[u8], radix| u64::from_str_radix(core::str::from_utf8(digits).ok()?, radix).ok();
    Some([number(&text[..plus], 16)?, number(&text[plus + 1..], 10).filter(|&bytes| bytes > 0)?])
}

/// Where the loader finds a variable, and how large its symbol says it is.
fn variable(name: &[u8]) -> Option<[u64; 2]> {
    /// Of an entry of a dynamic symbol table.
    const SIZE_AT: usize = 16;
    /// `RTLD_DL_SYMENT`
    const SYMBOL: c_int = 1;
    type Describe = unsafe extern "C" fn(*const c_void, *mut [u64; 4], *mut *const u8, c_int) -> c_int;
    let mut text = [0u8; LONGEST_NAME];
    text.get_mut(..name.len()).filter(|_| name.len() < LONGEST_NAME)?.copy_from_slice(name);
    let start = real::find(CStr::from_bytes_until_nul(&text).ok()?);
    let describe = real::find(c"dladdr1");
    if start == 0 || describe == 0 {
        return None;
    }
    let (mut described, mut symbol) = ([0u64; 4], core::ptr::null());
    // SAFETY: glibc's function of this name, and places for what it tells; a symbol that it tells of is one of a loaded module.
    let bytes = unsafe {
        let describe: Describe = core::mem::transmute::<u64, Describe>(describe);
        if describe(start as *const c_void, &raw mut described, &raw mut symbol, SYMBOL) == 0 || symbol.is_null() {
            return None;
        }
        symbol.add(SIZE_AT).cast::<u64>().read_unaligned()
    };
    Some([start, bytes]).filter(|_| bytes > 0)
}

unsafe fn told(library: *const c_char, memory: [u64; 2], narrows: bool) {
    if library.is_null() || Runtime::try_enter().is_none() {
        return;
    }
    // SAFETY: by `include/rashomon.h`, a terminated name.
    add(Named { library: hash(unsafe { CStr::from_ptr(library) }.to_bytes()), memory, narrows });
}

/// A variable of a library that its calls use, in place of all its static data (`include/rashomon.h`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rashomon_library_global(library: *const c_char, address: u64, bytes: u64) {
    // SAFETY: as it is called.
    unsafe { told(library, [address, bytes], true) }
}

/// Memory that calls of a library use though nothing that is seen leads there (`include/rashomon.h`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rashomon_library_reaches(library: *const c_char, address: u64, bytes: u64) {
    // SAFETY: as it is called.
    unsafe { told(library, [address, bytes], false) }
}
