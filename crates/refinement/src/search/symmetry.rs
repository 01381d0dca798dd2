//! Threads that do the same: of several that use the same locks and semaphores in the same order, and whom nobody waits for, it
//! matters how far how many are, not which.
//!
//! Such threads can change places in a state as soon as all of them may begin: what each can do, and what that does to the
//! others, is then the same, and so is whether the goals are reached.

use crate::model::{Effect, Model, Need};
use rustc_hash::FxHashMap;

/// What a thread does: each step's effect and needs, those of the first one apart.
type Shape = Vec<(Effect, Vec<Need>)>;

/// Classes of threads, with two at least, none of which is `needed` by goals or by steps within the limits.
pub fn classes(model: &Model<'_>, limit: &[u32], needed: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut apart = vec![false; limit.len()];
    needed.for_each(|thread| apart[thread] = true);
    for (thread, &limit) in limit.iter().enumerate() {
        for step in 0..limit {
            let waits = matches!(
                model.steps[thread][step as usize].effect,
                Effect::Wakes { .. } | Effect::Acquire { wait: Some(_), .. } | Effect::Never { .. }
            );
            apart[thread] |= waits || model.begun_by(thread, step).is_some();
            model.needs(thread, step).iter().for_each(|need| apart[need.thread as usize] = true);
        }
    }
    let mut alike: FxHashMap<Shape, Vec<u32>> = FxHashMap::default();
    for (thread, &limit) in limit.iter().enumerate().filter(|&(thread, &limit)| limit > 0 && !apart[thread]) {
        let needs = |step: u32| if step == 0 { Vec::new() } else { model.needs(thread, step).to_vec() };
        let shape = (0..limit).map(|step| (model.steps[thread][step as usize].effect, needs(step))).collect();
        alike.entry(shape).or_default().push(thread as u32);
    }
    let mut classes: Vec<Vec<u32>> = alike.into_values().filter(|class| class.len() > 1).collect();
    classes.sort_unstable();
    classes
}

/// The same state with the threads of each class in an order that depends on nothing but how far they are.
pub fn sort(model: &Model<'_>, classes: &[Vec<u32>], done: &mut [u32]) {
    for class in classes {
        let may_begin =
            |&&thread: &&u32| model.needs(thread as usize, 0).iter().all(|need| done[need.thread as usize] >= need.steps);
        let free: Vec<u32> = class.iter().filter(may_begin).copied().collect();
        let mut counts: Vec<u32> = free.iter().map(|&thread| done[thread as usize]).collect();
        counts.sort_unstable();
        free.iter().zip(counts).for_each(|(&thread, count)| done[thread as usize] = count);
    }
}
