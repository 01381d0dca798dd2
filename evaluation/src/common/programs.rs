//! The programs of `tests/bench`.

use anyhow::{Result, bail};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

#[derive(Debug)]
pub struct BenchProgram {
    pub name: &'static str,
    pub language: Language,
    /// What it stresses.
    pub kind: &'static str,
    /// Arguments for `--quick`; without it the program's own defaults hold.
    pub small: &'static [&'static str],
    /// Evaluations that run it, besides `tree`, which runs all.
    pub used: &'static [Use],
    /// The row of Table 5.1 of Rajagopalan's thesis (2016) with a program of this kind.
    pub thesis: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// `spine`.
    Recording,
    /// `runtime`.
    Detecting,
}

impl BenchProgram {
    pub fn source(&self) -> String {
        let suffix = match self.language {
            Language::C => "c",
            Language::Cxx => "cpp",
        };
        format!("{}.{suffix}", self.name)
    }

    /// For files made from it.
    pub fn file_name(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }
}

const RECORDED: &[Use] = &[Use::Recording, Use::Detecting];
const DETECTED: &[Use] = &[Use::Detecting];

#[rustfmt::skip] // a table
pub const PROGRAMS: [BenchProgram; 20] = [
    BenchProgram { name: "matmul", language: Language::C, kind: "memory", small: &["96"], used: RECORDED, thesis: "" },
    BenchProgram { name: "stencil", language: Language::C, kind: "barriers", small: &["64", "10"], used: RECORDED, thesis: "" },
    BenchProgram { name: "nbody", language: Language::C, kind: "computation", small: &["100", "4"], used: RECORDED, thesis: "" },
    BenchProgram { name: "queue", language: Language::C, kind: "one lock", small: &["2000"], used: RECORDED, thesis: "boundedbuffer" },
    BenchProgram { name: "server", language: Language::C, kind: "mixed", small: &["4000"], used: RECORDED, thesis: "" },
    BenchProgram { name: "sorter", language: Language::Cxx, kind: "C++ threads", small: &["20000"], used: RECORDED, thesis: "" },
    BenchProgram { name: "fft", language: Language::C, kind: "strides", small: &["10"], used: DETECTED, thesis: "" },
    BenchProgram { name: "lu", language: Language::C, kind: "blocks", small: &["96"], used: DETECTED, thesis: "" },
    BenchProgram { name: "cluster", language: Language::C, kind: "decisions", small: &["500", "20"], used: DETECTED, thesis: "" },
    BenchProgram { name: "options", language: Language::C, kind: "private data", small: &["500", "2"], used: DETECTED, thesis: "" },
    BenchProgram { name: "twolock", language: Language::C, kind: "locks, heap", small: &["1000"], used: DETECTED, thesis: "" },
    BenchProgram { name: "moldyn", language: Language::C, kind: "reductions", small: &["5", "2"], used: &[], thesis: "moldyn" },
    BenchProgram { name: "montecarlo", language: Language::C, kind: "independence", small: &["100", "100"], used: &[], thesis: "montecarlo" },
    BenchProgram { name: "raytracer", language: Language::C, kind: "shared reads", small: &["32"], used: &[], thesis: "raytracer" },
    BenchProgram { name: "sor", language: Language::C, kind: "in place", small: &["64", "4"], used: &[], thesis: "sor" },
    BenchProgram { name: "philosophers", language: Language::C, kind: "lock pairs", small: &["500"], used: &[], thesis: "philo" },
    BenchProgram { name: "tsp", language: Language::C, kind: "shared bound", small: &["7"], used: &[], thesis: "tsp" },
    BenchProgram { name: "pipeline", language: Language::Cxx, kind: "handing over", small: &["200"], used: &[], thesis: "pipeline" },
    BenchProgram { name: "monitors", language: Language::C, kind: "nested locks", small: &["500"], used: &[], thesis: "nestedMonitor" },
    BenchProgram { name: "strings", language: Language::C, kind: "locked objects", small: &["500"], used: &[], thesis: "stringBuffer" },
];

/// The micro-benchmarks of the same thesis: Figures 5.1 and 5.3. Arguments: threads, iterations, locks.
pub const FAVOURING: BenchProgram =
    BenchProgram { name: "tree/favouring", language: Language::C, kind: "same context", small: &[], used: &[], thesis: "" };
pub const HURTING: BenchProgram =
    BenchProgram { name: "tree/hurting", language: Language::C, kind: "new contexts", small: &[], used: &[], thesis: "" };

/// Those that `used` names, and whose name contains `part`.
pub fn chosen(used: Option<Use>, part: Option<&str>) -> Result<Vec<&'static BenchProgram>> {
    let of_use = || PROGRAMS.iter().filter(move |program| used.is_none_or(|one| program.used.contains(&one)));
    let found: Vec<_> = of_use().filter(|program| part.is_none_or(|part| program.name.contains(part))).collect();
    if found.is_empty() {
        bail!("no program's name contains that; there are {}", of_use().map(|one| one.name).collect::<Vec<_>>().join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_file_is_listed_once() {
        let folder = xtask::workspace::root().join("tests/bench");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".c") || name.ends_with(".cpp"))
            .collect();
        let listed: BTreeSet<String> = PROGRAMS.iter().map(BenchProgram::source).collect();
        assert_eq!(there, listed);
        assert_eq!(listed.len(), PROGRAMS.len());
    }
}
