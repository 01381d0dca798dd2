//! Findings that nobody needs to be told of: suppressed by a file of ThreadSanitizer's form, or accepted in a baseline.
//!
//! A baseline is a text file, a finding each line: its id, and what it is behind a `#`. `rashomon accept` writes it. Ids stay the
//! same over runs, and over rebuilds that do not rename the functions and variables of a finding.

use anyhow::{Context as _, Result};
use rashomon_event::{Finding, FindingId, counted};
use rashomon_reporter::Suppressions;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Longest file of either form, in bytes.
const LONGEST: u64 = 16 << 20;

/// Accepted findings.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    pub path: PathBuf,
    /// What each is, as the file says it.
    entries: BTreeMap<FindingId, String>,
}

impl Baseline {
    /// Reads a file that is there.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read(path).with_context(|| format!("cannot read the baseline {}", path.display()))?;
        let mut entries = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let (id, what) = line.split_once('#').map_or((line, ""), |(id, what)| (id, what.trim()));
            if !id.trim().is_empty() {
                let id = FindingId::new(id.trim()).with_context(|| format!("{}, line {}", path.display(), number + 1))?;
                entries.insert(id, what.to_owned());
            }
        }
        Ok(Self { path: path.to_path_buf(), entries })
    }

    /// The same; empty where there is none yet.
    pub fn read_or_new(path: &Path) -> Result<Self> {
        match path.try_exists() {
            Ok(false) => Ok(Self { path: path.to_path_buf(), entries: BTreeMap::new() }),
            _ => Self::read(path),
        }
    }

    /// Whether it was not in it before.
    pub fn accept(&mut self, finding: &Finding) -> bool {
        let what = rashomon_report::title(finding).replace(['\n', '#'], " ");
        self.entries.insert(finding.id.clone(), what).is_none()
    }

    pub fn write(&self) -> Result<()> {
        let lines =
            self.entries.iter().map(|(id, what)| if what.is_empty() { format!("{id}\n") } else { format!("{id}  # {what}\n") });
        let text = format!("# Accepted findings: rashomon check --baseline FILE\n{}", lines.collect::<String>());
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A file of suppressions, as an option names it.
#[derive(Clone, Debug)]
pub struct SuppressionFile {
    path: PathBuf,
    rules: Suppressions,
}

impl SuppressionFile {
    pub fn read(path: &Path) -> Result<Self> {
        let text = read(path).with_context(|| format!("cannot read the suppressions {}", path.display()))?;
        let mut rules = Suppressions::default();
        rules.read(&text).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_path_buf(), rules })
    }

    /// A single suppression, as an option gives it.
    pub fn of_rule(rule: &str) -> Result<Self> {
        let mut rules = Suppressions::default();
        rules.read(rule)?;
        Ok(Self { path: "--suppress".into(), rules })
    }
}

fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > LONGEST {
        return Err(io::Error::other(format!("{length} bytes are too many: it may have {LONGEST}")));
    }
    fs::read_to_string(path)
}

/// What is left to be told.
pub struct Sifted {
    pub findings: Vec<Finding>,
    /// Of what is left out, and of what matched nothing.
    pub notes: Vec<String>,
    /// A suppression or an entry of the baseline matched nothing.
    pub is_stale: bool,
}

/// Leaves out what is suppressed or accepted. Refuted findings are nobody's concern, and count for nothing.
pub fn sift(findings: &[Finding], suppressions: &[SuppressionFile], baseline: Option<&Baseline>) -> Sifted {
    let mut files = suppressions.to_vec();
    let (mut kept, mut accepted, mut suppressed) = (Vec::new(), 0, 0);
    for finding in findings {
        if baseline.is_some_and(|baseline| baseline.entries.contains_key(&finding.id)) {
            accepted += 1;
        } else if files.iter_mut().any(|file| file.rules.suppress_finding(finding)) {
            suppressed += 1;
        } else {
            kept.push(finding.clone());
        }
    }
    let mut notes = Vec::new();
    if suppressed > 0 {
        let rules = files.iter().flat_map(|file| file.rules.matched());
        let rules: Vec<String> = rules.map(|rule| format!("{}:{} ({})", rule.kind, rule.pattern, rule.hits)).collect();
        notes.push(format!("{} suppressed by {}", were(suppressed), rules.join(", ")));
    }
    if let Some(baseline) = baseline.filter(|_| accepted > 0) {
        notes.push(format!("{} accepted in {}", were(accepted), baseline.path.display()));
    }
    let found = |id: &FindingId| findings.iter().any(|finding| finding.id == *id);
    let missing = baseline.map_or(0, |baseline| baseline.entries.keys().filter(|id| !found(id)).count() as u64);
    if let Some(baseline) = baseline.filter(|_| missing > 0) {
        notes.push(format!("{} of {} not found this time", counted(missing, "finding"), baseline.path.display()));
    }
    let mut is_stale = missing > 0;
    for file in &files {
        for rule in file.rules.unmatched() {
            notes.push(format!("suppression {}:{} of {} matches nothing", rule.kind, rule.pattern, file.path.display()));
            is_stale = true;
        }
    }
    Sifted { findings: kept, notes, is_stale }
}

/// `1 finding was`, `2 findings were`.
fn were(number: u64) -> String {
    format!("{} {}", counted(number, "finding"), if number == 1 { "was" } else { "were" })
}
