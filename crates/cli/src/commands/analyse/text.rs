//! For people: what each analysis found, with the first example of each pair of places.

use rashomon_engine::serialisability::{Violation, Violations};
use rashomon_engine::transactions::Region;
use rashomon_engine::{Access, Findings, Outcome, Races};
use rashomon_packed::{Names, Space};
use std::fmt::Write as _;

pub fn render(trace: &str, outcome: &Outcome, limit: usize) -> String {
    let mut text = format!("{trace}: {} events", outcome.events);
    if outcome.passes > 1 {
        let _ = write!(text, ", in {} passes within the memory allowed", outcome.passes);
    }
    if outcome.bytes_on_disk > 0 {
        let _ = write!(text, ", with {} of tables on disk", indicatif::HumanBytes(outcome.bytes_on_disk as u64));
    }
    text.push('\n');
    for report in &outcome.reports {
        let _ = writeln!(text, "\n{}: {}", report.kind.name(), report.kind.claim());
        if let Some(until) = report.until {
            let _ = writeln!(text, "  ended before event {until}: the memory allowed was used up");
        }
        match &report.findings {
            Findings::Races(races) => of_races(&mut text, races, &outcome.names, limit),
            Findings::Violations(violations) => of_violations(&mut text, violations, &outcome.names, limit),
        }
    }
    text
}

fn access(names: &Names, access: Access) -> String {
    let thread = names.get(Space::Thread, access.thread.into());
    format!("{} ({thread}, event {})", place(names, access.location), access.event)
}

fn place(names: &Names, location: u32) -> String {
    if location == 0 { "somewhere".into() } else { names.get(Space::Location, location).into_owned() }
}

fn of_races(text: &mut String, races: &Races, names: &Names, limit: usize) {
    let (events, pairs) = (races.events(), races.pairs().len());
    let more = if races.dropped() { "more than " } else { "" };
    let _ = writeln!(text, "  {events} later accesses, {more}{pairs} pairs of places");
    for pair in races.pairs().values().take(limit) {
        let race = pair.first;
        let earlier = race.earlier.map_or_else(|| "an earlier access".to_owned(), |earlier| access(names, earlier));
        let variable = names.get(Space::Variable, race.variable);
        let _ = writeln!(text, "  {variable}: {earlier} and {}, {} ×", access(names, race.later), pair.count);
    }
    rest(text, pairs, limit);
}

fn region(names: &Names, region: Region) -> String {
    format!("{} begun at {}, event {}", names.get(Space::Region, region.name), place(names, region.location), region.event)
}

fn of_violations(text: &mut String, violations: &Violations, names: &Names, limit: usize) {
    let (violating, places, pairs) = (violations.violating(), violations.places().len(), violations.pairs().len());
    let more = if violations.dropped() { "more than " } else { "" };
    let _ = writeln!(text, "  {violating} of {} regions lie on a cycle, begun at {more}{places} places", violations.regions());
    if violations.forgotten() > 0 {
        let _ =
            writeln!(text, "  {} regions more were forgotten before a cycle through them was ruled out", violations.forgotten());
    }
    for place in violations.places().values().take(limit) {
        let thread = names.get(Space::Thread, place.first.thread.into());
        let _ = writeln!(text, "  {thread}: {}, {} ×", region(names, place.first), place.count);
    }
    rest(text, places, limit);
    let _ = writeln!(text, "  {more}{pairs} pairs of places whose edges close cycles");
    for pair in violations.pairs().values().take(limit) {
        let Violation { region: own, event, location, other_thread, other } = pair.first;
        let thread = names.get(Space::Thread, own.thread.into());
        let other = other.map_or_else(|| "outside of regions".to_owned(), |other| region(names, other));
        let other_thread = names.get(Space::Thread, other_thread.into());
        let _ = writeln!(
            text,
            "  {thread}: {}, cut by {other_thread} {other}, closed at {} (event {event}), {} ×",
            region(names, own),
            place(names, location),
            pair.count
        );
    }
    rest(text, pairs, limit);
}

fn rest(text: &mut String, pairs: usize, limit: usize) {
    if pairs > limit {
        let _ = writeln!(text, "  … and {} more: --limit shows them, --json all", pairs - limit);
    }
}
