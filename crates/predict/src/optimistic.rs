//! Witnesses of the synchronisation level: reads-from is free.
//!
//! Computed: the least set that instances require (optionally also atomic reads their writers), then an order of it in which
//! locks exclude. Sections that would stay open in threads that are no goals are completed where they stand in the way. This is
//! the reordering that Carril and Tichy's model of a trace admits (SEPS 2015, §2), found without exploring its states.
//!
//! Guarantee: an order found is accepted by the witness checker at the synchronisation level. Limits: semaphores need the posts
//! of the trace's order (see [`crate::index`]); which open sections are completed is chosen greedily; the search has a budget.
//! Whether the program takes the same branches when its reads see other values is for forcing to find out.

use crate::closure::{Cut, Infeasible, least};
use crate::dependences::Dependences;
use crate::index::{Index, NEVER};
use crate::linearise::{in_blocks, merge};
use crate::regroup::{Order, regroup};
use crate::search::{Ranks, Search};
use rashomon_event::EventIndex;
use rashomon_order::SharedMemory;

/// Rounds of completing sections.
const ROUNDS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// A goal must have run before the other.
    Ordered,
    /// Two goals hold conflicting locks, or nothing more can be completed.
    Excluded,
}

pub struct Optimistic<'a, 't> {
    pub index: &'a Index<'t>,
    pub memory: &'a SharedMemory,
    pub needs: &'a Dependences,
    pub goals: &'a [EventIndex],
    pub budget: usize,
    /// Largest order that is regrouped.
    pub regroup_limit: usize,
}

impl Optimistic<'_, '_> {
    pub fn find(&self) -> Result<Vec<EventIndex>, NotFound> {
        let ordered = |_: Infeasible| NotFound::Ordered;
        let mut cut = least(self.index, self.needs, self.goals, &Vec::new()).map_err(ordered)?;
        for _ in 0..ROUNDS {
            let mut more = self.clashing(&cut)?;
            if more.is_empty() {
                if let Some(order) = self.order(&cut) {
                    return Ok(order);
                }
                more = self.in_the_way(&cut);
                if more.is_empty() {
                    return Err(NotFound::Excluded);
                }
            }
            let mut longer = cut.clone();
            for number in more {
                let section = &self.index.sections[number as usize];
                let end = &mut longer[section.thread as usize];
                *end = (*end).max(section.release + 1);
            }
            cut = least(self.index, self.needs, self.goals, &longer).map_err(|_| NotFound::Excluded)?;
        }
        Err(NotFound::Excluded)
    }

    fn is_goal(&self, thread: u32) -> bool {
        self.goals.iter().any(|&goal| self.index.place(goal).0 == thread)
    }

    /// Sections that have begun and not ended.
    fn open(&self, cut: &Cut) -> Vec<u32> {
        cut.iter().enumerate().flat_map(|(thread, &cut)| self.index.open_at(thread, cut)).collect()
    }

    fn completable(&self, number: u32) -> bool {
        let section = &self.index.sections[number as usize];
        section.release != NEVER && !self.is_goal(section.thread)
    }

    /// Of two open sections that conflict, the one to complete.
    fn clashing(&self, cut: &Cut) -> Result<Vec<u32>, NotFound> {
        let mut open = self.open(cut);
        open.sort_unstable_by_key(|&number| (self.index.sections[number as usize].lock, number));
        let mut complete = Vec::new();
        for (place, &one) in open.iter().enumerate() {
            let section = &self.index.sections[one as usize];
            for &other in open[place + 1..].iter().take_while(|&&other| self.index.sections[other as usize].lock == section.lock)
            {
                if section.thread != self.index.sections[other as usize].thread
                    && section.conflicts(&self.index.sections[other as usize])
                {
                    let choice = [one, other].into_iter().find(|&number| self.completable(number));
                    complete.push(choice.ok_or(NotFound::Excluded)?);
                }
            }
        }
        Ok(complete)
    }

    /// Open sections of threads that are no goals and whose lock others take in the set.
    fn in_the_way(&self, cut: &Cut) -> Vec<u32> {
        let mut open = self.open(cut);
        open.retain(|&number| {
            let section = &self.index.sections[number as usize];
            self.completable(number)
                && self.index.sections_of.iter().zip(cut).any(|(sections, &cut)| {
                    let mut begun = sections
                        .iter()
                        .map(|&other| &self.index.sections[other as usize])
                        .take_while(|other| other.acquire < cut);
                    begun.any(|other| other.thread != section.thread && other.conflicts(section))
                })
        });
        open
    }

    fn order(&self, cut: &Cut) -> Option<Vec<EventIndex>> {
        let mut tried: Vec<Ranks> = Vec::new();
        for ranks in self.preferences(cut.len()) {
            if tried.contains(&ranks) {
                continue;
            }
            if let Some(sequence) = Search::run(self.index, self.needs, cut, &ranks, self.budget) {
                return Some(linearise((self.index, self.memory, self.needs), cut, &sequence, self.regroup_limit));
            }
            tried.push(ranks);
        }
        None
    }

    /// The order of the trace; each goal's thread first; the goals' threads last.
    fn preferences(&self, threads: usize) -> Vec<Ranks> {
        let goals: Vec<usize> = self.goals.iter().map(|&goal| self.index.place(goal).0 as usize).collect();
        let mut all = vec![vec![1; threads]];
        for &first in &goals {
            let mut ranks = vec![2; threads];
            goals.iter().for_each(|&goal| ranks[goal] = 1);
            ranks[first] = 0;
            all.push(ranks);
        }
        let mut last = vec![1; threads];
        goals.iter().for_each(|&goal| last[goal] = 2);
        all.push(last);
        all
    }
}

/// An order of all events of the cut, from one of its steps (as the thread of each): close to the trace, with few context
/// switches. Above the limit (in events), threads run from step to step.
pub fn linearise(
    (index, memory, needs): (&Index<'_>, &SharedMemory, &Dependences),
    cut: &Cut,
    sequence: &[u32],
    regroup_limit: usize,
) -> Vec<EventIndex> {
    let total: usize = cut.iter().map(|&count| count as usize).sum();
    if total > regroup_limit {
        return in_blocks(index, cut, sequence);
    }
    let Some(order) = merge(index, needs, cut, sequence) else {
        return in_blocks(index, cut, sequence);
    };
    let constraints = Order::of(index, memory, cut, order.iter().copied());
    regroup(index, cut, &[&index.instances, &constraints]).unwrap_or(order)
}
