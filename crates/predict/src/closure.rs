//! The least set of events that must run before some goals can be next.
//!
//! Computed: per thread, how long a prefix. [`Closure::sync_preserving`] is the sync-preserving ideal (Mathur, Pavlogiannis, Viswanathan,
//! "Optimal Prediction of Synchronization-Preserving Races", POPL 2021, §4.1): closed under program order, instances and reads-from, and
//! of two critical sections of one lock whose modes conflict, if both have begun, the earlier one of the trace has ended. The goals are
//! feasible together by a sync-preserving reordering iff no goal is in the set; the trace's projection onto the set is then a
//! witness. [`Closure::needs`] closes under a list of needs only.
//!
//! Extensions of the source's model, all by edges or modes: shared locks, condition waits (which end and begin sections), barriers,
//! semaphores (conservative, see [`crate::index`]), once, publication, byte-wise reads-from, atomics as accesses.
//! Cost: proportional to the dependences and sections in the set, not to its accesses.

use crate::dependences::Dependences;
use crate::index::{Index, NEVER};
use rashomon_event::{EventIndex, LockMode};
use rashomon_order::hash::IntegerMap;

/// Per thread, how many of its events are in the set.
pub type Cut = Vec<u32>;

/// Why goals are not feasible together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// The goal with this number must itself have run; the first `count` events of its thread are needed.
    Goal { number: usize, count: u32 },
    /// A section that never ends would have to end.
    NeverReleased,
}

/// The latest acquisitions of one lock in the set.
#[derive(Clone, Copy, Default)]
struct Latest {
    any: Option<EventIndex>,
    exclusive: Option<EventIndex>,
}

pub struct Closure<'i, 't> {
    index: &'i Index<'t>,
    needs: &'i Dependences,
    goals: Vec<(u32, u32)>,
    cut: Cut,
    next_need: Vec<u32>,
    next_section: Vec<u32>,
    /// Begun and not ended in the set.
    open: Vec<Vec<u32>>,
    latest: IntegerMap<u32, Latest>,
    grown: Vec<u32>,
}

impl<'i, 't> Closure<'i, 't> {
    fn new(index: &'i Index<'t>, needs: &'i Dependences, goals: &[EventIndex]) -> Self {
        let threads = index.threads.len();
        Self {
            index,
            needs,
            goals: goals.iter().map(|&goal| index.place(goal)).collect(),
            cut: vec![0; threads],
            next_need: vec![0; threads],
            next_section: vec![0; threads],
            open: vec![Vec::new(); threads],
            latest: IntegerMap::default(),
            grown: Vec::new(),
        }
    }

    /// The sync-preserving ideal of what comes before the goals.
    pub fn sync_preserving(index: &'i Index<'t>, goals: &[EventIndex]) -> Result<Cut, Infeasible> {
        let mut closure = Self::new(index, &index.causal, goals);
        closure.begin()?;
        loop {
            closure.settle()?;
            if !closure.end_earlier_sections()? {
                return Ok(closure.cut);
            }
        }
    }

    /// Closes what comes before the goals, and `more`, under `needs`.
    pub fn needs(index: &'i Index<'t>, needs: &'i Dependences, goals: &[EventIndex], more: &Cut) -> Result<Cut, Infeasible> {
        let mut closure = Self::new(index, needs, goals);
        closure.begin()?;
        for (thread, &count) in more.iter().enumerate() {
            closure.require(thread as u32, count)?;
        }
        closure.settle()?;
        Ok(closure.cut)
    }

    fn begin(&mut self) -> Result<(), Infeasible> {
        for (thread, at) in self.goals.clone() {
            // A goal that is the first event of its thread needs the thread all the same.
            if let Some((parent, fork)) = self.index.fork[thread as usize] {
                self.require(parent, fork + 1)?;
            }
            self.require(thread, at)?;
        }
        Ok(())
    }

    fn require(&mut self, thread: u32, count: u32) -> Result<(), Infeasible> {
        if self.cut[thread as usize] >= count {
            return Ok(());
        }
        if let Some(number) = self.goals.iter().position(|&(of, at)| of == thread && count > at) {
            return Err(Infeasible::Goal { number, count });
        }
        self.cut[thread as usize] = count;
        self.grown.push(thread);
        Ok(())
    }

    /// Follows needs until nothing grows.
    fn settle(&mut self) -> Result<(), Infeasible> {
        while let Some(thread) = self.grown.pop() {
            let t = thread as usize;
            while let Some(&need) = self.needs.of(t).get(self.next_need[t] as usize) {
                if need.at >= self.cut[t] {
                    break;
                }
                self.next_need[t] += 1;
                self.require(need.thread, need.count)?;
            }
            self.begin_sections(t);
        }
        Ok(())
    }

    fn begin_sections(&mut self, thread: usize) {
        let cut = self.cut[thread];
        while let Some(&number) = self.index.sections_of[thread].get(self.next_section[thread] as usize) {
            let section = &self.index.sections[number as usize];
            if section.acquire >= cut {
                break;
            }
            self.next_section[thread] += 1;
            let latest = self.latest.entry(section.lock).or_default();
            latest.any = latest.any.max(Some(section.event));
            if section.mode == LockMode::Exclusive {
                latest.exclusive = latest.exclusive.max(Some(section.event));
            }
            self.open[thread].push(number);
        }
        self.open[thread].retain(|&number| self.index.sections[number as usize].release >= cut);
    }

    /// The lock rule. Whether anything grew.
    fn end_earlier_sections(&mut self) -> Result<bool, Infeasible> {
        let mut grew = false;
        for thread in 0..self.open.len() {
            let cut = self.cut[thread];
            let mut needed = cut;
            for &number in &self.open[thread] {
                let section = &self.index.sections[number as usize];
                let latest = self.latest.get(&section.lock).copied().unwrap_or_default();
                let later = if section.mode == LockMode::Exclusive { latest.any } else { latest.exclusive };
                if later > Some(section.event) {
                    if section.release == NEVER {
                        return Err(Infeasible::NeverReleased);
                    }
                    needed = needed.max(section.release + 1);
                }
            }
            if needed > cut {
                self.require(thread as u32, needed)?;
                grew = true;
            }
        }
        Ok(grew)
    }
}
