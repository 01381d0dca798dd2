//! Of an order that reaches the goals, what they need: the fewer events are executed anew, the less can go another way.

use crate::model::{Effect, Model};
use rashomon_event::LockMode;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Passes after which the path stays as it is: chains of sections in each other's way are short.
const PASSES: usize = 100;

/// The part of the path (threads of steps, from `start` on) that is closed under needs, with the posts that its takes take, and
/// with the end of each section that another one excludes later. `required`: steps that must be in it.
pub fn trim(model: &Model<'_>, start: &[u32], required: &[u32], path: &[u32]) -> Vec<u32> {
    let steps = numbered(start, path);
    let posts = matched(model, &steps);
    let mut wanted: Vec<u32> = required.iter().zip(start).map(|(&required, &start)| required.max(start)).collect();
    let mut passes = 0;
    while !pass(model, &steps, &posts, &mut wanted) {
        passes += 1;
        if passes > PASSES {
            return path.to_vec();
        }
    }
    steps.into_iter().filter(|&(thread, step)| step < wanted[thread as usize]).map(|(thread, _)| thread).collect()
}

/// Thread and number of each step.
fn numbered(start: &[u32], path: &[u32]) -> Vec<(u32, u32)> {
    let mut done = start.to_vec();
    let number = |&thread: &u32| {
        done[thread as usize] += 1;
        (thread, done[thread as usize] - 1)
    };
    path.iter().map(number).collect()
}

/// Per place of the path with a take: the post that it takes, where that is on the path.
fn matched(model: &Model<'_>, steps: &[(u32, u32)]) -> FxHashMap<usize, (u32, u32)> {
    let mut free: FxHashMap<u32, VecDeque<(u32, u32)>> = FxHashMap::default();
    let mut balance: FxHashMap<u32, i64> = FxHashMap::default();
    // Takes that no post of the path has to serve: as many as the count falls short of zero without any of it.
    let mut least: FxHashMap<u32, i64> = FxHashMap::default();
    let effect = |&(thread, step): &(u32, u32)| model.steps[thread as usize][step as usize].effect;
    for step in steps {
        let (semaphore, by) = match effect(step) {
            Effect::Post(semaphore) => (semaphore, 1),
            Effect::Take(semaphore) => (semaphore, -1),
            _ => continue,
        };
        let balance = balance.entry(semaphore).or_default();
        *balance += by;
        let least = least.entry(semaphore).or_default();
        *least = (*least).min(*balance);
    }
    let mut taken = FxHashMap::default();
    for (place, step) in steps.iter().enumerate() {
        match effect(step) {
            Effect::Post(semaphore) => free.entry(semaphore).or_default().push_back(*step),
            Effect::Take(semaphore) => {
                let spare = least.entry(semaphore).or_default();
                if *spare < 0 {
                    *spare += 1;
                } else if let Some(post) = free.entry(semaphore).or_default().pop_front() {
                    taken.insert(place, post);
                }
            }
            _ => {}
        }
    }
    taken
}

/// Walks the path backwards once and adds to what is wanted; true if nothing was added behind the place that asked for it.
fn pass(model: &Model<'_>, steps: &[(u32, u32)], posts: &FxHashMap<usize, (u32, u32)>, wanted: &mut [u32]) -> bool {
    // Per lock, threads that begin a section of it later, and whether an exclusive one.
    let mut later: FxHashMap<u32, Vec<(u32, LockMode)>> = FxHashMap::default();
    // Ends of sections, latest last.
    let mut ends: FxHashMap<(u32, u32, bool), Vec<(u32, bool)>> = FxHashMap::default();
    let mut complete = true;
    for (place, &(thread, step)) in steps.iter().enumerate().rev() {
        let effect = model.steps[thread as usize][step as usize].effect;
        let within = step < wanted[thread as usize];
        if within {
            for need in model.needs(thread as usize, step) {
                let wanted = &mut wanted[need.thread as usize];
                *wanted = (*wanted).max(need.steps);
            }
            if let Some(&(thread, step)) = posts.get(&place) {
                wanted[thread as usize] = wanted[thread as usize].max(step + 1);
            }
        }
        match effect {
            Effect::Release { lock, mode } => {
                let excluded = later.get(&lock).into_iter().flatten().any(|&(other, other_mode)| {
                    other != thread && (mode == LockMode::Exclusive || other_mode == LockMode::Exclusive)
                });
                ends.entry((thread, lock, mode == LockMode::Exclusive)).or_default().push((step, excluded));
            }
            Effect::Acquire { lock, mode, .. } => {
                let end = ends.get_mut(&(thread, lock, mode == LockMode::Exclusive)).and_then(Vec::pop);
                if within {
                    if let Some((end, true)) = end
                        && end >= wanted[thread as usize]
                    {
                        wanted[thread as usize] = end + 1;
                        complete = false;
                    }
                    let threads = later.entry(lock).or_default();
                    if !threads.contains(&(thread, mode)) {
                        threads.push((thread, mode));
                    }
                }
            }
            _ => {}
        }
    }
    // What is left are ends of sections that were open when the path began.
    let open = ends.into_iter().flat_map(|((thread, ..), ends)| ends.into_iter().map(move |end| (thread, end)));
    for (thread, (end, excluded)) in open {
        if excluded && end >= wanted[thread as usize] {
            wanted[thread as usize] = end + 1;
            complete = false;
        }
    }
    complete
}
