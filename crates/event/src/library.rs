//! Rust's standard library in stacks, and what it does there with data of its own.

use crate::finding::{Finding, Frame, Origin};

/// Where the crates were that the library is made of, when the toolchain was built.
const DEPENDENCIES: &str = "/rust/deps/";

/// Whether a source file is one of the library.
pub fn is_source_of_library(file: &str) -> bool {
    let of_toolchain = file.starts_with("/rustc/") && file.contains("/library/");
    of_toolchain || file.starts_with(DEPENDENCIES) || file.contains("/rustlib/src/rust/library/")
}

/// Whether the code is from the sources of the library.
pub fn is_library(frame: &Frame) -> bool {
    frame.file.as_deref().is_some_and(is_source_of_library)
}

/// What of the library has data of its own that threads share: channels, locks, reference counts, threads and what they keep,
/// output streams, the harness of tests.
const SHARED: [&str; 6] = ["std::sync::", "alloc::sync::", "std::thread::", "std::sys::", "std::io::stdio::", "test::"];

impl Finding {
    /// Whether all sides are what the library does with data of its own.
    pub fn is_of_library(&self) -> bool {
        !self.sides.is_empty() && self.sides.iter().all(|side| is_library_at_work(&side.stack))
    }
}

/// Whether no code of the program is around, or the program has called something of the library that is at work with data of its
/// own. Innermost first.
pub fn is_library_at_work(stack: &[Frame]) -> bool {
    match stack.iter().position(|frame| frame.origin() != Origin::Library) {
        Some(own) => stack[..own].iter().any(|frame| is_library(frame) && is_shared(frame)),
        None => stack.iter().any(is_library),
    }
}

fn is_shared(frame: &Frame) -> bool {
    let Some(function) = frame.function.as_deref() else { return false };
    let of = function.strip_prefix("core::ptr::drop_in_place::<").unwrap_or(function).trim_start_matches('<');
    SHARED.iter().any(|path| of.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_at_work_with_its_own_data_alone() {
        let library = "/rustc/0123/library/alloc/src/x.rs";
        let within = |functions: &[(&str, &str)]| {
            let of = |&(function, file): &(&str, &str)| Frame {
                function: Some(function.into()),
                file: Some(file.into()),
                line: Some(1),
                ..Frame::default()
            };
            is_library_at_work(&functions.iter().map(of).collect::<Vec<_>>())
        };
        let (own, closure) = (("p::run", "/p/src/lib.rs"), ("p::run::{closure#0}", "/p/src/lib.rs"));
        let (push, once) =
            (("<alloc::vec::Vec<i32>>::push", library), ("<std::sync::once_lock::OnceLock<i32>>::get_or_init", library));
        assert!(within(&[("core::ptr::write", library), ("<std::sync::mpsc::Sender<i32>>::send", library), own]));
        assert!(within(&[("core::ptr::drop_in_place::<std::thread::join_handle::JoinHandle<()>>", library), own]));
        assert!(within(&[("<getopts::Options>::new", "/rust/deps/getopts-0.2.24/src/lib.rs"), ("test::test_main", library)]));
        // The program's own data, in whatever way.
        assert!(!within(&[push, own]));
        assert!(!within(&[closure, once, own]));
        assert!(!within(&[push, closure, ("std::thread::spawn", library)]));
        assert!(!within(&[("core::sync::atomic::AtomicI32::load", library), own]));
        // Another language's.
        assert!(!within(&[("malloc", "/usr/src/malloc.c")]));
    }
}
