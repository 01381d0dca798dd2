//! What others install from: a wheel, a Debian package, crates, an archive. `cargo xtask package` makes them below
//! `target/package`.

pub mod archive;
pub mod crates;
pub mod debian;
pub mod prefix;
pub mod wheel;

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Of everything that is packaged; the workspace's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where packages are made.
pub fn folder() -> Result<PathBuf> {
    Ok(crate::workspace::target()?.join("package"))
}

/// An empty folder at a place where something may have been left.
pub fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    made(&folder)?;
    Ok(folder)
}

pub fn made(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

pub fn copied(from: &Path, to: &Path) -> Result<()> {
    made(to.parent().unwrap_or(Path::new("/")))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display())).map(|_| ())
}

pub fn written(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    made(path.parent().unwrap_or(Path::new("/")))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// What a command prints. It has to succeed.
pub fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

pub fn must(command: &mut Command) -> Result<()> {
    output_of(command).map(|_| ())
}

/// Files of a folder whose names end so, sorted.
pub fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.is_file() && path.to_string_lossy().ends_with(end));
    paths.sort();
    Ok(paths)
}
