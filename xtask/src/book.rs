//! `cargo xtask book`: what of the book is made from the code, and the book itself. `cargo xtask install-docs`: manual pages,
//! completions of shells, the header, what CMake and pkg-config find, and the schemas of the JSON format.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use xtask::release::prefix::documents;
use xtask::workspace::{build_tool, cargo, root, target};

/// The reference of the command line, below the workspace.
const REFERENCE: &str = "docs/reference/cli.md";

/// What makes it HTML.
const PROGRAM: &str = "rashomon-book";

fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", output.status);
    }
    Ok(output.stdout)
}

#[derive(Debug, Args)]
pub struct Options {
    /// Only build the book as HTML, from the chapters as they are.
    #[arg(long)]
    html: bool,
}

/// Writes the generated chapters; then the book as HTML, its links checked.
pub fn run(options: &Options) -> Result<bool> {
    if options.html {
        return build();
    }
    let tool = build_tool()?;
    let reference = output_of(Command::new(&tool).args(["--quiet", "reference"]))?;
    let path = root().join(REFERENCE);
    fs::write(&path, reference).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {REFERENCE}");
    build()
}

/// The book as HTML.
fn build() -> Result<bool> {
    // Of the whole workspace, as the tests are built: with the features that its package alone needs, most would be built again.
    let built = cargo().args(["build", "--quiet", "--workspace", "--bin", PROGRAM]).status().context("cannot start cargo")?;
    if !built.success() {
        bail!("the program that makes the book does not build");
    }
    let target = target()?;
    let mut command = Command::new(target.join("debug").join(PROGRAM));
    command.arg(root().join("docs")).arg(target.join("book"));
    Ok(command.status().with_context(|| format!("cannot start {PROGRAM}"))?.success())
}

#[derive(Debug, Args)]
pub struct InstallOptions {
    /// Below it are share/man, share/bash-completion, share/zsh, share/fish, share/cmake, share/pkgconfig, share/rashomon and
    /// include. Default: ~/.local.
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

pub fn install(options: &InstallOptions) -> Result<bool> {
    let prefix = match &options.prefix {
        Some(prefix) => prefix.clone(),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set: name a --prefix")?).join(".local"),
    };
    for line in documents(&build_tool()?, &prefix)? {
        println!("{line}");
    }
    Ok(true)
}
