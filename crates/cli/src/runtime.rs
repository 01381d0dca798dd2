//! The runtime that the tool carries inside itself, unpacked to a folder that compilers, linkers and the loader can use.
//!
//! The folder is named by a hash of its contents and appears under its name only when it is complete (written elsewhere, then
//! renamed), so tools that start at the same time, and tools of several versions, do not disturb each other.

use anyhow::{Context as _, Result, bail};
use object::Object as _;
use rashomon_abi::numbers::Fnv;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

/// Names a folder that holds the runtime, to be used as it is.
pub const FOLDER_VARIABLE: &str = "RASHOMON_RUNTIME_DIR";

pub const ARCHIVE: &str = "librashomon_runtime.a";
pub const SHARED: &str = "librashomon_runtime.so";
/// For linkers: the names that programs must export, so that shared libraries find them there.
pub const EXPORTS: &str = "exports.list";

static ARCHIVE_PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librashomon_runtime.a.zst"));
static SHARED_PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librashomon_runtime.so.zst"));
const HASH: &str = env!("RASHOMON_RUNTIME_HASH");

/// `find_package(Rashomon)` finds it with `-DRashomon_DIR="$(rashomon runtime-path)"`.
const CMAKE_MODULE: (&str, &str) = ("RashomonConfig.cmake", include_str!("../cmake/RashomonConfig.cmake"));

/// What GNU as reads before anything else that it assembles for gcc.
pub const COUNTER: &str = "counter.s";
static COUNTER_TEXT: &str = include_str!("../assembly/counter.s");

/// Under these names gcc's and clang's drivers and the loader look for the shared runtime.
const SHARED_ALIASES: [&str; 4] = ["libtsan.so", "libtsan.so.0", "libtsan.so.2", "libclang_rt.tsan-x86_64.so"];
const ARCHIVE_ALIAS: &str = "libtsan.a";
/// gcc links it into every program that is built with `-fsanitize=thread`; our runtime needs no code in it.
const PREINIT: &str = "libtsan_preinit.o";

/// The loader's variable.
pub const PRELOAD: &str = "LD_PRELOAD";
const PRELOADED: &str = "libtsan.so.2";

/// What the environment of a program says in which the runtime is there before anything else.
pub fn preloaded() -> Result<(OsString, OsString)> {
    let others = std::env::var_os(PRELOAD).filter(|others| !others.is_empty());
    Ok((PRELOAD.into(), before(others.as_deref())?))
}

/// The same of an environment that was stored, perhaps by another installation.
pub fn preloaded_again(stored: &OsStr) -> Result<OsString> {
    let own = |path: &&OsStr| Path::new(path).file_name() == Some(OsStr::new(PRELOADED));
    let mut paths = stored.as_bytes().splitn(2, |byte| *byte == b':').map(OsStr::from_bytes);
    match paths.next().filter(own) {
        Some(_) => before(paths.next()),
        None => Ok(stored.to_owned()),
    }
}

fn before(others: Option<&OsStr>) -> Result<OsString> {
    let mut libraries = folder()?.join(PRELOADED).into_os_string();
    if let Some(others) = others {
        libraries.push(":");
        libraries.push(others);
    }
    Ok(libraries)
}

/// The folder, unpacked now if it is not there.
pub fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let folder = fs::canonicalize(&folder)
            .with_context(|| format!("{FOLDER_VARIABLE} names {}, which cannot be used", Path::new(&folder).display()))?;
        if !folder.join("libtsan.so.2").exists() {
            bail!("{FOLDER_VARIABLE} names {}, which holds no libtsan.so.2", folder.display());
        }
        return Ok(folder);
    }
    let mut refusals = Vec::new();
    for parent in [cache_folder(), private_temporary_folder()] {
        match parent.and_then(|parent| unpack_below(&parent)) {
            Ok(folder) => return Ok(folder),
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    bail!(
        "cannot unpack the runtime ({}); set {FOLDER_VARIABLE} or XDG_CACHE_HOME to a folder that can be written",
        refusals.join("; ")
    )
}

/// Names what the runtime is, for things that are built with it.
pub const fn hash() -> &'static str {
    HASH
}

/// A folder of this name beside the runtime, made now if it is not there.
pub fn cached(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let parent = cache_folder().or_else(|_| private_temporary_folder())?;
    complete_or_absent(&parent, name, make)
}

/// For names of folders: FNV-1a, which nothing relies on against an adversary.
pub fn short_hash(bytes: &[u8]) -> String {
    format!("{:016x}", Fnv::EMPTY.with(bytes).0)
}

fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = match set("XDG_CACHE_HOME").filter(|path| path.is_absolute()) {
        Some(path) => path,
        None => set("HOME").filter(|path| path.is_absolute()).context("HOME is not set")?.join(".cache"),
    };
    let folder = base.join("rashomon");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// A folder below the shared temporary folder that nobody else can have prepared for us.
fn private_temporary_folder() -> Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("rashomon-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot create {}", folder.display()));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).with_context(|| format!("cannot look at {}", folder.display()))?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        bail!("{} belongs to somebody else", folder.display());
    }
    Ok(folder)
}

fn unpack_below(parent: &Path) -> Result<PathBuf> {
    complete_or_absent(parent, &format!("runtime-{HASH}"), write)
}

/// A folder that appears under its name only when it is complete.
fn complete_or_absent(parent: &Path, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = parent.join(name);
    if folder.exists() {
        return Ok(folder);
    }
    let building = parent.join(format!("building-{name}-{}", std::process::id()));
    let made = fs::create_dir(&building).map_err(anyhow::Error::from).and_then(|()| make(&building));
    let result = made.with_context(|| format!("cannot fill {}", building.display()));
    let result = result.and_then(|()| match fs::rename(&building, &folder) {
        // Another tool was faster; its folder holds the same bytes.
        Err(_) if folder.exists() => Ok(()),
        other => other.with_context(|| format!("cannot rename {} to {}", building.display(), folder.display())),
    });
    if building.exists() {
        let _ = fs::remove_dir_all(&building);
    }
    result.map(|()| folder)
}

fn write(folder: &Path) -> Result<()> {
    let shared = zstd::decode_all(SHARED_PACKED)?;
    fs::write(folder.join(EXPORTS), export_list(&shared)?)?;
    fs::write(folder.join(SHARED), shared)?;
    fs::write(folder.join(ARCHIVE), zstd::decode_all(ARCHIVE_PACKED)?)?;
    fs::write(folder.join(PREINIT), empty_object()?)?;
    fs::write(folder.join(CMAKE_MODULE.0), CMAKE_MODULE.1)?;
    fs::write(folder.join(COUNTER), COUNTER_TEXT)?;
    symlink(ARCHIVE, folder.join(ARCHIVE_ALIAS))?;
    for alias in SHARED_ALIASES {
        symlink(SHARED, folder.join(alias))?;
    }
    Ok(())
}

fn empty_object() -> Result<Vec<u8>> {
    use object::write::Object;
    let mut file = Object::new(object::BinaryFormat::Elf, object::Architecture::X86_64, object::Endianness::Little);
    // Without this section linkers assume that the object wants an executable stack.
    file.add_section(Vec::new(), b".note.GNU-stack".to_vec(), object::SectionKind::Other);
    Ok(file.write()?)
}

/// Names that the shared runtime exports, sorted.
fn exported(shared: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(shared)?;
    let mut names: Vec<String> =
        file.exports()?.iter().map(|export| String::from_utf8_lossy(export.name()).into_owned()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn export_list(shared: &[u8]) -> Result<String> {
    let mut text = String::from("{\n");
    for name in exported(shared)? {
        text.push_str("  ");
        text.push_str(&name);
        text.push_str(";\n");
    }
    text.push_str("};\n");
    Ok(text)
}

/// What the runtime in `folder` stands in for.
pub fn intercepted(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(SHARED);
    let bytes = fs::read(&path).or_else(|_| fs::read(folder.join("libtsan.so.2")));
    exported(&bytes.with_context(|| format!("cannot read {}", path.display()))?)
}

/// What goes behind the objects of a program that is linked by gcc or clang.
pub fn link_arguments(folder: &Path, clang: bool) -> Vec<OsString> {
    let joined = |prefix: &str, path: &Path| {
        let mut text = OsString::from(prefix);
        text.push(path);
        text
    };
    let mut arguments: Vec<OsString> = Vec::new();
    if clang {
        arguments.push("-fno-sanitize-link-runtime".into());
        arguments.push(folder.join(ARCHIVE).into());
    } else {
        arguments.push("-static-libtsan".into());
        arguments.push(joined("-B", folder));
    }
    arguments.push(joined("-Wl,--dynamic-list=", &folder.join(EXPORTS)));
    arguments.extend(["-ldl", "-lpthread", "-lm"].map(OsString::from));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{ObjectSection as _, ObjectSymbol as _};

    #[test]
    fn the_empty_object_is_an_object_without_code() {
        let bytes = empty_object().unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        assert_eq!(file.kind(), object::ObjectKind::Relocatable);
        assert!(file.sections().all(|section| section.size() == 0 || section.kind() != object::SectionKind::Text));
        assert_eq!(file.symbols().filter(|symbol| symbol.is_global()).count(), 0);
    }

    #[test]
    fn unpacking_twice_gives_one_complete_folder() {
        let parent = tempfile::tempdir().unwrap();
        let first = unpack_below(parent.path()).unwrap();
        let second = unpack_below(parent.path()).unwrap();
        assert_eq!(first, second);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
        for name in [ARCHIVE, SHARED, EXPORTS, PREINIT, CMAKE_MODULE.0, COUNTER, ARCHIVE_ALIAS, "libtsan.so.2"] {
            assert!(first.join(name).exists(), "{name}");
        }
    }
}
