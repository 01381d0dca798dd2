//! Variables that are declared to belong together: in a file, or in the source by `RASHOMON_CORRELATED` of `rashomon.h`.
//!
//! Either is text: a line for each set, its name, a colon, and names of variables separated by commas; `#` begins a comment. The
//! macro puts such lines into a section of the program. A name stands for all of the variable that an execution accesses. Limits:
//! variables with static storage; of each execution [`MOST_PLACES`] different addresses are looked at.

use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use object::{Object as _, ObjectSection as _};
use rashomon_event::{Address, Deadline, ObjectKind};
use rashomon_units::{Bytes, ExtendedRace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where the macro puts its lines, each ended by a zero.
const SECTION: &str = "rashomon_sets";
/// Bytes of them.
const MOST_BYTES: u64 = 1 << 20;
const MOST_PLACES: usize = 1 << 16;

/// A correlated set by the names of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub set: String,
    pub variables: Vec<String>,
}

/// What a user declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    pub sets: Vec<Declared>,
    /// Lines that declare nothing, in words.
    pub complaints: Vec<String>,
}

impl Declarations {
    /// Of a file, which is called so.
    pub fn of(file: &str, text: &str) -> Self {
        let (sets, wrong) = parse(text);
        let complaints = wrong.into_iter().map(|(line, why)| format!("{file}:{line}: not judged: {why}")).collect();
        Self { sets, complaints }
    }
}

/// Sets, and lines that are none, with their numbers. Lines that name the same set are one declaration.
pub fn parse(text: &str) -> (Vec<Declared>, Vec<(usize, String)>) {
    let mut sets: Vec<Declared> = Vec::new();
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        // Names in C++ have colons of their own.
        let parts = line.split_once(": ").or_else(|| line.split_once(':').filter(|(_, rest)| !rest.starts_with(':')));
        let Some((set, variables)) = parts.filter(|(set, _)| !set.trim().is_empty()) else {
            wrong.push((number + 1, "a line is a name of a set, a colon, and names of variables".to_owned()));
            continue;
        };
        let names: Vec<String> =
            variables.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            wrong.push((number + 1, format!("no variable of the set {} is named", set.trim())));
            continue;
        }
        match sets.iter_mut().find(|known| known.set == set.trim()) {
            Some(known) => known.variables.extend(names),
            None => sets.push(Declared { set: set.trim().to_owned(), variables: names }),
        }
    }
    (sets, wrong)
}

/// What the program's own source declares.
pub fn of_program(executable: &Path) -> Vec<Declared> {
    let text = rashomon_symbolize::with_object(executable, |object| {
        let section = object.section_by_name(SECTION).filter(|section| section.size() <= MOST_BYTES);
        Ok(section.and_then(|section| section.data().ok()).map(|data| String::from_utf8_lossy(data).replace('\0', "\n")))
    });
    text.ok().flatten().map(|text| parse(&text).0).unwrap_or_default()
}

/// Of which declared sets a race is, as notes; `ranges`: their bytes.
pub(crate) fn declared_of<'n>(
    race: &'n ExtendedRace,
    declared: &'n [Declared],
    ranges: &'n [Vec<Bytes>],
) -> impl Iterator<Item = String> + 'n {
    let overlaps = |one: &Bytes| race.members.iter().any(|member| member.start < one.end() && one.start < member.end());
    let sets = declared.iter().zip(ranges).filter(move |(_, ranges)| ranges.iter().any(overlaps));
    sets.map(|(set, _)| format!("declared to belong together: {}", set.set))
}

/// Names in declarations that no execution had a variable of.
pub(crate) fn not_accessed(missing: &BTreeSet<String>) -> Option<String> {
    let names: Vec<&str> = missing.iter().map(String::as_str).collect();
    let what = "declared to belong together, and no execution accessed a variable of that name";
    (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
}

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// The bytes of each set's members that this execution accesses; and the names of which there is nothing, sorted.
    pub(crate) fn declared(&self, sets: &[Declared], deadline: Deadline) -> (Vec<Vec<Bytes>>, BTreeSet<String>) {
        let mut missing: BTreeSet<String> = sets.iter().flat_map(|set| set.variables.iter().cloned()).collect();
        let trace = self.trace();
        let mut places: BTreeMap<Address, u32> = BTreeMap::new();
        for index in deadline.bound(trace.indices()).filter(|_| !sets.is_empty()) {
            let Some(access) = trace.access(index) else { continue };
            if places.len() < MOST_PLACES || places.contains_key(&access.address) {
                let size = places.entry(access.address).or_default();
                *size = (*size).max(access.size);
            }
        }
        let mut ranges = vec![Vec::new(); sets.len()];
        for (address, size) in places {
            let is_global = self.describer.object(address).is_some_and(|object| matches!(object.kind, ObjectKind::Global { .. }));
            let Some(name) = self.describer.name_of_data(address).filter(|_| is_global) else { continue };
            for (set, ranges) in sets.iter().zip(&mut ranges) {
                if set.variables.contains(&name) {
                    missing.remove(&name);
                    ranges.push(Bytes::new(address.0, size));
                }
            }
        }
        (ranges, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sets_and_what_is_no_set_is_told() {
        let text = "# together\nlog: buffer, length # both\n\nnothing\nlog: flushed\nempty: ,\nspace: app::head, app::tail\n";
        let (sets, wrong) = parse(text);
        let set = |set: &str, names: &[&str]| Declared {
            set: set.to_owned(),
            variables: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(sets, [set("log", &["buffer", "length", "flushed"]), set("space", &["app::head", "app::tail"])]);
        assert_eq!(wrong.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 6]);
    }
}
