//! The programs, as `programs.toml` describes them.
//!
//! That file, the drivers and the readings are read when the evaluation runs: they are data, and trying another recipe builds
//! nothing.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use xtask::workspace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Real>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Real {
    pub name: String,
    pub package: String,
    #[serde(default)]
    pub part: Part,
    pub needs: BTreeMap<String, PathBuf>,
    pub build: String,
    pub driver: Option<Driver>,
    pub input: String,
    pub before: String,
    pub program: String,
    pub arguments: Vec<String>,
    pub client: Option<String>,
    pub outcome: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    #[default]
    Everything,
    Upstream,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// Below `evaluation/src/bars`.
    file: String,
    #[serde(rename = "as")]
    pub name: String,
}

impl Driver {
    pub fn text(&self) -> Result<String> {
        ours(&self.file)
    }
}

/// A file of these evaluations'.
pub fn ours(name: &str) -> Result<String> {
    let path = workspace::root().join("evaluation/src/bars").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Of an evaluation.
pub fn programs_of(evaluation: &str) -> Result<Vec<Real>> {
    let name = format!("{evaluation}/programs.toml");
    let table: Table = toml::from_str(&ours(&name)?).with_context(|| name.clone())?;
    Ok(table.program)
}

/// Unused by some programs, but what a fresh machine has to have for every one.
pub const EVERYWHERE: [(&str, &str); 4] = [
    ("dpkg-dev", "/usr/bin/dpkg-source"),
    ("clang-19", "/usr/bin/clang-19"),
    ("libclang-rt-19-dev", "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a"),
    ("g++", "/usr/bin/g++"),
];
