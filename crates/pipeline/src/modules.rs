//! Loaded code that could have ordered accesses without our seeing it.

use object::{Object as _, ObjectSymbol as _};
use rashomon_event::Trace;
use std::path::Path;

/// Libraries whose synchronisation the runtime sees through interposition, by the start of their file names.
const MODELLED: [&str; 14] = [
    "libc.so",
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
const RUNTIME: [&str; 3] = ["libtsan.so", "librashomon_runtime", "libclang_rt.tsan"];

/// File names of the loaded modules that are neither instrumented nor modelled, sorted.
pub fn unmodelled(trace: &Trace) -> Vec<String> {
    let mut names: Vec<String> = trace
        .modules
        .iter()
        .filter(|module| !is_modelled(&module.path) && !is_instrumented(Path::new(&module.path)))
        .map(|module| file_name(&module.path).to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_modelled(path: &str) -> bool {
    let name = file_name(path);
    name.is_empty() || MODELLED.iter().chain(&RUNTIME).any(|known| name.starts_with(known))
}

/// Whether any of the file's code calls the instrumentation's hooks. A file that cannot be read is not.
pub fn is_instrumented(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let Ok(file) = object::File::parse(bytes.as_slice()) else { return false };
    let mut symbols = file.dynamic_symbols().chain(file.symbols());
    symbols.any(|symbol| symbol.name().is_ok_and(|name| name.starts_with("__tsan_func_entry") || name == "__tsan_init"))
}
