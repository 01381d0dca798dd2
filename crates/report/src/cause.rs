//! Which findings follow from one bug, though each has a fingerprint of its own: what a baseline accepts with another.
//!
//! 1. A thread that uses a block that another one frees touches whatever lies there by then. So a race of a free and an access is
//!    the cause of the other races of the same two functions on heap blocks.
//! 2. A failure whose critical order ([`rashomon_event::Finding::critical`]) is that of two accesses that race is what the race
//!    does.
//!
//! Each finding has marks, and a mark of one covers marks of others. They hold names of functions and objects only, as
//! fingerprints do.
//!
//! Limits. A race on a heap block does not cover one of a free, though it may follow from it: that is worse. What is not known of
//! a finding makes no mark. So a failure of which no order was found is of no other's cause.

use crate::fingerprint::{function_alone, hash, thing};
use rashomon_event::finding::Origin;
use rashomon_event::{Finding, FindingKind, Frame, Side};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What is told of two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// They race.
    Race,
    /// A failure needs their order.
    Order,
    /// One of them frees what the other uses.
    Freed,
    /// They are to a heap block.
    Heap,
}

/// `race=5d41402abc4b2a76`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    role: Role,
    accesses: u64,
}

const ROLES: [(Role, &str); 4] = [(Role::Race, "race"), (Role::Order, "order"), (Role::Freed, "freed"), (Role::Heap, "heap")];

impl Mark {
    fn covers(&self, other: &Self) -> bool {
        let roles = (self.role, other.role);
        let does =
            matches!(roles, (Role::Race | Role::Order, Role::Order) | (Role::Order, Role::Race) | (Role::Freed, Role::Heap));
        does && self.accesses == other.accesses
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = ROLES.iter().find(|(role, _)| *role == self.role).ok_or(fmt::Error)?;
        write!(f, "{word}={:016x}", self.accesses)
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mark = || {
            let (role, accesses) = word.split_once('=')?;
            let (role, _) = ROLES.iter().find(|(_, name)| *name == role)?;
            Some(Self { role: *role, accesses: u64::from_str_radix(accesses, 16).ok()? })
        };
        mark().ok_or_else(|| format!("`{}` is no mark of a cause", rashomon_event::harmless(word)))
    }
}

/// All that is known of a finding. None: it stands for itself.
pub fn marks(finding: &Finding) -> BTreeSet<Mark> {
    match (finding.kind, &finding.sides[..], &finding.critical) {
        (FindingKind::DataRace | FindingKind::UseAfterFree, [one, other], _) => {
            of_pair(Role::Race, [one, other], &finding.subject)
        }
        (FindingKind::Failure, _, Some(critical)) => of_pair(Role::Order, critical.sides.each_ref(), &critical.subject),
        _ => BTreeSet::new(),
    }
}

/// Whether another finding is of the bug that a known one is of.
pub fn covers(known: &BTreeSet<Mark>, other: &BTreeSet<Mark>) -> bool {
    known.iter().any(|mark| other.iter().any(|covered| mark.covers(covered)))
}

fn of_pair(role: Role, sides: [&Side; 2], subject: &str) -> BTreeSet<Mark> {
    let mut functions = sides.map(|side| function(&side.stack));
    functions.sort();
    let [Some(one), Some(other)] = functions else { return BTreeSet::new() };
    let block = block_of(subject);
    let object = thing(block.unwrap_or(subject));
    let pair = [one, other];
    let mut marks = BTreeSet::from([Mark { role, accesses: hash(&[&pair[..], &[object]].concat()) }]);
    if block.is_some() {
        marks.insert(Mark { role: Role::Heap, accesses: hash(&pair) });
        if sides.iter().any(|side| side.action.starts_with("free of ")) {
            marks.insert(Mark { role: Role::Freed, accesses: hash(&pair) });
        }
    }
    marks
}

/// The heap block that a subject is about, without how far into it: where one byte is used after its end, others are.
fn block_of(subject: &str) -> Option<&str> {
    let block = &subject[subject.find("heap block")?..];
    let inside = block.rsplit_once(", ").filter(|(_, into)| into.ends_with(" into it"));
    Some(inside.map_or(block, |(block, _)| block))
}

/// Of the code that its user knows best; of constructors and destructors, who makes or ends the object: what is done with a block
/// is done there.
fn function(stack: &[Frame]) -> Option<String> {
    let known = Frame::best_known(stack)?.origin();
    let names = || stack.iter().filter(|frame| frame.origin() == known).filter_map(|frame| frame.function.as_deref());
    let outside = names().find(|name| known != Origin::Program || !makes_or_ends(name));
    outside.or_else(|| names().next()).map(function_alone)
}

/// `ns::Settings::Settings(int)`, `Settings::~Settings()`.
fn makes_or_ends(name: &str) -> bool {
    let outside = crate::fingerprint::without_brackets(name, &[('(', ')'), ('<', '>')]);
    let mut parts = outside.rsplit("::");
    match (parts.next(), parts.next()) {
        (Some(last), Some(class)) => last.strip_prefix('~').unwrap_or(last) == class,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::finding::CriticalOrder;
    use rashomon_event::{Evidence, FindingId};

    fn side(action: &str, functions: &[&str]) -> Side {
        let frame = |function: &&str| Frame {
            function: Some((*function).to_owned()),
            file: Some("/p/a.cpp".into()),
            line: Some(1),
            ..Frame::default()
        };
        let stack = functions.iter().map(frame).collect();
        Side { thread: String::new(), action: action.into(), stack, held: Vec::new(), created_at: Vec::new() }
    }

    fn block(line: u32, into: u32) -> String {
        format!("4 bytes in heap block of 8 bytes allocated at make() (a.cpp:{line}), {into} bytes into it")
    }

    fn race(subject: &str, sides: [Side; 2]) -> Finding {
        let id = FindingId::new("race-1").unwrap();
        let finding = Finding::suspected(FindingKind::DataRace, Evidence::Hybrid, id);
        Finding { subject: subject.into(), sides: sides.into(), ..finding }
    }

    fn failure(subject: &str, sides: [Side; 2]) -> Finding {
        let critical = Some(Box::new(CriticalOrder { sides, subject: subject.into() }));
        Finding {
            kind: FindingKind::Failure,
            critical,
            ..race("exit code 1", [side("ran last", &["main"]), side("", &["main"])])
        }
    }

    fn is_one(one: &Finding, other: &Finding) -> bool {
        covers(&marks(one), &marks(other))
    }

    #[test]
    fn what_a_use_after_free_touches_later_follows_from_it() {
        let read = || side("read of 4 bytes", &["Registry::area()"]);
        let free = race(&block(3, 4), [read(), side("free of 8 bytes", &["Registry::replace(int)"])]);
        let write = || side("write of 4 bytes", &["Settings::Settings(int)", "Registry::replace(int)"]);
        let later = race(&block(9, 0), [write(), read()]);
        assert!(is_one(&free, &later));
        assert!(!is_one(&later, &free), "that is worse");
        assert!(is_one(&free, &race(&block(3, 0), [read(), side("free of 8 bytes", &["Registry::replace(int)"])])));
        assert!(!is_one(&later, &race(&block(3, 0), [read(), write()])), "nothing is freed");
        assert!(!is_one(&free, &race("global x (4 bytes)", [read(), write()])), "a variable is not freed");
        assert!(!is_one(&free, &race(&block(3, 4), [read(), side("write of 4 bytes", &["Registry::clear()"])])));
    }

    #[test]
    fn a_failure_is_what_the_race_does_whose_order_it_needs() {
        let sides = || [side("write of 4 bytes", &["f"]), side("read of 4 bytes", &["g"])];
        let [first, second] = sides();
        let of_x = race("global x (4 bytes)", [second, first]);
        assert!(is_one(&of_x, &failure("global x (4 bytes)", sides())));
        assert!(is_one(&failure("global x (4 bytes)", sides()), &of_x));
        assert!(is_one(&failure("global x (4 bytes)", sides()), &failure("global x (4 bytes)", sides())));
        assert!(!is_one(&of_x, &failure("global y (4 bytes)", sides())), "another variable");
        assert!(!is_one(&of_x, &Finding { critical: None, ..failure("global x (4 bytes)", sides()) }));
        assert!(!is_one(&of_x, &of_x), "a second race beside an accepted one is new");
    }

    #[test]
    fn marks_are_words() {
        let of_x = marks(&failure(&block(3, 4), [side("free of 8 bytes", &["f"]), side("read of 4 bytes", &["g"])]));
        assert_eq!(of_x.len(), 3);
        for mark in of_x {
            assert_eq!(mark.to_string().parse(), Ok(mark));
        }
        assert!("race=x".parse::<Mark>().is_err() && "found=1".parse::<Mark>().is_err() && "race".parse::<Mark>().is_err());
    }
}
