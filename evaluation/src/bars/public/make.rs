//! Programs that only their makefile can build: `cc` and `c++` there are ours.
//!
//! The makefile's folder is copied, and everything beside and above it, up to the corpus's folder, is linked to, so that names
//! like `../../rules.mk` mean what they did. What calls the compiler by its name calls a script of one line.

use super::corpus::Program;
use super::run::Tools;
use rashomon_event::quoted;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Names of a makefile, as make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Folders nested deeper are not copied.
const DEPTH: usize = 8;
/// Programs that need a makefile are of a time in which executables had fixed addresses, and some keep pointers in 32 bits.
const OF_THEIR_TIME: [&str; 4] = ["-g", "-w", "-fno-pie", "-no-pie"];
const C: [&str; 3] = ["cc", "gcc", "clang"];
const CXX: [&str; 3] = ["c++", "g++", "clang++"];
const ELF: &[u8] = b"\x7fELF";

/// What the compiler of a makefile is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    Sanitizer,
    Ours,
    Native,
}

pub fn has_makefile(folder: &Path) -> bool {
    MAKEFILES.iter().any(|name| folder.join(name).is_file())
}

/// The one program that `make` makes in a folder of the corpus's; else the first line of a complaint.
pub fn make(tools: &Tools, program: &Program, folder: &Path, place: &Path, compiler: Compiler) -> Result<PathBuf, String> {
    let told = |error: io::Error| format!("cannot copy {}: {error}", folder.display());
    let copy = copied(&tools.folder, folder, &place.join("tree")).map_err(told)?;
    let compilers = place.join("compilers");
    scripts(tools, program, compiler, &compilers).map_err(told)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([compilers].into_iter().chain(env::split_paths(&path))).map_err(|error| error.to_string())?;
    let mut make = Command::new("make");
    let output = make.arg("--always-make").env("PATH", path).current_dir(&copy).stdin(Stdio::null()).output().map_err(told)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let telling = text.lines().find(|line| ["error", "cannot", "No rule"].iter().any(|word| line.contains(word)));
        return Err(telling.or(text.lines().next()).unwrap_or("make failed").to_owned());
    }
    let made = programs(&copy, folder).map_err(told)?;
    match (&program.binary, made.as_slice()) {
        (Some(name), made) => made.iter().find(|made| made.ends_with(name)).cloned().ok_or(format!("make made no {name}")),
        (None, [made]) => Ok(made.clone()),
        (None, []) => Err("make made no program".to_owned()),
        (None, made) => Err(format!("make made {} programs: corpus.toml has to name one", made.len())),
    }
}

/// Executables of a folder that are not in the original one.
fn programs(copy: &Path, original: &Path) -> io::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for entry in fs::read_dir(copy)? {
        let entry = entry?;
        let path = entry.path();
        let is_program = entry.file_type()?.is_file() && entry.metadata()?.permissions().mode() & 0o111 != 0;
        if is_program && !original.join(entry.file_name()).exists() && fs::read(&path)?.starts_with(ELF) {
            made.push(path);
        }
    }
    made.sort();
    Ok(made)
}

/// A copy of `folder`, which lies in `corpus`, at the same place of a tree whose other branches are links.
fn copied(corpus: &Path, folder: &Path, tree: &Path) -> io::Result<PathBuf> {
    let inside = folder.strip_prefix(corpus).map_err(io::Error::other)?;
    let (mut original, mut place) = (corpus.to_owned(), tree.to_owned());
    for part in inside {
        fs::create_dir_all(&place)?;
        for entry in fs::read_dir(&original)? {
            let entry = entry?;
            if entry.file_name() != part {
                symlink(entry.path(), place.join(entry.file_name()))?;
            }
        }
        (original, place) = (original.join(part), place.join(part));
    }
    copy(&original, &place, DEPTH)?;
    Ok(place)
}

fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match path.metadata() {
            Ok(it) if it.is_dir() && depth > 0 && entry.file_name() != ".git" => copy(&path, &place, depth - 1)?,
            Ok(it) if it.is_file() => drop(fs::copy(&path, &place)?),
            _ => {}
        }
    }
    Ok(())
}

/// What stands for the compilers in a makefile.
fn scripts(tools: &Tools, program: &Program, compiler: Compiler, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = env::var_os("PATH").unwrap_or_default();
    for (names, real, wrapper, variable) in [(C, "gcc", "cc", "RASHOMON_CC"), (CXX, "g++", "c++", "RASHOMON_CXX")] {
        let tool = tools.tool.display().to_string();
        let (command, further) = match compiler {
            Compiler::Sanitizer => (vec![real], "-fsanitize=thread"),
            // Debian 12's Valgrind gives up on some of what compilers write of DWARF 5.
            Compiler::Native => (vec![real], "-gdwarf-4"),
            Compiler::Ours => (vec![tool.as_str(), wrapper], "-g"),
        };
        let words = command.into_iter().chain(OF_THEIR_TIME).chain([further]).chain(program.flags.iter().map(String::as_str));
        let mut script = OsString::from("#!/bin/sh\nPATH=");
        script.push(quoted(&path));
        script.push(format!(" {variable}={real} exec"));
        for word in words {
            script.push(" ");
            script.push(quoted(word.as_ref()));
        }
        script.push(" \"$@\"\n");
        for name in names {
            let file = folder.join(name);
            fs::write(&file, script.as_bytes())?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_above_the_copy_mean_what_they_did() {
        let corpus = tempfile::tempdir().unwrap();
        let program = corpus.path().join("a/b/program");
        fs::create_dir_all(program.join("parts")).unwrap();
        fs::write(corpus.path().join("rules"), "rules").unwrap();
        fs::write(corpus.path().join("a/b/beside"), "beside").unwrap();
        fs::write(program.join("parts/one"), "one").unwrap();
        let place = tempfile::tempdir().unwrap();
        let copy = copied(corpus.path(), &program, &place.path().join("tree")).unwrap();
        assert_eq!(fs::read_to_string(copy.join("../../../rules")).unwrap(), "rules");
        assert_eq!(fs::read_to_string(copy.join("../beside")).unwrap(), "beside");
        fs::write(copy.join("parts/one"), "changed").unwrap();
        assert_eq!(fs::read_to_string(program.join("parts/one")).unwrap(), "one");
        assert!(copied(place.path(), &program, &place.path().join("other")).is_err());
    }
}
