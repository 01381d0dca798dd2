//! Findings that nobody needs to be told of: suppressed by a file of ThreadSanitizer's form, or accepted in a baseline.
//!
//! A baseline is a text file, a finding each line: its id, its fingerprint, the marks of its cause, and what it is behind a `#`.
//! `rashomon accept` writes it. A finding is accepted if its id is; else, as a line may have been added above it, if its
//! fingerprint is that of an entry whose id was not found. An entry accepts one finding, so that what comes beside it is new.
//! What follows from an accepted bug ([`cause`]) is accepted with it: not every check finds all that one bug does.

use anyhow::{Context as _, Result};
use rashomon_event::{Finding, FindingId, counted};
use rashomon_pipeline::check::postponed::Postponed;
use rashomon_report::cause::{self, Mark};
use rashomon_report::fingerprint::fingerprint;
use rashomon_reporter::Suppressions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Longest file of either form, in bytes.
const LONGEST: u64 = 16 << 20;

/// Accepted findings.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    pub path: PathBuf,
    entries: BTreeMap<FindingId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Of a file that somebody wrote by hand there may be none.
    fingerprint: Option<String>,
    marks: BTreeSet<Mark>,
    /// What it is, as the file says it.
    what: String,
}

impl Baseline {
    /// Reads a file that is there.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read(path).with_context(|| format!("cannot read the baseline {}", path.display()))?;
        let mut entries = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let (id, what) = line.split_once('#').map_or((line, ""), |(id, what)| (id, what.trim()));
            let place = || format!("{}, line {}", path.display(), number + 1);
            let mut words = id.split_whitespace();
            let Some(id) = words.next() else { continue };
            let id = FindingId::new(id).with_context(place)?;
            let fingerprint = words.next().map(str::to_owned);
            let marks = words.map(str::parse).collect::<Result<_, String>>().map_err(anyhow::Error::msg).with_context(place)?;
            entries.insert(id, Entry { fingerprint, marks, what: what.to_owned() });
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
        let entry = Entry { fingerprint: Some(fingerprint(finding)), marks: cause::marks(finding), what };
        self.entries.insert(finding.id.clone(), entry).is_none()
    }

    pub fn write(&self) -> Result<()> {
        let line = |(id, Entry { fingerprint, marks, what }): (&FindingId, &Entry)| {
            let marks = marks.iter().map(Mark::to_string);
            let words: Vec<String> = std::iter::once(id.to_string()).chain(fingerprint.clone()).chain(marks).collect();
            let what = if what.is_empty() { String::new() } else { format!("  # {what}") };
            format!("{}{what}\n", words.join(" "))
        };
        let lines: String = self.entries.iter().map(line).collect();
        let text = format!("# Accepted findings: rashomon check --baseline FILE\n{lines}");
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// What it accepts, and the entries that nothing matches.
    fn matched(&self, findings: &[Finding]) -> Matched {
        let same = findings.iter().filter_map(|finding| Some((finding.id.clone(), self.entries.get_key_value(&finding.id)?.0)));
        let mut entries: BTreeMap<FindingId, &FindingId> = same.collect();
        let mut left: Vec<_> = self.entries.iter().filter(|(id, _)| !entries.contains_key(*id)).collect();
        let mut others: Vec<&Finding> = findings.iter().filter(|finding| !entries.contains_key(&finding.id)).collect();
        // What is claimed needs an entry most.
        others.sort_by_key(|finding| finding.verdict.rank());
        for finding in &others {
            let own = fingerprint(finding);
            let entry = left.iter().position(|(_, entry)| entry.fingerprint.as_ref() == Some(&own));
            if let Some(at) = entry {
                entries.insert(finding.id.clone(), left.remove(at).0);
            }
        }
        let mut accepted: BTreeSet<FindingId> = entries.into_keys().collect();
        let found = findings.iter().filter(|finding| accepted.contains(&finding.id)).map(cause::marks);
        let mut found: Vec<BTreeSet<Mark>> = found.collect();
        for finding in others.into_iter().filter(|finding| !accepted.contains(&finding.id)).collect::<Vec<_>>() {
            let marks = cause::marks(finding);
            if self.entries.values().any(|entry| cause::covers(&entry.marks, &marks)) {
                accepted.insert(finding.id.clone());
                found.push(marks);
            }
        }
        let is_missing =
            |Entry { marks, .. }: &Entry| !found.iter().any(|found| cause::covers(marks, found) || cause::covers(found, marks));
        Matched { accepted, missing: left.iter().filter(|(_, entry)| is_missing(entry)).count() as u64 }
    }
}

/// What a baseline makes of findings.
#[derive(Default)]
struct Matched {
    accepted: BTreeSet<FindingId>,
    /// Entries of bugs of which nothing was found.
    missing: u64,
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

/// What is suppressed, or accepted by its id, is forced behind all others.
pub fn postponed(suppressions: Vec<SuppressionFile>, baseline: Option<Baseline>) -> Postponed {
    if suppressions.is_empty() && baseline.is_none() {
        return Postponed::default();
    }
    Postponed::where_known(move |finding| {
        baseline.as_ref().is_some_and(|baseline| baseline.entries.contains_key(&finding.id))
            || suppressions.iter().any(|file| file.rules.suppresses(finding))
    })
}

/// What is left to be told.
pub struct Sifted {
    pub findings: Vec<Finding>,
    /// Of what is left out, and of what matched nothing.
    pub notes: Vec<String>,
    /// How many were left out.
    pub known: u64,
    /// A suppression or an entry of the baseline matched nothing.
    pub is_stale: bool,
}

/// Leaves out what is suppressed or accepted. Refuted findings are nobody's concern, and count for nothing.
pub fn sift(findings: &[Finding], suppressions: &[SuppressionFile], baseline: Option<&Baseline>) -> Sifted {
    let mut files = suppressions.to_vec();
    let matched = baseline.map(|baseline| baseline.matched(findings)).unwrap_or_default();
    let (mut kept, mut accepted, mut suppressed) = (Vec::new(), 0, 0);
    for finding in findings {
        if matched.accepted.contains(&finding.id) {
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
    let missing = matched.missing;
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
    Sifted { findings: kept, notes, known: accepted + suppressed, is_stale }
}

/// `1 finding was`, `2 findings were`.
fn were(number: u64) -> String {
    format!("{} {}", counted(number, "finding"), if number == 1 { "was" } else { "were" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Evidence, FindingKind, Frame, Side, Verdict};

    fn race_on(variable: &str, id: u32) -> Finding {
        let subject = format!("global {variable} (4 bytes)");
        Finding { subject, ..Finding::suspected(FindingKind::DataRace, Evidence::Hybrid, FindingId::of("race", id)) }
    }

    fn race_in_block(id: u32, actions: [&str; 2]) -> Finding {
        let side = |action: &str, function: &str| Side {
            thread: String::new(),
            action: action.into(),
            stack: vec![Frame { function: Some(function.into()), ..Frame::default() }],
            held: Vec::new(),
            created_at: Vec::new(),
        };
        let subject = format!("{id} bytes in heap block of 8 bytes allocated at f, {id} bytes into it");
        let sides = vec![side(actions[0], "use"), side(actions[1], "end")];
        Finding { subject, sides, verdict: Verdict::Predicted, ..race_on("", id) }
    }

    #[test]
    fn what_follows_from_an_accepted_bug_is_accepted_and_keeps_its_entries() {
        let freed = race_in_block(1, ["read of 4 bytes", "free of 8 bytes"]);
        let later = race_in_block(2, ["read of 4 bytes", "write of 4 bytes"]);
        let beside = race_in_block(3, ["read of 4 bytes", "write of 4 bytes"]);
        let left = |accepted: &[&Finding], found: &[&Finding]| {
            let mut baseline = Baseline::default();
            accepted.iter().for_each(|finding| assert!(baseline.accept(finding)));
            let found: Vec<Finding> = found.iter().map(|finding| (*finding).clone()).collect();
            let sifted = sift(&found, &[], Some(&baseline));
            (sifted.findings.len(), sifted.is_stale)
        };
        assert_eq!(left(&[&freed], &[&freed, &later]), (0, false));
        assert_eq!(left(&[&later], &[&freed, &later]), (1, false), "a free is worse than what follows from it");
        assert_eq!(left(&[&freed, &later], &[&freed]), (0, false), "the other entry is of the same bug");
        assert_eq!(left(&[&freed, &later], &[]), (0, true));
        assert_eq!(left(&[&later], &[&later, &beside]), (1, false), "nothing was freed");
    }

    #[test]
    fn a_baseline_comes_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut baseline = Baseline { path: folder.path().join("baseline"), ..Baseline::default() };
        let freed = race_in_block(1, ["read of 4 bytes", "free of 8 bytes"]);
        baseline.accept(&freed);
        baseline.write().unwrap();
        let again = Baseline::read(&baseline.path).unwrap();
        assert_eq!(again.entries[&freed.id].marks, cause::marks(&freed));
        fs::write(&baseline.path, "race-1 0123 cause=1").unwrap();
        assert!(format!("{:#}", Baseline::read(&baseline.path).unwrap_err()).contains("baseline, line 1: `cause=1`"));
    }

    #[test]
    fn what_is_suppressed_or_accepted_is_postponed() {
        let (noise, known, new) = (race_on("noise", 1), race_on("known", 2), race_on("new", 3));
        let mut baseline = Baseline::default();
        baseline.accept(&known);
        let rule = SuppressionFile::of_rule("race:^noise$").unwrap();
        let has = |postponed: Postponed| [&noise, &known, &new].map(|finding| postponed.has(finding));
        assert_eq!(has(postponed(Vec::new(), None)), [false; 3]);
        assert_eq!(has(postponed(vec![rule.clone()], None)), [true, false, false]);
        assert_eq!(has(postponed(vec![rule], Some(baseline))), [true, true, false]);
    }
}
