//! From the targets of a recording to what each provoking execution watches.
//!
//! A hold at one site tries all targets with that site on one side at once, as any conflicting access of another thread is a catch. So what is watched are
//! descriptors, each once, whatever the number of pairs.

use rashomon_confirm::provoke::was_fair;
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::{CodePlace, Descriptor, EventIndex, SiteId, ThreadPath, Trace};
use rashomon_order::targets::{Describe, Target, targets};
use rashomon_trace::{Provoked, Watched};
use std::collections::{BTreeMap, BTreeSet};

/// How often a thread is held at one descriptor in one execution.
pub const HOLDS: u64 = 14;
/// Fair holds at each side after which a target that showed nothing is decided (fewer where there are no more matches), and executions that are made to
/// get so many.
const TRIES: u64 = 6;
const EXECUTIONS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Open,
    /// Caught: both stood side by side.
    Proven,
    /// Fair attempts showed nothing.
    NotProvoked,
    /// No execution gave it a fair attempt.
    NotReached,
}

/// A target with what has become of it.
#[derive(Clone, Debug)]
pub struct Pair {
    pub target: Target,
    pub places: [CodePlace; 2],
    /// Index of each side's descriptor in [`Plan::descriptors`].
    pub sides: [usize; 2],
    pub decision: Decision,
    /// Executions in which it was tried, and at each side the fair holds; and whether these were all that was to be had.
    pub executions: u32,
    pub tries: [u64; 2],
    pub exhausted: [bool; 2],
}

/// How one execution differs from others.
#[derive(Clone, Debug)]
pub struct Round {
    /// Indices of the pairs that it tries.
    pub pairs: Vec<usize>,
    /// Index in [`Plan::descriptors`] of each watched descriptor.
    pub descriptors: Vec<usize>,
    pub watched: Vec<Watched>,
    pub favoured: Option<ThreadPath>,
}

pub struct Plan {
    pub modules: Vec<ScheduleModule>,
    pub descriptors: Vec<Descriptor>,
    pub pairs: Vec<Pair>,
}

/// A site as a place that survives re-execution.
pub fn place_of(trace: &Trace, site: SiteId) -> CodePlace {
    let site = trace.site(site);
    match site.module {
        Some(module) => CodePlace { module: Some(module), offset: site.offset },
        None => CodePlace { module: None, offset: site.address },
    }
}

impl Plan {
    pub fn new(trace: &Trace) -> Self {
        let modules = trace.modules.iter();
        let modules = modules.map(|module| ScheduleModule { path: module.path.clone(), build_id: module.build_id.clone() });
        let targets = targets(trace);
        let sites: BTreeSet<SiteId> = targets.iter().flat_map(|target| [target.sites.0, target.sites.1]).collect();
        let describe = Describe::new(trace, &sites);
        let mut plan = Self { modules: modules.collect(), descriptors: Vec::new(), pairs: Vec::new() };
        let mut numbers: BTreeMap<(ThreadPath, SiteId, Vec<SiteId>), usize> = BTreeMap::new();
        for target in targets {
            let sides = [target.first, target.second].map(|event| plan.descriptor(trace, &describe, &mut numbers, event));
            let places = [target.first, target.second].map(|event| place_of(trace, trace.event(event).site));
            plan.pairs.push(Pair {
                target,
                places,
                sides,
                decision: Decision::Open,
                executions: 0,
                tries: [0; 2],
                exhausted: [false; 2],
            });
        }
        plan
    }

    /// The descriptor of an access. Those that differ in the ordinal only are one: the smallest is tried first, then its doubles.
    fn descriptor(
        &mut self,
        trace: &Trace,
        describe: &Describe<'_>,
        numbers: &mut BTreeMap<(ThreadPath, SiteId, Vec<SiteId>), usize>,
        index: EventIndex,
    ) -> usize {
        let event = trace.event(index);
        let apart = describe.of(index);
        let path = trace.thread(event.thread).path.clone();
        let next = self.descriptors.len();
        let number = *numbers.entry((path.clone(), event.site, apart.frames.clone())).or_insert(next);
        if number == next {
            self.descriptors.push(Descriptor {
                thread: Some(path),
                identity: 0,
                site: place_of(trace, event.site),
                frames: apart.frames.iter().map(|frame| place_of(trace, *frame)).collect(),
                ordinal: apart.ordinal,
            });
        }
        let known = &mut self.descriptors[number].ordinal;
        *known = (*known).min(apart.ordinal);
        number
    }

    pub fn open(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.decision == Decision::Open).count()
    }

    /// What the next executions try, one entry each: `share` of them divide the open pairs among themselves. `number`: executions made before.
    pub fn rounds(&self, number: u32, share: usize) -> Vec<Round> {
        let open: Vec<usize> = (0..self.pairs.len()).filter(|pair| self.pairs[*pair].decision == Decision::Open).collect();
        let share = share.clamp(1, open.len().max(1));
        (0..share).map(|part| self.round(number, open.iter().copied().skip(part).step_by(share).collect())).collect()
    }

    fn round(&self, number: u32, pairs: Vec<usize>) -> Round {
        // Pairs that have had no fair attempt are given a head start, one thread at a time, and in the end any thread will do.
        let unfair = pairs.iter().map(|pair| &self.pairs[*pair]).find(|pair| pair.executions > 0 && pair.tries == [0; 2]);
        let favoured = unfair.and_then(|pair| {
            let side = pair.sides[(pair.executions as usize + 1) % 2];
            self.descriptors[side].thread.clone()
        });
        let any_thread = number >= 3;
        let mut descriptors: Vec<usize> = Vec::new();
        for pair in &pairs {
            for side in self.pairs[*pair].sides {
                if !descriptors.contains(&side) {
                    descriptors.push(side);
                }
            }
        }
        descriptors.truncate(rashomon_abi::provoke::MAX_DESCRIPTORS);
        let watched = descriptors.iter().map(|descriptor| {
            let mut descriptor = self.descriptors[*descriptor].clone();
            if any_thread {
                descriptor.thread = None;
            }
            if number % 2 == 1 {
                // Where an execution goes another way the recorded ordinal may never come.
                descriptor.ordinal = 0;
            }
            Watched { descriptor, holds: HOLDS }
        });
        Round { watched: watched.collect(), descriptors, pairs, favoured }
    }

    /// Learns from an execution which of its pairs had a fair attempt, and decides those that have had enough.
    pub fn learn(&mut self, round: &Round, provoked: &Provoked) {
        let state = |side: usize| {
            let at = round.descriptors.iter().position(|descriptor| *descriptor == side)?;
            provoked.descriptors.get(at).copied()
        };
        for &pair in &round.pairs {
            let pair = &mut self.pairs[pair];
            let (Some(one), Some(other)) = (state(pair.sides[0]), state(pair.sides[1])) else { continue };
            pair.executions += 1;
            for (side, (held, other)) in [(one, other), (other, one)].into_iter().enumerate() {
                if was_fair(&held, &other) {
                    pair.tries[side] += held.blocked + held.looking + held.timed_out;
                    pair.exhausted[side] |= held.holds >= held.matches;
                }
            }
            let enough = |side: usize| pair.tries[side] >= TRIES || pair.exhausted[side];
            if pair.decision != Decision::Open {
                continue;
            }
            if enough(0) && enough(1) {
                pair.decision = Decision::NotProvoked;
            } else if pair.executions >= EXECUTIONS {
                pair.decision = if pair.tries == [0; 2] { Decision::NotReached } else { Decision::NotProvoked };
            }
        }
    }
}
