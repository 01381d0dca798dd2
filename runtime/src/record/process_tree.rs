//! The processes of a session, each with a folder of its own.
//!
//! The program that the host started records into the session itself. Every process gives *places* to those it makes, counted
//! from 0 in the order of its calls: place N of a process is the folder `process-NNNN` in its own, which whoever ends up there
//! makes and claims. A forked child is given its place, folder and header by its parent, before there is a child, so that no
//! child is ever overlooked. A program that is started, or that takes the place of this one, finds its place named in the
//! environment. Who finds it taken (the place was given to a program that is not instrumented, and which starts several) asks for
//! the next place of the process that took it. Names so depend on the order of calls, and on nothing that the kernel decides.
//!
//! Whatever fails here lets the process in question run unobserved.

use crate::detect;
use crate::record::recorder;
use crate::system::sys::{self, syscall};
use crate::system::{config, folder, header, process_name};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::{HEADER_BYTES, MAGIC, field, note, origin, state};
use rashomon_abi::{
    CLAIM_FILE, CONTROL_FILE, ENFORCED_PROCESS_VARIABLE, HEADER_FILE, PROCESS_FOLDER_PREFIX, PROTOCOL_VERSION, SESSION_VARIABLE,
};

/// A path, terminated by zero.
pub type Path = [u8; 4096];

const ENOENT: isize = 2;
/// No process records, or may record, deeper.
const LONGEST_FOLDER: usize = 3900;
/// The number of a place that nobody is to have.
pub const NO_PLACE: u64 = u64::MAX;

/// The header of the initial process.
static INITIAL: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
static ORIGIN: AtomicU64 = AtomicU64::new(origin::INITIAL);

fn length(path: &Path) -> usize {
    path.iter().position(|&byte| byte == 0).unwrap_or(path.len())
}

/// Appends `/name`, and a number if there is one.
fn enter(folder: &mut Path, name: &[u8], number: Option<u64>) {
    let mut at = length(folder);
    let digits = number.map(sys::Decimal::new);
    let digits = digits.as_ref().map_or(&[][..], sys::Decimal::bytes);
    let zeros = if number.is_some() { 4usize.saturating_sub(digits.len()) } else { 0 };
    for &byte in b"/".iter().chain(name).chain(&b"0000"[..zeros]).chain(digits) {
        if at + 1 < folder.len() {
            folder[at] = byte;
            at += 1;
        }
    }
    folder[at] = 0;
}

fn file_in(folder: &Path, name: &str) -> Path {
    let mut path = *folder;
    enter(&mut path, name.as_bytes(), None);
    path
}

/// Whether the folder's own name is that of a place, and if so where its name begins.
fn place_name(folder: &Path) -> Option<usize> {
    let end = length(folder);
    let start = folder[..end].iter().rposition(|&byte| byte == b'/')? + 1;
    let digits = folder[start..end].strip_prefix(PROCESS_FOLDER_PREFIX.as_bytes())?;
    (digits.len() >= 4 && digits.iter().all(u8::is_ascii_digit)).then_some(start)
}

fn exists(path: &Path) -> bool {
    // SAFETY: a terminated path; F_OK.
    unsafe { syscall!(sys::ACCESS, path.as_ptr(), 0) == 0 }
}

/// The folder of the initial process: outwards from `folder` as long as somebody records in the folder around.
fn session_of(folder: &Path) -> Path {
    let mut folder = *folder;
    while let Some(start) = place_name(&folder) {
        let mut around = folder;
        around[start - 1..].fill(0);
        if !exists(&file_in(&around, HEADER_FILE)) {
            break;
        }
        folder = around;
    }
    folder
}

/// Whether this process is the first; the negative error where that cannot be told.
fn claim(folder: &Path) -> Result<bool, isize> {
    const EEXIST: isize = 17;
    let path = file_in(folder, CLAIM_FILE);
    // SAFETY: terminated path; our own descriptor. O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
    unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), 0o2000301, 0o644);
        if file >= 0 {
            syscall!(sys::CLOSE, file);
        }
        if file >= 0 || file == -EEXIST { Ok(file >= 0) } else { Err(file) }
    }
}

fn make_folder(folder: &Path) {
    // SAFETY: terminated path. Who made it before may be the host, which left a control file in it.
    unsafe { syscall!(sys::MKDIR, folder.as_ptr(), 0o755) };
}

/// Maps the header in a folder, shared, for as long as the process lives; or the negative error.
fn map_header(folder: &Path, create: bool) -> Result<*mut AtomicU64, isize> {
    let path = file_in(folder, HEADER_FILE);
    // O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC
    let flags = if create { 0o2001102 } else { 0o2000002 };
    // SAFETY: terminated path, fresh mapping.
    unsafe {
        let file = syscall!(sys::OPENAT, -100isize, path.as_ptr(), flags, 0o644);
        if file < 0 {
            return Err(file);
        }
        let mut page = if create { sys::grow(file, 0, HEADER_BYTES) } else { 0 };
        if page >= 0 {
            page = sys::call(sys::MMAP, 0, HEADER_BYTES, 3, 1, file as usize, 0);
        }
        syscall!(sys::CLOSE, file);
        if page < 0 && create {
            syscall!(sys::UNLINK, path.as_ptr());
        }
        if page < 0 { Err(page) } else { Ok(page as *mut AtomicU64) }
    }
}

/// # Safety
/// A page of [`map_header`], whose file nobody cuts.
unsafe fn word(page: *mut AtomicU64, index: usize) -> &'static AtomicU64 {
    // SAFETY: by the contract; 512 words.
    unsafe { &*page.add(index) }
}

/// A new header in a claimed folder.
fn create_header(folder: &Path, origin: u64, parent: u64, forked_at: u64) -> Result<*mut AtomicU64, isize> {
    let page = map_header(folder, true)?;
    let set = |index: usize, value: u64| {
        // SAFETY: just mapped.
        unsafe { word(page, index) }.store(value, Release);
    };
    set(field::SEQUENCE, 1);
    set(field::MODE, config::mode());
    set(field::VERSION, PROTOCOL_VERSION as u64);
    set(field::STATE, state::RUNNING);
    set(field::ORIGIN, origin);
    set(field::PARENT_PROCESS_ID, parent);
    set(field::FORKED_AT, forked_at);
    set(field::MAGIC, MAGIC);
    Ok(page)
}

/// Counts one process more; false if there are enough.
fn admit() -> bool {
    let initial = INITIAL.load(Acquire);
    if initial.is_null() {
        return false;
    }
    // SAFETY: the initial process's header.
    let (processes, notes) = unsafe { (word(initial, field::PROCESSES), word(initial, field::NOTES)) };
    let limit = config::word(control::field::PROCESSES);
    let admitted = processes.fetch_add(1, Relaxed) < limit || limit == 0;
    if !admitted {
        notes.fetch_or(note::TOO_MANY_PROCESSES, Relaxed);
    }
    admitted
}

/// Why a program cannot be recorded, and the error of the kernel that says so (0: none).
pub struct Refused {
    pub what: &'static [u8],
    pub error: isize,
}

impl From<&'static [u8]> for Refused {
    fn from(what: &'static [u8]) -> Self {
        Self { what, error: 0 }
    }
}

/// At the start of a program: takes the place that the environment names, or the next one in it. False: the process is to run
/// unobserved.
pub fn begin(named: &Path) -> Result<bool, Refused> {
    if length(named) > LONGEST_FOLDER {
        return Ok(false);
    }
    let session = session_of(named);
    let is_session = session == *named;
    if !is_session {
        make_folder(named);
    }
    let mut folder = *named;
    let mut from = if is_session { origin::INITIAL } else { origin::EXECUTED };
    let claimed = match claim(&folder) {
        // A session that does not exist lets the program run unobserved.
        Err(error) if error != -ENOENT && is_session && place_name(named).is_none() => {
            return Err(Refused { what: b"cannot record into the session directory", error });
        }
        claimed => claimed.unwrap_or(false),
    };
    if !claimed {
        let Ok(page) = map_header(&folder, false) else { return Ok(false) };
        // SAFETY: mapped just now, and used no more behind this.
        let number = unsafe {
            let number = word(page, field::PLACES).fetch_add(1, Relaxed);
            sys::unmap(page.cast(), HEADER_BYTES);
            number
        };
        enter(&mut folder, PROCESS_FOLDER_PREFIX.as_bytes(), Some(number));
        make_folder(&folder);
        if claim(&folder) != Ok(true) {
            return Ok(false);
        }
        from = origin::EXECUTED;
    }
    let own_control = file_in(&folder, CONTROL_FILE);
    if is_session && from == origin::INITIAL || exists(&own_control) {
        config::load(&own_control)?;
    } else {
        config::load(&file_in(&session, CONTROL_FILE))?;
        config::drop_schedule();
    }
    if config::mode() == 0 {
        return Ok(false);
    }
    if from != origin::INITIAL {
        INITIAL.store(map_header(&session, false).unwrap_or(core::ptr::null_mut()), Release);
        if !admit() {
            return Ok(false);
        }
    }
    let parent = if from == origin::INITIAL { 0 } else { sys::parent_process_id() as u64 };
    let page = match create_header(&folder, from, parent, 0) {
        Ok(page) => page,
        Err(error) if from == origin::INITIAL => {
            return Err(Refused { what: b"cannot create the recording's header file", error });
        }
        // Whoever started it is recorded.
        Err(_) => return Ok(false),
    };
    if from == origin::INITIAL {
        INITIAL.store(page, Release);
        admit();
    }
    settle(&folder, page, from);
    Ok(true)
}

/// The process records here from now on.
fn settle(folder: &Path, page: *mut AtomicU64, from: u64) {
    // SAFETY: at the start, or in a child that has one thread.
    unsafe { recorder::enable(folder) };
    header::set_page(page.cast());
    header::set(field::PROCESS_ID, sys::process_id() as u64);
    ORIGIN.store(from, Release);
    name_in_environment(folder);
}

/// The number of the next place that this process gives.
pub fn next_place() -> u64 {
    if detect::on() {
        return if process_name::counted() { process_name::next() } else { NO_PLACE };
    }
    if config::mode() == 0 { NO_PLACE } else { header::word(field::PLACES).fetch_add(1, Relaxed) }
}

/// A forked child's place, made by its parent.
pub struct Cradle {
    pub folder: Path,
    pub page: *mut AtomicU64,
    pub number: u64,
}

impl Cradle {
    pub const EMPTY: Self = Self { folder: [0; 4096], page: core::ptr::null_mut(), number: NO_PLACE };

    /// Makes the next place; without a page if the child is to run unobserved.
    pub fn fill(&mut self) {
        self.number = next_place();
        self.page = core::ptr::null_mut();
        self.folder = folder::path();
        if detect::on() {
            return;
        }
        if self.number == NO_PLACE || length(&self.folder) > LONGEST_FOLDER || !admit() {
            return;
        }
        enter(&mut self.folder, PROCESS_FOLDER_PREFIX.as_bytes(), Some(self.number));
        make_folder(&self.folder);
        let created = claim(&self.folder).and_then(|claimed| {
            let next = header::word(field::SEQUENCE).load(Relaxed);
            if claimed { create_header(&self.folder, origin::FORKED, sys::process_id() as u64, next) } else { Ok(self.page) }
        });
        match created {
            Ok(page) => self.page = page,
            Err(error) => header::unwritten_process(error),
        }
    }

    /// In the parent: the child has its own view of the page.
    pub fn leave(&mut self) {
        if !self.page.is_null() {
            // SAFETY: used by nobody else in this process.
            unsafe { sys::unmap(self.page.cast(), HEADER_BYTES) };
            self.page = core::ptr::null_mut();
        }
    }

    /// In the child: it records here. Its own control file counts, or the parent's without the schedule.
    pub fn settle(&self) {
        let control = file_in(&self.folder, CONTROL_FILE);
        if !exists(&control) || config::load(&control).is_err() {
            config::drop_schedule();
        }
        settle(&self.folder, self.page, origin::FORKED);
    }
}

/// There is no child after all.
pub fn remove_place(number: u64) {
    if detect::on() {
        return;
    }
    let mut folder = folder::path();
    enter(&mut folder, PROCESS_FOLDER_PREFIX.as_bytes(), Some(number));
    for name in [CLAIM_FILE, HEADER_FILE] {
        let path = file_in(&folder, name);
        // SAFETY: terminated paths, here and below.
        unsafe { syscall!(sys::UNLINK, path.as_ptr()) };
    }
    // SAFETY: as above. A folder that holds the host's control file stays.
    unsafe { syscall!(sys::RMDIR, folder.as_ptr()) };
}

/// An execution that was forced into one process has been decided there: the others have nothing to add.
pub fn end_initial_process() {
    const SIGKILL: usize = 9;
    let initial = INITIAL.load(Acquire);
    if ORIGIN.load(Relaxed) == origin::INITIAL || initial.is_null() || config::count(control::field::TURNS) == 0 {
        return;
    }
    // SAFETY: the initial process's header; its number is above 1 if it says one.
    unsafe {
        let process = word(initial, field::PROCESS_ID).load(Relaxed);
        if process > 1 && word(initial, field::STATE).load(Relaxed) == state::RUNNING {
            syscall!(sys::KILL, process, SIGKILL);
        }
    }
}

/// `RASHOMON_SESSION=folder`.
fn variable(name: &str, value: &[u8], text: &mut [u8; 4224]) {
    let parts = name.as_bytes().iter().chain(b"=").chain(value);
    let mut at = 0;
    for &byte in parts {
        text[at] = byte;
        at += 1;
    }
    text[at] = 0;
}

fn is_called(name: &str, entry: *const u8) -> bool {
    // SAFETY: a terminated text; the comparison ends at the first difference.
    name.as_bytes().iter().chain(b"=").enumerate().all(|(at, &byte)| unsafe { *entry.add(at) } == byte)
}

/// Programs that libc starts by itself inherit the environment as it is: it names this process's own folder.
fn name_in_environment(folder: &Path) {
    static mut TEXT: [u8; 4224] = [0; 4224];
    let text = &raw mut TEXT;
    // SAFETY: at the start, or in a child that has one thread; the environment's own array, or before libc has one the kernel's.
    unsafe {
        variable(SESSION_VARIABLE, &folder[..length(folder)], &mut *text);
        let mut entry = crate::system::real::environment_array();
        while !(*entry).is_null() {
            if is_called(SESSION_VARIABLE, *entry) {
                entry.write(text.cast());
            }
            entry = entry.add(1);
        }
    }
}

/// An environment for a program that gets the place of that number: a copy, in memory of ours, that names it.
pub struct Environment {
    entries: crate::system::memory::List<*const u8>,
    text: [u8; 4224],
}

impl Environment {
    pub const fn new() -> Self {
        Self { entries: crate::system::memory::List::new(), text: [0; 4224] }
    }

    /// # Safety
    /// `given` is null or an array of texts that ends with null. The result is valid as long as this is neither moved nor
    /// dropped.
    pub unsafe fn with_place(&mut self, given: *const *const u8, number: u64) -> *const *const u8 {
        let mut folder = folder::path();
        if number == NO_PLACE || length(&folder) > LONGEST_FOLDER {
            return given;
        }
        let name = if detect::on() {
            variable(ENFORCED_PROCESS_VARIABLE, process_name::of(number).bytes(), &mut self.text);
            ENFORCED_PROCESS_VARIABLE
        } else {
            enter(&mut folder, PROCESS_FOLDER_PREFIX.as_bytes(), Some(number));
            variable(SESSION_VARIABLE, &folder[..length(&folder)], &mut self.text);
            SESSION_VARIABLE
        };
        // SAFETY: by the contract.
        unsafe {
            let mut entry = given;
            while !entry.is_null() && !(*entry).is_null() {
                if !is_called(name, *entry) {
                    self.entries.push(*entry);
                }
                entry = entry.add(1);
            }
        }
        self.entries.push(self.text.as_ptr());
        self.entries.push(core::ptr::null());
        self.entries.as_slice().as_ptr()
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.entries.clear_and_free();
    }
}
