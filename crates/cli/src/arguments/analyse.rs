//! `rashomon analyse`.

use super::Reading;
use clap::{Args, ValueEnum};
use rashomon_pipeline::analyse::filter::Filter;
use rashomon_pipeline::analyse::linear::Kind;
use rashomon_pipeline::analyse::linear::Regions;
use rashomon_report::Format;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct AnalyseOptions {
    /// A file, a recording, a store, or `-`: standard input. May be compressed by gzip or Zstandard.
    pub trace: PathBuf,
    /// The analyses, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["hb", "shb", "lockset"])]
    pub analysis: Vec<AnalysisName>,
    /// Leave redundant accesses out first; only for --analysis hb,hybrid. Default: every access counts.
    #[arg(long, value_enum)]
    pub filter: Option<FilterName>,
    #[command(flatten)]
    pub reading: Reading,
    /// Report only pairs within windows of N events (published evaluations use 10000). Default: the whole trace, except for cp,
    /// which always uses windows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    /// Threads of the analysis (1 to 512). The result is the same for any number. Default: the number of processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub workers: Option<u32>,
    /// Seconds to read the trace; the rest is left out, which is reported. Further passes (see --memory) end where the first did.
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    pub budget: Option<Duration>,
    /// Memory for tables, such as 4G. What does not fit takes several passes; tables of shb, wcp, cp and serialisability go to
    /// disk. Default: no limit.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<usize>,
    /// The folder for tables on disk, in an unnamed file. Default: TMPDIR, or /var/tmp.
    #[arg(long, value_name = "FOLDER", requires = "memory")]
    pub spill_to: Option<PathBuf>,
    /// Which regions must be serialisable (--analysis serialisability).
    #[arg(long, value_enum, default_value_t = RegionsName::Marked)]
    pub regions: RegionsName,
    /// The most pairs of locations that text output shows for each analysis.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// How the report is written, to standard output.
    #[arg(long, value_parser = super::formats(), default_value = "text")]
    pub report_format: &'static dyn Format,
    /// The same as --report-format json.
    #[arg(long, conflicts_with = "report_format")]
    pub json: bool,
    /// What makes the exit code 66.
    #[arg(long, value_enum, default_value_t = FailOnFound::Never)]
    pub fail_on: FailOnFound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AnalysisName {
    /// Races under happens-before.
    Hb,
    /// Schedulable happens-before: each race is real in some reordering.
    Shb,
    /// Variables that no lock protects, after Eraser.
    Lockset,
    /// Pairs that nothing but locks could order and that share none, after Carril and Tichy.
    Hybrid,
    /// Weak causal precedence.
    Wcp,
    /// Causal precedence, within windows.
    Cp,
    /// Regions that are not conflict-serialisable.
    Serialisability,
}

impl From<AnalysisName> for Kind {
    fn from(name: AnalysisName) -> Self {
        match name {
            AnalysisName::Hb => Self::Hb,
            AnalysisName::Shb => Self::Shb,
            AnalysisName::Lockset => Self::LockSet,
            AnalysisName::Hybrid => Self::Hybrid,
            AnalysisName::Wcp => Self::Wcp,
            AnalysisName::Cp => Self::Cp,
            AnalysisName::Serialisability => Self::Serialisability,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FilterName {
    /// TREE: every racing pair of code locations stays. Needs the trace in memory.
    Tree,
    /// TREE with span redundancy: every racing variable stays, not every pair. Needs the trace in memory.
    Span,
    /// Accesses that repeat one of their thread's segment: every racing variable stays.
    Segment,
}

impl From<FilterName> for Filter {
    fn from(name: FilterName) -> Self {
        match name {
            FilterName::Tree => Self::Tree,
            FilterName::Span => Self::Span,
            FilterName::Segment => Self::Segment,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RegionsName {
    /// Regions with a begin and an end.
    Marked,
    /// From the first lock a thread takes to the last one it gives back.
    CriticalSections,
    /// Both; the outermost counts.
    All,
}

impl From<RegionsName> for Regions {
    fn from(name: RegionsName) -> Self {
        match name {
            RegionsName::Marked => Self::Marked,
            RegionsName::CriticalSections => Self::CriticalSections,
            RegionsName::All => Self::All,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnFound {
    /// A finding that is real in some execution: by hb, shb or serialisability.
    Real,
    /// Any finding.
    Any,
    Never,
}

/// A size such as 100, 64K, 512M or 4G.
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: usize = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err("not a number with B, K, M or G behind it".into()),
    };
    let number: usize = digits.parse().map_err(|_| "not a number with B, K, M or G behind it".to_owned())?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(|| "a size that cannot be".into())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes() {
        assert_eq!(bytes("100"), Ok(100));
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("64kib"), Ok(64 << 10));
        for bad in ["", "G", "-1", "0", "1X", "99999999999999G", "1.5G"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
