//! Races that are mended together: of the same bytes, accessed in the same way in the same two functions, under the same locks.
//!
//! Two functions that each touch a variable at a hundred lines race at ten thousand pairs of places. Each pair is a finding of
//! its own, but whoever has seen a few of them has seen the bug. So findings are gone after *fairly*: first one of each cause,
//! then a second one of each, and so on; and when [`PROVEN`] of a cause are proven, the others of it are set aside and counted.
//! Nothing is lost by that which is not alike: another variable, another function, another lock, or what ends a block instead of
//! reading or writing it, is another cause.

use rashomon_event::{AccessClass, Candidate, CandidateKind, Finding, FindingKind, Side, Trace};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher as _;

/// Proven races of one cause, after which the others of it are set aside.
pub(crate) const PROVEN: u32 = 8;
/// Suspicions of one cause that are taken from one recording.
pub(crate) const TAKEN: u32 = 16;

/// What races that are mended together have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cause(u64);

impl Cause {
    /// Of a race; other findings are one of a kind.
    pub fn of(finding: &Finding, candidate: &Candidate, trace: &Trace) -> Option<Self> {
        let CandidateKind::Race { first, second } = candidate.kind else { return None };
        if finding.kind != FindingKind::DataRace {
            return None;
        }
        let (one, other) = (trace.access(first)?, trace.access(second)?);
        let address = one.address.max(other.address);
        // The subject names a variable or a block and the place in it, but not where in a stack.
        let offset = trace.object_at(address).map_or(address.0, |object| address.0 - trace.objects[object.index()].base.0);
        let accesses = [one, other].map(|access| (access.class, access.atomic));
        let mut sides: Vec<u64> =
            finding.sides.iter().zip(accesses).map(|(side, access)| hash(&(code_and_locks(side), does(access)))).collect();
        sides.sort_unstable();
        Some(Self(hash(&(&finding.subject, offset, sides))))
    }
}

/// What an access does to the bytes. A read and a write of one `x++` are one thing; a free is none of them.
fn does((class, atomic): (AccessClass, bool)) -> (bool, bool) {
    (class == AccessClass::End, atomic)
}

/// The function, whatever its lines, and the locks that are held in it.
fn code_and_locks(side: &Side) -> u64 {
    let frame = side.stack.first();
    let code = frame.map(|frame| (&frame.module, frame.function.as_ref().ok_or(frame.offset)));
    let mut locks: Vec<&str> = side.held.iter().map(|held| held.name.as_str()).collect();
    locks.sort_unstable();
    hash(&(code, locks))
}

fn hash(what: &impl std::hash::Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// How many there are of each cause.
#[derive(Default)]
pub(crate) struct Counts(FxHashMap<Cause, u32>);

impl Counts {
    /// Counts one more; says how many there were before. What has no cause is always the first of its kind.
    pub fn count(&mut self, cause: Option<Cause>) -> u32 {
        let Some(cause) = cause else { return 0 };
        let known = self.0.entry(cause).or_default();
        *known += 1;
        *known - 1
    }

    pub fn of(&self, cause: Option<Cause>) -> u32 {
        cause.and_then(|cause| self.0.get(&cause).copied()).unwrap_or_default()
    }
}

/// Each with how many of its cause come before it.
pub(crate) fn ranked<T>(all: Vec<T>, cause: impl Fn(&T) -> Option<Cause>) -> Vec<(u32, T)> {
    let mut counts = Counts::default();
    all.into_iter().map(|one| (counts.count(cause(&one)), one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_cause_waits_for_those_before_it() {
        let cause = |&(cause, _): &(u64, char)| Some(Cause(cause)).filter(|_| cause > 0);
        let all = vec![(1, 'a'), (1, 'b'), (1, 'c'), (0, 'd'), (2, 'e'), (0, 'f'), (2, 'g')];
        let ranks: Vec<(u32, char)> = ranked(all, cause).into_iter().map(|(rank, (_, name))| (rank, name)).collect();
        assert_eq!(ranks, [(0, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (0, 'e'), (0, 'f'), (1, 'g')]);
    }

    #[test]
    fn what_ends_a_block_and_what_is_atomic_are_causes_of_their_own() {
        let of = |class| [false, true].map(|atomic| does((class, atomic)));
        assert_eq!(of(AccessClass::Read), of(AccessClass::Write));
        let mut all = [of(AccessClass::Read), of(AccessClass::End)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn lines_make_no_cause_but_functions_and_locks_do() {
        let side = |function: &str, line: u32, locks: &[&str]| {
            let frame = rashomon_event::Frame { function: Some(function.into()), line: Some(line), ..Default::default() };
            let held =
                |name: &&str| rashomon_event::finding::HeldLock { name: (*name).into(), acquired_at: Vec::new(), shared: false };
            Side {
                thread: String::new(),
                action: String::new(),
                stack: vec![frame],
                held: locks.iter().map(held).collect(),
                created_at: Vec::new(),
            }
        };
        let one = code_and_locks(&side("f", 1, &["a", "b"]));
        assert_eq!(one, code_and_locks(&side("f", 2, &["b", "a"])));
        assert_ne!(one, code_and_locks(&side("g", 1, &["a", "b"])));
        assert_ne!(one, code_and_locks(&side("f", 1, &["a"])));
    }
}
