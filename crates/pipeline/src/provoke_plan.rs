//! From the targets of a recording to what each provoking execution watches.
//!
//! A hold at one site tries all targets with that site on one side at once, as any conflicting access of another thread is a catch. So what is watched are
//! descriptors, each once, whatever the number of pairs.

use rashomon_confirm::provoke::attempts;
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::{CodePlace, Descriptor, EventIndex, Evidence, SiteId, ThreadPath, Trace};
use rashomon_order::targets::{Describe, Target, all_pairs, targets};
use rashomon_trace::{Provoked, Watched};
use std::collections::{BTreeMap, BTreeSet};

/// How often a thread is held at one descriptor in one execution.
pub const HOLDS: u64 = 6;
/// Fair holds at a side, or executions with one, after which that side has shown nothing; and executions that are made to get there.
const TRIES: u64 = 6;
const FAIR_EXECUTIONS: u32 = 3;
const EXECUTIONS: u32 = 5;
/// Pairs that have an execution to themselves.
const FEW: usize = 4;
/// Places of a thread that take turns in being the only one.
const ALONE: usize = 4;

/// What decides where threads are held. All but the first are what others do, for comparison; they decide nothing and go on while there is time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// All conflicting pairs, told apart by thread, call stack and ordinal, many in one execution.
    #[default]
    Targets,
    /// One pair of statements an execution, whichever thread executes them, of those without a common lock and ordered by lock hand-overs at most: K. Sen, "Race directed random
    /// testing of concurrent programs", PLDI 2008 (RaceFuzzer), with parallel threads in place of its scheduler.
    Statements,
    /// Executed statements drawn at random, for a short time each: J. Erickson et al., "Effective data-race detection for the kernel", OSDI 2010 (DataCollider).
    Random,
}

/// Break-points of an execution that draws them.
const DRAWN: usize = 16;

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
    /// Executions in which it was tried; of each side the fair holds, the executions with one, and the chances that another hold took.
    pub executions: u32,
    pub tries: [u64; 2],
    pub fair: [u32; 2],
    pub missed: [u64; 2],
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
    strategy: Strategy,
    /// All sites of accesses, and how often each is in the recording.
    sites: Vec<(CodePlace, u64)>,
}

/// A site as a place that survives re-execution.
pub fn place_of(trace: &Trace, site: SiteId) -> CodePlace {
    let site = trace.site(site);
    match site.module {
        Some(module) => CodePlace { module: Some(module), offset: site.offset },
        None => CodePlace { module: None, offset: site.address },
    }
}

impl Pair {
    /// A chance of that side was taken by another hold: an execution in which fewer are held has to give it.
    fn lacks(&self, side: usize) -> bool {
        self.missed[side] > self.tries[side]
    }
}

impl Plan {
    /// `identities`: what the program calls its threads, by their numbers.
    pub fn new(trace: &Trace, identities: &BTreeMap<u32, u64>, strategy: Strategy, with_ordered: bool) -> Self {
        let modules = trace.modules.iter();
        let modules = modules.map(|module| ScheduleModule { path: module.path.clone(), build_id: module.build_id.clone() });
        let mut targets = if with_ordered { all_pairs(trace) } else { targets(trace) };
        if strategy == Strategy::Statements {
            targets.retain(|target| target.evidence != Evidence::Conflict);
        }
        let sites: BTreeSet<SiteId> = targets.iter().flat_map(|target| [target.sites.0, target.sites.1]).collect();
        let describe = Describe::new(trace, &sites);
        let mut executed: BTreeMap<SiteId, u64> = BTreeMap::new();
        if strategy == Strategy::Random {
            for event in trace.events.iter().filter(|event| event.access().is_some()) {
                *executed.entry(event.site).or_default() += 1;
            }
        }
        let mut plan = Self {
            modules: modules.collect(),
            descriptors: Vec::new(),
            pairs: Vec::new(),
            strategy,
            sites: executed.into_iter().map(|(site, times)| (place_of(trace, site), times)).collect(),
        };
        let identity = |event: EventIndex| identities.get(&trace.event(event).thread.0).copied().unwrap_or(0);
        let mut numbers: BTreeMap<(ThreadPath, SiteId, Vec<SiteId>), usize> = BTreeMap::new();
        for target in targets {
            let sides = [target.first, target.second]
                .map(|event| plan.descriptor(trace, &describe, &mut numbers, event, identity(event)));
            let places = [target.first, target.second].map(|event| place_of(trace, trace.event(event).site));
            plan.pairs.push(Pair {
                target,
                places,
                sides,
                decision: Decision::Open,
                executions: 0,
                tries: [0; 2],
                fair: [0; 2],
                missed: [0; 2],
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
        identity: u64,
    ) -> usize {
        let event = trace.event(index);
        let apart = describe.of(index);
        let path = trace.thread(event.thread).path.clone();
        let next = self.descriptors.len();
        let number = *numbers.entry((path.clone(), event.site, apart.frames.clone())).or_insert(next);
        if number == next {
            self.descriptors.push(Descriptor {
                thread: Some(path),
                identity,
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
        if self.strategy != Strategy::Targets {
            let share = share.max(1);
            return (0..share).map(|part| self.other_round(number as usize * share + part, &open)).collect();
        }
        // Every other execution belongs to a few of those of which a side was never given its chance: the others would take it again.
        let untried = |pair: &usize| self.pairs[*pair].tries.contains(&0);
        let open = match number % 2 {
            1 if open.iter().any(untried) => {
                let untried: Vec<usize> = open.into_iter().filter(untried).collect();
                let skip = number as usize / 2 * FEW % untried.len();
                untried.iter().cycle().skip(skip).take(FEW.min(untried.len())).copied().collect()
            }
            _ => open,
        };
        let share = share.clamp(1, open.len().max(1));
        (0..share).map(|part| self.round(number, open.iter().copied().skip(part).step_by(share).collect())).collect()
    }

    /// Of the strategies that are here for comparison.
    fn other_round(&self, number: usize, open: &[usize]) -> Round {
        let anybody = |site: CodePlace, ordinal: u64, holds: u64| {
            let descriptor = Descriptor { thread: None, identity: 0, site, frames: Vec::new(), ordinal };
            Watched { descriptor, holds }
        };
        let watched = match self.strategy {
            Strategy::Random => {
                let mut state = number as u64;
                let mut draw = |below: u64| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % below.max(1)
                };
                let drawn = (0..DRAWN.min(self.sites.len())).map(|_| {
                    let (site, times) = self.sites[draw(self.sites.len() as u64) as usize];
                    anybody(site, draw(times), 1)
                });
                drawn.collect()
            }
            _ => {
                let pair = open.get(number % open.len().max(1)).map(|pair| &self.pairs[*pair]);
                let mut places: Vec<CodePlace> = pair.map_or_else(Vec::new, |pair| pair.places.to_vec());
                places.dedup();
                places.into_iter().map(|place| anybody(place, 0, HOLDS)).collect()
            }
        };
        Round { watched, descriptors: Vec::new(), pairs: Vec::new(), favoured: None }
    }

    /// Whether there is nothing that could be tried.
    pub fn is_done(&self) -> bool {
        match self.strategy {
            Strategy::Random => self.sites.is_empty(),
            _ => self.open() == 0,
        }
    }

    fn round(&self, number: u32, pairs: Vec<usize>) -> Round {
        // Pairs that have had no fair attempt are given a head start, one thread at a time, and in the end any thread will do.
        let unfair = pairs.iter().map(|pair| &self.pairs[*pair]).find(|pair| pair.executions > 0 && pair.tries == [0; 2]);
        let favoured = unfair.and_then(|pair| {
            let side = pair.sides[(pair.executions as usize + 1) % 2];
            self.descriptors[side].thread.clone()
        });
        let any_thread = number >= EXECUTIONS / 2 && unfair.is_some();
        // Where there are chances to be given back, a thread is held at one place only.
        let alone = self.alone(number, &pairs);
        let mut descriptors: Vec<usize> = Vec::new();
        for pair in &pairs {
            for side in self.pairs[*pair].sides {
                if !descriptors.contains(&side) {
                    descriptors.push(side);
                }
            }
        }
        descriptors.truncate(rashomon_abi::provoke::MAX_DESCRIPTORS);
        let watched = descriptors.iter().map(|index| {
            let mut descriptor = self.descriptors[*index].clone();
            if any_thread {
                (descriptor.thread, descriptor.identity) = (None, 0);
            }
            if number % 2 == 1 {
                // Where an execution goes another way the recorded ordinal may never come.
                descriptor.ordinal = 0;
            }
            let shut = alone.get(&self.descriptors[*index].thread).is_some_and(|only| only != index);
            Watched { descriptor, holds: if shut { 0 } else { HOLDS } }
        });
        Round { watched: watched.collect(), descriptors, pairs, favoured }
    }

    /// For threads with descriptors whose chances were taken, one of these, in turn.
    fn alone(&self, number: u32, pairs: &[usize]) -> BTreeMap<Option<ThreadPath>, usize> {
        let mut lacking: BTreeMap<Option<ThreadPath>, Vec<(u64, usize)>> = BTreeMap::new();
        for pair in pairs.iter().map(|pair| &self.pairs[*pair]) {
            for side in (0..2).filter(|side| pair.lacks(*side)) {
                let descriptor = pair.sides[side];
                let known = lacking.entry(self.descriptors[descriptor].thread.clone()).or_default();
                match known.iter_mut().find(|(_, other)| *other == descriptor) {
                    Some((tries, _)) => *tries = (*tries).min(pair.tries[side]),
                    None => known.push((pair.tries[side], descriptor)),
                }
            }
        }
        // Those that were never given one come first.
        let choose = |mut descriptors: Vec<(u64, usize)>| {
            descriptors.sort_unstable();
            descriptors[number as usize % descriptors.len().min(ALONE)].1
        };
        lacking.into_iter().map(|(thread, descriptors)| (thread, choose(descriptors))).collect()
    }

    /// Learns from an execution which of its pairs had a fair attempt, and decides those that have had enough.
    pub fn learn(&mut self, round: &Round, provoked: &Provoked) {
        let number = |side: usize| round.descriptors.iter().position(|descriptor| *descriptor == side);
        for &pair in &round.pairs {
            let pair = &mut self.pairs[pair];
            let (Some(one), Some(other)) = (number(pair.sides[0]), number(pair.sides[1])) else { continue };
            pair.executions += 1;
            for (side, (held, other)) in [(one, other), (other, one)].into_iter().enumerate() {
                let attempts = attempts(&provoked.log, held, other);
                pair.tries[side] += attempts.fair;
                pair.fair[side] += u32::from(attempts.fair > 0);
                pair.missed[side] += attempts.missed;
            }
            let enough = |side: usize| {
                let tries = pair.tries[side] >= TRIES || pair.fair[side] >= FAIR_EXECUTIONS;
                tries && !pair.lacks(side)
            };
            if pair.decision != Decision::Open {
                continue;
            }
            // Where one side never gets its chance, the other one's have to do.
            let one = (enough(0) || enough(1)) && !pair.lacks(0) && !pair.lacks(1);
            if enough(0) && enough(1) || one && pair.executions > FAIR_EXECUTIONS {
                pair.decision = Decision::NotProvoked;
            } else if pair.executions >= EXECUTIONS {
                pair.decision = if pair.tries == [0; 2] { Decision::NotReached } else { Decision::NotProvoked };
            }
        }
    }
}
