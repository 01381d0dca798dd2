//! `cargo xtask plugin`: builds the plugin for clang 19 and puts it beside the tool. Nothing else needs LLVM.

use crate::workspace;
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;

const NAME: &str = "librashomon_plugin.so";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also build the tool, and run the tests of the plugin and those of programs that it has instrumented.
    #[arg(long)]
    test: bool,
}

fn plugin(command: &str) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args([command, "--quiet", "--release", "--manifest-path", "plugin/Cargo.toml", "--target-dir"]);
    cargo
}

/// What tells the tool, and tests, which plugin to use.
pub const VARIABLE: &str = "RASHOMON_PLUGIN";

/// Builds it and puts it beside the tool: where it is then. `None`: it does not build; the build script says what is missing
/// where LLVM 19 is not there.
pub fn build() -> Result<Option<PathBuf>> {
    let target = workspace::target()?;
    let own = target.join("plugin");
    if !plugin("build").arg(&own).status().context("cannot start cargo")?.success() {
        return Ok(None);
    }
    let (built, to) = (own.join("release").join(NAME), target.join("release").join(NAME));
    std::fs::create_dir_all(target.join("release")).with_context(|| format!("cannot create {}", target.display()))?;
    std::fs::copy(&built, &to).with_context(|| format!("cannot copy {} to {}", built.display(), to.display()))?;
    Ok(Some(to))
}

pub fn run(options: &Options) -> Result<bool> {
    let Some(to) = build()? else { return Ok(false) };
    println!("{}", to.display());
    if !options.test {
        return Ok(true);
    }
    let own = workspace::target()?.join("plugin");
    if !plugin("test").arg(&own).status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    let mut tests = workspace::cargo();
    tests.args(["test", "--quiet", "--package", "rashomon-cli", "--test", "deep"]).env(VARIABLE, &to);
    Ok(tests.status().context("cannot start cargo")?.success())
}
