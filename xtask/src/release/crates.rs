//! Every crate as `cargo publish` would upload it. The runtime is a workspace of its own, outside of the tool's crate: its
//! sources go into the tool's package, where the build script finds them.

use super::{copied, emptied, files, folder, must, output_of, written};
use crate::workspace::{cargo, root};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Inside the tool's crate. Manifests there have another name, as cargo leaves out folders that hold one.
const BUNDLED: &str = "crates/cli/bundled";
const MANIFEST: &str = "Cargo.toml.bundled";
/// What the runtime consists of, and the crates of the workspace that it uses.
const OF_RUNTIME: [&str; 3] = ["runtime", "crates/abi", "crates/logic"];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The packages, dependencies not always first.
pub fn make() -> Result<Vec<PathBuf>> {
    let staged = emptied(folder()?.join("staged/crates"))?;
    for name in ["crates", "runtime", "evaluation/testkit", "Cargo.toml", "Cargo.lock"] {
        tree(&root().join(name), &staged.join(name), "Cargo.toml")?;
    }
    let manifest = staged.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    written(&manifest, with_members(&text, "\"crates/*\", \"evaluation/testkit\"")?)?;
    for entry in fs::read_dir(staged.join("crates"))? {
        let crate_folder = entry?.path();
        LICENCES.iter().try_for_each(|name| copied(&root().join(name), &crate_folder.join(name)))?;
    }
    for name in OF_RUNTIME {
        tree(&root().join(name), &staged.join(BUNDLED).join(name), MANIFEST)?;
    }
    written(&staged.join(BUNDLED).join(MANIFEST), with_members(&text, "\"crates/*\"")?)?;
    let built = folder()?.join("staged/target");
    let mut package = cargo();
    package.current_dir(&staged).args(["package", "--workspace", "--quiet", "--no-verify", "--exclude", "rashomon-testkit"]);
    must(package.arg("--target-dir").arg(&built))?;
    let finished = emptied(folder()?.join("crates"))?;
    for path in files(&built.join("package"), ".crate")? {
        copied(&path, &finished.join(path.file_name().unwrap_or_default()))?;
    }
    fs::remove_dir_all(&built).with_context(|| format!("cannot remove {}", built.display()))?;
    let packages = files(&finished, ".crate")?;
    let crates = fs::read_dir(root().join("crates"))?.count();
    if packages.len() != crates {
        bail!("{} packages of {crates} crates are in {}", packages.len(), finished.display());
    }
    Ok(packages)
}

/// The manifest of the workspace with other members.
fn with_members(text: &str, members: &str) -> Result<String> {
    let line = text.lines().find(|line| line.starts_with("members = ")).context("Cargo.toml names no members in one line")?;
    Ok(text.replacen(line, &format!("members = [{members}]"), 1))
}

/// A copy of a file or folder, without results of builds.
fn tree(from: &Path, to: &Path, manifest: &str) -> Result<()> {
    if from.is_file() {
        return copied(from, to);
    }
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_str() {
            Some("target" | "bundled" | ".rashomon") => {}
            Some("Cargo.toml") => copied(&entry.path(), &to.join(manifest))?,
            _ => tree(&entry.path(), &to.join(&name), manifest)?,
        }
    }
    Ok(())
}

/// Installs the tool from packages alone: unpacked, and taken in place of what a registry has under these names.
pub fn install(packages: &[PathBuf], scratch: &Path, prefix: &Path) -> Result<()> {
    let sources = emptied(scratch.join("sources"))?;
    let mut install = cargo();
    install.current_dir(scratch).args(["install", "--quiet", "--root"]).arg(prefix);
    for package in packages {
        // Packages have one time for all files, by which cargo would take what it built of an older package for this one's.
        let mut tar = Command::new("tar");
        must(tar.args(["--extract", "--touch", "--file"]).arg(package).arg("--directory").arg(&sources))?;
        let unpacked = sources.join(package.file_stem().unwrap_or_default());
        let name = unpacked.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.strip_suffix(&format!("-{}", super::VERSION)).unwrap_or(&name).to_owned();
        if name == "rashomon-cli" {
            install.arg("--path").arg(&unpacked);
        } else {
            install.arg("--config").arg(format!("patch.crates-io.{name}.path=\"{}\"", unpacked.display()));
        }
    }
    output_of(install.env("CARGO_TARGET_DIR", scratch.join("target"))).map(|_| ())
}
