//! Findings of one cause, told as one: races on the same object, which the same lock or the same order would mend.

use super::{Look, clean, undecided};
use crate::order::{Shown, by_importance};
use rashomon_event::{Finding, FindingKind};
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

/// Whether two findings are races on one object, as sure as each other.
fn is_of_one_cause(one: &Finding, other: &Finding) -> bool {
    one.kind == FindingKind::DataRace
        && other.kind == one.kind
        && one.verdict.rank() == other.verdict.rank()
        && object_of(&one.subject).is_some_and(|object| object_of(&other.subject) == Some(object))
}

/// The object that a subject is about, without the bytes in it: `global x+8 (4 bytes)`, `4 bytes in heap block of …, 8 bytes into
/// it`. `None`: a subject that names no object of its own, such as a place in a stack.
fn object_of(subject: &str) -> Option<&str> {
    if let Some(name) = subject.strip_prefix("global ") {
        let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
        let name = match name.rsplit_once('+') {
            Some((object, offset)) if offset.bytes().all(|byte| byte.is_ascii_digit()) => object,
            _ => name,
        };
        return Some(without_members(name));
    }
    let (_, object) = subject.split_once(" in ")?;
    let object = match object.rsplit_once(", ") {
        Some((object, offset)) if offset.ends_with(" into it") => object,
        _ => object,
    };
    object.starts_with("heap block").then_some(object)
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
        let _ = writeln!(out, "  = the same object races at these places {many}:");
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
    use super::object_of;

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
            assert_eq!(object_of(subject), object);
        }
    }
}
