//! Findings of one cause, told as one: races on the same object, which the same lock or the same order would mend, races of the
//! same line in a stack, and deadlocks of locks that are taken at the same places, whoever calls.

use super::{Look, clean, undecided};
use crate::order::{Shown, by_importance};
use rashomon_event::{Finding, FindingKind, Frame};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Members of a group, besides the one that is told, that have a line.
const MOST: usize = 5;

/// The first is told; it is the surest.
pub type Group<'a> = Vec<&'a Finding>;

/// The findings to show, in groups, in the order of the first of each.
pub fn groups(findings: &[Finding], shown: Shown, ungrouped: bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for finding in by_importance(findings, shown) {
        let same = |group: &&mut Group<'_>| !ungrouped && is_of_one_cause(group[0], finding);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// Whether two findings have one cause, and are as sure as each other.
fn is_of_one_cause(one: &Finding, other: &Finding) -> bool {
    let is_alike = match one.kind {
        FindingKind::DataRace => is_race_on_one_object(one, other),
        FindingKind::Deadlock => !lock_places(one).is_empty() && lock_places(one) == lock_places(other),
        _ => false,
    };
    is_alike && other.kind == one.kind && one.verdict.rank() == other.verdict.rank()
}

/// What lies in a stack may have no name. Of the same bytes of one stack, accesses at the same place are taken to be to the
/// same one.
fn is_race_on_one_object(one: &Finding, other: &Finding) -> bool {
    match (object_of(&one.subject), object_of(&other.subject)) {
        (Some(object), Some(same)) => object == same,
        (None, None) => one.subject == other.subject && access_places(one).any(|place| access_places(other).any(|p| p == place)),
        _ => false,
    }
}

/// File, line, column.
type Place<'a> = (&'a str, u32, Option<u32>);

/// In the code that its user knows best.
fn place(stack: &[Frame]) -> Option<Place<'_>> {
    let frame = Frame::best_known(stack)?;
    Some((frame.file.as_deref()?, frame.line?, frame.column))
}

fn access_places(finding: &Finding) -> impl Iterator<Item = Place<'_>> {
    finding.sides.iter().filter_map(|side| place(&side.stack))
}

/// Of each side of a deadlock: where it waits, and where it took what it holds. Empty: not all of them are known.
fn lock_places(finding: &Finding) -> BTreeSet<Vec<Place<'_>>> {
    let sides = finding.sides.iter().map(|side| {
        let stacks = std::iter::once(&side.stack).chain(side.held.iter().map(|held| &held.acquired_at));
        stacks.map(|stack| place(stack)).collect::<Option<Vec<_>>>()
    });
    sides.collect::<Option<_>>().unwrap_or_default()
}

/// What races: a variable with static storage or of a function, or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object<'a> {
    name: &'a str,
    function: Option<&'a str>,
}

/// The object that a subject is about, without the bytes in it: `global x+8 (4 bytes)`, `4 bytes in heap block of …, 8 bytes into
/// it`. `None`: a subject that names no object of its own, such as a place in a stack.
pub(super) fn object_of(subject: &str) -> Option<Object<'_>> {
    if let Some(local) = subject.strip_prefix("local ") {
        let local = local.rsplit_once(" (").map_or(local, |(local, _)| local);
        let (name, function) = local.split_once(" of ")?;
        return Some(Object { name: without_members(name), function: Some(function) });
    }
    if let Some(name) = subject.strip_prefix("global ") {
        let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
        let name = match name.rsplit_once('+') {
            Some((object, offset)) if offset.bytes().all(|byte| byte.is_ascii_digit()) => object,
            _ => name,
        };
        return Some(Object { name: without_members(name), function: None });
    }
    let (_, object) = subject.split_once(" in ")?;
    let object = match object.rsplit_once(", ") {
        Some((object, offset)) if offset.ends_with(" into it") => object,
        _ => object,
    };
    object.starts_with("heap block").then_some(Object { name: object, function: None })
}

/// The variable, without members and elements of it: `stats` of `stats.table[3].lock`. What is in brackets of a name, such as
/// arguments of templates, is no member, and a compiler numbers static variables of functions: `calls.0`.
fn without_members(name: &str) -> &str {
    let mut depth = 0i32;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth -= 1,
            '[' if depth == 0 && at > 0 => return &name[..at],
            '.' if depth == 0 && !name[at + 1..].starts_with(|next: char| next.is_ascii_digit()) => return &name[..at],
            _ => {}
        }
    }
    name
}

impl Look<'_> {
    /// The members behind the first, a line each.
    pub fn members(&self, out: &mut String, group: &[&Finding]) {
        let [_, others @ ..] = group else { return };
        if others.is_empty() {
            return;
        }
        let many = if others.len() == 1 { "once more" } else { "as well" };
        let what = match group[0].kind {
            FindingKind::Deadlock => "locks taken at the same places deadlock",
            _ => "the same object races at these places",
        };
        let _ = writeln!(out, "  = {what} {many}:");
        for finding in others.iter().take(MOST) {
            let line = format!("{}: {} [{}]", undecided::sides(finding), clean(&finding.subject), clean(&finding.id));
            self.line(out, "      ", &line);
        }
        if others.len() > MOST {
            let _ = writeln!(out, "      … and {} more; --ungrouped tells each", others.len() - MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Object, object_of};

    #[test]
    fn objects_have_no_offsets() {
        for (subject, object) in [
            ("global words (4 bytes)", Some("words")),
            ("global words+4096 (4 bytes)", Some("words")),
            ("global stats.table[3].lock (4 bytes)", Some("stats")),
            ("global grid[3][4] (4 bytes)", Some("grid")),
            ("global calls.0 (4 bytes)", Some("calls.0")),
            ("global Table<int [3]>::all.count (4 bytes)", Some("Table<int [3]>::all")),
            (
                "Stats::count (4 bytes) in heap block of 8 bytes allocated at f (a.c:3)",
                Some("heap block of 8 bytes allocated at f (a.c:3)"),
            ),
            ("global guard variable for instance()::made (1 byte)", Some("guard variable for instance()::made")),
            (
                "4 bytes in heap block of 16 bytes allocated at entries (program.cpp:34), 4 bytes into it",
                Some("heap block of 16 bytes allocated at entries (program.cpp:34)"),
            ),
            ("4 bytes in heap block of 16 bytes allocated at f (a.c:3)", Some("heap block of 16 bytes allocated at f (a.c:3)")),
            ("8 bytes in the stack of the main thread", None),
            ("mutex a, mutex b", None),
        ] {
            assert_eq!(object_of(subject).map(|object| object.name), object);
        }
        let local = object_of("local totals[3].count of work (thread 0) (8 bytes)");
        assert_eq!(local, Some(Object { name: "totals", function: Some("work (thread 0)") }));
    }
}
