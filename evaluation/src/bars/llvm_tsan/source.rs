//! The tests themselves: a part of Debian's source package of LLVM, unpacked once into the folder of builds and kept there.

use crate::common::compile::succeed;
use crate::common::debian;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "llvm-toolchain-19";
/// What the tests consist of and include.
const PARTS: [&str; 2] = ["*/compiler-rt/test/tsan", "*/compiler-rt/test/sanitizer_common"];

/// `compiler-rt/test/tsan`, fetched if it is not below `cache`.
pub fn provide(cache: &Path) -> Result<PathBuf> {
    let unpacked = cache.join("source");
    if !unpacked.is_dir() {
        eprintln!("fetching the tests (source package {PACKAGE})");
        let fetching = tempfile::Builder::new().prefix("fetching-").tempdir_in(cache)?;
        debian::download(PACKAGE, debian::Part::Upstream, fetching.path())?;
        let archive = debian::file_with_extension(fetching.path(), "xz")?;
        let folder = fetching.path().join("source");
        fs::create_dir(&folder)?;
        let mut tar = Command::new("tar");
        tar.arg("-xJf").arg(&archive).arg("-C").arg(&folder).args(["--strip-components=1", "--wildcards"]).args(PARTS);
        succeed(&mut tar)?;
        // Under its name only when it is complete.
        fs::rename(&folder, &unpacked).with_context(|| format!("cannot rename to {}", unpacked.display()))?;
    }
    fs::canonicalize(unpacked.join("compiler-rt/test/tsan")).context("the source package holds no compiler-rt/test/tsan")
}
