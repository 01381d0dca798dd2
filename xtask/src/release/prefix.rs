//! What an installation has below its prefix, such as `/usr` or `~/.local`.

use super::{copied, files, output_of, written};
use crate::workspace::root;
use anyhow::{Context as _, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

pub const PROGRAMS: [&str; 4] = ["rashomon", "cargo-rashomon", "rashomon-cc", "rashomon-cxx"];

/// Pages of programs that are commands of the tool under other names.
const OTHER_NAMES: [(&str, &str); 2] = [("cargo-rashomon", "rashomon-cargo"), ("rashomon-cxx", "rashomon-c++")];

/// What `find_package(Rashomon)` finds.
const CMAKE_MODULE: &str = "crates/cli/cmake/RashomonConfig.cmake";
const HEADER: &str = "include/rashomon.h";
/// Where the published schemas of the JSON format are.
const SCHEMAS: &str = "docs/reference";

/// For pkg-config. It names the compilers, which know the rest; seen from itself, so that the whole may be moved.
const PKG_CONFIG: &str = "prefix=${pcfiledir}/../..
cc=${prefix}/bin/rashomon-cc
cxx=${prefix}/bin/rashomon-cxx

Name: rashomon
Description: Records a concurrent program, predicts its races, and proves them by re-execution
Version: VERSION
Cflags: -I${prefix}/include
";

/// The programs that were built beside the tool.
pub fn programs(tool: &Path, prefix: &Path) -> Result<()> {
    PROGRAMS.iter().try_for_each(|name| copied(&tool.with_file_name(name), &prefix.join("bin").join(name)))
}

/// Manual pages, completions of shells, what build systems find, and the schemas. Says where each is.
pub fn documents(tool: &Path, prefix: &Path) -> Result<Vec<String>> {
    let mut said = Vec::new();
    let share = prefix.join("share");
    let pages = share.join("man/man1");
    output_of(Command::new(tool).args(["--quiet", "man", "--output"]).arg(&pages))?;
    for (name, page) in OTHER_NAMES {
        let link = pages.join(format!("{name}.1"));
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).with_context(|| format!("cannot replace {}", link.display()))?;
        }
        symlink(format!("{page}.1"), &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    said.push(format!("manual pages: {}", pages.display()));
    for (shell, place) in [
        ("bash", "bash-completion/completions/rashomon"),
        ("zsh", "zsh/site-functions/_rashomon"),
        ("fish", "fish/vendor_completions.d/rashomon.fish"),
    ] {
        let path = share.join(place);
        written(&path, output_of(Command::new(tool).args(["--quiet", "completions", shell]))?)?;
        said.push(format!("completions of {shell}: {}", path.display()));
    }
    let schemas = share.join("rashomon/schema");
    for path in files(&root().join(SCHEMAS), ".schema.json")? {
        copied(&path, &schemas.join(path.file_name().unwrap_or_default()))?;
    }
    said.push(format!("JSON schemas: {}", schemas.display()));
    let module = share.join("cmake/Rashomon/RashomonConfig.cmake");
    copied(&root().join(CMAKE_MODULE), &module)?;
    said.push(format!("module of CMake: {}", module.display()));
    let header = prefix.join("include/rashomon.h");
    copied(&root().join(HEADER), &header)?;
    said.push(format!("header: {}", header.display()));
    let package = share.join("pkgconfig/rashomon.pc");
    written(&package, PKG_CONFIG.replace("VERSION", super::VERSION))?;
    said.push(format!("file of pkg-config: {}", package.display()));
    Ok(said)
}
