//! OpenMP: the entry points that compilers emit calls of (`GOMP_*` of gcc, `__kmpc_*` of clang) and the `omp_*` functions,
//! implemented here.
//!
//! The libraries that come with the compilers synchronise by futexes and atomics of their own, which nobody sees. So while the
//! runtime observes a process, teams, work sharing, tasks and locks are ours: threads are made by the interposed
//! `pthread_create`, waiting is modelled as for libc's functions, and every order that the standard promises is an event:
//!
//! | construct | events |
//! |---|---|
//! | begin of a parallel region | the encountering thread posts a semaphore of each worker, which takes it |
//! | end | each worker posts the team's semaphore, the encountering thread takes all |
//! | `barrier`, also implied | a barrier, entered when the thread has executed its share of the tasks |
//! | `critical`, locks, `GOMP_atomic_start` | locks |
//! | `ordered` | a semaphore that is handed from chunk to chunk |
//! | `ordered depend(source)`, `depend(sink: …)` | the source releases its iteration, who has it for a sink acquires it |
//! | a task | creation posts, the executing thread takes; its predecessors release, it acquires |
//! | end of a task | posts for `taskwait` and `taskgroup`, which take |
//! | work sharing (`for`, `sections`, `single`) | nothing: who gets which iterations orders nobody |
//! | drawing dynamic iterations, taking a task | an event of what is drawn from, which orders nothing: others may draw first |
//!
//! Workers stay for later regions of the thread that made them, always in the same place of its teams, so that `threadprivate`
//! variables persist.
//!
//! A process that is not observed, or whose code calls something that is not here (see [`refers_to_more`]), has the compiler's
//! own library.
//!
//! Limits: tasks that one thread executes one after the other are ordered by that; a region is never cancelled (as without
//! `OMP_CANCELLATION`); no offloading, no affinity.
//!
//! Calls: `system`, `record`, `detect`, `serial`, `intercept`.

mod api;
mod data;
mod doacross;
mod gomp;
mod gomp_loops;
mod gomp_tasks;
mod kmpc;
mod kmpc_tasks;
mod locks;
mod queue;
mod settings;
mod shares;
mod tasks;
mod team;

use crate::detect;
use crate::record::recorder;
use crate::serial::explore;
use crate::serial::sched::{self, Wait, WaitFor};
use crate::serial::standstill::{self, For};
use crate::system::memory::List;
use crate::system::real::{Real, real};
use crate::system::sys;
use crate::system::thread::{self, Runtime};
use crate::system::tls::{caller, hot};
use crate::system::{config, modules};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::record::{Op, sync_source};

/// Every entry point looks whether it is ours to serve.
macro_rules! openmp {
    ($library:literal; $($name:ident => $target:path;)*) => {
        /// What is served here.
        pub const NAMES: &[&core::ffi::CStr] = &[$($name::NAME),*];
        $(
        #[allow(non_snake_case, reason = "named as the function")]
        mod $name {
            pub const NAME: &core::ffi::CStr =
                $crate::system::real::c_name(concat!(stringify!($name), "\0"));
            pub static REAL: $crate::openmp::Theirs = $crate::openmp::Theirs::new(
                NAME,
                $crate::system::real::c_name(concat!($library, "\0")),
            );
        }
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
                "5: cmp dword ptr [rip + {served}], {ours}",
                "jne 2f",
                "mov r10, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov r11, [rsp]",
                "mov fs:[r10 + {caller}], r11",
                "lea r11, [rip + 5b]",
                "mov fs:[r10 + {callee}], r11",
                "jmp {target}",
                "2: push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "lea rdi, [rip + {theirs}]",
                "lea rsi, [rip + 5b]",
                "call {choose}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                served = sym $crate::openmp::SERVED,
                ours = const $crate::openmp::OURS,
                caller = const $crate::system::tls::CALLER,
                callee = const $crate::system::tls::CALLEE,
                target = sym $target,
                theirs = sym $name::REAL,
                choose = sym $crate::openmp::choose,
            )
        }
    )* };
}
use openmp;

/// A function of the compiler's own library.
pub struct Theirs {
    real: Real,
    name: &'static CStr,
    library: &'static CStr,
}

impl Theirs {
    const fn new(name: &'static CStr, library: &'static CStr) -> Self {
        Self { real: Real::new(name, None), name, library }
    }

    /// Where it is, in a library that is loaded for it if none of the loaded ones has it: a static link that finds the name in
    /// the runtime may leave the library out.
    fn address(&self) -> *mut c_void {
        unsafe extern "C" {
            fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        let known = self.real.address();
        if !known.is_null() {
            return known;
        }
        // SAFETY: terminated names. RTLD_LAZY
        let found = unsafe {
            let handle = real!(fn dlopen(*const c_char, c_int) -> *mut c_void)(self.library.as_ptr(), 1);
            if handle.is_null() { handle } else { dlsym(handle, self.name.as_ptr()) }
        };
        if found.is_null() {
            sys::die(&[b"no library has the function ", self.name.to_bytes()]);
        }
        found
    }
}

const UNDECIDED: u32 = 0;
const OURS: u32 = 1;
const THEIRS: u32 = 2;
/// Who serves this process's calls: decided by the first, once for all.
static SERVED: AtomicU32 = AtomicU32::new(UNDECIDED);

/// How the names begin that the compilers' libraries have for programs.
const BEGINNINGS: [&[u8]; 4] = [b"GOMP_", b"__kmpc_", b"__tgt_", b"omp_"];

/// Functions of theirs that have nothing to do with teams and tasks, and serve a program whose other calls come here.
const APART: [&[u8]; 11] = [
    b"omp_alloc",
    b"omp_aligned_alloc",
    b"omp_calloc",
    b"omp_aligned_calloc",
    b"omp_realloc",
    b"omp_free",
    b"omp_init_allocator",
    b"omp_destroy_allocator",
    b"omp_set_default_allocator",
    b"omp_get_default_allocator",
    b"omp_display_env",
];

/// Where a call goes: `ours`, or the compiler's library.
unsafe extern "C" fn choose(theirs: &'static Theirs, ours: *mut c_void) -> *mut c_void {
    if SERVED.load(Acquire) == UNDECIDED {
        // What libc is called for here is not the program's.
        let _runtime = Runtime::try_enter();
        let observed = thread::count() > 0;
        let more = if observed { refers_to_more() } else { None };
        let decided = if observed && more.is_none() { OURS } else { THEIRS };
        if SERVED.compare_exchange(UNDECIDED, decided, AcqRel, Acquire).is_ok()
            && let Some(name) = more
            && detect::on()
        {
            sys::message(&[
                b"OpenMP's ",
                name.to_bytes(),
                b" is not served, so that the compiler's own library serves this program: what that orders is not seen, and \
                    races may be reported that are none",
            ]);
        }
    }
    if SERVED.load(Acquire) == OURS { ours } else { theirs.address() }
}

/// An entry point that is not here and that the program's code calls: a process with such code is served by the compiler's
/// library altogether.
fn refers_to_more() -> Option<&'static CStr> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const ANYWHERE: *mut c_void = core::ptr::null_mut();
    let mut unknown: List<*const c_char> = List::new();
    modules::each(|module| {
        if !is_library(module) {
            module.any_undefined(|name| {
                let bytes = name.to_bytes();
                let is_ours =
                    || [gomp::NAMES, kmpc::NAMES, kmpc_tasks::NAMES, api::NAMES].iter().any(|names| names.contains(&name));
                if BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning)) && !APART.contains(&bytes) && !is_ours() {
                    unknown.push(name.as_ptr());
                }
                false
            });
        }
    });
    // The program may have functions with such names of its own.
    let is_theirs = |name: *const c_char| {
        // SAFETY: a terminated name.
        let address = unsafe { dlsym(ANYWHERE, name) } as u64;
        let mut found = false;
        modules::each(|module| found |= is_library(module) && (module.start..module.end).contains(&address));
        found
    };
    // SAFETY: a name in a module that is loaded and calls us.
    let names = unknown.as_slice().iter().filter(|name| is_theirs(**name)).map(|name| unsafe { CStr::from_ptr(*name) });
    // The one that is told of does not depend on the linker.
    let found = names.min();
    unknown.clear_and_free();
    found
}

/// Whether it is a library that comes with a compiler.
fn is_library(module: &modules::Module<'_>) -> bool {
    let name = modules::base_name(module.path);
    [b"libgomp.so".as_slice(), b"libomp.so", b"libiomp5.so", b"libomptarget.so", b"libtsan.so"]
        .iter()
        .any(|library| name.starts_with(library))
}

/// A region asks to be cancelled, which never happens while the program is observed, as without `OMP_CANCELLATION`. Said once
/// where it would happen otherwise.
fn refuse_cancellation() {
    static SAID: AtomicU32 = AtomicU32::new(0);
    let _runtime = Runtime::try_enter();
    if settings::cancellation() && SAID.swap(1, Relaxed) == 0 {
        sys::message(&[
            b"OMP_CANCELLATION is set, but regions are not cancelled while the program is observed: they run to their ends",
        ]);
    }
}

/// A forked child has none of its parent's workers.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forget() {
    team::forget();
}

/// The call of an entry point: where it is in the program, and which one.
#[derive(Clone, Copy)]
pub struct Call {
    pub site: u64,
    callee: u64,
}

impl Call {
    /// Of a thread that has not been called yet.
    pub const NOWHERE: Self = Self { site: 0, callee: 0 };

    /// Of the entry point that is being executed.
    pub fn current() -> Self {
        Self { site: caller(), callee: hot().callee.get() }
    }

    /// Into the runtime.
    pub fn enter(self) -> Here {
        hot().callee.set(self.callee);
        Here { runtime: Runtime::try_enter(), site: self.site }
    }

    /// Runs an interposed function as if the program called it from here.
    pub fn passing<R>(self, function: impl FnOnce() -> R) -> R {
        hot().caller.set(self.site);
        hot().callee.set(self.callee);
        function()
    }
}

/// The calling thread while it executes code of this module: inside the runtime, if that knows it.
pub struct Here {
    pub runtime: Option<Runtime>,
    pub site: u64,
}

impl Here {
    /// See [`sched::point`].
    pub fn point(&self, op: Op, object: u64) {
        if let Some(runtime) = &self.runtime {
            sched::point(runtime, op, object, self.site);
        }
    }

    pub fn position(&self, op: Op, object: u64) {
        if let Some(runtime) = &self.runtime {
            sched::position(runtime, op, object, self.site);
        }
    }

    pub fn sync(&self, op: Op, object: u64, aux: u16, arguments: &[u64]) {
        if let Some(runtime) = &self.runtime {
            recorder::sync(runtime.thread(), op, object, aux, self.site, arguments);
        }
    }

    /// Before the thread takes work that any of its team may take: others first, so that work is shared out also where there is
    /// little of it. Who takes what is decided here: it is an event of `object`, where the work is, if there is some.
    pub fn lets_others(&self, object: u64, is_some: bool) {
        /// In parallel, over the whole process: threads that sleep take long to come.
        static PAUSES: AtomicU32 = AtomicU32::new(200);
        self.gives_way(object);
        if is_some && !config::serial() && PAUSES.load(Relaxed) > 0 {
            PAUSES.fetch_sub(1, Relaxed);
            // SAFETY: the kernel reads the time, and writes nothing.
            unsafe { sys::syscall!(sys::NANOSLEEP, [0i64, 50_000].as_ptr(), 0usize) };
        }
    }

    /// A point where others come first, and its event, of what the thread is about to take from.
    pub fn gives_way(&self, object: u64) {
        if let Some(runtime) = &self.runtime {
            sched::point_behind_others(runtime, Op::Blocking, object, self.site);
        }
        self.sync(Op::Blocking, object, sync_source::OTHER, &[0]);
    }

    /// The thread has taken work: it does not just look for it.
    pub fn took(&self) {
        if let Some(runtime) = &self.runtime {
            sched::acts(runtime);
        }
    }

    /// What the thread is about to do concerns another object, too.
    pub fn concerns(&self, object: u64) {
        if let Some(runtime) = &self.runtime {
            explore::concerns(runtime.thread(), object);
        }
    }

    /// A point and its event.
    pub fn does(&self, op: Op, object: u64, aux: u16, arguments: &[u64]) {
        self.point(op, object);
        self.sync(op, object, aux, arguments);
    }

    /// Waits until `ready`, which is asked again whenever somebody [wakes](Self::wake) those that wait for the word.
    pub fn wait(&self, what: WaitFor, object: u64, word: &AtomicU32, ready: impl FnMut() -> bool) {
        self.wait_for(what, object, 0, word, ready);
    }

    /// The same; `work`: what the thread takes of when it is ready, if anything.
    pub fn wait_for(&self, what: WaitFor, object: u64, work: u64, word: &AtomicU32, mut ready: impl FnMut() -> bool) {
        let mut stood = false;
        loop {
            let seen = word.load(Acquire);
            if ready() {
                return;
            }
            if what == WaitFor::Barrier && !core::mem::replace(&mut stood, true) {
                // A schedule may end the turn here, whatever the thread does when the others have come.
                self.concerns(work);
                self.position(Op::BarrierExit, object);
                continue;
            }
            match &self.runtime {
                Some(runtime) if config::serial() => {
                    sched::block(runtime, Wait::on(what, object), self.site);
                }
                Some(runtime) => {
                    let op = if what == WaitFor::Semaphore { Op::SemaphoreWait } else { Op::BarrierExit };
                    let wait = For::on(op, object, self.site).sleeps_at(&raw const *word as u64);
                    standstill::during(runtime, wait, || sys::futex_wait(word, seen));
                }
                None => {
                    sys::futex_wait(word, seen);
                }
            }
        }
    }

    /// What those that wait for the word ask for may have come. The word was changed before; it may be gone.
    pub fn wake(&self, what: WaitFor, object: u64, word: *const AtomicU32) {
        if self.runtime.is_some() {
            sched::wake(what, object, usize::MAX);
        }
        // SAFETY: FUTEX_WAKE_PRIVATE does not touch memory.
        unsafe { sys::syscall!(sys::FUTEX, word, 129, i32::MAX) };
    }
}
