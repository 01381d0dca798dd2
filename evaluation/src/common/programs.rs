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
const MEASURED: &[Use] = &[];
const C: Language = Language::C;
const CXX: Language = Language::Cxx;

/// A row of the table: name, language, what it is about, small arguments, uses, the thesis's name for it.
const fn bench(
    name: &'static str,
    language: Language,
    kind: &'static str,
    small: &'static [&'static str],
    used: &'static [Use],
    thesis: &'static str,
) -> BenchProgram {
    BenchProgram { name, language, kind, small, used, thesis }
}

pub const PROGRAMS: [BenchProgram; 20] = [
    bench("matmul", C, "memory", &["96"], RECORDED, ""),
    bench("stencil", C, "barriers", &["64", "10"], RECORDED, ""),
    bench("nbody", C, "computation", &["100", "4"], RECORDED, ""),
    bench("queue", C, "one lock", &["2000"], RECORDED, "boundedbuffer"),
    bench("server", C, "mixed", &["4000"], RECORDED, ""),
    bench("sorter", CXX, "C++ threads", &["20000"], RECORDED, ""),
    bench("fft", C, "strides", &["10"], DETECTED, ""),
    bench("lu", C, "blocks", &["96"], DETECTED, ""),
    bench("cluster", C, "decisions", &["500", "20"], DETECTED, ""),
    bench("options", C, "private data", &["500", "2"], DETECTED, ""),
    bench("twolock", C, "locks, heap", &["1000"], DETECTED, ""),
    bench("moldyn", C, "reductions", &["5", "2"], MEASURED, "moldyn"),
    bench("montecarlo", C, "independence", &["100", "100"], MEASURED, "montecarlo"),
    bench("raytracer", C, "shared reads", &["32"], MEASURED, "raytracer"),
    bench("sor", C, "in place", &["64", "4"], MEASURED, "sor"),
    bench("philosophers", C, "lock pairs", &["500"], MEASURED, "philo"),
    bench("tsp", C, "shared bound", &["7"], MEASURED, "tsp"),
    bench("pipeline", CXX, "handing over", &["200"], MEASURED, "pipeline"),
    bench("monitors", C, "nested locks", &["500"], MEASURED, "nestedMonitor"),
    bench("strings", C, "locked objects", &["500"], MEASURED, "stringBuffer"),
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
