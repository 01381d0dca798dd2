//! What a race is for a detector, and which accesses are redundant for it.
//!
//! An access e *covers* an access e′ with the same code location, class, address and size if every access f, now or later, that
//! races with e′ also races with e. Races are counted as pairs of code locations, so e′ may be dropped once e is kept. Dropping
//! many is no worse than dropping one: if a and b race, the kept access that covers a races with b, and so the kept one that
//! covers b races with it.
//!
//! A detector is described by its edges and by whether it looks at lock sets. Two accesses of different threads race if they
//! conflict, if no path of its edges orders them (where it has any), and if their lock sets do not exclude each other (where it
//! looks at them).
//!
//! **Same thread, ordered** (e before e′ in thread t). Whatever precedes e precedes e′, so only paths that leave t *between* e
//! and e′ matter: with such a path to f, e is ordered before f and e′ is not. An *outgoing* event is one that others may receive
//! from. Number t's outgoing events; let c(e) be their count before e. An outgoing event before e′ is *dead* at e′ if nobody but
//! t has received from it and all who ever will also receive from a later outgoing event that comes after e′. Let ε(e′) be the
//! highest number of those before e′ that are not dead.
//!
//! > *Theorem 1.* e covers e′ if ε(e′) ≤ c(e) and the locks held at e are among those held at e′, in modes that exclude no more.
//!
//! *Proof.* Let f race with e′. Lock sets: f's excludes e′'s not, hence not e's, which has fewer. Order: if f were ordered before
//! e, it would be before e′. If e were ordered before f, take the last event r by which such a path leaves t. If r comes after
//! e′, then e′ is ordered before f: no race. Otherwise r's number exceeds c(e) ≥ ε(e′), so r is dead at e′: its receiver came
//! after e′, and received from an event of t after e′ too: no race. ∎
//!
//! What t *received* between e and e′ does not matter. Of what can be dead, [`crate::context`] recognises one case: the release
//! of a mutex that t has acquired again exclusively, with no acquisition by others in between. A loop that takes the same free
//! locks over and over is redundant even under full happens-before; once another thread takes a lock, it is not.
//!
//! > *Theorem 2.* If ε(e′) > c(e), and e′ is not dropped for another reason, some continuation of the trace has a race with e′
//! > and none with e.
//!
//! *Proof.* Let r be the event numbered ε(e′). If another thread has received from it, that thread goes on with a conflicting f;
//! else one receives from it now (for a mutex that is free it acquires it) and goes on with f. Then f is ordered after r and so
//! after e, but not after e′. ∎
//!
//! **Other threads, lock sets only.** Nothing but the lock set counts, so accesses of two threads with fewer or the same locks
//! cover e′ together: f belongs to at most one of the two.
//!
//! **Other threads, ordered.**
//! > *Theorem 3.* No filter that does not know the future may drop an access for the sake of other threads' accesses, if the
//! > detector has join edges (or any other edge that those threads can still make).
//!
//! *Proof.* Let e′ of t′ be dropped because of accesses of t1 and t2. In some continuation the initial thread joins t1 and t2,
//! but not t′, and makes a conflicting access f at a new code location. f races with e′ alone. ∎
//!
//! So Γ as the thesis has it (held locks, messages sent and received so far) cannot tell whether condition 5 of its §3.3, which
//! speaks of *all* other events, holds. [`crate::lookahead`] can, as it knows the rest of the trace, and applies the rule of two
//! threads to every detector.
//!
//! | detector | edges | lock sets | Γ that suffices | other threads |
//! |---|---|---|---|---|
//! | [`Relation::LOCKSET`] | none | yes | held locks | two suffice |
//! | [`Relation::ERASER`] | none | yes | held locks; nothing of the time when one thread alone used the bytes | two suffice |
//! | [`Relation::HYBRID`] | threads, conditions, … | yes | held locks, count of outgoing events | with look-ahead |
//! | [`Relation::HAPPENS_BEFORE`] | all | no | count of outgoing events, and which are dead | with look-ahead |
//! | [`Relation::RECORDER`] | all | yes | both: right for all the others at once | with look-ahead |
//!
//! Deviations from the thesis' algorithms 1 and 2, each with its counterexample in `tests/counterexamples.rs`:
//! 1. The history belongs to (code location, class, address, size), not to the code location alone: conditions 2 and 3 of its
//!    §3.3 ask for it. Addresses of
//!    a trace are unique per object lifetime.
//! 2. Where locks are edges, releases count; the thesis forgets a released lock.
//! 3. What a thread has sent counts, what it has received does not (Theorem 1). The thesis makes every message part of Γ, so that
//!    nothing survives a
//!    fork or a join, and a child's receipt, unique to it, keeps its accesses from ever matching those of a sibling.
//! 4. Other threads' accesses make one redundant only for lock sets alone or with look-ahead (Theorem 3). There, messages are
//!    canonical: knowledge is counted
//!    in accesses that are known, so forks without an access in between are the same fork.
//! 5. A thread whose lock set has a remembered one as prefix is redundant too (Theorem 1: fewer locks cover more).
//! 6. Eraser's states forget what the first thread did alone; so does the history.
//! 7. Span redundancy (its §3.6) needs the class too: a read does not stand for a write. It preserves racy addresses, not pairs
//!    of code locations, so it is
//!    asked for by [`crate::Guarantee::Addresses`].

use rashomon_order::{Edges, Model};

/// A detector, as far as redundancy is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The order whose edges excuse a pair; none for lock sets alone.
    pub order: Option<Model>,
    /// Whether a common lock excuses a pair.
    pub lock_sets: bool,
    /// Whether what is done to some bytes while one thread alone has used them counts for nothing (Savage et al., "Eraser", TOCS
    /// 1997, §2.2).
    pub first_thread_exempt: bool,
}

impl Relation {
    pub const LOCKSET: Self = Self { order: None, lock_sets: true, first_thread_exempt: false };
    pub const ERASER: Self = Self { first_thread_exempt: true, ..Self::LOCKSET };
    /// Lock sets, and the order without locks and atomics (Carril, Tichy 2015, §3).
    pub const HYBRID: Self = Self { order: Some(Model::WEAK), ..Self::LOCKSET };
    pub const HAPPENS_BEFORE: Self = Self { order: Some(Model::CPP20), lock_sets: false, first_thread_exempt: false };
    /// Redundant for every one of the above but [`Self::ERASER`].
    pub const RECORDER: Self = Self { lock_sets: true, ..Self::HAPPENS_BEFORE };

    /// The edges beside those of thread creation and the like; `None` without any order.
    pub(crate) fn edges(&self) -> Option<Edges> {
        self.order.map(|model| model.edges)
    }
}
