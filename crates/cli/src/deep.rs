//! `rashomon cc --deep`: clang 19 with the plugin that tells of wait loops and dependences.

use crate::wrapper::Language;
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the plugin, if it is not beside the tool.
const PLUGIN_VARIABLE: &str = "RASHOMON_PLUGIN";
const PLUGIN: &str = "librashomon_plugin.so";
/// Where distributions put it, seen from the tool.
const INSTALLED: &str = "../lib/rashomon";

/// What the plugin is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deep {
    No,
    WaitLoops,
    Full,
}

/// Accesses are the plugin's affair then, not ThreadSanitizer's.
const INSTEAD: [&str; 4] = ["-mllvm", "-tsan-instrument-memory-accesses=0", "-mllvm", "-tsan-instrument-memintrinsics=0"];

impl Deep {
    /// What the arguments ask for, and the others; of several the last counts.
    pub fn asked(arguments: &[OsString]) -> (Self, Vec<OsString>) {
        let mut asked = Self::No;
        let mut others = Vec::new();
        for argument in arguments {
            match argument.to_str() {
                Some("--deep" | "--deep=full") => asked = Self::Full,
                Some("--deep=loops") => asked = Self::WaitLoops,
                _ => others.push(argument.clone()),
            }
        }
        (asked, others)
    }

    /// For the compiler.
    pub fn arguments(self) -> Result<Vec<OsString>> {
        if self == Self::No {
            return Ok(Vec::new());
        }
        Ok(self.arguments_with(&plugin()?))
    }

    fn arguments_with(self, plugin: &Path) -> Vec<OsString> {
        let mut pass = OsString::from("-fpass-plugin=");
        pass.push(plugin);
        // The options of a plugin are known once it is loaded as one of clang's, too. Calls that only link use none of them.
        let mut all: Vec<OsString> = ["--start-no-unused-arguments", "-Xclang", "-load", "-Xclang"].map(OsString::from).into();
        all.extend([plugin.into(), pass]);
        match self {
            Self::Full => all.extend(INSTEAD.map(OsString::from)),
            Self::WaitLoops | Self::No => all.extend(["-mllvm", "-rashomon-wait-loops-only"].map(OsString::from)),
        }
        all.push("--end-no-unused-arguments".into());
        all
    }
}

/// Where the plugin is.
pub fn plugin() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(PLUGIN_VARIABLE).filter(|value| !value.is_empty()) {
        let path = std::path::absolute(&named)?;
        if !path.is_file() {
            bail!("{PLUGIN_VARIABLE} names {}, where no file is", path.display());
        }
        return Ok(path);
    }
    let tool = std::env::current_exe().and_then(std::fs::canonicalize)?;
    let beside = tool.parent().unwrap_or_else(|| Path::new("."));
    let places = [beside.join(PLUGIN), beside.join(INSTALLED).join(PLUGIN)];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => bail!(
            "--deep needs the plugin for clang 19, which is not at {}: `cargo xtask plugin` builds it where LLVM 19 is installed \
             (Debian: apt install clang-19 llvm-19-dev g++), and {PLUGIN_VARIABLE} may name it",
            places[0].display()
        ),
    }
}

/// The clang that can load the plugin.
pub fn compiler(language: Language) -> Result<OsString> {
    let (variable, names) = match language {
        Language::C => ("RASHOMON_CC", ["clang-19", "clang"]),
        Language::Cxx => ("RASHOMON_CXX", ["clang++-19", "clang++"]),
    };
    if let Some(named) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
        if !is_clang_19(&named) {
            bail!("--deep needs clang 19, which {variable}={} is not", named.to_string_lossy());
        }
        return Ok(named);
    }
    match names.into_iter().find(|name| is_clang_19(name.as_ref())) {
        Some(name) => Ok(name.into()),
        None => bail!("--deep needs clang 19 (Debian: apt install clang-19), or {variable} that names it"),
    }
}

fn is_clang_19(compiler: &OsStr) -> bool {
    // The variable may hold options, or a launcher.
    let text = compiler.to_string_lossy();
    let mut words = text.split_whitespace();
    let Some(program) = words.next() else { return false };
    let output = Command::new(program).args(words).arg("--version").output();
    output.is_ok_and(|output| tells_clang_19(&String::from_utf8_lossy(&output.stdout)))
}

fn tells_clang_19(version: &str) -> bool {
    version.lines().next().is_some_and(|line| line.contains("clang version 19."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_no_argument_of_the_compiler() {
        let asked = |line: &str| {
            let (deep, others) = Deep::asked(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
            (deep, others.iter().map(|one| one.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(asked("--deep -c a.c"), (Deep::Full, "-c a.c".to_owned()));
        assert_eq!(asked("-c a.c --deep=loops"), (Deep::WaitLoops, "-c a.c".to_owned()));
        assert_eq!(asked("-c deep.c"), (Deep::No, "-c deep.c".to_owned()));
    }

    #[test]
    fn with_dependences_accesses_are_not_told_twice() {
        let has = |deep: Deep, what: &str| deep.arguments_with(Path::new("/p.so")).contains(&OsString::from(what));
        assert!(has(Deep::Full, INSTEAD[1]) && has(Deep::Full, INSTEAD[3]) && has(Deep::Full, "-fpass-plugin=/p.so"));
        assert!(!has(Deep::WaitLoops, INSTEAD[1]) && has(Deep::WaitLoops, "-rashomon-wait-loops-only"));
    }

    #[test]
    fn another_clang_is_not_taken() {
        assert!(tells_clang_19("Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64"));
        assert!(!tells_clang_19("Debian clang version 14.0.6") && !tells_clang_19("gcc (Debian 12.2.0) 12.2.0"));
    }
}
