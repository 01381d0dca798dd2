//! What the user is told. One model; renderers live in `report`.

use crate::candidate::{Evidence, WitnessLevel};
use crate::finding_id::FindingId;
use crate::library::is_source_of_library;
use crate::provocation::Provocation;
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::verdict::{Grade, Trial, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    DataRace,
    Deadlock,
    /// All threads blocked with no cycle of lock holders: a lost wake-up.
    Stuck,
    /// Every thread that is left repeats the same state for ever, or is blocked for good: a livelock.
    Endless,
    /// A failed assertion, a crash, a wrong exit code: of some schedules only.
    Failure,
    /// A lock is released by a thread that does not hold it.
    UnlockNotHeld,
    /// A lock is destroyed, or its memory freed, while it is held.
    DestroyLocked,
    /// A condition variable is destroyed while a thread waits for it.
    DestroyAwaited,
    /// A thread takes a lock that it holds and that cannot be taken twice.
    DoubleLock,
    /// A lock or condition variable is used after it was destroyed or its memory freed.
    UseOfDestroyed,
    /// A thread ended that nobody joined or detached.
    ThreadLeak,
    /// Memory is used after it was freed; of online detection: with nothing that orders the two.
    UseAfterFree,
    /// A lock, condition variable or barrier is used, and nothing orders that with its initialisation or its end.
    LifetimeRace,
    /// A signal handler does what it must not.
    UnsafeInSignal,
    /// A lock is held where an annotation forbids it.
    WrongContext,
    /// Regions that were meant to be atomic cannot be put in any order.
    NotSerialisable,
    /// Another thread's critical section comes between two of a thread that belong together.
    AtomicityViolation,
}

impl FindingKind {
    /// A bug of the recorded execution itself: there is nothing to force.
    pub const fn is_misuse(self) -> bool {
        match self {
            Self::DataRace
            | Self::Deadlock
            | Self::Stuck
            | Self::Endless
            | Self::Failure
            | Self::NotSerialisable
            | Self::AtomicityViolation => false,
            Self::UnlockNotHeld
            | Self::DestroyLocked
            | Self::DestroyAwaited
            | Self::DoubleLock
            | Self::UseOfDestroyed
            | Self::ThreadLeak
            | Self::UseAfterFree
            | Self::LifetimeRace
            | Self::UnsafeInSignal
            | Self::WrongContext => true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Frame {
    /// Demangled; `None` where there is no symbol.
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub module: String,
    /// Offset in the module of the *call or access instruction* (not of the return address).
    pub offset: u64,
    /// This frame was inlined into the next one.
    pub inlined: bool,
}

/// Whose code a frame is of: what its user wrote comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Program,
    /// A package that cargo fetched.
    Dependency,
    /// Of the system or of a language, or without a source.
    Library,
}

impl Frame {
    /// Told by the path of the source.
    pub fn origin(&self) -> Origin {
        let Some(file) = self.file.as_deref().filter(|_| self.line.is_some()) else { return Origin::Library };
        let begins = |start: &&str| file.starts_with(*start);
        let holds = |part: &&str| file.contains(*part);
        // glibc's own sources have relative paths.
        if ["/usr/", "./", "../", "/rustc/"].iter().any(begins) || is_source_of_library(file) {
            Origin::Library
        } else if ["/registry/src/", "/git/checkouts/"].iter().any(holds) {
            Origin::Dependency
        } else {
            Origin::Program
        }
    }

    /// The innermost frame of the code that its user knows best.
    pub fn best_known(stack: &[Self]) -> Option<&Self> {
        stack.iter().min_by_key(|frame| frame.origin())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// `mutex counter_lock`, `mutex 0x… (heap block of 40 bytes allocated at file:line)`, …
    pub name: String,
    pub acquired_at: Vec<Frame>,
    /// For reading, beside others who read.
    #[serde(default)]
    pub shared: bool,
}

impl HeldLock {
    /// `mutex m`, `rwlock r for reading`.
    pub fn words(&self) -> String {
        format!("{}{}", self.name, if self.shared { " for reading" } else { "" })
    }
}

/// What the order of two accesses that race does to the program, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// One order ends it by a signal of its own, the other does not.
    Crash,
    /// In one order it never ends.
    Hang,
    /// It ends, or prints, otherwise.
    Result,
    /// Executions of either order ended alike.
    NoneSeen,
}

/// One thread's part in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Thread path, as [`crate::ThreadPath`] prints it.
    pub thread: String,
    /// `write of 4 bytes`, `atomic read of 8 bytes`, `acquires mutex b`, …
    pub action: String,
    /// Innermost first.
    pub stack: Vec<Frame>,
    pub held: Vec<HeldLock>,
    /// Where the thread was created; empty for the initial thread.
    pub created_at: Vec<Frame>,
}

/// Two accesses to memory whose order decides whether the program fails: it does with the first one first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriticalOrder {
    pub sides: [Side; 2],
    /// What the first one touches, as [`Finding::subject`] says it.
    pub subject: String,
}

/// A step of the shortest schedule that shows the finding: one turn, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub thread: String,
    /// What it runs up to.
    pub until: String,
    pub place: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable over runs and rebuilds that do not touch the two places: kind and function-relative sites. Also the name to replay
    /// by.
    pub id: FindingId,
    pub kind: FindingKind,
    pub verdict: Verdict,
    pub evidence: Evidence,
    pub witness_level: Option<WitnessLevel>,
    /// What both sides touch: `global y (4 bytes)`, `heap block of 16 bytes allocated at …`, or the locks of the cycle.
    pub subject: String,
    pub sides: Vec<Side>,
    /// The last steps of the schedule.
    pub steps: Vec<Step>,
    /// How many steps come before those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_steps: usize,
    pub schedule: Option<Schedule>,
    /// The execution that proved it, to where it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<Box<Timeline>>,
    /// Of a race that was provoked: how to provoke it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provocation: Option<Provocation>,
    /// Of a race both orders of which were executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<Harm>,
    /// Of a failure, where it was found: two accesses to memory whose order it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical: Option<Box<CriticalOrder>>,
    /// Shell command that makes it happen again; the last line of the text report.
    pub reproduce: Option<String>,
    /// Uninstrumented libraries without which it would have been predicted, or looked for by happens-before: their calls may have
    /// ordered it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    pub notes: Vec<String>,
    /// Event pairs with the same two places.
    pub occurrences: u64,
}

/// How a note begins that names what nobody sees.
const UNSEEN: &str = "what is not seen may have ordered the accesses: ";

impl Finding {
    /// A finding of which no more is known: nothing was executed for its sake, so it is a suspicion.
    pub const fn suspected(kind: FindingKind, evidence: Evidence, id: FindingId) -> Self {
        Self {
            id,
            kind,
            verdict: Verdict::Suspected,
            evidence,
            witness_level: None,
            subject: String::new(),
            sides: Vec::new(),
            steps: Vec::new(),
            earlier_steps: 0,
            schedule: None,
            forced: None,
            provocation: None,
            harm: None,
            critical: None,
            reproduce: None,
            unseen: Vec::new(),
            notes: Vec::new(),
            occurrences: 1,
        }
    }

    /// Whether it came about, and is known how to make it come about again.
    pub const fn can_happen_again(&self) -> bool {
        self.verdict.is_proven() && (self.schedule.is_some() || self.provocation.is_some())
    }

    /// What nobody sees may have ordered what it is about.
    pub fn note_unseen<'a>(&mut self, unseen: impl Iterator<Item = &'a str>, libraries: &[String]) {
        let all: Vec<&str> = unseen.collect();
        self.notes.retain(|note| !note.starts_with(UNSEEN));
        self.notes.push(format!("{UNSEEN}{}", all.join(", ")));
        self.unseen = libraries.to_vec();
    }

    /// Takes over what came of executing the program for it. Where both threads stood before their accesses nothing orders these.
    pub fn advance(&mut self, trial: Trial) {
        if matches!(trial, Trial::Shown { grade: Grade::CoEnabled, .. }) {
            self.notes.retain(|note| !note.starts_with(UNSEEN));
        }
        self.verdict = std::mem::replace(&mut self.verdict, Verdict::Suspected).advance(trial);
    }

    /// Another execution shows it than the one that the steps are of.
    pub fn forget_steps(&mut self) {
        self.steps = Vec::new();
        self.earlier_steps = 0;
        self.forced = None;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Replays;

    #[test]
    fn nothing_unseen_orders_what_stood_side_by_side() {
        let id = FindingId::new("race-00000000").expect("an id");
        let mut finding = Finding::suspected(FindingKind::DataRace, Evidence::Hybrid, id);
        finding.note_unseen(["libb.so"].into_iter(), &["libb.so".into()]);
        finding.notes.push("something else".into());
        let shown = |grade| Trial::Shown { grade, replays: Replays::default() };
        finding.advance(shown(Grade::Unordered));
        assert_eq!(finding.notes, [format!("{UNSEEN}libb.so"), "something else".into()]);
        finding.advance(shown(Grade::CoEnabled));
        assert_eq!((finding.notes, finding.unseen), (vec!["something else".into()], vec!["libb.so".into()]));
    }

    #[test]
    fn the_users_line_comes_before_those_of_libraries() {
        let frame = |file: &str| Frame { file: Some(file.into()), line: Some(1), ..Frame::default() };
        let standard = frame("/t/lib/rustlib/src/rust/library/core/src/sync/atomic.rs");
        let dependency = frame("/h/.cargo/registry/src/index-1/queue-1.0.0/src/lib.rs");
        let (own, outer) = (frame("/p/src/main.rs"), frame("/p/src/outer.rs"));
        let stack = [standard.clone(), dependency.clone(), own.clone(), outer];
        assert_eq!(Frame::best_known(&stack), Some(&own));
        assert_eq!(Frame::best_known(&stack[..2]), Some(&dependency));
        let headers = [frame("/usr/include/c++/12/bits/stl_vector.h"), standard];
        assert_eq!(Frame::best_known(&headers), Some(&headers[0]));
        assert_eq!(Frame::best_known(&[]), None);
    }
}
