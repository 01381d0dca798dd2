//! What keeps the explored states of a term few in number, without a change of verdict.
//!
//! *Symmetry.* Parallel composition over one set of events is commutative and associative in all models (Roscoe, *Understanding
//! Concurrent Systems*, §3.1-3.2), so sides that are equal but for their order are one state: of n identical components it
//! matters how many are where, not which. Sides that have ended refuse everything and end together, unseen: one of them stands
//! for all.
//!
//! *Partial order.* A term is taken apart into *components*, which move by themselves or together with others that share an
//! event. In a state, a set of components is looked for such that whatever one of them offers needs none outside of the set (an
//! event of a shared set needs all on the other side that may ever take part in it), and all that it offers is hidden. What the
//! others do then neither enables nor prevents the steps of the set, and these are seen by nobody: the steps of the set alone are
//! followed (ample sets; E. Clarke, O. Grumberg, D. Peled, *Model Checking*, 1999, §10). So that no others are put off for ever,
//! all steps are followed where one of those would lead to a state that was seen before. A component that can only do hidden
//! steps of its own is such a set: chains of a single thread are run through at once.
//!
//! Holds for traces, stable failures, and freedom from deadlock. Where divergence or determinism is asked about, only symmetry is
//! used. Limit: components with definitions that are yet to be unfolded, and what lies below renaming, choice and interrupt, are
//! not taken apart; states with more than [`COMPONENTS`] are not reduced.

use crate::term::{Event, Events, Processes, Term, TermId};
use crate::transitions::{Action, StepError, Transitions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Components of a state that are told apart, one bit each.
const COMPONENTS: usize = 128;
/// Operators above a component.
const DEPTH: usize = 200;
/// Terms that are looked at for what one may ever do.
const REACHED: usize = 20_000;

/// Which are on. All, but where they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    pub partial_order: bool,
    pub symmetry: bool,
}

impl Reductions {
    pub const ALL: Self = Self { partial_order: true, symmetry: true };
    pub const NONE: Self = Self { partial_order: false, symmetry: false };
}

type Set = u128;

/// What a component offers by itself, as seen from the root; and the components without which it cannot be.
#[derive(Clone, Copy)]
struct Offer {
    owner: u32,
    action: Action,
    needs: Set,
}

/// A part of a state, from its components up to some operator.
struct Part {
    steps: Vec<(Action, TermId, Set)>,
    offers: Vec<Offer>,
    /// Of each component, the events that it may ever take part in, as they are called here.
    alphabets: Vec<Arc<BTreeSet<Event>>>,
    /// Number of the first component.
    first: usize,
}

impl Part {
    /// Components that may ever take part in an event.
    fn takers(&self, event: Event) -> Set {
        let takes = |(number, alphabet): (usize, &Arc<BTreeSet<Event>>)| {
            if alphabet.contains(&event) { 1 << (self.first + number) } else { 0 }
        };
        self.alphabets.iter().enumerate().map(takes).fold(0, |all, one| all | one)
    }
}

#[derive(Default)]
pub struct Reducer {
    canonical: FxHashMap<TermId, TermId>,
    /// `None`: not known.
    alphabets: FxHashMap<TermId, Option<Arc<BTreeSet<Event>>>>,
}

impl Reducer {
    /// The state that stands for all that differ from this one in the order of sides alone.
    pub fn canonical(&mut self, processes: &mut Processes, id: TermId) -> TermId {
        self.canonical_within(processes, id, DEPTH)
    }

    fn canonical_within(&mut self, processes: &mut Processes, id: TermId, depth: usize) -> TermId {
        if let Some(&known) = self.canonical.get(&id) {
            return known;
        }
        let Some(below) = depth.checked_sub(1) else { return id };
        let made = match processes.term(id).clone() {
            Term::Parallel(_, shared, _) => {
                let mut sides = Vec::new();
                sides_of(processes, id, &shared, depth, &mut sides);
                let mut sides: Vec<TermId> =
                    sides.into_iter().map(|side| self.canonical_within(processes, side, below)).collect();
                sides.sort_unstable();
                // Sides that have ended end together, unseen: one of them stands for all, or two where nothing else is left.
                let is_done = |side: &TermId| *processes.term(*side) == Term::Done;
                let mut spare = sides.iter().filter(|side| is_done(side)).count().saturating_sub(1);
                spare = spare.min(sides.len() - 2);
                sides.retain(|side| {
                    let goes = spare > 0 && is_done(side);
                    spare -= usize::from(goes);
                    !goes
                });
                while sides.len() > 1 {
                    let pairs: Vec<Vec<TermId>> = sides.chunks(2).map(<[TermId]>::to_vec).collect();
                    let mut join = |pair: Vec<TermId>| match pair[..] {
                        [one, other] => processes.make(Term::Parallel(one, shared.clone(), other)),
                        _ => pair[0],
                    };
                    sides = pairs.into_iter().map(&mut join).collect();
                }
                sides[0]
            }
            Term::Hide(inner, hidden) => {
                let inner = self.canonical_within(processes, inner, below);
                processes.make(Term::Hide(inner, hidden))
            }
            Term::Rename(inner, renaming) => {
                let inner = self.canonical_within(processes, inner, below);
                processes.make(Term::Rename(inner, renaming))
            }
            Term::Sequence(first, then) => {
                let first = self.canonical_within(processes, first, below);
                processes.make(Term::Sequence(first, then))
            }
            Term::Interrupt(inner, by) => {
                let inner = self.canonical_within(processes, inner, below);
                processes.make(Term::Interrupt(inner, by))
            }
            _ => id,
        };
        self.canonical.insert(id, made);
        self.canonical.insert(made, made);
        made
    }

    /// Some of the steps of a state that stand for all, if `is_new` holds for what they lead to; none: all are needed.
    pub fn ample(
        &mut self,
        transitions: &mut Transitions<'_>,
        id: TermId,
        all: usize,
        mut is_new: impl FnMut(&mut Self, &mut Processes, TermId) -> bool,
    ) -> Result<Option<Vec<(Action, TermId)>>, StepError> {
        if all < 2 || transitions.processes.depth(id) > DEPTH {
            return Ok(None);
        }
        let Some(part) = self.taken_apart(transitions, id, 0)? else { return Ok(None) };
        let mut best: Option<Vec<(Action, TermId)>> = None;
        for component in 0..part.alphabets.len() {
            let Some(set) = closed(&part, component) else { continue };
            let within = part.steps.iter().filter(|step| step.2 & !set == 0);
            let mut steps: Vec<(Action, TermId)> = within.map(|&(action, next, _)| (action, next)).collect();
            steps.sort_unstable();
            steps.dedup();
            let fewer = best.as_ref().map_or(all, Vec::len);
            if !steps.is_empty() && steps.len() < fewer && steps.iter().all(|step| is_new(self, transitions.processes, step.1)) {
                best = Some(steps);
            }
            if best.as_ref().is_some_and(|best| best.len() == 1) {
                break;
            }
        }
        Ok(best)
    }

    /// `None`: something of it is not known.
    fn taken_apart(&mut self, transitions: &mut Transitions<'_>, id: TermId, first: usize) -> Result<Option<Part>, StepError> {
        if first >= COMPONENTS {
            return Ok(None);
        }
        let term = transitions.processes.term(id).clone();
        match term {
            Term::Parallel(left, shared, right) => {
                let is_done = |side: TermId| *transitions.processes.term(side) == Term::Done;
                if is_done(left) && is_done(right) {
                    return self.component(transitions, id, first);
                }
                let Some(of_left) = self.taken_apart(transitions, left, first)? else { return Ok(None) };
                let middle = first + of_left.alphabets.len();
                let Some(of_right) = self.taken_apart(transitions, right, middle)? else { return Ok(None) };
                Ok(Some(side_by_side(transitions.processes, (left, of_left), &shared, (right, of_right))))
            }
            Term::Hide(inner, hidden) => {
                let Some(mut part) = self.taken_apart(transitions, inner, first)? else { return Ok(None) };
                let unseen = |action: &mut Action| {
                    if matches!(action, Action::Visible(event) if hidden.contains(event)) {
                        *action = Action::Tau;
                    }
                };
                for (action, next, _) in &mut part.steps {
                    unseen(action);
                    if *action != Action::Tick {
                        *next = transitions.processes.make(Term::Hide(*next, hidden.clone()));
                    }
                }
                part.offers.iter_mut().for_each(|offer| unseen(&mut offer.action));
                for alphabet in &mut part.alphabets {
                    *alphabet = Arc::new(alphabet.difference(&hidden).copied().collect());
                }
                Ok(Some(part))
            }
            Term::Sequence(begin, then) => {
                let Some(mut part) = self.taken_apart(transitions, begin, first)? else { return Ok(None) };
                let Some(later) = self.alphabet(transitions.processes, then) else { return Ok(None) };
                for (action, next, _) in &mut part.steps {
                    (*action, *next) = match *action {
                        Action::Tick => (Action::Tau, then),
                        _ => (*action, transitions.processes.make(Term::Sequence(*next, then))),
                    };
                }
                part.offers.iter_mut().filter(|offer| offer.action == Action::Tick).for_each(|offer| offer.action = Action::Tau);
                for alphabet in &mut part.alphabets {
                    *alphabet = Arc::new(alphabet.union(&later).copied().collect());
                }
                Ok(Some(part))
            }
            _ => self.component(transitions, id, first),
        }
    }

    fn component(&mut self, transitions: &mut Transitions<'_>, id: TermId, first: usize) -> Result<Option<Part>, StepError> {
        let Some(alphabet) = self.alphabet(transitions.processes, id) else { return Ok(None) };
        let steps: Vec<_> = transitions.of(id)?.iter().map(|&(action, next)| (action, next, 1 << first)).collect();
        let offers = steps.iter().map(|&(action, _, needs)| Offer { owner: first as u32, action, needs }).collect();
        Ok(Some(Part { steps, offers, alphabets: vec![alphabet], first }))
    }

    /// The events that a term may ever take part in.
    fn alphabet(&mut self, processes: &Processes, id: TermId) -> Option<Arc<BTreeSet<Event>>> {
        if let Some(known) = self.alphabets.get(&id) {
            return known.clone();
        }
        let mut events = BTreeSet::new();
        let (mut seen, mut open) = (FxHashSet::from_iter([id]), vec![id]);
        let mut known = true;
        while let Some(at) = open.pop() {
            let below: Vec<TermId> = match processes.term(at) {
                Term::Stop | Term::Skip | Term::Done => Vec::new(),
                Term::Prefix(event, next) => {
                    events.insert(*event);
                    vec![*next]
                }
                Term::External(one, other)
                | Term::Internal(one, other)
                | Term::Parallel(one, _, other)
                | Term::Interrupt(one, other)
                | Term::Sequence(one, other) => vec![*one, *other],
                Term::Hide(inner, _) => vec![*inner],
                Term::Rename(inner, renaming) => {
                    events.extend(renaming.0.values().flatten());
                    vec![*inner]
                }
                Term::Call(name) if processes.is_pending(*name) => {
                    known = false;
                    break;
                }
                Term::Call(name) => vec![processes.body(*name)],
            };
            open.extend(below.into_iter().filter(|&term| seen.insert(term)));
            if seen.len() > REACHED {
                known = false;
                break;
            }
        }
        let alphabet = known.then(|| Arc::new(events));
        // What is pending now may be unfolded later.
        if known {
            self.alphabets.insert(id, alphabet.clone());
        }
        alphabet
    }
}

/// Sides of a nest of compositions over the same events.
fn sides_of(processes: &Processes, id: TermId, shared: &Events, depth: usize, sides: &mut Vec<TermId>) {
    match processes.term(id) {
        Term::Parallel(one, events, other) if events == shared && depth > 0 => {
            sides_of(processes, *one, shared, depth - 1, sides);
            sides_of(processes, *other, shared, depth - 1, sides);
        }
        _ => sides.push(id),
    }
}

/// The components without which what these offer cannot be, from one on; `None` if something that they offer can be seen.
fn closed(part: &Part, component: usize) -> Option<Set> {
    let mut set: Set = 1 << component;
    loop {
        let mut grown = set;
        for offer in part.offers.iter().filter(|offer| set & (1 << offer.owner) != 0) {
            if offer.action != Action::Tau {
                return None;
            }
            grown |= offer.needs;
        }
        if grown == set {
            return Some(set);
        }
        set = grown;
    }
}

fn side_by_side(processes: &mut Processes, (left, one): (TermId, Part), shared: &Events, (right, other): (TermId, Part)) -> Part {
    let common = |action: Action| match action {
        Action::Visible(event) if shared.contains(&event) => Some(event),
        _ => None,
    };
    let alone = |action: Action| if action == Action::Tick { Action::Tau } else { action };
    let mut steps = Vec::new();
    for &(action, next, of) in one.steps.iter().filter(|step| common(step.0).is_none()) {
        steps.push((alone(action), processes.make(Term::Parallel(next, shared.clone(), right)), of));
    }
    for &(action, next, of) in other.steps.iter().filter(|step| common(step.0).is_none()) {
        steps.push((alone(action), processes.make(Term::Parallel(left, shared.clone(), next)), of));
    }
    for &(action, next, of) in one.steps.iter().filter(|step| common(step.0).is_some()) {
        for &(_, also, of_other) in other.steps.iter().filter(|step| step.0 == action) {
            steps.push((action, processes.make(Term::Parallel(next, shared.clone(), also)), of | of_other));
        }
    }
    let with = |offer: &Offer, across: &Part| {
        let needs = offer.needs | common(offer.action).map_or(0, |event| across.takers(event));
        Offer { needs, action: alone(offer.action), ..*offer }
    };
    let offers = one.offers.iter().map(|offer| with(offer, &other)).chain(other.offers.iter().map(|offer| with(offer, &one)));
    let offers = offers.collect();
    let first = one.first;
    Part { steps, offers, alphabets: one.alphabets.into_iter().chain(other.alphabets).collect(), first }
}
