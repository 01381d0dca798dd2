//! Processes: `fork`, `exec`, `posix_spawn` and the ends that run no `atexit` handlers.
//!
//! Every process records into a folder of its own ([`crate::record::process_tree`], [`crate::process::fork`]). `vfork` is `fork`:
//! a child that shares the parent's stack cannot leave the runtime behind. A program that replaces itself has a complete
//! recording up to there, and the one that takes its place another; should `exec` fail, recording goes on. Programs that libc
//! starts by itself (`system`, `popen`) find this process's folder in the environment.

use super::kernel::{self, Object};
use crate::detect;
use crate::record::process_tree::{self, Environment, NO_PLACE};
use crate::record::recorder;
use crate::report;
use crate::serial::shutdown;
use crate::serial::{blocked, linger, sched};
use crate::system::memory::List;
use crate::system::processor::everywhere;
use crate::system::real::real;
use crate::system::registered::Registered;
use crate::system::thread::Runtime;
use crate::system::tls::{caller, current};
use crate::system::{header, sys};
use core::ffi::{c_char, c_int, c_void};
use rashomon_abi::header::{field, note};
use rashomon_abi::record::{Op, exit_stage};

type Handler = unsafe extern "C" fn();

/// What is done around every fork that the runtime sees, on the thread that forks.
pub struct ForkHandlers {
    pub prepare: Handler,
    pub parent: Handler,
    pub child: Handler,
}

/// Nothing before the start: no thread is known then, and nothing to be prepared.
static AT_FORK: Registered<ForkHandlers> = Registered::none();

/// Calls one of them.
///
/// # Safety
/// Where the handler's time is.
unsafe fn call_handler(which: impl FnOnce(&ForkHandlers) -> Handler) {
    if let Some(handlers) = AT_FORK.get() {
        // SAFETY: by the contract.
        unsafe { which(handlers)() };
    }
}

/// At the start: arranges that children of `fork` record for themselves, and that `quick_exit` completes the recording.
pub fn watch(handlers: &'static ForkHandlers) {
    type AtFork = unsafe extern "C" fn(Option<Handler>, Option<Handler>, Option<Handler>, *mut c_void) -> c_int;
    #[used]
    #[unsafe(link_section = "rashomon_real")]
    static REGISTER: crate::system::real::Real = crate::system::real::Real::new(c"__register_atfork", None);
    // SAFETY: libc's functions with their C signatures; null: the handlers belong to no library that could go away.
    unsafe {
        AT_FORK.set(handlers);
        let register = core::mem::transmute::<*mut c_void, AtFork>(REGISTER.required());
        register(Some(handlers.prepare), Some(handlers.parent), Some(handlers.child), core::ptr::null_mut());
        real!(fn __cxa_at_quick_exit(unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int)(
            at_quick_exit,
            core::ptr::null_mut(),
        );
    }
}

unsafe extern "C" fn at_quick_exit(_argument: *mut c_void) {
    let runtime = Runtime::try_enter();
    if detect::on() && runtime.is_some() {
        report::conclude(blocked::last_checks);
    }
    if let Some(runtime) = &runtime {
        linger::before_end(runtime, exit_stage::HANDLED, 0);
    }
    shutdown::complete();
}

/// The frame of every call that makes a process; its result is the process id or negative.
fn make(real: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return real() };
    let site = caller();
    kernel::release(&runtime, Object::Processes, site);
    kernel::acquires(Object::ForkHandlers, site);
    sched::point(&runtime, Op::Fork, 0, site);
    runtime.thread().place_given.set(NO_PLACE);
    runtime.thread().fork_site.set(site);
    let child = runtime.outside(real);
    if child == 0 {
        return 0;
    }
    let thread = runtime.thread();
    let place = thread.place_given.get();
    if child > 0 {
        header::word(field::FORKS).fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        header::note(note::FORKED);
    } else if place != NO_PLACE {
        process_tree::remove_place(place);
    }
    recorder::sync(thread, Op::Fork, child.max(0) as u64, 0, site, &[place]);
    child
}

unsafe extern "C" fn forked() -> c_int {
    // SAFETY: no arguments.
    make(|| unsafe { real!(fn fork() -> c_int)() })
}

/// A fork that runs no handlers of `fork`.
pub fn fork_bare(real: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: libc's own function runs no handlers: those of this runtime are called around it, once.
    make(|| unsafe {
        call_handler(|handlers| handlers.prepare);
        let child = real();
        if child == 0 {
            call_handler(|handlers| handlers.child)
        } else {
            call_handler(|handlers| handlers.parent)
        }
        child
    })
}

unsafe extern "C" fn forked_bare() -> c_int {
    // SAFETY: no arguments.
    fork_bare(|| unsafe { real!(fn _Fork() -> c_int)() })
}

type Start = unsafe extern "C" fn(*mut c_void) -> c_int;

/// What a child of `clone` runs, in its copy of the parent's stack.
#[repr(C)]
struct Cloned {
    function: Start,
    argument: *mut c_void,
}

unsafe extern "C" fn begin_clone(start: *mut c_void) -> c_int {
    // SAFETY: in the child, with what `cloned` handed on, which lies on the stack of its copy.
    unsafe {
        call_handler(|handlers| handlers.child);
        let start = &*start.cast::<Cloned>();
        (start.function)(start.argument)
    }
}

/// A process with memory of its own is a fork; one that shares ours is a thread of the program's own making, which nobody here
/// knows.
unsafe extern "C" fn cloned(
    function: Start,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_id: *mut c_int,
    storage: *mut c_void,
    child_id: *mut c_int,
) -> c_int {
    const CLONE_VM: c_int = 0x100;
    // SAFETY: the real function with the program's arguments; null where it gives none.
    let real = |function, argument| unsafe {
        real!(fn clone(Start, *mut c_void, c_int, *mut c_void, *mut c_int, *mut c_void, *mut c_int) -> c_int)(
            function, stack, flags, argument, parent_id, storage, child_id,
        )
    };
    if flags & CLONE_VM != 0 || current().is_none() {
        return real(function, argument);
    }
    let mut start = Cloned { function, argument };
    // SAFETY: a process of its own, as memory is not shared: handlers are called as around `fork`.
    make(|| unsafe {
        call_handler(|handlers| handlers.prepare);
        let child = real(begin_clone, (&raw mut start).cast());
        call_handler(|handlers| handlers.parent);
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

type SpawnFunction =
    unsafe extern "C" fn(*mut c_int, *const c_char, *const u8, *const u8, *const *const c_char, *const *const c_char) -> c_int;

fn spawn_by(real: &crate::system::real::Real, process: *mut c_int, call: Spawn) -> c_int {
    // SAFETY: both functions have this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, SpawnFunction>(real.required()) };
    let (mut id, mut error) = (0, 0);
    let mut environment = None;
    // SAFETY: the program's arguments; the environment lives until the call is over.
    make(|| unsafe {
        let mut given = call.environment;
        if let Some(runtime) = Runtime::try_enter() {
            let place = process_tree::next_place();
            runtime.thread().place_given.set(place);
            given = environment.insert(Environment::new()).with_place(given.cast(), place).cast();
        }
        error = everywhere(|| function(&mut id, call.path, call.actions, call.attributes, call.arguments, given));
        if error == 0 { id } else { -1 }
    });
    if error == 0 && !process.is_null() {
        // SAFETY: the program's room for a number.
        unsafe { *process = id };
    }
    error
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
            #[used]
            #[unsafe(link_section = "rashomon_real")]
            static REAL: crate::system::real::Real = crate::system::real::Real::new($name, Some(c"GLIBC_2.15"));
            spawn_by(&REAL, process, Spawn { path, actions, attributes, arguments, environment })
        }
    )* };
}

spawns! {
    spawned c"posix_spawn";
    spawned_by_name c"posix_spawnp";
}

/// The recording is complete when `end` is called; if that returns in this process, it goes on.
fn end(note_bits: u64, place: &[u64], end: impl FnOnce() -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return end() };
    let ended_before = runtime.thread().serial().linger.ends.get();
    linger::before_end(&runtime, exit_stage::HANDLED, caller());
    recorder::sync(runtime.thread(), Op::ProcessEnd, 0, 0, caller(), place);
    runtime.thread().fork_site.set(caller());
    let noted = header::newly_noted(note_bits);
    let completed = shutdown::complete();
    let process = sys::process_id();
    let result = runtime.outside(end);
    if current().is_some() && process == sys::process_id() {
        // It may have the turn again as others do. A forked child begins anew.
        runtime.thread().serial().linger.ends.set(ended_before);
        header::take_back(noted);
        if completed {
            shutdown::resume();
        }
    }
    result
}

/// Another program takes the place of this one.
fn replace(environment: Texts, call: impl FnOnce(Texts) -> c_int) -> c_int {
    let Some(runtime) = Runtime::try_enter() else { return call(environment) };
    if detect::on() {
        detect::closings::all_end();
    }
    let place = process_tree::next_place();
    let mut own = Environment::new();
    // SAFETY: null, or the program's list of texts, which ends with null.
    let given = unsafe { own.with_place(environment.cast(), place) }.cast();
    drop(runtime);
    end(note::EXECUTED, &[place], || everywhere(|| call(given)))
}

fn own_environment() -> Texts {
    crate::system::real::environment_array().cast()
}

unsafe extern "C" fn exit_at_once(status: c_int) -> c_int {
    let status = match Runtime::try_enter() {
        Some(_runtime) if detect::on() => match report::conclude(blocked::last_checks) {
            code if status == 0 => code,
            _ => status,
        },
        _ => status,
    };
    // SAFETY: a number only; the runtime is done.
    end(0, &[], || unsafe { real!(fn _exit(c_int) -> c_int)(status) })
}

/// The parent ends inside; the child goes on, with a recording of its own.
unsafe extern "C" fn become_daemon(keep_directory: c_int, keep_files: c_int) -> c_int {
    end(note::FORKED, &[], || {
        // SAFETY: numbers only.
        let result = unsafe { real!(fn daemon(c_int, c_int) -> c_int)(keep_directory, keep_files) };
        (0..3).for_each(super::descriptors::renamed);
        result
    })
}

type Texts = *const *const c_char;

unsafe extern "C" fn execute(path: *const c_char, arguments: Texts) -> c_int {
    // SAFETY: the program's arguments, and the environment that libc has.
    unsafe { execute_with(path, arguments, own_environment()) }
}

unsafe extern "C" fn execute_with(path: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    // SAFETY: the program's path and lists.
    replace(environment, |environment| unsafe {
        real!(fn execve(*const c_char, Texts, Texts) -> c_int)(path, arguments, environment)
    })
}

unsafe extern "C" fn execute_by_name(name: *const c_char, arguments: Texts) -> c_int {
    // SAFETY: the program's arguments, and the environment that libc has.
    unsafe { execute_by_name_with(name, arguments, own_environment()) }
}

unsafe extern "C" fn execute_by_name_with(name: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    // SAFETY: the program's name and lists.
    replace(environment, |environment| unsafe {
        real!(fn execvpe(*const c_char, Texts, Texts) -> c_int)(name, arguments, environment)
    })
}

unsafe extern "C" fn execute_file(file: c_int, arguments: Texts, environment: Texts) -> c_int {
    // SAFETY: the program's lists.
    replace(environment, |environment| unsafe { real!(fn fexecve(c_int, Texts, Texts) -> c_int)(file, arguments, environment) })
}

unsafe extern "C" fn execute_at(
    directory: c_int,
    path: *const c_char,
    arguments: Texts,
    environment: Texts,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's path and lists, too.
    replace(environment, |environment| unsafe {
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
        // SAFETY: by the contract, not behind the null that ends the arguments, or one further.
        unsafe { if index < 5 { *self.registers.add(index) } else { *self.stack.add(index - 5) } }
    }
    /// Up to and with the null that ends them; and what follows that.
    unsafe fn list(&self) -> (List<*const c_char>, *const c_char) {
        let mut list = List::new();
        loop {
            // SAFETY: no null has come yet.
            let text = unsafe { self.get(list.len()) };
            list.push(text);
            if text.is_null() {
                // SAFETY: one behind the null: on the stack, if it is not an argument.
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
    // SAFETY: the trampoline has stored five registers, and where the others are.
    let (mut list, next) = unsafe { Further { registers, stack }.list() };
    let result = call(list.as_slice().as_ptr(), next);
    list.clear_and_free();
    result
}

unsafe extern "C" fn list(path: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    // SAFETY: from the trampoline, with what the program listed.
    unsafe { execute_list(registers, stack, |arguments, _| execute(path, arguments)) }
}

unsafe extern "C" fn list_by_name(name: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    // SAFETY: as in `list`.
    unsafe { execute_list(registers, stack, |arguments, _| execute_by_name(name, arguments)) }
}

unsafe extern "C" fn list_with(path: *const c_char, registers: *const *const c_char, stack: *const *const c_char) -> c_int {
    // SAFETY: as in `list`: the environment follows the null.
    unsafe { execute_list(registers, stack, |arguments, environment| execute_with(path, arguments, environment.cast())) }
}

/// Trampolines of variadic functions with one fixed argument.
macro_rules! interpose_lists {
    ($($name:ident => $target:path;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $crate::intercept::names_of!($name),
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
                caller = const $crate::system::tls::CALLER,
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

/// What libc's `pthread_atfork` calls. The handlers run on the thread that forks.
unsafe extern "C" fn at_fork(
    prepare: Option<unsafe extern "C" fn()>,
    parent: Option<unsafe extern "C" fn()>,
    child: Option<unsafe extern "C" fn()>,
    library: *mut c_void,
) -> c_int {
    type Handler = Option<unsafe extern "C" fn()>;
    kernel::releases(Object::ForkHandlers, caller());
    // SAFETY: the program's handlers, or null, and its library's handle.
    unsafe { real!(fn __register_atfork(Handler, Handler, Handler, *mut c_void) -> c_int)(prepare, parent, child, library) }
}

interpose! {
    __register_atfork => at_fork;
    fork => forked;
    vfork => forked;
    _Fork => forked_bare;
    clone => cloned;
    posix_spawn => spawned;
    posix_spawnp => spawned_by_name;
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
