//! The run as a whole: what was executed, how it ended, and how many findings came of it.
//!
//! The program's exit and our status are kept apart: a program may succeed and race, or fail and be free of races.

use rashomon_event::{Finding, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Notes of a run that begin so say what a check tried, and what it did not.
pub const TRIED: &str = "tried: ";
pub const NOT_TRIED: &str = "not tried: ";
/// Notes of a run that say which code was not seen have these words.
pub const NOTHING_PREDICTED: &str = "so that nothing is predicted";

/// How the recorded program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProgramExit {
    Code {
        code: i32,
    },
    Signal {
        signal: i32,
    },
    /// It was ended by us because it ran longer than allowed.
    TimedOut,
    /// It was ended by the runtime because no thread could go on.
    Blocked,
    /// It was ended by the runtime because every thread repeated itself for ever, or was blocked.
    Endless,
    /// There was no run: the trace came from elsewhere.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub proven: u64,
    pub predicted: u64,
    pub suspected: u64,
    pub diverged: u64,
    pub refuted: u64,
}

impl Counts {
    pub fn of(findings: &[Finding]) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *match finding.verdict {
                Verdict::Proven { .. } => &mut counts.proven,
                Verdict::Predicted => &mut counts.predicted,
                Verdict::Suspected => &mut counts.suspected,
                Verdict::Diverged { .. } => &mut counts.diverged,
                Verdict::Refuted => &mut counts.refuted,
            } += 1;
        }
        counts
    }
}

/// The strongest claim among the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing proven, nothing predicted.
    Clean,
    /// The same so far: it did not come to its end, or had no time to look at everything.
    Incomplete,
    Predicted,
    Proven,
}

impl Status {
    pub fn of(counts: Counts, is_whole: bool) -> Self {
        if counts.proven > 0 {
            Self::Proven
        } else if counts.predicted > 0 {
            Self::Predicted
        } else if is_whole {
            Self::Clean
        } else {
            Self::Incomplete
        }
    }
}

/// What there was no time to look at. A report that finds nothing says less if there is any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unexamined {
    /// For which no schedule was looked for.
    pub suspicions: u64,
    /// Of critical sections that may belong together, and were not interleaved with another thread's.
    #[serde(default)]
    pub pairs: u64,
    /// Recorded processes that were not looked at, or not to their end.
    pub recordings: u64,
}

impl Unexamined {
    pub const fn is_nothing(&self) -> bool {
        self.suspicions == 0 && self.pairs == 0 && self.recordings == 0
    }
}

/// A test case that was checked by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCase {
    /// As its framework calls it.
    pub name: String,
    /// How the program ended that executed it alone.
    pub exit: ProgramExit,
    /// Ids of what was proven or predicted in it.
    pub findings: Vec<String>,
    /// Where everything of it is kept.
    pub store: String,
    /// Only there if it could not be checked: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    pub command: Vec<String>,
    pub exit: ProgramExit,
    pub recordings: u32,
    /// Over all recordings.
    pub events: u64,
    /// Largest number of threads in a recording.
    pub threads: u64,
    /// Re-executions made to confirm findings.
    pub executions: u64,
    /// Candidates that the budget left untried.
    pub untried: u64,
    #[serde(default, skip_serializing_if = "Unexamined::is_nothing")]
    pub unexamined: Unexamined,
    /// Where everything is kept.
    pub store: String,
    pub notes: Vec<String>,
    /// Of a program whose test cases were checked one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_cases: Vec<TestCase>,
    /// The tool had not come to its end when this was written.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// Findings that a report leaves out, as they are known.
    #[serde(skip)]
    pub known: u64,
}

impl RunSummary {
    /// Of what was found without a run of ours.
    pub const fn without_run() -> Self {
        Self {
            command: Vec::new(),
            exit: ProgramExit::Unknown,
            recordings: 0,
            events: 0,
            threads: 0,
            executions: 0,
            untried: 0,
            unexamined: Unexamined { suspicions: 0, pairs: 0, recordings: 0 },
            store: String::new(),
            notes: Vec::new(),
            test_cases: Vec::new(),
            interrupted: false,
            known: 0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
pub(crate) const fn is_false(value: &bool) -> bool {
    !*value
}
