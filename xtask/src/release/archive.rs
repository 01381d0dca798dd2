//! An archive to be unpacked anywhere: its tool needs no library of the system, whatever libc that has.

use super::{VERSION, emptied, folder, must, prefix};
use crate::workspace::{INCREMENTAL, cargo};
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Named, so that what is executed while it is built (build scripts, macros) is linked as usual.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub fn make() -> Result<PathBuf> {
    let tool = build()?;
    let staged = emptied(folder()?.join("staged/archive"))?;
    let name = format!("rashomon-{VERSION}-x86_64-linux");
    let place = staged.join(&name);
    prefix::programs(&tool, &place)?;
    prefix::PROGRAMS.iter().try_for_each(|name| must(Command::new("strip").arg(place.join("bin").join(name))))?;
    prefix::documents(&tool, &place)?;
    let archive = emptied(folder()?.join("archive"))?.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    must(tar.args(["--owner=0", "--group=0", "-czf"]).arg(&archive).arg("-C").arg(&staged).arg(&name))?;
    Ok(archive)
}

/// The programs, with glibc's archives in them. Beside the usual build, which would be made again for it.
fn build() -> Result<PathBuf> {
    let target = folder()?.join("build-static");
    let mut build = cargo();
    build.env("RUSTFLAGS", "-C target-feature=+crt-static").envs([INCREMENTAL]);
    build.args(["build", "--quiet", "--release", "--package", "rashomon-cli", "--target", TARGET, "--target-dir"]).arg(&target);
    if !build.status().context("cannot start cargo")?.success() {
        bail!("the tool does not build with glibc's archives, which are in Debian's libc6-dev");
    }
    Ok(target.join(TARGET).join("release/rashomon"))
}
