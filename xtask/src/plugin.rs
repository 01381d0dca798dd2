//! `cargo xtask plugin`: builds the plugin for clang 19 and puts it beside the tool. Nothing else needs LLVM.

use anyhow::{Context as _, Result};
use std::process::Command;
use xtask::workspace;

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

/// The build script says what is missing where LLVM 19 is not there.
pub fn run(options: &Options) -> Result<bool> {
    let target = workspace::target()?;
    let own = target.join("plugin");
    if !plugin("build").arg(&own).status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    let (built, to) = (own.join("release").join(NAME), target.join("release").join(NAME));
    std::fs::create_dir_all(target.join("release")).with_context(|| format!("cannot create {}", target.display()))?;
    std::fs::copy(&built, &to).with_context(|| format!("cannot copy {} to {}", built.display(), to.display()))?;
    println!("{}", to.display());
    if !options.test {
        return Ok(true);
    }
    if !plugin("test").arg(&own).status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    let mut tests = workspace::cargo();
    tests.args(["test", "--quiet", "--package", "rashomon-cli", "--test", "deep"]).env("RASHOMON_PLUGIN", &to);
    Ok(tests.status().context("cannot start cargo")?.success())
}
