//! A Debian package, made by Debian's own tools from a folder that looks like the system it is unpacked to.

use super::{VERSION, copied, emptied, files, folder, must, output_of, prefix, written};
use crate::workspace::{build_tool, root};
use anyhow::{Context as _, Result};
use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const CONTROL: &str = "Package: rashomon
Version: VERSION
Architecture: amd64
Maintainer: MAINTAINER
Installed-Size: SIZE
Depends: DEPENDS
Recommends: gcc, libc6-dev
Suggests: g++, gdb, lldb, cargo, cmake, bash-completion
Section: devel
Priority: optional
Description: proves data races and deadlocks by re-execution
 Rashomon records a concurrent C, C++ or Rust program once, predicts the
 data races, deadlocks and atomicity violations of other schedules, and
 executes the program again under schedules that make these happen. Each
 proof can be replayed, under gdb, too.
 .
 The package has the tool, the compiler wrappers rashomon-cc and
 rashomon-cxx, the subcommand `cargo rashomon`, manual pages, completions
 of bash, zsh and fish, a module for CMake, and a file for pkg-config. The
 runtime library that programs are linked with is inside the tool.
";

const COPYRIGHT: &str = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rashomon

Files: *
Copyright: YEAR HOLDERS
License: Expat or Apache-2.0

License: Expat
EXPAT

License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
";

pub fn make() -> Result<PathBuf> {
    let tool = build_tool()?;
    let staged = emptied(folder()?.join("staged/deb"))?;
    let system = staged.join("rashomon");
    let usr = system.join("usr");
    prefix::programs(&tool, &usr)?;
    prefix::documents(&tool, &usr)?;
    // Where zsh looks on Debian.
    let zsh = usr.join("share/zsh");
    fs::create_dir_all(zsh.join("vendor-completions"))?;
    fs::rename(zsh.join("site-functions/_rashomon"), zsh.join("vendor-completions/_rashomon"))?;
    fs::remove_dir(zsh.join("site-functions"))?;
    for program in prefix::PROGRAMS {
        must(
            Command::new("strip")
                .args(["--remove-section=.comment", "--remove-section=.note"])
                .arg(usr.join("bin").join(program)),
        )?;
    }
    packed_pages(&usr.join("share/man/man1"))?;
    let documents = usr.join("share/doc/rashomon");
    written(&documents.join("copyright"), copyright()?)?;
    written(&documents.join("changelog"), changelog()?)?;
    packed(&documents.join("changelog"))?;
    copied(&root().join("examples/listing1.c"), &documents.join("examples/listing1.c"))?;
    let depends = depends(&staged, &usr)?;
    let size = output_of(Command::new("du").args(["--summarize", "--apparent-size", "--block-size=1024"]).arg(&usr))?;
    let size = String::from_utf8_lossy(&size).split_whitespace().next().unwrap_or_default().to_owned();
    let control = CONTROL.replace("VERSION", VERSION).replace("MAINTAINER", &maintainer()).replace("SIZE", &size);
    written(&system.join("DEBIAN/control"), control.replace("DEPENDS", &depends))?;
    permissions(&system)?;
    let package = emptied(folder()?.join("deb"))?.join(format!("rashomon_{VERSION}_amd64.deb"));
    must(Command::new("dpkg-deb").args(["--root-owner-group", "-Zxz", "--build"]).arg(&system).arg(&package))?;
    fs::remove_dir_all(&staged).with_context(|| format!("cannot remove {}", staged.display()))?;
    Ok(package)
}

/// As Debian's own tools take it.
fn maintainer() -> String {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let address = set("DEBEMAIL").or_else(|| set("EMAIL")).unwrap_or_else(|| "rashomon@packages.invalid".into());
    format!("{} <{address}>", set("DEBFULLNAME").unwrap_or_else(|| "The Rashomon developers".into()))
}

/// What the programs are linked with, in the versions that they need.
fn depends(staged: &Path, usr: &Path) -> Result<String> {
    written(&staged.join("debian/control"), "Source: rashomon\n\nPackage: rashomon\nArchitecture: amd64\n")?;
    let mut ask = Command::new("dpkg-shlibdeps");
    ask.current_dir(staged).arg("-O").args(prefix::PROGRAMS.map(|program| usr.join("bin").join(program)));
    let said = output_of(&mut ask).context("dependencies are found by dpkg-shlibdeps (apt-get install dpkg-dev)")?;
    let text = String::from_utf8_lossy(&said).into_owned();
    let depends = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(depends.context("dpkg-shlibdeps named no dependency")?.to_owned())
}

fn copyright() -> Result<String> {
    let path = root().join("LICENSE-MIT");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let holders = text.lines().find_map(|line| line.strip_prefix("Copyright (c) ")).unwrap_or("the Rashomon developers");
    let permission = text.split_once("Permission is").map_or("", |(_, rest)| rest);
    let lines = format!("Permission is{permission}");
    let indented: Vec<String> =
        lines.trim_end().lines().map(|line| if line.is_empty() { " .".into() } else { format!(" {line}") }).collect();
    let day = day()?;
    let year = day.split(' ').nth(3).context("the day of the last commit has no year")?;
    Ok(COPYRIGHT.replace("YEAR", year).replace("HOLDERS", holders).replace("EXPAT", &indented.join("\n")))
}

/// Of the last commit, or of `SOURCE_DATE_EPOCH`.
fn day() -> Result<String> {
    let day = match env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => output_of(Command::new("date").args(["-u", "-R", "-d", &format!("@{seconds}")]))?,
        Err(_) => output_of(Command::new("git").current_dir(root()).args(["log", "-1", "--format=%aD"]))?,
    };
    Ok(String::from_utf8_lossy(&day).trim().to_owned())
}

/// In Debian's form.
fn changelog() -> Result<String> {
    let (day, by) = (day()?, maintainer());
    Ok(format!(
        "rashomon ({VERSION}) unstable; urgency=medium\n\n  * What has changed: CHANGELOG.md of the sources.\n\n -- {by}  {day}\n"
    ))
}

/// The same bytes each time: without name and time.
fn packed(path: &Path) -> Result<()> {
    must(Command::new("gzip").args(["-9", "-n", "-f"]).arg(path))
}

fn packed_pages(folder: &Path) -> Result<()> {
    for path in files(folder, ".1")? {
        if let Ok(to) = fs::read_link(&path) {
            fs::remove_file(&path)?;
            symlink(format!("{}.gz", to.display()), path.with_extension("1.gz"))?;
        }
    }
    files(folder, ".1")?.iter().try_for_each(|path| packed(path))
}

/// Whatever the umask is.
fn permissions(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.symlink_metadata()?.file_type();
        if kind.is_dir() {
            permissions(&path)?;
        } else if kind.is_file() {
            let mode = if path.parent().is_some_and(|parent| parent.ends_with("bin")) { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}
