//! The runtime's object code: what it exports, and what it may call.

use crate::files::root;
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

struct Symbols {
    exported: BTreeSet<String>,
    imported: BTreeSet<String>,
}

/// Of the shared runtime, built where the tool's build script builds it.
fn symbols() -> Symbols {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in cargo's folder").join("runtime");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--target-dir"]).arg(&target).current_dir(root().join("runtime"));
    // Flags and wrappers of the outer build are not for the runtime.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_") && !["CARGO_HOME", "CARGO_NET_OFFLINE"].contains(&&*text)
            || text.starts_with("RUSTC")
            || text == "RUSTFLAGS"
        {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "the runtime does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(target.join("release/librashomon_runtime.so")).unwrap();
    let file = object::File::parse(bytes.as_slice()).unwrap();
    let mut symbols = Symbols { exported: BTreeSet::new(), imported: BTreeSet::new() };
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().unwrap().to_owned();
        if name.is_empty() {
            continue;
        }
        if symbol.is_undefined() {
            // Without the version that the linker bound it to.
            symbols.imported.insert(name.split('@').next().unwrap().to_owned());
        } else {
            symbols.exported.insert(name);
        }
    }
    symbols
}

/// The entry points that gcc 12 and clang 19 call in C and C++ programs, and those of the public headers.
fn entry_points() -> Vec<String> {
    let mut names: Vec<String> = [
        "init",
        "func_entry",
        "func_exit",
        "vptr_read",
        "vptr_update",
        "read_range",
        "write_range",
        "atomic_thread_fence",
        "atomic_signal_fence",
        // clang calls these in place of the functions that it expands.
        "memcpy",
        "memmove",
        "memset",
        // sanitizer/tsan_interface.h
        "acquire",
        "release",
        "mutex_create",
        "mutex_destroy",
        "mutex_pre_lock",
        "mutex_post_lock",
        "mutex_pre_unlock",
        "mutex_post_unlock",
        "mutex_pre_signal",
        "mutex_post_signal",
        "mutex_pre_divert",
        "mutex_post_divert",
        "ignore_thread_begin",
        "ignore_thread_end",
        "get_current_fiber",
        "create_fiber",
        "destroy_fiber",
        "switch_to_fiber",
        "set_fiber_name",
        "external_register_tag",
        "external_assign_tag",
        "external_read",
        "external_write",
    ]
    .map(str::to_owned)
    .to_vec();
    for size in [1, 2, 4, 8, 16] {
        names.extend(["read", "write", "volatile_read", "volatile_write", "read_write"].map(|access| format!("{access}{size}")));
        names.extend(["read", "write"].map(|access| format!("{access}{size}_pc")));
        if size > 1 {
            let accesses = ["read", "write", "volatile_read", "volatile_write", "read_write"];
            names.extend(accesses.map(|access| format!("unaligned_{access}{size}")));
        }
        let operations = [
            "load",
            "store",
            "exchange",
            "fetch_add",
            "fetch_sub",
            "fetch_and",
            "fetch_or",
            "fetch_xor",
            "fetch_nand",
            "compare_exchange_strong",
            "compare_exchange_weak",
            "compare_exchange_val",
        ];
        names.extend(operations.map(|operation| format!("atomic{}_{operation}", size * 8)));
    }
    names.iter().map(|name| format!("__tsan_{name}")).collect()
}

/// Functions with several versions in glibc. A program linked against libtsan refers to them without a version, and what we
/// do not export binds to the oldest one.
const VERSIONED: [&str; 19] = [
    "pthread_cond_init",
    "pthread_cond_destroy",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "fmemopen",
    "glob",
    "glob64",
    "memcpy",
    "posix_spawn",
    "posix_spawnp",
    "pthread_attr_getaffinity_np",
    "pthread_kill",
    "realpath",
    "regexec",
    "sched_getaffinity",
    "lgamma",
    "lgammaf",
];

/// Interposed: without one of them a thread would block, end or synchronise unseen.
const SYNCHRONISATION: [&str; 34] = [
    "pthread_create",
    "pthread_join",
    "pthread_detach",
    "pthread_mutex_init",
    "pthread_mutex_destroy",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_timedlock",
    "pthread_mutex_unlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_unlock",
    "pthread_barrier_init",
    "pthread_barrier_wait",
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "pthread_spin_unlock",
    "pthread_once",
    "sem_init",
    "sem_wait",
    "sem_trywait",
    "sem_timedwait",
    "sem_post",
    "fork",
    "syscall",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "nanosleep",
];

/// All that the runtime takes from libc by name. Everything else it asks the loader for, behind its own definitions.
const IMPORTS: [&str; 30] = [
    // Emitted by the linker.
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__cxa_finalize",
    "__gmon_start__",
    "__errno_location",
    // The heap under the interposed names.
    "__libc_calloc",
    "__libc_free",
    "__libc_malloc",
    "__libc_memalign",
    "__libc_realloc",
    // A variable: programs that libc starts by itself get what it points to.
    "environ",
    "stdin",
    "stdout",
    // The environment before libc has set it up.
    "__libc_stack_end",
    // Weak: only where the program brings libstdc++.
    "_ZSt17__throw_bad_allocv",
    // Weak: functions that a program may define for the runtime to call.
    "__sanitizer_report_error_summary",
    "__tsan_default_options",
    "__tsan_default_suppressions",
    "__tsan_on_finalize",
    "__tsan_on_initialize",
    "__tsan_on_report",
    "__tsan_symbolize_external",
    "__tsan_symbolize_external_ex",
    // The same by their names in C++.
    "_ZN6__tsan10OnFinalizeEb",
    "_ZN6__tsan12OnInitializeEv",
    "_ZN6__tsan30OnPotentiallyBlockingRegionEndEv",
    "_ZN6__tsan32OnPotentiallyBlockingRegionBeginEv",
    // The loader.
    "dl_iterate_phdr",
    "dlsym",
    "dlvsym",
];

#[test]
fn the_runtime_has_every_entry_point() {
    let exported = symbols().exported;
    let wanted = entry_points().into_iter().chain(VERSIONED.iter().chain(&SYNCHRONISATION).map(|name| (*name).to_owned()));
    let missing: Vec<String> = wanted.filter(|name| !exported.contains(name)).collect();
    assert!(missing.is_empty(), "programs that use these do not link, or escape us: {missing:?}");
}

#[test]
fn the_runtime_calls_nothing_that_it_interposes() {
    let symbols = symbols();
    let unknown: Vec<_> = symbols.imported.iter().filter(|name| !IMPORTS.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "new imports; is each of them never interposed, and free of locks and allocation? {unknown:?}");
    let both: Vec<_> = symbols.imported.intersection(&symbols.exported).collect();
    assert!(both.is_empty(), "imported and interposed: {both:?}");
}
