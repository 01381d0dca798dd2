//! Processes: `fork`, `exec` and the ends that run no `atexit` handlers.
//!
//! A forked child is not part of the recording: it gives up everything it inherited and from then on every hook and interposer passes through, whatever locks other
//! threads of the parent held in the runtime. That happens in a handler of `fork`'s own, registered before any of the program's. `vfork` is `fork`: a child that shares the
//! parent's stack cannot leave the runtime behind. A program that replaces itself has a complete recording up to there; should `exec` fail, recording goes on.
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "every block hands the program's own arguments to the function that they are meant for"
)]

use crate::memory::List;
use crate::real::real;
use crate::thread::Runtime;
use crate::tls::{caller, current, hot};
use crate::{finish, header, recorder, sched, signals};
use core::ffi::{c_char, c_int, c_void};
use rashomon_abi::header::{field, note};
use rashomon_abi::record::Op;

/// At the start: arranges that children of `fork` fall silent, and that `quick_exit` completes the recording.
pub fn watch() {
    type Handler = unsafe extern "C" fn();
    type AtFork = unsafe extern "C" fn(Option<Handler>, Option<Handler>, Option<Handler>, *mut c_void) -> c_int;
    static AT_FORK: crate::real::Real = crate::real::Real::new(c"__register_atfork", None);
    // SAFETY: libc's functions with their C signatures; null: the handlers belong to no library that could go away.
    unsafe {
        core::mem::transmute::<*mut c_void, AtFork>(AT_FORK.required())(None, None, Some(silence), core::ptr::null_mut());
        real!(fn __cxa_at_quick_exit(unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int)(
            at_quick_exit,
            core::ptr::null_mut(),
        );
    }
}

unsafe extern "C" fn at_quick_exit(_argument: *mut c_void) {
    let _runtime = Runtime::try_enter();
    finish::complete();
}

/// In the child: nothing here is known to the runtime any more.
unsafe extern "C" fn silence() {
    let thread = current();
    finish::forget();
    recorder::disable();
    header::set_page(core::ptr::null_mut());
    signals::reset_lock();
    // SAFETY: the only thread of the child, and its own block. The parent's memory behind these pointers stays as it is.
    unsafe {
        if let Some(thread) = thread.as_mut() {
            recorder::forget(thread);
            let block = &mut *hot();
            block.thread = core::ptr::null_mut();
            block.quantum = 0;
            block.top = core::ptr::null_mut();
            block.limit = core::ptr::null_mut();
            block.bottom = core::ptr::null_mut();
            block.lowest = core::ptr::null_mut();
        }
    }
}

/// The frame of every call that makes a process; its result is the process id or negative.
fn make(real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    sched::point(&runtime, Op::Fork, 0, site);
    // A signal in the child waits until it knows that it is one.
    let child = signals::with_all_blocked(|| runtime.outside(real));
    if current().is_null() {
        return child;
    }
    if child > 0 {
        header::word(field::FORKS).fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        header::note(note::FORKED);
    }
    recorder::sync(runtime.thread(), Op::Fork, child.max(0) as u64, 0, site, &[]);
    child
}

unsafe extern "C" fn forked() -> c_int {
    make(|| unsafe { real!(fn fork() -> c_int)() })
}

/// Without the handlers of `fork`.
unsafe extern "C" fn forked_bare() -> c_int {
    make(|| {
        let child = unsafe { real!(fn _Fork() -> c_int)() };
        if child == 0 {
            unsafe { silence() };
        }
        child
    })
}

/// The arguments of `posix_spawn` behind the place for the process id.
#[derive(Clone, Copy)]
struct Spawn {
    path: *const c_char,
    actions: *const u8,
    attributes: *const u8,
    arguments: *const *const c_char,
    environment: *const *const c_char,
}

fn spawn(process: *mut c_int, real: impl FnOnce(*mut c_int) -> c_int) -> c_int {
    let (mut id, mut error) = (0, 0);
    make(|| {
        error = real(&mut id);
        if error == 0 { id } else { -1 }
    });
    if error == 0 && !process.is_null() {
        unsafe { *process = id };
    }
    error
}

type SpawnFunction =
    unsafe extern "C" fn(*mut c_int, *const c_char, *const u8, *const u8, *const *const c_char, *const *const c_char) -> c_int;

fn spawn_by(real: &crate::real::Real, process: *mut c_int, call: Spawn) -> c_int {
    let function = unsafe { core::mem::transmute::<*mut c_void, SpawnFunction>(real.required()) };
    spawn(process, |id| unsafe { function(id, call.path, call.actions, call.attributes, call.arguments, call.environment) })
}

macro_rules! spawns {
    ($($function:ident $name:literal;)*) => { $(
        unsafe extern "C" fn $function(
            process: *mut c_int,
            path: *const c_char,
            actions: *const u8,
            attributes: *const u8,
            arguments: *const *const c_char,
            environment: *const *const c_char,
        ) -> c_int {
            static REAL: crate::real::Real = crate::real::Real::new($name, Some(c"GLIBC_2.15"));
            spawn_by(&REAL, process, Spawn { path, actions, attributes, arguments, environment })
        }
    )* };
}

spawns! {
    spawned c"posix_spawn";
    spawned_by_name c"posix_spawnp";
}

/// The recording is complete when `end` is called; if that returns, it goes on.
fn end(note_bits: u64, end: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return end() };
    recorder::sync(runtime.thread(), Op::ProcessEnd, 0, 0, caller(), &[]);
    header::note(note_bits);
    let completed = finish::complete();
    let result = runtime.outside(end);
    if completed && !current().is_null() {
        finish::resume();
    }
    result
}

/// Programs linked against gcc's runtime take even this from it: the C library has no such name to load.
unsafe extern "C" fn at_exit(handler: unsafe extern "C" fn(*mut c_void)) -> c_int {
    unsafe { crate::real::__cxa_atexit(handler, core::ptr::null_mut(), core::ptr::null_mut()) }
}

unsafe extern "C" fn exit_at_once(status: c_int) -> c_int {
    end(0, || unsafe { real!(fn _exit(c_int) -> c_int)(status) })
}

/// The parent ends inside; the child goes on, unobserved.
unsafe extern "C" fn become_daemon(keep_directory: c_int, keep_files: c_int) -> c_int {
    end(note::FORKED, || unsafe { real!(fn daemon(c_int, c_int) -> c_int)(keep_directory, keep_files) })
}

type Texts = *const *const c_char;

unsafe extern "C" fn execute(path: *const c_char, arguments: Texts) -> c_int {
    end(note::EXECUTED, || unsafe { real!(fn execv(*const c_char, Texts) -> c_int)(path, arguments) })
}

unsafe extern "C" fn execute_with(path: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    end(note::EXECUTED, || unsafe { real!(fn execve(*const c_char, Texts, Texts) -> c_int)(path, arguments, environment) })
}

unsafe extern "C" fn execute_by_name(name: *const c_char, arguments: Texts) -> c_int {
    end(note::EXECUTED, || unsafe { real!(fn execvp(*const c_char, Texts) -> c_int)(name, arguments) })
}

unsafe extern "C" fn execute_by_name_with(name: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    end(note::EXECUTED, || unsafe { real!(fn execvpe(*const c_char, Texts, Texts) -> c_int)(name, arguments, environment) })
}

unsafe extern "C" fn execute_file(file: c_int, arguments: Texts, environment: Texts) -> c_int {
    end(note::EXECUTED, || unsafe { real!(fn fexecve(c_int, Texts, Texts) -> c_int)(file, arguments, environment) })
}

unsafe extern "C" fn execute_at(
    directory: c_int,
    path: *const c_char,
    arguments: Texts,
    environment: Texts,
    flags: c_int,
) -> c_int {
    end(note::EXECUTED, || unsafe {
        real!(fn execveat(c_int, *const c_char, Texts, Texts, c_int) -> c_int)(directory, path, arguments, environment, flags)
    })
}

/// The further arguments of a variadic call: five from registers, then those on the stack.
struct Further {
    registers: *const *const c_char,
    stack: *const *const c_char,
}

impl Further {
    unsafe fn get(&self, index: usize) -> *const c_char {
        unsafe { if index < 5 { *self.registers.add(index) } else { *self.stack.add(index - 5) } }
    }
    /// Up to and with the null that ends them; and what follows that.
    unsafe fn list(&self) -> (List<*const c_char>, *const c_char) {
        let mut list = List::new();
        loop {
            let text = unsafe { self.get(list.len()) };
            list.push(text);
            if text.is_null() {
                let next = unsafe { self.get(list.len()) };
                return (list, next);
            }
        }
    }
}

unsafe fn execute_list(
    registers: *const *const c_char,
    stack: *const *const c_char,
    call: impl FnOnce(Texts, *const c_char) -> c_int,
) -> c_int {
    let (mut list, next) = unsafe { Further { registers, stack }.list() };
    let result = call(list.as_slice().as_ptr(), next);
    list.clear_and_free();
    result
}

unsafe extern "C" fn list(path: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    unsafe { execute_list(registers, stack, |arguments, _| execute(path, arguments)) }
}

unsafe extern "C" fn list_by_name(name: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    unsafe { execute_list(registers, stack, |arguments, _| execute_by_name(name, arguments)) }
}

unsafe extern "C" fn list_with(path: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    unsafe { execute_list(registers, stack, |arguments, environment| execute_with(path, arguments, environment.cast())) }
}

/// Trampolines of variadic functions with one fixed argument.
macro_rules! interpose_lists {
    ($($name:ident => $target:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov r11, [rsp]",
                "mov fs:[r10 + {caller}], r11",
                "lea rax, [rsp + 8]",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "mov rdx, rax",
                "call {target}",
                "add rsp, 40",
                "ret",
                caller = const $crate::tls::CALLER,
                target = sym $target,
            )
        }
    )* };
}

interpose_lists! {
    execl => list;
    execlp => list_by_name;
    execle => list_with;
}

interpose! {
    fork => forked;
    vfork => forked;
    _Fork => forked_bare;
    posix_spawn => spawned;
    posix_spawnp => spawned_by_name;
    atexit => at_exit;
    _exit => exit_at_once;
    _Exit => exit_at_once;
    daemon => become_daemon;
    execv => execute;
    execve => execute_with;
    execvp => execute_by_name;
    execvpe => execute_by_name_with;
    fexecve => execute_file;
    execveat => execute_at;
}
