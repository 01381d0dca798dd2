//! Runs a term along a given trace, to check counterexamples. Slow and small; shares nothing with the explored transitions.
//!
//! It knows no reductions, so that what took few states to find may be too much for it: then it says that, and nothing else.

use crate::refine::{Limits, Then};
use crate::term::{Events, Processes, Renaming, Term, TermId};
use crate::transitions::Action;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Instant;

/// For each state that a search may have, so many parts of states are looked at or copied; and so many at least.
const FOR_EACH_STATE: usize = 8;
const LEAST: usize = 1 << 17;
/// The clock is read once for so many.
const BETWEEN_LOOKS: usize = 1 << 10;

/// Who looks at states, and for how long.
struct Work<'p> {
    processes: &'p mut Processes,
    left: usize,
    /// States so far.
    looked_at: usize,
    until: Option<Instant>,
}

impl Work<'_> {
    /// Whether one more state may be looked at.
    fn goes_on(&mut self) -> bool {
        self.looked_at += 1;
        if self.looked_at.is_multiple_of(BETWEEN_LOOKS) && self.until.is_some_and(|until| Instant::now() >= until) {
            self.left = 0;
        }
        self.copies(1);
        self.left > 0
    }

    /// What so many steps of a part are copied for.
    const fn copies(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }
}

/// What a term has become.
#[derive(Clone, PartialEq, Eq, Hash)]
enum State {
    /// As it is written.
    Written(TermId),
    Ended,
    Choice(Box<State>, Box<State>),
    Both(Box<State>, Events, Box<State>),
    Hiding(Box<State>, Events),
    Renamed(Box<State>, Renaming),
    Until(Box<State>, Box<State>),
    Followed(Box<State>, TermId),
}

/// Whether the process can do the trace, and then that. Of one that may terminate, what it offers is just its tick. `None`: the
/// limits do not allow to say.
pub fn shows(processes: &mut Processes, process: TermId, (trace, then): (&[Action], &Then), limits: &Limits) -> Option<bool> {
    let left = limits.states.saturating_mul(FOR_EACH_STATE).max(LEAST);
    let work = &mut Work { processes, left, looked_at: 0, until: limits.until };
    let mut now = quiet(work, HashSet::from([State::Written(process)]));
    for &action in trace {
        let steps: Vec<_> = now.iter().flat_map(|state| can(work, state)).collect();
        let next = steps.into_iter().filter(|step| step.0 == action).map(|step| step.1);
        now = quiet(work, next.collect());
    }
    let shows = match then {
        Then::Anything => !now.is_empty(),
        Then::Diverges => now.iter().any(|state| runs_for_ever(work, state)),
        Then::Offers(offers) => now.iter().any(|state| {
            let actions: BTreeSet<_> = can(work, state).into_iter().map(|step| step.0).collect();
            match actions.contains(&Action::Tick) {
                true => *offers == BTreeSet::from([Action::Tick]),
                false => actions == *offers,
            }
        }),
    };
    (work.left > 0).then_some(shows)
}

/// Whether internal steps lead back to where they have been.
fn runs_for_ever(work: &mut Work<'_>, from: &State) -> bool {
    let mut internal = |state: &State| -> Vec<State> {
        can(work, state).into_iter().filter(|step| step.0 == Action::Tau).map(|step| step.1).collect()
    };
    // Of each state that was come to: whether the way to where we are leads through it.
    let mut known = HashMap::from([(from.clone(), true)]);
    let mut way: Vec<(State, Vec<State>)> = vec![(from.clone(), internal(from))];
    while let Some((state, open)) = way.last_mut() {
        let Some(next) = open.pop() else {
            known.insert(state.clone(), false);
            way.pop();
            continue;
        };
        match known.get(&next) {
            Some(true) => return true,
            Some(false) => {}
            None => {
                let open = internal(&next);
                known.insert(next.clone(), true);
                way.push((next, open));
            }
        }
    }
    false
}

fn quiet(work: &mut Work<'_>, mut states: HashSet<State>) -> HashSet<State> {
    let mut open: Vec<_> = states.iter().cloned().collect();
    while let Some(state) = open.pop() {
        for (action, next) in can(work, &state) {
            if action == Action::Tau && states.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    states
}

/// One level of the term, as a state.
fn opened(processes: &mut Processes, id: TermId) -> Option<State> {
    if let Term::Call(name) = *processes.term(id) {
        // A script that is wrong there has no more to show.
        return processes.unfolded(name).ok().map(State::Written);
    }
    let written = |id: &TermId| Box::new(State::Written(*id));
    Some(match processes.term(id) {
        Term::Done => State::Ended,
        Term::External(a, b) => State::Choice(written(a), written(b)),
        Term::Parallel(a, set, b) => State::Both(written(a), set.clone(), written(b)),
        Term::Hide(a, set) => State::Hiding(written(a), set.clone()),
        Term::Interrupt(a, b) => State::Until(written(a), written(b)),
        Term::Rename(a, renaming) => State::Renamed(written(a), renaming.clone()),
        Term::Sequence(a, b) => State::Followed(written(a), *b),
        Term::Stop | Term::Skip | Term::Prefix(..) | Term::Internal(..) | Term::Call(_) => return None,
    })
}

/// Nothing, once the limits are reached.
fn can(work: &mut Work<'_>, state: &State) -> Vec<(Action, State)> {
    if !work.goes_on() {
        return Vec::new();
    }
    let mut of = |state: &State| can(work, state);
    let within = |set: &Events, action| matches!(action, Action::Visible(event) if set.contains(&event));
    match state {
        State::Ended => Vec::new(),
        State::Written(id) => match (opened(work.processes, *id), work.processes.term(*id)) {
            (Some(state), _) => can(work, &state),
            (None, Term::Skip) => vec![(Action::Tick, State::Ended)],
            (None, Term::Prefix(event, next)) => vec![(Action::Visible(*event), State::Written(*next))],
            (None, Term::Internal(a, b)) => vec![(Action::Tau, State::Written(*a)), (Action::Tau, State::Written(*b))],
            (None, _) => Vec::new(),
        },
        State::Choice(a, b) => {
            let left = of(a).into_iter().map(|(action, next)| match action {
                Action::Tau => (action, State::Choice(Box::new(next), b.clone())),
                _ => (action, next),
            });
            let right = of(b).into_iter().map(|(action, next)| match action {
                Action::Tau => (action, State::Choice(a.clone(), Box::new(next))),
                _ => (action, next),
            });
            left.chain(right).collect()
        }
        State::Until(a, b) => {
            let inner = of(a).into_iter().map(|(action, next)| match action {
                Action::Tick => (action, next),
                _ => (action, State::Until(Box::new(next), b.clone())),
            });
            let by = of(b).into_iter().map(|(action, next)| match action {
                Action::Tau => (action, State::Until(a.clone(), Box::new(next))),
                _ => (action, next),
            });
            inner.chain(by).collect()
        }
        State::Renamed(a, renaming) => of(a)
            .into_iter()
            .flat_map(|(action, next)| {
                let called: Vec<Action> = match action {
                    Action::Visible(event) => renaming.of(event).into_iter().map(Action::Visible).collect(),
                    _ => vec![action],
                };
                let next = if action == Action::Tick { next } else { State::Renamed(Box::new(next), renaming.clone()) };
                called.into_iter().map(move |action| (action, next.clone()))
            })
            .collect(),
        State::Followed(a, then) => of(a)
            .into_iter()
            .map(|(action, next)| match action {
                Action::Tick => (Action::Tau, State::Written(*then)),
                _ => (action, State::Followed(Box::new(next), *then)),
            })
            .collect(),
        State::Hiding(a, set) => of(a)
            .into_iter()
            .map(|(action, next)| match action {
                Action::Tick => (action, next),
                _ => {
                    let seen = if within(set, action) { Action::Tau } else { action };
                    (seen, State::Hiding(Box::new(next), set.clone()))
                }
            })
            .collect(),
        State::Both(a, set, b) => together(work, a, set, b),
    }
}

/// Steps of two processes that synchronise on a set.
fn together(work: &mut Work<'_>, a: &State, set: &Events, b: &State) -> Vec<(Action, State)> {
    if *a == State::Ended && *b == State::Ended {
        return vec![(Action::Tick, State::Ended)];
    }
    let synchronised = |action| matches!(action, Action::Visible(event) if set.contains(&event));
    let both = |a: State, b: State| State::Both(Box::new(a), set.clone(), Box::new(b));
    // That one side has ended is seen only when both have.
    let seen = |action| if action == Action::Tick { Action::Tau } else { action };
    let right = can(work, b);
    let mut steps = Vec::new();
    for (action, next) in can(work, a) {
        if synchronised(action) {
            let others = right.iter().filter(|step| step.0 == action);
            steps.extend(others.map(|(_, other)| (action, both(next.clone(), other.clone()))));
        } else {
            steps.push((seen(action), both(next, b.clone())));
        }
    }
    let alone = right.into_iter().filter(|step| !synchronised(step.0));
    steps.extend(alone.map(|(action, next)| (seen(action), both(a.clone(), next))));
    work.copies(steps.len());
    steps
}
