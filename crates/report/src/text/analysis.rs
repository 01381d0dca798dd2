//! What each analysis found, with the first example of each pair of places.

use super::thread_words;
use crate::analysis::{Analysis, Found, Pair, Region, RegionPlace, TracedAccess, Violation};
use rashomon_event::counted;
use std::fmt::Write as _;

pub fn render(analysis: &Analysis, limit: usize) -> String {
    let mut text = format!("{}: {} events", analysis.trace, analysis.events);
    if analysis.passes > 1 {
        let _ = write!(text, ", in {} passes within the memory allowed", analysis.passes);
    }
    if analysis.bytes_on_disk > 0 {
        let _ = write!(text, ", with {} of tables on disk", bytes_words(analysis.bytes_on_disk));
    }
    text.push('\n');
    for analysed in &analysis.analyses {
        let _ = writeln!(text, "\n{}: {}", analysed.analysis, analysed.claim);
        if let Some(until) = analysed.until {
            let _ = writeln!(text, "  ended before event {until}: the memory allowed was used up");
        }
        match &analysed.found {
            Found::Races { racing_events, complete, pairs } => of_races(&mut text, *racing_events, *complete, pairs, limit),
            Found::Violations { regions, violating_regions, forgotten_regions, complete, places, violations } => {
                let more = if *complete { "" } else { "more than " };
                let begun = places.len();
                let lie = if *violating_regions == 1 { "lies" } else { "lie" };
                let (of, begun) = (counted(*regions, "region"), counted(begun as u64, "place"));
                let _ = writeln!(text, "  {violating_regions} of {of} {lie} on a cycle, begun at {more}{begun}");
                if *forgotten_regions > 0 {
                    let forgotten = counted(*forgotten_regions, "region");
                    let _ = writeln!(text, "  {forgotten} more: forgotten before a cycle through them was ruled out");
                }
                of_places(&mut text, places, limit);
                let pairs = counted(violations.len() as u64, "pair");
                let _ = writeln!(text, "  {more}{pairs} of places whose edges close cycles");
                of_violations(&mut text, violations, limit);
            }
        }
    }
    text
}

/// In the largest unit of which there is one.
fn bytes_words(bytes: usize) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut size = bytes as f64;
    let mut words = format!("{bytes} B");
    for unit in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        words = format!("{size:.2} {unit}");
    }
    words
}

fn place(location: Option<&str>) -> &str {
    location.unwrap_or("somewhere")
}

/// Threads of recordings as other reports call them; those of other traces as the trace does.
fn thread(name: &str) -> String {
    let is_path = name.split('.').all(|ordinal| !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit()));
    if is_path || name == "main" { thread_words(name) } else { name.to_owned() }
}

fn access(access: &TracedAccess) -> String {
    format!("{} ({}, event {})", place(access.location.as_deref()), thread(&access.thread), access.event)
}

fn of_races(text: &mut String, events: u64, complete: bool, pairs: &[Pair], limit: usize) {
    let more = if complete { "" } else { "more than " };
    let (accesses, places) = (counted(events, "later access"), counted(pairs.len() as u64, "pair"));
    let _ = writeln!(text, "  {accesses}, {more}{places} of places");
    for pair in pairs.iter().take(limit) {
        let earlier = pair.earlier.as_ref().map_or_else(|| "an earlier access".to_owned(), access);
        let _ = writeln!(text, "  {}: {earlier} and {}, {} ×", pair.variable, access(&pair.later), pair.count);
    }
    rest(text, pairs.len(), limit);
}

fn region(region: &Region) -> String {
    format!("{} begun at {}, event {}", region.name, place(region.location.as_deref()), region.event)
}

fn of_places(text: &mut String, places: &[RegionPlace], limit: usize) {
    for place in places.iter().take(limit) {
        let _ = writeln!(text, "  {}: {}, {} ×", thread(&place.region.thread), region(&place.region), place.count);
    }
    rest(text, places.len(), limit);
}

fn of_violations(text: &mut String, violations: &[Violation], limit: usize) {
    for Violation { region: own, closed_by, other_thread, other, count } in violations.iter().take(limit) {
        let other = other.as_ref().map_or_else(|| "outside of regions".to_owned(), region);
        let _ = writeln!(
            text,
            "  {}: {}, cut by {} {other}, closed at {} (event {}), {count} ×",
            thread(&own.thread),
            region(own),
            thread(other_thread),
            place(closed_by.location.as_deref()),
            closed_by.event,
        );
    }
    rest(text, violations.len(), limit);
}

fn rest(text: &mut String, pairs: usize, limit: usize) {
    if pairs > limit {
        let _ = writeln!(text, "  … and {} more: --limit shows them, --json all", pairs - limit);
    }
}

#[cfg(test)]
mod tests {
    use super::bytes_words;

    #[test]
    fn bytes_have_the_largest_unit() {
        assert_eq!(["1023 B", "1.00 KiB", "1.50 MiB"], [1023, 1024, 3 << 19].map(bytes_words).each_ref().map(String::as_str));
    }
}
