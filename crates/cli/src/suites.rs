//! Test frameworks: which one a program is of, the test cases that it has, and how one of them is executed alone.

mod pytest;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use memchr::memmem;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// The longest list of test cases that is taken, in bytes.
const LONGEST: usize = 64 << 20;
/// GoogleTest shares out its test cases by these: how many shares there are, and which one is meant.
const SHARES: [&str; 2] = ["GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Framework {
    #[value(name = "gtest")]
    GoogleTest,
    Catch2,
    Doctest,
    Pytest,
}

/// A test case, as its framework calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    /// Behind the program's own arguments.
    pub argument: String,
}

impl Framework {
    /// Told by the names that the file holds: those of the framework's functions, or, where they were stripped, of its options.
    pub fn of(program: &Path, arguments: &[OsString]) -> Result<Option<Self>> {
        if pytest::is_run_by(program, arguments) {
            return Ok(Some(Self::Pytest));
        }
        let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let holds = |words: &[&str]| words.iter().any(|word| memmem::find(&bytes, word.as_bytes()).is_some());
        let known: [(Self, &[&str]); 3] = [
            (Self::GoogleTest, &["N7testing4Test", "N7testing8UnitTest", "gtest_list_tests"]),
            (Self::Doctest, &["N7doctest", "dt-list-test-cases"]),
            (Self::Catch2, &["N5Catch7Session", "N5Catch10TestCase", "list-test-names-only"]),
        ];
        Ok(known.into_iter().find(|(_, words)| holds(words)).map(|(framework, _)| framework))
    }

    /// What the program itself lists, of what its own arguments select. `more` of its environment.
    pub fn cases(self, program: &Path, arguments: &[OsString], more: Option<(OsString, OsString)>) -> Result<Vec<Case>> {
        let options: &[&[&str]] = match self {
            Self::GoogleTest => &[&["--gtest_list_tests"]],
            // Of version 2, which version 3 does not know, and of that.
            Self::Catch2 => &[&["--list-test-names-only"], &["--list-tests", "--verbosity", "quiet"]],
            Self::Doctest => &[&["--list-test-cases", "--no-intro", "--no-version", "--no-colors"]],
            Self::Pytest => &[&pytest::LIST],
        };
        for options in options {
            let mut list = Command::new(program);
            list.args(arguments).args(*options).stdin(Stdio::null()).stderr(Stdio::null());
            list.envs(more.clone());
            // What it would do in its share alone has to be known as a whole.
            for name in SHARES {
                list.env_remove(name);
            }
            let output = list.output().with_context(|| format!("cannot execute {}", program.display()))?;
            if output.stdout.len() > LONGEST {
                bail!("{} lists more than {LONGEST} bytes of test cases", program.display());
            }
            let names = self.names(&String::from_utf8_lossy(&output.stdout), also_disabled(arguments));
            if !names.is_empty() {
                return Ok(self.share(names.into_iter().map(|name| self.case(name)).collect()));
            }
        }
        Ok(Vec::new())
    }

    fn names(self, text: &str, also_disabled: bool) -> Vec<String> {
        match self {
            Self::GoogleTest => google_names(text, also_disabled),
            Self::Catch2 => text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned()).collect(),
            Self::Doctest => {
                let own = |line: &&str| !line.starts_with("[doctest]") && !line.starts_with("=====") && !line.is_empty();
                text.lines().filter(own).map(str::to_owned).collect()
            }
            Self::Pytest => pytest::names(text),
        }
    }

    fn case(self, name: String) -> Case {
        let escaped = |special: &str| -> String {
            name.chars().flat_map(|letter| special.contains(letter).then_some('\\').into_iter().chain([letter])).collect()
        };
        let argument = match self {
            Self::GoogleTest => format!("--gtest_filter={name}"),
            Self::Catch2 => escaped("\\,[\"*"),
            Self::Doctest => format!("--test-case={}", escaped("\\,")),
            Self::Pytest => pytest::argument(&name),
        };
        Case { name, argument }
    }

    /// The program's own arguments without those that select test cases, where the last would not win.
    pub fn unselected(self, arguments: &[OsString]) -> Vec<OsString> {
        if self == Self::Pytest {
            return pytest::unselected(arguments);
        }
        let selects = |argument: &&OsString| self == Self::GoogleTest && text_of(argument).starts_with("--gtest_filter=");
        arguments.iter().filter(|argument| !selects(argument)).cloned().collect()
    }

    /// In the environment of each test case: alone, it is the whole share.
    pub fn environment(self) -> Vec<(OsString, OsString)> {
        let values = ["1", "0"];
        let is_shared = self == Self::GoogleTest && share().is_some();
        SHARES.iter().zip(values).filter(|_| is_shared).map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn share(self, mut cases: Vec<Case>) -> Vec<Case> {
        if let Some((shares, own)) = share().filter(|_| self == Self::GoogleTest) {
            let mut number = 0..;
            cases.retain(|_| number.next().is_some_and(|number: usize| number % shares == own));
        }
        cases
    }
}

/// As the environment asks GoogleTest for.
fn share() -> Option<(usize, usize)> {
    let [shares, own] = SHARES.map(|name| std::env::var(name).ok()?.parse().ok());
    shares.zip(own).filter(|(shares, own)| own < shares)
}

fn text_of(argument: &OsStr) -> String {
    argument.to_string_lossy().into_owned()
}

fn also_disabled(arguments: &[OsString]) -> bool {
    let argument = |argument: &OsString| {
        ["--gtest_also_run_disabled_tests", "--gtest_also_run_disabled_tests=1"].contains(&text_of(argument).as_str())
    };
    arguments.iter().any(argument)
}

/// Suites, and below each, indented, its tests. Comments tell types and values of parameters.
fn google_names(text: &str, also_disabled: bool) -> Vec<String> {
    let (mut suite, mut names) = ("", Vec::new());
    for line in text.lines() {
        let word = line.split('#').next().unwrap_or_default().trim_end();
        match word.strip_prefix("  ") {
            Some(test) if !suite.is_empty() => names.push(format!("{suite}{}", test.trim())),
            // What main prints before is no suite.
            _ => suite = if word.ends_with('.') && !word.contains(' ') { word } else { "" },
        }
    }
    let is_disabled = |name: &str| name.split(['.', '/']).any(|part| part.starts_with("DISABLED_"));
    names.retain(|name| also_disabled || !is_disabled(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_each_framework_are_read() {
        let google =
            "Running main() from gtest_main.cc\nQueue.\n  Push\n  DISABLED_Pop\nNumbers/Sum.\n  Adds/0  # GetParam() = 1\n";
        assert_eq!(Framework::GoogleTest.names(google, false), ["Queue.Push", "Numbers/Sum.Adds/0"]);
        assert_eq!(Framework::GoogleTest.names(google, true).len(), 3);
        assert_eq!(Framework::Catch2.names("a queue\nand, a [stack]\n", false), ["a queue", "and, a [stack]"]);
        let doctest =
            "[doctest] listing all test case names\n==========\na queue\n==========\n[doctest] unskipped test cases: 1\n";
        assert_eq!(Framework::Doctest.names(doctest, false), ["a queue"]);
    }

    #[test]
    fn names_select_themselves_alone() {
        let argument = |framework: Framework, name: &str| framework.case(name.into()).argument;
        assert_eq!(argument(Framework::GoogleTest, "Queue.Push"), "--gtest_filter=Queue.Push");
        assert_eq!(argument(Framework::Catch2, "and, a [stack]"), "and\\, a \\[stack]");
        assert_eq!(argument(Framework::Doctest, "one, two"), "--test-case=one\\, two");
        let arguments = ["--gtest_filter=Queue.*", "-x"].map(OsString::from);
        assert_eq!(Framework::GoogleTest.unselected(&arguments), ["-x"]);
        assert_eq!(Framework::Catch2.unselected(&arguments), arguments);
    }
}
