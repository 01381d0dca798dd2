//! Executions as timelines, for people: what orders threads, and where a finding is in it.

use crate::finding::Frame;
use serde::{Deserialize, Serialize};

/// Part of an execution, in its order: the synchronisation of all threads, and the accesses of a finding.
///
/// What occurs often is kept once and named by its index. An index that is too large stands for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Paths of the threads that have a moment here, and of those that these moments come after.
    pub threads: Vec<String>,
    /// What threads do.
    pub words: Vec<String>,
    pub places: Vec<Frame>,
    /// Sets of locks that a thread holds; the first is the empty one.
    pub held: Vec<Vec<String>>,
    /// What each thread holds before the first moment: indices into `held`, in the order of `threads`.
    pub held_before: Vec<u32>,
    pub moments: Vec<Moment>,
    /// How many moments come before those, and after them.
    pub earlier: u64,
    pub later: u64,
}

/// What a thread does at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Of the event in its execution, from 1. 0: it is none, as where a thread stands before an access that did not happen.
    pub number: u64,
    /// Index into `threads`.
    pub thread: u32,
    /// Index into `words`.
    pub does: u32,
    /// Index into `places`.
    pub place: Option<u32>,
    /// The last event of another thread that this one comes after, because of what both do: its number and its thread.
    pub after: Option<(u64, u32)>,
    /// What the thread holds from here on. Index into `held`.
    pub holds: u32,
    /// An access of the finding, or where a thread is blocked.
    pub is_of_finding: bool,
}

impl Timeline {
    /// Names of the locks of a set.
    pub fn locks(&self, held: u32) -> &[String] {
        self.held.get(held as usize).map_or(&[], Vec::as_slice)
    }
}
