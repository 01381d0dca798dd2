//! What analyses in one pass over a trace found, with names. Events are numbered from 0.
//!
//! The fields are also those of the JSON format, in this order: a field that changes its meaning or goes away needs a new version
//! there.

use rashomon_event::{Evidence, Finding, FindingId, FindingKind, Side};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Analysis {
    pub trace: String,
    pub events: u64,
    pub passes: u32,
    /// Of tables, at most at a time.
    pub bytes_on_disk: usize,
    pub notices: Vec<String>,
    pub analyses: Vec<Analysed>,
}

/// What one of them found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Analysed {
    pub analysis: &'static str,
    /// What a line of it says.
    #[serde(skip)]
    pub claim: &'static str,
    /// The analysis ended before this event, for lack of memory.
    pub until: Option<u64>,
    #[serde(flatten)]
    pub found: Found,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Found {
    Races {
        racing_events: u64,
        complete: bool,
        pairs: Vec<Pair>,
    },
    Violations {
        regions: u64,
        /// Those that lie on a cycle.
        violating_regions: u64,
        /// Those that were forgotten before a cycle through them was ruled out.
        forgotten_regions: u64,
        complete: bool,
        /// Where regions that lie on a cycle begin.
        places: Vec<RegionPlace>,
        /// Edges that close cycles.
        violations: Vec<Violation>,
    },
}

/// Accesses of two places, the first example of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pair {
    pub variable: String,
    pub earlier: Option<TracedAccess>,
    pub later: TracedAccess,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TracedAccess {
    pub event: u64,
    pub thread: String,
    pub location: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Region {
    pub name: String,
    pub thread: String,
    pub event: u64,
    pub location: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegionPlace {
    pub region: Region,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    pub region: Region,
    pub closed_by: TracedAccess,
    pub other_thread: String,
    pub other: Option<Region>,
    pub count: u64,
}

impl Analysis {
    /// The same as findings, for formats that have nothing of their own to say of analyses. They are suspicions: nothing was
    /// executed.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for analysed in &self.analyses {
            match &analysed.found {
                Found::Races { pairs, .. } => findings.extend(pairs.iter().map(|pair| {
                    let sides = pair.earlier.iter().chain([&pair.later]).map(|access| access.side("access")).collect();
                    finding(analysed, FindingKind::DataRace, pair.variable.clone(), sides, pair.count)
                })),
                Found::Violations { violations, .. } => findings.extend(violations.iter().map(|violation| {
                    let regions = [Some(&violation.region), violation.other.as_ref()].into_iter().flatten().map(Region::side);
                    let sides = regions.chain([violation.closed_by.side("access that closes the cycle")]).collect();
                    finding(analysed, FindingKind::NotSerialisable, violation.region.name.clone(), sides, violation.count)
                })),
            }
        }
        for (number, finding) in (1..).zip(&mut findings) {
            finding.id = FindingId::of("analysis", number);
        }
        findings
    }
}

fn finding(analysed: &Analysed, kind: FindingKind, subject: String, sides: Vec<Side>, occurrences: u64) -> Finding {
    let evidence = match analysed.analysis {
        "lockset" => Evidence::Lockset,
        "hybrid" => Evidence::Hybrid,
        "serialisability" => Evidence::Conflict,
        _ => Evidence::HappensBefore,
    };
    let notes = vec![format!("{}: {}", analysed.analysis, analysed.claim)];
    Finding { subject, sides, notes, occurrences, ..Finding::suspected(kind, evidence, FindingId::of("analysis", 0)) }
}
