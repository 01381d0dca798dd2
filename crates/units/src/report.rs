//! What is told: extended data races, and what was left out.

use crate::event::{Bytes, Line, Lock, Thread};
use crate::locks::LockSet;

/// Why two units exclude each other nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A unit holds no lock throughout: none at its beginning or end, or other ones at its end than at its beginning.
    Unprotected,
    /// A unit gives a lock back and takes it again while it works on the set, and no other lock is held throughout.
    Interrupted(Lock),
    /// Each unit holds locks throughout, but none is common.
    DifferentLocks,
}

/// How two locations came to be correlated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependence {
    /// One operation at this line read both, or values computed from both.
    Data,
    /// What was read from the first decided whether the second was accessed.
    Control,
    /// The second was overwritten with a value computed from the first.
    Assignment,
}

/// A step of the chain by which the members of a set are correlated. The addresses are those of the first bytes; one of a
/// register's value is that of the location from which it was loaded, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    pub dependence: Dependence,
    pub line: Line,
    pub from: Option<u64>,
    pub to: Option<u64>,
}

/// One of the two units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub thread: Thread,
    /// Of the unit: the places of its first operations.
    pub lines: Vec<Line>,
    /// Of the unit's last access to the set.
    pub line: Line,
    pub wrote: bool,
    /// L_u.
    pub locks: LockSet,
    /// The locks held when the shared part began, and when it ended.
    pub first: Vec<Lock>,
    pub last: Vec<Lock>,
    /// Positions ([`crate::Analysis::stand_at`]) of the unit's first and last access to a location that was known to be shared by
    /// then.
    pub extent: Option<(u64, u64)>,
}

/// Two parallel units access one correlated set, one of them modifies it, and nothing makes them exclude each other (§1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedRace {
    /// The shared members of the set, ascending, neighbours joined; not more than [`crate::Limits::members`].
    pub members: Vec<Bytes>,
    /// How they came to be correlated.
    pub links: Vec<Link>,
    /// The unit that was seen first, and the one that raced with it.
    pub sides: [Side; 2],
    pub reason: Reason,
}

/// What was looked at, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub events: u64,
    /// Races at the places of one that was reported, or beyond the limit.
    pub races_not_told: u64,
    /// Pieces of accesses beyond `Limits::locations`, and accesses beyond `Limits::range`.
    pub accesses_left_out: u64,
    /// Values beyond `Limits::registers`.
    pub values_left_out: u64,
    /// Events of threads beyond `Limits::threads`.
    pub events_of_further_threads: u64,
    /// Units that a location or a set forgot.
    pub units_forgotten: u64,
    /// Sets that a unit forgot.
    pub sets_forgotten: u64,
    /// Histories of large sets that may hold more than they should.
    pub histories_not_renewed: u64,
    /// Steps that do not fit those before them: a release of a lock that is not held, the end of no function.
    pub steps_out_of_place: u64,
}
