//! The backward slice of goals: how far each thread can matter.
//!
//! Computed: the least cut that holds what the goals need and what has to run, and is closed under program order, the structural
//! needs of its events, the writes that its reads may see, the ends of its sections and the posts of its takes. Nothing runs at
//! or behind a goal.
//!
//! A witness that leaves the slice, restricted to it, is a witness still: reads keep the writes they see and no write is added
//! in between, sections that began inside end inside, and a take left out leaves more for the others.

use super::facts::Facts;
use super::{Target, most_of, needed_by};
use crate::closure::Cut;
use crate::index::{Effect, NEVER};
use rashomon_event::{Deadline, EventIndex, EventKind};
use std::collections::BTreeSet;

/// How far each thread can matter.
pub struct Slice {
    pub cut: Cut,
    /// Granules of which some read may see another write than it saw.
    pub choices: BTreeSet<u32>,
    /// Some read need not matter.
    pub has_uses: bool,
    /// Writes that reads were compared with.
    looks: usize,
    /// Events of the cut, so far, that synchronise or touch shared memory.
    nodes: usize,
    /// Per thread, where its goal is.
    most: Vec<u32>,
    /// Threads whose cut has grown.
    grown: Vec<usize>,
}

impl Slice {
    /// Whether some read may see another write than it saw.
    pub fn has_choices(&self) -> bool {
        self.has_uses || !self.choices.is_empty()
    }

    const fn exceeds(&self, bounds: Most) -> bool {
        self.nodes > bounds.events || self.looks > bounds.looks
    }

    fn need(&mut self, (thread, at): (u32, u32)) {
        let thread = thread as usize;
        let count = at.saturating_add(1).min(self.most[thread]);
        if self.cut[thread] < count {
            self.cut[thread] = count;
            self.grown.push(thread);
        }
    }
}

/// Most writes that reads are compared with, for their values.
pub const MOST_LOOKS: usize = 10_000_000;

/// What a slice may cost.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Events that synchronise or touch shared memory. Of a slice with more nothing is decided.
    pub events: usize,
    /// Writes whose values are compared.
    pub looks: usize,
}

/// `None`: the deadline has passed, or it would cost more.
pub fn slice(facts: &Facts<'_, '_>, target: Target<'_>, bounds: Most, deadline: Deadline) -> Option<Slice> {
    let index = facts.index;
    let threads = index.thread_count();
    let most = index.counts();
    let (choices, grown) = Default::default();
    let mut slice = Slice { cut: vec![0; threads], choices, has_uses: false, looks: 0, nodes: 0, most, grown };
    for &goal in target.goals {
        let (thread, at) = index.place(goal);
        slice.most[thread as usize] = slice.most[thread as usize].min(at);
    }
    for stand in target.stands {
        let thread = stand.thread.index();
        slice.most[thread] = slice.most[thread].min(most_of(index, stand));
    }
    for &(one, other) in target.orders {
        [one, other].into_iter().for_each(|event| slice.need(index.place(event)));
    }
    target.stands.iter().flat_map(|stand| needed_by(index, stand)).for_each(|needed| slice.need(needed));
    for &goal in target.goals {
        let (thread, at) = index.place(goal);
        index.fork[thread as usize].into_iter().for_each(|fork| slice.need(fork));
        if let Some(last) = at.checked_sub(1) {
            slice.need((thread, last));
        }
        index.needed_at(goal).for_each(|needed| slice.need(needed));
    }
    let mut watch = deadline.watch();
    let (mut told, mut needs, mut steps) = (vec![0; threads], vec![0; threads], vec![0; threads]);
    while let Some(thread) = slice.grown.pop() {
        let end = slice.cut[thread];
        while let Some(need) = index.structure.of(thread).get(needs[thread]).filter(|need| need.at < end) {
            needs[thread] += 1;
            slice.need((need.thread, need.count - 1));
        }
        while let Some(step) = index.steps[thread].get(steps[thread]).filter(|step| step.at < end) {
            steps[thread] += 1;
            slice.nodes += usize::from(!facts.is_shared(index.threads.at(thread, step.at)));
            if let Effect::Acquire(number) = step.effect
                && index.sections[number as usize].release != NEVER
            {
                slice.need((thread as u32, index.sections[number as usize].release));
            }
        }
        for next in facts.telling(thread, std::mem::replace(&mut told[thread], end)..end) {
            event(facts, next, &mut slice);
            if watch.is_over() || slice.exceeds(bounds) {
                return None;
            }
        }
        if slice.exceeds(bounds) {
            return None;
        }
    }
    Some(slice)
}

fn event(facts: &Facts<'_, '_>, event: EventIndex, slice: &mut Slice) {
    let index = facts.index;
    if let EventKind::Take { semaphore } = index.trace.kind(event)
        && let Some(semaphore) = facts.semaphores.get(&semaphore)
    {
        semaphore.posts.iter().for_each(|&post| slice.need(index.place(post)));
    }
    slice.has_uses |= facts.use_of(event).is_some();
    slice.nodes += usize::from(facts.is_shared(event));
    for read in facts.reads(event) {
        read.writer.into_iter().for_each(|writer| slice.need(index.place(writer)));
        if facts.may_choose(event, &read) {
            slice.looks += facts.granules[read.granule as usize].count();
            let mut bytes = super::facts::each(read.bytes);
            if read.writer.is_some() && bytes.any(|byte| facts.may_see(event, &read, None, 1 << byte)) {
                slice.choices.insert(read.granule);
            }
            for write in facts.granules[read.granule as usize].writes() {
                let mut common = super::facts::each(read.bytes & write.bytes);
                if write.event != event && common.any(|byte| facts.may_see(event, &read, Some(write.event), 1 << byte)) {
                    if Some(write.event) != read.writer {
                        slice.choices.insert(read.granule);
                    }
                    slice.need(index.place(write.event));
                }
            }
        }
    }
}
