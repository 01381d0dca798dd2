//! A wheel with the programs, and what belongs below a prefix, for PyPI: made by maturin, which also says on which systems the
//! programs run; then without their debug information.

use super::{VERSION, copied, emptied, files, folder, must, prefix, written};
use crate::workspace::{build_tool, root, target};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// From PyPI, into a virtual environment below `target`.
const MAKERS: [&str; 2] = ["maturin==1.16.0", "wheel==0.45.1"];

const PROJECT: &str = r#"[build-system]
requires = ["maturin>=1.9,<2"]
build-backend = "maturin"

[project]
name = "rashomon"
version = "VERSION"
description = "Records a concurrent program once, predicts its data races, and proves them by re-execution"
readme = "README.md"
license = "MIT OR Apache-2.0"
requires-python = ">=3.8"
keywords = ["data race", "deadlock", "concurrency", "ThreadSanitizer"]
classifiers = [
    "Environment :: Console",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C",
    "Programming Language :: C++",
    "Programming Language :: Rust",
    "Topic :: Software Development :: Debuggers",
    "Topic :: Software Development :: Testing",
]

[tool.maturin]
bindings = "bin"
manifest-path = "MANIFEST"
data = "rashomon.data"
"#;

pub fn make() -> Result<PathBuf> {
    let tool = build_tool()?;
    let staged = emptied(folder()?.join("staged/wheel"))?;
    let makers = folder()?.join("makers");
    if !makers.join("bin/python").exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(&makers))
            .context("a wheel needs Python's venv (Debian: apt-get install python3-venv)")?;
    }
    must(Command::new(makers.join("bin/pip")).args(["install", "--quiet", "--disable-pip-version-check"]).args(MAKERS))
        .context("a wheel needs maturin and wheel from PyPI")?;
    let manifest = root().join("crates/cli/Cargo.toml");
    let project = PROJECT.replace("VERSION", VERSION).replace("MANIFEST", &manifest.display().to_string());
    written(&staged.join("pyproject.toml"), project)?;
    copied(&root().join("README.md"), &staged.join("README.md"))?;
    prefix::documents(&tool, &staged.join("rashomon.data/data"))?;
    let built = staged.join("built");
    let mut maturin = Command::new(makers.join("bin/maturin"));
    maturin.current_dir(&staged).args(["build", "--release", "--quiet", "--out"]).arg(&built);
    must(maturin.arg("--target-dir").arg(target()?).env("MATURIN_NO_INSTALL_RUST", "1"))?;
    let [wheel] = &files(&built, ".whl")?[..] else { bail!("maturin made no wheel, or several, in {}", built.display()) };
    // Debug information is nine tenths of the programs.
    let unpacked = staged.join("unpacked");
    must(Command::new(makers.join("bin/wheel")).args(["unpack", "--dest"]).arg(&unpacked).arg(wheel))?;
    let content = unpacked.join(format!("rashomon-{VERSION}"));
    let scripts = content.join(format!("rashomon-{VERSION}.data/scripts"));
    for program in prefix::PROGRAMS {
        must(Command::new("strip").arg(scripts.join(program)))?;
    }
    let finished = emptied(folder()?.join("wheel"))?;
    must(Command::new(makers.join("bin/wheel")).args(["pack", "--dest-dir"]).arg(&finished).arg(&content))?;
    let [wheel] = &files(&finished, ".whl")?[..] else { bail!("no wheel in {}", finished.display()) };
    fs::remove_dir_all(&staged).with_context(|| format!("cannot remove {}", staged.display()))?;
    Ok(wheel.clone())
}
