//! From the targets of a recording to what each provoking execution watches.
//!
//! A hold at one site tries all targets with that site on one side at once, as any conflicting access of another thread is a
//! catch. So what is watched are descriptors, each once, whatever the number of pairs.

use crate::provoke::ProvokeSettings;
use rashomon_abi::numbers::SplitMix;
use rashomon_confirm::provoke::{Attempts, attempts};
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::{CodePlace, Deadline, Descriptor, EventIndex, Evidence, SiteId, ThreadPath, Trace};
use rashomon_order::targets::{Describe, Target, Targets, targets_until};
use rashomon_trace::{Provoked, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a thread is held at one descriptor in one execution.
pub const HOLDS: u64 = 6;
/// Fair holds in one execution, or weight of the executions with one, after which a side has shown nothing.
const TRIES: u64 = 4;
const WEIGHT: u32 = 3;

/// What decides where threads are held. All but the first are what others do, for comparison; they decide nothing and go on while
/// there is time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// All conflicting pairs, told apart by thread, call stack and ordinal, many in one execution.
    #[default]
    Targets,
    /// One pair of statements an execution, whichever thread executes them, of those without a common lock and ordered by lock
    /// hand-overs at most: K. Sen, "Race directed random testing of concurrent programs", PLDI 2008 (RaceFuzzer), with parallel
    /// threads in place of its scheduler.
    Statements,
    /// Executed statements drawn at random, for a short time each: J. Erickson et al., "Effective data-race detection for the
    /// kernel", OSDI 2010 (DataCollider).
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    Open,
    /// Caught: both stood side by side.
    Proven,
    /// Fair attempts showed nothing.
    NotProvoked,
    /// No execution gave it a fair attempt.
    NotReached,
}

/// Which sides share an execution. What lost its chance to another hold gets one with fewer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Grouping {
    #[default]
    All,
    /// Those of one thread, which is held once at each, at different ordinals: in a loop one hold each time round, so that
    /// whoever was let run ahead is stopped again. Threads with few of them share an execution.
    OneThread,
    /// The same, at other ordinals.
    OneThreadAgain,
    /// [`FEW`] of different threads, if possible.
    Few,
    Alone,
}

/// Sides in an execution that are all but alone.
const FEW: usize = 3;

impl Grouping {
    const EVERY: [Self; 5] = [Self::All, Self::OneThread, Self::OneThreadAgain, Self::Few, Self::Alone];

    fn less(self) -> Self {
        match self {
            Self::All => Self::OneThread,
            Self::OneThread => Self::OneThreadAgain,
            Self::OneThreadAgain => Self::Few,
            Self::Few | Self::Alone => Self::Alone,
        }
    }

    /// What a fair attempt in it says.
    fn weight(self) -> u32 {
        match self {
            Self::All => 1,
            Self::OneThread | Self::OneThreadAgain | Self::Few | Self::Alone => WEIGHT,
        }
    }
}

/// Where an execution holds a thread, from which match on, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    descriptor: usize,
    ordinal: u64,
    holds: u64,
}

/// What has become of holding a pair's thread at one of its two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HoldState {
    /// Fair holds, and the weight of the executions with one.
    tries: u64,
    weight: u32,
    /// Where it is to be tried next.
    grouping: Grouping,
    /// The last execution that tried it gave it no chance although no hold took it: the other side was over, or the access did
    /// not come.
    fruitless: bool,
    settled: bool,
}

/// A target with what has become of it.
#[derive(Clone, Debug)]
pub struct Pair {
    pub target: Target,
    pub places: [CodePlace; 2],
    /// Index of each side's descriptor in [`Plan::descriptors`].
    pub sides: [usize; 2],
    pub decision: TargetState,
    tried: [HoldState; 2],
}

/// How one execution differs from others.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Index in [`Plan::descriptors`] of each watched descriptor.
    pub descriptors: Vec<usize>,
    pub watched: Vec<Watched>,
    pub favoured: Option<ThreadPath>,
    /// Longest time that a thread is held, where it is not the campaign's.
    pub hold: Option<Duration>,
    pub grouping: Grouping,
}

impl Round {
    /// One whose holds decide nothing.
    pub fn alone() -> Self {
        Self { grouping: Grouping::Alone, ..Self::default() }
    }

    /// How long all holds of the execution may last, of which one may take `hold`. Where all threads are held, a wait that is
    /// worth its time is one more reason for a smaller group.
    pub fn all_holds(&self, hold: Duration) -> Duration {
        match self.grouping {
            Grouping::All => hold * 2 / 3 + Duration::from_millis(500),
            _ => hold * 2 + Duration::from_secs(1),
        }
    }
}

pub struct Plan {
    pub modules: Vec<ScheduleModule>,
    pub descriptors: Vec<Descriptor>,
    pub pairs: Vec<Pair>,
    /// Matches of each descriptor in the last execution that was to hold a thread there.
    seen: BTreeMap<usize, u64>,
    strategy: Strategy,
    /// Whether there was time to look at all of the recording.
    pub complete: bool,
    /// All sites of accesses, and how often each is in the recording; where statements are drawn.
    pub sites: Vec<(CodePlace, u64)>,
    /// Added to those of drawn statements.
    pub seeds: u64,
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
    fn new(target: Target, places: [CodePlace; 2], sides: [usize; 2]) -> Self {
        Self { target, places, sides, decision: TargetState::Open, tried: [HoldState::default(); 2] }
    }

    /// The sides at which a thread is still to be held.
    fn unsettled(&self) -> impl Iterator<Item = (usize, HoldState)> {
        let open = self.decision == TargetState::Open;
        self.sides.into_iter().zip(self.tried).filter(move |(_, side)| open && !side.settled)
    }
}

impl HoldState {
    /// Learns what came of an execution in which a thread was to be held there. `taken`: while another one was held, or holds had
    /// used up the time, it was not; `caught`: somebody else arrived.
    fn learn(&mut self, attempts: Attempts, taken: bool, caught: bool, grouping: Grouping, favoured: bool) {
        self.tries += attempts.fair;
        self.fruitless = attempts.fair == 0 && attempts.missed == 0 && !taken && !caught;
        if attempts.fair > 0 {
            self.weight += grouping.weight();
            self.settled = self.weight >= WEIGHT || attempts.fair >= TRIES;
        } else {
            // No more can be done than to hold it alone, until all that it meets is known. If the other side is over when this
            // thread alone is held, and had a head start, that is how the program is.
            self.settled = grouping == Grouping::Alone && !caught || self.fruitless && favoured && grouping != Grouping::All;
            self.grouping = self.grouping.max(grouping.less());
        }
    }
}

impl Plan {
    /// `identities`: what the program calls its threads, by their numbers.
    pub fn new(trace: &Trace, identities: &BTreeMap<u32, u64>, settings: &ProvokeSettings, deadline: Deadline) -> Self {
        let (strategy, with_ordered) = (settings.strategy, settings.with_ordered);
        let modules = trace.modules.iter();
        let modules = modules.map(|module| ScheduleModule { path: module.path.clone(), build_id: module.build_id.clone() });
        let Targets { found: mut targets, complete } = targets_until(trace, with_ordered, deadline);
        if strategy == Strategy::Statements {
            targets.retain(|target| target.evidence != Evidence::Conflict);
        }
        let sites: BTreeSet<SiteId> = targets.iter().flat_map(|target| [target.sites.0, target.sites.1]).collect();
        let describe = Describe::new(trace, &sites);
        let mut executed: BTreeMap<SiteId, u64> = BTreeMap::new();
        if strategy == Strategy::Random || settings.varies() {
            for event in trace.events.iter().filter(|event| event.access().is_some()) {
                *executed.entry(event.site).or_default() += 1;
            }
        }
        let mut plan = Self {
            modules: modules.collect(),
            descriptors: Vec::new(),
            pairs: Vec::new(),
            seen: BTreeMap::new(),
            strategy,
            complete,
            sites: executed.into_iter().map(|(site, times)| (place_of(trace, site), times)).collect(),
            seeds: 0,
        };
        let identity = |event: EventIndex| identities.get(&trace.event(event).thread.0).copied().unwrap_or(0);
        let mut numbers: BTreeMap<(ThreadPath, SiteId, Vec<SiteId>), usize> = BTreeMap::new();
        for target in targets {
            let sides = [target.first, target.second]
                .map(|event| plan.descriptor(trace, &describe, &mut numbers, event, identity(event)));
            let places = [target.first, target.second].map(|event| place_of(trace, trace.event(event).site));
            plan.pairs.push(Pair::new(target, places, sides));
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

    /// How often the descriptor matched in the last execution that was to hold a thread there.
    pub fn matches(&self, descriptor: usize) -> u64 {
        self.seen.get(&descriptor).copied().unwrap_or(0)
    }

    pub fn open(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.decision == TargetState::Open).count()
    }

    /// What the next executions try, at most `share` of them. `number`: executions made before, side by side ones being one.
    pub fn rounds(&self, number: u32, share: usize) -> Vec<Round> {
        let share = share.max(1);
        if self.strategy != Strategy::Targets {
            let open: Vec<usize> = (0..self.pairs.len()).filter(|pair| self.pairs[*pair].decision == TargetState::Open).collect();
            return (0..share).map(|part| self.other_round(number as usize * share + part, &open)).collect();
        }
        // The largest groups come first: later executions then have less to try.
        let mut rounds = Vec::new();
        for grouping in Grouping::EVERY {
            let mut known = BTreeSet::new();
            let sides = self.pairs.iter().flat_map(Pair::unsettled).filter(|(_, side)| side.grouping == grouping);
            let open: Vec<usize> = sides.map(|(side, _)| side).filter(|side| known.insert(*side)).collect();
            if !open.is_empty() {
                let parts = self.parts(number, grouping, &open, share).into_iter();
                let actual =
                    |part: &[Held]| if grouping == Grouping::Few && part.len() == 1 { Grouping::Alone } else { grouping };
                rounds.extend(parts.take(share - rounds.len()).map(|part| self.round(actual(&part), part)));
            }
        }
        rounds
    }

    /// Descriptors that share an execution.
    fn parts(&self, number: u32, grouping: Grouping, open: &[usize], share: usize) -> Vec<Vec<Held>> {
        let seen = |descriptor: usize| self.matches(descriptor);
        let often = |descriptor: usize| {
            let recorded = self.descriptors[descriptor].ordinal;
            // Where an execution goes another way the recorded ordinal may never come.
            let comes = number.is_multiple_of(2) && (grouping == Grouping::All || recorded < seen(descriptor));
            Held { descriptor, ordinal: if comes { recorded } else { 0 }, holds: HOLDS }
        };
        match grouping {
            Grouping::All => {
                let mut open = open.to_vec();
                if share > 1 {
                    // Sides of the same thread take fewer chances from each other than those of different ones.
                    open.sort_by_key(|descriptor| self.descriptors[*descriptor].thread.as_ref());
                }
                open.chunks(open.len().div_ceil(share).max(1)).map(|part| part.iter().copied().map(often).collect()).collect()
            }
            Grouping::OneThread | Grouping::OneThreadAgain => {
                let mut threads: BTreeMap<Option<&ThreadPath>, Vec<usize>> = BTreeMap::new();
                for descriptor in open {
                    threads.entry(self.descriptors[*descriptor].thread.as_ref()).or_default().push(*descriptor);
                }
                let mut parts = Vec::new();
                for own in threads.into_values() {
                    let (once, repeated): (Vec<usize>, Vec<usize>) =
                        own.into_iter().partition(|descriptor| seen(*descriptor) <= 1);
                    let repeated = repeated.into_iter().map(|descriptor| (descriptor, seen(descriptor)));
                    parts.extend(spread(repeated.collect(), grouping == Grouping::OneThreadAgain));
                    if !once.is_empty() {
                        parts.push(once.into_iter().map(often).collect());
                    }
                }
                // What gets no chance together is tried again, in smaller groups.
                self.joined(parts, if grouping == Grouping::OneThread { 2 * FEW } else { FEW })
            }
            Grouping::Few => {
                let mut open = open.to_vec();
                open.sort_by_key(|descriptor| self.descriptors[*descriptor].thread.as_ref());
                // Neighbours are of the same thread.
                let count = open.len().div_ceil(FEW);
                (0..count).map(|part| open.iter().skip(part).step_by(count).copied().map(often).collect()).collect()
            }
            Grouping::Alone => open.iter().map(|descriptor| vec![often(*descriptor)]).collect(),
        }
    }

    /// Small parts of different threads share an execution of at most so many sides, but not two of which each wants a head start
    /// for its thread.
    fn joined(&self, mut parts: Vec<Vec<Held>>, most: usize) -> Vec<Vec<Held>> {
        let unsettled = self.pairs.iter().flat_map(Pair::unsettled);
        let fruitless: BTreeSet<usize> = unsettled.filter(|(_, tried)| tried.fruitless).map(|(side, _)| side).collect();
        let wants_head_start = |part: &[Held]| part.iter().any(|held| fruitless.contains(&held.descriptor));
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        let mut joined: Vec<Vec<Held>> = Vec::new();
        for part in parts {
            let fits = |other: &&mut Vec<Held>| {
                other.len() + part.len() <= most && !(wants_head_start(&part) && wants_head_start(other))
            };
            match joined.iter_mut().find(fits) {
                Some(other) => other.extend(part),
                None => joined.push(part),
            }
        }
        joined
    }

    /// Of the strategies that are here for comparison.
    fn other_round(&self, number: usize, open: &[usize]) -> Round {
        if self.strategy == Strategy::Random {
            return self.at_statements(&mut SplitMix(self.seeds.wrapping_add(number as u64)));
        }
        let pair = open.get(number % open.len().max(1)).map(|pair| &self.pairs[*pair]);
        let mut places: Vec<CodePlace> = pair.map_or_else(Vec::new, |pair| pair.places.to_vec());
        places.dedup();
        let anybody = |site| {
            let descriptor = Descriptor { thread: None, identity: 0, site, frames: Vec::new(), ordinal: 0 };
            Watched { descriptor, holds: HOLDS }
        };
        Round { watched: places.into_iter().map(anybody).collect(), ..Round::alone() }
    }

    /// Whether there is nothing that could be tried.
    pub fn is_done(&self) -> bool {
        match self.strategy {
            Strategy::Random => self.sites.is_empty(),
            _ => self.open() == 0,
        }
    }

    /// An execution in which threads are held at `open`, and what could meet them there is counted.
    fn round(&self, grouping: Grouping, mut open: Vec<Held>) -> Round {
        open.truncate(rashomon_abi::provoke::MAX_DESCRIPTORS / 2);
        let held: BTreeMap<usize, Held> = open.iter().map(|held| (held.descriptor, *held)).collect();
        let concerned = || self.pairs.iter().filter(|pair| pair.unsettled().any(|(side, _)| held.contains_key(&side)));
        // With other threads' sides a head start would be of no use to most.
        let fruitless = |side: HoldState| side.fruitless && grouping != Grouping::All;
        let fruitless = concerned().flat_map(Pair::unsettled).find(|(side, tried)| held.contains_key(side) && fruitless(*tried));
        // Threads get a head start by their paths: which one will call itself so is not known when it begins.
        let unnamed = fruitless.map(|(side, _)| &self.descriptors[side]).filter(|descriptor| descriptor.identity == 0);
        let favoured = unnamed.and_then(|descriptor| descriptor.thread.clone());
        let mut descriptors: Vec<usize> = open.iter().map(|held| held.descriptor).collect();
        let mut known: BTreeSet<usize> = descriptors.iter().copied().collect();
        descriptors.extend(concerned().flat_map(|pair| pair.sides).filter(|side| known.insert(*side)));
        descriptors.truncate(rashomon_abi::provoke::MAX_DESCRIPTORS);
        let watched = descriptors.iter().map(|index| {
            let mut descriptor = self.descriptors[*index].clone();
            let holds = held.get(index).map_or(0, |held| {
                descriptor.ordinal = held.ordinal;
                held.holds
            });
            if holds > 0 && grouping != Grouping::All && self.seen.get(index) == Some(&0) {
                // Another thread may do it.
                (descriptor.thread, descriptor.identity) = (None, 0);
            }
            Watched { descriptor, holds }
        });
        Round { watched: watched.collect(), descriptors, favoured, hold: None, grouping }
    }

    /// Learns from an execution which sides had a fair attempt, and decides the pairs of which both are settled.
    pub fn learn(&mut self, round: &Round, provoked: &Provoked) {
        let state = |position: usize| provoked.descriptors.get(position).copied().unwrap_or_default();
        let mut positions: BTreeMap<usize, usize> = BTreeMap::new();
        for (position, descriptor) in round.descriptors.iter().enumerate() {
            positions.insert(*descriptor, position);
            if round.watched[position].holds > 0 {
                self.seen.insert(*descriptor, state(position).matches);
            }
        }
        for pair in self.pairs.iter_mut().filter(|pair| pair.decision == TargetState::Open) {
            let [Some(one), Some(other)] = pair.sides.map(|side| positions.get(&side).copied()) else { continue };
            for (side, (held, other)) in [(one, other), (other, one)].into_iter().enumerate() {
                if round.watched[held].holds == 0 || pair.tried[side].settled {
                    continue;
                }
                let state = state(held);
                let (taken, caught) = (state.skipped > 0 || state.cut_short > 0, state.caught > 0);
                let favoured = self.descriptors[pair.sides[side]].thread == round.favoured;
                pair.tried[side].learn(attempts(&provoked.log, held, other), taken, caught, round.grouping, favoured);
            }
            if pair.tried.iter().all(|side| side.settled) {
                let fair = pair.tried.iter().any(|side| side.tries > 0);
                pair.decision = if fair { TargetState::NotProvoked } else { TargetState::NotReached };
            }
        }
    }
}

/// Divides descriptors that match so often into executions in each of which no two have the same ordinal, and none the last of
/// several: the others are mostly over then. `later`: from the middle on first.
fn spread(mut often: Vec<(usize, u64)>, later: bool) -> Vec<Vec<Held>> {
    // Whoever matches more often has more to choose from.
    often.sort_by_key(|(_, matches)| *matches);
    let mut parts = Vec::new();
    while !often.is_empty() {
        let mut taken: BTreeSet<u64> = BTreeSet::new();
        let mut part = Vec::new();
        often.retain(|&(descriptor, matches)| {
            let matches = if matches > 2 { matches - 1 } else { matches };
            let first = if later { matches / 2 } else { 0 };
            let free = (first..matches).chain(0..first).find(|ordinal| !taken.contains(ordinal));
            part.extend(free.map(|ordinal| Held { descriptor, ordinal, holds: 1 }));
            taken.extend(free);
            free.is_none()
        });
        parts.push(part);
    }
    parts
}

#[cfg(test)]
pub(crate) mod tests;
