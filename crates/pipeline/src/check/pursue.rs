//! After the schedules of a finding were left: the same goal, elastically, then by holding threads at its places, under other
//! policies and seeds.
//!
//! What such an execution shows is a lead only. Its own recording is turned into a schedule, the interleaving that was really
//! executed, and that one has to come about again, strictly, as often as any other proof. Another pair of accesses, or another
//! cycle, that came about instead is a finding of its own.

use crate::check::Job;
use crate::check::prove::{Prover, load};
use crate::error::PipelineError;
use crate::findings::alike::Cause;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::record::Scheduling;
use crate::store::run::RecordedRun;
use rashomon_confirm::force::{Manner, folder_of, force_in};
use rashomon_confirm::{Outcome, force};
use rashomon_event::{CodePlace, Evidence, Finding, FindingId, FindingKind, Goal, Grade, Place, Replays, Schedule, Trial};
use rashomon_trace::{Enforcement, GoalRecord, Policy};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

/// Executions for one finding, beside one for each of its schedules.
const EXECUTIONS: u64 = 20;
/// Rounds of tries, one for each finding that is still open, that show nothing before all are given up.
const FRUITLESS_ROUNDS: u32 = 6;
/// How often an interleaving that was executed may fail to come about again.
const FAILED_REPLAYS: u32 = 3;

/// What is known of the pursuit of one finding.
pub struct Pursuit {
    schedules: Vec<Schedule>,
    /// What is still to be tried, the last one first.
    manners: Vec<(usize, Manner)>,
    /// Ids of what came about instead, and the places of those races, which are no news any more.
    others: BTreeSet<FindingId>,
    known: Vec<[CodePlace; 2]>,
    failed_replays: u32,
}

impl Pursuit {
    /// `recorded`: the recording that the finding is from. Under its policy and seed the program comes to its places as it did
    /// there.
    pub fn new(schedules: impl Iterator<Item = Schedule>, recorded: Option<&RecordedRun>) -> Self {
        let policy = match recorded.and_then(|recorded| recorded.policy.parse().ok()) {
            Some(Scheduling::Serial(policy)) => policy,
            _ => Policy::Random,
        };
        let seed = recorded.map_or(1, |recorded| recorded.seed);
        let schedules: Vec<Schedule> = schedules.filter(|schedule| schedule.goal != Goal::None).collect();
        let elastic = |seed| Manner { enforcement: Enforcement::Elastic, policy: Policy::Random, seed };
        let hold = |policy, seed| Manner { enforcement: Enforcement::HoldOnly, policy, seed };
        let mut manners: Vec<(usize, Manner)> = (0..schedules.len()).map(|schedule| (schedule, elastic(1))).collect();
        manners.insert(manners.len().min(1), (0, hold(policy, seed)));
        for number in 1..=EXECUTIONS {
            let schedule = number as usize % schedules.len().max(1);
            let seed = seed.wrapping_add(number);
            manners.push(match number % 4 {
                0 => (schedule, elastic(seed)),
                2 => (schedule, hold(Policy::Pct, seed)),
                _ => (schedule, hold(Policy::Random, seed)),
            });
        }
        manners.retain(|(schedule, _)| *schedule < schedules.len());
        manners.reverse();
        Self { schedules, manners, others: BTreeSet::new(), known: Vec::new(), failed_replays: 0 }
    }

    /// Whether nothing is left to try.
    pub fn is_over(&self) -> bool {
        self.manners.is_empty() || self.failed_replays >= FAILED_REPLAYS
    }
}

/// A finding that is still open.
struct Open {
    finding: Finding,
    pursuit: Pursuit,
    cause: Option<Cause>,
}

/// Everything that is pursued, in the order of its next try.
#[derive(Default)]
pub(crate) struct Pursuits {
    open: VecDeque<Open>,
    /// Findings that came about, whichever of them was pursued.
    shown: BTreeSet<FindingId>,
}

impl Pursuits {
    /// A finding that its schedules did not show. What was unordered in an execution already is the likeliest to come about, and
    /// is tried next.
    pub fn add(&mut self, finding: Finding, pursuit: Pursuit, cause: Option<Cause>) {
        let was_unordered = finding.evidence == Evidence::HappensBefore;
        let open = Open { finding, pursuit, cause };
        if was_unordered {
            self.open.push_front(open);
        } else {
            self.open.push_back(open);
        }
    }

    /// The finding is proven.
    pub fn is_shown(&mut self, id: &FindingId) {
        self.shown.insert(id.clone());
    }

    pub fn has_shown(&self, id: &FindingId) -> bool {
        self.shown.contains(id)
    }

    /// Takes out those that are not to be pursued any more.
    pub fn without(&mut self, is_enough: impl Fn(Option<Cause>) -> bool) -> Vec<Finding> {
        let (enough, open) = std::mem::take(&mut self.open).into_iter().partition(|open| is_enough(open.cause));
        self.open = open;
        let enough: VecDeque<Open> = enough;
        enough.into_iter().map(|open| open.finding).filter(|finding| !self.shown.contains(&finding.id)).collect()
    }
}

/// Whose turn it is: everybody's next try in turn, until several rounds have shown nothing.
#[derive(Default)]
pub(crate) struct Rounds {
    fruitless: u32,
    number: usize,
    of: usize,
}

impl Rounds {
    /// The number of the next try, and how many there are in its round. `None`: there are to be no more.
    pub fn next(&mut self, pursuits: &Pursuits) -> Option<(usize, usize)> {
        while self.number == self.of {
            if self.fruitless == FRUITLESS_ROUNDS {
                return None;
            }
            self.fruitless += 1;
            (self.number, self.of) = (0, pursuits.open.len());
        }
        self.number += 1;
        Some((self.number - 1, self.of))
    }

    /// The last try showed something.
    pub fn was_fruitful(&mut self) {
        self.fruitless = 0;
    }
}

/// What one try was.
pub(crate) enum Tried {
    /// There was none: nothing is open, or no time is left.
    Nothing,
    InVain,
    /// It showed what was not proven before; the cause of what was pursued, if that came about itself.
    Shown(Option<Cause>),
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// The next try of whatever is next.
    pub(crate) fn pursue_next(
        &self,
        pursuits: &mut Pursuits,
        prover: &mut Prover<'_, S>,
        (number, of): (usize, usize),
        observer: &mut dyn Observer,
    ) -> Result<Tried, PipelineError> {
        let is_next = |open: &Open| !open.pursuit.is_over() && !pursuits.shown.contains(&open.finding.id);
        let Some(next) = pursuits.open.iter().position(is_next).filter(|_| !prover.forcing.deadline.is_over()) else {
            return Ok(Tried::Nothing);
        };
        // Those before it are over.
        pursuits.open.drain(..next);
        let Some(Open { mut finding, mut pursuit, cause }) = pursuits.open.pop_front() else { return Ok(Tried::Nothing) };
        observer.progress(Progress::Forcing { id: &finding.id, number, of });
        let session = self.store.proof(&finding.id);
        let other = prover.pursue(&mut finding, &mut pursuit, &session)?;
        self.clean_up(&session)?;
        let mut tried = Tried::InVain;
        for (shown, cause) in other.into_iter().map(|other| (other, None)).chain([(finding.clone(), cause)]) {
            if shown.verdict.is_proven() && pursuits.shown.insert(shown.id.clone()) {
                tried = Tried::Shown(cause);
                let mut shown = shown;
                self.complete(&mut shown);
                self.store.write_finding(&shown)?;
                observer.progress(Progress::Decided(&shown));
            }
        }
        pursuits.open.push_back(Open { finding, pursuit, cause });
        Ok(tried)
    }
}

impl<S: Symbols + ?Sized> Prover<'_, S> {
    /// Tries what is next. Changes the finding's verdict if it comes about; what came about instead is handed back, proven.
    pub fn pursue(
        &mut self,
        finding: &mut Finding,
        pursuit: &mut Pursuit,
        session: &Path,
    ) -> Result<Option<Finding>, PipelineError> {
        let Some((number, manner)) = pursuit.manners.pop() else { return Ok(None) };
        let schedule = &pursuit.schedules[number];
        let attempt = force_in(manner, &pursuit.known, self.program, schedule, session, &self.forcing)?;
        self.executions += 1;
        let Some((mut shown, places)) = self.shown(schedule, &attempt.outcome, session) else { return Ok(None) };
        let is_same = shown.id == finding.id;
        if !is_same {
            // The wanted race may be of the same code with another object.
            let wanted = goal_sites(schedule);
            pursuit.known.extend(places.filter(|[one, other]| !(wanted.contains(one) && wanted.contains(other))));
            if !pursuit.others.insert(shown.id.clone()) {
                return Ok(None);
            }
        }
        if !self.comes_about_again(&mut shown, session)? {
            pursuit.failed_replays += 1;
            return Ok(None);
        }
        if !is_same {
            return Ok(Some(shown));
        }
        take(finding, shown);
        Ok(None)
    }

    /// What an execution has come to, with the interleaving that was executed as its schedule, and the code of a race in terms of
    /// `schedule`.
    pub(crate) fn shown(
        &self,
        schedule: &Schedule,
        outcome: &Outcome,
        session: &Path,
    ) -> Option<(Finding, Option<[CodePlace; 2]>)> {
        if !matches!(outcome, Outcome::CoEnabled | Outcome::Deadlocked | Outcome::Stuck | Outcome::Endless) {
            return None;
        }
        let loaded = load(&folder_of(schedule, session)).ok()?;
        let composer = Composer::new(&loaded, self.symbols, schedule.quantum);
        let (mut finding, executed) = match outcome {
            Outcome::CoEnabled => (composer.of_goals()?, loaded.goal_schedule(schedule.quantum)?),
            _ => (composer.of_blocked()?, loaded.replay_schedule(schedule.quantum)),
        };
        let place = |goal: &GoalRecord| {
            let site = loaded.trace.site(goal.site);
            let path = &loaded.trace.modules.get(site.module? as usize)?.path;
            let module = schedule.modules.iter().position(|module| module.path == *path)?;
            Some(CodePlace { module: Some(u32::try_from(module).ok()?), offset: site.offset })
        };
        let places = match loaded.goals.as_slice() {
            [first, second] => place(first).zip(place(second)).map(|(first, second)| [first, second]),
            _ => None,
        };
        finding.schedule =
            Some(Schedule { surroundings: schedule.surroundings.clone(), kept: schedule.kept.clone(), ..executed });
        Some((finding, places))
    }

    /// Whether the finding's schedule shows it, strictly enforced, as often as a proof has to.
    pub(crate) fn comes_about_again(&mut self, finding: &mut Finding, session: &Path) -> Result<bool, PipelineError> {
        let Some(schedule) = finding.schedule.clone() else { return Ok(false) };
        let Some(grade) = finding.verdict.grade() else { return Ok(false) };
        let times = self.forcing.times.max(1);
        for _ in 0..times {
            let attempt = force(self.program, &schedule, session, &self.forcing)?;
            self.executions += 1;
            let again = match grade {
                Grade::CoEnabled => attempt.outcome == Outcome::CoEnabled,
                Grade::Deadlocked => attempt.outcome == Outcome::Deadlocked,
                Grade::Stuck => attempt.outcome == Outcome::Stuck,
                Grade::Endless => attempt.outcome == Outcome::Endless,
                _ => false,
            };
            // The same outcome at other places would be another finding.
            if !again || self.shown(&schedule, &attempt.outcome, session).is_none_or(|(shown, _)| shown.id != finding.id) {
                return Ok(false);
            }
        }
        finding.advance(Trial::Shown { grade, replays: Replays::all(times) });
        self.take_sides_of_proof(finding, &schedule, session);
        Ok(true)
    }
}

/// The code places of a race that is wanted.
fn goal_sites(schedule: &Schedule) -> Vec<CodePlace> {
    let Goal::Race { turns } = &schedule.goal else { return Vec::new() };
    let turns = turns.iter().filter_map(|turn| schedule.turns.get(*turn as usize));
    turns
        .filter_map(|turn| match turn.until.place {
            Place::Access { site, .. } => Some(site),
            _ => turn.landmark.map(|landmark| landmark.site),
        })
        .collect()
}

/// The proof takes the place of what was only expected.
fn take(finding: &mut Finding, shown: Finding) {
    finding.verdict = shown.verdict;
    finding.schedule = shown.schedule;
    finding.subject = shown.subject;
    if finding.kind != FindingKind::DataRace || !shown.sides.is_empty() {
        finding.sides = shown.sides;
    }
    finding.forget_steps();
    finding.forced = shown.forced;
}
