//! What a provocation does with time that is left when every target is decided: it monitors again, under other schedules, and
//! varies executions.
//!
//! Targets are conflicts of one recording, and tell nothing of accesses that it does not have. Another schedule may
//! have them: its recording adds pairs of places that no earlier one had. In between, threads are held at drawn sides of pairs
//! that were not provoked, at drawn ordinals, and at drawn statements, as DataCollider does. A catch proves a race however its
//! execution was chosen.

use crate::check::Job;
use crate::check::leads::RacePlaces;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::Observer;
use crate::provoke::plan::{HOLDS, Plan, Round, TargetState};
use crate::provoke::{BREAK, Campaign, NAME};
use crate::record::{Scheduling, record};
use rashomon_abi::numbers::SplitMix;
use rashomon_confirm::{Input, Output};
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::{CodePlace, Deadline, Descriptor, Finding, Provocation};
use rashomon_trace::{Policy, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Break-points of an execution that draws them.
const DRAWN: usize = 16;
/// The most drawn sides of an execution.
const SIDES: u64 = 8;
/// How long threads are held at drawn sides, `None` being the campaign's time, and how often at most. Where an access is to meet
/// one of a certain object, among many of its place, many short holds find that object sooner than few long ones.
const LENGTHS: [(Option<Duration>, u64); 3] = [(None, HOLDS), (Some(BREAK), 32), (Some(Duration::from_millis(2)), 128)];
/// Executions that follow a recording; twice as many when no schedule has had a new pair since they were doubled.
const VARIED: u64 = 4;
const MOST_DOUBLINGS: u32 = 6;
/// How the further recordings are made, in turn.
const SCHEDULES: [Scheduling; 4] = [
    Scheduling::Serial(Policy::Random),
    Scheduling::Free,
    Scheduling::Serial(Policy::Pct),
    Scheduling::Serial(Policy::RoundRobin),
];

/// Varied executions after so many recordings in a row without a new pair.
pub fn varied_after(fruitless: u32) -> u64 {
    VARIED << (fruitless / SCHEDULES.len() as u32).min(MOST_DOUBLINGS)
}

/// One of them, if there are any.
fn one_of<'a, T>(random: &mut SplitMix, all: &'a [T]) -> Option<&'a T> {
    all.get(usize::try_from(random.below(all.len() as u64)).unwrap_or(0))
}

impl Plan {
    /// Threads are held at statements that are drawn from all that the recording executed, the frequent ones at any of their
    /// times.
    pub fn at_statements(&self, draw: &mut SplitMix) -> Round {
        let watched = (0..DRAWN.min(self.sites.len())).filter_map(|_| {
            let &(site, times) = one_of(draw, &self.sites)?;
            let ordinal = draw.below(times);
            Some(Watched { descriptor: Descriptor { thread: None, identity: 0, site, frames: Vec::new(), ordinal }, holds: 1 })
        });
        Round { watched: watched.collect(), hold: Some(BREAK), ..Round::alone() }
    }

    /// Threads are held at drawn sides of pairs that are not proven; or at statements. `None`: there is nothing to hold a thread
    /// at.
    pub fn varied(&self, draw: &mut SplitMix) -> Option<Round> {
        let sides = self.pairs.iter().filter(|pair| pair.decision != TargetState::Proven).flat_map(|pair| pair.sides);
        let sides: Vec<usize> = sides.collect::<BTreeSet<usize>>().into_iter().collect();
        if sides.is_empty() || draw.below(3) == 0 && !self.sites.is_empty() {
            return (!self.sites.is_empty()).then(|| self.at_statements(draw));
        }
        let (hold, most) = one_of(draw, &LENGTHS).copied().unwrap_or((None, HOLDS));
        let mut taken = BTreeSet::new();
        let mut watched = Vec::new();
        for _ in 0..=draw.below(SIDES) {
            let Some(&side) = one_of(draw, &sides) else { break };
            if !taken.insert(side) {
                continue;
            }
            let mut descriptor = self.descriptors[side].clone();
            let matches = self.matches(side).max(descriptor.ordinal + 1);
            // Recordings leave out repeated accesses, so there may be more of them.
            descriptor.ordinal = draw.below(matches * 2);
            if draw.below(3) == 0 {
                (descriptor.thread, descriptor.identity) = (None, 0);
            }
            watched.push(Watched { descriptor, holds: 1 + draw.below(most) });
        }
        let favoured = (draw.below(3) == 0)
            .then(|| one_of(draw, &sides).map(|&side| &self.descriptors[side]))
            .flatten()
            .filter(|descriptor| descriptor.identity == 0)
            .and_then(|descriptor| descriptor.thread.clone());
        Some(Round { watched, favoured, hold, ..Round::alone() })
    }
}

impl<S: Symbols + ?Sized> Campaign<'_, '_, S> {
    /// Varied executions are to be over by then.
    pub(crate) fn look_again(&mut self, until: Deadline) {
        let executions = u32::try_from(self.tally.executions).unwrap_or(u32::MAX).max(1);
        let usual = (self.tally.deciding / executions).max(self.native);
        self.second_look = until.less(usual);
    }

    pub(crate) fn looked_again(&self) -> bool {
        self.second_look.is_over()
    }

    /// So many more executions, each another way.
    pub(crate) fn vary(
        &mut self,
        executions: u64,
        draw: &mut SplitMix,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let mut made = 0;
        while made < executions && !self.is_spent() && !self.second_look.is_over() {
            let share = (self.jobs() as u64).min(executions - made).min(self.left());
            let rounds: Vec<Round> = (0..share).filter_map(|_| self.plan.varied(draw)).collect();
            if rounds.is_empty() {
                break;
            }
            made += rounds.len() as u64;
            self.tally.varied += rounds.len() as u64;
            self.execute(&rounds, observer)?;
        }
        Ok(())
    }
}

/// What is known of pairs of places, from one recording to the next.
#[derive(Default)]
pub struct Known {
    modules: Vec<ScheduleModule>,
    /// By places in ascending order.
    decided: BTreeMap<[CodePlace; 2], TargetState>,
    /// Also those that no recording has.
    pub proven: Vec<[CodePlace; 2]>,
    pub findings: Vec<Proven>,
    /// Places of races that other engines of a check have proven.
    pub by_others: std::collections::BTreeSet<RacePlaces>,
    /// How many of them were provoked again, or were to be.
    pub repeated: usize,
    /// Ids of the deadlocks and lost wake-ups.
    pub blocked: std::collections::BTreeSet<rashomon_event::FindingId>,
}

/// A finding, and what brought it about.
pub struct Proven {
    pub finding: Finding,
    pub provocation: Provocation,
}

impl Known {
    /// Takes what is known into the plan of another recording, whose modules may have other numbers.
    pub fn enter(&mut self, plan: &mut Plan) {
        let mut number = |module: &ScheduleModule| {
            let known = plan.modules.iter().position(|other| other.path == module.path);
            known.unwrap_or_else(|| {
                plan.modules.push(module.clone());
                plan.modules.len() - 1
            })
        };
        let numbers: Vec<usize> = self.modules.iter().map(&mut number).collect();
        let place = |place: CodePlace| {
            let module = place.module.map(|module| numbers.get(module as usize).map_or(module, |&number| number as u32));
            CodePlace { module, ..place }
        };
        self.proven.iter_mut().for_each(|places| *places = places.map(place));
        self.decided = self.decided.iter().map(|(places, decision)| (ascending(places.map(place)), *decision)).collect();
        self.modules.clone_from(&plan.modules);
        for pair in &mut plan.pairs {
            let same = |places: &[CodePlace; 2]| pair.places == *places || pair.places == [places[1], places[0]];
            if self.proven.iter().any(same) {
                pair.decision = TargetState::Proven;
            } else if let Some(decision) = self.decided.get(&ascending(pair.places)) {
                pair.decision = *decision;
            }
        }
    }

    /// What became of the plan's pairs.
    pub fn learn(&mut self, plan: &Plan) {
        let decided = plan.pairs.iter().filter(|pair| pair.decision != TargetState::Open);
        self.decided.extend(decided.map(|pair| (ascending(pair.places), pair.decision)));
    }
}

fn ascending(mut places: [CodePlace; 2]) -> [CodePlace; 2] {
    places.sort_unstable();
    places
}

impl<S: ?Sized> Job<'_, S> {
    /// Records the program once more, for the first time if `number` is 1, under another schedule each time, for as long as
    /// `limit`. `None`: that execution was not recorded; the next one may be.
    pub(crate) fn monitor_again(&self, number: u32, limit: Duration) -> Option<PathBuf> {
        let mut settings = self.settings.record.clone();
        settings.scheduling = SCHEDULES[number.saturating_sub(1) as usize % SCHEDULES.len()];
        settings.seed = settings.seed.wrapping_add(u64::from(number));
        settings.output = Output::Discard;
        if settings.input == Input::Inherit {
            settings.input = Input::Empty;
        }
        settings.limit = Some(settings.limit.map_or(limit, |own| own.min(limit)));
        let session = self.store.scratch(NAME).join("monitored");
        record(self.program, &session, &settings).ok().map(|_| session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provoke::plan::tests::plan;

    fn module(path: &str) -> ScheduleModule {
        ScheduleModule { path: path.into(), build_id: None }
    }

    #[test]
    fn what_is_decided_stays_so_where_modules_have_other_numbers() {
        let mut first = plan(&[0, 1, 2], &[[0, 1], [1, 2], [0, 2]]);
        first.modules = vec![module("a")];
        first.pairs[0].decision = TargetState::NotProvoked;
        let mut known = Known::default();
        known.enter(&mut first);
        known.proven.push(first.pairs[1].places);
        known.learn(&first);

        let mut second = plan(&[0, 1, 2], &[[1, 0], [2, 1], [0, 2]]);
        second.modules = vec![module("b"), module("a")];
        let moved = |place: CodePlace| CodePlace { module: Some(1), ..place };
        second.pairs.iter_mut().for_each(|pair| pair.places = pair.places.map(moved));
        known.enter(&mut second);
        let decisions: Vec<TargetState> = second.pairs.iter().map(|pair| pair.decision).collect();
        assert_eq!(decisions, [TargetState::NotProvoked, TargetState::Proven, TargetState::Open]);

        // The same offsets of another module are other places.
        let mut third = plan(&[0, 1, 2], &[[0, 1], [1, 2], [0, 2]]);
        third.modules = vec![module("c")];
        known.enter(&mut third);
        assert_eq!((third.open(), third.modules.len()), (3, 3));
    }

    #[test]
    fn varied_executions_hold_at_what_is_not_proven() {
        let mut plan = plan(&[0, 1, 2, 3], &[[0, 1], [2, 3]]);
        plan.pairs[0].decision = TargetState::Proven;
        plan.pairs[1].decision = TargetState::NotProvoked;
        let mut draw = SplitMix(0);
        let mut held = BTreeSet::new();
        for _ in 0..50 {
            let round = plan.varied(&mut draw).unwrap();
            assert!(!round.watched.is_empty() && round.watched.iter().all(|watched| watched.holds > 0));
            held.extend(round.watched.iter().map(|watched| watched.descriptor.site.offset));
        }
        assert_eq!(held.into_iter().collect::<Vec<_>>(), [2, 3]);
        plan.pairs[1].decision = TargetState::Proven;
        assert!(plan.varied(&mut draw).is_none());
        plan.sites.push((CodePlace { module: Some(0), offset: 9 }, 3));
        assert_eq!(plan.varied(&mut draw).unwrap().hold, Some(BREAK));
    }
}
