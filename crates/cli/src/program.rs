//! Is this a program that can be recorded? Answered from the file, before anything runs.

use anyhow::{Context as _, Result};
use object::elf::{FileHeader64, SHT_DYNAMIC, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX};
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _, SectionHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use rashomon_event::{ModuleInfo, path_text};
use rashomon_pipeline::Binaries;
use rashomon_pipeline::analyse::modules::{MARKER, has_instrumented_code};
use rashomon_pipeline::findings::assembly::is_instrumented;
use rashomon_pipeline::findings::symbols::Symbols as _;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
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
    /// Not instrumented: the loader is asked for our runtime, for the sake of libraries.
    Preloaded,
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

/// Finds and inspects the program. `preload`: it may be without instrumentation, as libraries that it loads are not.
pub fn inspect(command: &OsStr, preload: bool) -> Result<Inspection, Unfit> {
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
    let bytes = tables_of(&file, &path).map_err(unreadable)?;
    let (instrumentation, mut notes) =
        inspect_bytes(&bytes, preload).map_err(|reason| Unfit::Unsuitable(format!("{}: {reason}", path.display())))?;
    let is_told = notes.iter().any(|note| [STRIPPED, NO_DEBUG_INFORMATION, PRELOADED].contains(&note.as_str()));
    if !is_told && !main_has_lines(&path, &bytes) {
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

const PRELOADED: &str = "the program is not instrumented: libraries that are, and that it loads, are recorded";

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
    // A test's `main` may come from a library that the system ships. It does not speak for the code that is looked at.
    Binaries::new().frames(&module, start).iter().any(|frame| frame.line.is_some())
        || is_instrumented(path, "main") == Some(false)
}

const HOW_TO_BUILD: &str = "build it with `rashomon cc`/`rashomon c++`, or with gcc's -fsanitize=thread";

/// The file with its headers and tables of names in their places, and zeros elsewhere, which take no time to read: code and debug
/// information are most of a program that a runtime is linked into. Where that cannot be told apart, the whole file.
fn tables_of(file: &fs::File, path: &Path) -> std::io::Result<Vec<u8>> {
    /// What memory is taken for at once.
    const LONGEST: u64 = 1 << 30;
    let length = file.metadata()?.len();
    if length <= LONGEST {
        let mut bytes = vec![0; length as usize];
        if fill_tables(file, &mut bytes)?.is_some() {
            return Ok(bytes);
        }
    }
    fs::read(path)
}

/// Nothing: this is no ELF file of 64 bits that says where its tables are.
fn fill_tables(file: &fs::File, bytes: &mut [u8]) -> std::io::Result<Option<()>> {
    const TABLES: [u32; 5] = [SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_DYNAMIC, SHT_SYMTAB_SHNDX];
    const PAGE: u64 = 1 << 12;
    let endian = LittleEndian;
    // Headers of segments are here, too, wherever they are in files that linkers write.
    fill(file, bytes, 0, PAGE)?;
    let Ok(header) = FileHeader64::<LittleEndian>::parse(&*bytes) else { return Ok(None) };
    let (at, each) = (header.e_shoff(endian), u64::from(header.e_shentsize(endian)));
    let (segments, segment_bytes) = (header.e_phoff(endian), u64::from(header.e_phentsize(endian)));
    let segment_bytes = segment_bytes * u64::from(header.e_phnum(endian));
    fill(file, bytes, segments, segment_bytes)?;
    // The first section says how many there are, if that is many.
    fill(file, bytes, at, each)?;
    let Ok(header) = FileHeader64::<LittleEndian>::parse(&*bytes) else { return Ok(None) };
    let Ok(count) = header.shnum(endian, &*bytes) else { return Ok(None) };
    fill(file, bytes, at, each.saturating_mul(count as u64))?;
    let Ok(header) = FileHeader64::<LittleEndian>::parse(&*bytes) else { return Ok(None) };
    let Ok(sections) = header.section_headers(endian, &*bytes) else { return Ok(None) };
    let tables = sections.iter().filter(|section| TABLES.contains(&section.sh_type(endian)));
    let ranges: Vec<(u64, u64)> = tables.filter_map(|section| section.file_range(endian)).collect();
    for (at, length) in ranges {
        fill(file, bytes, at, length)?;
    }
    Ok(Some(()))
}

/// Reads a part of the file into its place, as far as it exists.
fn fill(file: &fs::File, bytes: &mut [u8], at: u64, length: u64) -> std::io::Result<()> {
    let end = at.saturating_add(length).min(bytes.len() as u64);
    match bytes.get_mut(at as usize..end as usize) {
        Some(part) => file.read_exact_at(part, at),
        None => Ok(()),
    }
}

fn inspect_bytes(bytes: &[u8], preload: bool) -> Result<(Instrumentation, Vec<String>), String> {
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
    } else if preload {
        return if file.section_by_name(".interp").is_some() {
            Ok((Instrumentation::Preloaded, vec![PRELOADED.to_owned()]))
        } else {
            Err("statically linked: --preload can do nothing for it".into())
        };
    } else {
        return Err(format!(
            "not instrumented; {HOW_TO_BUILD}. If only libraries that it loads are instrumented, add --preload; if it only \
                starts instrumented programs, check a script (#!/bin/sh …) that calls it"
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
            let reason = inspect_bytes(&bytes, false).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    /// What is read of this test's own file says the same as the whole does.
    #[test]
    fn tables_say_what_the_whole_file_does() {
        let path = std::env::current_exe().unwrap();
        let whole = fs::read(&path).unwrap();
        let tables = tables_of(&fs::File::open(&path).unwrap(), &path).unwrap();
        assert_eq!(tables.len(), whole.len());
        assert!(tables != whole, "its code was not read");
        let names = |bytes: &[u8]| {
            let file = ElfFile64::<LittleEndian>::parse(bytes).unwrap();
            let symbols = file.symbols().chain(file.dynamic_symbols());
            let names: Vec<(u64, String)> = symbols.map(|one| (one.address(), one.name().unwrap().to_owned())).collect();
            (names, needed_libraries(&file), has_debug_information(&file))
        };
        let (found, expected) = (names(&tables), names(&whole));
        assert!(!expected.0.is_empty() && !expected.1.is_empty());
        assert!(found == expected);
        assert_eq!(inspect_bytes(&tables, false), inspect_bytes(&whole, false));
    }

    /// Cut short anywhere, it is read as it was before.
    #[test]
    fn tables_beyond_the_end_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [0, 3, 4, 63, 64, 100, 4096, 5000, whole.len() / 2, whole.len() - 1] {
            let path = folder.path().join("cut");
            fs::write(&path, &whole[..length]).unwrap();
            let tables = tables_of(&fs::File::open(&path).unwrap(), &path).unwrap();
            assert_eq!(tables.len(), length);
            let (of_tables, of_whole) = (inspect_bytes(&tables, false), inspect_bytes(&whole[..length], false));
            assert_eq!(of_tables.is_err(), of_whole.is_err(), "{length}");
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
