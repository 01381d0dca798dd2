//! Where things are, and cargo as it was called.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// For builds that are made once: what would make the next one faster only takes space, gigabytes of it. One value for all of
/// them, since cargo compiles again what was built with another.
pub const INCREMENTAL: (&str, &str) = ("CARGO_INCREMENTAL", "0");

pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Set for us by `cargo run`; they would make cargo rebuild crates that read them.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" || name == "CARGO_MANIFEST_PATH" {
            command.env_remove(&name);
        }
    }
    command
}

/// The folder in which cargo builds.
pub fn target() -> Result<PathBuf> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed");
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder))
}

/// Builds the tool, optimised, and says where it is.
pub fn build_tool() -> Result<PathBuf> {
    let status = cargo().args(["build", "--quiet", "--release", "--package", "rashomon-cli"]).status();
    if !status.context("cannot start cargo")?.success() {
        bail!("the tool does not build");
    }
    let tool = target()?.join("release").join("rashomon");
    if !tool.is_file() {
        bail!("cargo built no {}", tool.display());
    }
    Ok(tool)
}
