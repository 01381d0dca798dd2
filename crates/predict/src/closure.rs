//! The least set of events that must run before some goals can be next.
//!
//! Computed: per thread, how long a prefix. [`Closures::sync_preserving`] is the sync-preserving ideal (Mathur, Pavlogiannis,
//! Viswanathan, "Optimal Prediction of Synchronization-Preserving Races", POPL 2021, §4.1): closed under program order,
//! instances and reads-from, and of two critical sections of one lock whose modes conflict, if both have begun, the earlier one
//! of the trace has ended. The goals are feasible together by a sync-preserving reordering iff no goal is in the set; the
//! trace's projection onto the set is then a witness. [`Closures::optimistic`] is the optimistic lock closure (Shi, Mathur,
//! Pavlogiannis, "Optimistic Prediction of Synchronization-Reversal Data Races", ICSE 2024): every section that can end without
//! a goal has ended. [`least`] closes under a list of needs only.
//!
//! Extensions of the sources' models, all by edges or modes: shared locks, condition waits (which end and begin sections),
//! barriers, semaphores (conservative, see [`crate::index`]), once, publication, byte-wise reads-from, atomics as accesses. Cost:
//! [`Closures`] starts from vectors of what is needed ([`crate::clocks`]) and looks only at sections that are open: independent
//! of the length of the trace but for searches in sorted lists. [`least`]: proportional to the dependences in the set.

use crate::clocks::Clocks;
use crate::dependences::Dependences;
use crate::index::{Index, NEVER, Section};
use rashomon_event::{EventIndex, LockMode};

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

/// Goals, by thread and position.
struct Goals(Vec<(u32, u32)>);

impl Goals {
    fn new(index: &Index<'_>, goals: &[EventIndex]) -> Self {
        Self(goals.iter().map(|&goal| index.place(goal)).collect())
    }

    fn outside(&self, cut: &Cut) -> Result<(), Infeasible> {
        match self.0.iter().position(|&(thread, at)| cut[thread as usize] > at) {
            Some(number) => Err(Infeasible::Goal { number, count: cut[self.0[number].0 as usize] }),
            None => Ok(()),
        }
    }
}

/// Closures under causal needs.
pub struct Closures<'i, 't> {
    pub index: &'i Index<'t>,
    clocks: Clocks,
}

impl<'i, 't> Closures<'i, 't> {
    pub fn new(index: &'i Index<'t>) -> Self {
        Self { index, clocks: Clocks::new(index, &index.causal) }
    }

    /// What comes before the goals, and what it needs.
    pub fn before(&self, goals: &[EventIndex]) -> Result<Cut, Infeasible> {
        let mut cut = vec![0; self.index.thread_count()];
        let places = Goals::new(self.index, goals);
        for &(thread, at) in &places.0 {
            // A goal that is the first event of its thread needs the thread all the same.
            if let Some((parent, fork)) = self.index.fork[thread as usize] {
                self.clocks.join(parent as usize, fork + 1, &mut cut);
            }
            self.clocks.join(thread as usize, at, &mut cut);
        }
        for &goal in goals {
            // What a condition wait is about to do is to take its mutex: it has been woken.
            for (thread, at) in self.index.needed_at(goal) {
                self.clocks.join(thread as usize, at + 1, &mut cut);
            }
        }
        places.outside(&cut)?;
        Ok(cut)
    }

    /// Adds the end of a section, and what it needs.
    pub fn end(&self, section: &Section, goals: &[EventIndex], cut: &Cut) -> Result<Cut, Infeasible> {
        if section.release == NEVER {
            return Err(Infeasible::NeverReleased);
        }
        let mut longer = cut.clone();
        self.clocks.join(section.thread as usize, section.release + 1, &mut longer);
        Goals::new(self.index, goals).outside(&longer)?;
        Ok(longer)
    }

    /// The sync-preserving ideal of what comes before the goals.
    pub fn sync_preserving(&self, goals: &[EventIndex]) -> Result<Cut, Infeasible> {
        let mut cut = self.before(goals)?;
        while let Some(number) = self.earlier_section(&cut) {
            cut = self.end(&self.index.sections[number as usize], goals, &cut)?;
        }
        Ok(cut)
    }

    /// The lock rule: a section that is open although one that it excludes has begun later in the trace.
    fn earlier_section(&self, cut: &Cut) -> Option<u32> {
        let mut open = (0..cut.len()).flat_map(|thread| self.index.open_at(thread, cut[thread]));
        open.find(|&number| {
            let section = &self.index.sections[number as usize];
            self.index.latest_conflicting(section, cut).is_some_and(|later| later > section.event)
        })
    }

    /// The optimistic lock closure of what comes before the goals.
    pub fn optimistic(&self, goals: &[EventIndex]) -> Result<Cut, Infeasible> {
        let mut cut = self.before(goals)?;
        // What a section needs to end does not depend on the set: one that cannot end now never can.
        let mut stay_open: Vec<u32> = Vec::new();
        loop {
            let mut open = (0..cut.len()).flat_map(|thread| self.index.open_at(thread, cut[thread]));
            let Some(number) = open.find(|number| !stay_open.contains(number)) else {
                return Ok(cut);
            };
            match self.end(&self.index.sections[number as usize], goals, &cut) {
                Ok(longer) => cut = longer,
                Err(_) => stay_open.push(number),
            }
        }
    }
}

impl Index<'_> {
    /// The latest section below the cut that excludes this one, by its acquisition; this one itself if it is that.
    pub fn latest_conflicting(&self, section: &Section, cut: &Cut) -> Option<EventIndex> {
        let uses = self.sections_on[section.lock as usize].iter();
        let latest = uses.filter_map(|use_| {
            let sections = if section.mode == LockMode::Exclusive { &use_.sections } else { &use_.exclusive };
            let begun = sections.partition_point(|&number| self.sections[number as usize].acquire < cut[use_.thread as usize]);
            Some(self.sections[sections[begun.checked_sub(1)?] as usize].event)
        });
        latest.max()
    }
}

/// Closes what comes before the goals, and `more`, under `needs`.
pub fn least(index: &Index<'_>, needs: &Dependences, goals: &[EventIndex], more: &Cut) -> Result<Cut, Infeasible> {
    let threads = index.thread_count();
    let seen: Vec<(u32, u32)> = goals.iter().flat_map(|&goal| index.kept_at(goal)).collect();
    let goals = Goals::new(index, goals);
    let (mut cut, mut next, mut grown) = (vec![0; threads], vec![0usize; threads], Vec::new());
    let require = |thread: u32, count: u32, cut: &mut Cut, grown: &mut Vec<u32>| {
        if cut[thread as usize] < count {
            cut[thread as usize] = count;
            grown.push(thread);
        }
    };
    for &(thread, at) in &goals.0 {
        if let Some((parent, fork)) = index.fork[thread as usize] {
            require(parent, fork + 1, &mut cut, &mut grown);
        }
        require(thread, at, &mut cut, &mut grown);
    }
    for (thread, at) in seen {
        require(thread, at + 1, &mut cut, &mut grown);
    }
    for (thread, &count) in more.iter().enumerate() {
        require(thread as u32, count, &mut cut, &mut grown);
    }
    while let Some(thread) = grown.pop() {
        goals.outside(&cut)?;
        let thread = thread as usize;
        while let Some(need) = needs.of(thread).get(next[thread]).filter(|need| need.at < cut[thread]) {
            next[thread] += 1;
            require(need.thread, need.count, &mut cut, &mut grown);
        }
    }
    goals.outside(&cut)?;
    Ok(cut)
}
