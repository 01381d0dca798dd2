//! The functions behind the interposed ones.
//!
//! Looked up at the start, all of them: looking up takes a lock of the loader's, which another thread may hold for as long as a
//! constructor runs. What is called before (interposers run before any initialiser), or is in no library yet, is looked up when
//! first needed. A version is given where glibc has several: without one the loader would bind to the oldest, which for condition
//! variables is another, incompatible, implementation.
//!
//! Every [`Real`] lies in a section of its own, `rashomon_real`, whose ends the linker names. `#[used]` keeps the compiler from
//! taking them to pieces.

use crate::system::signals;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};

#[link(name = "c")]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    pub fn __errno_location() -> *mut c_int;
    pub fn __libc_malloc(bytes: usize) -> *mut u8;
    pub fn __libc_calloc(count: usize, bytes: usize) -> *mut u8;
    pub fn __libc_realloc(block: *mut u8, bytes: usize) -> *mut u8;
    pub fn __libc_memalign(alignment: usize, bytes: usize) -> *mut u8;
    pub fn __libc_free(block: *mut u8);
    pub static __libc_stack_end: *const usize;
}

/// A name that ends with its terminator, as C has it.
pub const fn c_name(text: &'static str) -> &'static core::ffi::CStr {
    match core::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!(),
    }
}

/// `real!(fn name(type, …) -> type)` or `real!("GLIBC_2.3.2" fn name(…) -> type)`: the function behind an interposed one,
/// as a callable.
macro_rules! real {
    ($($version:literal)? fn $name:ident($($argument:ty),* $(, ...)?) -> $result:ty) => {{
        #[used]
        #[unsafe(link_section = "rashomon_real")]
        static REAL: $crate::system::real::Real = {
            #[allow(unused_mut, unused_assignments)]
            let mut version = None;
            $( version = Some($crate::system::real::c_name(concat!($version, "\0"))); )?
            $crate::system::real::Real::new($crate::system::real::c_name(concat!(stringify!($name), "\0")), version)
        };
        // SAFETY: the signature is that of the C declaration.
        core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn($($argument),*) -> $result>(REAL.required())
    }};
}
/// A function of the libraries behind us. As large as it is aligned: linkers and compilers put nothing between them.
#[repr(align(64))]
pub struct Real {
    address: AtomicPtr<c_void>,
    name: &'static CStr,
    version: Option<&'static CStr>,
}

impl Real {
    pub const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { address: AtomicPtr::new(core::ptr::null_mut()), name, version }
    }

    /// Its address; null when no loaded library has it.
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        const NEXT: *mut c_void = -1isize as *mut c_void;
        // SAFETY: terminated names.
        unsafe {
            let mut found = core::ptr::null_mut();
            if let Some(version) = self.version {
                found = dlvsym(NEXT, self.name.as_ptr(), version.as_ptr());
            }
            if found.is_null() {
                found = dlsym(NEXT, self.name.as_ptr());
            }
            self.address.store(found, Relaxed);
            found
        }
    }

    /// Its address, unless it would have to be looked up.
    pub fn known(&self) -> *mut c_void {
        self.address.load(Relaxed)
    }

    /// Its address in a library that is loaded for it: a static link that finds the name in the runtime may leave that library
    /// out.
    fn loaded_from(&self, library: &'static CStr) -> *mut c_void {
        #[used]
        #[unsafe(link_section = "rashomon_real")]
        static OPEN: Real = Real::new(c"dlopen", None);
        type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
        let open = OPEN.address();
        if open.is_null() {
            return open;
        }
        // SAFETY: the signature is that of the C declaration; terminated names; the library is one of libc's own. RTLD_LAZY
        unsafe {
            let handle = core::mem::transmute::<*mut c_void, Open>(open)(library.as_ptr(), 1);
            if !handle.is_null() {
                self.address.store(dlsym(handle, self.name.as_ptr()), Relaxed);
            }
        }
        self.known()
    }

    /// Its address, or the end of the process with a message: the program called it, so some library must have it, if only libm,
    /// which a static link may have left out as above.
    pub fn required(&self) -> *mut c_void {
        let address = self.address();
        if address.is_null() { self.missing() } else { address }
    }

    #[cold]
    fn missing(&self) -> *mut c_void {
        let address = self.loaded_from(c"libm.so.6");
        if address.is_null() {
            crate::system::sys::die(&[b"no library has the function ", self.name.to_bytes()]);
        }
        address
    }
}

const _: () = assert!(size_of::<Real>() == align_of::<Real>());

pub(crate) use real;

/// The address of a function by its name, as the program would find it; 0: there is none.
pub fn find(name: &CStr) -> u64 {
    // SAFETY: a terminated name; RTLD_DEFAULT. What a search that failed left to be told is none of the program's.
    unsafe {
        let found = dlsym(core::ptr::null_mut(), name.as_ptr());
        if found.is_null() {
            real!(fn dlerror() -> *const c_char)();
        }
        found as u64
    }
}

/// At the start, before there is a second thread.
pub fn look_up_all() {
    unsafe extern "C" {
        #[link_name = "__start_rashomon_real"]
        static FIRST: u8;
        #[link_name = "__stop_rashomon_real"]
        static BEHIND: u8;
    }
    // SAFETY: the section holds nothing but these, one behind the other. What a search that failed left to be told is none of the
    // program's.
    unsafe {
        let (first, behind) = ((&raw const FIRST).cast::<Real>(), (&raw const BEHIND).cast::<Real>());
        for real in core::slice::from_raw_parts(first, behind.offset_from_unsigned(first)) {
            real.address();
        }
        real!(fn dlerror() -> *const c_char)();
    }
}

pub fn errno() -> c_int {
    // SAFETY: the calling thread's own.
    unsafe { *__errno_location() }
}

pub fn set_errno(value: c_int) {
    // SAFETY: the calling thread's own.
    unsafe { *__errno_location() = value };
}

/// A thread that the model does not know. It takes none of the program's signals; those by which libc changes the identity of all
/// threads it has to take, or whoever asks for that waits for ever.
pub fn create_unobserved(routine: extern "C" fn(*mut u8) -> *mut u8) -> c_int {
    let mut handle = 0u64;
    let mask = signals::block_programs();
    // SAFETY: valid arguments.
    let result = unsafe {
        real!(fn pthread_create(*mut u64, *const u8, extern "C" fn(*mut u8) -> *mut u8, *mut u8) -> c_int)(
            &mut handle,
            core::ptr::null(),
            routine,
            core::ptr::null_mut(),
        )
    };
    signals::set_mask(mask);
    result
}

/// libc's array of environment variables, or before libc has one the kernel's.
pub fn environment_array() -> *mut *const u8 {
    unsafe extern "C" {
        static mut environ: *mut *const u8;
    }
    // SAFETY: libc's own variable; else the kernel's initial stack: argc, argv…, 0, envp…, 0.
    unsafe {
        if !environ.is_null() {
            return environ;
        }
        let stack = __libc_stack_end;
        stack.add(1 + *stack + 1) as *mut *const u8
    }
}

/// The environment that the process was started with, once it is kept: programs write over the kernel's (`setproctitle`), and
/// reports are made later.
static KEPT: AtomicPtr<*const u8> = AtomicPtr::new(core::ptr::null_mut());

/// The kernel's initial environment.
unsafe fn initial_environment() -> *const *const u8 {
    // SAFETY: the kernel's initial stack: argc, argv…, 0, envp…, 0.
    unsafe {
        let stack = __libc_stack_end;
        stack.add(1 + *stack + 1).cast()
    }
}

/// At the start, before the program's own code.
pub fn keep_environment() {
    // SAFETY: the kernel's array and texts, each with its end; fresh memory for as much.
    unsafe {
        let from = initial_environment();
        let (mut count, mut bytes) = (0, 0);
        while !(*from.add(count)).is_null() {
            bytes += CStr::from_ptr((*from.add(count)).cast()).to_bytes_with_nul().len();
            count += 1;
        }
        let kept = crate::system::sys::map_anonymous((count + 1) * size_of::<*const u8>() + bytes).cast::<*const u8>();
        if kept.is_null() {
            return;
        }
        let mut text = kept.add(count + 1).cast::<u8>();
        for at in 0..count {
            let entry = CStr::from_ptr((*from.add(at)).cast()).to_bytes_with_nul();
            text.copy_from_nonoverlapping(entry.as_ptr(), entry.len());
            kept.add(at).write(text);
            text = text.add(entry.len());
        }
        KEPT.store(kept, Release);
    }
}

/// The value of an environment variable as the process was started with; works before libc has an environment.
pub fn environment(name: &[u8]) -> Option<&'static [u8]> {
    let kept = KEPT.load(Acquire);
    // SAFETY: arrays of texts, with an end.
    unsafe {
        let mut entry = if kept.is_null() { initial_environment() } else { kept };
        while !(*entry).is_null() {
            let text = CStr::from_ptr((*entry).cast()).to_bytes();
            if text.len() > name.len() && text[name.len()] == b'=' && &text[..name.len()] == name {
                return Some(&text[name.len() + 1..]);
            }
            entry = entry.add(1);
        }
    }
    None
}
