//! What can be chosen, and how much memory may be used.

/// What happens to a unit when its thread reads a shared location that the unit wrote (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedDependences {
    /// The unit ends: *read, compute, write* is over. The default, because a loop that updates a shared variable in a critical
    /// section of its own would else be one unit, which no lock protects throughout.
    Close,
    /// The unit goes on if one activation of a function wrote and reads: the paper's mitigation for units that are cut too
    /// early.
    WithinFunction,
}

/// What happens to the correlated set of a location that is overwritten (§3.1, §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwriting {
    /// The location leaves its set for that of the new value. The paper's rule, and the default.
    Replaces,
    /// A shared location keeps its set, which merges with that of the new value: what the paper says would find the race of its
    /// test 4, restricted to shared locations, so that exclusive variables can be used again for something else.
    MergesIfShared,
}

/// How extended data races are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Pairs of units, as §1.2 defines an extended data race. The history of accesses belongs to the locations, and moves with
    /// them from set to set. The default.
    Pairs,
    /// The six states and the candidate set C_s of §3.4, which belong to the correlated set.
    States,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub shared_dependences: SharedDependences,
    pub overwriting: Overwriting,
    pub detection: Detection,
    /// Whether the roots of an address count as operands of the access (the paper's remedy for its test 21). Off: members of a
    /// structure need not belong together.
    pub addresses: bool,
    /// Whether sets are inferred. If not, there are only the declared ones, and each location of no declared set is a set of its
    /// own. Units are inferred in any case.
    pub infer_sets: bool,
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            shared_dependences: SharedDependences::Close,
            overwriting: Overwriting::Replaces,
            detection: Detection::Pairs,
            addresses: false,
            infer_sets: true,
            limits: Limits::default(),
        }
    }
}

/// Bounds. What is left out beyond each is counted in [`crate::Summary`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Locations: bytes with one history, at most eight. Accesses to further ones are not looked at; values that come from
    /// there depend on nothing. About 200 bytes each.
    pub locations: usize,
    /// Bytes of one access that are looked at.
    pub range: u32,
    /// Threads; further ones are not looked at.
    pub threads: usize,
    /// Activations, their registers and their open branches together. Values in further ones depend on nothing.
    pub registers: usize,
    /// Units that a location remembers. Of twice as many the oldest are forgotten, down to it: if the location becomes shared
    /// later, their shared parts are too small, and a race with them may be missed.
    pub units_of_location: usize,
    /// Units that a set remembers. Beyond it the oldest are forgotten, and races with them are missed.
    pub units_of_set: usize,
    /// Sets that a unit remembers. If its L_u shrinks without an access to a set that it forgot, races on that are missed.
    pub sets_of_unit: usize,
    /// Source lines that a unit remembers for the report: the first ones.
    pub lines_of_unit: usize,
    /// Dependences that a set remembers for the report: the first ones.
    pub links_of_set: usize,
    /// Locations of a set that are looked at when its history is made anew, and in reports. A larger set keeps the history of
    /// locations that left it, which may report a race of a set that is none any more.
    pub members: usize,
    /// Different races that are reported; further ones are counted.
    pub races: usize,
    /// Units, sets and moments that may lie unused before they are swept together.
    pub slack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            locations: 1 << 22,
            range: 1 << 20,
            threads: 1 << 12,
            registers: 1 << 22,
            units_of_location: 8,
            units_of_set: 16,
            sets_of_unit: 16,
            lines_of_unit: 12,
            links_of_set: 32,
            members: 1024,
            races: 1 << 14,
            slack: 1 << 16,
        }
    }
}
