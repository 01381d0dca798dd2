//! A build of the runtime with its assertions and overflow checks on, laid out as the tool unpacks its own.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::workspace::{INCREMENTAL, cargo, root, target};

const PROFILE: &str = "assertions";
const LIBRARIES: [&str; 2] = ["librashomon_runtime.a", "librashomon_runtime.so"];

/// What only the panic handler of that build says.
const SAYS: &[u8] = b"an assertion failed at ";

/// What tells the tool to use this runtime instead of its own.
pub const VARIABLE: &str = "RASHOMON_RUNTIME_DIR";

/// Builds it: the folder for [`VARIABLE`].
pub fn runtime() -> Result<PathBuf> {
    let built = target()?.join("runtime");
    let mut build = cargo();
    build.current_dir(root().join("runtime")).args(["build", "--quiet", "--profile", PROFILE, "--target-dir"]).arg(&built);
    // What the assembler remarks on each entry point would bury the rest.
    let output = build.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the runtime does not build with its assertions on\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let folder = built.join("with-assertions");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let tool = tool()?;
    // Copied as it is: names under which linkers and the loader look for the libraries are symbolic links beside them.
    let copied = Command::new("cp").arg("-a").arg(unpacked(&tool)?).arg(&folder).status();
    if !copied.context("cannot start cp")?.success() {
        bail!("cannot copy the runtime to {}", folder.display());
    }
    for name in LIBRARIES {
        put(&built.join(PROFILE).join(name), &folder.join(name))?;
    }
    check_that_it_is_linked(&tool, &folder)?;
    Ok(folder)
}

/// The tool, built for the tests.
fn tool() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["test", "--quiet", "--workspace", "--test", "programs", "--no-run"]).env(INCREMENTAL.0, INCREMENTAL.1);
    if !build.status().context("cannot start cargo")?.success() {
        bail!("the tests do not build");
    }
    Ok(target()?.join("debug").join("rashomon"))
}

/// The folder of the runtime that the tool carries.
fn unpacked(tool: &Path) -> Result<PathBuf> {
    let output = Command::new(tool).arg("runtime-path").env_remove(VARIABLE).stderr(Stdio::inherit()).output();
    let output = output.context("cannot start the tool")?;
    if !output.status.success() {
        bail!("rashomon runtime-path failed");
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout).context("the runtime's folder has an odd name")?.trim()))
}

/// A suite that runs with the ordinary runtime would pass, and show nothing.
fn check_that_it_is_linked(tool: &Path, folder: &Path) -> Result<()> {
    let program = folder.join("listing1");
    let mut compile = Command::new(tool);
    compile.args(["cc", "-pthread", "-o"]).arg(&program).arg(root().join("examples/listing1.c")).env(VARIABLE, folder);
    if !compile.status().context("cannot start the tool")?.success() {
        bail!("no program can be linked with the runtime in {}", folder.display());
    }
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    if !bytes.windows(SAYS.len()).any(|window| window == SAYS) {
        bail!("{} has another runtime inside than that with assertions", program.display());
    }
    Ok(())
}

fn put(from: &Path, to: &Path) -> Result<()> {
    fs::remove_file(to).and_then(|()| fs::copy(from, to)).with_context(|| format!("cannot replace {}", to.display()))?;
    Ok(())
}
