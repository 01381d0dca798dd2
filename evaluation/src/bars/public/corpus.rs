//! Programs in a folder that somebody else wrote.
//!
//! Without a manifest every C or C++ file that defines `main` is a program of its own, but for a `.C` that lies beside a
//! makefile: that is what make builds there. What needs more (several files, flags) is said in a `corpus.toml` at the top of the
//! folder, whose programs are then the only ones. Arguments may also stand in a program's first line, as in SCTBench
//! (`//args: -n 32 -h {NUMTHREADS}`), or in a `run.sh` beside the makefile, behind the program's name.

use super::make;
use crate::common::debian;
use anyhow::{Context as _, Result, bail};
use regex_lite::Regex;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

pub const MANIFEST: &str = "corpus.toml";
/// Folders nested deeper are not looked at; nor are files that are larger.
const DEPTH: usize = 12;
const LARGEST_FILE: u64 = 4 << 20;
/// C++, or what a makefile has another program expand first.
const MACROS: &str = "C";
/// How a made program is started.
const SCRIPT: &str = "run.sh";
/// What a program's first line leaves open: how many threads there are, and where it writes.
const OPEN: [(&str, &str); 2] = [("{NUMTHREADS}", "2"), ("{OUTFILE}", "output.txt")];

/// One program, with one or more ways to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its (first) source or its makefile's folder, relative to the corpus's, unless the manifest names it.
    pub name: String,
    pub sources: Vec<PathBuf>,
    /// The folder of its makefile, which knows the sources.
    pub make: Option<PathBuf>,
    /// Which of the programs that the makefile makes.
    pub binary: Option<String>,
    pub flags: Vec<String>,
    pub libraries: Vec<String>,
    /// Arguments of each run.
    pub cases: Vec<Vec<String>>,
    /// Lists its tests as googletest does, each of which is a case.
    pub googletest: bool,
}

impl Program {
    fn of(name: String, sources: Vec<PathBuf>) -> Self {
        let (flags, libraries, cases) = (Vec::new(), Vec::new(), vec![Vec::new()]);
        Self { name, sources, make: None, binary: None, flags, libraries, cases, googletest: false }
    }

    pub fn is_cxx(&self) -> bool {
        self.sources.iter().any(|source| source.extension().is_some_and(|extension| extension != "c"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    program: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    sources: Vec<PathBuf>,
    make: Option<PathBuf>,
    binary: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    libraries: Vec<String>,
    #[serde(default)]
    cases: Vec<Vec<String>>,
    #[serde(default)]
    googletest: bool,
}

/// Installs what some of them need to be built.
pub fn provide(programs: &[Program]) -> Result<()> {
    if programs.iter().any(|program| program.make.is_some()) {
        debian::provide(&["make", "m4", "gcc", "g++"].map(|name| (name, debian::starts(name))))?;
    }
    if programs.iter().any(|program| program.libraries.iter().any(|library| library.starts_with("-lgtest"))) {
        debian::provide(&[("libgtest-dev", Path::new("/usr/include/gtest/gtest.h").is_file())])?;
    }
    Ok(())
}

/// All programs of a folder, by name.
pub fn programs(folder: &Path) -> Result<Vec<Program>> {
    let manifest = folder.join(MANIFEST);
    let mut programs = if manifest.is_file() { listed(folder, &manifest)? } else { found(folder)? };
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    programs.dedup_by(|one, other| one.make.is_some() && one.make == other.make && one.binary == other.binary);
    if programs.is_empty() {
        bail!("{} holds no C or C++ file with a main function", folder.display());
    }
    Ok(programs)
}

fn listed(folder: &Path, manifest: &Path) -> Result<Vec<Program>> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("{}", manifest.display()))?;
    let program = |entry: Entry| {
        if entry.sources.is_empty() == entry.make.is_none() {
            bail!("{}: {} needs either sources or a folder to make", MANIFEST, entry.name);
        }
        Ok(Program {
            name: entry.name,
            sources: entry.sources.iter().map(|source| folder.join(source)).collect(),
            make: entry.make.map(|place| folder.join(place)),
            binary: entry.binary,
            // Relative to the folder, wherever the compiler is started.
            flags: entry.flags.iter().map(|flag| absolute(flag, folder)).collect(),
            libraries: entry.libraries,
            cases: if entry.cases.is_empty() { vec![Vec::new()] } else { entry.cases },
            googletest: entry.googletest,
        })
    };
    manifest.program.into_iter().map(program).collect()
}

fn absolute(flag: &str, folder: &Path) -> String {
    match flag.strip_prefix("-I") {
        Some(path) => format!("-I{}", folder.join(path).display()),
        None => flag.to_owned(),
    }
}

fn found(folder: &Path) -> Result<Vec<Program>> {
    let main = Regex::new(r"(?m)^[^/*\n]*\bmain\s*\(").context("the pattern for main")?;
    let mut files = Vec::new();
    collect(folder, DEPTH, &mut files)?;
    let mut programs = Vec::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        if main.is_match(&text) {
            let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            let beside = file.parent().unwrap_or(folder);
            if file.extension().is_some_and(|it| it == MACROS) && make::has_makefile(beside) {
                programs.push(made(folder, beside));
                continue;
            }
            let googletest = text.contains("gtest/gtest.h");
            let libraries = if googletest { vec!["-lgtest".to_owned()] } else { Vec::new() };
            let cases = vec![arguments(&text, beside)];
            programs.push(Program { libraries, cases, googletest, ..Program::of(name, vec![file]) });
        }
    }
    Ok(programs)
}

/// What the makefile of a folder makes, with the arguments that a script beside it gives.
fn made(corpus: &Path, folder: &Path) -> Program {
    let name = folder.strip_prefix(corpus).unwrap_or(folder).display().to_string();
    let script = fs::read_to_string(folder.join(SCRIPT)).unwrap_or_default();
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| !word.starts_with("./") || word.ends_with(".sh"));
        words.next().map(|_| words.map(str::to_owned).collect())
    };
    let cases = vec![script.lines().find_map(of_line).unwrap_or_default()];
    Program { make: Some(folder.to_owned()), cases, ..Program::of(name, Vec::new()) }
}

/// Those of a program's first line. What lies beside the program is named whole: executions have a folder of their own.
fn arguments(text: &str, beside: &Path) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let Some((_, words)) = first.split_once("args:").filter(|(before, _)| before.trim() == "//") else { return Vec::new() };
    let argument = |word: &str| {
        let word = OPEN.iter().fold(word.to_owned(), |word, (open, value)| word.replace(open, value));
        let path = beside.join(&word);
        if path.exists() { path.display().to_string() } else { word }
    };
    words.split_whitespace().map(argument).collect()
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            if entry.file_name() != ".git" {
                collect(&path, depth - 1, files)?;
            }
        } else if kind.is_file() && is_source(&path) && entry.metadata()?.len() <= LARGEST_FILE {
            files.push(path);
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|it| ["c", "cc", "cpp", "cxx", MACROS].contains(&it))
}

/// What a program of googletest prints for `--gtest_list_tests`: suites, and indented below each its tests.
pub fn googletest_cases(listing: &str) -> Vec<Vec<String>> {
    let mut suite = "";
    let mut cases = Vec::new();
    for line in listing.lines() {
        let words = line.split('#').next().unwrap_or_default();
        match words.strip_prefix("  ") {
            Some(test) if !suite.is_empty() => cases.push(vec![format!("--gtest_filter={suite}{}", test.trim())]),
            _ if words.trim_end().ends_with('.') && !words.starts_with(' ') => suite = words.trim_end(),
            _ => {}
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn every_file_with_main_is_a_program() {
        let folder = folder(&[
            ("b/two.cc", "#include <gtest/gtest.h>\nint main (int argc, char **argv) {}"),
            ("one.c", "int\nmain(void) { return 0; }"),
            ("helper.c", "// main() is elsewhere\nint domain(void);"),
            ("notes.txt", "int main(void)"),
            (".git/three.c", "int main(void) {}"),
        ]);
        let programs = programs(folder.path()).unwrap();
        let names: Vec<_> =
            programs.iter().map(|program| (program.name.as_str(), program.is_cxx(), program.googletest)).collect();
        assert_eq!(names, [("b/two.cc", true, true), ("one.c", false, false)]);
    }

    #[test]
    fn a_first_line_may_have_arguments() {
        let folder = folder(&[
            ("one.c", "//args:-n 32 -h {NUMTHREADS} input {OUTFILE}\nint main(void) {}"),
            ("input", ""),
            ("two.c", "// No args: here\nint main(void) {}"),
        ]);
        let programs = programs(folder.path()).unwrap();
        let input = folder.path().join("input").display().to_string();
        assert_eq!(programs[0].cases, [["-n", "32", "-h", "2", &input, "output.txt"]]);
        assert_eq!(programs[1].cases, [Vec::<String>::new()]);
    }

    #[test]
    fn a_makefile_knows_its_sources() {
        let folder = folder(&[
            ("a/lu.C", "MAIN_ENV\nmain(argc, argv)\nint argc; char *argv;\n{}"),
            ("a/more.C", "/* called by\nmain() */"),
            ("a/makefile", "LU: lu.o"),
            ("a/run.sh", "#! /bin/sh\ncd run && \\\nrunner ./LU -p2 -n4\n"),
            ("b/plain.C", "int main() {}"),
            ("c/own.c", "int main(void) {}"),
            ("c/Makefile", "own: own.o"),
        ]);
        let programs = programs(folder.path()).unwrap();
        let made: Vec<_> = programs.iter().map(|program| (program.name.as_str(), program.make.is_some())).collect();
        assert_eq!(made, [("a", true), ("b/plain.C", false), ("c/own.c", false)]);
        assert_eq!(programs[0].cases, [["-p2", "-n4"]]);
        fs::write(folder.path().join(MANIFEST), "[[program]]\nname = \"lu\"\nmake = \"a\"\nbinary = \"LU\"\n").unwrap();
        let listed = super::programs(folder.path()).unwrap();
        assert_eq!((&listed[0].make, &listed[0].binary), (&Some(folder.path().join("a")), &Some("LU".to_owned())));
    }

    #[test]
    fn a_manifest_is_all_there_is() {
        let folder = folder(&[
            ("one.c", "int main(void) {}"),
            (
                MANIFEST,
                "[[program]]\nname = \"both\"\nsources = [\"x/a.c\", \"x/b.cc\"]\nflags = [\"-Ix\", \
                    \"-DY\"]\ncases = [[\"1\"], [\"2\"]]\n",
            ),
        ]);
        let programs = programs(folder.path()).unwrap();
        assert_eq!(programs.len(), 1);
        let program = &programs[0];
        assert!(program.is_cxx());
        assert_eq!(program.flags, [format!("-I{}", folder.path().join("x").display()), "-DY".to_owned()]);
        assert_eq!(program.cases, [["1"], ["2"]]);
        fs::write(folder.path().join(MANIFEST), "[[program]]\nname = \"none\"\nsources = []\n").unwrap();
        assert!(super::programs(folder.path()).is_err());
    }

    #[test]
    fn tests_are_cases() {
        let listing = "noise\nFirst.\n  a\n  b  # GetParam() = 3\nSecond/0.\n  c\n";
        let cases = googletest_cases(listing);
        assert_eq!(cases, [["--gtest_filter=First.a"], ["--gtest_filter=First.b"], ["--gtest_filter=Second/0.c"]]);
    }
}
