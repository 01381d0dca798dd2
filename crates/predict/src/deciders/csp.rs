//! Any order of the CSP model in which atomic reads come after their writers ([`rashomon_refinement`]): for what the greedy
//! choices of the optimistic decider miss, and with semaphores as they are.

use super::{Decision, Question, Stage};
use crate::dependences::Dependences;
use crate::index::Index;
use crate::optimistic::linearise;
use rashomon_event::{Deadline, EventIndex};
use rashomon_refinement::facts::Atomics;
use rashomon_refinement::loops::{Loop, loops};
use rashomon_refinement::model::Model;
use rashomon_refinement::search::{Answer, Limits, Reductions, Window, find};
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// Models of one trace, built when they are asked for, and what they have cost.
#[derive(Default)]
pub struct Search<'t> {
    kept: Built<'t>,
    free: Built<'t>,
    loops: OnceCell<Vec<Loop>>,
    steps: Cell<usize>,
    states: Cell<usize>,
}

impl Search<'_> {
    pub(super) const fn states(&self) -> usize {
        self.states.get()
    }
}

/// Of one kind of atomics.
#[derive(Default)]
struct Built<'t> {
    model: OnceCell<Model<'t>>,
    /// Where the trace has wait loops.
    respecting: OnceCell<Model<'t>>,
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

    fn knows_waits(&self) -> bool {
        true
    }
}

/// Refuted: no order of the model has the goals next, so no correct reordering has.
pub(super) fn decide(question: &Question<'_, '_>, goals: &[EventIndex], atomics: Atomics, needs: &Dependences) -> Decision {
    let Question { index, refinement, .. } = question;
    let built = match atomics {
        Atomics::Kept => &refinement.kept,
        Atomics::Free => &refinement.free,
    };
    let loops = refinement.loops.get_or_init(|| loops(index.trace));
    // Of an order that does not respect a wait loop, the program would leave it; but it may be none.
    if !loops.is_empty() {
        let model = built.respecting.get_or_init(|| Model::respecting(index.trace, atomics, loops));
        if let Answer::Order(order) = around(question, model, goals) {
            return Decision::Witness(in_order(question, needs, goals, order));
        }
    }
    let model = built.model.get_or_init(|| Model::new(index.trace, atomics));
    let decision = around(question, model, goals);
    match decision {
        Answer::Order(order) => Decision::Witness(in_order(question, needs, goals, order)),
        Answer::No { ordered: true } => Decision::Ordered,
        Answer::No { ordered: false } => Decision::Refuted,
        Answer::Undecided => Decision::Undecided,
    }
}

/// In the whole trace, or where that is too much, in a window.
fn around(question: &Question<'_, '_>, model: &Model<'_>, goals: &[EventIndex]) -> Answer {
    let whole = Window::whole(model);
    let answer = search(question, model, goals, whole);
    let window = || Window::around(model, goals, question.options.refinement.window).filter(|&window| window != whole);
    if answer == Answer::Undecided
        && let Some(window) = window()
    {
        // That it has none says nothing of the trace.
        return match search(question, model, goals, window) {
            Answer::Order(order) => Answer::Order(order),
            _ => Answer::Undecided,
        };
    }
    answer
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
    question.refinement.states.update(|states| states + found.states);
    found.answer
}

/// Closer to the order of the trace, with the same order of synchronisation.
fn in_order(question: &Question<'_, '_>, needs: &Dependences, goals: &[EventIndex], order: Vec<EventIndex>) -> Vec<EventIndex> {
    let &Question { index, memory, options, .. } = question;
    // The needs of takes are stricter there than in the model.
    if index.semaphores {
        return order;
    }
    let mut cut = vec![0; index.thread_count()];
    let mut steps = vec![0_usize; index.thread_count()];
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
    let total: usize = cut.iter().map(|&count| count as usize).sum();
    if total <= options.regroup_limit {
        with_writers(index, needs, goals, &mut cut);
    }
    linearise((index, memory, needs), &cut, &sequence, options.regroup_limit)
}

/// Threads go on to what others saw of theirs, where no synchronisation stands in between: a thread that reads something else may
/// go another way, and never come to its goal.
fn with_writers(index: &Index<'_>, needs: &Dependences, goals: &[EventIndex], cut: &mut [u32]) {
    let mut most = vec![u32::MAX; cut.len()];
    for &goal in goals {
        let (thread, at) = index.place(goal);
        most[thread as usize] = at;
    }
    let mut looked_at = vec![0; cut.len()];
    let mut grown = true;
    while std::mem::take(&mut grown) {
        for thread in 0..cut.len() {
            let of_thread = &index.causal.of(thread)[looked_at[thread]..];
            let wanted = of_thread.iter().take_while(|wanted| wanted.at < cut[thread]);
            for wanted in wanted.copied().collect::<Vec<_>>() {
                looked_at[thread] += 1;
                let (writer, from) = (wanted.thread as usize, cut[wanted.thread as usize]);
                if from < wanted.count && wanted.count <= most[writer] && runs_on(index, needs, cut, writer, from..wanted.count) {
                    cut[writer] = wanted.count;
                    grown = true;
                }
            }
        }
    }
}

/// Whether the thread can do these events behind its cut at once.
fn runs_on(index: &Index<'_>, needs: &Dependences, cut: &[u32], thread: usize, events: Range<u32>) -> bool {
    let step = index.steps[thread].partition_point(|step| step.at < events.start);
    let needs = needs.of(thread);
    let first = needs.partition_point(|need| need.at < events.start);
    let mut needed = needs[first..].iter().take_while(|need| need.at < events.end);
    index.steps[thread].get(step).is_none_or(|step| step.at >= events.end)
        && needed.all(|need| need.count <= cut[need.thread as usize])
}
