//! The Rust toolchain that a build is going to use, and the standard library that instrumented programs get from it.
//!
//! In the order in which they are tried ([`StandardChoice::Auto`]):
//!
//! | standard library | where it comes from |
//! |---|---|
//! | the sanitizer target's | `x86_64-unknown-linux-gnutsan`, where the toolchain knows it and has its component |
//! | made again | the toolchain's own bitcode, see [`super::standard`] |
//! | built from source | cargo's `-Zbuild-std`, where the component `rust-src` is there |
//! | as it is | not instrumented: nothing is predicted and nothing proven `unordered` then, as it may have ordered anything |

use super::standard;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StandardChoice {
    /// The first of the others that works.
    Auto,
    /// Of the toolchain's ThreadSanitizer target.
    Target,
    /// Made again from the toolchain's bitcode.
    Bitcode,
    /// Built from source by cargo (needs the component rust-src).
    Source,
    /// As it is, not instrumented.
    Plain,
}

/// The standard library of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standard {
    Target,
    Bitcode { sysroot: PathBuf },
    Source,
    Plain { reason: String },
}

#[derive(Clone, Debug)]
pub struct Toolchain {
    rustc: OsString,
    /// All that `rustc -vV` says.
    pub version: String,
    pub host: String,
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// The one that cargo takes: `RUSTC`, or `rustc` as the working directory has it.
    pub fn find() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").filter(|value| !value.is_empty()).unwrap_or_else(|| "rustc".into());
        let version = ask(&rustc, &["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?.to_owned();
        let sysroot = PathBuf::from(ask(&rustc, &["--print", "sysroot"])?.trim());
        Ok(Self { rustc, version, host, sysroot })
    }

    /// The target whose standard library is built with the sanitizer.
    fn sanitizer_target(&self) -> Option<String> {
        let triple = format!("{}tsan", self.host);
        has_standard_library(&self.sysroot, &triple).then_some(triple)
    }

    fn has_sources(&self) -> bool {
        self.sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file()
    }

    /// `say`: called before something that takes a while.
    pub fn standard(&self, choice: StandardChoice, say: impl FnOnce()) -> Result<Standard> {
        let bitcode = || {
            let source = standard::Source { sysroot: &self.sysroot, triple: &self.host, version: &self.version };
            standard::sysroot(&source, say).map(|sysroot| Standard::Bitcode { sysroot })
        };
        match choice {
            StandardChoice::Target if self.sanitizer_target().is_some() => Ok(Standard::Target),
            StandardChoice::Target => bail!("this toolchain has no standard library for {}tsan", self.host),
            StandardChoice::Bitcode => bitcode(),
            StandardChoice::Source if self.has_sources() => Ok(Standard::Source),
            StandardChoice::Source => bail!("this toolchain has no sources: add its component rust-src"),
            StandardChoice::Plain => Ok(Standard::Plain { reason: "asked for".into() }),
            StandardChoice::Auto if self.sanitizer_target().is_some() => Ok(Standard::Target),
            StandardChoice::Auto => bitcode().or_else(|error| {
                Ok(if self.has_sources() { Standard::Source } else { Standard::Plain { reason: format!("{error:#}") } })
            }),
        }
    }

    /// The target that is built for.
    pub fn target(&self, standard: &Standard) -> String {
        match (standard, self.sanitizer_target()) {
            (Standard::Target, Some(triple)) => triple,
            _ => self.host.clone(),
        }
    }

    /// What the compiler needs to instrument, found out by asking it: options have come and gone.
    pub fn flags(&self, standard: &Standard) -> Result<Vec<String>> {
        let mut flags: Vec<String> = match standard {
            Standard::Bitcode { sysroot } => vec![format!("--sysroot={}", utf8(sysroot)?)],
            _ => Vec::new(),
        };
        let triple = self.target(standard);
        // The last: reads are told also where a write of the same place follows; predictions rest on what was read.
        let instrument =
            ["-Zsanitizer=thread", "-Zexternal-clangrt", "-Cllvm-args=-tsan-instrument-read-before-write=1"].map(str::to_owned);
        // Without it a compiler that knows of the mix refuses the library that says nothing of its sanitizer.
        for further in [&["-Cunsafe-allow-abi-mismatch=sanitizer".to_owned()][..], &[]] {
            let all: Vec<String> = flags.iter().chain(&instrument).chain(further).cloned().collect();
            if self.accepts(&all, &triple) {
                flags = all;
                return Ok(flags);
            }
        }
        bail!("this compiler cannot instrument programs for {triple}; it is\n{}", self.version.trim())
    }

    fn accepts(&self, flags: &[String], triple: &str) -> bool {
        let mut command = Command::new(&self.rustc);
        command.args(flags).args(["--target", triple, "--print", "cfg"]).env("RUSTC_BOOTSTRAP", "1");
        command.output().is_ok_and(|output| output.status.success())
    }

    /// Whether unstable features are there without our having to ask for them.
    pub fn is_unstable(&self) -> bool {
        let release = self.version.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or_default();
        release.contains("nightly") || release.contains("dev") || std::env::var_os("RUSTC_BOOTSTRAP").is_some()
    }
}

fn has_standard_library(sysroot: &Path, triple: &str) -> bool {
    let folder = sysroot.join("lib/rustlib").join(triple).join("lib");
    let Ok(listed) = std::fs::read_dir(folder) else { return false };
    listed.flatten().any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("libstd-")))
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: cargo takes no such path", path.display()))
}

fn ask(rustc: &OsString, arguments: &[&str]) -> Result<String> {
    let shown = Path::new(rustc).display();
    let output = Command::new(rustc).args(arguments).output().with_context(|| format!("cannot execute {shown}"))?;
    if !output.status.success() {
        bail!("{shown} {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} {} does not speak UTF-8", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn toolchain(sysroot: &Path) -> Toolchain {
        let version = "rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n".to_owned();
        Toolchain { rustc: "rustc".into(), version, host: "x86_64-unknown-linux-gnu".into(), sysroot: sysroot.into() }
    }

    #[test]
    fn the_best_standard_library_that_is_there_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let ours = toolchain(folder.path());
        assert!(matches!(ours.standard(StandardChoice::Auto, || ()).unwrap(), Standard::Plain { .. }));
        assert!(ours.standard(StandardChoice::Source, || ()).is_err());
        let sources = folder.path().join("lib/rustlib/src/rust/library/std");
        fs::create_dir_all(&sources).unwrap();
        fs::write(sources.join("Cargo.toml"), "").unwrap();
        assert_eq!(ours.standard(StandardChoice::Auto, || ()).unwrap(), Standard::Source);
        assert_eq!(ours.target(&Standard::Source), "x86_64-unknown-linux-gnu");
        let library = folder.path().join("lib/rustlib/x86_64-unknown-linux-gnutsan/lib");
        fs::create_dir_all(&library).unwrap();
        assert_eq!(ours.standard(StandardChoice::Auto, || ()).unwrap(), Standard::Source);
        fs::write(library.join("libstd-0123456789abcdef.rlib"), "").unwrap();
        assert_eq!(ours.standard(StandardChoice::Auto, || ()).unwrap(), Standard::Target);
        assert_eq!(ours.target(&Standard::Target), "x86_64-unknown-linux-gnutsan");
    }

    #[test]
    fn stable_compilers_are_told_from_others() {
        let stable = toolchain(Path::new("/none"));
        let nightly =
            Toolchain { version: stable.version.replace("release: 1.95.0", "release: 1.97.0-nightly"), ..stable.clone() };
        assert!(nightly.is_unstable());
        assert_eq!(stable.is_unstable(), std::env::var_os("RUSTC_BOOTSTRAP").is_some());
    }
}
