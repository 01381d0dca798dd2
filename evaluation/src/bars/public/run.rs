//! One program, built once and linked with both runtimes; each of its cases run under both.

use super::corpus::{Program, googletest_cases};
use super::make::{self, Compiler};
use super::places::{self, Finding, Pair};
use crate::common::races;
use anyhow::Context as _;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Of one execution with ThreadSanitizer's runtime, and of the recorded one with ours.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What `check` may take: its budget, the recorded execution, and something for a loaded machine.
const CHECK_TIMEOUT: Duration = Duration::from_secs(150);

/// What compilers of their time took.
const LENIENT: [&str; 6] = [
    "implicit-function-declaration",
    "implicit-int",
    "int-conversion",
    "incompatible-function-pointer-types",
    "return-mismatch",
    "return-type",
];

const LIBRARIES: [&str; 4] = ["-lm", "-lrt", "-ldl", "-pthread"];

pub struct Tools {
    pub tool: PathBuf,
    pub folder: PathBuf,
    pub scratch: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Binaries {
    pub sanitizer: PathBuf,
    pub ours: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub binaries: Binaries,
    pub arguments: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Result {
    pub case: String,
    pub sanitizer: BTreeSet<Pair>,
    pub proven: BTreeSet<Pair>,
    /// Everything else that the report says.
    pub others: Vec<Finding>,
    pub sanitizer_seconds: f64,
    pub check_seconds: f64,
    /// The check itself went wrong.
    pub failure: Option<String>,
}

impl Tools {
    /// The first line of the compiler's complaint, if it does not build.
    pub fn build(&self, number: usize, program: &Program) -> std::result::Result<Binaries, String> {
        let folder = self.scratch.join(format!("build-{number}"));
        if let Some(place) = &program.make {
            let by = |compiler, name| make::make(self, program, place, &folder.join(name), compiler);
            let (sanitizer, ours) = (by(Compiler::Sanitizer, "sanitizer")?, by(Compiler::Ours, "ours")?);
            return Ok(Binaries { sanitizer, ours });
        }
        let objects = self.compile(program, &folder, &["-fsanitize=thread"])?;
        let (compiler, wrapper, variable) = match program.is_cxx() {
            true => ("clang++-19", "c++", "RASHOMON_CXX"),
            false => ("clang-19", "cc", "RASHOMON_CC"),
        };
        let binaries = Binaries { sanitizer: folder.join("sanitizer"), ours: folder.join("ours") };
        let mut link = Command::new(compiler);
        link.arg("-fsanitize=thread").args(&objects).arg("-o").arg(&binaries.sanitizer);
        complain(link.args(&program.libraries).args(LIBRARIES))?;
        let mut link = Command::new(&self.tool);
        link.arg(wrapper).args(&objects).arg("-o").arg(&binaries.ours).env(variable, compiler);
        complain(link.args(&program.libraries).args(LIBRARIES))?;
        Ok(binaries)
    }

    /// The same without instrumentation, for Valgrind: that of Debian 12 gives up on what clang 19 writes of DWARF 5.
    pub fn build_native(&self, number: usize, program: &Program) -> std::result::Result<PathBuf, String> {
        let folder = self.scratch.join(format!("native-{number}"));
        if let Some(place) = &program.make {
            return make::make(self, program, place, &folder, Compiler::Native);
        }
        let objects = self.compile(program, &folder, &["-gdwarf-4"])?;
        let binary = folder.join("native");
        let mut link = Command::new(if program.is_cxx() { "clang++-19" } else { "clang-19" });
        link.args(&objects).arg("-o").arg(&binary).args(&program.libraries).args(LIBRARIES);
        complain(&mut link)?;
        Ok(binary)
    }

    fn compile(&self, program: &Program, folder: &Path, flags: &[&str]) -> std::result::Result<Vec<PathBuf>, String> {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let mut objects = Vec::new();
        for (index, source) in program.sources.iter().enumerate() {
            let object = folder.join(format!("{index}.o"));
            let is_c = source.extension().is_some_and(|it| it == "c");
            let mut compile = Command::new(if is_c { "clang-19" } else { "clang++-19" });
            // Old programs are not to be judged by today's rules for declarations.
            compile.args(["-g", "-O0", "-w", "-pthread", "-c"]).args(flags);
            if is_c {
                compile.arg("-std=gnu17").args(LENIENT.map(|rule| format!("-Wno-error={rule}")));
            }
            // Headers lie beside the source or somewhere above it.
            for parent in source.ancestors().skip(1).take_while(|parent| parent.starts_with(&self.folder)) {
                compile.arg("-I").arg(parent);
            }
            compile.args(&program.flags).arg(source).arg("-o").arg(&object);
            // What a `#line` names lies beside the source, and so below the folder.
            compile.current_dir(source.parent().unwrap_or(&self.folder));
            complain(&mut compile)?;
            objects.push(object);
        }
        Ok(objects)
    }

    /// The ways to run a program.
    pub fn cases(&self, program: &Program, binaries: &Binaries) -> anyhow::Result<Vec<Case>> {
        let mut cases = program.cases.clone();
        if program.googletest {
            let mut list = Command::new(&binaries.sanitizer);
            let output = list.arg("--gtest_list_tests").stdin(Stdio::null()).output().context("cannot list tests")?;
            let tests = googletest_cases(&String::from_utf8_lossy(&output.stdout));
            if !tests.is_empty() {
                // Cases that the manifest names are tests of another kind.
                cases.retain(|case| !case.is_empty());
                cases.extend(tests);
            }
        }
        let name = |arguments: &[String]| match arguments {
            [] => program.name.clone(),
            arguments => format!("{} {}", program.name, arguments.join(" ").replace("--gtest_filter=", "")),
        };
        Ok(cases.into_iter().map(|arguments| Case { name: name(&arguments), binaries: binaries.clone(), arguments }).collect())
    }

    pub fn run(&self, number: usize, case: &Case) -> anyhow::Result<Result> {
        let folder = self.scratch.join(format!("case-{number}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let begin = Instant::now();
        let mut sanitizer = Command::new(&case.binaries.sanitizer);
        sanitizer.args(&case.arguments).stdin(Stdio::null()).current_dir(&folder);
        sanitizer.env("TSAN_OPTIONS", "external_symbolizer_path=/usr/lib/llvm-19/bin/llvm-symbolizer");
        let execution = races::execute(&mut sanitizer, TIMEOUT)?;
        let sanitizer_seconds = begin.elapsed().as_secs_f64();
        let reported = places::reported(&execution.said, &self.folder);

        let begin = Instant::now();
        let (json, store) = (folder.join("report.json"), folder.join("store"));
        let mut check = Command::new(&self.tool);
        check.args(["check", "--quiet", "--timeout"]).arg(TIMEOUT.as_secs().to_string());
        check.arg("--json").arg(&json).arg("--output").arg(&store).arg("--").arg(&case.binaries.ours).args(&case.arguments);
        check.stdin(Stdio::null()).current_dir(&folder);
        let execution = races::execute(&mut check, CHECK_TIMEOUT)?;
        let check_seconds = begin.elapsed().as_secs_f64();
        let report = fs::read(&json).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let failure = failure(&execution, report.is_some());
        let findings = report.map_or_else(Vec::new, |report| places::findings(&report, &self.folder));
        let (proven, others): (Vec<Finding>, Vec<Finding>) =
            findings.into_iter().partition(|finding| finding.status == "proven" && COUNT.contains(&finding.kind.as_str()));
        let without_place = proven.iter().filter(|finding| finding.pair.is_none()).cloned();
        let others = others.into_iter().chain(without_place).collect();
        let proven = proven.into_iter().filter_map(|finding| finding.pair).collect();
        remove(&folder);
        Ok(Result { case: case.name.clone(), sanitizer: reported, proven, others, sanitizer_seconds, check_seconds, failure })
    }
}

/// Kinds of findings that are what ThreadSanitizer reports as a race or a use after free.
const COUNT: [&str; 2] = ["data-race", "use-after-free"];

/// What programs do to a folder is theirs; what cannot be removed now is with everything temporary.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// What a check must not do.
fn failure(execution: &races::Execution, has_report: bool) -> Option<String> {
    const BROKEN: [i32; 2] = [101, 125];
    let last = || execution.said.lines().rev().find(|line| line.contains("error")).unwrap_or_default().to_owned();
    match execution.status {
        None => Some(format!("did not end within {} s", CHECK_TIMEOUT.as_secs())),
        Some(status) if status.code().is_none_or(|code| BROKEN.contains(&code)) => Some(format!("{status}: {}", last())),
        Some(_) if !has_report => Some(format!("left no report: {}", last())),
        Some(_) => None,
    }
}

fn complain(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let telling = |line: &&str| ["error", "undefined", "multiple definition"].iter().any(|word| line.contains(word));
    Err(text.lines().find(telling).or(text.lines().next()).unwrap_or("the compiler failed").to_owned())
}
