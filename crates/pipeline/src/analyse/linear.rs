//! What the analyses in one pass found, as a report has it: indices become names.

use rashomon_engine::serialisability::Violations;
use rashomon_engine::transactions::Region;
use rashomon_engine::{Access, Findings, Races};
use rashomon_packed::{Names, Space};
use rashomon_report::analysis::{self, Analysed, Analysis, Found, Pair, RegionPlace, TracedAccess, Violation};

pub use rashomon_engine::serialisability::Regions;
pub use rashomon_engine::{Kind, LinearResults, Progress, Settings, analyse};

/// `trace`: what the user calls it.
pub fn analysis_of(trace: &str, outcome: &LinearResults) -> Analysis {
    let names = &outcome.names;
    let analyses = outcome.reports.iter().map(|report| Analysed {
        analysis: report.kind.name(),
        claim: report.kind.claim(),
        until: report.until,
        found: match &report.findings {
            Findings::Races(races) => of_races(races, names),
            Findings::Violations(violations) => of_violations(violations, names),
        },
    });
    Analysis {
        trace: trace.to_owned(),
        events: outcome.events,
        passes: outcome.passes,
        bytes_on_disk: outcome.bytes_on_disk,
        notices: outcome.notices.clone(),
        analyses: analyses.collect(),
    }
}

fn location(names: &Names, location: u32) -> Option<String> {
    (location != 0).then(|| names.get(Space::Location, location).into_owned())
}

fn thread(names: &Names, thread: u16) -> String {
    names.get(Space::Thread, thread.into()).into_owned()
}

fn access(names: &Names, access: Access) -> TracedAccess {
    let (event, thread) = (access.event, thread(names, access.thread));
    TracedAccess { event, thread, location: location(names, access.location) }
}

fn of_races(races: &Races, names: &Names) -> Found {
    let pairs = races.pairs().values().map(|pair| Pair {
        variable: names.get(Space::Variable, pair.first.variable).into_owned(),
        earlier: pair.first.earlier.map(|earlier| access(names, earlier)),
        later: access(names, pair.first.later),
        count: pair.count,
    });
    Found::Races { racing_events: races.events(), complete: !races.dropped(), pairs: pairs.collect() }
}

fn region(names: &Names, region: Region) -> analysis::Region {
    analysis::Region {
        name: names.get(Space::Region, region.name).into_owned(),
        thread: thread(names, region.thread),
        event: region.event,
        location: location(names, region.location),
    }
}

fn of_violations(violations: &Violations, names: &Names) -> Found {
    let edges = violations.pairs().values().map(|pair| Violation {
        region: region(names, pair.first.region),
        closed_by: TracedAccess {
            event: pair.first.event,
            thread: thread(names, pair.first.region.thread),
            location: location(names, pair.first.location),
        },
        other_thread: thread(names, pair.first.other_thread),
        other: pair.first.other.map(|other| region(names, other)),
        count: pair.count,
    });
    let places = violations.places().values();
    Found::Violations {
        regions: violations.regions(),
        violating_regions: violations.violating(),
        forgotten_regions: violations.forgotten(),
        complete: !violations.dropped(),
        places: places.map(|place| RegionPlace { region: region(names, place.first), count: place.count }).collect(),
        violations: edges.collect(),
    }
}
