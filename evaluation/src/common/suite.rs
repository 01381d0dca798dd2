//! The programs of `tests/programs`, built for comparison: one instrumented object each, linked with the compiler's
//! ThreadSanitizer and with our runtime.

use super::compile::{Compilers, succeed};
use super::detector::Configuration;
use super::programs::Language;
use super::races::{self, Execution};
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use xtask::workspace::root;

/// What the manifest says of a program, as far as detectors are concerned.
#[derive(Clone, Debug, Deserialize)]
pub struct Program {
    /// Relative to the manifest.
    pub path: String,
    pub language: String,
    pub args: Vec<String>,
    pub stdin: Option<String>,
    #[serde(default)]
    pub link: Vec<String>,
    expect: Vec<String>,
    #[serde(default)]
    allow: Vec<String>,
    pub timeout_seconds: u64,
    /// Nothing of the kernel's, such as the number of a thread, is among the values that it reads and writes.
    #[serde(default = "yes")]
    pub deterministic: bool,
}

const fn yes() -> bool {
    true
}

impl Program {
    /// Every thread repeats the same state for ever, or is blocked.
    pub fn is_endless(&self) -> bool {
        self.expect.iter().any(|expected| expected == "endless")
    }
}

#[derive(Debug, Deserialize)]
struct Manifest {
    program: Vec<Program>,
}

fn folder() -> PathBuf {
    root().join("tests/programs")
}

/// Those whose path contains `part`.
pub fn programs(part: Option<&str>) -> Result<Vec<Program>> {
    let path = folder().join("manifest.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("{} is not well formed", path.display()))?;
    Ok(manifest.program.into_iter().filter(|program| part.is_none_or(|part| program.path.contains(part))).collect())
}

/// The programs of `tests/scenarios` whose path contains `part`. Their second line says which bugs they have: `// bugs: race`,
/// `// bugs: deadlock`, or `// bugs: none`.
pub fn scenarios(part: Option<&str>) -> Result<Vec<Program>> {
    let scenarios = root().join("tests/scenarios");
    let files = std::fs::read_dir(&scenarios).with_context(|| format!("cannot read {}", scenarios.display()))?;
    let mut names =
        files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect::<std::io::Result<Vec<_>>>()?;
    names.retain(|name| name.ends_with(".c") && part.is_none_or(|part| format!("scenarios/{name}").contains(part)));
    names.sort_unstable();
    let program = |name: &String| {
        let text = std::fs::read_to_string(scenarios.join(name)).with_context(|| format!("cannot read {name}"))?;
        let bugs = text.lines().nth(1).and_then(|line| line.strip_prefix("// bugs: "));
        let bugs = bugs.with_context(|| format!("tests/scenarios/{name}: the second line is not `// bugs: …`"))?;
        let expect = match bugs {
            "none" => Vec::new(),
            "race" | "deadlock" => vec![bugs.to_owned()],
            _ => bail!("tests/scenarios/{name}: `{bugs}` is neither race, deadlock nor none"),
        };
        Ok(Program {
            path: format!("../scenarios/{name}"),
            language: String::from("c"),
            args: Vec::new(),
            stdin: None,
            link: Vec::new(),
            expect,
            allow: Vec::new(),
            timeout_seconds: 5,
            deterministic: true,
        })
    };
    names.iter().map(program).collect()
}

impl Program {
    pub fn source(&self) -> PathBuf {
        folder().join(&self.path)
    }

    /// What must be proven.
    pub fn expected(&self) -> &[String] {
        &self.expect
    }

    /// What may be proven besides.
    pub fn allowed(&self) -> &[String] {
        &self.allow
    }

    /// Whether some findings come about in some schedules and not in others.
    pub fn has_allowances(&self) -> bool {
        !self.allow.is_empty()
    }

    /// Whether some schedule has a data race.
    pub fn is_racy(&self) -> bool {
        let is_misuse =
            |finding: &str| matches!(finding, "use-after-free" | "use-of-destroyed" | "destroy-awaited" | "lifetime-race");
        let told_by_accesses = |finding: &String| finding.starts_with("race ") || is_misuse(finding);
        self.expect.iter().chain(&self.allow).any(told_by_accesses)
    }

    /// Long enough for a detector on a loaded machine, short enough for programs that deadlock.
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.min(10))
    }
}

#[derive(Debug)]
pub struct Suite {
    pub tool: PathBuf,
    symbolizer: String,
    /// Where everything built is.
    folder: tempfile::TempDir,
}

#[derive(Debug)]
pub struct Built {
    sanitizer: PathBuf,
    ours: PathBuf,
    input: Option<PathBuf>,
}

impl Suite {
    pub fn new(tool: PathBuf, compilers: &Compilers) -> Result<Self> {
        let output = Command::new(&compilers.c).arg("--print-prog-name=llvm-symbolizer").output();
        let symbolizer = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        let folder =
            tempfile::Builder::new().prefix("rashomon-evaluate-").tempdir().context("cannot create a temporary folder")?;
        Ok(Self { tool, symbolizer, folder })
    }

    pub fn build(&self, program: &Program, compilers: &Compilers) -> Result<Built> {
        let name = program.path.replace(['/', '.'], "_");
        let at = |suffix: &str| self.folder.path().join(format!("{name}{suffix}"));
        let (object, sanitizer, ours) = (at(".o"), at(".sanitizer"), at(".ours"));
        let (language, standard) =
            if program.language == "c" { (Language::C, "-std=gnu11") } else { (Language::Cxx, "-std=c++17") };
        let compiler = compilers.of(language);
        let (wrapper, variable) = match language {
            Language::C => ("cc", "RASHOMON_CC"),
            Language::Cxx => ("c++", "RASHOMON_CXX"),
        };
        let mut compile = Command::new(compiler);
        compile.args(["-g", "-O1", "-w", "-pthread", standard, "-fsanitize=thread", "-c", "-o"]).arg(&object);
        succeed(compile.arg(program.source()))?;
        let mut link = Command::new(compiler);
        succeed(link.arg("-fsanitize=thread").arg(&object).args(&program.link).arg("-o").arg(&sanitizer))?;
        let mut link = Command::new(&self.tool);
        link.arg(wrapper).arg(&object).args(&program.link).arg("-o").arg(&ours).env(variable, compiler);
        succeed(&mut link)?;
        let input = match &program.stdin {
            None => None,
            Some(text) => {
                let path = at(".input");
                std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
                Some(path)
            }
        };
        Ok(Built { sanitizer, ours, input })
    }

    /// One execution under the compiler's ThreadSanitizer.
    pub fn sanitizer(&self, program: &Program, built: &Built) -> Result<Execution> {
        let mut command = Command::new(&built.sanitizer);
        command.env("TSAN_OPTIONS", format!("external_symbolizer_path={}", self.symbolizer));
        Self::execute(command.args(&program.args), program, built)
    }

    /// One execution under ours.
    pub fn ours(&self, program: &Program, built: &Built, configuration: Configuration) -> Result<Execution> {
        let mut command = Command::new(&self.tool);
        command.args(["--quiet", "detect", "--format", "tsan", "--detector", configuration.detector.name()]);
        command.args(["--filter", configuration.filter.name(), "--"]).arg(&built.ours).args(&program.args);
        command.env_remove("TSAN_OPTIONS").env_remove(super::detector::VARIABLE);
        Self::execute(&mut command, program, built)
    }

    fn execute(command: &mut Command, program: &Program, built: &Built) -> Result<Execution> {
        let input = match &built.input {
            None => Stdio::null(),
            Some(path) => File::open(path).with_context(|| format!("cannot open {}", path.display()))?.into(),
        };
        races::execute(command.current_dir(folder()).stdin(input), program.timeout())
    }
}

/// `work` on each item, on all processors; results in order. The first error ends it.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
                {
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_read() {
        let all = programs(None).unwrap();
        assert!(all.len() > 100 && all.iter().all(|program| program.source().is_file()));
        assert!(all.iter().any(Program::is_racy) && !all.iter().all(Program::is_racy));
        assert!(programs(Some("no program is called so")).unwrap().is_empty());
    }

    #[test]
    fn scenarios_say_which_bugs_they_have() {
        let all = scenarios(None).unwrap();
        let clean = all.iter().filter(|program| program.expected().is_empty()).count();
        assert!(all.len() > 30 && clean > 10 && all.len() - clean > 20);
        assert!(all.iter().all(|program| program.source().is_file()));
        assert_eq!(scenarios(Some("scenarios/transfers.c")).unwrap()[0].expected(), ["deadlock"]);
    }

    #[test]
    fn parallel_results_keep_their_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(in_parallel(&items, |item| Ok(item * 2)).unwrap(), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(in_parallel(&items, |item| if *item == 7 { anyhow::bail!("seven") } else { Ok(()) }).is_err());
    }
}
