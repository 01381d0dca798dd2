//! Rust's standard library in programs: which frames are its own, and whether it was instrumented.
//!
//! The library that toolchains ship is compiled without instrumentation. Its atomics order what the program does (once cells,
//! channels, parking), and nothing of that is in a recording; a program into which it is linked as it is may be ordered in ways
//! that nobody saw. `cargo rashomon` links one with instrumentation.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use rashomon_event::library::is_library;
use rashomon_event::{Frame, ModuleInfo, path_of};
use rashomon_symbolize::CachedObject;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Called by the library around `main`, a thread's closure and a test: what is further out is its own. Its panic messages end
/// their backtraces there too.
const START: &str = "__rust_begin_short_backtrace";
/// Functions that are in every program with the library, and in no other code: our runtime, which is Rust too, has a panic
/// handler of its own.
const OF_LIBRARY: [&str; 2] = ["rust_panic_with_hook", "lang_start_internal"];
const ENTRY_HOOK: &str = "__tsan_func_entry";
/// Code of one of these functions that is looked at.
const MAX_CODE_BYTES: u64 = 1 << 16;

/// Whether rustc made the module, which has symbols then.
pub fn is_from_rust(module: &ModuleInfo) -> bool {
    static KNOWN: Mutex<BTreeMap<(String, Option<String>), bool>> = Mutex::new(BTreeMap::new());
    let key = (module.path.clone(), module.build_id.clone());
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    known.unwrap_or_else(|| {
        let is_known = |name: &str| OF_LIBRARY.iter().any(|known| name.contains(known));
        let has = |file: &CachedObject<'_>| file.symbols().any(|symbol| symbol.name().is_ok_and(is_known));
        let found = rashomon_symbolize::with_object(&path_of(&module.path), |file| Ok(has(file))).unwrap_or(false);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found);
        found
    })
}

/// Takes away how the library comes to call the program.
pub fn cut_start_code(frames: &mut Vec<Frame>) {
    let is_start = |frame: &Frame| frame.function.as_deref().is_some_and(|function| function.contains(START));
    if let Some(at) = frames.iter().position(is_start).filter(|at| *at > 0) {
        frames.truncate(at);
        // What it calls closures through.
        while frames.len() > 1 && frames.last().is_some_and(is_library) {
            frames.pop();
        }
    }
}

/// Takes away what the library does when the program has called it, unless that is all there is.
pub fn cut_library_calls(frames: &mut Vec<Frame>) {
    if let Some(own) = frames.iter().position(|frame| !is_library(frame)) {
        frames.drain(..own);
    }
}

/// Whether the file holds the library without instrumentation. Told by its functions: one that was instrumented calls the
/// runtime. Limits: a file without symbols is taken for one without the library; a shared library, whose calls go through a
/// table, for one with the plain library.
pub fn holds_plain_library(path: &Path) -> bool {
    rashomon_symbolize::with_object(path, |file| Ok(is_plain_library(file))).unwrap_or(false)
}

fn is_plain_library(file: &CachedObject<'_>) -> bool {
    let mut functions = Vec::new();
    let mut hook = None;
    for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if name == ENTRY_HOOK {
            hook = Some(symbol.address());
        } else if OF_LIBRARY.iter().any(|known| name.contains(known)) && !name.contains("{closure") {
            functions.push((symbol.address(), symbol.size().min(MAX_CODE_BYTES)));
        }
    }
    let calls_hook = |&(address, size): &(u64, u64)| {
        let Some(hook) = hook else { return false };
        let sections = file.sections();
        let code = sections.filter_map(|section| section.data_range(address, size).ok().flatten()).next();
        code.is_some_and(|code| calls(code, address, hook))
    };
    !functions.is_empty() && !functions.iter().any(calls_hook)
}

/// Whether code that lies at `address` has a direct call of `target`.
fn calls(code: &[u8], address: u64, target: u64) -> bool {
    const CALL: u8 = 0xe8;
    const LENGTH: u64 = 5;
    code.windows(LENGTH as usize).zip(address..).any(|(window, at)| {
        let [CALL, a, b, c, d] = *window else { return false };
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        at.wrapping_add(LENGTH).wrapping_add_signed(distance) == target
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str) -> Frame {
        Frame { function: Some(function.into()), file: Some(file.into()), ..Frame::default() }
    }

    #[test]
    fn what_the_library_does_around_the_program_is_cut_off() {
        let library = "/rustc/0123/library/std/src/thread/mod.rs";
        let mut frames = vec![
            frame("alloc::vec::Vec::push", "/rustc/0123/library/alloc/src/vec/mod.rs"),
            frame("task", "/p/src/lib.rs"),
            frame("std::sys::backtrace::__rust_begin_short_backtrace::<F, ()>", library),
            frame("std::sys::thread::unix::Thread::new::thread_start", library),
        ];
        cut_start_code(&mut frames);
        assert_eq!(frames.len(), 2);
        cut_library_calls(&mut frames);
        assert_eq!(frames, [frame("task", "/p/src/lib.rs")]);
        let all = vec![frame("a", library), frame("b", "/t/lib/rustlib/src/rust/library/std/src/rt.rs")];
        let mut frames = all.clone();
        cut_library_calls(&mut frames);
        cut_start_code(&mut frames);
        assert_eq!(frames, all);
    }

    #[test]
    fn direct_calls_are_found() {
        // At 0x1000: nop, call 0x2000.
        let code = [0x90, 0xe8, 0xfa, 0x0f, 0x00, 0x00, 0xc3];
        assert!(calls(&code, 0x1000, 0x2000));
        assert!(!calls(&code, 0x1001, 0x2000));
        assert!(!calls(&code[..5], 0x1000, 0x2000));
        // And back: at 0x2000, call 0x1000.
        assert!(calls(&[0xe8, 0xfb, 0xef, 0xff, 0xff], 0x2000, 0x1000));
    }
}
