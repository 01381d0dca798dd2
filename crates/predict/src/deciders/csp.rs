//! Any order of the CSP model in which atomic reads come after their writers ([`rashomon_refinement`]): for what the greedy
//! choices of the optimistic decider miss, and with semaphores as they are.

use super::{Decision, Question, Stage};
use crate::dependences::Dependences;
use crate::optimistic::linearise;
use rashomon_event::{Deadline, EventIndex};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Reductions, Window, find};
use std::cell::{Cell, OnceCell};

/// Models of one trace, built when they are asked for, and what they have cost.
#[derive(Default)]
pub struct Search<'t> {
    kept: OnceCell<Model<'t>>,
    free: OnceCell<Model<'t>>,
    steps: Cell<usize>,
}

pub struct Decider;

impl super::Decider for Decider {
    fn name(&self) -> &'static str {
        "csp"
    }

    fn stage(&self) -> Stage {
        Stage::Synchronisation
    }

    fn decide(&self, question: &Question<'_, '_>, goals: &[EventIndex]) -> Decision {
        match decide(question, goals, Atomics::Kept, &question.index.atomic) {
            // There may be one in which atomic reads see something else.
            Decision::Refuted => Decision::Undecided,
            decision => decision,
        }
    }
}

/// Refuted: no order of the model has the goals next, so no correct reordering has.
pub(super) fn decide(question: &Question<'_, '_>, goals: &[EventIndex], atomics: Atomics, needs: &Dependences) -> Decision {
    let Question { index, options, refinement, .. } = question;
    let built = match atomics {
        Atomics::Kept => &refinement.kept,
        Atomics::Free => &refinement.free,
    };
    let model = built.get_or_init(|| Model::new(index.trace, atomics));
    let whole = Window::whole(model);
    let around = || Window::around(model, goals, options.refinement.window).filter(|&window| window != whole);
    let mut decision = search(question, model, goals, whole);
    if decision == Answer::Undecided
        && let Some(window) = around()
    {
        // That it has none says nothing of the trace.
        decision = match search(question, model, goals, window) {
            Answer::Order(order) => Answer::Order(order),
            _ => Answer::Undecided,
        };
    }
    match decision {
        Answer::Order(order) => Decision::Witness(in_order(question, needs, order)),
        Answer::No { ordered: true } => Decision::Ordered,
        Answer::No { ordered: false } => Decision::Refuted,
        Answer::Undecided => Decision::Undecided,
    }
}

fn search(question: &Question<'_, '_>, model: &Model<'_>, goals: &[EventIndex], window: Window) -> Answer {
    let limits = question.options.refinement;
    let spent = &question.refinement.steps;
    let steps = limits.steps.min(limits.all_steps.saturating_sub(spent.get()));
    if steps == 0 {
        return Answer::Undecided;
    }
    let deadline: Deadline = question.options.deadline;
    let found = find(model, goals, window, &Limits { states: limits.states, steps, deadline, reductions: Reductions::ALL });
    spent.set(spent.get() + found.steps);
    found.answer
}

/// Closer to the order of the trace, with the same order of synchronisation.
fn in_order(question: &Question<'_, '_>, needs: &Dependences, order: Vec<EventIndex>) -> Vec<EventIndex> {
    let &Question { index, memory, options, .. } = question;
    // The needs of takes are stricter there than in the model.
    if index.semaphores {
        return order;
    }
    let mut cut = vec![0; index.threads.len()];
    let mut steps = vec![0_usize; index.threads.len()];
    let mut sequence = Vec::new();
    for &event in &order {
        let (thread, at) = index.place(event);
        cut[thread as usize] = at + 1;
        let step = &mut steps[thread as usize];
        if index.steps[thread as usize].get(*step).is_some_and(|step| step.at == at) {
            *step += 1;
            sequence.push(thread);
        }
    }
    linearise((index, memory, needs), &cut, &sequence, options.regroup_limit)
}
