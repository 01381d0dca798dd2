//! Programs in a folder that somebody else wrote.
//!
//! Without a manifest every C or C++ file that defines `main` is a program of its own. What needs more (several files, flags) is
//! said in a `corpus.toml` at the top of the folder, whose programs are then the only ones. Arguments may also stand in a
//! program's first line, as in SCTBench: `//args: -n 32 -h {NUMTHREADS}`.

use anyhow::{Context as _, Result, bail};
use regex_lite::Regex;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

pub const MANIFEST: &str = "corpus.toml";
/// Folders nested deeper are not looked at; nor are files that are larger.
const DEPTH: usize = 12;
const LARGEST_FILE: u64 = 4 << 20;
/// What a program's first line leaves open: how many threads there are, and where it writes.
const OPEN: [(&str, &str); 2] = [("{NUMTHREADS}", "2"), ("{OUTFILE}", "output.txt")];

/// One program, with one or more ways to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its (first) source, relative to the folder, unless the manifest names it.
    pub name: String,
    pub sources: Vec<PathBuf>,
    pub flags: Vec<String>,
    pub libraries: Vec<String>,
    /// Arguments of each run.
    pub cases: Vec<Vec<String>>,
    /// Lists its tests as googletest does, each of which is a case.
    pub googletest: bool,
}

impl Program {
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
    sources: Vec<PathBuf>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    libraries: Vec<String>,
    #[serde(default)]
    cases: Vec<Vec<String>>,
    #[serde(default)]
    googletest: bool,
}

/// All programs of a folder, by name.
pub fn programs(folder: &Path) -> Result<Vec<Program>> {
    let manifest = folder.join(MANIFEST);
    let mut programs = if manifest.is_file() { listed(folder, &manifest)? } else { found(folder)? };
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    if programs.is_empty() {
        bail!("{} holds no C or C++ file with a main function", folder.display());
    }
    Ok(programs)
}

fn listed(folder: &Path, manifest: &Path) -> Result<Vec<Program>> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("{}", manifest.display()))?;
    let program = |entry: Entry| {
        if entry.sources.is_empty() {
            bail!("{}: {} has no sources", MANIFEST, entry.name);
        }
        Ok(Program {
            name: entry.name,
            sources: entry.sources.iter().map(|source| folder.join(source)).collect(),
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
            let googletest = text.contains("gtest/gtest.h");
            let libraries = if googletest { vec!["-lgtest".to_owned()] } else { Vec::new() };
            let cases = vec![arguments(&text, file.parent().unwrap_or(folder))];
            programs.push(Program { name, sources: vec![file], flags: Vec::new(), libraries, cases, googletest });
        }
    }
    Ok(programs)
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
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|it| ["c", "cc", "cpp", "cxx"].contains(&it))
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
