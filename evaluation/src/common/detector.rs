//! Our runtime as an online detector: how it is asked for, and the statistics it leaves.
//!
//! A program linked with our runtime detects on its own when `RASHOMON_DETECT` is set, as one linked with ThreadSanitizer does.
//! Its value is `name=value` pairs with colons between; `stats=FILE` has it count and write one `name value` line each at exit.

use super::measure::{self, Usage};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub const VARIABLE: &str = "RASHOMON_DETECT";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detector {
    Hb,
    Lockset,
    Hybrid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    None,
    Tree,
}

impl Detector {
    pub const ALL: [Self; 3] = [Self::Hb, Self::Lockset, Self::Hybrid];

    /// The value of the option `detector`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hb => "hb",
            Self::Lockset => "lockset",
            Self::Hybrid => "hybrid",
        }
    }
}

impl Filter {
    pub const ALL: [Self; 2] = [Self::None, Self::Tree];

    /// The value of the option `filter`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tree => "tree",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Configuration {
    pub detector: Detector,
    pub filter: Filter,
}

impl Configuration {
    pub fn all() -> impl Iterator<Item = Self> {
        Detector::ALL.into_iter().flat_map(|detector| Filter::ALL.map(|filter| Self { detector, filter }))
    }

    /// Title of a column.
    pub fn title(self) -> String {
        match self.filter {
            Filter::None => self.detector.name().to_owned(),
            Filter::Tree => format!("{}+tree", self.detector.name()),
        }
    }

    /// The environment in which a program with our runtime detects so. `more`: further options.
    pub fn apply<'a>(self, command: &'a mut Command, more: &str) -> &'a mut Command {
        let options = format!("detector={}:filter={}{more}", self.detector.name(), self.filter.name());
        command.env(VARIABLE, options).env_remove("TSAN_OPTIONS")
    }
}

/// Options with which a program is executed to the end and successfully, whatever is found: detection is measured, not the
/// writing of reports.
pub const SILENT: &str = ":report_bugs=0:exitcode=0";

/// What the runtime counted in one execution.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics(BTreeMap<String, u64>);

impl Statistics {
    pub fn parse(text: &str) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (name, value) = line.trim().split_once(' ').with_context(|| format!("line {}: {line}", number + 1))?;
            let value = value.trim().parse().with_context(|| format!("line {}: {line}", number + 1))?;
            values.insert(name.to_owned(), value);
        }
        Ok(Self(values))
    }

    /// Why the filter skips an access.
    pub const REASONS: [&str; 2] = ["filter_skipped_same_thread", "filter_skipped_two_threads"];

    /// 0 if the runtime does not count it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn executed(&self) -> u64 {
        self.get("accesses_executed")
    }

    /// What the filter alone kept from the detector.
    pub fn skipped(&self) -> u64 {
        Self::REASONS.map(|name| self.get(name)).iter().sum()
    }

    pub fn skipped_percent(&self) -> f64 {
        self.percent(self.skipped())
    }

    /// What the hooks recognise as covered by an access of the same span, with the filter or without.
    pub fn recognised(&self) -> u64 {
        self.get("filter_skipped_span")
    }

    /// Of the accesses executed.
    pub fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.executed().max(1) as f64
    }
}

/// One execution for its time and memory.
pub fn run(configuration: Configuration, program: &Path, arguments: &[&str], more: &str) -> Result<Usage> {
    measure::run(configuration.apply(Command::new(program).args(arguments), more))
}

/// One execution for its statistics; counting costs time, so nothing is measured.
pub fn count(configuration: Configuration, program: &Path, arguments: &[&str], more: &str) -> Result<Statistics> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let file = folder.path().join("statistics");
    let more = format!("{more}:stats={}", file.display());
    measure::run(configuration.apply(Command::new(program).args(arguments), &more))?;
    let Ok(text) = std::fs::read_to_string(&file) else {
        bail!("{} wrote no statistics under {}", program.display(), configuration.title());
    };
    Statistics::parse(&text).with_context(|| format!("statistics of {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_names_and_numbers() {
        let text = "accesses_executed 200\nfilter_skipped_same_thread 30\nfilter_skipped_two_threads \
            20\nfilter_skipped_span 100\n\nraces 0\n";
        let statistics = Statistics::parse(text).unwrap();
        assert_eq!((statistics.executed(), statistics.skipped(), statistics.get("sweeps")), (200, 50, 0));
        // What the hooks recognise anyway is no merit of the filter.
        assert_eq!((statistics.skipped_percent(), statistics.percent(statistics.recognised())), (25.0, 50.0));
        assert!(Statistics::parse("races").is_err() && Statistics::parse("races many").is_err());
        assert_eq!(Statistics::default().skipped_percent(), 0.0);
    }

    #[test]
    fn every_configuration_has_its_own_title() {
        let titles: std::collections::BTreeSet<_> = Configuration::all().map(Configuration::title).collect();
        assert_eq!(titles.len(), Detector::ALL.len() * Filter::ALL.len());
    }
}
