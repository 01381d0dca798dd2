//! Recordings: one file of the golden session is replaced; the first byte says which.
#![no_main]

use rashomon_trace::{DumpOptions, Recording};
use std::path::Path;
use std::sync::OnceLock;
use tempfile::TempDir;

const FILES: [(&str, &[u8]); 4] = [
    ("header", include_bytes!("../../crates/trace/tests/golden/v2/header")),
    ("modules", include_bytes!("../../crates/trace/tests/golden/v2/modules")),
    ("thread-0000", include_bytes!("../../crates/trace/tests/golden/v2/thread-0000")),
    ("thread-0001", include_bytes!("../../crates/trace/tests/golden/v2/thread-0001")),
];

/// In memory, where the system has such a folder.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a folder can be made");
        for (name, bytes) in FILES {
            std::fs::write(folder.path().join(name), bytes).expect("the folder is writable");
        }
        folder
    };
    FOLDER.get_or_init(make).path()
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let [which, content @ ..] = input {
        let (name, good) = FILES[usize::from(*which) % FILES.len()];
        let path = folder().join(name);
        std::fs::write(&path, content).expect("the folder is writable");
        let _ = Recording::open(folder()).and_then(|recording| {
            recording.verify()?;
            recording.stat(&mut std::io::sink())?;
            recording.load()?.dump(&DumpOptions::default(), &mut std::io::sink())
        });
        std::fs::write(&path, good).expect("the folder is writable");
    }
});
