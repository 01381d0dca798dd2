//! The one interface between the two worlds: the runtime inside the program under test and the host tool.
//!
//! A *session* is a directory. The host writes `control` into it and starts the program with [`SESSION_VARIABLE`] naming
//! the directory; the runtime writes everything else. After the run the directory **is** the recording.
//!
//! Everything here is bytes, numbers and names: no I/O, no allocation, no policy. `docs/trace-format.md` is the
//! specification in prose; where the two disagree that is a bug, and a golden file decides.
#![no_std]
#![forbid(unsafe_code)]

pub mod compress;
pub mod control;
pub mod counted;
pub mod debugged;
pub mod deep;
pub mod enforced;
pub mod exploration;
pub mod flags;
pub mod header;
pub mod instructions;
pub mod known;
pub mod nest;
pub mod numbers;
pub mod pattern;
pub mod provoke;
pub mod record;
pub mod report;
pub mod unserved;
pub mod unwritten;
pub mod value;

/// Version of everything in this crate. Written to each `control` and `header`; either side refuses another one of a session that
/// is under way.
pub const PROTOCOL_VERSION: u32 = 4;

/// The oldest version of recordings that is still read. Each later one only adds kinds of records and operations, and ways to
/// store them.
pub const OLDEST_RECORDING: u32 = 1;

/// Environment variable with options of online detection, in the syntax of `TSAN_OPTIONS`. Where it or `TSAN_OPTIONS` is set, and
/// no session is, the runtime detects.
pub const DETECT_VARIABLE: &str = "RASHOMON_DETECT";

/// Environment variable that names the session directory. Unset: the runtime lets the program run unobserved, or detects.
pub const SESSION_VARIABLE: &str = "RASHOMON_SESSION";

/// Environment variable with the variables of libraries without instrumentation that `--library-global` names, separated by
/// commas.
pub const GLOBALS_VARIABLE: &str = "RASHOMON_LIBRARY_GLOBALS";

/// Environment variable with the name of a process among those of an execution in which an order of synchronisation is kept:
/// numbers as in [`PROCESS_FOLDER_PREFIX`], with dots between them. The runtime sets it for programs that are started.
pub const ENFORCED_PROCESS_VARIABLE: &str = "RASHOMON_ENFORCED_PROCESS";

/// Environment variable with ThreadSanitizer's options: `name=value`, separated by colons, commas or white space.
pub const OPTIONS_VARIABLE: &str = "TSAN_OPTIONS";

/// Environment variable that names the host tool, which runs as the reporter.
pub const REPORTER_VARIABLE: &str = "RASHOMON_REPORTER";

/// The host tool's subcommand that is the reporter: messages of [`report`] on standard input, answers on standard output.
pub const REPORTER_COMMAND: &str = "reporter";

/// Written by the host before the run: see [`control`].
pub const CONTROL_FILE: &str = "control";
/// Written by the runtime: one mapped page, see [`header`].
pub const HEADER_FILE: &str = "header";
/// Written by the runtime: the loaded modules, see [`module`].
pub const MODULES_FILE: &str = "modules";
/// Written by the runtime: a line `number identity` for each thread that the program gave a name of its own.
pub const IDENTITIES_FILE: &str = "identities";
/// Written by the runtime when it provokes: what came of each descriptor, see [`provoke`].
pub const PROVOKED_FILE: &str = "provoked";
/// See [`enforced`].
pub const ENFORCED_FILE: &str = "enforced";
/// `thread-0000`, `thread-0001`, … in order of creation: see [`record`].
pub const THREAD_FILE_PREFIX: &str = "thread-";

/// `process-0000`, `process-0001`, …: folders of the processes that a process made, each a session of its own. The number counts
/// the places that the process gave: to its forked children, to programs that it started, and to the one that took its place.
pub const PROCESS_FOLDER_PREFIX: &str = "process-";

/// Created with `O_EXCL` by the first process that records into a session; later ones (children that `exec`
/// an instrumented program) find it and run unobserved.
pub const CLAIM_FILE: &str = "claim";

/// Largest number of threads a recording may hold. The table of pointers is reserved address space, not memory.
pub const MAX_THREADS: usize = 1 << 16;

/// `modules`: text, one line a module, fields separated by one tab, last field the path (any bytes, but for escapes: see
/// [`module::NEWLINE`]): `seq  base  start  end  build-id  path`, numbers in hexadecimal without prefix, `build-id` `-` when
/// there is none. `base` is the load bias (what is added to the addresses in the file); `[start, end)` spans the loaded segments;
/// `seq` is the global sequence number at which the module was first seen. A line that starts with `!` names a module that was
/// unloaded: `!seq  base`.
pub mod module {
    pub const FIELD_SEPARATOR: char = '\t';
    pub const NO_BUILD_ID: &str = "-";
    /// In place of a newline of the path; `\xHH` (lower-case digits) stands for a byte.
    pub const NEWLINE: &str = "\\x0a";
    /// Libraries whose synchronisation the runtime sees through interposition, by the start of their file names.
    pub const MODELLED: [&str; 16] = [
        "libc.so",
        // The runtime serves their calls; what it does not serve is among the unseen functions.
        "libgomp.so",
        "libomp.so",
        "libm.so",
        "libmvec.so",
        "libstdc++.so",
        "libc++.so",
        "libc++abi.so",
        "libgcc_s.so",
        "ld-linux",
        "libpthread.so",
        "librt.so",
        "libdl.so",
        "linux-vdso",
        "[vdso]",
        "libunwind.so",
    ];
    /// Runtimes that instrumented code calls.
    pub const RUNTIME: [&str; 3] = ["libtsan.so", "librashomon_runtime", "libclang_rt.tsan"];

    /// Whether a module needs no instrumentation, by the name of its file.
    pub fn is_modelled(name: &[u8]) -> bool {
        name.is_empty() || MODELLED.iter().chain(&RUNTIME).any(|known| name.starts_with(known.as_bytes()))
    }
    /// In place of a backslash of the path that begins what looks like an escape.
    pub const BACKSLASH: &str = "\\x5c";
}
