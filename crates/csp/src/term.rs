//! Terms of the algebra. Each is kept once, so that equal states of an exploration have equal numbers.

use crate::error::ScriptError;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A visible event, by its place in [`Processes::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event(pub u32);

/// A named process, by its place in [`Processes::definitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

/// A term, by its place among those of its [`Processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u32);

/// A set of events that many terms share. A model of a trace has thousands of them in each of its compositions, and every step
/// makes terms with the same sets: they are hashed once, and compared by what they are only if they are not the same.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Hashed>);

#[derive(Debug, Default)]
struct Hashed {
    hash: u64,
    events: BTreeSet<Event>,
}

impl From<BTreeSet<Event>> for Events {
    fn from(events: BTreeSet<Event>) -> Self {
        let mut hasher = FxHasher::default();
        events.iter().for_each(|event| event.hash(&mut hasher));
        Self(Arc::new(Hashed { hash: hasher.finish(), events }))
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self::from(BTreeSet::from_iter(events))
    }
}

impl Deref for Events {
    type Target = BTreeSet<Event>;

    fn deref(&self) -> &BTreeSet<Event> {
        &self.0.events
    }
}

impl PartialEq for Events {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.hash == other.0.hash && self.0.events == other.0.events
    }
}

impl Eq for Events {}

impl Hash for Events {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// What events are called instead; those that it does not name keep their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Renaming(pub Arc<BTreeMap<Event, BTreeSet<Event>>>);

impl Renaming {
    pub fn of(&self, event: Event) -> BTreeSet<Event> {
        self.0.get(&event).cloned().unwrap_or_else(|| BTreeSet::from([event]))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// Does nothing, and has not terminated.
    Stop,
    /// Terminates.
    Skip,
    /// What is left of a process that terminated.
    Done,
    Prefix(Event, TermId),
    External(TermId, TermId),
    Internal(TermId, TermId),
    /// Both sides take part in events of the set. With an empty set: interleaving.
    Parallel(TermId, Events, TermId),
    Hide(TermId, Events),
    Rename(TermId, Renaming),
    /// The second takes over with its first event.
    Interrupt(TermId, TermId),
    Sequence(TermId, TermId),
    Call(Name),
}

/// Makes bodies of definitions where they are needed.
pub(crate) trait Unfold: std::fmt::Debug + Send + Sync {
    fn is_pending(&self, name: Name) -> bool;
    fn first_pending(&self) -> Option<Name>;
    fn unfold(&mut self, processes: &mut Processes, name: Name) -> Result<TermId, ScriptError>;
    fn cloned(&self) -> Box<dyn Unfold>;
}

impl Clone for Box<dyn Unfold> {
    fn clone(&self) -> Self {
        self.cloned()
    }
}

/// Named processes and all terms that occur in them.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    terms: Vec<Term>,
    /// Operators above the deepest leaf, definitions not unfolded.
    depths: Vec<usize>,
    numbers: FxHashMap<Term, TermId>,
    /// Names of events.
    pub events: Vec<String>,
    /// Names of processes, and what they stand for.
    pub definitions: Vec<(String, TermId)>,
    /// Definitions of a script whose bodies are made where they are needed.
    pub(crate) unfolding: Option<Box<dyn Unfold>>,
}

impl Processes {
    pub fn make(&mut self, term: Term) -> TermId {
        if let Some(&known) = self.numbers.get(&term) {
            return known;
        }
        let id = TermId(self.terms.len() as u32);
        let below = match term {
            // Nothing looks below a prefix before its event.
            Term::Stop | Term::Skip | Term::Done | Term::Call(_) | Term::Prefix(..) => 0,
            Term::Hide(inner, _) | Term::Rename(inner, _) => 1 + self.depth(inner),
            Term::External(one, other)
            | Term::Internal(one, other)
            | Term::Parallel(one, _, other)
            | Term::Interrupt(one, other) => 1 + self.depth(one).max(self.depth(other)),
            Term::Sequence(first, _) => 1 + self.depth(first),
        };
        self.depths.push(below);
        self.terms.push(term.clone());
        self.numbers.insert(term, id);
        id
    }

    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    /// How many operators deep its first step may lie, calls apart.
    pub fn depth(&self, id: TermId) -> usize {
        self.depths[id.0 as usize]
    }

    pub fn count(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn body(&self, name: Name) -> TermId {
        self.definitions[name.0 as usize].1
    }

    pub(crate) fn is_pending(&self, name: Name) -> bool {
        self.unfolding.as_ref().is_some_and(|unfolding| unfolding.is_pending(name))
    }

    /// What a name stands for.
    pub fn unfolded(&mut self, name: Name) -> Result<TermId, ScriptError> {
        if !self.is_pending(name) {
            return Ok(self.body(name));
        }
        let Some(mut unfolding) = self.unfolding.take() else { return Ok(self.body(name)) };
        let body = unfolding.unfold(self, name);
        self.unfolding = Some(unfolding);
        body
    }

    /// Makes the bodies of all definitions that are called, at most so many; whether that was enough.
    pub fn unfold_all(&mut self, most: usize) -> Result<bool, ScriptError> {
        let first = |processes: &Self| processes.unfolding.as_ref().and_then(|unfolding| unfolding.first_pending());
        for _ in 0..most {
            let Some(name) = first(self) else { return Ok(true) };
            self.unfolded(name)?;
        }
        Ok(first(self).is_none())
    }
}
