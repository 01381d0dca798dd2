//! Is this a program that can be recorded? Answered from the file, before anything runs.

use anyhow::{Context as _, Result};
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use rashomon_event::{ModuleInfo, path_text};
use rashomon_pipeline::Binaries;
use rashomon_pipeline::analyse::modules::{MARKER, has_instrumented_code};
use rashomon_pipeline::findings::symbols::Symbols as _;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// How the program comes by a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// Loads libtsan at start-up: ours takes its place through the loader's path.
    Loaded,
    /// Our runtime is linked into it.
    Linked,
    /// Not a program but a script: what it starts may be instrumented.
    Script,
}

#[derive(Clone, Debug)]
pub struct Inspection {
    /// Absolute.
    pub path: PathBuf,
    pub instrumentation: Instrumentation,
    pub notes: Vec<String>,
}

/// Why a program cannot be recorded. The two first are the shell's 127 and 126.
#[derive(Debug)]
pub enum Unfit {
    NotFound(String),
    NotExecutable(String),
    Unsuitable(String),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::NotFound(text) | Self::NotExecutable(text) | Self::Unsuitable(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Unfit {}

/// Finds a command as a shell does.
pub fn find(command: &OsStr) -> Result<PathBuf, Unfit> {
    let shown = Path::new(command).display();
    let missing = || Unfit::NotFound(format!("{shown}: no such program"));
    let found = if command.to_string_lossy().contains('/') {
        PathBuf::from(command)
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let candidates = std::env::split_paths(&path).map(|folder| folder.join(command));
        candidates.into_iter().find(|candidate| is_executable(candidate)).ok_or_else(|| {
            if Path::new(command).exists() {
                Unfit::NotFound(format!("{shown}: no such program in PATH; write ./{shown} for the one in this folder"))
            } else {
                missing()
            }
        })?
    };
    if !found.exists() {
        return Err(missing());
    }
    if !is_executable(&found) {
        return Err(Unfit::NotExecutable(format!("{}: not an executable file", found.display())));
    }
    std::path::absolute(&found).map_err(|error| Unfit::NotFound(format!("{shown}: {error}")))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Finds and inspects the program.
pub fn inspect(command: &OsStr) -> Result<Inspection, Unfit> {
    let path = find(command)?;
    let unreadable = |error: std::io::Error| Unfit::Unsuitable(format!("{}: cannot be read: {error}", path.display()));
    let mut start = [0_u8; 4];
    let mut file = fs::File::open(&path).map_err(unreadable)?;
    let count = file.read(&mut start).map_err(unreadable)?;
    if start[..count].starts_with(b"#!") {
        let note = "this is a script: the instrumented programs that it starts are recorded".to_owned();
        return Ok(Inspection { path, instrumentation: Instrumentation::Script, notes: vec![note] });
    }
    let mode = fs::metadata(&path).map_err(unreadable)?.permissions().mode();
    let bytes = fs::read(&path).map_err(unreadable)?;
    let (instrumentation, mut notes) =
        inspect_bytes(&bytes).map_err(|reason| Unfit::Unsuitable(format!("{}: {reason}", path.display())))?;
    if !notes.iter().any(|note| note == STRIPPED || note == NO_DEBUG_INFORMATION) && !main_has_lines(&path, &bytes) {
        notes.push(NO_DEBUG_INFORMATION.to_owned());
    }
    if mode & 0o6000 != 0 && instrumentation == Instrumentation::Loaded {
        notes.push("the program is set-user-id or set-group-id: the loader will ignore our runtime".into());
    }
    Ok(Inspection { path, instrumentation, notes })
}

const NO_DEBUG_INFORMATION: &str = "no debug information: reports will name functions but no lines; build with -g";

const ONLY_LINKED: &str = "none of its code is instrumented: only its calls of libc are seen, and races between its accesses \
    are not; compile its sources with `rashomon cc`/`rashomon c++`, too, and not only link them";

const STRIPPED: &str = "no debug information and no symbols: reports will name addresses only; \
    build with -g and check before the program is stripped";

/// Libraries that are linked in may have debug information where the program's own code has none.
fn main_has_lines(path: &Path, bytes: &[u8]) -> bool {
    let Ok(file) = object::File::parse(bytes) else { return false };
    // In a Rust program `main` is made by the compiler; what it calls is an instance of a generic function, as much the program's
    // own as its main.
    let is_rust = |name: &str| name.contains("lang_start") && !name.contains("lang_start_internal");
    let defined = |is: &dyn Fn(&str) -> bool| {
        file.symbols().find(|symbol| symbol.is_definition() && symbol.size() > 0 && symbol.name().is_ok_and(is))
    };
    let Some(main) = defined(&is_rust).or_else(|| defined(&|name| name == "main")) else { return true };
    let (start, end) = (main.address(), main.address().saturating_add(main.size().max(1)));
    let module = ModuleInfo { path: path_text(path.as_os_str().as_encoded_bytes()), build_id: None, base: 0, start, end };
    Binaries::new().frames(&module, start).iter().any(|frame| frame.line.is_some())
}

const HOW_TO_BUILD: &str = "build it with `rashomon cc`/`rashomon c++`, or with gcc's -fsanitize=thread";

fn inspect_bytes(bytes: &[u8]) -> Result<(Instrumentation, Vec<String>), String> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err("not an ELF program, and no script, which begins with #! and its interpreter".into());
    }
    if bytes.get(4) != Some(&2) || bytes.get(5) != Some(&1) || bytes.get(18..20) != Some(&[62, 0]) {
        return Err("not a program for x86-64; only these can be recorded".into());
    }
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(|error| format!("a damaged ELF file: {error}"))?;
    let endian = LittleEndian;
    match file.elf_header().e_type(endian) {
        object::elf::ET_EXEC | object::elf::ET_DYN => {}
        object::elf::ET_REL => return Err("an object file, not a program; link it first".into()),
        _ => return Err("not a program".into()),
    }
    let mut defined_marker = false;
    let mut defined_hooks = false;
    let mut wanted_hooks = false;
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if name == MARKER {
            defined_marker |= symbol.is_definition();
        } else if name.starts_with("__tsan_") {
            defined_hooks |= symbol.is_definition();
            wanted_hooks |= symbol.is_undefined();
        }
    }
    let needed = needed_libraries(&file);
    let instrumentation = if defined_marker {
        Instrumentation::Linked
    } else if defined_hooks {
        return Err(format!(
            "ThreadSanitizer's own runtime is linked into it and cannot be replaced; {HOW_TO_BUILD} (without -static-libtsan)"
        ));
    } else if wanted_hooks {
        Instrumentation::Loaded
    } else if needed.iter().any(|name| name.starts_with("libtsan.so") || name.starts_with("libclang_rt.tsan")) {
        // All the instrumented code is in libraries.
        Instrumentation::Loaded
    } else {
        return Err(format!(
            "not instrumented; {HOW_TO_BUILD}. If it only starts instrumented programs, check a \
                script (#!/bin/sh …) that calls it"
        ));
    };
    if instrumentation == Instrumentation::Loaded && !needed.iter().any(|name| name.contains("tsan")) {
        return Err(format!("instrumented, but linked without any runtime; {HOW_TO_BUILD} at the link step too"));
    }
    let mut notes = Vec::new();
    if instrumentation == Instrumentation::Linked && !has_instrumented_code(&file) {
        notes.push(ONLY_LINKED.to_owned());
    }
    if !has_debug_information(&file) {
        let stripped = file.symbols().next().is_none();
        notes.push(if stripped { STRIPPED } else { NO_DEBUG_INFORMATION }.to_owned());
    }
    Ok((instrumentation, notes))
}

fn has_debug_information(file: &ElfFile64<'_, LittleEndian>) -> bool {
    file.section_by_name(".debug_info").is_some()
        || file.section_by_name(".zdebug_info").is_some()
        || file.section_by_name(".gnu_debuglink").is_some()
}

/// `DT_NEEDED` entries.
pub fn needed_libraries(file: &ElfFile64<'_, LittleEndian>) -> Vec<String> {
    let endian = LittleEndian;
    let Ok(Some((entries, link))) = file.elf_section_table().dynamic(endian, file.data()) else {
        return Vec::new();
    };
    let Ok(strings) = file.elf_section_table().strings(endian, file.data(), link) else {
        return Vec::new();
    };
    entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(object::elf::DT_NEEDED))
        .filter_map(|entry| entry.string(endian, strings).ok())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Names that an ELF file wants others to define.
pub fn imported(path: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(bytes.as_slice()).with_context(|| format!("{} is not an ELF file", path.display()))?;
    let mut names: Vec<String> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest file that passes for a program of the given class and machine.
    fn elf(class: u8, machine: u8, kind: u8) -> Vec<u8> {
        let mut bytes = vec![0_u8; 64];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        bytes[6] = 1;
        bytes[16] = kind;
        bytes[18] = machine;
        bytes[20] = 1;
        bytes[52] = 64;
        bytes
    }

    #[test]
    fn what_is_no_program_for_this_machine_is_said_to_be_none() {
        for (bytes, expected) in [
            (b"MZ....".to_vec(), "not an ELF program"),
            (b"\x7fELF".to_vec(), "not a program for x86-64"),
            (elf(1, 3, 2), "not a program for x86-64"),
            (elf(2, 183, 2), "not a program for x86-64"),
            (elf(2, 62, 1), "an object file"),
            (elf(2, 62, 4), "not a program"),
            (elf(2, 62, 2), "not instrumented"),
        ] {
            let reason = inspect_bytes(&bytes).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(matches!(find(OsStr::new("/nonexistent/program")), Err(Unfit::NotFound(_))));
        assert!(matches!(find(OsStr::new("no-program-has-this-name")), Err(Unfit::NotFound(_))));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        fs::write(&file, "text").unwrap();
        assert!(matches!(find(file.as_os_str()), Err(Unfit::NotExecutable(_))));
        assert!(find(OsStr::new("sh")).unwrap().is_absolute());
    }
}
