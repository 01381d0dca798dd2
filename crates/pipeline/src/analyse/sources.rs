//! What analyses in one pass over a recording found, named as other reports name it: places in the program's sources, variables,
//! locks.

use crate::findings::compose::Composer;
use crate::findings::identity::is_system;
use crate::findings::symbols::Symbols;
use crate::record::packed::{lock_of, variables_of};
use rashomon_engine::{Findings, LinearResults};
use rashomon_event::{Frame, SiteId, Trace};
use rashomon_packed::Space;
use rashomon_report::text::names::function as short_function;
use rashomon_trace::LoadedTrace;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that a report names.
#[derive(Default)]
struct Used {
    locations: BTreeSet<u32>,
    variables: BTreeSet<u32>,
    regions: BTreeSet<u32>,
}

impl Used {
    fn by(outcome: &LinearResults) -> Self {
        let mut used = Self::default();
        for report in &outcome.reports {
            match &report.findings {
                Findings::Races(races) => {
                    for race in races.pairs().values().map(|pair| pair.first) {
                        used.variables.insert(race.variable);
                        used.locations.extend(race.earlier.iter().chain([&race.later]).map(|access| access.location));
                    }
                }
                Findings::Violations(violations) => {
                    let pairs = violations.pairs().values().map(|pair| pair.first);
                    used.locations.extend(pairs.clone().map(|violation| violation.location));
                    let of_pairs = pairs.flat_map(|violation| [Some(violation.region), violation.other]).flatten();
                    for region in of_pairs.chain(violations.places().values().map(|place| place.first)) {
                        used.locations.insert(region.location);
                        used.regions.insert(region.name);
                    }
                }
            }
        }
        used.locations.remove(&0);
        used
    }
}

/// Only what the report shows is looked up. `analysed`: of the recording, what the analyses read.
pub fn name_as_in_sources<S: Symbols + ?Sized>(outcome: &mut LinearResults, loaded: &LoadedTrace, analysed: &Trace, symbols: &S) {
    let used = Used::by(outcome);
    let describer = Composer::new(loaded, symbols, 0).describer;
    let place = |location: &u32| {
        let site = SiteId(location - 1);
        analysed.sites.get(site.index())?;
        Some((*location, place_words(&describer.site(site))?))
    };
    let locations: BTreeMap<u32, String> = used.locations.iter().filter_map(place).collect();
    let variables = variables_of(analysed, &used.variables);
    let variables = variables.into_iter().map(|(number, (at, size))| (number, describer.data(at, size))).collect();
    let names = &outcome.names;
    let lock = |number: &u32| Some((*number, describer.lock(lock_of(names, *number)?)));
    let regions: BTreeMap<u32, String> = used.regions.iter().filter_map(lock).collect();
    outcome.names.replace(Space::Location, &locations);
    outcome.names.replace(Space::Variable, &variables);
    if outcome.names.count(Space::Region) == 0 {
        outcome.names.replace(Space::Region, &regions);
    }
}

/// The user's own code, if some is inlined there: `main order.c:7:12`. `None`: there is no debug information.
fn place_words(frames: &[Frame]) -> Option<String> {
    let is_own = |frame: &&Frame| frame.file.as_deref().is_some_and(|file| !is_system(file));
    let frame = frames.iter().find(is_own).or(frames.first())?;
    let function = frame.function.as_deref().map(short_function);
    let source = frame.file.as_deref().zip(frame.line).map(|(file, line)| {
        let file = file.rsplit('/').next().unwrap_or(file);
        frame.column.map_or_else(|| format!("{file}:{line}"), |column| format!("{file}:{line}:{column}"))
    });
    let words: Vec<String> = function.into_iter().chain(source).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_inlined_the_users_line_is_told() {
        let frame = |function: &str, file: &str, column| Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(7),
            column,
            ..Frame::default()
        };
        let library = frame("std::vector::size", "/usr/include/c++/12/bits/stl_vector.h", Some(3));
        let own = frame("main", "/home/user/order.cpp", Some(12));
        assert_eq!(place_words(&[library.clone(), own]).as_deref(), Some("main order.cpp:7:12"));
        assert_eq!(place_words(&[Frame { column: None, ..library }]).as_deref(), Some("std::vector::size stl_vector.h:7"));
        assert_eq!(place_words(&[Frame { module: "program".into(), ..Frame::default() }]), None);
    }
}
