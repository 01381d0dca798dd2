//! For machines: one object, `"format": "rashomon-analysis"`, `"version": 2`. A field may be added without a new version; a field
//! that changes its meaning or goes away needs one. Events are numbered from 0.

use rashomon_engine::serialisability::Violations;
use rashomon_engine::transactions::Region;
use rashomon_engine::{Access, Findings, Outcome, Races};
use rashomon_event::harmless::harmless_json;
use rashomon_packed::{Names, Space};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    trace: &'a str,
    events: u64,
    passes: u32,
    /// Of tables, at most at a time.
    bytes_on_disk: usize,
    notices: &'a [String],
    analyses: Vec<AnalysisView>,
}

#[derive(Serialize)]
struct AnalysisView {
    analysis: &'static str,
    /// The analysis ended before this event, for lack of memory.
    until: Option<u64>,
    #[serde(flatten)]
    found: FoundView,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FoundView {
    Races {
        racing_events: u64,
        complete: bool,
        pairs: Vec<PairView>,
    },
    Violations {
        regions: u64,
        /// Those that lie on a cycle.
        violating_regions: u64,
        /// Those that were forgotten before a cycle through them was ruled out.
        forgotten_regions: u64,
        complete: bool,
        /// Where regions that lie on a cycle begin.
        places: Vec<PlaceView>,
        /// Edges that close cycles.
        violations: Vec<ViolationView>,
    },
}

#[derive(Serialize)]
struct PairView {
    variable: String,
    earlier: Option<AccessView>,
    later: AccessView,
    count: u64,
}

#[derive(Serialize)]
struct AccessView {
    event: u64,
    thread: String,
    location: Option<String>,
}

#[derive(Serialize)]
struct RegionView {
    name: String,
    thread: String,
    event: u64,
    location: Option<String>,
}

#[derive(Serialize)]
struct PlaceView {
    region: RegionView,
    count: u64,
}

#[derive(Serialize)]
struct ViolationView {
    region: RegionView,
    closed_by: AccessView,
    other_thread: String,
    other: Option<RegionView>,
    count: u64,
}

pub fn render(trace: &str, outcome: &Outcome) -> String {
    let analyses = outcome.reports.iter().map(|report| AnalysisView {
        analysis: report.kind.name(),
        until: report.until,
        found: match &report.findings {
            Findings::Races(races) => of_races(races, &outcome.names),
            Findings::Violations(violations) => of_violations(violations, &outcome.names),
        },
    });
    let document = Document {
        format: "rashomon-analysis",
        version: 2,
        trace,
        events: outcome.events,
        passes: outcome.passes,
        bytes_on_disk: outcome.bytes_on_disk,
        notices: &outcome.notices,
        analyses: analyses.collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("text and numbers");
    let mut text = harmless_json(&text).into_owned();
    text.push('\n');
    text
}

fn place(names: &Names, location: u32) -> Option<String> {
    (location != 0).then(|| names.get(Space::Location, location).into_owned())
}

fn thread(names: &Names, thread: u16) -> String {
    names.get(Space::Thread, thread.into()).into_owned()
}

fn of_races(races: &Races, names: &Names) -> FoundView {
    let access = |access: Access| AccessView {
        event: access.event,
        thread: thread(names, access.thread),
        location: place(names, access.location),
    };
    let pairs = races.pairs().values().map(|pair| PairView {
        variable: names.get(Space::Variable, pair.first.variable).into_owned(),
        earlier: pair.first.earlier.map(access),
        later: access(pair.first.later),
        count: pair.count,
    });
    FoundView::Races { racing_events: races.events(), complete: !races.dropped(), pairs: pairs.collect() }
}

fn of_violations(violations: &Violations, names: &Names) -> FoundView {
    let region = |region: Region| RegionView {
        name: names.get(Space::Region, region.name).into_owned(),
        thread: thread(names, region.thread),
        event: region.event,
        location: place(names, region.location),
    };
    let views = violations.pairs().values().map(|pair| ViolationView {
        region: region(pair.first.region),
        closed_by: AccessView {
            event: pair.first.event,
            thread: thread(names, pair.first.region.thread),
            location: place(names, pair.first.location),
        },
        other_thread: thread(names, pair.first.other_thread),
        other: pair.first.other.map(region),
        count: pair.count,
    });
    let places = violations.places().values();
    FoundView::Violations {
        regions: violations.regions(),
        violating_regions: violations.violating(),
        forgotten_regions: violations.forgotten(),
        complete: !violations.dropped(),
        places: places.map(|place| PlaceView { region: region(place.first), count: place.count }).collect(),
        violations: views.collect(),
    }
}
