//! The options of online detection: ThreadSanitizer's names and defaults, and our own. One default differs:
//! `suppress_equal_addresses`, since two pairs of places are two bugs to mend.
//!
//! Read once, in this order, later values winning: the program's `__tsan_default_options()`, `TSAN_OPTIONS`, `RASHOMON_DETECT`.
//! Every name that ThreadSanitizer knows is accepted, also where it asks for something that does not exist here (a history to
//! size, a symbolizer to name); a name that nobody knows is told at `verbosity=1`, as there.

use super::{hooks, output};
use crate::system::memory::List;
use crate::system::real;
use crate::system::sys::{self, Decimal, syscall};
use core::ffi::CStr;
use rashomon_abi::flags::{Fault, Flags, boolean, number};
use rashomon_abi::{DETECT_VARIABLE, OPTIONS_VARIABLE};

/// Nested `include` files.
const DEEPEST: u32 = 10;
/// Bytes of the longest file of options or suppressions.
const LONGEST_FILE: usize = 8 << 20;

macro_rules! options {
    ($($(#[$note:meta])* $name:ident : $kind:ident = $default:expr, $help:literal;)*) => {
        /// The values. Names and meanings are those of the flags.
        pub struct Options { $( $(#[$note])* pub $name: kind!($kind), )* }

        static mut OPTIONS: Options = Options { $($name: $default,)* };

        impl Options {
            /// False: the value is none of the flag's. None: no such flag is used here.
            fn set(&mut self, name: &[u8], value: &'static [u8]) -> Option<bool> {
                $( if name == stringify!($name).as_bytes() { return Some(parse!($kind, self.$name, value)); } )*
                None
            }

            fn help(&self) {
                $( help_line(stringify!($name), $help, show!($kind, self.$name)); )*
            }
        }
    };
}
macro_rules! kind {
    (yes) => { bool };
    (unless_told) => { Option<bool> };
    (number) => { i64 };
    (text) => { &'static [u8] };
}
macro_rules! parse {
    (yes, $place:expr, $value:expr) => {
        boolean($value).map(|value| $place = value).is_some()
    };
    (unless_told, $place:expr, $value:expr) => {
        boolean($value).map(|value| $place = Some(value)).is_some()
    };
    (number, $place:expr, $value:expr) => {
        number($value).map(|value| $place = value).is_some()
    };
    (text, $place:expr, $value:expr) => {{
        $place = $value;
        true
    }};
}
macro_rules! show {
    (yes, $value:expr) => {
        Shown::Text(if $value { b"true" } else { b"false" })
    };
    (unless_told, $value:expr) => {
        Shown::Text(match $value {
            Some(true) => b"true",
            Some(false) => b"false",
            None => b"",
        })
    };
    (number, $value:expr) => {
        Shown::Number($value)
    };
    (text, $value:expr) => {
        Shown::Text($value)
    };
}

enum Shown {
    Text(&'static [u8]),
    Number(i64),
}

options! {
    detector: text = b"hb", "hb, lockset or hybrid";
    filter: text = b"none", "none or tree: what is left out before detection";
    enforce: text = b"", "folder with an order of synchronisation that is kept while threads run in parallel, from \
        `rashomon csp enforce`";
    enforce_process: text = b"", "which process keeps it: numbers of processes made, with dots between them; none: the first one";
    unmap_is_write: yes = false, "report memory that is unmapped while another thread may still access it";
    filter_locations: number = 1024, "how many code locations, in all their contexts, the filter remembers of each thread";
    reporter: text = b"", "the program that names addresses and writes reports; \
        default: RASHOMON_REPORTER, else `rashomon` in PATH";
    format: text = b"tsan", "tsan, text or json";
    release_sequences: text = b"", "standard: a relaxed store of another thread ends them; \
        kept: only a releasing store does, as in ThreadSanitizer; default: kept with format=tsan, else standard";
    references: number = 0, "references to earlier accesses, in thousands, before those out of use are swept; \
        0: as many as the program's memory asks for";
    stats: text = b"", "file for what detection did, in numbers; every access is counted then, which takes time";
    report_bugs: yes = true, "report anything at all";
    report_thread_leaks: yes = true, "report threads that nobody joined at exit";
    report_destroy_locked: yes = true, "report the destruction of a locked mutex";
    report_mutex_bugs: yes = true, "report wrong uses of mutexes";
    report_signal_unsafe: yes = true, "report calls that a signal handler must not make";
    report_atomic_races: yes = true, "report races between atomic and plain accesses";
    suppress_equal_stacks: yes = true, "report a race between the same two stacks once";
    suppress_equal_addresses: yes = false, "report one race on the same address, not each pair of places";
    ignore_noninstrumented_modules: yes = false, "ignore what is called from modules without instrumentation";
    ignore_interceptors_accesses: yes = false, "ignore the accesses of library functions";
    enable_annotations: yes = true, "heed dynamic annotations";
    force_seq_cst_atomics: yes = false, "take every atomic operation as sequentially consistent";
    force_background_thread: yes = false, "start the thread that keeps memory_limit_mb and flush_memory_ms with the \
        program, not with its first thread";
    halt_on_error: yes = false, "end the process after the first report";
    end_on_sigterm: yes = false, "a SIGTERM that the program does not handle ends it with exitcode if something was reported";
    print_benign: yes = false, "no effect here";
    print_full_thread_history: yes = false, "describe the ancestors of the threads of a report too";
    atexit_sleep_ms: number = 1000, "milliseconds that other threads get at exit";
    history_size: number = 0, "no effect here: stacks of former accesses are always kept";
    io_sync: number = 1, "what orders input and output: 0 nothing, 1 by descriptor, 2 everything";
    die_after_fork: unless_told = None, "end a process that makes threads after the fork of one that had several; \
        default: with format=tsan, as ThreadSanitizer, which does not support it";
    stop_on_start: yes = false, "wait for a debugger at start";
    running_on_valgrind: yes = false, "no effect here";
    profile_memory: text = b"", "no effect here";
    flush_memory_ms: number = 0, "forget the accesses seen so far every so many milliseconds";
    flush_symbolizer_ms: number = 5000, "no effect here";
    memory_limit_mb: number = 0, "forget the accesses seen so far when the process has more megabytes of memory in use";
    shared_ptr_interceptor: yes = true, "no effect here: the reference counts are synchronisation by themselves";
    check_symbols: yes = false, "no effect here";
    second_deadlock_stack: yes = false, "say also where the first mutex of each pair was locked";
    detect_deadlocks: yes = true, "report cycles in the order of locks";
    suppressions: text = b"", "file of suppressions";
    print_suppressions: yes = false, "say at exit which suppressions matched";
    exitcode: number = 66, "exit code when something was reported";
    log_path: text = b"stderr", "file that reports go to, with the process id appended; or stdout, stderr";
    log_exe_name: yes = false, "name the program in the log file's name";
    log_suffix: text = b"", "behind the process id in the log file's name";
    log_to_syslog: yes = false, "no effect here";
    verbosity: number = 0, "say more";
    color: text = b"auto", "auto, always or never";
    symbolize: yes = true, "name addresses";
    strip_path_prefix: text = b"", "left out of file names up to its end";
    stack_trace_format: text = b"DEFAULT", "how frames are printed";
    demangle: yes = true, "print names as the source has them";
    say_clean: number = 0, "the process of this number says at exit that nothing was reported, and of how many threads";
    print_summary: yes = true, "end reports with a summary line";
    print_module_map: number = 0, "print the loaded modules: 1 at exit, 2 with every report";
    abort_on_error: yes = false, "end with abort() instead of exit";
    help: yes = false, "print the options";
}

/// Flags of ThreadSanitizer that nothing here depends on.
const IGNORED: &[&str] = &[
    "allocator_may_return_null",
    "allocator_release_to_os_interval_ms",
    "allow_addr2line",
    "allow_user_segv_handler",
    "can_use_proc_maps_statm",
    "check_printf",
    "clear_shadow_mmap_threshold",
    "compress_stack_depot",
    "coverage",
    "coverage_dir",
    "cov_8bit_counters_out",
    "cov_pcs_out",
    "decorate_proc_maps",
    "detect_leaks",
    "detect_stack_use_after_return",
    "detect_write_exec",
    "disable_coredump",
    "dlopen_with_deepbind",
    "dump_instruction_bytes",
    "dump_registers",
    "enable_symbolizer_markup",
    "external_symbolizer_path",
    "fast_unwind_on_check",
    "fast_unwind_on_fatal",
    "fast_unwind_on_malloc",
    "full_address_space",
    "handle_abort",
    "handle_ioctl",
    "handle_segv",
    "handle_sigbus",
    "handle_sigfpe",
    "handle_sigill",
    "handle_sigtrap",
    "hard_rss_limit_mb",
    "heap_profile",
    "html_cov_report",
    "intercept_intrin",
    "intercept_memcmp",
    "intercept_memmem",
    "intercept_send",
    "intercept_stat",
    "intercept_strchr",
    "intercept_strcmp",
    "intercept_strlen",
    "intercept_strndup",
    "intercept_strpbrk",
    "intercept_strspn",
    "intercept_strstr",
    "intercept_strtok",
    "intercept_tls_get_addr",
    "leak_check_at_exit",
    "legacy_pthread_cond",
    "malloc_context_size",
    "map_dynamic_shadow",
    "max_allocation_size_mb",
    "mmap_limit_mb",
    "no_huge_pages_for_shadow",
    "print_cmdline",
    "simulate_corruption",
    "soft_rss_limit_mb",
    "stack_trace_format",
    "strict_memcmp",
    "strict_string_checks",
    "strip_env",
    "suppress_races_from_libs",
    "symbolize_inline_frames",
    "symbolize_vs_style",
    "test_only_emulate_no_memorymap",
    "test_only_replace_dlopen_main_program",
    "tool_name",
    "use_madv_dontdump",
    "use_sigaltstack",
];

pub fn get() -> &'static Options {
    let options = &raw const OPTIONS;
    // SAFETY: written only by `load`, before there is a second thread.
    unsafe { &*options }
}

/// Whether the environment asks for online detection: `RASHOMON_DETECT` or `TSAN_OPTIONS` is set.
pub fn wanted() -> bool {
    [DETECT_VARIABLE, OPTIONS_VARIABLE].iter().any(|name| real::environment(name.as_bytes()).is_some())
}

/// The texts that options come from, in the order in which they are read.
pub fn texts() -> [&'static [u8]; 3] {
    let environment = |name: &str| real::environment(name.as_bytes()).unwrap_or_default();
    [hooks::default_options(), environment(OPTIONS_VARIABLE), environment(DETECT_VARIABLE)]
}

/// Reads the options. Once, at the start.
pub fn load() {
    let options = &raw mut OPTIONS;
    // SAFETY: no second thread yet.
    let options = unsafe { &mut *options };
    let mut unknown = List::new();
    for text in texts() {
        read(options, text, 0, &mut unknown);
    }
    if options.help {
        output::text(b"Available flags for ThreadSanitizer, with their current values:\n");
        options.help();
    }
    if options.verbosity > 0 && unknown.len() > 0 {
        output::text(b"WARNING: found ");
        output::text(Decimal::new(unknown.len() as u64).bytes());
        output::text(b" unrecognized flag(s):\n");
        for name in unknown.as_slice() {
            output::texts(&[b"    ", name, b"\n"]);
        }
    }
    unknown.clear_and_free();
    if options.stop_on_start {
        // SAFETY: SIGSTOP to ourselves.
        unsafe { syscall!(62usize, sys::process_id(), 19) };
    }
}

fn read(options: &mut Options, text: &'static [u8], depth: u32, unknown: &mut List<&'static [u8]>) {
    for flag in Flags::new(text) {
        match flag {
            Err(Fault::NoValue(at)) => refuse(&[b"expected '=' in the options: ", at]),
            Err(Fault::Unclosed(at)) => refuse(&[b"unterminated string in the options: ", at]),
            Ok((b"include", path)) => include(options, path, depth, true, unknown),
            Ok((b"include_if_exists", path)) => include(options, path, depth, false, unknown),
            Ok((name, value)) => match options.set(name, value) {
                Some(true) => {}
                Some(false) => refuse(&[b"invalid value for option ", name, b": '", value, b"'"]),
                None if IGNORED.iter().any(|ignored| ignored.as_bytes() == name) => {}
                None => unknown.push(name),
            },
        }
    }
}

fn include(options: &mut Options, path: &[u8], depth: u32, required: bool, unknown: &mut List<&'static [u8]>) {
    match file(path) {
        Some(text) if depth < DEEPEST => read(options, text, depth + 1, unknown),
        Some(_) => refuse(&[b"too many nested option files: ", path]),
        None if required => refuse(&[b"failed to read options from '", path, b"'"]),
        None => {}
    }
}

/// Exit code of a run that was asked for wrongly, whatever `exitcode` of runs with reports is.
const WRONG_USAGE: i32 = 2;

/// The options cannot be understood: nothing that the program would do is what was asked for.
pub fn refuse(parts: &[&[u8]]) -> ! {
    output::text(b"ThreadSanitizer: ");
    output::texts(parts);
    output::text(b"\n");
    sys::exit_group(WRONG_USAGE)
}

/// A whole file, for good; `None` if it cannot be read.
pub fn file(path: &[u8]) -> Option<&'static [u8]> {
    let mut name = [0_u8; 4096];
    if path.len() >= name.len() {
        return None;
    }
    name[..path.len()].copy_from_slice(path);
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    // SAFETY: a terminated name; the mapping is of our own descriptor, private and read-only, and stays.
    unsafe {
        // O_CLOEXEC
        let fd = syscall!(sys::OPENAT, -100isize, name.as_ptr(), 0o2000000, 0);
        if fd < 0 {
            return None;
        }
        let memory = sys::map_anonymous(LONGEST_FILE);
        let mut length = 0;
        while !memory.is_null() && length < LONGEST_FILE {
            let count = syscall!(sys::READ, fd, memory.add(length), LONGEST_FILE - length);
            if count == -sys::EINTR {
                continue;
            }
            if count <= 0 {
                break;
            }
            length += count as usize;
        }
        syscall!(sys::CLOSE, fd);
        (!memory.is_null()).then(|| core::slice::from_raw_parts(memory, length))
    }
}

fn help_line(name: &str, help: &str, value: Shown) {
    output::texts(&[b"\t", name.as_bytes(), b"\n\t\t- ", help.as_bytes(), b" (current value: "]);
    match value {
        Shown::Text(text) => output::text(text),
        Shown::Number(number) if number < 0 => output::texts(&[b"-", Decimal::new(number.unsigned_abs()).bytes()]),
        Shown::Number(number) => output::text(Decimal::new(number as u64).bytes()),
    }
    output::text(b")\n");
}
