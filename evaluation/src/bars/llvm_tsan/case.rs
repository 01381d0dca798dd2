//! One test file: the commands in its `RUN:` lines, whether it applies here, and what it expects.

use super::condition::{self, Features};
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What a test expects to be reported: the most special of what its `CHECK` lines name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    Race,
    UseAfterFree,
    MutexMisuse,
    Deadlock,
    Signal,
    ThreadLeak,
    IgnoreLeft,
    /// Nothing may be reported.
    Silent,
    /// Reports are not what it is about.
    Other,
}

impl Class {
    pub const ALL: [Self; 9] = [
        Self::Race,
        Self::UseAfterFree,
        Self::MutexMisuse,
        Self::Deadlock,
        Self::Signal,
        Self::ThreadLeak,
        Self::IgnoreLeft,
        Self::Silent,
        Self::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::UseAfterFree => "use-after-free",
            Self::MutexMisuse => "mutex-misuse",
            Self::Deadlock => "deadlock",
            Self::Signal => "signal",
            Self::ThreadLeak => "thread-leak",
            Self::IgnoreLeft => "ignore-left",
            Self::Silent => "silent",
            Self::Other => "other",
        }
    }

    /// Words of a report's first line, the special ones first.
    const WORDS: [(&'static str, Self); 12] = [
        ("heap-use-after-free", Self::UseAfterFree),
        ("lock-order-inversion", Self::Deadlock),
        ("thread leak", Self::ThreadLeak),
        ("signal-unsafe", Self::Signal),
        ("spoils errno", Self::Signal),
        ("destroy of a locked", Self::MutexMisuse),
        ("double lock", Self::MutexMisuse),
        ("unlock of", Self::MutexMisuse),
        ("read lock of", Self::MutexMisuse),
        ("wrong context", Self::MutexMisuse),
        ("invalid mutex", Self::MutexMisuse),
        ("data race", Self::Race),
    ];

    fn of(text: &str) -> Self {
        let (mut expected, mut forbidden) = (Vec::new(), false);
        for line in text.lines() {
            let Some(at) = line.find("CHECK") else { continue };
            let Some((directive, pattern)) = line[at..].split_once(':') else { continue };
            if !pattern.contains("ThreadSanitizer") {
                continue;
            }
            if directive.ends_with("-NOT") {
                forbidden = true;
            } else if pattern.contains("ignores enabled") {
                expected.push(Self::IgnoreLeft);
            } else {
                expected.extend(Self::WORDS.iter().filter(|(words, _)| pattern.contains(words)).map(|&(_, class)| class));
            }
        }
        let special = |class: &&Self| **class != Self::Race;
        match expected.iter().find(special).or(expected.first()) {
            Some(class) => *class,
            None if forbidden => Self::Silent,
            None => Self::Other,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Path below the folder of tests.
    pub name: String,
    pub path: PathBuf,
    pub class: Class,
    pub commands: Vec<String>,
    /// Why it does not apply here.
    pub unsupported: Option<String>,
    pub expected_to_fail: bool,
}

/// Every test below `folder`, sorted by name. Files without commands are no tests.
pub fn all(folder: &Path, features: &Features) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    // The other folders hold tests for other systems.
    for sub in ["", "Linux", "libcxx"] {
        let entries = fs::read_dir(folder.join(sub)).with_context(|| format!("cannot read {}", folder.join(sub).display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c" || extension == "cpp") {
                let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                let case = Case::read(name.clone(), path, &String::from_utf8_lossy(&text), features);
                cases.push(case.with_context(|| name)?);
            }
        }
    }
    cases.retain(|case| !case.commands.is_empty());
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

impl Case {
    fn read(name: String, path: PathBuf, text: &str, features: &Features) -> Result<Self> {
        let mut unsupported = None;
        for required in conditions(text, "REQUIRES:") {
            if !condition::holds(required, features)? {
                unsupported.get_or_insert(format!("requires {required}"));
            }
        }
        for excluded in conditions(text, "UNSUPPORTED:") {
            if condition::holds(excluded, features)? {
                unsupported.get_or_insert(format!("unsupported with {excluded}"));
            }
        }
        let mut expected_to_fail = false;
        for failing in conditions(text, "XFAIL:") {
            expected_to_fail |= condition::holds(failing, features)?;
        }
        Ok(Self { name, path, class: Class::of(text), commands: commands(text), unsupported, expected_to_fail })
    }
}

/// What stands behind `keyword`, at commas apart.
fn conditions<'a>(text: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| Some(&line[line.find(keyword)? + keyword.len()..]))
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|condition| !condition.is_empty())
}

/// The commands, with continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        let Some(at) = line.find("RUN:") else { continue };
        let line = line[at + 4..].trim();
        let (part, goes_on) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match commands.last_mut().filter(|_| continued) {
            Some(command) => command.push_str(part),
            None => commands.push(part.to_owned()),
        }
        continued = goes_on;
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_lines_are_one_command() {
        let text = "// RUN: %cc %s \\\n// RUN: -o %t\n// RUN: %t\nint main() {}\n";
        assert_eq!(commands(text), ["%cc %s -o %t", "%t"]);
    }

    #[test]
    fn the_most_special_expectation_names_the_class() {
        let class = |lines: &[&str]| Class::of(&lines.join("\n"));
        assert_eq!(class(&["// CHECK: WARNING: ThreadSanitizer: data race"]), Class::Race);
        assert_eq!(
            class(&["// CHECK: WARNING: ThreadSanitizer: data race", "// CHECK: ThreadSanitizer: heap-use-after-free"]),
            Class::UseAfterFree
        );
        assert_eq!(class(&["// CHECK-NOT: ThreadSanitizer: data race", "// CHECK: DONE"]), Class::Silent);
        assert_eq!(class(&["// CHECK: DONE"]), Class::Other);
        assert_eq!(class(&["// CHECK-SUPP: ThreadSanitizer: Matched 1 suppressions"]), Class::Other);
    }

    #[test]
    fn a_test_for_something_else_does_not_apply() {
        let features: Features = ["linux".to_owned()].into();
        let read = |text| Case::read("a.c".into(), "a.c".into(), text, &features).unwrap();
        assert!(read("// REQUIRES: linux\n// RUN: true").unsupported.is_none());
        assert_eq!(read("// REQUIRES: linux, sunrpc").unsupported.as_deref(), Some("requires sunrpc"));
        assert_eq!(read("// UNSUPPORTED: darwin, linux").unsupported.as_deref(), Some("unsupported with linux"));
        assert!(read("// XFAIL: *").expected_to_fail);
    }
}
