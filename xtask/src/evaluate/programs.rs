//! The programs of `tests/bench`.

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
}

impl BenchProgram {
    pub fn source(&self) -> String {
        let suffix = match self.language {
            Language::C => "c",
            Language::Cxx => "cpp",
        };
        format!("{}.{suffix}", self.name)
    }
}

pub const PROGRAMS: [BenchProgram; 6] = [
    BenchProgram { name: "matmul", language: Language::C, kind: "memory", small: &["96"] },
    BenchProgram { name: "stencil", language: Language::C, kind: "barriers", small: &["64", "10"] },
    BenchProgram { name: "nbody", language: Language::C, kind: "computation", small: &["100", "4"] },
    BenchProgram { name: "queue", language: Language::C, kind: "one lock", small: &["2000"] },
    BenchProgram { name: "server", language: Language::C, kind: "mixed", small: &["4000"] },
    BenchProgram { name: "sorter", language: Language::Cxx, kind: "C++ threads", small: &["20000"] },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_source_file_is_listed_once() {
        let folder = crate::workspace::root().join("tests/bench");
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
