//! One program, three ways: without instrumentation, and from the same instrumented object with the compiler's own
//! ThreadSanitizer runtime and with ours.

use super::programs::{BenchProgram, Language};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::workspace::root;

/// A C compiler and its C++ twin.
#[derive(Clone, Debug, Serialize)]
pub struct Compilers {
    pub c: String,
    pub cxx: String,
    /// First line of `--version`.
    pub version: String,
}

impl Compilers {
    /// clang 19 if it is there with its ThreadSanitizer, else gcc.
    pub fn find() -> Result<Self> {
        let candidates = [("clang-19", "clang++-19"), ("gcc", "g++")];
        for (c, cxx) in candidates {
            let output = Command::new(cxx).arg("--version").stderr(Stdio::null()).output();
            let there = output.ok().filter(|output| output.status.success());
            if let Some(output) = there.filter(|_| links_with_sanitizer(c)) {
                let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
                return Ok(Self { c: c.into(), cxx: cxx.into(), version });
            }
        }
        bail!("neither clang-19 nor gcc can build programs with -fsanitize=thread; install clang-19 and libclang-rt-19-dev")
    }

    pub fn of(&self, language: Language) -> &str {
        match language {
            Language::C => &self.c,
            Language::Cxx => &self.cxx,
        }
    }
}

fn links_with_sanitizer(compiler: &str) -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let source = folder.path().join("empty.c");
    if std::fs::write(&source, "int main(void) { return 0; }\n").is_err() {
        return false;
    }
    let mut command = Command::new(compiler);
    command.arg("-fsanitize=thread").arg(&source).arg("-o").arg(folder.path().join("empty"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[derive(Debug)]
pub struct Built {
    pub native: PathBuf,
    pub sanitizer: PathBuf,
    pub ours: PathBuf,
}

/// Builds the program into `folder`; `tool` links the third.
pub fn build(program: &BenchProgram, compilers: &Compilers, tool: &Path, folder: &Path) -> Result<Built> {
    let source = root().join("tests/bench").join(program.source());
    build_from(&source, (program.file_name(), program.language), compilers, tool, folder)
}

/// The same of any source; files are called by the name.
pub fn build_from(
    source: &Path,
    (name, language): (&str, Language),
    compilers: &Compilers,
    tool: &Path,
    folder: &Path,
) -> Result<Built> {
    let at = |suffix: &str| folder.join(format!("{name}{suffix}"));
    let (native, object, sanitizer, ours) = (at(".native"), at(".o"), at(".sanitizer"), at(".ours"));
    let compiler = compilers.of(language);
    let common = ["-O2", "-g", "-pthread"];
    succeed(Command::new(compiler).args(common).arg(source).arg("-o").arg(&native).arg("-lm"))?;
    succeed(Command::new(compiler).args(common).args(["-fsanitize=thread", "-c"]).arg(source).arg("-o").arg(&object))?;
    succeed(Command::new(compiler).arg("-fsanitize=thread").arg(&object).arg("-o").arg(&sanitizer).arg("-lm"))?;
    let (wrapper, variable) = match language {
        Language::C => ("cc", "RASHOMON_CC"),
        Language::Cxx => ("c++", "RASHOMON_CXX"),
    };
    succeed(Command::new(tool).arg(wrapper).arg(&object).arg("-o").arg(&ours).arg("-lm").env(variable, compiler))?;
    Ok(Built { native, sanitizer, ours })
}

pub fn succeed(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
