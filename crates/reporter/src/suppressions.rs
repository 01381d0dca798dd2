//! Which warnings nobody wants: ThreadSanitizer's suppression files.
//!
//! A line is `type:pattern`; lines that begin with `#` and empty ones say nothing. A pattern ([`rashomon_abi::pattern`]) matches
//! a part of a function's, file's, module's or variable's name. A type that is not known fails the file, as there.
//! `called_from_lib` is the runtime's business.

use crate::error::SuppressionError;
use rashomon_abi::pattern::matches;
use rashomon_event::{self as event, Finding, FindingKind};
use rashomon_report::warning::{Frame, Kind, Location, Place, Stack, Warning};

/// Types that a file may use.
const TYPES: [&str; 8] = ["race", "race_top", "mutex", "thread", "deadlock", "signal", "called_from_lib", "none"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub kind: &'static str,
    pub pattern: String,
    pub hits: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    list: Vec<Suppression>,
}

impl Suppressions {
    /// Adds the lines of a file.
    pub fn read(&mut self, text: &str) -> Result<(), SuppressionError> {
        for (index, line) in text.lines().enumerate() {
            // As there: blanks at both ends do not count.
            let line = line.trim_matches([' ', '\t', '\r']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |fault| SuppressionError { line: index + 1, text: line.to_owned(), fault };
            let (kind, pattern) = line.split_once(':').ok_or_else(|| fault("has no colon"))?;
            let kind = *TYPES.iter().find(|known| **known == kind).ok_or_else(|| fault("has an unknown type"))?;
            self.list.push(Suppression { kind, pattern: pattern.to_owned(), hits: 0 });
        }
        Ok(())
    }

    /// Whether a warning is not wanted. Counts for the suppression that says so.
    pub fn suppress(&mut self, warning: &Warning) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let found = self.find(warning);
        if let Some(index) = found {
            self.list[index].hits += 1;
        }
        found.is_some()
    }

    /// The same of a finding of `check` and other commands: the frames of its sides and of where their threads were created, and
    /// the variable.
    pub fn suppress_finding(&mut self, finding: &Finding) -> bool {
        let found = kind_of(finding.kind).and_then(|kind| self.find_finding(kind, finding));
        if let Some(index) = found {
            self.list[index].hits += 1;
        }
        found.is_some()
    }

    /// As [`Self::suppress_finding`], and counts for nothing.
    pub fn suppresses(&self, finding: &Finding) -> bool {
        kind_of(finding.kind).is_some_and(|kind| self.find_finding(kind, finding).is_some())
    }

    fn find_finding(&self, kind: &str, finding: &Finding) -> Option<usize> {
        let of_frame = |kind: &str, frame: &event::Frame| {
            let names = [frame.function.as_deref(), frame.file.as_deref(), Some(frame.module.as_str())];
            names.into_iter().flatten().find_map(|name| self.match_name(kind, name))
        };
        let mut frames = finding.sides.iter().flat_map(|side| side.stack.iter().chain(&side.created_at));
        let top = || finding.sides.iter().filter_map(|side| side.stack.first()).find_map(|frame| of_frame("race_top", frame));
        let variable = finding.subject.strip_prefix("global ").map(|name| name.split(" (").next().unwrap_or(name));
        frames
            .find_map(|frame| of_frame(kind, frame))
            .or_else(|| top().filter(|_| kind == "race"))
            .or_else(|| variable.and_then(|name| self.match_name(kind, name)))
    }

    fn find(&self, warning: &Warning) -> Option<usize> {
        let kind = type_of(warning.kind)?;
        let accesses = warning.accesses.iter().map(|access| &access.stack);
        let threads = warning.threads.iter().map(|thread| &thread.created);
        let mut stacks = accesses.chain(&warning.stacks).chain(threads).filter(|stack| stack.suppressable);
        stacks
            .find_map(|stack| self.match_stack(kind, stack))
            .or_else(|| warning.locations.iter().find_map(|location| self.match_location(kind, location)))
    }

    fn match_stack(&self, kind: &str, stack: &Stack) -> Option<usize> {
        let any = stack.frames.iter().find_map(|frame| self.match_frame(kind, frame));
        any.or_else(|| self.match_frame("race_top", stack.frames.first().filter(|_| kind == "race")?))
    }

    fn match_frame(&self, kind: &str, frame: &Frame) -> Option<usize> {
        [&frame.function, &frame.file, &frame.module].into_iter().flatten().find_map(|name| self.match_name(kind, name))
    }

    fn match_location(&self, kind: &str, location: &Location) -> Option<usize> {
        let variable = location.variable.as_ref().filter(|_| location.place == Place::Static)?;
        [&variable.name, &variable.module].into_iter().find_map(|name| self.match_name(kind, name))
    }

    fn match_name(&self, kind: &str, name: &str) -> Option<usize> {
        self.list
            .iter()
            .position(|suppression| suppression.kind == kind && matches(suppression.pattern.as_bytes(), name.as_bytes()))
    }

    /// Those that matched, for the end of the run.
    pub fn matched(&self) -> impl Iterator<Item = &Suppression> {
        self.list.iter().filter(|suppression| suppression.hits > 0)
    }

    /// Those that matched nothing. `called_from_lib` and `none` never do.
    pub fn unmatched(&self) -> impl Iterator<Item = &Suppression> {
        let counts = |suppression: &&Suppression| !["called_from_lib", "none"].contains(&suppression.kind);
        self.list.iter().filter(|suppression| suppression.hits == 0).filter(counts)
    }
}

const fn type_of(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::DataRace | Kind::VptrRace | Kind::UseAfterFree | Kind::VptrUseAfterFree | Kind::ExternalRace => "race",
        Kind::ThreadLeak => "thread",
        Kind::MutexDestroyLocked
        | Kind::MutexDoubleLock
        | Kind::MutexInvalid
        | Kind::MutexBadUnlock
        | Kind::MutexBadReadLock
        | Kind::MutexBadReadUnlock
        | Kind::MutexWrongContext => "mutex",
        Kind::SignalUnsafe | Kind::ErrnoInSignal => "signal",
        Kind::Deadlock | Kind::Deadlocked | Kind::Stuck => "deadlock",
    })
}

/// The type that suppresses such a finding. Failures are not suppressed: whoever expects them changes the test.
const fn kind_of(kind: FindingKind) -> Option<&'static str> {
    Some(match kind {
        FindingKind::DataRace
        | FindingKind::UseAfterFree
        | FindingKind::LifetimeRace
        | FindingKind::AtomicityViolation
        | FindingKind::NotSerialisable => "race",
        FindingKind::Deadlock | FindingKind::Stuck | FindingKind::Endless => "deadlock",
        FindingKind::UnlockNotHeld
        | FindingKind::DestroyLocked
        | FindingKind::DestroyAwaited
        | FindingKind::DoubleLock
        | FindingKind::UseOfDestroyed
        | FindingKind::WrongContext => "mutex",
        FindingKind::ThreadLeak => "thread",
        FindingKind::UnsafeInSignal => "signal",
        FindingKind::Failure => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: try every way.
    fn oracle(pattern: &str, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let (pattern, from_begin) = pattern.strip_prefix('^').map_or((pattern, false), |rest| (rest, true));
        let (pattern, to_end) = pattern.strip_suffix('$').map_or((pattern, false), |rest| (rest, true));
        let mut whole = String::new();
        if !from_begin {
            whole.push('*');
        }
        whole.push_str(pattern);
        if !to_end {
            whole.push('*');
        }
        fn glob(pattern: &[u8], name: &[u8]) -> bool {
            match pattern.split_first() {
                None => name.is_empty(),
                Some((b'*', rest)) => (0..=name.len()).any(|at| glob(rest, &name[at..])),
                Some((byte, rest)) => name.first() == Some(byte) && glob(rest, &name[1..]),
            }
        }
        glob(whole.as_bytes(), name.as_bytes())
    }

    fn words(letters: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let until = all.len();
            for index in from..until {
                all.extend(letters.iter().map(|letter| format!("{}{letter}", all[index])).collect::<Vec<_>>());
            }
            from = until;
        }
        all
    }

    #[test]
    fn every_short_pattern_matches_what_its_definition_says() {
        let names = words(&['a', 'b'], 4);
        for pattern in words(&['a', 'b', '*'], 4) {
            for (begin, end) in [("", ""), ("^", ""), ("", "$"), ("^", "$")] {
                let pattern = format!("{begin}{pattern}{end}");
                for name in &names {
                    assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), oracle(&pattern, name), "{pattern} {name}");
                }
            }
        }
    }

    #[test]
    fn files() {
        let mut suppressions = Suppressions::default();
        suppressions.read("# a comment\n\n  race:a::b*c \r\nthread:x\n").unwrap();
        let list: Vec<_> = suppressions.list.iter().map(|one| (one.kind, one.pattern.as_str())).collect();
        assert_eq!(list, [("race", "a::b*c"), ("thread", "x")]);
        assert_eq!(suppressions.read("ok\n").unwrap_err().fault, "has no colon");
        let error = suppressions.read("\nrase:x").unwrap_err();
        assert_eq!(error.to_string(), "failed to parse suppressions: line 2: 'rase:x' has an unknown type");
    }
}
