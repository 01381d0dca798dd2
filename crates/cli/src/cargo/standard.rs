//! Rust's standard library with instrumentation, made without its sources.
//!
//! The library that comes with a toolchain is not instrumented: what its compiled parts do with atomics (once cells, channels,
//! parking, the lock of standard output) would be missing in a recording, and with it the order that this gives to the program's
//! accesses. The official toolchains ship two things that cure this:
//!
//! - each object of the library holds, in section `.llvmbc`, the LLVM bitcode that it was made from (for link-time optimisation);
//! - `rust-lld`, a linker that compiles bitcode, with the very LLVM of the compiler.
//!
//! So every object is made again: the linker gets the bitcode, with the instrumentation pass in the place of the optimisations
//! of link time (`forceattrs,function(tsan)`, every function being marked `sanitize_thread`), and is asked for a relocatable
//! object (`-r`). The result is a folder that `rustc --sysroot` takes: the library's metadata, and so every crate's idea of it,
//! is the same file as before. This takes some seconds, once per toolchain, and is kept beside the runtime.
//!
//! Not instrumented: `compiler_builtins` (what the hooks themselves are made of) and the unwinder and its symbolizer.
//! Limit: toolchains without bitcode or `rust-lld` (those of some distributions); [`super::toolchain`] says what happens then.

use crate::runtime;
use anyhow::{Context as _, Result, bail};
use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use object::read::archive::ArchiveFile;
use object::{Object as _, ObjectSection as _};
use std::ffi::OsStr;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose code may touch what threads share.
const INSTRUMENTED: [&str; 7] = ["core", "alloc", "std", "std_detect", "hashbrown", "memchr", "test"];
/// Those without which the result is of no use.
const NEEDED: [&str; 3] = ["core", "alloc", "std"];
const BITCODE: &str = ".llvmbc";
/// Changes with what is done here, so that folders of other versions are not taken for ours.
const SCHEME: &str = "2";

/// What the library is made from.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The toolchain's folder.
    pub sysroot: &'a Path,
    pub triple: &'a str,
    /// Everything that `rustc -vV` says: names the compiler.
    pub version: &'a str,
}

impl Source<'_> {
    fn below(&self, sysroot: &Path) -> PathBuf {
        sysroot.join("lib").join("rustlib").join(self.triple)
    }

    fn libraries(&self) -> Result<Vec<PathBuf>> {
        let folder = self.below(self.sysroot).join("lib");
        let listed = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut files = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.sort();
        Ok(files)
    }

    fn linker(&self) -> PathBuf {
        self.below(self.sysroot).join("bin").join("rust-lld")
    }

    /// Of the toolchain and of how its library is treated.
    fn key(&self, libraries: &[PathBuf]) -> Result<String> {
        let mut text = format!("{SCHEME}\n{}\n{}\n{}\n", self.version, self.sysroot.display(), INSTRUMENTED.join(" "));
        for path in libraries {
            let size = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?.len();
            text.push_str(&format!("{} {size}\n", path.display()));
        }
        Ok(runtime::short_hash(text.as_bytes()))
    }
}

/// The folder for `--sysroot`, made now if it is not there. `say` is called before that takes its time.
pub fn sysroot(source: &Source<'_>, say: impl FnOnce()) -> Result<PathBuf> {
    let linker = source.linker();
    if !linker.is_file() {
        bail!("the toolchain has no rust-lld");
    }
    let libraries = source.libraries()?;
    let name = format!("rust-std-{}", source.key(&libraries)?);
    runtime::cached(&name, |folder| {
        say();
        make(source, &linker, &libraries, folder)
    })
}

fn make(source: &Source<'_>, linker: &Path, libraries: &[PathBuf], folder: &Path) -> Result<()> {
    let target = source.below(folder);
    let (to, scratch) = (target.join("lib"), folder.join("scratch"));
    fs::create_dir_all(&to)?;
    fs::create_dir_all(&scratch)?;
    let tools = source.below(source.sysroot).join("bin");
    symlink(&tools, target.join("bin"))?;
    let mut missing: Vec<&str> = NEEDED.to_vec();
    for path in libraries {
        let Some(name) = path.file_name() else { continue };
        match crate_of(name).filter(|name| INSTRUMENTED.contains(name)) {
            Some(crate_name) => {
                let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
                let (archive, replaced) =
                    instrumented(&bytes, linker, &scratch).with_context(|| format!("cannot instrument {}", path.display()))?;
                if replaced > 0 {
                    missing.retain(|needed| *needed != crate_name);
                }
                fs::write(to.join(name), archive)?;
            }
            None => symlink(path, to.join(name))?,
        }
    }
    fs::remove_dir_all(&scratch)?;
    if !missing.is_empty() {
        bail!("no bitcode in the toolchain's {}", missing.join(", "));
    }
    Ok(())
}

/// `core` of `libcore-0123456789abcdef.rlib`.
fn crate_of(file: &OsStr) -> Option<&str> {
    file.to_str()?.strip_prefix("lib")?.strip_suffix(".rlib")?.rsplit_once('-').map(|(name, _)| name)
}

/// The archive with every object that holds bitcode made again, and how many those are.
fn instrumented(archive: &[u8], linker: &Path, scratch: &Path) -> Result<(Vec<u8>, usize)> {
    let file = ArchiveFile::parse(archive)?;
    let mut members = Vec::new();
    let mut replaced = 0;
    for member in file.members() {
        let member = member?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let data = member.data(archive)?;
        let content = match bitcode(data) {
            Some(code) => {
                replaced += 1;
                compile(code, linker, scratch).with_context(|| name.clone())?
            }
            None => data.to_vec(),
        };
        members.push(NewArchiveMember::new(content, &DEFAULT_OBJECT_READER, name));
    }
    let mut out = Cursor::new(Vec::new());
    write_archive_to_stream(&mut out, &members, ArchiveKind::Gnu, false, None)?;
    Ok((out.into_inner(), replaced))
}

/// Of an object; `None`: no object, or one without.
fn bitcode(member: &[u8]) -> Option<&[u8]> {
    let file = object::File::parse(member).ok()?;
    let code = file.section_by_name(BITCODE)?.data().ok()?;
    (!code.is_empty()).then_some(code)
}

/// Bitcode to an object, instrumented on the way.
fn compile(bitcode: &[u8], linker: &Path, scratch: &Path) -> Result<Vec<u8>> {
    let (input, output) = (scratch.join("input.bc"), scratch.join("output.o"));
    fs::write(&input, bitcode)?;
    let ended = Command::new(linker)
        .args(["-flavor", "gnu", "-r", "--lto-O2", "--lto-newpm-passes=forceattrs,function(tsan)"])
        .args(["-mllvm", "-force-attribute=sanitize_thread", "-mllvm", "-tsan-instrument-read-before-write=1"])
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .with_context(|| format!("cannot execute {}", linker.display()))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        bail!("rust-lld refused the bitcode: {}", said.lines().next().unwrap_or("no reason given"));
    }
    let object = fs::read(&output)?;
    fs::remove_file(&output)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_told_by_the_names_of_their_files() {
        for (file, expected) in [
            ("libcore-120cbae4e86ec454.rlib", Some("core")),
            ("librustc_std_workspace_core-75c1307561ed9634.rlib", Some("rustc_std_workspace_core")),
            ("libcore-120cbae4e86ec454.rmeta", None),
            ("libstd-d1237ef7159db0a2.so", None),
            ("librustc-stable_rt.tsan.a", None),
        ] {
            assert_eq!(crate_of(OsStr::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn archives_without_bitcode_stay_what_they_are() {
        let mut out = Cursor::new(Vec::new());
        let member = NewArchiveMember::new(b"metadata", &DEFAULT_OBJECT_READER, "lib.rmeta".into());
        write_archive_to_stream(&mut out, &[member], ArchiveKind::Gnu, false, None).unwrap();
        let archive = out.into_inner();
        let (again, replaced) = instrumented(&archive, Path::new("none"), Path::new("none")).unwrap();
        assert_eq!((again, replaced), (archive, 0));
    }
}
