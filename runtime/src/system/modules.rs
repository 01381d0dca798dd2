//! The loaded modules: written to the session for the host, and matched with the modules a schedule names.

use crate::system::lock::RawLock;
use crate::system::registered::Registered;
use crate::system::sys::{self, syscall};
use crate::system::{config, folder, header};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::control::{self, NO_MODULE};
use rashomon_abi::header::field;
use rashomon_abi::module;

const MAX_MODULES: usize = 1024;
/// Load bias + 1 of each module of the control file, 0 while unknown.
static BASES: [AtomicU64; MAX_MODULES] = [const { AtomicU64::new(0) }; MAX_MODULES];
/// Counts changes of them.
static MOVES: AtomicU32 = AtomicU32::new(0);
/// Load bias + 1 and first address of each module already written.
static WRITTEN: [[AtomicU64; 2]; MAX_MODULES] = [const { [const { AtomicU64::new(0) }; 2] }; MAX_MODULES];
/// Set while the loader is asked: the entries it still has.
static SEEN: [AtomicBool; MAX_MODULES] = [const { AtomicBool::new(false) }; MAX_MODULES];
/// Stands for an entry whose module was unloaded.
const UNLOADED: u64 = u64::MAX;
/// A library was loaded since modules were last looked at.
static CHANGED: AtomicBool = AtomicBool::new(false);
/// A line could not be written whole: it stays the last.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);
static LOCK: RawLock = RawLock::new();
/// Called when the list may have changed, under its lock.
pub static CHANGED_LIST: Registered<fn()> = Registered::none();
/// Told where a module lies that was loaded after another one was unloaded.
pub static BEGINS_AGAIN: Registered<fn(u64, u64)> = Registered::none();

/// `Elf64_Phdr`.
#[repr(C)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    offset: u64,
    pub address: u64,
    physical: u64,
    pub file_size: u64,
    pub memory_size: u64,
    alignment: u64,
}

/// The beginning of `dl_phdr_info`.
#[repr(C)]
pub struct Info {
    pub base: u64,
    name: *const c_char,
    headers: *const ProgramHeader,
    header_count: u16,
}

unsafe extern "C" {
    pub fn dl_iterate_phdr(callback: unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
}

/// # Safety
/// An entry of the loader's, during its visit.
pub unsafe fn program_headers(info: &Info) -> &[ProgramHeader] {
    // SAFETY: by the contract.
    unsafe { core::slice::from_raw_parts(info.headers, info.header_count as usize) }
}

/// # Safety
/// As [`program_headers`].
pub unsafe fn name_of(info: &Info) -> &[u8] {
    // SAFETY: null or a terminated text.
    if info.name.is_null() { b"" } else { unsafe { CStr::from_ptr(info.name) }.to_bytes() }
}

/// A code place of the control file as an address of this process.
pub fn address(module: u64, offset: u64) -> Option<u64> {
    if module == NO_MODULE {
        return Some(offset);
    }
    let base = BASES.get(module as usize)?.load(Relaxed).checked_sub(1)?;
    Some(base.wrapping_add(offset))
}

/// Another number when another address may belong to a place.
pub fn moves() -> u32 {
    MOVES.load(Acquire)
}

/// A forked child has a list of its own to write.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    LOCK.unlock();
    CUT_SHORT.store(false, Relaxed);
    BASES.iter().for_each(|base| base.store(0, Relaxed));
    MOVES.fetch_add(1, Release);
    for entry in WRITTEN.iter().take_while(|entry| entry[0].load(Relaxed) != 0) {
        entry[0].store(0, Relaxed);
    }
}

/// Libraries are coming or going: [`write_changes`] will have something to do.
pub fn changing() {
    CHANGED.store(true, Release);
}

/// [`write`] if that was announced. From the constructors of loaded libraries, before lookups in them, and at the end.
pub fn write_changes() {
    if CHANGED.swap(false, AcqRel) {
        write();
    }
}

/// A loaded module.
pub struct Module<'a> {
    /// Load bias.
    pub base: u64,
    pub start: u64,
    pub end: u64,
    /// Hexadecimal digits; empty if there is none.
    pub build_id: &'a [u8],
    pub path: &'a [u8],
    pub(super) headers: &'a [ProgramHeader],
}

/// Of the dynamic section.
const HASH: u64 = 4;
pub(super) const STRINGS: u64 = 5;
pub(super) const SYMBOLS: u64 = 6;
const GNU_HASH: u64 = 0x6fff_fef5;

impl Module<'_> {
    /// Whether its code calls the entry points of a runtime, or it holds ours: it refers to the one that instrumented modules
    /// call first.
    pub fn is_instrumented(&self) -> bool {
        let own = config::load as *const () as u64;
        (self.start..self.end).contains(&own) || self.refers_to(c"__tsan_init")
    }

    /// Whether a name that it does not define is among its dynamic symbols.
    pub fn refers_to(&self, name: &CStr) -> bool {
        self.any_undefined(|undefined| undefined == name)
    }

    /// Whether there is such a one among the names that it refers to and does not define.
    pub fn any_undefined(&self, mut is_one: impl FnMut(&CStr) -> bool) -> bool {
        let table = |tag| self.table(tag);
        let (Some(strings), Some(symbols)) = (table(STRINGS), table(SYMBOLS)) else { return false };
        // Tables of names hold those that are defined; all others come first.
        // SAFETY: heads of the tables: four words of 32 bits, the second is where names begin; two, the second is the number of
        // symbols.
        let symbol_count = unsafe {
            match (table(GNU_HASH), table(HASH)) {
                (Some(names), _) => *(names as *const u32).add(1),
                (None, Some(names)) => *(names as *const u32).add(1),
                (None, None) => 0,
            }
        };
        // SAFETY: symbols of 24 bytes, with the offset of a terminated name in front and the section behind six bytes.
        (0..symbol_count as u64).any(|at| unsafe {
            let symbol = symbols + 24 * at;
            let section = *((symbol + 6) as *const u16);
            section == 0 && is_one(CStr::from_ptr((strings + u64::from(*(symbol as *const u32))) as *const c_char))
        })
    }
}

/// Shows every loaded module to `visit`, which must not load or unload any.
pub fn each(mut visit: impl FnMut(&Module<'_>)) {
    unsafe extern "C" fn one<F: FnMut(&Module<'_>)>(info: *const Info, _size: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader's own tables, valid during the call; our own closure.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        // SAFETY: as above.
        let headers = unsafe { program_headers(info) };
        let loaded = || headers.iter().filter(|header| header.kind == 1);
        let Some(start) = loaded().map(|header| info.base + header.address).min() else { return 0 };
        let end = loaded().map(|header| info.base + header.address + header.memory_size).max().unwrap_or(start);
        let (mut own_path, mut digits) = ([0u8; 4096], [0u8; 128]);
        let length = build_id_of(info.base, headers, &mut digits);
        // SAFETY: as above.
        let path = unsafe { path_of(info, &mut own_path) };
        visit(&Module { base: info.base, start, end, build_id: &digits[..length], path, headers });
        0
    }
    fn callback<F: FnMut(&Module<'_>)>(_: &F) -> unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int {
        one::<F>
    }
    let callback = callback(&visit);
    // SAFETY: the callback keeps nothing.
    unsafe { dl_iterate_phdr(callback, (&raw mut visit).cast()) };
}

/// Runs `body` with the loader's lock, which it may take again: nothing is loaded or unloaded meanwhile. Who takes a lock of ours
/// that is also taken where the loader calls us (it frees memory when it unloads) and then asks for modules has to do so in here.
/// Names are not to be looked up in here: that takes another lock, before this one.
pub fn held<R>(body: impl FnOnce() -> R) -> R {
    struct Call<F, R>(Option<F>, Option<R>);
    unsafe extern "C" fn one<F: FnOnce() -> R, R>(_info: *const Info, _size: usize, call: *mut c_void) -> c_int {
        // SAFETY: our own.
        let call = unsafe { &mut *call.cast::<Call<F, R>>() };
        call.1 = call.0.take().map(|body| body());
        1
    }
    fn callback<F: FnOnce() -> R, R>(_: &Call<F, R>) -> unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int {
        one::<F, R>
    }
    let mut call = Call(Some(body), None);
    let callback = callback(&call);
    // SAFETY: the callback keeps nothing. There is always a module: the program.
    unsafe {
        dl_iterate_phdr(callback, (&raw mut call).cast());
        call.1.unwrap_unchecked()
    }
}

/// The module's path; that of the program itself, which is the first and has no name, is asked of the kernel.
///
/// # Safety
/// An entry of the loader's, during its visit.
unsafe fn path_of<'a>(info: &Info, own_path: &'a mut [u8; 4096]) -> &'a [u8] {
    // SAFETY: by the contract.
    let name = unsafe { name_of(info) };
    if !name.is_empty() {
        let length = name.len().min(own_path.len());
        own_path[..length].copy_from_slice(&name[..length]);
        return &own_path[..length];
    }
    // SAFETY: a terminated path and a local buffer.
    let length = unsafe { syscall!(89usize, c"/proc/thread-self/exe".as_ptr(), own_path.as_mut_ptr(), own_path.len()) };
    &own_path[..length.max(0) as usize]
}

/// Looks at what is loaded: at the start, when libraries were loaded or unloaded, and at the end.
pub fn write() {
    // Nobody reads it.
    if config::detecting() {
        return;
    }
    LOCK.with(|| {
        SEEN.iter().for_each(|seen| seen.store(false, Relaxed));
        // SAFETY: the callback keeps nothing.
        unsafe { dl_iterate_phdr(visit, core::ptr::null_mut()) };
        for (entry, seen) in WRITTEN.iter().zip(&SEEN).take_while(|(entry, _)| entry[0].load(Relaxed) != 0) {
            let base = entry[0].load(Relaxed);
            if base != UNLOADED && !seen.load(Relaxed) {
                entry[0].store(UNLOADED, Relaxed);
                unloaded(base - 1);
            }
        }
        if let Some(changed) = CHANGED_LIST.get() {
            changed();
        }
    });
}

/// A module is gone: its addresses may come to mean something else.
#[cold]
#[inline(never)]
fn unloaded(base: u64) {
    for known in &BASES {
        let _ = known.compare_exchange(base + 1, 0, AcqRel, Relaxed);
    }
    MOVES.fetch_add(1, Release);
    let mut line = Line::new();
    line.push(b"!");
    line.push_number(header::word(field::SEQUENCE).load(Relaxed));
    line.push(b"\t");
    line.push_number(base);
    line.append();
}

pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

unsafe extern "C" fn visit(info: *const Info, _size: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader's own tables, valid during the call.
    let (info, headers, name) = unsafe {
        let info = &*info;
        (info, program_headers(info), name_of(info))
    };
    let loaded = || headers.iter().filter(|header| header.kind == 1);
    let Some(start) = loaded().map(|header| info.base + header.address).min() else { return 0 };
    let end = loaded().map(|header| info.base + header.address + header.memory_size).max().unwrap_or(start);
    let same = |entry: &[AtomicU64; 2]| entry[0].load(Relaxed) == info.base + 1 && entry[1].load(Relaxed) == start;
    let written = WRITTEN.iter().take_while(|entry| entry[0].load(Relaxed) != 0).position(same);
    let wanted = BASES.iter().take(config::count(control::field::MODULES)).any(|known| known.load(Relaxed) == 0);
    match written {
        Some(at) if !wanted => SEEN[at].store(true, Relaxed),
        _ => look_at(info, headers, name, (start, end)),
    }
    0
}

/// A module that is new, or that a schedule may name. Apart from [`visit`], as its path takes pages of stack.
#[cold]
#[inline(never)]
fn look_at(info: &Info, headers: &[ProgramHeader], name: &[u8], (start, end): (u64, u64)) {
    let mut own_path = [0u8; 4096];
    let path = if name.is_empty() {
        // SAFETY: a terminated path and a local buffer. The program itself is the first module, without a name.
        let length = unsafe { syscall!(89usize, c"/proc/thread-self/exe".as_ptr(), own_path.as_mut_ptr(), own_path.len()) };
        &own_path[..length.max(0) as usize]
    } else {
        name
    };
    for (index, known) in BASES.iter().enumerate().take(config::count(control::field::MODULES)) {
        let wanted = config::module_path(index);
        let program = index == 0 && name.is_empty();
        if known.load(Relaxed) == 0 && (program || wanted == path || index > 0 && base_name(wanted) == base_name(path)) {
            known.store(info.base + 1, Release);
            MOVES.fetch_add(1, Release);
        }
    }
    let same = |entry: &[AtomicU64; 2]| {
        entry[0].load(Relaxed) == 0 || entry[0].load(Relaxed) == info.base + 1 && entry[1].load(Relaxed) == start
    };
    if let Some(at) = WRITTEN.iter().position(same) {
        let entry = &WRITTEN[at];
        SEEN[at].store(true, Relaxed);
        if entry[0].load(Relaxed) == 0 {
            entry[1].store(start, Relaxed);
            entry[0].store(info.base + 1, Relaxed);
            if WRITTEN[..at].iter().any(|other| other[0].load(Relaxed) == UNLOADED)
                && let Some(begins) = BEGINS_AGAIN.get()
            {
                begins(start, end);
            }
            let mut build_id = [0u8; 128];
            let id_length = build_id_of(info.base, headers, &mut build_id);
            append(info.base, start, end, &build_id[..id_length], path);
        }
    }
}

/// The GNU build-id note as hexadecimal digits; their number.
fn build_id_of(base: u64, headers: &[ProgramHeader], digits: &mut [u8; 128]) -> usize {
    for header in headers.iter().filter(|header| header.kind == 4) {
        let mut at = base + header.address;
        let end = at + header.memory_size;
        while at + 12 <= end {
            // SAFETY: inside a loaded note segment.
            let (name_size, size, kind) =
                unsafe { (*(at as *const u32) as u64, *((at + 4) as *const u32) as u64, *((at + 8) as *const u32)) };
            let name = at + 12;
            let value = name + name_size.next_multiple_of(4);
            if value + size > end {
                break;
            }
            // SAFETY: inside the segment.
            if kind == 3 && name_size == 4 && unsafe { *(name as *const u32) } == u32::from_le_bytes(*b"GNU\0") {
                let count = (size as usize).min(digits.len() / 2);
                for index in 0..count {
                    // SAFETY: inside the segment.
                    let byte = unsafe { *((value + index as u64) as *const u8) };
                    digits[2 * index] = hexadecimal(byte >> 4);
                    digits[2 * index + 1] = hexadecimal(byte & 15);
                }
                return 2 * count;
            }
            at = value + size.next_multiple_of(4);
        }
    }
    0
}

fn hexadecimal(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

fn append(base: u64, start: u64, end: u64, build_id: &[u8], path: &[u8]) {
    let mut line = Line::new();
    for value in [header::word(field::SEQUENCE).load(Relaxed), base, start, end] {
        line.push_number(value);
        line.push(b"\t");
    }
    line.push(if build_id.is_empty() { module::NO_BUILD_ID.as_bytes() } else { build_id });
    line.push(b"\t");
    line.push_path(path);
    line.append();
}

/// A line of the modules file.
struct Line {
    bytes: [u8; 4600],
    length: usize,
}

impl Line {
    const fn new() -> Self {
        Self { bytes: [0; 4600], length: 0 }
    }
    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // The last place is the newline's.
            if self.length + 1 < self.bytes.len() {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }
    fn push_path(&mut self, path: &[u8]) {
        for (at, byte) in path.iter().enumerate() {
            let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
            match path[at..] {
                [b'\n', ..] => self.push(module::NEWLINE.as_bytes()),
                [b'\\', b'x', ref high, ref low, ..] if is_digit(high) && is_digit(low) => {
                    self.push(module::BACKSLASH.as_bytes())
                }
                _ => self.push(core::slice::from_ref(byte)),
            }
        }
    }
    fn push_number(&mut self, value: u64) {
        let mut digits = [0u8; 16];
        for (place, digit) in digits.iter_mut().enumerate() {
            *digit = hexadecimal((value >> (60 - 4 * place) & 15) as u8);
        }
        self.push(&digits);
    }
    fn append(mut self) {
        if CUT_SHORT.load(Relaxed) {
            return;
        }
        self.bytes[self.length] = b'\n';
        // O_WRONLY | O_CREAT | O_APPEND
        let fd = folder::open(rashomon_abi::MODULES_FILE.as_bytes(), None, 0o2101);
        // SAFETY: a descriptor of ours; the initialised part of the buffer.
        unsafe {
            let result = if fd < 0 { fd } else { sys::append(fd, &self.bytes[..self.length + 1]) };
            if fd >= 0 {
                syscall!(sys::CLOSE, fd);
            }
            if result < 0 {
                CUT_SHORT.store(true, Relaxed);
                header::unwritten(result);
            }
        }
    }
}

/// Whether the host knows of this pair of sites already.
pub fn is_known(one: u64, other: u64) -> bool {
    let table = config::tables().known;
    (0..config::count(control::field::KNOWN)).any(|index| {
        let at = table + index * control::KNOWN_WORDS;
        let site = |offset: usize| address(config::word(at + offset), config::word(at + offset + 1));
        let pair = (site(0), site(2));
        pair == (Some(one), Some(other)) || pair == (Some(other), Some(one))
    })
}
